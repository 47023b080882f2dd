//! Commands of the shell that a person runs beside the conversation.

use std::path::PathBuf;
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::resilience::breaker;
use orchestr8_kernel::{Args, Context, Halt, Reply, Why};
use orchestr8_models::{BashExecution, Message};
use serde_json::{Value, json};

use super::conversation::stop;
use super::{answer, session};
use crate::hub::Hub;
use crate::limits;
use crate::news::News;
use crate::record::Body;
use crate::session::{Draft, Session, Slot};
use crate::shell::{self, Ran};

/// Only commands that never end speak against a shell: a failure may be what was asked for.
const BREAKER: breaker::Policy =
    breaker::Policy { failure_threshold: limits::BASH_TIMEOUTS, open_duration_ms: limits::BASH_OPEN_MS };

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    if !hub.settings().bash {
        let off = "sessions may not use the shell here; set `sessions.bash` to true to let them";
        return Err(Fault::new(Code::Unauthorized, off).with("setting", "sessions.bash").into());
    }
    let line = args.text("command").unwrap_or_default();
    if line.contains('\0') {
        return Err(Fault::invalid("command: must not contain a NUL").with("path", "/command").into());
    }
    let (cwd, next) = session.with_header(|header| (PathBuf::from(&header.cwd), header.next));
    if next >= limits::ENTRIES {
        let full = format!("the session has {} entries, which is the limit", limits::ENTRIES);
        return Err(Fault::new(Code::ResourceExhausted, full).into());
    }
    // Nobody may want it any more by the time it is its turn.
    context.check()?;
    let target = format!("{}:{}", session.tenant, session.id);
    let key = breaker::key("bash", Some(&target));
    let pass = hub.kernel().breakers().admit(&key, BREAKER)?;
    let held = session.doing.begin(Slot::Bash, context.cancel.token());
    let ran = shell::run(&hub, &session.tenant, &cwd, line, &held.token).await?;
    match (ran.stopped, context.cancel.why()) {
        (false, _) => drop(pass.succeeded()),
        (true, Some(Why::Deadline)) => drop(pass.failed()),
        (true, Some(Why::Client | Why::Disconnect) | None) => drop(pass),
    }
    let confined = ran.level.is_confined();
    if !confined {
        let fields = json!({"sessionId": &*session.id, "setting": "sandbox.mode"});
        context.log().warn("a command of the shell ran without a sandbox", fields);
    }
    let told = json!({"exitCode": ran.exit_code, "output": ran.output, "cancelled": ran.stopped,
                      "truncated": ran.truncated, "confined": confined, "sandbox": ran.level.as_str()});
    let excluded = args.get("excludeFromContext").and_then(Value::as_bool).unwrap_or(false);
    // Also when nobody waits any more: what was done is on record.
    record(&hub, &session, line.to_owned(), ran, excluded).await?;
    drop(held);
    answer(told)
}

async fn record(
    hub: &Hub,
    session: &Arc<Session>,
    command: String,
    ran: Ran,
    exclude_from_context: bool,
) -> Result<(), Fault> {
    let message = Message::BashExecution(BashExecution {
        command,
        output: ran.output,
        exit_code: ran.exit_code,
        cancelled: ran.stopped,
        truncated: ran.truncated,
        timestamp: hub.now_ms(),
        exclude_from_context,
    });
    let mut draft = Draft::new(session, hub.now_ms());
    let entry = draft.append(Body::Message { message });
    draft.tell(News::MessageStart { entry });
    draft.tell(News::MessageEnd { entry });
    draft.trim();
    draft.commit(hub.kernel()).await?;
    session.forget_recent();
    crate::tools::tell_changed(hub, session);
    Ok(())
}

pub async fn abort(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    stop(&hub, &args, &context, Slot::Bash).await
}
