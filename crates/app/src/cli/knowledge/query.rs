//! `orchestr8 knowledge query`: an answer, and the passages it is from, with the words of the question marked.

use std::collections::{HashMap, HashSet};

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_knowledge::text::terms;
use orchestr8_knowledge::text::words::words;
use serde_json::{Map, Value, json};

use super::super::Shell;
use super::super::words::{duration, text};
use super::Asking;
use super::shelf::Shelf;
use crate::failure::Failure;
use crate::terminal::{BOLD, CYAN, DIM, PLAIN, YELLOW, visible, visible_line};

#[derive(Args)]
pub struct Query {
    /// The question.
    #[arg(required = true)]
    question: Vec<String>,
    /// So many passages at most.
    #[arg(long, short = 'k', value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=20))]
    top_k: u64,
    /// Only documents with this tag; may be given again, then one of them is enough.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only this document and what is below it.
    #[arg(long, value_name = "DOCUMENT")]
    below: Option<String>,
    /// Only documents whose metadata have this, as NAME=VALUE; may be given again.
    #[arg(long = "where", value_name = "NAME=VALUE")]
    metadata: Vec<String>,
    /// Answer within so many milliseconds, with what is there by then.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1000..=10_000))]
    max_latency_ms: Option<u64>,
    /// Search by words (lexical), by meaning (dense), or by both.
    #[arg(long, value_name = "HOW", default_value = "hybrid", value_parser = ["hybrid", "lexical", "dense"])]
    retrieval: String,
    /// Only the passages, no answer.
    #[arg(long)]
    passages: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Query {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let question = self.question.join(" ");
        let answer = self.asking.run(shell, async |shelf| {
            let mut answer = shelf.post("/documents/query", &self.args(shelf, &question).await?).await?;
            add_paths(shelf, &mut answer).await?;
            Ok(answer)
        })?;
        if shell.terminal.json {
            shell.terminal.value(&answer);
            return Ok(());
        }
        let marked = Marked::of(&question);
        let response = text(&answer, "response");
        if !response.is_empty() && !self.passages {
            shell.terminal.data(&format!("{}\n\n", visible(response).trim_end()));
        }
        for (number, item) in answer["context"].as_array().into_iter().flatten().enumerate() {
            shell.terminal.data(&passage(number + 1, item, &marked));
        }
        shell.terminal.note(&said(&answer));
        Ok(())
    }

    async fn args(&self, shelf: &Shelf<'_>, question: &str) -> Result<Value, Failure> {
        let mut filters = Map::new();
        if !self.tags.is_empty() {
            filters.insert(String::from("tags"), self.tags.clone().into());
        }
        if let Some(below) = &self.below {
            filters.insert(String::from("subtree"), shelf.parent(below).await?.into());
        }
        let mut metadata = Map::new();
        for pair in &self.metadata {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| Failure::new(Code::InvalidArgument, format!("'{pair}' is not NAME=VALUE")))?;
            metadata.insert(name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into()));
        }
        if !metadata.is_empty() {
            filters.insert(String::from("metadata"), metadata.into());
        }
        let mut args = json!({"query": question, "top_k": self.top_k, "filters": filters,
            "routing": {"retrieval": self.retrieval}});
        if let Some(ms) = self.max_latency_ms {
            args["routing"]["max_latency_ms"] = json!(ms);
        }
        Ok(args)
    }
}

/// Says where each passage is, as people name documents.
async fn add_paths(shelf: &Shelf<'_>, answer: &mut Value) -> Result<(), Failure> {
    let Some(context) = answer["context"].as_array_mut().filter(|context| !context.is_empty()) else {
        return Ok(());
    };
    let ids: Vec<&str> = context.iter().map(|item| text(item, "document_id")).collect();
    let found = shelf.post("/documents/batch", &json!({"ids": ids})).await?;
    let paths: HashMap<&str, &Value> = found["documents"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|document| (text(document, "id"), &document["path"]))
        .collect();
    for item in context {
        // One that was deleted a moment ago has none.
        let path = paths.get(text(item, "document_id")).map(|path| (*path).clone());
        item["path"] = path.unwrap_or_default();
    }
    Ok(())
}

fn passage(number: usize, item: &Value, marked: &Marked) -> String {
    let (from, length) = (item["offset"].as_u64().unwrap_or(0), item["length"].as_u64().unwrap_or(0));
    let path = item["path"].as_str().unwrap_or_else(|| text(&item["metadata"], "title"));
    let score = item["score"].as_f64().unwrap_or(0.0);
    let place = format!(
        "{}  revision {}, characters {from} to {}, score {score:.3}",
        text(item, "document_id"),
        item["revision"],
        from + length
    );
    let snippet = marked.mark(&visible(text(item, "snippet")));
    let indented: Vec<String> =
        snippet.trim_end().lines().map(|line| format!("   {line}").trim_end().to_owned()).collect();
    format!(
        "{BOLD}{number}. {}{PLAIN}\n   {DIM}{place}{PLAIN}\n{}\n\n",
        visible_line(path),
        indented.join("\n")
    )
}

/// How it was searched.
fn said(answer: &Value) -> String {
    let found = answer["context"].as_array().map_or(0, Vec::len);
    let mut said = vec![match found {
        0 => String::from("nothing was found"),
        1 => String::from("1 passage"),
        found => format!("{found} passages"),
    }];
    said.push(text(answer, "retrieval").to_owned());
    if found > 0 && !text(answer, "response").is_empty() {
        said.push(match answer["extractive"] == true {
            true => String::from("the answer is made of their sentences"),
            false => format!("the answer was written by {}", text(answer, "model")),
        });
    }
    said.push(duration(answer["usage"]["latency_ms"].as_u64().unwrap_or(0)));
    let missed = match (text(answer, "fallback"), answer["degraded"] == true) {
        ("model_cited_nothing", _) => "the model cited no passage, so its answer was not taken",
        ("model_unavailable", _) => "the model failed or was late",
        (_, true) => "the time was too short for more",
        (_, false) => return format!("{DIM}{}{PLAIN}", said.join(", ")),
    };
    format!("{DIM}{}{PLAIN}; {YELLOW}{missed}{PLAIN}", said.join(", "))
}

/// The words of a question, to be found in a text in all their forms.
struct Marked(HashSet<String>);

impl Marked {
    fn of(question: &str) -> Self {
        let forms =
            |term: orchestr8_knowledge::text::Term| [Some(term.kept), term.folded].into_iter().flatten();
        Self(terms(question).into_iter().flat_map(forms).collect())
    }

    fn mark(&self, text: &str) -> String {
        let (mut marked, mut at) = (String::with_capacity(text.len()), 0);
        for range in words(text) {
            let word = &text[range.clone()];
            let hit = terms(word).into_iter().any(|term| {
                self.0.contains(&term.kept) || term.folded.is_some_and(|folded| self.0.contains(&folded))
            });
            if hit {
                marked.push_str(&text[at..range.start]);
                marked.push_str(&format!("{CYAN}{word}{PLAIN}"));
                at = range.end;
            }
        }
        marked.push_str(&text[at..]);
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_in_all_their_forms_and_nothing_else() {
        let marked = Marked::of("run ha noi");
        assert_eq!(
            marked.mark("He is running to Hà Nội."),
            format!("He is {CYAN}running{PLAIN} to {CYAN}Hà{PLAIN} {CYAN}Nội{PLAIN}.")
        );
        assert_eq!(marked.mark("nothing here"), "nothing here");
    }
}
