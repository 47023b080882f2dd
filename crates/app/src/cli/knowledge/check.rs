//! `orchestr8 knowledge verify` and `reindex`: the index of the search against the documents, and anew from them.

use clap::Args;
use serde_json::{Value, json};

use super::super::Shell;
use super::Asking;
use super::tree::counted;
use crate::failure::{Failure, exit};
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Verify {
    /// Write anew what is wrong.
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Args)]
pub struct Reindex {
    #[command(flatten)]
    asking: Asking,
}

impl Verify {
    /// 1 where something is wrong and was left so.
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let args = json!({"repair": self.repair});
        let report = self.asking.run(shell, async |shelf| shelf.post("/documents/verify", &args).await)?;
        let (wrong, mended) = (number(&report, "wrong"), number(&report, "mended"));
        if shell.terminal.json {
            shell.terminal.value(&report);
        } else {
            for example in report["examples"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                shell.terminal.data(&visible_line(example));
            }
            let documents = counted(usize::try_from(number(&report, "documents")).unwrap_or(usize::MAX));
            match wrong {
                0 => shell.terminal.note(&format!("{documents}; the index holds what it should")),
                wrong => shell.terminal.note(&format!("{documents}; {wrong} wrong, {mended} mended")),
            }
        }
        Ok(if wrong > mended { exit::FAILED } else { exit::OK })
    }
}

impl Reindex {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let report =
            self.asking.run(shell, async |shelf| shelf.post("/documents/reindex", &json!({})).await)?;
        match shell.terminal.json {
            true => shell.terminal.value(&report),
            false => {
                shell.terminal.note(&format!("{} documents were indexed anew", number(&report, "documents")))
            }
        }
        Ok(())
    }
}

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or(0)
}
