//! The store: transactions as data. A batch commits whole and is durable when `commit` returns, or nothing of it happened.
//!
//! There are no interactive transactions: what must hold is said by guards. SQL is written once, in the common subset of
//! SQLite and PostgreSQL with `?1` parameters; what differs between them lives in the `stores` crate.

use std::borrow::Cow;

use futures::future::BoxFuture;
use tokio::sync::watch;

/// A value bound to a statement or read from a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'static, str>),
    Blob(Vec<u8>),
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Cell::Int(value)
    }
}
impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(Cow::Owned(value.to_owned()))
    }
}
impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(Cow::Owned(value))
    }
}
impl Cell {
    /// A word of the program itself, which is not copied.
    pub fn word(word: &'static str) -> Self {
        Cell::Text(Cow::Borrowed(word))
    }
}
impl From<Vec<u8>> for Cell {
    fn from(value: Vec<u8>) -> Self {
        Cell::Blob(value)
    }
}
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// One row of an answer. Columns are read by position, in the order the statement names them.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(pub Vec<Cell>);

impl Row {
    pub fn text(&self, column: usize) -> Result<&str, Error> {
        match self.0.get(column) {
            Some(Cell::Text(text)) => Ok(text),
            other => Err(Error::unexpected(column, "text", other)),
        }
    }

    pub fn optional_text(&self, column: usize) -> Result<Option<&str>, Error> {
        match self.0.get(column) {
            Some(Cell::Null) => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    pub fn int(&self, column: usize) -> Result<i64, Error> {
        match self.0.get(column) {
            Some(Cell::Int(int)) => Ok(*int),
            other => Err(Error::unexpected(column, "integer", other)),
        }
    }

    pub fn blob(&self, column: usize) -> Result<&[u8], Error> {
        match self.0.get(column) {
            Some(Cell::Blob(blob)) => Ok(blob),
            other => Err(Error::unexpected(column, "blob", other)),
        }
    }
}

/// SQL and its parameters. The SQL is a constant of a `tables.rs`, never built from input.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub sql: Cow<'static, str>,
    pub cells: Vec<Cell>,
}

impl Statement {
    pub fn new(sql: &'static str, cells: Vec<Cell>) -> Self {
        Self { sql: Cow::Borrowed(sql), cells }
    }
}

/// What a statement of a batch must have changed, or the whole batch is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    Any,
    /// Exactly this many rows, or `Error::Conflict`.
    Rows(usize),
    /// Exactly one row was inserted, or `Error::Conflict`; it becomes the next leaf of this Merkle log, with the cells of the
    /// statement as its values. The rowids of the table number the leaves, from 1 on. A store without the log only checks the row.
    Leaf(&'static str),
}

impl Guard {
    /// How many rows must have changed, if that matters.
    pub fn rows(self) -> Option<usize> {
        match self {
            Guard::Any => None,
            Guard::Rows(rows) => Some(rows),
            Guard::Leaf(_) => Some(1),
        }
    }
}

/// An entry for a hash chain: the store gives it the next number and chains it to the one before, in commit order.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub chain: Cow<'static, str>,
    pub at_ms: i64,
    /// Canonical JSON of what is recorded.
    pub body: String,
}

/// Statements and links of one batch: a larger one is refused by every store, so callers split their work below it.
pub const BATCH_STEPS_MAX: usize = 10_000;

/// What a commit does: statements in order, then links. All or nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    pub steps: Vec<(Statement, Guard)>,
    pub links: Vec<Link>,
    /// Topics whose watchers wake once the batch is durable.
    pub topics: Vec<Cow<'static, str>>,
}

impl Batch {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn then(&mut self, statement: Statement) -> &mut Self {
        self.steps.push((statement, Guard::Any));
        self
    }

    /// Exactly one row must change.
    pub fn then_one(&mut self, statement: Statement) -> &mut Self {
        self.steps.push((statement, Guard::Rows(1)));
        self
    }

    /// Exactly one row must be inserted; it is appended to a Merkle log.
    pub fn then_logged(&mut self, statement: Statement, log: &'static str) -> &mut Self {
        self.steps.push((statement, Guard::Leaf(log)));
        self
    }

    pub fn link(&mut self, link: Link) -> &mut Self {
        self.links.push(link);
        self
    }

    pub fn wake(&mut self, topic: impl Into<Cow<'static, str>>) -> &mut Self {
        self.topics.push(topic.into());
        self
    }

    /// Takes in everything of another batch, after what is here.
    pub fn merge(&mut self, other: Batch) -> &mut Self {
        self.steps.extend(other.steps);
        self.links.extend(other.links);
        self.topics.extend(other.topics);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.links.is_empty() && self.topics.is_empty()
    }
}

/// What went wrong. After anything but `Conflict` and `Refused` the caller must not assume that nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A guard did not hold; nothing of the batch happened.
    #[error("step {step} of the batch expected {expected} rows and changed {found}")]
    Conflict { step: usize, expected: usize, found: usize },
    /// The batch itself is wrong (a constraint, a type, unknown SQL); nothing of it happened.
    #[error("the store refused the statement: {0}")]
    Refused(String),
    /// The disk is full or the file cannot be written now; nothing of the batch happened.
    #[error("the store cannot write: {0}")]
    Full(String),
    /// Stored data fails its check.
    #[error("stored data is damaged: {0}")]
    Corrupt(String),
    /// The store has stopped; whether the batch happened is not known.
    #[error("the store has stopped")]
    Closed,
}

impl Error {
    fn unexpected(column: usize, wanted: &str, found: Option<&Cell>) -> Self {
        Error::Corrupt(format!("column {column} should hold {wanted} and holds {found:?}"))
    }
}

/// A durable store. Cheap to share; every method may be called from anywhere.
pub trait Store: Send + Sync + 'static {
    /// Durable when it returns.
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>>;

    /// Reads what is committed.
    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>>;

    /// Changes whenever a batch that wakes the topic has become durable. Bounded by the number of distinct topics watched.
    fn watch(&self, topic: &str) -> watch::Receiver<u64>;
}
