//! The program a step names, checked against what the settings allow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use orchestr8_contract::{Code, Fault};
use serde_json::Value;

use super::super::members::{Members, wrong};
use super::super::settings::Exec;
use crate::limits::{PROGRAM_ARGUMENT_BYTES, PROGRAM_ARGUMENTS};

/// What to start: never a shell's line, always a path and its arguments.
pub struct Program {
    pub path: PathBuf,
    pub args: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for Program {
    /// Its variables may hold secrets.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Program").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Program {
    pub fn read(config: &Value, allowed: &Exec) -> Result<Self, Fault> {
        let members = Members::read(&Value::Null, config, &["program", "args", "cwd", "env"])?;
        let path = PathBuf::from(members.needed_text("program")?);
        if !path.is_absolute() || !allowed.programs.contains(&path) {
            return Err(Fault::new(
                Code::Unauthorized,
                "`program` is none of those that `workflows.exec.programs` names",
            )
            .with("path", "program"));
        }
        let cwd = match members.text("cwd")? {
            Some(cwd) if !Path::new(cwd).is_absolute() => {
                return Err(Fault::invalid("`cwd` must be an absolute path").with("path", "cwd"));
            }
            cwd => cwd.map(PathBuf::from),
        };
        let mut env = allowed.base_env.clone();
        for (name, value) in members.entries("env")? {
            let sound = !name.is_empty() && !name.contains(['=', '\0']);
            let value = text(value, "env", sound)?;
            env.insert(name.to_owned(), value);
        }
        Ok(Self { path, args: args(members.get("args"))?, cwd, env })
    }
}

fn args(written: Option<&Value>) -> Result<Vec<String>, Fault> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let items = written.as_array().filter(|items| items.len() <= PROGRAM_ARGUMENTS);
    let items = items
        .ok_or_else(|| wrong("args", &format!("a list of at most {PROGRAM_ARGUMENTS} texts"), written))?;
    items.iter().map(|item| text(item, "args", true)).collect()
}

/// Numbers are welcome where texts are, since expressions keep the type of what they stand for.
fn text(value: &Value, path: &str, sound: bool) -> Result<String, Fault> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(wrong(path, "made of texts", value)),
    };
    if !sound || text.contains('\0') || text.len() > PROGRAM_ARGUMENT_BYTES {
        return Err(
            Fault::invalid(format!("`{path}` has a text that no program can be given")).with("path", path)
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(config: Value) -> Result<Program, Code> {
        let base_env = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
        let allowed = Exec { programs: vec!["/bin/cat".into()], base_env };
        Program::read(&config, &allowed).map_err(|fault| fault.code)
    }

    #[test]
    fn only_allowed_programs_and_sound_arguments() {
        let program =
            read(json!({"program": "/bin/cat", "args": ["-n", 5, true], "cwd": "/", "env": {"A": 1}}))
                .unwrap();
        assert_eq!(program.args, ["-n", "5", "true"]);
        assert_eq!((program.env["A"].as_str(), program.env["PATH"].as_str()), ("1", "/bin"));
        for path in ["/bin/sh", "cat", "../bin/cat", "/bin/../bin/cat", "/bin/cat "] {
            assert_eq!(read(json!({"program": path})).unwrap_err(), Code::Unauthorized, "{path}");
        }
        for wrong in [
            json!({}),
            json!({"program": ["/bin/cat"]}),
            json!({"program": "/bin/cat", "args": "-n"}),
            json!({"program": "/bin/cat", "args": [{}]}),
            json!({"program": "/bin/cat", "args": ["\u{0}"]}),
            json!({"program": "/bin/cat", "cwd": "."}),
            json!({"program": "/bin/cat", "env": {"A=B": ""}}),
            json!({"program": "/bin/cat", "shell": true}),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err(), Code::InvalidArgument, "{wrong}");
        }
    }
}
