//! The limits of workflows, each with its reason.

use orchestr8_kernel::ports::store;

/// A larger definition is refused: it is stored, hashed and shown whole.
pub const DEFINITION_BYTES: usize = 1_048_576;

/// Steps of one workflow; the graph is looked at in full at every transition.
pub const STEPS: usize = 1000;

/// A step's output beyond this is refused (contract: results over 512 KiB).
pub const OUTPUT_BYTES: usize = 524_288;

/// A result that is kept as an artifact: it is held in memory while it is read, written and sent, and is one value of the store, which
/// takes 32 MiB.
pub const ARTIFACT_BYTES: usize = 16_777_216;

/// All artifacts of one tenant together: they share the data file with everything else.
pub const ARTIFACTS_BYTES: usize = 4_294_967_296;

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

/// Statements of a commit beyond which an execution writes and yields to other tasks. Steps without effects outside share commits: a
/// loop of ten thousand of them takes many, so that it does not keep a thread of the runtime for long.
pub const COMMIT_STATEMENTS: usize = 250;

/// The same for the bytes that pure steps have read and that are to be written: a step over 50 kB costs as much as a hundred small ones.
pub const COMMIT_BYTES: usize = 256 * 1024;

/// The most statements that follow from one event: each step is noted, and its timer and its question are closed.
const EVENT_STATEMENTS: usize = 3 * STEPS + 100;

// A commit is over the limit by what one event adds, and by the first commit of one child. The rest is the caller's: ledger, audit.
const _: () = assert!(2 * (COMMIT_STATEMENTS + EVENT_STATEMENTS) + 200 <= store::BATCH_STEPS_MAX);

/// Records of a journal that are read at once: each may hold an output.
pub const RECORDS_READ: i64 = 100;

/// How long an undo waits for an open circuit that does not say when it lets calls through again.
pub const UNDO_CIRCUIT_WAIT_MS: u64 = 1_000;

/// Effects of earlier runs that could not be undone and stay listed: as many as a loop has rounds. Beyond them only the journal tells.
pub const ABANDONED_EFFECTS: usize = 10_000;

/// What a child could not undo that its report to the parent lists; the child itself lists all of it.
pub const UNDO_LISTED: usize = 20;

/// Workflows inside workflows.
pub const CHILD_DEPTH: usize = 8;

/// Children of one tree that have not ended, at each level. Beyond it the next one waits. Those that start children of their own are in
/// memory meanwhile, so this bounds what one tree takes: with all levels full a few thousand executions, a fraction of the tenant's.
pub const EXECUTIONS_PER_TREE_LEVEL: usize = 500;

/// Children that begin at the same time, of all executions: beginning one is work without a pause, and requests are served by the same
/// threads. Those that start children take turns by tenant, root workflow and root.
pub const CHILD_STARTS: usize = 2;

/// Executions that one execution may start in all, with those that they start: ten loops of the largest size. Children that start children
/// without an end fail at it.
pub const EXECUTIONS_PER_TREE: usize = 10 * ITEMS;

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

/// A response that `@orchestr8/http` or a remote agent reads: what is longer can be no output, so the rest is not read.
pub const RESPONSE_BYTES: usize = OUTPUT_BYTES;

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

/// The most that it can be set to, in the settings or while the server runs: each call holds a connection.
pub const REMOTE_AGENT_CALLS_MAX: usize = 10_000;

/// The most starts in a minute that a tenant can be limited to.
pub const STARTS_PER_MINUTE: usize = 1_000_000;

/// Limits of one tenant that were changed while the server runs: all are in memory.
pub const LIMIT_OVERRIDES: usize = 1000;

/// The name of what is limited: an agent, a queue.
pub const LIMIT_NAME_CHARACTERS: usize = 256;

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

/// Values of inputs and outputs that are searched for in the message of an error, so that a journal does not show them.
pub const VALUES_SEARCHED: usize = 2000;

/// Lines that the server's log has about executions in one window, for all tenants and for one; more are counted.
pub const LOG_LINES: usize = 300;
pub const LOG_LINES_PER_TENANT: usize = 100;
pub const LOG_WINDOW_MS: u64 = 10_000;

/// A journal is told at most this often that events were dropped, as the bus warns (WF-19.6).
pub const EVENT_DROPPED_EVERY_MS: i64 = 30_000;

/// Executions whose journals were told so lately; more are not told.
pub const EVENT_DROPPED_TOLD: usize = 1000;

/// Attempts of a step whose times an execution shows, the newest ones.
pub const ATTEMPTS_SHOWN: usize = 20;

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

/// Fuel of one evaluation of a condition or template: one unit for each term and each value that is compared or copied, some ten
/// nanoseconds. As many values as a template of `RESOLVED_BYTES` has at eight bytes each, so a template that may grow to that is
/// not refused for its fuel.
pub const EVALUATION_FUEL: u64 = 1_048_576;

/// Fuel of all that the engine evaluates for one execution: conditions, switches, lists of `forEach`. Whoever reads an execution folds
/// its journal, and so evaluates the same again; this is a second of work at most.
pub const EXECUTION_FUEL: u64 = 64 * EVALUATION_FUEL;

/// What may be evaluated on a thread that serves requests, at once: about a millisecond. More runs beside them, in turns by tenant.
pub const INLINE_FUEL: u64 = 131_072;

/// What a pure step may read on such a thread in all its passes: each operation of a transform is one.
pub const INLINE_PASSED_BYTES: usize = 262_144;

/// Fuel of evaluations beyond which an execution writes and looks at what it was told, a cancellation for example.
pub const COMMIT_FUEL: u64 = EVALUATION_FUEL;

/// Parentheses and `!` inside each other in a condition: its parser calls itself.
pub const CONDITION_DEPTH: usize = 32;

/// Executions that may wait for their turn to begin; they are stored, but their line is in memory.
pub const QUEUED_EXECUTIONS: usize = 100_000;

/// Those of one tenant that run or wait: half of the line, so that others always find room in it.
pub const EXECUTIONS_PER_TENANT: usize = QUEUED_EXECUTIONS / 2;

/// Ended executions kept in memory, so that whoever waited for the end reads it without the store.
pub const RECENT: usize = 512;

/// Moments of one schedule that wait for their turn or are made up for: one that slept for a year must not start a million
/// executions.
pub const SCHEDULE_BACKLOG: usize = 1000;

/// The beginning of an id that is looked up, without `exec-`: shorter ones are shared by many.
pub const ID_PREFIX_CHARACTERS: usize = 8;

/// Rows on one page of a list, and executions that one request takes up again: they all go into one commit.
pub const PAGE: i64 = 500;

/// Tags of one execution: each is a row of the index over them.
pub const TAGS: usize = 16;

/// The key and the value of a tag: both are part of every row of the index.
pub const TAG_KEY_CHARACTERS: usize = 64;
pub const TAG_VALUE_BYTES: usize = 256;

/// Executions counted for each filter of a search by tags, to find the filter that the fewest pass. Beyond it a filter counts as common.
pub const TAG_SEARCH_COUNTED: i64 = 1000;

/// Executions that a dry run of a bulk operation counts at most: counting more takes longer than a preview is worth.
pub const BULK_COUNTED: i64 = 10_000;

/// Executions that a dry run of a bulk operation shows.
pub const BULK_SAMPLE: usize = 10;

/// A longer name of a field is cut in the journal.
pub const FIELD_NAME_BYTES: usize = 128;

/// So many fields that were cut are named in an entry; `*` stands for the others.
pub const CUT_FIELDS_NAMED: usize = 8;

/// Definitions of children that a fork reads to find approvals in them; with more it takes for granted that one asks.
pub const FORK_CHILD_DEFINITIONS: usize = 64;

/// Triggers of one tenant: each delivery looks one up, and event triggers are all looked at for every event.
pub const TRIGGERS: i64 = 100;

/// The body of one delivery to a webhook trigger: it is hashed before anything is known of its sender.
pub const HOOK_BODY_BYTES: usize = 262_144;

/// Headers and query parameters of a delivery that expressions can see, and the bytes of one of them.
pub const HOOK_FIELDS: usize = 64;
pub const HOOK_FIELD_BYTES: usize = 4096;

/// Deliveries of one trigger that wait for the end of its quiet period or batch; beyond it senders are refused.
pub const PENDING_DELIVERIES: i64 = 1000;

/// Deliveries that one execution gets as a batch, and their bytes together: its inputs are held in memory while it runs.
pub const BATCH_DELIVERIES: i64 = 100;
pub const BATCH_BYTES: usize = 1_048_576;

/// Deliveries of one trigger a minute, when it does not say less.
pub const DELIVERIES_PER_MINUTE: u32 = 6000;

/// Starts of one event trigger a minute, when it does not say less: what it starts makes events, too.
pub const EVENTS_PER_MINUTE: u32 = 600;

/// Event types of one trigger.
pub const EVENT_TYPES: usize = 16;

/// Triggers that start each other, one after the other.
pub const TRIGGER_DEPTH: u32 = 4;

/// Events of one tenant that are kept by their key until an execution waits for them; beyond it senders are refused.
pub const KEYED_EVENTS_KEPT: i64 = 10_000;

/// Executions that one event goes to: they are all told in one commit.
pub const EVENT_RECEIVERS: i64 = 100;

/// How long an event is kept by its key and remembered by its id, when its sender does not say, and at most.
pub const KEYED_EVENT_MS: i64 = 86_400_000;
pub const KEYED_EVENT_MAX_MS: i64 = 604_800_000;

/// A business key.
pub const EVENT_KEY_BYTES: usize = 512;

/// Notifications of one trigger that wait to be sent; beyond it the events wait in the journals.
pub const NOTIFICATIONS_WAITING: i64 = 1000;

/// Attempts at a notification, and the waits between them: about a day in all.
pub const NOTIFICATION_ATTEMPTS: i64 = 12;
pub const NOTIFICATION_BASE_MS: u64 = 1000;
pub const NOTIFICATION_CAP_MS: u64 = 4 * 3_600_000;
pub const NOTIFICATION_TIMEOUT_MS: u64 = 10_000;

/// Notifications that are sent at once.
pub const NOTIFICATIONS_AT_ONCE: i64 = 16;

/// How far the clock of a sender may be off: an older signature is refused, so that a recorded request cannot be sent later.
pub const SIGNATURE_AGE_MS: i64 = 300_000;

/// How long a delivery is remembered, when its trigger does not say, and at most.
pub const DEDUPLICATION_MS: i64 = 86_400_000;
pub const DEDUPLICATION_MAX_MS: i64 = 604_800_000;

/// Keys that one trigger remembers; beyond it senders are refused until the oldest expire.
pub const DEDUPLICATION_KEYS: i64 = 200_000;

/// A key of a delivery that its trigger computes; longer ones are refused.
pub const DEDUPLICATION_KEY_BYTES: usize = 512;

/// The longest quiet period and the longest window of a batch.
pub const TRIGGER_WAIT_MS: i64 = 86_400_000;

/// The message of an error in the journal: half of what a field may have, so that code and category fit beside it.
pub const JOURNAL_MESSAGE_BYTES: usize = 512;
