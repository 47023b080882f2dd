//! One session in memory: what is true of it now, what it is doing, and who waits for what.

mod doing;
mod draft;
mod questions;
mod queue;

use std::collections::VecDeque;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Event, Fault, Priority};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Batch;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::limits;
use crate::news;
use crate::record::Header;
use crate::tables::{self, Whose};

pub use doing::{Doing, Slot};
pub use draft::Draft;
pub use questions::Questions;
pub use queue::{Coming, Queue};

pub struct Session {
    pub tenant: Tenant,
    pub id: Arc<str>,
    pub created_ms: i64,
    pub doing: Doing,
    pub questions: Questions,
    pub queue: Queue,
    state: Mutex<State>,
}

struct State {
    header: Header,
    /// The last event number given, the last one that was told, and the last one that is reserved in the store.
    seq: u64,
    told: u64,
    reserved: u64,
    /// Events of the turn under way.
    recent: VecDeque<(u64, Arc<Value>)>,
    /// Drafts that have numbers and are not durable yet, and what is told once they are: numbers are told in order.
    drafts: usize,
    held_back: Vec<(Value, Priority)>,
}

impl Session {
    pub fn new(tenant: Tenant, id: Arc<str>, created_ms: i64, seq: u64, header: Header) -> Self {
        Self {
            tenant,
            id,
            created_ms,
            doing: Doing::default(),
            questions: Questions::default(),
            queue: Queue::default(),
            state: Mutex::new(State {
                header,
                seq,
                told: seq,
                reserved: seq,
                recent: VecDeque::new(),
                drafts: 0,
                held_back: Vec::new(),
            }),
        }
    }

    pub fn whose(&self) -> Whose<'_> {
        Whose { tenant: self.tenant.as_str(), session: &self.id }
    }

    pub fn header(&self) -> Header {
        self.state.lock().header.clone()
    }

    /// Looks at the header without copying it.
    pub fn with_header<T>(&self, look: impl FnOnce(&Header) -> T) -> T {
        look(&self.state.lock().header)
    }

    pub fn install(&self, header: Header) {
        self.state.lock().header = header;
    }

    /// The number of the last event that was told. What is being made durable has numbers and is no event yet.
    pub fn last_seq(&self) -> u64 {
        self.state.lock().told
    }

    /// The number of the last event, and the events in memory after a number, as they are at one moment.
    pub fn recent_after(&self, after: u64) -> (u64, Vec<(u64, Arc<Value>)>) {
        let state = self.state.lock();
        (state.told, state.recent.iter().filter(|(seq, _)| *seq > after).cloned().collect())
    }

    /// Nothing is under way any more: everything that can be asked for later is in the store.
    pub fn forget_recent(&self) {
        self.state.lock().recent = VecDeque::new();
    }

    /// A draft begins or ends to have numbers.
    fn hold_back(&self) {
        self.state.lock().drafts += 1;
    }

    fn let_go(&self, kernel: &Kernel) {
        let held_back = {
            let mut state = self.state.lock();
            state.drafts = state.drafts.saturating_sub(1);
            if state.drafts > 0 { Vec::new() } else { std::mem::take(&mut state.held_back) }
        };
        for (event, priority) in held_back {
            self.whisper(kernel, event, priority);
        }
    }

    /// The next event number; the number up to which to reserve, if few are left.
    fn number(&self) -> (u64, Option<u64>) {
        let mut state = self.state.lock();
        state.seq += 1;
        let few = state.seq + limits::SEQ_BLOCK / 2 > state.reserved;
        (state.seq, few.then(|| state.seq + limits::SEQ_BLOCK))
    }

    fn reserved(&self, upto: u64) {
        let mut state = self.state.lock();
        state.reserved = state.reserved.max(upto);
    }

    /// Sees to it that there are numbers for what is told without a commit of its own.
    pub async fn reserve(&self, kernel: &Kernel) -> Result<(), Fault> {
        let upto = {
            let state = self.state.lock();
            let few = state.seq + limits::SEQ_BLOCK / 2 > state.reserved;
            if !few {
                return Ok(());
            }
            state.seq + limits::SEQ_BLOCK
        };
        let mut batch = Batch::new();
        batch.then(tables::session_reserve(self.whose(), upto));
        kernel.ports().store.commit(batch).await.map_err(store_fault)?;
        self.reserved(upto);
        Ok(())
    }

    /// Tells subscribers of something that is not kept: a delta, progress, a question. Its number; none when it has none yet,
    /// because something before it is not durable, or when no number is left, and then it is not told.
    pub fn whisper(&self, kernel: &Kernel, event: Value, priority: Priority) -> Option<u64> {
        let (seq, data) = {
            let mut state = self.state.lock();
            if state.drafts > 0 && state.held_back.len() < limits::HELD_BACK {
                state.held_back.push((event, priority));
                return None;
            }
            if state.drafts > 0 || state.seq >= state.reserved {
                return None;
            }
            state.seq += 1;
            let seq = state.seq;
            // In one step with its number: whoever is told that number finds the event.
            let data = self.data(seq, event);
            state.remember(seq, &data);
            (seq, data)
        };
        self.publish(kernel, data, priority);
        Some(seq)
    }

    /// Tells subscribers of something that is durable under its number.
    fn tell(&self, kernel: &Kernel, seq: u64, event: Value) {
        let data = self.data(seq, event);
        self.state.lock().remember(seq, &data);
        self.publish(kernel, data, Priority::Critical);
    }

    fn data(&self, seq: u64, event: Value) -> Arc<Value> {
        Arc::new(json!({"tenant": self.tenant, "sessionId": &*self.id, "seq": seq, "event": event}))
    }

    fn publish(&self, kernel: &Kernel, data: Arc<Value>, priority: Priority) {
        kernel.bus().publish(Event {
            name: news::EVENT,
            subject: self.id.clone(),
            priority,
            at_ms: kernel.ports().clock.now_ms(),
            data,
        });
    }
}

impl State {
    fn remember(&mut self, seq: u64, data: &Arc<Value>) {
        let update = |data: &Value| data["event"]["type"] == "message_update";
        // An update tells the message so far: the last one stands for those before it.
        let stale = update(data) && self.recent.back().is_some_and(|(_, last)| update(last));
        if stale {
            self.recent.pop_back();
        } else if self.recent.len() >= limits::EVENTS_IN_MEMORY {
            self.recent.pop_front();
        }
        self.recent.push_back((seq, data.clone()));
        self.told = seq;
    }
}
