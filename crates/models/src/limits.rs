//! The limits of this crate, each with its reason.

/// Models of one catalog: it is listed whole and gone through in order.
pub const MODELS: usize = 1_000;

/// The name of a provider: it is part of messages and of the key of its breaker.
pub const PROVIDER_NAME_CHARS: usize = 64;

/// The id of a model: it is stored with every answer.
pub const MODEL_ID_BYTES: usize = 256;

/// What the offline model says at most: a mistyped number must not fill the memory.
pub const OFFLINE_WORDS: u64 = 100_000;

/// How much of a prompt the offline model echoes: what it says about a long text is shorter than the text.
pub const OFFLINE_ECHO_CHARS: usize = 2_000;

/// How much of one tool result the offline model quotes, for the same reason.
pub const OFFLINE_QUOTE_CHARS: usize = 500;

/// The longest wait before each delta that a prompt may ask the offline model for: ten minutes.
pub const OFFLINE_WAIT_MS: u64 = 600_000;

/// Conversations whose `/fail` count the offline model remembers; the oldest is forgotten first.
pub const OFFLINE_FAILURES: usize = 1_024;

/// One line of a provider's stream: a whole tool call fits, an endless line does not.
pub const LINE_BYTES: usize = 4 * 1024 * 1024;

/// One event of a provider's stream, all its lines together.
pub const EVENT_BYTES: usize = 8 * 1024 * 1024;

/// Everything a provider may send in one answer, unless its settings say otherwise. Each token costs some hundred bytes of wrapping, so it is
/// far more than the content.
pub const STREAM_BYTES: u64 = 256 * 1024 * 1024;

/// The content of one answer: it is held, stored and sent to clients whole.
pub const CONTENT_BYTES: usize = 8 * 1024 * 1024;

/// Blocks of one answer.
pub const BLOCKS: usize = 1_000;

/// How much of a refusal is read, and how many characters of what it says are shown.
pub const REFUSAL_BYTES: usize = 65_536;
pub const REFUSAL_CHARS: usize = 1_000;

/// The name of a tool as providers take it.
pub const TOOL_NAME_CHARS: usize = 64;

/// How long a provider may be silent, unless its settings say otherwise: some load the model first, and some say nothing
/// while it thinks.
pub const IDLE_TIMEOUT_MS: u64 = 300_000;

/// How often the other side is asked whether it is still there, so that a dead connection is noticed within that silence.
pub const KEEPALIVE_MS: u64 = 30_000;

/// How long connecting may take.
pub const CONNECT_MS: u64 = 10_000;

/// How long an answer may take to begin, and all attempts to make it begin together.
pub const BEGIN_TIMEOUT_MS: u64 = 600_000;
pub const BEGIN_BUDGET_MS: u64 = 900_000;

/// Connections kept open to one provider while nobody uses them.
pub const IDLE_CONNECTIONS: usize = 4;

/// Pieces of a text that an embedder in this process looks at: what it was trained with.
pub const PIECES: usize = 256;

/// Pieces of one batch of it, which one thread works on: enough that weights are read from memory once for many pieces, few
/// enough that what comes in between stays in a core's cache.
pub const EMBED_ROWS: usize = 512;

/// Threads it takes, and how long it stays in memory while nobody uses it.
pub const EMBED_THREADS: usize = 4;
pub const EMBED_IDLE_MS: u64 = 300_000;

/// Texts of one request to an embedder on the network, and characters of one of them.
pub const EMBED_BATCH: usize = 64;
pub const EMBED_BATCH_MAX: usize = 1_000;
pub const EMBED_CHARS: usize = 8_000;

/// How long one request for vectors may take, and bytes of its answer: a thousand vectors of four thousand numbers.
pub const EMBED_TIMEOUT_MS: u64 = 30_000;
pub const EMBED_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Numbers of a vector.
pub const DIMENSIONS: usize = 4_096;
