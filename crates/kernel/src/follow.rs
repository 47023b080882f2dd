//! Whoever handed a submission in and wants to know of its steps where they happen, in the order they happen.

use orchestr8_contract::Fault;

use crate::outcome::Settled;

/// Called on the path itself: it must be quick and must not wait.
pub trait Follow: Send + Sync + 'static {
    /// The last word before the submission is accepted, once it is known not to be a repeat: rate limits live here. An error
    /// refuses it, and leaves no trace.
    fn admit(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// It is accepted, and on record as far as its policy wants it to be.
    fn accepted(&self);

    /// It is its turn in its lane.
    fn started(&self);

    /// A failure in the words of whoever asked, before it becomes the outcome: repeats and those who depend on it read the same.
    fn word(&self, fault: Fault) -> Fault {
        fault
    }

    /// Its outcome is on record, nobody behind it in its lane has begun, and nobody who depends on it knows yet. Not called for a
    /// repeat, nor for what no room was found for: whoever submitted that learns of it from the answer alone.
    fn finished(&self, _settled: &Settled) {}
}
