//! Small things a session remembers.

use orchestr8_contract::Fault;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::session;
use crate::hub::Hub;
use crate::record::Header;
use crate::session::Draft;

pub async fn auto_compaction(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let enabled = enabled(&args);
    change(&hub, &args, &context, |header| header.auto_compaction = enabled)
}

pub async fn auto_retry(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let enabled = enabled(&args);
    change(&hub, &args, &context, |header| header.auto_retry = enabled)
}

pub async fn name(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let name = args.text("name").unwrap_or_default().trim().to_owned();
    if name.is_empty() || name.chars().any(char::is_control) {
        let wrong = Fault::invalid("name: must have a visible character and no control characters");
        return Err(wrong.with("path", "/name").into());
    }
    change(&hub, &args, &context, |header| header.name = Some(name))
}

fn enabled(args: &Args) -> bool {
    args.get("enabled").and_then(Value::as_bool).unwrap_or(false)
}

fn change(hub: &Hub, args: &Args, context: &Context, edit: impl FnOnce(&mut Header)) -> Result<Reply, Halt> {
    let session = session(hub, args, context)?;
    let mut draft = Draft::new(&session, hub.now_ms());
    edit(&mut draft.header);
    Ok(draft.into_reply(json!({}), hub.kernel()))
}
