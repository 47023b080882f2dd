//! The calls of one server that are under way: who hears of their progress, and who is asked what the server asks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use orchestr8_kernel::Context;
use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestId};
use rmcp::service::InboundStreamOrigin;
use tokio::sync::Notify;

use super::limits::GIVEN_UP_MS;
use super::questions::Asker;

/// News of calls that are not known yet, or no more; the oldest is forgotten first.
const EARLY: usize = 64;

/// As many calls as the server has slots, at most.
#[derive(Default)]
pub struct Calls {
    table: Mutex<Table>,
    /// Some call was named or is over.
    news: Notify,
}

#[derive(Default)]
struct Table {
    last: u64,
    calls: BTreeMap<u64, Call>,
    /// Progress that was heard of before its call was named.
    early: VecDeque<ProgressNotificationParam>,
    /// Until then a question may be one of a call that was given up.
    unclear_until_us: u64,
}

struct Call {
    asker: Arc<Asker>,
    /// What the call is called on the wire, which the library tells only once it is sent.
    name: Option<(RequestId, ProgressToken)>,
    task: Task,
}

/// The task of a call at the server.
enum Task {
    None,
    /// It is to become one.
    Awaited,
    Known(String),
}

/// In which call a server said something.
pub enum Speaker {
    Call(Context),
    /// Nothing says so; with the one call it could be, if there is just one.
    Unknown(Option<Context>),
}

/// One call; dropped, it is over.
pub struct UnderWay {
    calls: Arc<Calls>,
    number: u64,
    answered: bool,
}

impl Calls {
    pub fn enter(self: &Arc<Self>, asker: Arc<Asker>, as_task: bool) -> UnderWay {
        let mut table = self.table.lock();
        table.last += 1;
        let number = table.last;
        let task = if as_task { Task::Awaited } else { Task::None };
        table.calls.insert(number, Call { asker, name: None, task });
        UnderWay { calls: self.clone(), number, answered: false }
    }

    pub fn progressed(&self, news: ProgressNotificationParam) {
        let mut table = self.table.lock();
        let is_its =
            |call: &&Call| call.name.as_ref().is_some_and(|(_, token)| *token == news.progress_token);
        match table.calls.values().find(is_its) {
            Some(call) => tell(&call.asker.context, &news),
            None => {
                if table.early.len() >= EARLY {
                    table.early.pop_front();
                }
                table.early.push_back(news);
            }
        }
    }

    /// Whose call a log message belongs to.
    pub fn speaker(&self, origin: Option<&InboundStreamOrigin>) -> Speaker {
        let table = self.table.lock();
        match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => {
                let is_its = |call: &&Call| call.name.as_ref().is_some_and(|(own, _)| own == id);
                match table.calls.values().find(is_its) {
                    Some(call) => Speaker::Call(call.asker.context.clone()),
                    None => Speaker::Unknown(None),
                }
            }
            Some(InboundStreamOrigin::Unassociated) | None => {
                let only = table.calls.values().next().filter(|_| table.calls.len() == 1);
                Speaker::Unknown(only.map(|call| call.asker.context.clone()))
            }
        }
    }

    /// Who made the call in which the server asks something.
    ///
    /// A question of a task says which task it is. Over HTTP any other question comes in the stream of its call. Over pipes
    /// nothing says which call it belongs to, so it can only be told while there is just one, and none was given up a moment
    /// ago whose server may not know it yet: to ask the wrong person would be worse than not to ask.
    pub async fn asker(
        &self,
        task: Option<&str>,
        origin: Option<&InboundStreamOrigin>,
    ) -> Option<Arc<Asker>> {
        if let Some(task) = task {
            return self.asker_of_task(task).await;
        }
        loop {
            let news = self.news.notified();
            {
                let table = self.table.lock();
                let found = match origin {
                    Some(InboundStreamOrigin::OutboundRequest(id)) => {
                        let is_its = |call: &&Call| call.name.as_ref().is_some_and(|(own, _)| own == id);
                        table.calls.values().find(is_its)
                    }
                    Some(InboundStreamOrigin::Unassociated) | None => {
                        let only = table.calls.values().next().filter(|_| table.calls.len() == 1)?;
                        let is_clear = only.asker.now_us() >= table.unclear_until_us;
                        return is_clear.then(|| only.asker.clone());
                    }
                };
                if let Some(call) = found {
                    return Some(call.asker.clone());
                }
                if table.calls.values().all(|call| call.name.is_some()) {
                    return None;
                }
            }
            // It was sent a moment ago, and its name is on the way.
            news.await;
        }
    }

    async fn asker_of_task(&self, task: &str) -> Option<Arc<Asker>> {
        loop {
            let news = self.news.notified();
            {
                let table = self.table.lock();
                let is_its = |call: &&Call| matches!(&call.task, Task::Known(own) if own == task);
                if let Some(call) = table.calls.values().find(is_its) {
                    return Some(call.asker.clone());
                }
                if !table.calls.values().any(|call| matches!(call.task, Task::Awaited)) {
                    return None;
                }
            }
            // A task may ask before the answer that tells its name has reached its call.
            news.await;
        }
    }
}

impl UnderWay {
    /// The server has answered, and asks nothing more in this call.
    pub fn answered(mut self) {
        self.answered = true;
    }

    /// The call has become this task, or, without one, was answered like any other.
    pub fn became(&self, task: Option<&str>) {
        if let Some(call) = self.calls.table.lock().calls.get_mut(&self.number) {
            call.task = task.map_or(Task::None, |task| Task::Known(task.to_owned()));
        }
        self.calls.news.notify_waiters();
    }

    /// The call was sent under this name.
    pub fn named(&self, id: RequestId, token: ProgressToken) {
        let mut table = self.calls.table.lock();
        let (own, others) = table.early.drain(..).partition(|news| news.progress_token == token);
        table.early = others;
        let own: VecDeque<ProgressNotificationParam> = own;
        if let Some(call) = table.calls.get_mut(&self.number) {
            own.into_iter().for_each(|news| tell(&call.asker.context, &news));
            call.name = Some((id, token));
        }
        drop(table);
        self.calls.news.notify_waiters();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut table = self.calls.table.lock();
        if let Some(call) = table.calls.remove(&self.number)
            && call.name.is_some()
            && !self.answered
        {
            table.unclear_until_us = call.asker.now_us() + GIVEN_UP_MS * 1000;
        }
        drop(table);
        self.calls.news.notify_waiters();
    }
}

fn tell(context: &Context, news: &ProgressNotificationParam) {
    context.progress(news.progress, news.total, news.message.as_deref());
}
