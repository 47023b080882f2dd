//! Words of commands reach stdout and stderr through `terminal.rs` alone, which shows the hidden characters of untrusted text.
use super::File;

/// What writes there itself, with its reason.
const OWN_WAYS: [&str; 5] = [
    "crates/app/src/terminal.rs",
    // The log, whose lines `kernel` has cleaned.
    "crates/app/src/runtime/sink.rs",
    // Protocols: one JSON message a line.
    "crates/app/src/cli/mcp.rs",
    "crates/app/src/cli/sessions/mod.rs",
    // Exported entries, exact in a pipe and escaped at a terminal.
    "crates/app/src/cli/audit.rs",
];

pub fn check(file: &File) -> Vec<String> {
    if !file.path.starts_with("crates/app/src/") || OWN_WAYS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let program = file.text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let is_stream = |line: &str| {
        !line.trim_start().starts_with("//")
            && ["stdout()", "stderr()"].iter().any(|word| line.contains(word))
    };
    let found = program.enumerate().filter(|(_, line)| is_stream(line));
    found
        .map(|(line, _)| {
            file.complain(line + 1, "write through shell.terminal, which shows hidden characters")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_around_the_terminal_is_found() {
        let complaints = |path: &str, text: &str| check(&File { path: path.into(), text: text.into() }).len();
        let text = "// stdout() is fine here\nlet out = std::io::stdout();\nlet err = anstream::stderr().lock();\n#[cfg(test)]\nstdout()";
        assert_eq!(complaints("crates/app/src/cli/list.rs", text), 2);
        assert_eq!(complaints("crates/app/src/terminal.rs", text), 0);
        assert_eq!(complaints("crates/kernel/src/log/mod.rs", text), 0);
    }
}
