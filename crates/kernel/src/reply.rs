//! What the work of an action gives back, or why it gives nothing.

use orchestr8_contract::{Fault, Output};

use crate::peer::Ask;
use crate::ports::store::Batch;

/// What an action gives back: its output, and what to write in the same commit as its outcome, so that it happens exactly once.
#[derive(Debug)]
pub struct Reply {
    pub output: Output,
    pub effects: Batch,
    pub then: Then,
}

impl Reply {
    pub fn new(output: Output, effects: Batch) -> Self {
        Self { output, effects, then: Then::default() }
    }

    /// Does this once the outcome and the effects are durable, before the answer leaves; never if they did not become so.
    #[must_use]
    pub fn then(mut self, act: impl FnOnce() + Send + 'static) -> Self {
        self.then = Then(Some(Box::new(act)));
        self
    }
}

impl From<Output> for Reply {
    fn from(output: Output) -> Self {
        Self::new(output, Batch::new())
    }
}

/// What follows from an outcome once it is on record.
#[derive(Default)]
pub struct Then(Option<Box<dyn FnOnce() + Send>>);

impl Then {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn act(self) {
        if let Some(act) = self.0 {
            act();
        }
    }
}

impl std::fmt::Debug for Then {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(if self.0.is_some() { "Then(..)" } else { "Then" })
    }
}

/// Why an action did not give a reply.
#[derive(Debug, Clone)]
pub enum Halt {
    Fault(Fault),
    /// It needs answers first; the client sends the call again with them.
    Asks(Vec<Ask>),
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Halt::Fault(fault)
    }
}
