//! `orchestr8 dlq list|show|redrive|drop`: messages that were given up, looked at, sent again or forgotten.

use clap::{Args, Subcommand};
use http::Method;
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::Shell;
use super::confirm::confirm;
use super::reaching::{Intent, Reaching};
use super::words::{cut, moment, text};
use crate::failure::Failure;
use crate::reach::{Reach, path};
use crate::terminal::columns;

const LETTERS: &str = "/admin/dead-letters";

/// Letters of the reason in a list.
const WHY_LETTERS: usize = 60;

#[derive(Subcommand)]
pub enum Dlq {
    /// List the dead letters, the oldest first.
    List(List),
    /// Print one with its envelope.
    Show(One),
    /// Send some on their way again, with all attempts before them.
    Redrive(Several),
    /// Forget some. They cannot be had back.
    Drop(Several),
}

#[derive(Args)]
pub struct List {
    /// Only those of this tenant.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct One {
    /// The number of the letter, as `dlq list` has it.
    number: u32,
    #[command(flatten)]
    reaching: Reaching,
}

#[derive(Args)]
pub struct Several {
    /// The numbers of the letters.
    #[arg(value_name = "NUMBER", required_unless_present = "all")]
    numbers: Vec<u32>,
    /// All that there are now.
    #[arg(long, conflicts_with = "numbers")]
    all: bool,
    /// With --all: only those of this tenant.
    #[arg(long, value_name = "TENANT", requires = "all")]
    tenant: Option<String>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Dlq {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Dlq::List(list) => list.run(shell),
            Dlq::Show(one) => one.run(shell),
            Dlq::Redrive(several) => several.run(shell, Method::POST, "/redrive", "sent on its way again"),
            Dlq::Drop(several) => several.run(shell, Method::DELETE, "", "forgotten for ever"),
        }
    }
}

impl List {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let letters = self
            .reaching
            .run(shell, Intent::Record, async |reach| all(reach, self.tenant.as_deref()).await)?;
        if shell.terminal.json {
            shell.terminal.value(&json!({"dead_letters": letters}));
            return Ok(());
        }
        if letters.is_empty() {
            shell.terminal.note("there are no dead letters");
            return Ok(());
        }
        let row = |letter: &Value| {
            [
                letter["seq"].to_string(),
                moment(&letter["dead_at"]),
                text(letter, "subject").to_owned(),
                letter["attempts"].to_string(),
                cut(text(letter, "why"), WHY_LETTERS),
            ]
        };
        let head = ["NUMBER", "GIVEN UP", "SUBJECT", "ATTEMPTS", "WHY"].map(String::from);
        let rows: Vec<_> = std::iter::once(head).chain(letters.iter().map(row)).collect();
        shell.terminal.data(&columns(&rows));
        Ok(())
    }
}

impl One {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let target = format!("{LETTERS}/{}", self.number);
        let letter = self.reaching.run(shell, Intent::Record, async |reach| reach.get(&target).await)?;
        shell.terminal.value(&letter["data"]);
        Ok(())
    }
}

impl Several {
    fn run(&self, shell: &Shell, method: Method, what: &str, done: &str) -> Result<(), Failure> {
        let forgets = method == Method::DELETE;
        let (moved, embedded) = self.reaching.run(shell, Intent::Record, async |reach| {
            let numbers = self.numbers(reach).await?;
            let count = numbers.len();
            if count > 0 && (forgets || self.all) {
                let which = match (self.all, count) {
                    (true, 1) => String::from("the one dead letter is"),
                    (true, count) => format!("all {count} dead letters are"),
                    (false, 1) => String::from("1 dead letter is"),
                    (false, count) => format!("{count} dead letters are"),
                };
                confirm(shell, self.yes, &format!("{which} {done}"))?;
            }
            let mut moved = Vec::new();
            for number in numbers {
                let target = format!("{LETTERS}/{number}{what}");
                let body = (!forgets).then(|| json!({}));
                let reply = reach.send(method.clone(), &target, &[], body.as_ref()).await?;
                reply.accepted().map_err(|failure| after(failure, &moved, number))?;
                moved.push(number);
            }
            Ok((moved, reach.is_embedded()))
        })?;
        let word = if forgets { "dropped" } else { "redriven" };
        match shell.terminal.json {
            true => shell.terminal.value(&json!({word: moved})),
            false => shell.terminal.data(&format!("{} {word}", moved.len())),
        }
        if embedded && !forgets && !moved.is_empty() {
            shell.terminal.note("no server runs here; they are delivered when orchestr8 serve does");
        }
        Ok(())
    }

    async fn numbers(&self, reach: &Reach) -> Result<Vec<u32>, Failure> {
        if !self.all {
            return Ok(self.numbers.clone());
        }
        let letters = all(reach, self.tenant.as_deref()).await?;
        Ok(letters.iter().filter_map(|letter| u32::try_from(letter["seq"].as_u64()?).ok()).collect())
    }
}

/// What was done before it went wrong is done; whoever repeats must know.
fn after(failure: Failure, moved: &[u32], number: u32) -> Failure {
    let before = moved.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let message = match (failure.code, moved.is_empty()) {
        (Code::NotFound, true) => format!("there is no dead letter {number}"),
        (_, true) => format!("dead letter {number}: {}", failure.message),
        (_, false) => format!("dead letter {number}: {}; done before it: {before}", failure.message),
    };
    let hint = failure.hint().to_owned();
    Failure::new(failure.code, message).hinting(match failure.code {
        Code::NotFound => String::from("`orchestr8 dlq list` lists all"),
        _ => hint,
    })
}

/// All of them, page by page.
async fn all(reach: &Reach, tenant: Option<&str>) -> Result<Vec<Value>, Failure> {
    let mut letters = Vec::new();
    let mut after = None;
    loop {
        let query = [("tenant_id", tenant.map(str::to_owned)), ("after", after)];
        let page = reach.get(&path(LETTERS, &query)).await?;
        letters.extend(page["data"]["dead_letters"].as_array().cloned().unwrap_or_default());
        match page["data"]["next"].as_i64() {
            Some(next) => after = Some(next.to_string()),
            None => return Ok(letters),
        }
    }
}
