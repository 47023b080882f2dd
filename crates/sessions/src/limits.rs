//! Limits of sessions, each with its reason. Those an installation may change are in `Settings`.

/// Sessions of one tenant; each may hold a conversation in memory while it works.
pub const SESSIONS: usize = 100;

/// Characters of one prompt, steering message or follow-up.
pub const PROMPT_CHARS: usize = 200_000;

/// Characters of one command for the shell.
pub const BASH_CHARS: usize = 20_000;

/// Characters of a session's name.
pub const NAME_CHARS: usize = 256;

/// Characters of a session's id.
pub const ID_CHARS: usize = 256;

/// Principals that one session is shared with: they are a part of its header, which is written with every change.
pub const SHARED: usize = 100;

/// Bytes of a path.
pub const PATH_BYTES: usize = 4096;

/// Images of one message.
pub const IMAGES: usize = 20;

/// The protocol lets a message have ten mebibytes.
pub const PAYLOAD_BYTES: usize = 10 * 1024 * 1024;

/// Steering messages and follow-ups that wait, of one session.
pub const QUEUED: usize = 100;

/// Events of a session that a client can ask for later; older ones are forgotten, the messages stay.
pub const EVENTS_KEPT: u64 = 1_000;

/// Events of the turn under way that are kept in memory; of the updates of one message, the last.
pub const EVENTS_IN_MEMORY: usize = 2_048;

/// What is told while a change is being made durable waits for it; more than this is left out.
pub const HELD_BACK: usize = 256;

/// Event numbers are taken from the store in blocks of this size, so that a delta costs no commit.
pub const SEQ_BLOCK: u64 = 10_000;

/// Entries read from the store at once.
pub const ENTRY_PAGE: i64 = 1_000;

/// Entries put in by one statement: a commit has only so many statements, and a file may bring many entries.
pub const ENTRIES_PER_STATEMENT: usize = 64;

/// Entries of one session; a tree beyond it takes no more prompts.
pub const ENTRIES: u64 = 200_000;

/// Calls of the model in one prompt: an agent that calls tools for ever is stopped here.
pub const ROUNDS: usize = 200;

/// Tool calls of one answer that are carried out.
pub const TOOL_CALLS: usize = 64;

/// Characters of a tool's answer that the model gets to see.
pub const TOOL_RESULT_CHARS: usize = 100_000;

/// Attempts at an answer when the model is not reachable, and the wait after the first.
pub const RETRIES: u32 = 3;
pub const RETRY_BASE_MS: u64 = 2_000;
pub const RETRY_CAP_MS: u64 = 60_000;

/// Tokens kept free for an answer: a context that leaves fewer is compacted.
pub const RESERVED_TOKENS: u64 = 16_384;

/// Tokens of recent messages that a compaction leaves as they are.
pub const KEPT_TOKENS: u64 = 20_000;

/// Time limits of the classes of commands.
pub const LONG_MS: u64 = 300_000;
pub const SHORT_MS: u64 = 30_000;

/// For commands that must not be cut off: ten years.
pub const NEVER_MS: u64 = 315_360_000_000;

/// Questions to people that wait for an answer, of one session.
pub const QUESTIONS: usize = 16;

/// Output of a shell command that is kept: its end.
pub const BASH_OUTPUT_BYTES: usize = 256 * 1024;

/// Commands of the shell that run into their time limit in a row before none is begun for a while.
pub const BASH_TIMEOUTS: u32 = 5;
pub const BASH_OPEN_MS: u64 = 30_000;

/// Commands of the history per page.
pub const HISTORY_PAGE: i64 = 100;
pub const HISTORY_PAGE_MAX: i64 = 500;

/// A delta is told once it is this share of what was told before, or when this time has passed: a message is told again with
/// each, so that telling every one of a long message would be quadratic.
pub const DELTA_SHARE: usize = 32;
pub const DELTA_MS: u64 = 50;

/// Messages of one conversation that is sent to a model without a session.
pub const COMPLETE_MESSAGES: usize = 1_000;

/// How often a model is asked to mend an answer that does not match its schema: preset, and at most. Each costs a whole answer.
pub const REPAIRS: u64 = 2;
pub const REPAIRS_MAX: u64 = 10;

/// Tokens of an answer that may be asked for; no model gives more.
pub const ANSWER_TOKENS: u64 = 1_000_000;

/// Characters of an answer that are quoted when it does not match its schema.
pub const MISMATCH_CHARS: usize = 2_000;

/// Progress of long work is told this often at most: clients show it to people.
pub const PROGRESS_MS: u64 = 250;

/// Messages that a look at a session shows, and characters of each: it is for a model to read.
pub const SHOWN_MESSAGES: usize = 20;
pub const SHOWN_CHARS: usize = 4_000;

/// Bytes of a conversation that is shown as one text; what came first is left out.
pub const SHOWN_BYTES: usize = 1024 * 1024;

/// Bytes of a session file that is read.
pub const FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of one line of a session file: it becomes one record of the store, which takes twice that.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of the first line of a session file that a list looks at.
pub const HEAD_BYTES: u64 = 64 * 1024;

/// Session files that are listed, folders that are looked into for them, and how deep those may lie.
pub const FILES_LISTED: usize = 1_000;
pub const FOLDERS_SEEN: usize = 1_000;
pub const FOLDER_DEPTH: usize = 5;

/// Bytes of an exported page: a browser shows no more in reasonable time.
pub const PAGE_BYTES: usize = 128 * 1024 * 1024;
