//! One file: its front matter and its text.

use serde_json::{Map, Value};

use crate::limits::{BODY_BYTES, METADATA_BYTES};
use crate::record::Mime;

/// What a file says about its document.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Relative, with slashes.
    pub path: String,
    pub id: Option<String>,
    /// With a title, always.
    pub metadata: Map<String, Value>,
    /// Whether the file says its title itself; otherwise it is the first heading, or the name of the file.
    pub titled: bool,
    pub human: bool,
    pub mime: Mime,
    /// Its number among its siblings.
    pub order: Option<i64>,
    pub body: String,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("its front matter begins with --- and never ends")]
    Open,
    #[error("its front matter is not YAML: {0}")]
    Yaml(String),
    #[error("its front matter is not a list of names and values")]
    NoMapping,
    #[error("`{name}` in its front matter must be {wanted}")]
    Member { name: &'static str, wanted: &'static str },
    #[error("it is larger than {BODY_BYTES} bytes")]
    TooLarge,
}

const FENCE: &str = "---";

/// Members of the front matter that are not metadata. Metadata of such a name is written below the last of them.
const ID: &str = "id";
const HUMAN: &str = "is_human_readable";
const ORDER: &str = "order";
const MIME: &str = "mime_type";
const METADATA: &str = "metadata";
const OWN: [&str; 5] = [ID, HUMAN, ORDER, MIME, METADATA];

const TITLE: &str = "title";

/// What has no name.
pub const UNTITLED: &str = "untitled";
const TAGS: &str = "tags";

/// Reads a file. A title that is not given is the first heading, or the name of the file.
pub fn read(path: &str, text: &str) -> Result<File, Error> {
    if text.len() > BODY_BYTES + METADATA_BYTES {
        return Err(Error::TooLarge);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut metadata, body) = match text.split_inclusive('\n').next() {
        Some(first) if first.ends_with('\n') && first.trim_end() == FENCE => {
            let (yaml, body) = split(&text[first.len()..]).ok_or(Error::Open)?;
            (parse(yaml)?, body)
        }
        _ => (Map::new(), text),
    };
    let wrong = |name, wanted| Err(Error::Member { name, wanted });
    let id = match metadata.remove(ID) {
        None => None,
        Some(Value::String(id)) if uuid::Uuid::try_parse(&id).is_ok() => Some(crate::reading::plain_id(&id)),
        Some(_) => return wrong(ID, "a UUID"),
    };
    let human = match metadata.remove(HUMAN) {
        None => true,
        Some(Value::Bool(human)) => human,
        Some(_) => return wrong(HUMAN, "true or false"),
    };
    let order = match metadata.remove(ORDER).map(|value| value.as_i64()) {
        None => None,
        Some(Some(order)) => Some(order),
        Some(None) => return wrong(ORDER, "a whole number"),
    };
    let mime = match metadata.remove(MIME).map(|value| value.as_str().and_then(Mime::parse)) {
        None => Mime::Markdown,
        Some(Some(mime)) => mime,
        Some(None) => return wrong(MIME, "text/markdown, text/plain or application/json"),
    };
    match metadata.remove(METADATA) {
        None => {}
        Some(Value::Object(more)) => metadata.extend(more),
        Some(_) => return wrong(METADATA, "a list of names and values"),
    }
    habits(&mut metadata);
    let titled = match metadata.get(TITLE) {
        Some(Value::String(title)) if !title.trim().is_empty() => true,
        None => {
            metadata.insert(TITLE.to_owned(), Value::String(title(path, body)));
            false
        }
        Some(_) => return wrong(TITLE, "a text"),
    };
    Ok(File { path: path.to_owned(), id, metadata, titled, human, mime, order, body: body.to_owned() })
}

/// The text of a file. JSON is YAML, so values are written as JSON and read back as they were.
pub fn write(file: &File) -> String {
    let mut text = format!("{FENCE}\n");
    let mut line = |name: &str, value: &Value| text.push_str(&format!("{}: {value}\n", Value::from(name)));
    if let Some(id) = &file.id {
        line(ID, &Value::from(id.as_str()));
    }
    let (own, plain): (Vec<_>, Vec<_>) =
        file.metadata.iter().partition(|(name, _)| OWN.contains(&name.as_str()));
    for (name, value) in plain {
        line(name, value);
    }
    if !own.is_empty() {
        let own = own.into_iter().map(|(name, value)| (name.clone(), value.clone()));
        line(METADATA, &Value::Object(own.collect()));
    }
    if !file.human {
        line(HUMAN, &Value::Bool(false));
    }
    if file.mime != Mime::Markdown {
        line(MIME, &Value::from(file.mime.as_str()));
    }
    if let Some(order) = file.order {
        line(ORDER, &Value::from(order));
    }
    text.push_str(FENCE);
    text.push('\n');
    text.push_str(&file.body);
    text
}

/// What other programs are used to write: one tag without brackets, a number as a title, a name without a value.
fn habits(metadata: &mut Map<String, Value>) {
    without_nulls(metadata);
    if let Some(Value::String(tags)) = metadata.get(TAGS) {
        let tags: Vec<&str> = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
        let tags = Value::from(tags);
        metadata.insert(TAGS.to_owned(), tags);
    }
    if let Some(Value::Number(number)) = metadata.get(TITLE) {
        let title = Value::String(number.to_string());
        metadata.insert(TITLE.to_owned(), title);
    }
}

/// A name without a value says nothing: no update could set it (RFC 7396).
pub fn without_nulls(members: &mut Map<String, Value>) {
    members.retain(|_, value| !value.is_null());
    for value in members.values_mut() {
        if let Value::Object(members) = value {
            without_nulls(members);
        }
    }
}

/// The front matter and what follows its end. The text stays as it is, to the last sign.
fn split(rest: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn parse(yaml: &str) -> Result<Map<String, Value>, Error> {
    if yaml.trim().is_empty() {
        return Ok(Map::new());
    }
    // `y` and `no` are texts, not booleans.
    let options = serde_saphyr::options! { strict_booleans: true };
    let value: Value =
        serde_saphyr::from_str_with_options(yaml, options).map_err(|error| Error::Yaml(error.to_string()))?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Error::NoMapping),
    }
}

fn title(path: &str, body: &str) -> String {
    let heading = body.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim);
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".md").unwrap_or(name).trim();
    heading
        .filter(|heading| !heading.is_empty())
        .unwrap_or(if name.is_empty() { UNTITLED } else { name })
        .chars()
        .take(crate::limits::TITLE_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn front_matter_is_read_with_strict_booleans() {
        let text = "---\nid: 00000000-0000-4000-8000-000000000001\ntitle: Setup\ntags: [a, no]\nanswer: y\nlive: true\n---\n# Text\n";
        let file = read("guide/setup.md", text).unwrap();
        assert_eq!(file.id.as_deref(), Some("00000000-0000-4000-8000-000000000001"));
        assert_eq!(
            Value::Object(file.metadata),
            json!({"title": "Setup", "tags": ["a", "no"], "answer": "y", "live": true})
        );
        assert_eq!(file.body, "# Text\n");
    }

    #[test]
    fn a_file_without_front_matter_is_named_by_its_heading_or_its_name() {
        assert_eq!(read("a/b.md", "x\n# Real title\n").unwrap().metadata["title"], "Real title");
        assert_eq!(read("a/b.md", "text").unwrap().metadata["title"], "b");
        assert_eq!(read("b.md", "---\n---\ntext").unwrap().body, "text");
        assert_eq!(read("b.md", "--- and so on\ntext").unwrap().body, "--- and so on\ntext");
    }

    #[test]
    fn what_other_programs_write_is_understood() {
        let file = read("a.md", "\u{feff}---\r\ntitle: 2024\r\ntags: a, b\r\n---\r\nline\r\n").unwrap();
        assert_eq!(Value::Object(file.metadata), json!({"title": "2024", "tags": ["a", "b"]}));
        assert_eq!(file.body, "line\r\n", "a text stays as it is");
        let file = read("a.md", "---\ntitle:\ntags:\n---\n").unwrap();
        assert_eq!((Value::Object(file.metadata), file.titled), (json!({"title": "a"}), false));
    }

    #[test]
    fn metadata_of_our_own_names_is_kept_apart() {
        let metadata =
            json!({"title": "t", "id": 5, "metadata": {"order": "x"}, "order": [1], "mime_type": "x"});
        let file = File {
            path: "a.md".into(),
            id: Some("00000000-0000-4000-8000-000000000001".into()),
            metadata: metadata.as_object().unwrap().clone(),
            titled: true,
            human: true,
            mime: Mime::Json,
            order: Some(2),
            body: "{}".into(),
        };
        assert_eq!(read("a.md", &write(&file)).unwrap(), file);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        assert_eq!(read("a.md", "---\ntitle: x\n"), Err(Error::Open));
        assert!(matches!(read("a.md", "---\n- x\n---\n"), Err(Error::NoMapping)));
        assert!(matches!(read("a.md", "---\nid: 5\n---\n"), Err(Error::Member { name: "id", .. })));
        assert!(matches!(read("a.md", "---\nmime_type: x\n---\n"), Err(Error::Member { .. })));
        assert!(matches!(read("a.md", "---\ntitle: [\n---\n"), Err(Error::Yaml(_))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn what_is_written_is_read_back(
            title in "[a-zA-Zđ:#'\"\\\\ \\-]{0,20}[a-z]",
            name in "[a-z_]{1,8}x",
            text in "[ -~đ\n]{0,60}",
            n in any::<i32>(),
            body in "([ -~đ]|\n|\r\n|---\n){0,80}",
            human in any::<bool>(),
        ) {
            let metadata = Map::from_iter([
                (String::from("title"), json!(title)),
                (name, json!({"text": text, "n": n, "list": [true, null, "no"]})),
            ]);
            let (mime, order) = (Mime::ALL[n.unsigned_abs() as usize % 3], Some(i64::from(n)));
            let file = File { path: "a.md".into(), id: None, metadata, titled: true, human, mime, order, body };
            prop_assert_eq!(read("a.md", &write(&file)).unwrap(), file);
        }
    }
}
