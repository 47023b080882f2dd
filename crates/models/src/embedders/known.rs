//! How many numbers the vectors of well-known models have, so that nobody must look it up.

const KNOWN: [(&str, usize); 16] = [
    ("text-embedding-3-small", 1536),
    ("text-embedding-3-large", 3072),
    ("text-embedding-ada-002", 1536),
    ("voyage-3-large", 1024),
    ("voyage-3.5", 1024),
    ("voyage-3.5-lite", 1024),
    ("voyage-code-3", 1024),
    ("voyage-multilingual-2", 1024),
    ("nomic-embed-text", 768),
    ("mxbai-embed-large", 1024),
    ("snowflake-arctic-embed2", 1024),
    ("bge-m3", 1024),
    ("all-minilm", 384),
    ("embeddinggemma", 768),
    ("qwen3-embedding", 4096),
    ("paraphrase-multilingual", 768),
];

/// Of a model by its name; what follows a colon is which build of it.
pub fn dimensions(model: &str) -> Option<usize> {
    let name = model.split_once(':').map_or(model, |(name, _)| name);
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, dimensions)| *dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_of_a_model_is_that_model() {
        assert_eq!(dimensions("nomic-embed-text:latest"), Some(768));
        assert_eq!(dimensions("somebody-elses"), None);
    }
}
