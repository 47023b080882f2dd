//! `@orchestr8/exec`: a program of this machine, with JSON in and JSON out. Off until the settings name programs.

mod child;
mod program;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::Clock;
use orchestr8_secrets::Sink;
use serde_json::{Value, json};

use super::discreet::Discretion;
use super::members::Members;
use super::secrets::{CallSecrets, plain};
use super::{Agent, Answer, Call, settings, until_cancelled};
use child::Ended;
use program::Program;

use crate::limits::{OUTPUT_BYTES, STDERR_SHOWN_BYTES};

pub struct Exec(Arc<Inner>);

struct Inner {
    settings: Option<settings::Exec>,
    clock: Arc<dyn Clock>,
    discretion: Discretion,
}

impl Exec {
    pub fn new(settings: Option<&settings::Exec>, clock: Arc<dyn Clock>, discretion: Discretion) -> Self {
        Self(Arc::new(Inner { settings: settings.cloned(), clock, discretion }))
    }
}

impl Agent for Exec {
    fn id(&self) -> &str {
        "@orchestr8/exec"
    }

    fn about(&self) -> &str {
        "Runs a program that the settings allow: config {program, args?, cwd?, env?}, input as JSON on stdin, output from stdout."
    }

    fn inserts_secrets(&self) -> bool {
        true
    }

    fn target(&self, _input: &Value, config: &Value) -> Option<String> {
        Members::peek(&Value::Null, config).text("program").ok()?.map(str::to_owned)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Answer, Fault>> {
        let inner = self.0.clone();
        async move {
            let cancel = call.cancel.clone();
            until_cancelled(&cancel, inner.run(call)).await
        }
        .boxed()
    }
}

impl Inner {
    async fn run(&self, call: Call) -> Result<Answer, Fault> {
        let Some(settings) = &self.settings else {
            return Err(Fault::new(
                Code::Configuration,
                "workflows may start no programs here; name those they may start in `workflows.exec.programs`",
            ));
        };
        let mut program = Program::read(&call.config, settings)?;
        let name = program.path.display().to_string();
        insert(&mut program, &name, &call.secrets).await?;
        let input = call.input.to_string();
        call.secrets.refuse_in(&input, "the input of a program: pass it in a variable of its environment")?;
        let input = input.into_bytes();
        let ended =
            child::run(&program, input, self.clock.clone()).await.map_err(|error| unstarted(&name, error))?;
        output(&name, ended, &self.discretion).map(Answer::from)
    }
}

/// Secrets go into variables of the environment; arguments are visible to every process of the machine.
async fn insert(program: &mut Program, name: &str, secrets: &CallSecrets) -> Result<(), Fault> {
    const ARGUMENTS: &str =
        "the arguments or the folder of a program: pass it in a variable of its environment";
    let folder = program.cwd.as_ref().map(|cwd| cwd.display().to_string());
    for text in program.args.iter().chain(&folder).chain(program.env.keys()) {
        secrets.refuse_in(text, ARGUMENTS)?;
    }
    for (variable, value) in program.env.iter_mut().filter(|(_, value)| secrets.is_in(value)) {
        let sink = Sink::Program { program: name.to_owned(), variable: variable.clone() };
        *value = secrets.insert(value, &sink, plain).await?;
    }
    Ok(())
}

fn unstarted(name: &str, error: std::io::Error) -> Fault {
    Fault::new(Code::AgentFailed, format!("{name} could not be run: {}", error.kind())).because(error)
}

fn output(name: &str, ended: Ended, discretion: &Discretion) -> Result<Value, Fault> {
    let Ended { status, stdout, too_long, stderr } = ended;
    if too_long {
        return Err(Fault::new(
            Code::PayloadTooLarge,
            format!("{name} wrote more than {OUTPUT_BYTES} bytes"),
        ));
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
