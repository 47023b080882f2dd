//! `orchestr8 sessions export`: a session as a page for people or as a file for programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::super::Shell;
use super::super::private_file;
use super::super::reaching::Reaching;
use super::super::words::text;
use super::with_talk;
use crate::failure::Failure;
use crate::talk::{Talk, about};

#[derive(Args)]
pub struct Export {
    /// The session.
    session: String,
    /// As a page to be read in a browser [default for FILE.html].
    #[arg(long)]
    html: bool,
    /// As a session file, one JSON object a line; it can be loaded again [default].
    #[arg(long, conflicts_with = "html")]
    jsonl: bool,
    /// Write it here instead of to stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    reaching: Reaching,
}

/// What a session is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Html,
    Jsonl,
}

impl Format {
    /// What the name of a file asks for.
    pub fn of(file: &Path) -> Self {
        match file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")) {
            true => Format::Html,
            false => Format::Jsonl,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Format::Html => "export_html",
            Format::Jsonl => "export_session",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Jsonl => "jsonl",
        }
    }
}

impl Export {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let format = match (self.html, self.jsonl, &self.output) {
            (true, _, _) => Format::Html,
            (false, false, Some(file)) => Format::of(file),
            (false, true, _) | (false, false, None) => Format::Jsonl,
        };
        let exported =
            with_talk(&self.reaching, shell, async |talk| export(talk, &self.session, format).await)?;
        match &self.output {
            Some(file) => {
                write(file, &exported)?;
                let (path, bytes) = (file.display(), exported.len());
                match shell.terminal.json {
                    true => shell.terminal.value(&json!({"sessionId": self.session, "format": format.word(),
                        "path": path.to_string(), "bytes": bytes})),
                    false => shell.terminal.note(&format!("session {} is in {path}", self.session)),
                }
            }
            None if shell.terminal.json => shell
                .terminal
                .value(&json!({"sessionId": self.session, "format": format.word(), "content": exported})),
            None => shell.terminal.content(&exported),
        }
        Ok(())
    }
}

/// The session as a text.
pub async fn export(talk: &mut Talk<'_>, session: &str, format: Format) -> Result<String, Failure> {
    let mut command = about(format.command(), session);
    command["inline"] = Value::Bool(true);
    let answer = talk.ask(command).await?;
    Ok(text(&answer, "content").to_owned())
}

/// Whole or not at all: an export that breaks off leaves what was there.
pub fn write(file: &Path, content: &str) -> Result<(), Failure> {
    let wrong = |cause: std::io::Error| {
        Failure::new(Code::InvalidArgument, format!("{}: {cause}", file.display()))
            .hinting("name a file in a folder that can be written")
    };
    let name = file.file_name().ok_or_else(|| wrong(std::io::ErrorKind::IsADirectory.into()))?;
    let mut scratch_name = std::ffi::OsString::from(".");
    scratch_name.push(name);
    scratch_name.push(format!(".{}.tmp", std::process::id()));
    let scratch = file.with_file_name(scratch_name);
    let written = private_file::create_new(&scratch)
        .and_then(|mut made| made.write_all(content.as_bytes()))
        .and_then(|()| std::fs::rename(&scratch, file));
    written.map_err(|cause| {
        // What is left of it helps nobody; that it cannot be removed either is no news.
        let _ = std::fs::remove_file(&scratch);
        wrong(cause)
    })
}
