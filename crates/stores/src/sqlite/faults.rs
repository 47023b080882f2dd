//! Fail points of a commit: where a test or a simulation may make it fail or make the process die.

/// A moment of a commit at which something may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// Before anything of the group is done.
    BeforeBegin,
    /// After one batch of a group is done, inside the transaction.
    AfterBatch,
    /// All batches are done and nothing is durable.
    BeforeCommit,
    /// All batches are durable and nobody has been told.
    AfterCommit,
}

impl Point {
    pub const ALL: [Point; 4] =
        [Point::BeforeBegin, Point::AfterBatch, Point::BeforeCommit, Point::AfterCommit];
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// As if the disk were full. After the commit it counts as a write error, and stops the store.
    Full,
    /// As if the disk reported a write error: the store stops.
    Broken,
    /// The process dies at once.
    Crash,
}

/// Decides what goes wrong. Asked at every point of every commit, in order.
pub trait FailPlan: Send + Sync + 'static {
    fn at(&self, point: Point) -> Fault;
}

/// Nothing goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct NoFaults;

impl FailPlan for NoFaults {
    fn at(&self, _: Point) -> Fault {
        Fault::None
    }
}
