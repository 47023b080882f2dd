//! The limits of workflows, each with its reason.

/// A larger definition is refused: it is stored, hashed and shown whole.
pub const DEFINITION_BYTES: usize = 1_048_576;

/// Steps of one workflow; the graph is looked at in full at every transition.
pub const STEPS: usize = 1000;

/// A step's output beyond this is refused (contract: results over 512 KiB).
pub const OUTPUT_BYTES: usize = 524_288;

/// All outputs of one execution together: they are held in memory while it runs.
pub const OUTPUTS_BYTES: usize = 33_554_432;

/// Depth of a path in an expression (WF-19.5).
pub const PATH_DEPTH: usize = 10;

/// What the expressions of one text may expand to (WF-19.5).
pub const EXPANSION_BYTES: usize = 65_536;

/// A default value in an expression (WF-19.5).
pub const DEFAULT_BYTES: usize = 1024;

/// Validated definitions kept in memory.
pub const DEFINITIONS_KEPT: usize = 256;

/// Items of one `forEach`: each is a record of its own.
pub const ITEMS: usize = 10_000;

/// Rounds of one `while`.
pub const ITERATIONS: u32 = 10_000;

/// Workflows inside workflows.
pub const CHILD_DEPTH: usize = 8;

/// Events that nobody waits for yet, kept for one execution.
pub const SIGNALS_KEPT: usize = 100;

/// One entry of the journal (WF-19.7).
pub const ENTRY_BYTES: usize = 8192;

/// One field of an entry (WF-19.7).
pub const FIELD_BYTES: usize = 1024;

/// The journal of one execution (WF-19.7).
pub const JOURNAL_BYTES: usize = 10_485_760;

/// Steps that run at once in the whole process (WF-19.3).
pub const RUNNING_STEPS: usize = 10;

/// How long a ready step waits for a slot.
pub const QUEUE_WAIT_MS: u64 = 30_000;

/// How long cancelled steps may take to clean up (WF-19.4).
pub const GRACE_MS: u64 = 5000;

/// How long late ends of cancelled steps are still recorded (WF-19.4).
pub const CLEANUP_MS: u64 = 2000;

/// What the expressions of one template may grow to together: an input is held for as long as its step runs.
pub const RESOLVED_BYTES: usize = 8_388_608;

/// Parentheses and `!` inside each other in a condition: its parser calls itself.
pub const CONDITION_DEPTH: usize = 32;

/// Executions that may wait for their turn to begin; they are stored, but their line is in memory.
pub const QUEUED_EXECUTIONS: usize = 100_000;

/// Ended executions kept in memory, so that whoever waited for the end reads it without the store.
pub const RECENT: usize = 512;

/// Messages that may wait for one execution.
pub const INBOX: i64 = 1000;
