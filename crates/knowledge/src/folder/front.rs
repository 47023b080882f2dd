//! One file: its front matter and its text.

use serde_json::{Map, Value};

use crate::limits::{BODY_BYTES, METADATA_BYTES};

/// What a file says about its document.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Relative, with slashes.
    pub path: String,
    pub id: Option<String>,
    /// With a title, always.
    pub metadata: Map<String, Value>,
    pub human: bool,
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
    #[error("`{0}` in its front matter is not what it should be")]
    Member(&'static str),
    #[error("it is larger than {BODY_BYTES} bytes")]
    TooLarge,
}

const FENCE: &str = "---";

/// Members of the front matter that are not metadata.
const ID: &str = "id";
const HUMAN: &str = "is_human_readable";
const ORDER: &str = "order";

/// Reads a file. A title that is not given is the first heading, or the name of the file.
pub fn read(path: &str, text: &str) -> Result<File, Error> {
    if text.len() > BODY_BYTES + METADATA_BYTES {
        return Err(Error::TooLarge);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let (mut metadata, body) = match text.strip_prefix("---\n") {
        None => (Map::new(), text.as_str()),
        Some(rest) => {
            let (yaml, body) = split(rest).ok_or(Error::Open)?;
            (parse(yaml)?, body)
        }
    };
    let id = match metadata.remove(ID) {
        None => None,
        Some(Value::String(id)) if uuid::Uuid::try_parse(&id).is_ok() => Some(crate::reading::plain_id(&id)),
        Some(_) => return Err(Error::Member(ID)),
    };
    let human = match metadata.remove(HUMAN) {
        None => true,
        Some(Value::Bool(human)) => human,
        Some(_) => return Err(Error::Member(HUMAN)),
    };
    let order = match metadata.remove(ORDER) {
        None => None,
        Some(value) => Some(value.as_i64().ok_or(Error::Member(ORDER))?),
    };
    match metadata.get("title") {
        Some(Value::String(title)) if !title.trim().is_empty() => {}
        None => {
            metadata.insert(String::from("title"), Value::String(title(path, body)));
        }
        Some(_) => return Err(Error::Member("title")),
    }
    Ok(File { path: path.to_owned(), id, metadata, human, order, body: body.to_owned() })
}

/// The text of a file. JSON is YAML, so values are written as JSON and read back as they were.
pub fn write(file: &File) -> String {
    let mut text = format!("{FENCE}\n");
    let mut line = |name: &str, value: &Value| text.push_str(&format!("{}: {value}\n", Value::from(name)));
    if let Some(id) = &file.id {
        line(ID, &Value::from(id.as_str()));
    }
    for (name, value) in &file.metadata {
        line(name, value);
    }
    if !file.human {
        line(HUMAN, &Value::Bool(false));
    }
    if let Some(order) = file.order {
        line(ORDER, &Value::from(order));
    }
    text.push_str(FENCE);
    text.push('\n');
    text.push_str(&file.body);
    text
}

/// The front matter and what follows its end.
fn split(rest: &str) -> Option<(&str, &str)> {
    if let Some(body) = rest.strip_prefix("---\n") {
        return Some(("", body));
    }
    if let Some(at) = rest.find("\n---\n") {
        return Some((&rest[..=at], &rest[at + "\n---\n".len()..]));
    }
    rest.strip_suffix("\n---").map(|yaml| (yaml, ""))
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
    let name = name.strip_suffix(".md").unwrap_or(name);
    heading
        .filter(|heading| !heading.is_empty())
        .unwrap_or(name)
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
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        assert_eq!(read("a.md", "---\ntitle: x\n"), Err(Error::Open));
        assert!(matches!(read("a.md", "---\n- x\n---\n"), Err(Error::NoMapping)));
        assert!(matches!(read("a.md", "---\nid: 5\n---\n"), Err(Error::Member("id"))));
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
            body in "([ -~đ]|\n|---\n){0,80}",
            human in any::<bool>(),
        ) {
            let metadata = Map::from_iter([
                (String::from("title"), json!(title)),
                (name, json!({"text": text, "n": n, "list": [true, null, "no"]})),
            ]);
            let file = File { path: "a.md".into(), id: None, metadata, human, order: Some(i64::from(n)), body };
            prop_assert_eq!(read("a.md", &write(&file)).unwrap(), file);
        }
    }
}
