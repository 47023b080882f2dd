//! Following a session: its events reach those who asked for them, in order, each made ready once (SES-6.1).

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Event, Fault, Priority};
use orchestr8_kernel::bus::{Bus, Filter, Subscription};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::catch_up::{self, Record};
use crate::limits::HELD_EVENTS;
use crate::outbox::{Outbox, Weight};
use crate::wire::{self, Frame};

/// The news of one session on the bus.
pub const SESSION_EVENT: &str = "session.event";

/// One event, ready to be sent.
pub struct Ready {
    pub seq: u64,
    pub frame: Frame,
    pub weight: Weight,
}

/// One client that follows one session.
pub struct Follower {
    pub session: Arc<str>,
    pub outbox: Arc<Outbox>,
    pub record: Record,
    state: Mutex<State>,
    /// It has been released before: the client follows it whatever becomes of a second wish to.
    was_live: AtomicBool,
}

enum State {
    /// Events go to the client as they come; the last one it got, if any.
    Live { last: Option<u64> },
    /// Events wait until something else was said.
    Held(Held),
    /// The session is gone.
    Ended,
}

#[derive(Default)]
struct Held {
    last: Option<u64>,
    waiting: VecDeque<Ready>,
    /// Some could not wait and must be read from the record.
    overflowed: bool,
    /// Missed events are being sent.
    catching_up: bool,
}

/// What became of the events that waited.
#[derive(Debug, PartialEq, Eq)]
pub enum Released {
    /// All are sent; from here on events go to the client as they come.
    Live,
    /// The client has to take what it got first.
    Full,
    /// Some could not wait: the record is to be read on.
    Again,
    Ended,
}

impl Follower {
    pub fn new(session: Arc<str>, outbox: Arc<Outbox>, record: Record) -> Self {
        let state = Mutex::new(State::Held(Held::default()));
        Self { session, outbox, record, state, was_live: AtomicBool::new(false) }
    }

    pub fn is_ended(&self) -> bool {
        matches!(*self.state.lock(), State::Ended)
    }

    pub fn was_live(&self) -> bool {
        self.was_live.load(Ordering::Acquire)
    }

    /// Keeps events back until they are released.
    pub fn hold(&self) {
        let mut state = self.state.lock();
        if let State::Live { last } = *state {
            *state = State::Held(Held { last, ..Held::default() });
        }
    }

    /// Lets events go again; first those after `after`, if the client missed some.
    pub fn release(self: &Arc<Self>, after: Option<u64>) {
        let mut state = self.state.lock();
        let State::Held(held) = &mut *state else { return };
        self.was_live.store(true, Ordering::Release);
        if held.catching_up {
            return;
        }
        let overflowed = held.overflowed.then_some(held.last).flatten();
        if let Some(after) = after.or(overflowed) {
            held.catching_up = true;
            drop(state);
            tokio::spawn(catch_up::run(self.clone(), after));
            return;
        }
        let mut last = held.last;
        for ready in held.waiting.drain(..) {
            if last.is_none_or(|last| ready.seq > last) {
                last = Some(ready.seq);
                self.outbox.push(ready.frame, ready.weight);
            }
        }
        *state = State::Live { last };
    }

    /// Sends what waited and comes after this event, as far as the client takes it.
    pub fn flush(&self, after: &mut u64) -> Released {
        let mut state = self.state.lock();
        let State::Held(held) = &mut *state else { return Released::Ended };
        while self.outbox.has_room() {
            let Some(ready) = held.waiting.pop_front() else {
                if std::mem::take(&mut held.overflowed) {
                    return Released::Again;
                }
                *state = State::Live { last: Some(*after) };
                return Released::Live;
            };
            if ready.seq > *after {
                *after = ready.seq;
                self.outbox.push(ready.frame, ready.weight);
            }
        }
        Released::Full
    }

    /// Goes on with what waits, whatever is missing: there is no record to read it from.
    pub fn give_up_gap(&self) {
        if let State::Held(held) = &mut *self.state.lock() {
            held.overflowed = false;
        }
    }

    fn end(&self) {
        *self.state.lock() = State::Ended;
    }

    /// Takes an event in. A gap means that some were lost on the way here: they are read from the record.
    fn hear(self: &Arc<Self>, ready: Ready) {
        let mut state = self.state.lock();
        match &mut *state {
            State::Live { last } => match *last {
                Some(last) if ready.seq <= last => {}
                Some(last) if ready.seq > last + 1 => {
                    let waiting = VecDeque::from([ready]);
                    *state =
                        State::Held(Held { last: Some(last), waiting, overflowed: false, catching_up: true });
                    drop(state);
                    tokio::spawn(catch_up::run(self.clone(), last));
                }
                Some(_) | None => {
                    *last = Some(ready.seq);
                    self.outbox.push(ready.frame, ready.weight);
                }
            },
            State::Held(held) if held.waiting.len() >= HELD_EVENTS => {
                held.waiting.clear();
                held.overflowed = true;
            }
            State::Held(held) => held.waiting.push_back(ready),
            State::Ended => {}
        }
    }
}

/// One session that somebody follows.
struct Topic {
    session: Arc<str>,
    tenant: Tenant,
    followers: Mutex<Vec<Arc<Follower>>>,
    news: Mutex<Subscription>,
    over: CancellationToken,
}

impl Topic {
    /// Hands on everything that is on the bus now. One at a time, so that the order holds.
    fn pump(&self) {
        let mut news = self.news.lock();
        while let Some(event) = news.try_next() {
            self.tell(&event);
        }
    }

    async fn run(self: Arc<Self>) {
        loop {
            let next = poll_fn(|context| {
                let mut news = self.news.lock();
                let next = pin!(news.next()).poll(context);
                next.map(|event| event.map(|event| self.tell(&event)))
            });
            tokio::select! {
                biased;
                () = self.over.cancelled() => return,
                told = next => if told.is_none() { return },
            }
        }
    }

    fn tell(&self, event: &Event) {
        let data = &*event.data;
        if data.get("tenant").and_then(Value::as_str) != Some(self.tenant.as_str()) {
            return;
        }
        let (Some(seq), Some(inner)) = (data.get("seq").and_then(Value::as_u64), data.get("event")) else {
            return;
        };
        let weight = match event.priority {
            Priority::Critical => Weight::Critical,
            Priority::Normal => Weight::Broadcast,
        };
        let frame = frame(&self.session, seq, inner);
        for follower in self.followers.lock().iter() {
            follower.hear(Ready { seq, frame: frame.clone(), weight });
        }
    }
}

/// One event of a session as its followers read it.
pub fn frame(session: &str, seq: u64, event: &Value) -> Frame {
    wire::frame(&wire::SessionEvent { kind: "event", session_id: session, seq, event })
}

type Subject = (Tenant, Arc<str>);

/// The sessions that are followed.
pub struct Topics {
    bus: Bus,
    by_subject: Mutex<HashMap<Subject, Arc<Topic>>>,
    count: AtomicUsize,
}

impl Topics {
    pub fn new(bus: Bus) -> Self {
        Self { bus, by_subject: Mutex::default(), count: AtomicUsize::new(0) }
    }

    /// Listens from now on. The events wait until the follower is released.
    pub fn join(&self, tenant: &Tenant, follower: &Arc<Follower>) -> Result<(), Fault> {
        let subject = (tenant.clone(), follower.session.clone());
        let mut by_subject = self.by_subject.lock();
        if let Some(topic) = by_subject.get(&subject) {
            // What is on the bus already happened before this one asked.
            topic.pump();
            topic.followers.lock().push(follower.clone());
            return Ok(());
        }
        let filter = Filter::names([SESSION_EVENT]).about(follower.session.clone());
        let topic = Arc::new(Topic {
            session: follower.session.clone(),
            tenant: tenant.clone(),
            followers: Mutex::new(vec![follower.clone()]),
            news: Mutex::new(self.bus.subscribe(&filter)?),
            over: CancellationToken::new(),
        });
        tokio::spawn(topic.clone().run());
        by_subject.insert(subject, topic);
        self.count.store(by_subject.len(), Ordering::Release);
        Ok(())
    }

    pub fn leave(&self, tenant: &Tenant, follower: &Arc<Follower>) {
        follower.end();
        let subject = (tenant.clone(), follower.session.clone());
        let mut by_subject = self.by_subject.lock();
        let Some(topic) = by_subject.get(&subject) else { return };
        let mut followers = topic.followers.lock();
        followers.retain(|other| !Arc::ptr_eq(other, follower));
        let is_empty = followers.is_empty();
        drop(followers);
        if is_empty {
            topic.over.cancel();
            by_subject.remove(&subject);
            self.count.store(by_subject.len(), Ordering::Release);
        }
    }

    /// The session is gone, and with it everybody's following.
    pub fn end(&self, tenant: &Tenant, session: &str) {
        let Some(topic) = self.find(tenant, session) else { return };
        topic.pump();
        let mut by_subject = self.by_subject.lock();
        by_subject.remove(&(tenant.clone(), topic.session.clone()));
        self.count.store(by_subject.len(), Ordering::Release);
        drop(by_subject);
        topic.over.cancel();
        topic.followers.lock().iter().for_each(|follower| follower.end());
    }

    /// Hands on what has happened in a session so far, so that it is told before the end of the command that did it.
    pub fn pump(&self, tenant: &Tenant, session: &str) {
        if let Some(topic) = self.find(tenant, session) {
            topic.pump();
        }
    }

    fn find(&self, tenant: &Tenant, session: &str) -> Option<Arc<Topic>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.by_subject.lock().get(&(tenant.clone(), Arc::from(session))).cloned()
    }
}
