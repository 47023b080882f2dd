//! The agent loop: a prompt goes to the model, its tool calls are carried out, their results go back to it, until it is done.
//!
//! What happened is durable before anybody is told of it; deltas are told as they come and are not kept.

mod answer;
mod calls;
mod live;

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Context, Principal};
use orchestr8_models::{Assistant, Block, Message, StopReason, Usage, User};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::access::MessageSender;
use crate::compact;
use crate::hub::Hub;
use crate::limits;
use crate::news::News;
use crate::record::{Body, Entry, Place, When};
use crate::session::{Draft, Session, Slot};
use crate::tree::{Node, Tree};

/// How a prompt ended.
#[derive(Debug)]
pub struct Ended {
    pub stop_reason: StopReason,
    pub error: Option<Fault>,
    /// What the model said last.
    pub text: String,
    /// Of all its answers together.
    pub usage: Usage,
}

impl Ended {
    /// Whether the agent came to its own end.
    fn is_well(&self) -> bool {
        match self.stop_reason {
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => self.error.is_none(),
            StopReason::Error | StopReason::Aborted => false,
        }
    }

    pub fn told(&self) -> Value {
        let mut told = json!({"stopReason": self.stop_reason, "text": self.text, "usage": self.usage});
        if let Some(fault) = &self.error {
            told["errorMessage"] = json!(fault.message);
            told["errorCode"] = json!(fault.code);
        }
        told
    }
}

/// A prompt under way.
pub(crate) struct Turn {
    hub: Hub,
    session: Arc<Session>,
    context: Context,
    stop: CancellationToken,
    tree: Tree,
    /// What has been added to the tree since the agent started.
    added: Vec<Place>,
    usage: Usage,
}

/// What is to be said next, and the place in the queue it came from.
struct Next {
    content: Vec<Block>,
    queued: Option<u64>,
    /// Who queued it.
    by: Option<MessageSender>,
}

/// Runs a prompt to its end. Faults are those of the store; what goes wrong with the model is a part of the conversation.
pub async fn run(
    hub: &Hub,
    session: &Arc<Session>,
    context: Context,
    content: Vec<Block>,
) -> Result<Ended, Fault> {
    let held = session.doing.begin(Slot::Turn, context.cancel.token());
    let open = session.queue.open();
    let tree = match session.with_header(|header| (header.leaf, header.next)) {
        (None, next) => Tree::beginning(next),
        (Some(_), _) => Tree::of(hub, session).await?.1,
    };
    if tree.next() >= limits::ENTRIES {
        return Err(Fault::new(
            Code::ResourceExhausted,
            format!(
                "the session has {} entries, which is the limit; fork it or begin a new one",
                limits::ENTRIES
            ),
        ));
    }
    hub.model(&session.header())?;
    let mut turn = Turn {
        hub: hub.clone(),
        session: session.clone(),
        context,
        stop: held.token.clone(),
        tree,
        added: Vec::new(),
        usage: Usage::default(),
    };
    let mut ended = turn.go(Some(content)).await;
    // Somebody may have spoken, or may be about to, since the turn looked for the last time.
    while ended.as_ref().is_ok_and(Ended::is_well) && open.has_more(&held.token).await {
        ended = turn.go(None).await;
    }
    drop(open);
    session.forget_recent();
    drop(held);
    crate::tools::tell_changed(hub, session);
    ended
}

impl Turn {
    /// From the first words to the last. Without any of its own it takes up what waits.
    async fn go(&mut self, content: Option<Vec<Block>>) -> Result<Ended, Fault> {
        self.session.reserve(self.hub.kernel()).await?;
        self.added.clear();
        // What was said while nobody worked comes first.
        let mut next = self.waiting(When::Steer);
        next.extend(content.map(|content| Next { content, queued: None, by: None }));
        if next.is_empty() {
            next = self.follow_up();
        }
        let mut first = true;
        for _ in 0..limits::ROUNDS {
            self.say(next, std::mem::take(&mut first)).await?;
            let (answer, place) = self.answer().await?;
            self.usage.add(answer.message.usage);
            let results = match answer.message.stop_reason {
                StopReason::ToolUse => self.call_all(&answer.message).await?,
                StopReason::Stop | StopReason::Length | StopReason::Error | StopReason::Aborted => Vec::new(),
            };
            let over = matches!(answer.message.stop_reason, StopReason::Error | StopReason::Aborted)
                || self.stop.is_cancelled();
            let called = !results.is_empty();
            let mut draft = self.draft();
            draft.refer_to(place, &Message::Assistant(answer.message.clone()));
            self.refer(&mut draft, &results);
            draft.tell(News::TurnEnd { entry: place, results });
            if over {
                self.session.queue.close();
            }
            next = if over { Vec::new() } else { self.waiting(When::Steer) };
            if next.is_empty() && !called && !over {
                next = self.follow_up();
            }
            if over || (next.is_empty() && !called) {
                return self.end(draft, answer).await;
            }
            draft.tell(News::TurnStart);
            draft.commit(self.hub.kernel()).await?;
            self.compact_if_full().await?;
        }
        self.too_many_rounds().await
    }

    fn draft(&self) -> Draft {
        Draft::new(&self.session, self.hub.now_ms())
    }

    /// Adds an entry to a draft and to the tree in memory.
    fn add(&mut self, draft: &mut Draft, body: Body) -> Place {
        let entry = Entry { parent: draft.header.leaf, at_ms: self.hub.now_ms(), body: body.clone() };
        let place = draft.append(body);
        self.tree.push(Node { label: None, entry });
        self.added.push(place);
        place
    }

    /// What waits for this moment. A message that has been taken up is not waiting any more.
    fn waiting(&self, when: When) -> Vec<Next> {
        let waiting = self.session.queue.waiting(when);
        waiting
            .into_iter()
            .map(|(place, queued)| Next { content: queued.content, queued: Some(place), by: queued.by })
            .collect()
    }

    /// What is to be said once the agent would be done: one thing at a time.
    fn follow_up(&self) -> Vec<Next> {
        self.waiting(When::FollowUp).into_iter().take(1).collect()
    }

    /// From here on the turn has the rights that its starter and the senders of the messages it takes up all have: a message
    /// must not make tools run with rights that its sender lacks, or has lost since.
    fn share_rights(&mut self, next: &[Next]) {
        let mut senders = next.iter().filter_map(|next| next.by.as_ref()).peekable();
        if senders.peek().is_some() {
            let own = Principal::clone(&self.context.principal);
            let (kernel, tenant) = (self.hub.kernel(), own.tenant.clone());
            let reduce =
                |own, sender: &MessageSender| sender.reduce(kernel.standing(&tenant, &sender.name), own);
            self.context.principal = Arc::new(senders.fold(own, reduce));
        }
    }

    /// Puts what people said into the tree.
    async fn say(&mut self, next: Vec<Next>, first: bool) -> Result<(), Fault> {
        self.share_rights(&next);
        let mut draft = self.draft();
        if first {
            draft.tell(News::AgentStart);
            draft.tell(News::TurnStart);
        } else if next.is_empty() {
            return Ok(());
        }
        for said in next {
            let message = Message::User(User { content: said.content, timestamp: self.hub.now_ms() });
            let entry = self.add(&mut draft, Body::Message { message });
            draft.tell(News::MessageStart { entry });
            draft.tell(News::MessageEnd { entry });
            if let Some(queued) = said.queued {
                draft.take(queued);
            }
        }
        draft.commit(self.hub.kernel()).await
    }

    fn refer(&self, draft: &mut Draft, places: &[Place]) {
        for place in places {
            if let Some(message) = self.tree.get(*place).and_then(|node| node.entry.body.message()) {
                draft.refer_to(*place, message);
            }
        }
    }

    async fn end(&mut self, draft: Draft, answer: Answer) -> Result<Ended, Fault> {
        self.close(draft).await?;
        if answer.fault.is_none() && !self.stop.is_cancelled() {
            self.compact_if_full().await?;
        }
        let text = Message::Assistant(answer.message.clone()).text();
        let stop_reason = match self.stop.is_cancelled() {
            true => StopReason::Aborted,
            false => answer.message.stop_reason,
        };
        Ok(Ended { stop_reason, error: answer.fault, text, usage: self.usage })
    }

    /// The last words of a prompt; events beyond what is kept are forgotten with them.
    async fn close(&self, mut draft: Draft) -> Result<(), Fault> {
        self.refer(&mut draft, &self.added);
        draft.tell(News::AgentEnd { entries: self.added.clone() });
        draft.trim();
        draft.commit(self.hub.kernel()).await
    }

    async fn too_many_rounds(&mut self) -> Result<Ended, Fault> {
        self.session.queue.close();
        let text = format!("the agent was stopped after {} answers without an end", limits::ROUNDS);
        self.close(self.draft()).await?;
        let fault = Fault::new(Code::ResourceExhausted, text);
        Ok(Ended {
            stop_reason: StopReason::Error,
            error: Some(fault),
            text: String::new(),
            usage: self.usage,
        })
    }

    /// Makes room in the context when little of it is left.
    async fn compact_if_full(&mut self) -> Result<(), Fault> {
        let header = self.session.header();
        let window = self.hub.model(&header)?.about().context_window;
        let used = compact::used_tokens(&self.tree.context(header.leaf));
        if header.auto_compaction && used + limits::RESERVED_TOKENS.min(window / 4) > window {
            self.compact("threshold", false).await?;
        }
        Ok(())
    }

    /// Compacts in the middle of a prompt, and tells of it. Whether it worked.
    async fn compact(&mut self, reason: &str, will_retry: bool) -> Result<bool, Fault> {
        let mut draft = self.draft();
        draft.tell(News::AutoCompactionStart { reason: reason.to_owned() });
        draft.commit(self.hub.kernel()).await?;
        let outcome = compact::summarize(&self.hub, &self.session, &self.tree, None, &self.stop).await;
        let mut draft = self.draft();
        let (end, worked) = match outcome {
            Ok(made) => {
                self.add(&mut draft, made.body());
                let result = Some(made.told());
                (News::AutoCompactionEnd { aborted: false, will_retry, error_message: None, result }, true)
            }
            Err(fault) => {
                let aborted = fault.code == Code::Cancelled;
                let error_message = (!aborted).then(|| fault.message.clone().into_owned());
                (News::AutoCompactionEnd { aborted, will_retry: false, error_message, result: None }, false)
            }
        };
        draft.tell(end);
        draft.commit(self.hub.kernel()).await?;
        Ok(worked)
    }
}

/// An answer of the model, and why it is none if it failed.
struct Answer {
    message: Assistant,
    fault: Option<Fault>,
}
