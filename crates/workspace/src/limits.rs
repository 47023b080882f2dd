//! How large and how long things of a workspace may be.

/// A file that is read or written. Larger ones are not for a conversation.
pub const FILE_BYTES: usize = 4 << 20;

/// The arguments of one call: a file of the largest size, escaped, and what is beside it.
pub const PAYLOAD_BYTES: usize = 8 << 20;

/// A path as a caller writes it.
pub const PATH_BYTES: usize = 4096;

/// One name in a path, as file systems have it.
pub const NAME_BYTES: usize = 255;

/// Times a path is looked up anew because somebody moved things while it was looked up.
pub const LOOKUPS: usize = 64;

/// A report of a failure, which needs no plan.
pub const REPORT_BYTES: usize = 64 << 10;

/// The shortest report.
pub const REPORT_CHARACTERS: usize = 30;

/// Reports of one workspace.
pub const REPORTS: usize = 1000;

/// Why a plan was approved or rejected.
pub const COMMENT_BYTES: usize = 4096;

/// Plans on one page of a list.
pub const PLANS_PAGE: i64 = 200;

/// Hashes of entries that are read or written at once.
pub const ENTRY_HASHES: usize = 1000;

/// A plan.
pub const PLAN_BYTES: usize = 256 << 10;

/// Plans of one workspace that are listed.
pub const PLANS: usize = 1000;

/// Phases, paths and commands of one plan.
pub const PLAN_ITEMS: usize = 200;

/// Findings of one lint, check or replay.
pub const FINDINGS: usize = 100;

/// The shortest intent has more characters than this.
pub const INTENT_CHARACTERS: usize = 20;

/// A line of a patch or of code that a rule is tried on.
pub const TOKENS: usize = 1 << 20;

/// How long a call may take, its commands included.
pub const CALL_MS: u64 = 600_000;

/// What the kernel grants beyond that, so that a call that takes too long is recorded before it is answered.
pub const GRACE_MS: u64 = 15_000;

/// How long a command of a plan may take that says nothing else; and at most.
pub const COMMAND_MS: u64 = 60_000;
pub const COMMAND_MAX_MS: u64 = 300_000;

/// What is kept of what a command says.
pub const OUTPUT_BYTES: usize = 4096;

/// Sessions of all connections; the one that began first goes when one more comes.
pub const SESSIONS: usize = 1024;

/// Calls that wait to be recorded.
pub const WISHES: usize = 1024;

/// Entries that share one write and one flush.
pub const GROUP: usize = 256;

/// A file of the trail; then the next one begins.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// An entry of the trail.
pub const ENTRY_BYTES: usize = 64 << 10;

/// A cause as it is told and recorded.
pub const CAUSE_BYTES: usize = 8 << 10;

/// A trail no longer than this is proven whole when a session begins; of a longer one, its newest entry.
pub const SELF_AUDIT_BYTES: u64 = 8 << 20;

/// How long another process may hold the trail.
pub const LOCK_MS: u64 = 5000;

/// Entries of the trail told at once.
pub const PAGE: usize = 500;

/// How old a signed bootstrap may be.
pub const BOOTSTRAP_MS: i64 = 600_000;

/// Files and bytes of a workspace that is copied for a command of a plan, where the host can mount no overlay.
pub const VIEW_ENTRIES: u64 = 200_000;
pub const VIEW_BYTES: u64 = 2 << 30;

/// What a command of a plan may have on the disk in its view, a copied workspace included, and how often that is looked at.
pub const VIEW_WRITTEN_BYTES: u64 = 8 << 30;
pub const VIEW_LOOK_MS: u64 = 1_000;

/// Paths that a command changed in its view and that are told.
pub const DISCARDED: usize = 20;

/// How often a write looks whether another process still writes in the workspace.
pub const TURN_LOOK_MS: u64 = 20;

/// The newest entries of a trail among which writes without an outcome are looked for. Those a killed server left are at its end.
pub const RECOVERY_ENTRIES: usize = 2_000;

/// A text in a language that has rules. Its tree takes many times its size.
pub const CODE_BYTES: usize = 1 << 20;

/// How often a parser may ask whether to go on, once every hundred steps: so many times, and once more for so many bytes. Code as
/// people write it takes a twentieth of that.
pub const PARSE_ASKS: usize = 2_000;
pub const PARSE_BYTES_PER_ASK: usize = 8;
