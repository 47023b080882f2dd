//! `@orchestr8/exec`: a program of this machine in a sandbox, with JSON in and JSON out. Off until the settings have templates.

mod child;
mod hole;
mod template;
mod turns;
mod variables;

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use orchestr8_process::limits::TERM_MS;
use orchestr8_process::sandbox::{self, SandboxRun, SandboxedCommand, WorkingDirectory};
use orchestr8_process::tenant_folder;
use orchestr8_secrets::Sink;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::discreet::Discretion;
use super::members::Members;
use super::secrets::{CallSecrets, plain};
use super::{Agent, Answer, Call, settings, until_cancelled};
use child::{Ended, ProgramEnd};
use template::ExecInvocation;
use turns::StepTurns;

use crate::engine::undo::{OUTCOME, OUTCOME_UNKNOWN};
use crate::limits::{OUTPUT_BYTES, STDERR_SHOWN_BYTES};

pub use template::{ExecTemplate, ExecTemplateSource};

pub struct Exec(Arc<Inner>);

struct Inner {
    settings: Option<settings::Exec>,
    clock: Arc<dyn Clock>,
    discretion: Discretion,
    turns: StepTurns,
}

impl Exec {
    pub fn new(settings: Option<&settings::Exec>, clock: Arc<dyn Clock>, discretion: Discretion) -> Self {
        let settings = settings.filter(|settings| !settings.templates.is_empty()).cloned();
        Self(Arc::new(Inner { settings, clock, discretion, turns: StepTurns::default() }))
    }
}

impl Agent for Exec {
    fn id(&self) -> &str {
        "@orchestr8/exec"
    }

    fn about(&self) -> &str {
        "Runs a program by a template of the settings: config {template, values?, env?}, input as JSON on stdin, output from stdout."
    }

    fn inserts_secrets(&self) -> bool {
        true
    }

    fn target(&self, _input: &Value, config: &Value) -> Option<String> {
        Members::peek(&Value::Null, config).text("template").ok()?.map(str::to_owned)
    }

    fn is_usable(&self) -> bool {
        self.0.settings.is_some()
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let inner = self.0.clone();
        async move { inner.run(call).await }.boxed()
    }
}

impl Inner {
    async fn run(&self, call: Call) -> Result<Answer, Fault> {
        let Some(settings) = &self.settings else {
            return Err(Fault::new(
                Code::Configuration,
                "workflows may start no programs here; describe those they may start in `workflows.exec.templates`",
            ));
        };
        let members = Members::read(&Value::Null, &call.config, &["template", "values", "env"])?;
        let name = members.needed_text("template")?;
        let template = settings.templates.get(name).ok_or_else(|| {
            let text = "`template` is none of those that `workflows.exec.templates` describes";
            Fault::new(Code::Unauthorized, text).with("path", "template")
        })?;
        template.permit(&call.principal)?;
        let input = call.input.to_string();
        call.secrets.refuse_in(&input, "the input of a program: pass it in a variable of its environment")?;
        let starting = async {
            let mut filled = template.fill(&members, &settings.base_env)?;
            insert(&mut filled, name, &call.secrets).await?;
            let turn = self.turns.take(&call.key).await;
            let directory = directory(settings, template, &call.principal.tenant)?;
            Ok((command(settings, filled, directory.as_deref()).await?, turn))
        };
        let (sandboxed, turn) = until_cancelled(&call.cancel, starting).await?;
        let stop = self.until_stopped(&call.cancel, template.timeout_ms);
        let most = call.answer_bytes(OUTPUT_BYTES);
        let running = child::run(sandboxed, (input.into_bytes(), most), self.clock.clone(), turn, stop);
        let ended = running.await.map_err(|error| unstarted(name, error))?;
        match ended.end {
            ProgramEnd::Exited(status) => {
                output(name, status, (ended, most), &self.discretion).map(Answer::from)
            }
            ProgramEnd::Stopped { was_killed } => {
                let why = match (call.cancel.is_cancelled(), template.timeout_ms) {
                    (false, Some(ms)) => {
                        Fault::new(Code::Timeout, format!("{name} took longer than {ms} ms"))
                    }
                    (true, _) | (false, None) => Fault::new(Code::Cancelled, format!("{name} was stopped")),
                };
                Err(if was_killed { killed(why) } else { why })
            }
        }
    }

    /// Until the step is cancelled or the time of the template is over.
    async fn until_stopped(&self, cancel: &CancellationToken, limit_ms: Option<u64>) {
        let over = async {
            match limit_ms {
                Some(ms) => self.clock.sleep(Duration::from_millis(ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            () = over => {}
        }
    }
}

/// Says that it had to be killed: it did not end when it was asked to.
fn killed(mut fault: Fault) -> Fault {
    fault.message = format!("{}; it did not end within {TERM_MS} ms and was killed", fault.message).into();
    fault.with("forced", true)
}

/// Where a program of this tenant works: the directory of the template, with `{tenant}` in its path one of the tenant's own.
fn directory(
    settings: &settings::Exec,
    template: &ExecTemplate,
    tenant: &Tenant,
) -> Result<Option<PathBuf>, Fault> {
    let Some(directory) = &template.directory else { return Ok(None) };
    match tenant_folder::of_tenant(directory, tenant.as_str()) {
        Some(own) => match tenant_folder::create(&own) {
            Ok(()) => Ok(Some(own)),
            Err(error) => {
                let text = format!("the directory of the tenant cannot be created: {}", error.kind());
                Err(Fault::new(Code::Configuration, text).because(error))
            }
        },
        None if settings.sharing.admits(tenant) => Ok(Some(directory.clone())),
        None => {
            let text = format!(
                "the directory of this template is not shared with the tenant {tenant}; name {{tenant}} in its path"
            );
            Err(Fault::new(Code::Unauthorized, text).with("setting", "workflows.exec.sharedDirectories"))
        }
    }
}

async fn command(
    settings: &settings::Exec,
    filled: ExecInvocation,
    directory: Option<&std::path::Path>,
) -> Result<SandboxedCommand, Fault> {
    let sandbox = settings.sandbox.as_ref();
    let sandbox = sandbox.ok_or_else(|| refusal(sandbox::Error::Unavailable(String::from("no launcher"))))?;
    let directory = directory.map(WorkingDirectory::open).transpose().map_err(|error| {
        let text = format!("the directory of the template cannot be opened: {}", error.kind());
        Fault::new(Code::Configuration, text).because(error)
    })?;
    let run = SandboxRun {
        program: filled.program,
        args: filled.args.into_iter().map(Into::into).collect(),
        directory,
        sealed: Vec::new(),
        identity: Some(filled.identity),
    };
    let mut sandboxed = sandbox.command(run).await.map_err(refusal)?;
    sandboxed.command.env_clear().envs(&filled.env);
    Ok(sandboxed)
}

fn refusal(error: sandbox::Error) -> Fault {
    let text = error.to_string();
    match error {
        sandbox::Error::Unavailable(_) => {
            Fault::new(Code::Unauthorized, text).with("setting", "sandbox.mode")
        }
        sandbox::Error::Hidden(_)
        | sandbox::Error::Home(_)
        | sandbox::Error::Startup(_)
        | sandbox::Error::Unsealed(..)
        | sandbox::Error::Changed(_) => Fault::new(Code::Unauthorized, text),
        sandbox::Error::Setup(..)
        | sandbox::Error::At(..)
        | sandbox::Error::Landlock(_)
        | sandbox::Error::Filter(_)
        | sandbox::Error::Program(_)
        | sandbox::Error::TooLarge { .. }
        | sandbox::Error::Busy => {
            Fault::new(Code::AgentFailed, "the program could not be run").because(error)
        }
    }
}

/// Secrets go into variables of the environment; arguments are visible to every process of the machine.
async fn insert(filled: &mut ExecInvocation, template: &str, secrets: &CallSecrets) -> Result<(), Fault> {
    const ARGUMENTS: &str = "the arguments of a program: pass it in a variable of its environment";
    for text in filled.args.iter().chain(filled.env.keys()) {
        secrets.refuse_in(text, ARGUMENTS)?;
    }
    for (variable, value) in filled.env.iter_mut().filter(|(_, value)| secrets.is_in(value)) {
        let sink = Sink::Program { program: template.to_owned(), variable: variable.clone() };
        *value = secrets.insert(value, &sink, plain).await?;
    }
    Ok(())
}

fn unstarted(name: &str, error: std::io::Error) -> Fault {
    Fault::new(Code::AgentFailed, format!("{name} could not be run: {}", error.kind())).because(error)
}

fn output(
    name: &str,
    status: ExitStatus,
    (ended, most): (Ended, usize),
    discretion: &Discretion,
) -> Result<Value, Fault> {
    let Ended { stdout, too_long, stderr, .. } = ended;
    if too_long {
        let text = format!("{name} wrote more than {most} bytes");
        return Err(Fault::new(Code::PayloadTooLarge, text).with(OUTCOME, OUTCOME_UNKNOWN));
    }
    if !status.success() {
        let how = match status.code() {
            Some(code) => format!("ended with exit code {code}"),
            None => String::from("was ended by a signal"),
        };
        let tail = tail(&stderr, discretion);
        let colon = if tail.is_empty() { "" } else { ": " };
        return Err(Fault::new(Code::AgentFailed, format!("{name} {how}{colon}{tail}"))
            .with("exitCode", status.code()));
    }
    let text = String::from_utf8_lossy(&stdout);
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_str(&text).unwrap_or_else(|_| json!({"stdout": text})))
}

/// The last of stderr without secrets. Cut after they are gone, so that no half of one is left at the cut.
fn tail(stderr: &[u8], discretion: &Discretion) -> String {
    let text = discretion.text(String::from_utf8_lossy(stderr).trim());
    let start = text.len().saturating_sub(STDERR_SHOWN_BYTES);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[start..].to_owned()
}
