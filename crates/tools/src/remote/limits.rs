//! The limits of other servers, each with its reason.

/// The default for starting and telling tools: package runners download what they start.
pub const START_TIMEOUT_MS: u64 = 30_000;

/// The default for calls of one server at once.
pub const CONCURRENT_CALLS: usize = 16;

/// Tools taken of one server; more would drown all others.
pub const TOOLS: usize = 500;

/// Pages of one list of tools: a server that always has another page is cut off.
pub const PAGES: usize = 100;

/// Definitions remembered of one server, so that one that invents names does not fill the store.
pub const PINS: usize = 2_000;

/// Resources, templates and prompts that are listed of one server, each.
pub const LISTED: usize = 2_000;

/// A longer entry of such a list is left out.
pub const LISTED_BYTES: usize = 65_536;

/// How long a server may take for a list, or for a request that only prepares what it tells later.
pub const LIST_MS: u64 = 10_000;

/// A longer definition is refused.
pub const DEFINITION_BYTES: usize = 524_288;

/// One message of a server.
pub const MESSAGE_BYTES: usize = 16_777_216;

/// Questions a server may ask in one call, and at once: a person answers them.
pub const QUESTIONS: usize = 16;

/// Rounds of questions in one call.
pub const ROUNDS: usize = 8;

/// How long a server may take to notice that a call was given up.
pub const GIVEN_UP_MS: u64 = 5_000;

/// How long a cancelled call keeps its slot while its server has not answered it. The protocol lets servers stop without a word, so
/// that it cannot be for ever.
pub const CANCEL_CONFIRM_MS: u64 = 30_000;

/// How often a task is looked after, whatever the server wishes: not so often that a wish of nothing makes a busy loop, and
/// not so rarely that its end goes unseen. The middle one is for servers that wish nothing.
pub const POLL_MIN_MS: u64 = 50;
pub const POLL_DEFAULT_MS: u64 = 1_000;
pub const POLL_MAX_MS: u64 = 10_000;

/// Looks in a row that may fail on the way before a task is given up: a task is there to outlive a connection that breaks.
pub const POLL_FAILURES: u32 = 3;

/// How long a task of ours is to be kept after the time limit of its call, so that its result is there until the very end.
pub const TASK_KEPT_MS: u64 = 60_000;

/// The id of a task, which is sent back with every look.
pub const TASK_ID_BYTES: usize = 1_024;

/// What is passed on of where a task stands.
pub const STATUS_CHARACTERS: usize = 500;

/// Waits between two starts: the first, and the longest.
pub const RESTART_MS: u64 = 1_000;
pub const RESTART_MAX_MS: u64 = 60_000;

/// A server that ran this long has not failed to start; the waits begin anew.
pub const STABLE_MS: u64 = 60_000;

/// A server whose tools changed without a word is noticed within this time.
pub const REFRESH_MS: u64 = 300_000;

/// Lists are asked for at most this often, however often a server says that its list has changed.
pub const REFRESH_PAUSE_MS: u64 = 200;

/// How long a child may take to end by itself once its stdin is closed, and then once it was asked to.
pub const EXIT_MS: u64 = 2_000;
pub const TERM_MS: u64 = 1_000;

/// Closing a connection.
pub const CLOSE_MS: u64 = 1_000;

/// What ending a server takes at most.
pub const END_MS: u64 = REFRESH_PAUSE_MS + CLOSE_MS + EXIT_MS + TERM_MS + CLOSE_MS;

/// Time for the answer of a call to come through after its own time limit has passed, so that the breaker hears of it.
pub const GRACE_MS: u64 = 250;

/// One line of a child's stderr; the rest of it is cut.
pub const STDERR_LINE_BYTES: usize = 4_096;

/// Lines of a child's stderr that reach our log within `STDERR_WINDOW_MS`.
pub const STDERR_LINES: u32 = 50;
pub const STDERR_WINDOW_MS: u64 = 10_000;

/// Lines of a child's stderr that are kept, those of them that its status shows, and how much of each: enough for a stack trace.
pub const STDERR_TAIL_LINES: usize = 200;
pub const STDERR_STATUS_LINES: usize = 20;
pub const STDERR_TAIL_CHARACTERS: usize = 500;

/// How long an instance of a tenant may be unused before it is stopped.
pub const IDLE_TIMEOUT_MS: u64 = 600_000;

/// How often it is looked at least, so that a very short timeout makes no busy loop.
pub const IDLE_CHECK_MS: u64 = 10;

/// Instances of tenants that run at once: of all, and of one. Each may be a process of tens of megabytes.
pub const INSTANCES: usize = 128;
pub const INSTANCES_PER_TENANT: usize = 32;

/// Instances that are remembered, running or not.
pub const REMEMBERED_INSTANCES: usize = 1_024;

/// Servers that are added at run time: by one tenant, and by all.
pub const ADDED_PER_TENANT: usize = 50;
pub const ADDED: usize = 1_000;

/// The entry of an added server: arguments, variables, headers and patterns of each list, a text of it, and its time limits.
pub const ENTRY_ITEMS: usize = 64;
pub const ENTRY_TEXT_CHARACTERS: usize = 4_096;
pub const ENTRY_TIMEOUT_MS: u64 = 86_400_000;
