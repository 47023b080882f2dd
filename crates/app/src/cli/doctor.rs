//! `orchestr8 doctor`: checks what orchestr8 needs, one line each, and says how to mend what is wrong.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_edge::check_bind;
use orchestr8_models::settings::Provider;
use orchestr8_process::sandbox::{SandboxLevel, SandboxMode, SandboxReport, SandboxSettings};
use orchestr8_secrets::KeySource;
use orchestr8_stores::sqlite::{Exposure, check_folder, exposed_files};
use orchestr8_tools::remote::{Link, Server};
use serde_json::{Value, json};

use super::Shell;
use super::signed_logs::{SignedLogs, Trusted};
use crate::attach::owner_line;
use crate::config::{Flags, Stranger, strangers};
use crate::failure::Failure;
use crate::runtime::secrets::InstallationKey;
use crate::runtime::store::look;
use crate::settings::{Mode, Place, Settings, Store, Vectors};
use crate::terminal::columns;

#[derive(Args)]
pub struct Doctor {
    /// The folder of the data to check.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Less room than this on the disk is worth a word.
const ROOM_BYTES: u64 = 256 * 1024 * 1024;

/// Fewer open files than this cannot serve the default number of connections.
const OPEN_FILES: u64 = 1024;

/// A server that takes longer to take a call is not there.
const SERVER_LIMIT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Warn,
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        }
    }
}

struct Check {
    name: &'static str,
    verdict: Verdict,
    detail: String,
    hint: Option<String>,
}

impl Doctor {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let mut checks = Vec::new();
        let mode = Mode { data_dir: self.data_dir.clone(), ..Mode::default() };
        let loaded = shell.load(Flags::new()).and_then(|loaded| {
            let notice = loaded.notice();
            Ok((Settings::new(loaded, mode, &shell.environment)?, notice))
        });
        match loaded {
            Ok((settings, notice)) => {
                checks.push(match notice {
                    None => ok("configuration", "every setting is in order"),
                    Some((text, hint)) => check("configuration", Verdict::Warn, text, &hint),
                });
                checks.extend(environment(shell));
                checks.extend(data(&settings));
                checks.push(secrets(&settings));
                checks.push(port(&settings));
                checks.push(open_files());
                checks.push(sandbox(&settings.sandbox));
                checks.extend(models(&settings.models));
                checks.push(vectors(&settings.vectors));
                checks.extend(settings.upstreams.servers.iter().map(|server| program(shell, server)));
            }
            Err(failure) => checks.push(Check {
                name: "configuration",
                verdict: Verdict::Fail,
                detail: [vec![failure.message.clone()], failure.lines.clone()].concat().join("; "),
                hint: Some(failure.hint().to_owned()),
            }),
        }
        show(shell, &checks);
        match checks.iter().filter(|check| check.verdict == Verdict::Fail).count() {
            0 => Ok(()),
            bad => Err(Failure::new(Code::Internal, format!("{bad} of {} checks failed", checks.len()))
                .hinting("see the hints above")),
        }
    }
}

fn show(shell: &Shell, checks: &[Check]) {
    if shell.terminal.json {
        let list: Vec<Value> = checks
            .iter()
            .map(|check| json!({"name": check.name, "status": check.verdict.word().to_lowercase(), "detail": check.detail, "hint": check.hint}))
            .collect();
        let is_ok = checks.iter().all(|check| check.verdict != Verdict::Fail);
        shell.terminal.value(&json!({"ok": is_ok, "checks": list}));
        return;
    }
    let rows: Vec<[String; 3]> = checks
        .iter()
        .map(|check| {
            let hint = check.hint.as_ref().map_or_else(String::new, |hint| format!(" (hint: {hint})"));
            [check.verdict.word().to_owned(), check.name.to_owned(), format!("{}{hint}", check.detail)]
        })
        .collect();
    shell.terminal.data(&columns(&rows));
}

fn check(name: &'static str, verdict: Verdict, detail: impl Into<String>, hint: &str) -> Check {
    Check { name, verdict, detail: detail.into(), hint: Some(hint.to_owned()) }
}

fn ok(name: &'static str, detail: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Ok, detail: detail.into(), hint: None }
}

fn environment(shell: &Shell) -> Vec<Check> {
    let stranger = |stranger: Stranger| {
        check("environment", Verdict::Warn, stranger.to_string(), "correct its name, or unset it")
    };
    strangers(&shell.environment).into_iter().map(stranger).collect()
}

/// Whether the key of stored secrets can be read; whether it fits is known when the server starts.
fn secrets(settings: &Settings) -> Check {
    match InstallationKey(settings.secrets.key.clone()).load() {
        Ok(keys) if keys.is_empty() => ok("secrets", "their key is created when it is first needed"),
        Ok(_) => ok("secrets", "their key can be read"),
        Err(fault) => {
            check("secrets", Verdict::Fail, fault.message, "correct secrets.key; see docs/guide/secrets.md")
        }
    }
}

fn data(settings: &Settings) -> Vec<Check> {
    const HINT: &str = "stop orchestr8 and restore a backup; keep the damaged file";
    let Place::File { path, .. } = &settings.store.place else { return vec![ok("data", "kept in memory")] };
    let mut checks: Vec<Check> = std::iter::once(room(path)).chain(permissions(path)).collect();
    if !path.exists() {
        checks.push(ok("store", format!("{} is made when orchestr8 first runs", path.display())));
        return checks;
    }
    checks.extend(owner_line(path).map(|line| ok("owner", line)));
    checks.push(match look(&settings.store, path) {
        Err(failure) => check("store", Verdict::Fail, failure.message.clone(), failure.hint()),
        Ok(look) => {
            let report = look.check();
            let broken =
                report.chains.iter().filter_map(|chain| chain.state.as_ref().err().map(ToString::to_string));
            let problems: Vec<String> = report.problems.iter().cloned().chain(broken).collect();
            match problems.is_empty() {
                true => {
                    let kind = settings.store.key.as_ref().map_or("", |_| "encrypted and ");
                    ok("store", format!("{} is {kind}sound, its audit chains are whole", path.display()))
                }
                false => check("store", Verdict::Fail, problems.join("; "), HINT),
            }
        }
    });
    checks.extend(audit_log(settings, path));
    checks
}

/// Whether the data agrees with the signed heads, and whether all anchors have the newest.
fn audit_log(settings: &Settings, path: &Path) -> Vec<Check> {
    const NAME: &str = "audit log";
    let hint = "see docs/guide/operations.md#audit";
    let checked = SignedLogs::with(&settings.audit, &Trusted::default()).and_then(|signed| {
        let signed = signed.with_witnesses(&settings.audit, None)?;
        Ok((signed.check(path, &look(&settings.store, path)?)?, signed))
    });
    let (found, signed) = match checked {
        Ok(found) => found,
        Err(failure) => return vec![check(NAME, Verdict::Fail, failure.message.clone(), failure.hint())],
    };
    let verdict = match found.is_signed() {
        true => ok(NAME, found.to_string()),
        false => check(NAME, Verdict::Warn, found.to_string(), hint),
    };
    let failing = signed.failing_anchors().into_iter().map(|(anchor, error)| {
        check("anchor", Verdict::Warn, format!("{anchor} does not have the newest head: {error}"), hint)
    });
    let silent = signed.silent_witnesses().iter().map(|why| check("witness", Verdict::Warn, why, hint));
    std::iter::once(verdict).chain(failing).chain(silent).collect()
}

/// Whether other users can get at the data.
fn permissions(path: &Path) -> Vec<Check> {
    let exposed = |verdict: Verdict, exposure: &Exposure| {
        check("permissions", verdict, exposure.to_string(), &exposure.mend)
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut checks: Vec<Check> =
        check_folder(folder).err().iter().map(|found| exposed(Verdict::Fail, found)).collect();
    checks.extend(exposed_files(path).iter().map(|found| exposed(Verdict::Warn, found)));
    if checks.is_empty() && folder.is_dir() {
        checks.push(ok("permissions", format!("{} is for its owner alone", folder.display())));
    }
    checks
}

/// Whether the disk of the data has room, looking at the nearest folder that exists.
fn room(path: &Path) -> Check {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let shown = folder.display();
    match rustix::fs::statvfs(folder) {
        Err(error) => {
            check("disk", Verdict::Warn, format!("{shown}: {error}"), "check that the folder can be read")
        }
        Ok(disk) if disk.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) => check(
            "disk",
            Verdict::Fail,
            format!("{shown} cannot be written"),
            "name another folder with --data-dir",
        ),
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let mib = free / (1024 * 1024);
            match free < ROOM_BYTES {
                true => check(
                    "disk",
                    Verdict::Warn,
                    format!("{mib} MiB free at {shown}"),
                    "make room before the store is full",
                ),
                false => ok("disk", format!("{mib} MiB free at {shown}")),
            }
        }
    }
}

fn port(settings: &Settings) -> Check {
    let address = settings.http.listen;
    if let Err(error) = check_bind(address, &settings.auth)
        && !has_tokens(&settings.store)
    {
        return check("http", Verdict::Fail, error.to_string(), error.hint());
    }
    match TcpListener::bind(address) {
        Ok(_) => ok("http", format!("{address} is free")),
        Err(cause) => check(
            "http",
            Verdict::Warn,
            format!("{address}: {cause}"),
            "orchestr8 may run there already; choose another with --listen",
        ),
    }
}

/// Whether the store has an API token.
fn has_tokens(store: &Store) -> bool {
    let Place::File { path, .. } = &store.place else { return false };
    let count =
        look(store, path).ok().and_then(|look| look.number(orchestr8_tokens::tables::ACTIVE_COUNT).ok());
    count.is_some_and(|count| count > 0)
}

fn open_files() -> Check {
    match rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        Some(limit) if limit < OPEN_FILES => check(
            "open files",
            Verdict::Warn,
            format!("at most {limit}"),
            "raise it with ulimit -n, or lower http.maxConnections",
        ),
        Some(limit) => ok("open files", format!("at most {limit}")),
        None => ok("open files", "unlimited"),
    }
}

/// How strongly programs can be confined here, found out by confining one.
fn sandbox(settings: &SandboxSettings) -> Check {
    const HINT: &str = "allow user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, AppArmor); see docs/guide/security.md";
    let report = SandboxReport::probe(settings);
    let why = report.reasons.join("; ");
    match (settings.mode, report.level) {
        (SandboxMode::Off, _) => check(
            "sandbox",
            Verdict::Warn,
            "programs are not confined, because sandbox.mode is off",
            "set sandbox.mode to required",
        ),
        (SandboxMode::Required | SandboxMode::BestEffort, SandboxLevel::Namespaces) => {
            ok("sandbox", "programs run in namespaces of their own, without network and sockets")
        }
        (SandboxMode::Required | SandboxMode::BestEffort, SandboxLevel::Landlock) => check(
            "sandbox",
            Verdict::Warn,
            format!("programs run under Landlock and seccomp, without namespaces of their own ({why})"),
            HINT,
        ),
        (SandboxMode::Required, SandboxLevel::Unconfined) => check(
            "sandbox",
            Verdict::Warn,
            format!("programs cannot be confined ({why}), so they are not run"),
            HINT,
        ),
        (SandboxMode::BestEffort, SandboxLevel::Unconfined) => check(
            "sandbox",
            Verdict::Warn,
            format!(
                "programs cannot be confined ({why}) and run all the same, because sandbox.mode is best-effort"
            ),
            HINT,
        ),
    }
}

/// Which models can be asked, and who has no key. Nobody is called: a question would cost something.
fn models(settings: &orchestr8_models::Settings) -> Vec<Check> {
    let unready = |provider: &Provider| {
        let text =
            format!("{} has no key, so its {} models are left out", provider.name, provider.models.len());
        check("models", Verdict::Warn, text, "set its key in the environment; see docs/guide/models.md")
    };
    let names = |provider: &Provider| -> Vec<String> {
        provider.models.iter().map(|model| format!("{}/{}", provider.name, model.id)).collect()
    };
    let (ready, without): (Vec<&Provider>, Vec<&Provider>) =
        settings.providers.iter().partition(|provider| provider.is_ready());
    let mut all: Vec<String> = ready.into_iter().flat_map(names).collect();
    all.push(String::from("offline/echo"));
    let text = match all.len() {
        1 => format!(
            "{} answers; for others set ANTHROPIC_API_KEY or OPENAI_API_KEY, or see docs/guide/models.md",
            all[0]
        ),
        _ => format!("ready: {}", all.join(", ")),
    };
    std::iter::once(ok("models", text)).chain(without.into_iter().map(unready)).collect()
}

/// Where the index over meanings is, and whether its server is there.
fn vectors(vectors: &Vectors) -> Check {
    let Vectors::Qdrant(server) = vectors else {
        return ok("vectors", "are indexed in this process");
    };
    let shown = format!(
        "{}:{}",
        server.url.host_str().unwrap_or_default(),
        server.url.port_or_known_default().unwrap_or(0)
    );
    let addresses = server.url.socket_addrs(|| None).unwrap_or_default();
    match addresses.iter().any(|address| TcpStream::connect_timeout(address, SERVER_LIMIT).is_ok()) {
        true => ok("vectors", format!("the Qdrant server at {shown} answers")),
        false => check(
            "vectors",
            Verdict::Warn,
            format!("the Qdrant server at {shown} cannot be reached; until it can, only words are searched"),
            "start it, or correct knowledge.vectors.url",
        ),
    }
}

/// Whether the program of another MCP server can be found.
fn program(shell: &Shell, server: &Server) -> Check {
    let name = &server.name;
    let command = match &server.link {
        Link::Stdio { command, .. } => command,
        Link::Http { .. } => return ok("mcp server", format!("{name} is reached by its address")),
    };
    let found = match command.contains('/') {
        true => Path::new(command).is_file(),
        false => {
            let path = shell.environment.get("PATH").unwrap_or_default();
            std::env::split_paths(path).any(|folder| folder.join(command).is_file())
        }
    };
    match found {
        true => ok("mcp server", format!("{name} starts {command}")),
        false => check(
            "mcp server",
            Verdict::Fail,
            format!("{name}: there is no program {command}"),
            "install it, or correct mcpServers",
        ),
    }
}
