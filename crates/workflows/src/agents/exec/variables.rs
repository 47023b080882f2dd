//! Variables that a step may set for a program, if its template names them.

use orchestr8_contract::Fault;
use serde_json::Value;

use super::template::plain;

/// Beginnings of names that make linkers, shells and interpreters run or load something.
const NEVER_BEGINNING: [&str; 22] = [
    "_JAVA_",
    "BASH",
    "CARGO_",
    "DYLD_",
    "GCONV_",
    "GIT_",
    "GLIBC_",
    "JAVA_",
    "JDK_",
    "LD_",
    "LESS",
    "LUA_",
    "MALLOC_",
    "NODE_",
    "NPM_",
    "ORCHESTR8_",
    "PERL",
    "PHP",
    "PIP_",
    "PYTHON",
    "RUBY",
    "SSH_",
];

/// Names that say where programs are found, or what is run on the side.
const NEVER: [&str; 24] = [
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "COMSPEC",
    "EDITOR",
    "ENV",
    "FPATH",
    "GEM_HOME",
    "GLOBIGNORE",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LOCPATH",
    "MANPATH",
    "NLSPATH",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "TERMINFO",
    "TMPDIR",
    "VISUAL",
];

/// Whether steps may be allowed to set it. The text says why not.
pub fn check(name: &str) -> Result<(), &'static str> {
    let mut letters = name.chars();
    let is_sound = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if !is_sound {
        return Err("is not a name of letters, digits and _");
    }
    let upper = name.to_ascii_uppercase();
    match NEVER.contains(&upper.as_str()) || NEVER_BEGINNING.iter().any(|start| upper.starts_with(start)) {
        true => {
            Err("can make a program run something else, so no step may set it; put it in env of the template")
        }
        false => Ok(()),
    }
}

/// The text of a value.
pub fn value(name: &str, value: &Value) -> Result<String, Fault> {
    plain(&format!("env.{name}"), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_loads_something_is_never_allowed() {
        for name in ["MODE", "WIDTH", "_x", "TZ", "LANG"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "A=B",
            "A B",
            "1A",
            "BASH_ENV",
            "BASH_FUNC_date%%",
            "BASHOPTS",
            "ENV",
            "IFS",
            "LD_PRELOAD",
            "ld_preload",
            "PATH",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "GIT_SSH_COMMAND",
            "GIT_TRACE",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "HOME",
            "ORCHESTR8_TOKEN",
            "LESSOPEN",
            "JAVA_TOOL_OPTIONS",
            "SHELLOPTS",
        ] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
