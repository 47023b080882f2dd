//! The configuration file: which one, and what it says.

use std::io::Read;
use std::path::{Path, PathBuf};

use orchestr8_contract::json;
use orchestr8_contract::place::Place;
use serde_json::Value;

use super::environment::Environment;

/// A configuration larger than this is something else.
const FILE_BYTES: u64 = 1024 * 1024;
const NAMES: [&str; 2] = ["orchestr8.json", "orchestr8.toml"];

/// Why the file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: std::io::Error },
    #[error("{path} is larger than {FILE_BYTES} bytes")]
    TooLarge { path: PathBuf },
    #[error("{path} is neither .json nor .toml")]
    Format { path: PathBuf },
    #[error("{path}: {what}")]
    Syntax { path: PathBuf, what: String },
    #[error("both {0} and {1} exist, and it is not said which counts")]
    Two(PathBuf, PathBuf),
}

impl Error {
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Io { .. } => "check the path given with --config, and that the file may be read",
            Error::TooLarge { .. } => "a configuration is a few lines; is it the right file?",
            Error::Format { .. } => "name it orchestr8.json or orchestr8.toml, or rename it to its format",
            Error::Syntax { .. } => "correct it at the line and column given",
            Error::Two(..) => "delete one of them, or name one with --config",
        }
    }
}

/// The file in force: the one named, else one in the working directory, else the user's own.
pub fn find(named: Option<&Path>, environment: &Environment) -> Result<Option<PathBuf>, Error> {
    if let Some(named) = named {
        return Ok(Some(named.to_owned()));
    }
    if let Some(named) = environment.path("ORCHESTR8_CONFIG") {
        return Ok(Some(named));
    }
    let folders = [Some(environment.working_directory.clone()), environment.config_home()];
    for folder in folders.into_iter().flatten() {
        let [json, toml] = NAMES.map(|name| folder.join(name));
        match (json.exists(), toml.exists()) {
            (true, true) => return Err(Error::Two(json, toml)),
            (true, false) => return Ok(Some(json)),
            (false, true) => return Ok(Some(toml)),
            (false, false) => {}
        }
    }
    Ok(None)
}

pub fn read(path: &Path) -> Result<Value, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(io)?;
    file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(Error::TooLarge { path: path.to_owned() });
    }
    parse(path, text.trim_start_matches('\u{feff}'))
}

fn parse(path: &Path, text: &str) -> Result<Value, Error> {
    let syntax = |what: String| Error::Syntax { path: path.to_owned(), what };
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {
            let doubled = |_: &Place<'_>, name: &str| Err(format!("the name \"{name}\" is there twice"));
            json::read(text.as_bytes(), doubled).map_err(|error| syntax(error.to_string()))
        }
        Some("toml") => {
            let table: toml::Table =
                text.parse().map_err(|error: toml::de::Error| syntax(toml_error(text, &error)))?;
            serde_json::to_value(table).map_err(|error| syntax(error.to_string()))
        }
        Some(_) | None => Err(Error::Format { path: path.to_owned() }),
    }
}

fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{} at line {line} column {column}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_as(name: &str, text: &str) -> Result<Value, String> {
        parse(Path::new(name), text).map_err(|error| error.to_string())
    }

    #[test]
    fn both_formats_say_the_same() {
        let expected = json!({"tools": {"defaultTimeoutMs": 5}, "auth": {"tokens": [{"name": "ci"}]}});
        let json = r#"{"tools":{"defaultTimeoutMs":5},"auth":{"tokens":[{"name":"ci"}]}}"#;
        let toml = "[tools]\ndefaultTimeoutMs = 5\n[[auth.tokens]]\nname = 'ci'\n";
        assert_eq!(read_as("a.json", json), Ok(expected.clone()));
        assert_eq!(read_as("a.toml", toml), Ok(expected));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(
            read_as("a.json", "{\"a\": 1,\n \"a\": 2}").unwrap_err(),
            "a.json: the name \"a\" is there twice at line 2 column 4"
        );
        assert!(read_as("a.json", "{} {}").unwrap_err().contains("trailing characters at line 1 column 4"));
        assert!(read_as("a.toml", "[tools]\nx = \n").unwrap_err().ends_with("at line 2 column 5"));
        assert_eq!(read_as("a.yaml", "").unwrap_err(), "a.yaml is neither .json nor .toml");
        assert!(read_as("a.json", &"[".repeat(10_000)).is_err(), "depth is limited");
    }

    #[test]
    fn the_named_file_comes_first_then_the_folder_then_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/orchestr8");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("orchestr8.toml"), "").unwrap();
        let mut environment =
            Environment::of(&[("XDG_CONFIG_HOME", folder.path().join("home").to_str().unwrap())]);
        environment.working_directory = folder.path().to_owned();
        let found = |environment: &Environment| find(None, environment).unwrap().unwrap();
        assert_eq!(found(&environment), home.join("orchestr8.toml"));
        std::fs::write(folder.path().join("orchestr8.json"), "{}").unwrap();
        assert_eq!(found(&environment), folder.path().join("orchestr8.json"));
        assert_eq!(find(Some(Path::new("x.json")), &environment).unwrap(), Some(PathBuf::from("x.json")));
        std::fs::write(folder.path().join("orchestr8.toml"), "").unwrap();
        assert!(matches!(find(None, &environment), Err(Error::Two(..))));
    }
}
