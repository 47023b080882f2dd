//! What the parts of the runtime ask of what they share: claims of executions, numbers, news.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Event, Fault, Priority};
use orchestr8_kernel::Log;
use orchestr8_kernel::registry::RESOURCE_UPDATED;
use serde_json::json;

use super::line::Line;
use super::{Live, Shared};

impl Shared {
    pub(super) fn check_started(&self) -> Result<(), Fault> {
        match self.started.load(Ordering::Acquire) {
            true => Ok(()),
            false => Err(Fault::new(Code::Unavailable, "workflows have not started yet")),
        }
    }

    pub(super) fn log(&self) -> &Log {
        &self.ports.log
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.ports.clock.now_ms()
    }

    /// Takes the line of an execution that has no actor, or gives the way to the one it has. One execution never has two.
    pub(super) fn claim(self: &Arc<Self>, num: i64) -> Result<Line, Live> {
        self.adopt(num);
        let mut live = self.live.lock();
        if let Some(live) = live.get(&num) {
            return Err(live.clone());
        }
        let line = Line::new(self.clone(), num);
        live.insert(num, line.live());
        Ok(line)
    }

    /// Tells those who follow the resource of an execution that it has changed; costs next to nothing without them.
    pub(super) fn tell_changed(&self, tenant: &Tenant, execution: &str) {
        let bus = self.kernel.bus();
        if bus.has_listeners(RESOURCE_UPDATED) {
            bus.publish(Event {
                name: RESOURCE_UPDATED,
                subject: format!("execution://{execution}").into(),
                priority: Priority::Normal,
                at_ms: self.now_ms(),
                data: Arc::new(json!({"tenant": tenant})),
            });
        }
    }

    /// From here on its timers are ours; some may have been due for long.
    pub(super) fn adopt(&self, num: i64) {
        if self.own.get().is_some_and(|own| own.lock().insert(num)) {
            self.timers.notify_one();
        }
    }

    /// Whether this process is to move it on by itself.
    pub(super) fn is_own(&self, num: i64) -> bool {
        self.own.get().is_none_or(|own| own.lock().contains(&num))
    }

    pub(super) fn fresh_number(&self) -> i64 {
        let num = self.numbers.fetch_add(1, Ordering::AcqRel) + 1;
        self.adopt(num);
        num
    }

    pub(super) fn fresh_message(&self) -> i64 {
        self.messages.fetch_add(1, Ordering::AcqRel) + 1
    }
}
