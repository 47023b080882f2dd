//! The limits of workflows, each with its reason.

use orchestr8_kernel::ports::store;

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

/// Statements of a commit beyond which an execution writes before it goes on. Steps without effects outside share commits: a loop
/// of ten thousand of them takes several.
pub const COMMIT_STATEMENTS: usize = 1000;

/// The most statements that follow from one event: each step is noted, and its timer and its question are closed.
const EVENT_STATEMENTS: usize = 3 * STEPS + 100;

// A commit is over the limit by what one event adds, and by the first commit of one child. The rest is the caller's: ledger, audit.
const _: () = assert!(2 * (COMMIT_STATEMENTS + EVENT_STATEMENTS) + 200 <= store::BATCH_STEPS_MAX);

/// Records of a journal that are read at once: each may hold an output.
pub const RECORDS_READ: i64 = 100;

/// What a child could not undo that its report to the parent lists; the child itself lists all of it.
pub const UNDO_LISTED: usize = 20;

/// Workflows inside workflows.
pub const CHILD_DEPTH: usize = 8;

/// Events that one execution keeps for steps that will wait for them, those that it has not heard of yet included.
pub const SIGNALS_KEPT: i64 = 100;

/// Ids of events that one execution remembers, so that an event sent again is not delivered again.
pub const SIGNAL_IDS: usize = 1000;

/// One entry of the journal (WF-19.7).
pub const ENTRY_BYTES: usize = 8192;

/// One field of an entry (WF-19.7).
pub const FIELD_BYTES: usize = 1024;

/// The journal of one execution (WF-19.7).
pub const JOURNAL_BYTES: usize = 10_485_760;

/// What an entry holds beside its data: ids, type, level, and which fields were truncated.
pub const ENTRY_FRAME_BYTES: usize = 2048;

/// Operations of one `@orchestr8/transform`, nested ones included.
pub const OPERATIONS: usize = 64;

/// Operations inside operations: their reader and their work call themselves.
pub const OPERATION_DEPTH: usize = 8;

/// What all operations of one transform may make together, so that few words cannot grow into much memory.
pub const TRANSFORMED_BYTES: usize = 16_777_216;

/// A response that `@orchestr8/http` or a remote agent reads; a step's output is smaller still.
pub const RESPONSE_BYTES: usize = 1_048_576;

/// What is read of the body of a refusal, and what of it a fault shows.
pub const REFUSAL_READ_BYTES: usize = 4096;
pub const REFUSAL_SHOWN_BYTES: usize = 1024;

/// Headers of one request, and the bytes of one of them, as servers commonly limit them.
pub const REQUEST_HEADERS: usize = 64;
pub const REQUEST_HEADER_BYTES: usize = 8192;

/// The address of a request.
pub const URL_BYTES: usize = 8192;

/// How long a remote agent may take when its settings do not say.
pub const REMOTE_AGENT_MS: u64 = 30_000;

/// How long a remote agent may take to say whether it is well.
pub const REMOTE_HEALTH_MS: u64 = 2000;

/// What a fault shows of what a tool says when it fails.
pub const TOOL_MESSAGE_BYTES: usize = 2048;

/// Bytes of one argument of a program of `@orchestr8/exec`, below what systems accept.
pub const PROGRAM_ARGUMENT_BYTES: usize = 65_536;

/// What is kept of a program's stderr, and what of it a fault shows.
pub const STDERR_KEPT_BYTES: usize = 8192;
pub const STDERR_SHOWN_BYTES: usize = 2048;

/// Tasks that wait for workers or are with them, in all queues together: each holds its input in memory.
pub const WORKER_TASKS: usize = 10_000;

/// Those of one queue of one tenant; beyond it steps wait for their turn, so that one queue without workers leaves room for others.
pub const WORKER_QUEUE_TASKS: usize = WORKER_TASKS / 2;

/// Calls of one remote agent at once, when its settings do not say; beyond it steps wait for their turn.
pub const REMOTE_AGENT_CALLS: usize = 64;

/// Requests of one tenant that wait for the answer of another agent; beyond it steps wait for their turn.
pub const OPEN_REQUESTS: usize = 1000;

/// Polls of workers that wait at once.
pub const WORKER_POLLS: usize = 1000;

/// How long one poll may wait: proxies cut off longer silence.
pub const WORKER_WAIT_MS: u64 = 60_000;

/// Tasks one poll may take.
pub const WORKER_BATCH: usize = 100;

/// How long a task is a worker's without a sign of life, when its step does not say; and the bounds for saying it.
pub const LEASE_MS: u64 = 30_000;
pub const LEASE_MIN_MS: u64 = 100;
pub const LEASE_MAX_MS: u64 = 3_600_000;

/// Ended tasks whose workers can still learn that they were cancelled.
pub const ENDED_TASKS_KEPT: usize = 1024;

/// A worker's error message beyond this is cut.
pub const WORKER_MESSAGE_BYTES: usize = 4096;

/// A shorter secret is not searched for: it would be found everywhere.
pub const SECRET_SEARCHED_BYTES: usize = 4;

/// Steps that this process works on at once (WF-19.3).
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

/// Those of one tenant that run or wait: half of the line, so that others always find room in it.
pub const EXECUTIONS_PER_TENANT: usize = QUEUED_EXECUTIONS / 2;

/// Ended executions kept in memory, so that whoever waited for the end reads it without the store.
pub const RECENT: usize = 512;

/// Rows on one page of a list, and executions that one request takes up again: they all go into one commit.
pub const PAGE: i64 = 500;

/// A longer name of a field is cut in the journal.
pub const FIELD_NAME_BYTES: usize = 128;

/// So many fields that were cut are named in an entry; `*` stands for the others.
pub const CUT_FIELDS_NAMED: usize = 8;
