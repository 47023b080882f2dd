//! The configuration file: which one, and what it says.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use orchestr8_contract::json;
use orchestr8_contract::place::Place;
use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::environment::Environment;

/// A configuration larger than this is something else.
const FILE_BYTES: u64 = 1024 * 1024;
const NAMES: [&str; 2] = ["orchestr8.json", "orchestr8.toml"];

/// Why the file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("{path} is not a plain file")]
    NotPlain { path: PathBuf },
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
            Error::NotPlain { .. } => "name a file with --config",
            Error::TooLarge { .. } => "a configuration is a few lines; is it the right file?",
            Error::Format { .. } => "name it orchestr8.json or orchestr8.toml, or rename it to its format",
            Error::Syntax { .. } => "correct it at the line and column given",
            Error::Two(..) => "delete one of them, or name one with --config",
        }
    }
}

/// How a configuration came to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// By a flag or by the environment.
    Named,
    /// It is in the working directory: another may have put it there.
    Directory,
    /// It is the user's own.
    User,
}

/// The file in force: the one named, else one in the working directory, else the user's own.
pub fn find(
    named: Option<&Path>,
    environment: &Environment,
) -> Result<Option<(PathBuf, ConfigSource)>, Error> {
    let named = named.map(Path::to_owned).or_else(|| environment.path("ORCHESTR8_CONFIG"));
    if let Some(named) = named {
        return Ok(Some((named, ConfigSource::Named)));
    }
    let own = of_user(environment)?;
    match in_folder(&environment.working_directory)? {
        // The folder of the user's own settings is not a folder of others.
        Some(path) if own.as_deref().is_some_and(|own| is_same(own, &path)) => {
            Ok(Some((path, ConfigSource::User)))
        }
        Some(path) => Ok(Some((path, ConfigSource::Directory))),
        None => Ok(own.map(|path| (path, ConfigSource::User))),
    }
}

/// The user's own configuration.
pub fn of_user(environment: &Environment) -> Result<Option<PathBuf>, Error> {
    environment.config_home().map_or(Ok(None), |folder| in_folder(&folder))
}

/// The configuration in a folder.
pub fn in_folder(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let [json, toml] = NAMES.map(|name| folder.join(name));
    match (json.exists(), toml.exists()) {
        (true, true) => Err(Error::Two(json, toml)),
        (true, false) => Ok(Some(json)),
        (false, true) => Ok(Some(toml)),
        (false, false) => Ok(None),
    }
}

/// What a file says, and the hash of what was read.
#[derive(Debug)]
pub struct ConfigFile {
    pub document: Value,
    pub sha256: String,
}

pub fn read(path: &Path) -> Result<ConfigFile, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    // A pipe in its place would never end, and must not be waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|error| io(error.into()))?);
    if !file.metadata().map_err(io)?.is_file() {
        return Err(Error::NotPlain { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(FILE_BYTES + 1).read_to_string(&mut text).map_err(io)?;
    if text.len() as u64 > FILE_BYTES {
        return Err(Error::TooLarge { path: path.to_owned() });
    }
    let sha256 = hash(text.as_bytes());
    Ok(ConfigFile { document: parse(path, text.trim_start_matches('\u{feff}'))?, sha256 })
}

/// The SHA-256 of a content, in hexadecimal digits.
pub fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
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
        assert_eq!(found(&environment), (home.join("orchestr8.toml"), ConfigSource::User));
        std::fs::write(folder.path().join("orchestr8.json"), "{}").unwrap();
        assert_eq!(found(&environment), (folder.path().join("orchestr8.json"), ConfigSource::Directory));
        let named = find(Some(Path::new("x.json")), &environment).unwrap();
        assert_eq!(named, Some((PathBuf::from("x.json"), ConfigSource::Named)));
        let mut at_home = environment.clone();
        at_home.working_directory = home.clone();
        assert_eq!(
            found(&at_home),
            (home.join("orchestr8.toml"), ConfigSource::User),
            "it is the user's own"
        );
        std::fs::write(folder.path().join("orchestr8.toml"), "").unwrap();
        assert!(matches!(find(None, &environment), Err(Error::Two(..))));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orchestr8.json");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        assert!(matches!(read(&path), Err(Error::NotPlain { .. })));
    }
}
