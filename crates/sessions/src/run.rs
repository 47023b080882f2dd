//! `session.run`: one message to a session, which is made if it is not there, and the answer.

use std::sync::Arc;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{self, OnUnknown, Slotting};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Action, Args, Cancel, Context, Halt, Policy, Reply, schema};
use orchestr8_models::{Message, StopReason};
use serde_json::{Map, Value, json};

use crate::access::SessionAccess;
use crate::commands::{level, session_id, text};
use crate::hub::Hub;
use crate::limits;
use crate::record::{Place, entry_id};
use crate::session::Session;
use crate::speak::{EVERY_FAILURE, Said, given, speak, wish};
use crate::tree::Tree;

pub const NAME: &str = "session.run";

/// Members that are for a session that is made.
const OF_NEW: [&str; 6] = ["cwd", "provider", "modelId", "thinkingLevel", "systemPrompt", "tools"];

/// Hidden: for other domains. After a crash it runs again, and says what it has to say once: see `take_back`.
pub fn action(hub: &Hub) -> Result<Action, schema::Error> {
    let policy = Policy {
        slotting: Slotting::Free,
        // Each of the commands it is made of has its own limit.
        timeout_ms: Some(limits::NEVER_MS),
        payload_bytes: Some(limits::PAYLOAD_BYTES),
        refusals: EVERY_FAILURE,
        // The commands are on record themselves.
        journalled: false,
        audited: false,
        ..Policy::outside(OnUnknown::Retry)
    };
    let hub = hub.clone();
    let about = "Sends a message to a session, which is made if it is not there, and gives the answer.";
    let work = move |args, context| run(hub.clone(), args, context);
    Action::unlisted(NAME, about, input(), policy, action::work(work))
}

fn input() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["message"], "properties": {
        "message": text(limits::PROMPT_CHARS), "sessionId": session_id(), "sessionName": text(limits::NAME_CHARS),
        "cwd": text(limits::PATH_BYTES), "provider": text(100), "modelId": text(200), "thinkingLevel": level(),
        "systemPrompt": text(limits::PROMPT_CHARS), "tools": {"type": "array", "maxItems": 1000, "items": text(128)},
        "keep": {"type": "boolean"},
    }})
}

async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let fresh = || hub.kernel().ports().ids.fresh(For::Session).to_string().into();
    let id: Arc<str> = args.text("sessionId").map_or_else(fresh, Into::into);
    let said = converse(&hub, &args, &context, &id).await;
    if args.get("keep").and_then(Value::as_bool) == Some(false) {
        remove(&hub, &context, &id).await;
    }
    Ok(Output::json(said?.told(&id)).into())
}

async fn converse(hub: &Hub, args: &Args, context: &Context, id: &Arc<str>) -> Result<Said, Fault> {
    let message = args.text("message").unwrap_or_default();
    match hub.open(&context.principal, id, SessionAccess::Write) {
        Ok(session) => take_back(hub, context, &session, message).await?,
        Err(_) => create(hub, args, context, id).await?,
    }
    speak(context, id, message).await
}

async fn create(hub: &Hub, args: &Args, context: &Context, id: &str) -> Result<(), Fault> {
    hub.model_asked(args.text("provider"), args.text("modelId"))?;
    let mut of_new = Map::new();
    for name in OF_NEW.into_iter().chain(["sessionName"]) {
        of_new.extend(args.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    let wish = wish(context, "create_session", id, Value::Object(of_new))?;
    match given(context.kernel.submit(wish).await) {
        // Somebody else was faster.
        Err(fault) if fault.code == Code::StateConflict => Ok(()),
        made => made.map(drop),
    }
}

/// A message that was said before and got no answer, since the model or the process died, is taken back, so that it stands once on
/// the way to the answer; the branch stays in the tree. One after which tools were called is not: they may have done something.
async fn take_back(hub: &Hub, context: &Context, session: &Arc<Session>, message: &str) -> Result<(), Fault> {
    // In the lane: after whatever is under way.
    let state = context.kernel.submit(wish(context, "get_state", &session.id, json!({}))?).await;
    let version = state.version;
    given(state)?;
    let (header, tree) = Tree::of(hub, session).await?;
    let Some(place) = unanswered(&tree, header.leaf, message) else {
        return Ok(());
    };
    let mut back = wish(context, "navigate_tree", &session.id, json!({"targetId": entry_id(place)}))?;
    if let Some(known) = &mut back.version {
        known.expected = version;
    }
    match given(context.kernel.submit(back).await) {
        // Somebody else has spoken since: then it is said again.
        Err(fault) if fault.code == Code::VersionMismatch => Ok(()),
        done => done.map(drop),
    }
}

/// Where this was said last, if nothing but failed answers came after it.
fn unanswered(tree: &Tree, leaf: Option<Place>, message: &str) -> Option<Place> {
    for place in tree.path(leaf).into_iter().rev() {
        match tree.get(place)?.entry.body.message()? {
            Message::User(user) => {
                let same = user.content.len() == 1 && Message::User(user.clone()).text() == message;
                return same.then_some(place);
            }
            Message::Assistant(answer) => match answer.stop_reason {
                StopReason::Error | StopReason::Aborted => {}
                StopReason::Stop | StopReason::Length | StopReason::ToolUse => return None,
            },
            Message::ToolResult(_) | Message::BashExecution(_) => return None,
        }
    }
    None
}

/// Deletes the session, also when the work was told to stop.
async fn remove(hub: &Hub, context: &Context, id: &str) {
    if hub.open(&context.principal, id, SessionAccess::Write).is_err() {
        return;
    }
    let deleted = match wish(context, "delete_session", id, json!({})) {
        Ok(mut wish) => {
            wish.cancel = Cancel::new();
            given(context.kernel.submit(wish).await)
        }
        Err(fault) => Err(fault),
    };
    if let Err(fault) = deleted {
        context.log().warn(
            "a session that is not wanted any more could not be deleted",
            json!({"sessionId": id, "code": fault.code}),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Body, Entry};
    use crate::tree::Node;
    use orchestr8_models::{Assistant, Block, Usage, User};

    fn tree(messages: Vec<Message>) -> Tree {
        let mut tree = Tree::default();
        for message in messages {
            let parent = tree.next().checked_sub(1);
            tree.push(Node {
                label: None,
                entry: Entry { parent, at_ms: 1, body: Body::Message { message } },
            });
        }
        tree
    }

    fn user(text: &str) -> Message {
        Message::User(User::text(text, 1))
    }

    fn assistant(stop_reason: StopReason) -> Message {
        Message::Assistant(Assistant {
            content: vec![Block::text("half of it")],
            provider: "p".into(),
            model: "m".into(),
            usage: Usage::default(),
            stop_reason,
            timestamp: 1,
            error_message: None,
        })
    }

    #[test]
    fn only_what_got_no_answer_is_taken_back() {
        let last = |messages: Vec<Message>| {
            let leaf = u64::try_from(messages.len()).unwrap() - 1;
            unanswered(&tree(messages), Some(leaf), "hi")
        };
        assert_eq!(last(vec![user("a"), user("hi")]), Some(1));
        let failed = vec![user("hi"), assistant(StopReason::Error), assistant(StopReason::Aborted)];
        assert_eq!(last(failed), Some(0));
        assert_eq!(last(vec![user("hi"), assistant(StopReason::Stop)]), None);
        assert_eq!(last(vec![user("hi"), assistant(StopReason::ToolUse)]), None);
        assert_eq!(last(vec![user("hi"), user("other")]), None);
        assert_eq!(unanswered(&tree(Vec::new()), None, "hi"), None);
    }
}
