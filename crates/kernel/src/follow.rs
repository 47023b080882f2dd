//! Whoever handed a submission in and wants to know of its steps where they happen, in the order they happen.

use orchestr8_contract::Fault;

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
}
