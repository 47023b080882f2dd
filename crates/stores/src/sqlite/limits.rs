//! Every limit of the SQLite store, in one place with its reason.

use std::time::Duration;

/// Batches that wait for the writer. When it is full, `commit` waits: whoever produces too fast is slowed down.
pub const QUEUE_BATCHES_MAX: usize = 1024;

/// Batches in one transaction, so that the first of a group does not wait long for the last.
pub const GROUP_BATCHES_MAX: usize = 1024;

/// Bytes in one transaction, for the same reason when batches are big. One batch may exceed it alone.
pub const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Statements and links of one batch, as the port promises.
pub const BATCH_STEPS_MAX: usize = orchestr8_kernel::ports::store::BATCH_STEPS_MAX;

/// What may be committed on the thread that asks, where others wait for their turn: few small changes, to a disk that
/// flushed quickly the last time. Beyond it the writer's thread does it.
pub const QUICK_STEPS: usize = 16;
pub const QUICK_BYTES: usize = 64 * 1024;
pub const QUICK_COMMIT: Duration = Duration::from_millis(1);

/// One text, blob or row. Larger content belongs into files.
pub const VALUE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Reads that wait for a reader. When it is full, `query` waits.
pub const QUEUE_READS_MAX: usize = 1024;

/// Work of a read that runs where it was asked for: steps of SQLite's machine between two looks, and looks before it is
/// given to a thread. Together about 50 µs.
pub const TICK_STEPS: i32 = 500;
pub const SHORT_READ_TICKS: u32 = 4;

/// Rows of one answer; whoever needs more asks page by page.
pub const ANSWER_ROWS_MAX: usize = 100_000;

/// Bytes of one answer, so that no question fills the memory.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Long pieces of work (backup, check, verify) at one time: each holds a connection and a thread of its own.
pub const LONG_WORK_MAX: usize = 2;

/// Entries of a chain read at a time when it is verified, so that verifying does not hold back the log's clean-up.
pub const VERIFY_SLICE: i64 = 2048;

/// Problems a check lists before it stops looking.
pub const PROBLEMS_MAX: usize = 100;

/// Chains whose newest entry the writer remembers.
pub const HEADS_MAX: usize = 4096;

/// Prepared statements each connection keeps.
pub const STATEMENTS_CACHED: usize = 256;

/// How long to wait for an outside tool that holds the file.
pub const BUSY: Duration = Duration::from_secs(5);

/// Measured: twice the rate of 4096 for records of 300 bytes.
pub const PAGE_BYTES: u32 = 8192;

/// Pages in the write-ahead log before they are moved to the database file.
pub const LOG_PAGES: u32 = 16_000;

/// A page in the log has a header of its own.
pub const LOG_FRAME_BYTES: u64 = PAGE_BYTES as u64 + 24;

/// What the log file keeps on disk after it was moved: about 128 MiB.
pub const LOG_BYTES_KEPT: u64 = LOG_PAGES as u64 * LOG_FRAME_BYTES;

/// Room reserved for the log at a time: a few milliseconds of writing, serving some hundred commits.
pub const ROOM_BYTES: u64 = 2 * 1024 * 1024;

/// Room is written in pieces of this size, so that an idle server has not once held all of it in memory.
pub const ROOM_PIECE_BYTES: usize = 64 * 1024;

/// Page cache of the writer and of each reader, in KiB, filled only as pages are used.
pub const WRITER_CACHE_KIB: i64 = 16 * 1024;
pub const READER_CACHE_KIB: i64 = 4 * 1024;

/// Frontiers of a Merkle log that are kept: a start looks for the one that the newest signed head was made from, which is among
/// the last few unless signing has failed for long.
pub const CHECKPOINTS_KEPT: i64 = 32;

/// Fingerprints of leaves that wait to be written down: 2 MiB. Where nothing takes them, the oldest go.
pub const FINGERPRINTS_MAX: usize = 256 * 1024;
