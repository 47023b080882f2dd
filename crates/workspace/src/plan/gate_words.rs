//! How single commands end, by their name and arguments.

use super::gate_proof::{Outcome, script_outcome};

/// Commands that succeed, or whose failure says nothing about the workspace.
const IDLE: [&str; 41] = [
    ":", "true", "basename", "break", "cd", "clear", "continue", "date", "declare", "dirname", "echo",
    "export", "fg", "getconf", "hash", "hostname", "jobs", "let", "local", "ls", "mkdir", "nproc",
    "printenv", "printf", "pwd", "readonly", "seq", "set", "shift", "sleep", "sync", "touch", "tty", "type",
    "umask", "uname", "unset", "wait", "which", "whoami", "yes",
];

/// Commands that start the command in their arguments.
const WRAPPERS: [&str; 13] = [
    "builtin", "command", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "time", "timeout",
    "unbuffer", "xargs",
];

/// Commands that pass on what they read, and succeed.
const FILTERS: [&str; 14] =
    ["awk", "cat", "cut", "fold", "head", "less", "more", "nl", "sed", "sort", "tail", "tee", "tr", "uniq"];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Interpreters, whose programs stand after one of these.
const INTERPRETERS: [&str; 9] =
    ["python", "python2", "python3", "node", "deno", "perl", "ruby", "php", "lua"];
const PROGRAM_FLAGS: [&str; 6] = ["-c", "-e", "-E", "-r", "-p", "--eval"];

/// Words without which a program in an argument looks at nothing.
const WORK: [&str; 12] = [
    "import", "open", "assert", "exit", "raise", "throw", "require", "die", "read", "exec", "load", "system",
];

/// Arguments with which programs say something about themselves.
const ABOUT: [&str; 6] = ["--version", "-V", "-version", "version", "--help", "help"];

/// Subcommands of Git that show something and succeed.
const GIT_IDLE: [&str; 8] = ["status", "log", "branch", "tag", "config", "remote", "help", "version"];

/// How a command ends. None: it cannot be told. The end of a pipe reads what comes through it.
pub fn words_outcome(name: &str, arguments: &[String], nested: usize, is_piped: bool) -> Option<Outcome> {
    let has = |words: &[&str]| arguments.iter().any(|word| words.contains(&word.as_str()));
    let is_about = !arguments.is_empty() && arguments.iter().all(|word| ABOUT.contains(&word.as_str()));
    Some(match name {
        "" => Outcome::Succeeds,
        // `! ! a` is no command of every shell.
        "!" => return None,
        _ if IDLE.contains(&name) => Outcome::Succeeds,
        "false" => Outcome::Fails,
        "exit" | "return" => exit_outcome(arguments),
        "test" | "[" => test_outcome(arguments),
        "expr" if !depends(arguments) => Outcome::Fixed,
        "eval" => return script_outcome(&arguments.join(" "), nested + 1),
        _ if WRAPPERS.contains(&name) => return wrapped_outcome(name, arguments, nested, is_piped),
        _ if SHELLS.contains(&name) => return shell_outcome(arguments, nested),
        _ if is_about => Outcome::Succeeds,
        _ if INTERPRETERS.contains(&name) => interpreter_outcome(arguments),
        _ if FILTERS.contains(&name) => {
            let operands = arguments.iter().filter(|word| !word.starts_with('-')).count();
            let needed = if matches!(name, "awk" | "sed") { 2 } else { 1 };
            if is_piped || operands < needed || name == "tee" { Outcome::Succeeds } else { Outcome::Depends }
        }
        "git" => git_outcome(arguments),
        "make" | "gmake" if has(&["-n", "--dry-run", "--just-print", "--recon", "-i", "--ignore-errors"]) => {
            Outcome::Succeeds
        }
        _ => Outcome::Depends,
    })
}

fn depends(arguments: &[String]) -> bool {
    arguments.iter().any(|word| word.contains(['$', '`']))
}

fn exit_outcome(arguments: &[String]) -> Outcome {
    match arguments.first().map(String::as_str) {
        None | Some("0") => Outcome::Succeeds,
        Some(number) if number.parse::<i64>().is_ok_and(|number| number & 0xff != 0) => Outcome::Fails,
        Some(number) if number.parse::<i64>().is_ok() => Outcome::Succeeds,
        Some(_) => Outcome::Depends,
    }
}

/// `test`: only expansions and files of the workspace can differ.
fn test_outcome(arguments: &[String]) -> Outcome {
    if depends(arguments) {
        return Outcome::Depends;
    }
    let is_file_flag = |word: &String| {
        word.len() == 2 && word.starts_with('-') && word.ends_with(|c: char| "bcdefghLprsSuwxOGN".contains(c))
    };
    let compares_files = |word: &String| matches!(word.as_str(), "-nt" | "-ot" | "-ef");
    // What is there always or never, and what is not in the workspace, proves nothing about it.
    let is_of_workspace = |word: &String| {
        let path = word.trim_matches('/');
        !word.starts_with('/')
            && !matches!(path, "" | "." | ".." | "./.")
            && !word.starts_with("../")
            && !path.ends_with("/.")
    };
    let looks_at_file = arguments.windows(2).any(|pair| is_file_flag(&pair[0]) && is_of_workspace(&pair[1]));
    if looks_at_file || arguments.iter().any(compares_files) { Outcome::Depends } else { Outcome::Fixed }
}

/// The command that a wrapper starts: after its options, assignments, and a number or a duration.
fn wrapped_outcome(name: &str, arguments: &[String], nested: usize, is_piped: bool) -> Option<Outcome> {
    if name == "command" && arguments.first().is_some_and(|word| matches!(word.as_str(), "-v" | "-V")) {
        return Some(Outcome::Succeeds);
    }
    let is_own = |word: &String| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        word.starts_with('-') || (word.contains('=') && !word.starts_with('=')) || is_number
    };
    let start = arguments.iter().position(|word| !is_own(word));
    let Some(start) = start else { return Some(Outcome::Succeeds) };
    let inner = arguments[start].rsplit('/').next().unwrap_or_default();
    if inner.contains('$') {
        return None;
    }
    words_outcome(inner, &arguments[start + 1..], nested, is_piped)
}

/// `sh -c 'text'`; a script of the workspace may do anything.
fn shell_outcome(arguments: &[String], nested: usize) -> Option<Outcome> {
    let is_text_flag = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    if arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('n')) {
        // Only the syntax is checked, which can be wrong.
        return Some(Outcome::Depends);
    }
    match arguments.iter().position(is_text_flag) {
        Some(at) => {
            let text = arguments.get(at + 1)?;
            let strict =
                arguments.iter().take(at + 1).any(|word| word.starts_with('-') && word.contains('e'));
            let text = if strict { format!("set -e\n{text}") } else { text.clone() };
            script_outcome(&text, nested + 1)
        }
        None if arguments.iter().any(|word| !word.starts_with('-')) => Some(Outcome::Depends),
        None => Some(Outcome::Succeeds),
    }
}

fn interpreter_outcome(arguments: &[String]) -> Outcome {
    let flag = arguments.iter().position(|word| PROGRAM_FLAGS.contains(&word.as_str()));
    match flag.and_then(|at| arguments.get(at + 1)) {
        Some(program) if WORK.iter().any(|word| program.contains(word)) || program.contains('$') => {
            Outcome::Depends
        }
        Some(_) => Outcome::Succeeds,
        None if arguments.is_empty() => Outcome::Succeeds,
        None => Outcome::Depends,
    }
}

fn git_outcome(arguments: &[String]) -> Outcome {
    let Some(command) = arguments.iter().find(|word| !word.starts_with('-')) else {
        return Outcome::Succeeds;
    };
    let tells = ["--check", "--exit-code", "--quiet"];
    match command.as_str() {
        command if GIT_IDLE.contains(&command) => Outcome::Succeeds,
        "diff" | "show" if !arguments.iter().any(|word| tells.contains(&word.as_str())) => Outcome::Succeeds,
        _ => Outcome::Depends,
    }
}
