//! `orchestr8 knowledge edit`: a document in an editor, and back. What cannot be written is kept in a file.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_knowledge::folder;
use serde_json::Value;

use super::super::Shell;
use super::super::words::text;
use super::Asking;
use super::get::file;
use super::shelf::fresh_id;
use crate::failure::{Failure, exit};

#[derive(Args)]
pub struct Edit {
    /// The document: its id, or its path such as /Handbook/Setup.
    document: String,
    #[command(flatten)]
    asking: Asking,
}

impl Edit {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| shell.environment.get(name));
        let Some(editor) = editor.filter(|editor| !editor.trim().is_empty()) else {
            return Err(Failure::new(Code::Configuration, "no editor is named")
                .hinting("set VISUAL or EDITOR, or use `knowledge get -f -o FILE` and `knowledge put`"));
        };
        let got =
            self.own(shell, &["get", &self.document, "--json"])?.output().map_err(|cause| again(&cause))?;
        if !got.status.success() {
            shell.terminal.aside(&String::from_utf8_lossy(&got.stderr));
            return Ok(code(got.status));
        }
        let old: Value = serde_json::from_slice(&got.stdout)
            .map_err(|wrong| Failure::new(Code::Internal, format!("the document cannot be read: {wrong}")))?;
        let before = folder::write(&file(&old));
        let folder = shell.environment.get("TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or("/tmp");
        let path = PathBuf::from(folder).join(format!("orchestr8-{}.md", fresh_id()));
        super::super::sessions::write(&path, &before)?;
        let edited = open(editor, &path)?;
        if edited == before {
            let _ = std::fs::remove_file(&path);
            shell.terminal.note("nothing was changed");
            return Ok(exit::OK);
        }
        let ended = self.put(shell, &old, &path)?;
        match ended {
            exit::OK => drop(std::fs::remove_file(&path)),
            _ => shell.terminal.note(&format!("your text is in {}", path.display())),
        }
        Ok(ended)
    }

    fn put(&self, shell: &Shell, old: &Value, file: &Path) -> Result<u8, Failure> {
        let hint = || format!("your text is in {}; write it with orchestr8 knowledge put", file.display());
        let mut command = self.own(shell, &["put", text(old, "id")])?;
        command.arg(file).args(["--revision", &old["revision"].to_string()]);
        if shell.terminal.json {
            command.arg("--json");
        }
        let status = command.status().map_err(|cause| again(&cause).hinting(hint()))?;
        Ok(code(status))
    }

    /// Another command of knowledge, in a process of its own: nobody has the store while somebody thinks.
    fn own(&self, shell: &Shell, args: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(std::env::current_exe().map_err(|cause| again(&cause))?);
        command.arg("knowledge").args(args).args(self.asking.words());
        if shell.terminal.quiet {
            command.arg("--quiet");
        }
        if let Some(config) = &shell.config {
            command.arg("--config").arg(config);
        }
        Ok(command)
    }
}

fn again(cause: &std::io::Error) -> Failure {
    Failure::new(Code::Unavailable, format!("this program cannot be started again: {cause}"))
}

fn code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED)
}

/// Waits for the editor, which may be a command with options, and reads what it left.
fn open(editor: &str, path: &Path) -> Result<String, Failure> {
    let wrong = |what: String| {
        Failure::new(Code::Unavailable, what).hinting(format!("the text is in {}", path.display()))
    };
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(editor);
    let ended = Command::new(program).args(words).arg(path).status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(wrong(format!("{program} ended with {status}; nothing was changed"))),
        Err(cause) => return Err(wrong(format!("{program} cannot be started: {cause}"))),
    }
    std::fs::read_to_string(path).map_err(|cause| wrong(format!("{}: {cause}", path.display())))
}
