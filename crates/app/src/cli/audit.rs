//! `orchestr8 audit list|tail|verify|export|key|accept`: the audit trail of this server, or of a governed workspace.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use orchestr8_contract::Code;
use orchestr8_contract::chain::Verified;
use orchestr8_contract::visible::visible_json;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::ports::store;
use orchestr8_stores::chain;
use orchestr8_stores::sqlite::Look;
use orchestr8_workspace::root::Root;
use orchestr8_workspace::trail::{self, Lines};
use serde_json::{Value, json};

use super::Shell;
use super::private_file;
use super::signed_logs::{self, SignedLogs, Trusted};
use super::workspace_trails;
use crate::config::Flags;
use crate::failure::Failure;
use crate::settings::{Mode, Settings};
use crate::terminal::styled_line;

#[derive(Subcommand)]
pub enum Audit {
    /// Check every entry against the one before it, and all of them and the journals of executions against the signed heads.
    Verify {
        #[command(flatten)]
        of: Of,
        /// A file that `audit export` wrote, instead.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["data_dir", "workspace"])]
        file: Option<PathBuf>,
        /// A head noted earlier: it must still be in the trail.
        #[arg(long, value_name = "HASH")]
        head: Option<String>,
        /// Also compare with what this witness remembers [default: audit.witnesses].
        #[arg(long, value_name = "URL", conflicts_with_all = ["file", "workspace"])]
        witness: Option<String>,
        #[command(flatten)]
        trusted: Trusted,
    },
    /// List entries: who did what to which object, from where, and how it ended.
    List(super::audit_list::List),
    /// Print the newest entries of the data file.
    Tail {
        #[command(flatten)]
        of: Of,
        /// How many.
        #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
        lines: usize,
    },
    /// Print all entries, one JSON object a line, as they can be verified anywhere.
    Export {
        #[command(flatten)]
        of: Of,
        /// Write to this file, which must not exist.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Also the journals of executions, in the form that conformance/verifier/verify.py checks against signed heads.
        #[arg(long, conflicts_with = "workspace")]
        all: bool,
    },
    /// Print the public key that verifies the signed heads, and where they are.
    Key {
        /// The folder of the data whose heads are meant.
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// Go on with data that does not agree with the signed heads: after a restore, or a change of the key.
    Accept(super::signed_logs::Accept),
}

/// Which trail.
#[derive(Args)]
pub struct Of {
    /// The folder of the data to look at.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The folder of a governed workspace, whose own trail is looked at instead.
    #[arg(long, value_name = "DIR", conflicts_with = "data_dir")]
    workspace: Option<PathBuf>,
}

/// Entries taken out of the store at once.
const SLICE: i64 = 1000;

impl Audit {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Audit::Verify { of, file, head, witness, trusted } => {
                let wanted = Wanted { head: head.as_deref(), witness: witness.as_deref(), trusted };
                verify(shell, of, file.as_deref(), &wanted)
            }
            Audit::List(list) => list.run(shell),
            Audit::Tail { of, lines } => tail(shell, of, *lines),
            Audit::Export { of, output, all } => export(shell, of, output.as_deref(), *all),
            Audit::Key { data_dir } => signed_logs::show_key(shell, data_dir.clone()),
            Audit::Accept(accept) => accept.run(shell),
        }
    }
}

/// An opened trail.
enum Trail {
    Store { path: PathBuf, look: Look },
    Workspace(Root),
}

impl Of {
    fn settings(&self, shell: &Shell) -> Result<Settings, Failure> {
        shell.settings(Flags::new(), Mode { data_dir: self.data_dir.clone(), ..Mode::default() })
    }

    fn open(&self, shell: &Shell) -> Result<Trail, Failure> {
        match &self.workspace {
            None => {
                let (path, look) = super::look(shell, self.data_dir.clone())?;
                Ok(Trail::Store { path, look })
            }
            Some(folder) => {
                let missing = |what: String| {
                    Failure::new(Code::NotFound, what).hinting("name the folder with audit-log.jsonl in it")
                };
                let path = std::fs::canonicalize(folder)
                    .map_err(|error| missing(format!("{}: {error}", folder.display())))?;
                if !path.join(trail::NAME).exists() {
                    return Err(missing(format!("{} has no {}", path.display(), trail::NAME)));
                }
                let root = Root::open(&path.to_string_lossy())
                    .map_err(|refusal| Failure::new(refusal.code, refusal.message))?;
                Ok(Trail::Workspace(root))
            }
        }
    }
}

fn verify(shell: &Shell, of: &Of, file: Option<&Path>, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let (mut signed, head) = (None, wanted.head);
    let (verified, has_head) = match file {
        Some(file) => prove(file, Lines::of_file(file), head)?,
        None => match of.open(shell)? {
            Trail::Workspace(root) => {
                workspace_trails::check_end(shell, of.data_dir.clone(), &root)?;
                prove(root.path(), Lines::of(&root), head)?
            }
            Trail::Store { path, look } => {
                let verified = look.verify_chain(CHAIN).map_err(|error| broken_store(&path, error))?;
                let settings = of.settings(shell)?;
                let heads = SignedLogs::with(&settings.audit, wanted.trusted)?;
                let heads = heads.with_witnesses(&settings.audit, wanted.witness)?;
                heads.silent_witnesses().iter().for_each(|silent| shell.terminal.note(silent));
                signed = Some(heads.check(&path, &look)?);
                let found =
                    head.map(|head| look.entry_of(CHAIN, head)).transpose().map_err(failed)?.flatten();
                (verified, found.is_some())
            }
        },
    };
    if let (Some(head), false) = (head, has_head) {
        let hint = match verified.pruned {
            0 => "entries were cut off since it was noted, or it is of another trail",
            _ => {
                "its entry is so old that it was deleted, entries were cut off since, or it is of another trail"
            }
        };
        return Err(Failure::new(Code::StoreCorrupt, format!("no entry has the hash {head}")).hinting(hint));
    }
    if shell.terminal.json {
        let Verified { entries, pruned, head } = verified;
        let signed = signed.map(|signed| signed.to_json());
        shell.terminal.value(
            &json!({"ok": true, "entries": entries, "pruned": pruned, "head": head, "signed": signed}),
        );
    } else {
        shell.terminal.data(&format!(
            "ok: {} entries{}, head {}",
            verified.entries,
            since(&verified),
            verified.head
        ));
        if let Some(signed) = signed {
            shell.terminal.data(&signed.to_string());
        }
    }
    Ok(())
}

/// What a trail is compared with.
struct Wanted<'a> {
    head: Option<&'a str>,
    witness: Option<&'a str>,
    trusted: &'a Trusted,
}

/// From where the trail was proven, if not from its very beginning.
fn since(verified: &Verified) -> String {
    match verified.pruned {
        0 => String::new(),
        pruned => format!(" from number {} on ({pruned} older ones were deleted)", pruned + 1),
    }
}

/// Proves lines whole, and says whether one of them has the hash.
fn prove(
    path: &Path,
    lines: Result<Lines, trail::Error>,
    head: Option<&str>,
) -> Result<(Verified, bool), Failure> {
    let mut has_head = false;
    let mut lines = lines.map_err(|error| broken(path, &error))?;
    let proof = trail::prove(&mut lines, |entry| {
        has_head |= head.is_some_and(|head| entry.entry_hash == head.as_bytes())
    });
    Ok((proof.map_err(|error| broken(path, &error))?, has_head))
}

fn tail(shell: &Shell, of: &Of, count: usize) -> Result<(), Failure> {
    let lines = match of.open(shell)? {
        Trail::Workspace(root) => trail::tail(&root, count).map_err(|error| broken(root.path(), &error))?,
        Trail::Store { look, .. } => {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let after = look.newest(CHAIN).map_err(failed)?.saturating_sub(count);
            let lines = look.lines(CHAIN, after, count).map_err(failed)?;
            lines.into_iter().map(|(_, line)| String::from_utf8_lossy(&line).into_owned()).collect()
        }
    };
    for line in lines {
        match shell.terminal.json {
            true => shell.terminal.json_text(&line),
            false => shell.terminal.data(&styled_line(&readable(&line))),
        }
    }
    Ok(())
}

/// One entry for people: number, time, tool, how it ended.
fn readable(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| value[name].as_str().unwrap_or("-").to_owned();
    let tool = value["tool_name"].as_str().or_else(|| value["action"].as_str()).unwrap_or("-");
    let end = value["error_code"].as_str().map_or_else(|| text("result"), str::to_owned);
    format!("{:>6}  {}  {tool}  {end}", value["seq"], text("timestamp"))
}

fn export(shell: &Shell, of: &Of, output: Option<&Path>, all: bool) -> Result<(), Failure> {
    let trail = of.open(shell)?;
    let failed_write = |error: std::io::Error| {
        Failure::new(Code::StoreFailed, format!("the entries could not be written: {error}"))
            .hinting("check space and permissions")
    };
    let out: Box<dyn Write> = match output {
        None if std::io::stdout().is_terminal() => Box::new(ShownJson(std::io::stdout().lock())),
        None => Box::new(std::io::stdout().lock()),
        Some(path) => {
            let made = private_file::create_new(path);
            let exists = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    Failure::new(Code::FileAlreadyExists, format!("{} is there already", path.display()))
                }
                _ => failed_write(error),
            };
            Box::new(made.map_err(exists)?)
        }
    };
    let mut out = BufWriter::new(out);
    match trail {
        Trail::Workspace(root) => {
            let mut lines = Lines::of(&root).map_err(|error| broken(root.path(), &error))?;
            let mut line = Vec::new();
            while lines.next(&mut line).map_err(|error| broken(root.path(), &error))? {
                out.write_all(&line).map_err(failed_write)?;
            }
        }
        Trail::Store { path, look } if all => {
            signed_logs::export(shell, of.data_dir.clone(), &path, &look, &mut out)?;
        }
        Trail::Store { look, .. } => {
            let mut after = 0;
            loop {
                let lines = look.lines(CHAIN, after, SLICE).map_err(failed)?;
                let Some((last, _)) = lines.last() else { break };
                after = *last;
                for (_, line) in &lines {
                    out.write_all(line).and_then(|()| out.write_all(b"\n")).map_err(failed_write)?;
                }
            }
        }
    }
    out.flush().map_err(failed_write)
}

/// Lines of JSON for a person to look at: hidden characters as JSON escapes. It is given whole lines.
struct ShownJson<W>(W);

impl<W: Write> Write for ShownJson<W> {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(visible_json(&String::from_utf8_lossy(lines)).as_bytes())?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn failed(error: store::Error) -> Failure {
    Failure::new(Code::StoreFailed, error.to_string()).hinting("see `orchestr8 doctor`")
}

fn broken_store(path: &Path, error: chain::Error) -> Failure {
    match error {
        chain::Error::Broken(broken) => changed(path, &broken),
        chain::Error::Store(error) => failed(error),
    }
}

fn broken(path: &Path, error: &trail::Error) -> Failure {
    match error {
        trail::Error::Broken { .. } | trail::Error::Tampered { .. } => changed(path, error),
        trail::Error::Locked | trail::Error::Io(_) | trail::Error::Closed => {
            Failure::new(Code::StoreFailed, format!("{}: {error}", path.display()))
        }
    }
}

fn changed(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::StoreCorrupt, format!("{}: {what}", path.display()))
        .hinting("entries before it hold; compare with a backup to see what was changed")
}
