//! `orchestr8 errors [CODE]`: what an error code means and what to do about it. Also writes docs/errors.md.

use clap::Args;
use orchestr8_contract::error::{Kind, Retry};
use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use super::Shell;
use crate::config::suggestion;
use crate::failure::Failure;
use crate::terminal::columns;

#[derive(Args)]
pub struct Errors {
    /// Explain this one only.
    code: Option<String>,
    /// As the page docs/errors.md.
    #[arg(long, conflicts_with_all = ["code"])]
    markdown: bool,
}

impl Errors {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        if self.markdown {
            shell.terminal.data(&markdown());
            return Ok(());
        }
        let codes: Vec<Code> = match &self.code {
            Some(name) => vec![find(name)?],
            None => Code::ALL.to_vec(),
        };
        if shell.terminal.json {
            shell.terminal.value(&codes.iter().map(|code| explain(*code)).collect());
        } else if self.code.is_some() {
            for code in codes {
                let lines = [code.to_string(), code.advice().to_owned(), again(code).to_owned()];
                shell.terminal.data(&lines.join("\n"));
            }
        } else {
            let rows: Vec<[String; 2]> =
                codes.iter().map(|code| [code.to_string(), code.advice().to_owned()]).collect();
            shell.terminal.data(&columns(&rows));
        }
        Ok(())
    }
}

fn find(name: &str) -> Result<Code, Failure> {
    let wanted = name.to_uppercase();
    if let Some(code) = Code::ALL.iter().find(|code| code.as_str() == wanted) {
        return Ok(*code);
    }
    let failure = Failure::from(Fault::new(Code::NotFound, format!("there is no error code {name}")));
    Err(match suggestion(&wanted, Code::ALL.iter().map(|code| code.as_str())) {
        Some(near) => failure.hinting(format!("did you mean {near}? `orchestr8 errors` lists all")),
        None => failure.hinting("`orchestr8 errors` lists all"),
    })
}

fn explain(code: Code) -> Value {
    json!({"code": code, "kind": kind(code.kind()), "category": code.category(), "retryable": code.retry() == Retry::Later, "advice": code.advice()})
}

fn again(code: Code) -> &'static str {
    match code.retry() {
        Retry::Later => "Sending the same again is safe and may help.",
        Retry::Never => "Sending the same again does not help.",
    }
}

/// What sort of failure it is, in a few words.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "the request is wrong",
        Kind::NotFound => "no such thing",
        Kind::Unauthenticated => "unauthenticated",
        Kind::Forbidden => "not allowed",
        Kind::Conflict => "conflict",
        Kind::Exhausted => "a limit is reached",
        Kind::Timeout => "the deadline passed",
        Kind::Cancelled => "stopped on request",
        Kind::Unavailable => "something is not there now",
        Kind::Dependency => "what it depends on failed",
        Kind::State => "wrong state",
        Kind::Unknown => "outcome unknown",
        Kind::Internal => "our fault",
    }
}

/// The page docs/errors.md; a test keeps it equal to this.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Error codes\n\n\
         Every error has a code that never changes its meaning. `orchestr8 errors CODE` prints its entry.\n\
         This page is written by `orchestr8 errors --markdown`; a test compares the two.\n",
    );
    for code in Code::ALL {
        let (kind, exit) = (kind(code.kind()), Failure::new(*code, "").exit_code());
        page.push_str(&format!(
            "\n## {code}\n\n{}\n\nKind: {kind}. Category: {}. {} Exit code of the command line: {exit}.\n",
            code.advice(),
            code.category().as_str(),
            again(*code)
        ));
    }
    page
}
