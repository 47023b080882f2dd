//! `orchestr8 knowledge get`: a document on stdout, or as a file that can be put again.

use std::path::PathBuf;

use clap::Args;
use orchestr8_knowledge::folder::{self, File};
use orchestr8_knowledge::record::Mime;
use serde_json::Value;

use super::super::Shell;
use super::super::sessions::write;
use super::super::words::text;
use super::Asking;
use crate::failure::Failure;

#[derive(Args)]
pub struct Get {
    /// The document: its id, or its path such as /Handbook/Setup.
    document: String,
    /// As it was at this revision.
    #[arg(long, short, value_name = "NUMBER")]
    revision: Option<u64>,
    /// With its id and metadata as front matter, as `put` takes it.
    #[arg(long, short)]
    front_matter: bool,
    /// Write it here instead of to stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

impl Get {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let document = self.asking.run(shell, async |shelf| {
            let id = shelf.id(&self.document).await?;
            shelf.document(&id, self.revision).await
        })?;
        let shown = match (shell.terminal.json, self.front_matter) {
            (true, _) => format!("{document:#}\n"),
            (false, true) => folder::write(&file(&document)),
            (false, false) => body(&document).to_owned(),
        };
        match &self.output {
            None if shell.terminal.json => shell.terminal.json_text(&shown),
            None => shell.terminal.content(&shown),
            Some(file) => {
                write(file, &shown)?;
                shell.terminal.note(&format!("revision {} is in {}", document["revision"], file.display()));
            }
        }
        Ok(())
    }
}

pub fn body(document: &Value) -> &str {
    text(&document["content"], "body")
}

/// The file that stands for a document.
pub fn file(document: &Value) -> File {
    File {
        path: String::new(),
        id: Some(text(document, "id").to_owned()),
        metadata: document["metadata"].as_object().cloned().unwrap_or_default(),
        titled: true,
        human: document["is_human_readable"] != false,
        mime: Mime::parse(text(&document["content"], "mime_type")).unwrap_or(Mime::Plain),
        order: None,
        body: body(document).to_owned(),
    }
}
