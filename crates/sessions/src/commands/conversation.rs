//! What is said to the agent, and how it is stopped.

use std::sync::Arc;

use orchestr8_contract::id::Lane;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Args, Context, Halt, Reply, Submission};
use orchestr8_models::Block;
use serde_json::{Map, Value, json};

use super::{PREFIX, answer, session};
use crate::access::MessageSender;
use crate::hub::Hub;
use crate::limits;
use crate::record::{self, Queued, When};
use crate::session::{Coming, Draft, Session, Slot};
use crate::tables;
use crate::tree::Tree;
use crate::{compact, turn};

/// Answers when the agent is done. While it works, `streamingBehavior` says what becomes of another prompt.
pub async fn prompt(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let when = match args.text("streamingBehavior") {
        Some("followUp") => Some(When::FollowUp),
        Some(_) => Some(When::Steer),
        None => None,
    };
    match when {
        Some(when) => match session.queue.promise() {
            Some(coming) => wait(&session, &args, &context, when, Some(coming)),
            // It came beside the lane, and there is nothing to steer: it takes its turn like any other.
            None => in_lane(&session, args, &context).await,
        },
        None => {
            // Nobody may want it any more by the time it is its turn.
            context.check()?;
            let ended = turn::run(&hub, &session, context, content(&args)?).await?;
            answer(ended.told())
        }
    }
}

async fn in_lane(session: &Session, args: Args, context: &Context) -> Result<Reply, Halt> {
    let mut args = match args.into_value() {
        Value::Object(args) => args,
        _ => Map::new(),
    };
    args.remove("streamingBehavior");
    let name = format!("{PREFIX}prompt");
    let mut child =
        Submission::new(name, Args::new(args), context.principal.clone(), context.correlation.clone());
    child.lane = Some(lane(&session.id)?);
    child.cancel = context.cancel.child();
    child.trace = context.trace;
    context.kernel.submit(child).await.result.map(Reply::from)
}

/// The lane of a session's commands (SES-7.3).
pub fn lane(session: &str) -> Result<Lane, Fault> {
    Lane::parse(&format!("session:{session}")).map_err(|wrong| Fault::internal(wrong.to_string()))
}

pub async fn steer(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    wait(&session(&hub, &args, &context)?, &args, &context, When::Steer, None)
}

pub async fn follow_up(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    wait(&session(&hub, &args, &context)?, &args, &context, When::FollowUp, None)
}

/// Puts a message where the turn under way, or the next one, finds it; the one under way waits for what was promised to it.
fn wait(
    session: &Arc<Session>,
    args: &Args,
    context: &Context,
    when: When,
    coming: Option<Coming>,
) -> Result<Reply, Halt> {
    if session.queue.len() >= limits::QUEUED {
        let text = format!("{} messages wait already", limits::QUEUED);
        return Err(Fault::new(Code::ResourceExhausted, text).into());
    }
    let by = Some(MessageSender::of(&context.principal));
    let queued = Queued { when, content: content(args)?, by };
    let place = session.queue.place();
    let mut effects = Batch::new();
    effects.then(tables::queue_insert(session.whose(), place, record::text(&queued)));
    let session = session.clone();
    let reply = Reply::new(Output::json(json!({"queued": true})), effects);
    Ok(reply.then(move || {
        session.queue.put(place, queued);
        drop(coming);
    }))
}

/// What a message says: its text, then its images.
fn content(args: &Args) -> Result<Vec<Block>, Fault> {
    let mut content = vec![Block::text(args.text("message").unwrap_or_default())];
    let images = args.get("images").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, image) in images.iter().enumerate() {
        let mut image = image.clone();
        image["type"] = json!("image");
        content.push(serde_json::from_value(image).map_err(|error| {
            Fault::invalid(format!("images[{index}]: {error}")).with("path", format!("/images/{index}"))
        })?);
    }
    Ok(content)
}

pub async fn abort(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    stop(&hub, &args, &context, Slot::Turn).await
}

pub async fn abort_retry(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    stop(&hub, &args, &context, Slot::Retry).await
}

pub async fn abort_compaction(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    stop(&hub, &args, &context, Slot::Compaction).await
}

/// Stops what is under way, and answers once it has stopped.
pub async fn stop(hub: &Hub, args: &Args, context: &Context, slot: Slot) -> Result<Reply, Halt> {
    session(hub, args, context)?.doing.stop(slot).await;
    answer(json!({}))
}

pub async fn compact(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (_, tree) = Tree::of(&hub, &session).await?;
    let instructions = args.text("customInstructions");
    let made = compact::summarize(&hub, &session, &tree, instructions, context.cancel.token()).await?;
    let mut draft = Draft::new(&session, hub.now_ms());
    draft.append(made.body());
    Ok(draft.into_reply(made.told(), hub.kernel()))
}

/// The answer of a person to a question of a tool.
pub async fn respond(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let response = args.get("response").cloned().unwrap_or_default();
    session.questions.answer(args.text("requestId").unwrap_or_default(), response)?;
    answer(json!({}))
}
