//! `orchestr8 prove`: exports the proof that an execution or an entry of the audit trail is in the signed log, or that a log has
//! grown from what it was.

use std::path::PathBuf;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_contract::canonical::hex;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::store;
use orchestr8_stores::merkle::{AUDIT_LOG, LogSource};
use orchestr8_stores::sqlite::Look;
use orchestr8_workflows::merkle::tables as journals;
use serde_json::{Value, json};

use super::Shell;
use super::private_file;
use super::signed_logs::{SignedLogs, entry_json};
use crate::failure::Failure;
use crate::tables::JOURNAL_LOG;

#[derive(Args)]
pub struct Prove {
    /// The id of an execution, or the number of an entry of the audit trail.
    #[arg(value_name = "EXECUTION|ENTRY", required_unless_present = "since")]
    what: Option<String>,
    /// Instead: prove that a log has grown from this size, that of a head that was kept elsewhere.
    #[arg(long, value_name = "SIZE", conflicts_with = "what")]
    since: Option<u64>,
    /// The log that has grown.
    #[arg(long, requires = "since", default_value = AUDIT_LOG.name, value_parser = [AUDIT_LOG.name, JOURNAL_LOG.name])]
    log: String,
    /// Write the proof to this file, which must not exist, instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The folder of the data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Prove {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        // The heads first: whatever they cover is in the data file by then.
        let signed = SignedLogs::local(shell, self.data_dir.clone())?;
        let (path, look) = super::look(shell, self.data_dir.clone())?;
        if let Some(from) = self.since {
            let source = if self.log == JOURNAL_LOG.name { JOURNAL_LOG } else { AUDIT_LOG };
            return write(shell, self.out.as_deref(), &growth(&signed, &look, &source, from)?);
        }
        let what = self.what.as_deref().unwrap_or_default();
        let missing = || {
            Failure::new(Code::NotFound, format!("{what} is not in {}", path.display()))
                .hinting("see `orchestr8 list` for executions and `orchestr8 audit tail` for entries")
        };
        let (source, numbers): (LogSource, Vec<u64>) = match what.parse::<u64>() {
            Ok(number) => {
                let newest = look.newest(CHAIN).map_err(failed)?.unsigned_abs();
                (AUDIT_LOG, Some(number).filter(|number| (1..=newest).contains(number)).into_iter().collect())
            }
            Err(_) => {
                let rows = look.query(&journals::numbers_of(what)).map_err(failed)?;
                let numbers: Result<_, store::Error> =
                    rows.iter().map(|row| Ok(row.int(0)?.unsigned_abs())).collect();
                (JOURNAL_LOG, numbers.map_err(failed)?)
            }
        };
        let last = *numbers.last().ok_or_else(missing)?;
        let mut proof = proof(&signed, &look, &source, &numbers, last, &missing)?;
        proof["target"] = what.into();
        if source.name == JOURNAL_LOG.name {
            let rows = look.query(&journals::execution_row(what)).map_err(failed)?;
            let text = |column| rows.first().and_then(|row| row.text(column).ok());
            proof["execution"] = json!({
                "id": text(0), "tenant": text(1), "workflow": text(2), "status": text(3), "given": text(4),
            });
        }
        if source.name == JOURNAL_LOG.name {
            shell.terminal.note(CONTENT);
        }
        write(shell, self.out.as_deref(), &proof)
    }
}

/// A leaf is the row itself, so its proof has all of it.
const CONTENT: &str = "the proof holds what steps gave and were given, also what the journal hides: give it only to people who may see that";

fn proof(
    signed: &SignedLogs,
    look: &Look,
    source: &LogSource,
    numbers: &[u64],
    last: u64,
    missing: &dyn Fn() -> Failure,
) -> Result<Value, Failure> {
    let unsigned = || {
        Failure::new(
            Code::Unavailable,
            format!("no signed head covers entry {last} of the log `{}` yet", source.name),
        )
        .hinting("a running server signs a head every few seconds (audit.headSeconds); try again")
    };
    let head = signed.covering(source.name, last).ok_or_else(unsigned)?;
    let note = signed.note_of(head).ok_or_else(unsigned)?;
    let (root, entries) = look.prove(source, numbers, head.size).map_err(failed)?.ok_or_else(missing)?;
    if root != head.root {
        let what = format!(
            "the log `{}` does not agree with its signed head, so nothing can be proven",
            source.name
        );
        return Err(Failure::new(Code::StoreCorrupt, what).hinting("see `orchestr8 audit verify`"));
    }
    let mut proven = Vec::with_capacity(entries.len());
    for entry in entries {
        let mut value = entry_json(entry.number, &entry.values, source.chain, look).map_err(failed)?;
        value["leaf"] = hex(&entry.leaf).into();
        value["path"] = entry.path.iter().map(|hash| hex(hash)).collect::<Vec<_>>().into();
        proven.push(value);
    }
    Ok(json!({
        "format": "orchestr8-proof/1", "log": source.name, "head": note, "entries": proven,
        "key": signed.key().map(ToString::to_string),
    }))
}

/// The proof that a log has grown from a size to that of its newest signed head (RFC 9162, 2.1.4).
fn growth(signed: &SignedLogs, look: &Look, source: &LogSource, from: u64) -> Result<Value, Failure> {
    let log = source.name;
    let uncovered = || {
        Failure::new(Code::NotFound, format!("no signed head of the log `{log}` has the size {from} or more"))
            .hinting("SIZE is the second line of a head")
    };
    let head = signed.covering(log, from).ok_or_else(uncovered)?;
    let note = signed.note_of(head).ok_or_else(uncovered)?;
    let proof = look.prove_growth(source, (from, head.size)).map_err(failed)?;
    let hashes = proof.ok_or_else(|| {
        Failure::new(
            Code::NotFound,
            format!("the log `{log}` no longer has what proves its growth from {from}"),
        )
        .hinting("entries were deleted for their age; compare with a newer head")
    })?;
    Ok(json!({
        "format": "orchestr8-consistency/1", "log": log, "from": from, "head": note,
        "hashes": hashes.iter().map(|hash| hex(hash)).collect::<Vec<_>>(),
        "key": signed.key().map(ToString::to_string),
    }))
}

fn write(shell: &Shell, out: Option<&std::path::Path>, proof: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(proof).unwrap_or_default();
    let Some(path) = out else {
        shell.terminal.data(&text);
        return Ok(());
    };
    let written = private_file::create_new(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, format!("{text}\n").as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Code::FileAlreadyExists, format!("{} is there already", path.display()))
        }
        _ => Failure::new(Code::StoreFailed, format!("{}: {error}", path.display()))
            .hinting("check space and permissions"),
    })
}

fn failed(error: store::Error) -> Failure {
    Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`")
}
