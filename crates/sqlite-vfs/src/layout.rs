//! Where the blocks of a sealed file lie: sizes, and the mapping from the offsets that SQLite uses to those on the disk.

/// The page size of every sealed data file.
pub const PAGE_BYTES: usize = 8192;

/// What SQLite leaves unused at the end of every page: tag, nonce and four zero bytes.
pub const RESERVED_BYTES: usize = 32;

/// The file's own page before the first page of the database: two slots for the wrapped data key.
pub const PROLOGUE_BYTES: usize = PAGE_BYTES;

/// What a header of the log takes on the disk, with its nonce and tag.
pub const HEADER_SLOT_BYTES: usize = 64;

/// What a frame of the log takes on the disk: its header and its page.
pub const FRAME_SLOT_BYTES: usize = HEADER_SLOT_BYTES + PAGE_BYTES;

/// The sizes that SQLite knows.
pub(crate) const LOG_HEADER_BYTES: usize = 32;
pub(crate) const FRAME_HEADER_BYTES: usize = 24;
pub(crate) const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;

/// A part of the log, as SQLite addresses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogBlock {
    Header,
    FrameHeader(u64),
    FramePage(u64),
}

impl LogBlock {
    /// The block at an offset of the log, and how far into the block the offset is.
    pub fn at(offset: u64) -> (Self, usize) {
        let Some(in_frames) = offset.checked_sub(LOG_HEADER_BYTES as u64) else {
            return (Self::Header, small(offset));
        };
        let frame = in_frames / FRAME_BYTES as u64;
        let within = small(in_frames % FRAME_BYTES as u64);
        match within.checked_sub(FRAME_HEADER_BYTES) {
            None => (Self::FrameHeader(frame), within),
            Some(in_page) => (Self::FramePage(frame), in_page),
        }
    }

    /// Bytes of the block as SQLite sees it.
    pub fn bytes(self) -> usize {
        match self {
            Self::Header => LOG_HEADER_BYTES,
            Self::FrameHeader(_) => FRAME_HEADER_BYTES,
            Self::FramePage(_) => PAGE_BYTES,
        }
    }
}

/// Where the slot of a frame begins on the disk.
pub(crate) fn frame_slot(frame: u64) -> u64 {
    HEADER_SLOT_BYTES as u64 + frame * FRAME_SLOT_BYTES as u64
}

/// The size that SQLite is told of a log file: only whole frames count.
pub(crate) fn log_size_seen(on_disk: u64) -> u64 {
    match on_disk.checked_sub(HEADER_SLOT_BYTES as u64) {
        None => 0,
        Some(frames) => LOG_HEADER_BYTES as u64 + frames / FRAME_SLOT_BYTES as u64 * FRAME_BYTES as u64,
    }
}

/// The size on the disk of a log that SQLite wants to be this long; a frame that begins within it stays whole.
pub(crate) fn log_size_on_disk(seen: u64) -> u64 {
    match seen {
        0 => 0,
        _ => frame_slot(seen.saturating_sub(LOG_HEADER_BYTES as u64).div_ceil(FRAME_BYTES as u64)),
    }
}

/// A remainder of a division by a small size.
fn small(remainder: u64) -> usize {
    usize::try_from(remainder).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_follow_each_other_as_sqlite_writes_them() {
        assert_eq!(LogBlock::at(0), (LogBlock::Header, 0));
        assert_eq!(LogBlock::at(31), (LogBlock::Header, 31));
        assert_eq!(LogBlock::at(32), (LogBlock::FrameHeader(0), 0));
        assert_eq!(LogBlock::at(32 + 23), (LogBlock::FrameHeader(0), 23));
        assert_eq!(LogBlock::at(32 + 24), (LogBlock::FramePage(0), 0));
        assert_eq!(LogBlock::at(32 + 8216), (LogBlock::FrameHeader(1), 0));
    }

    proptest! {
        #[test]
        fn a_size_of_whole_frames_is_the_same_in_both_directions(frames in 0_u64..1_000_000) {
            let seen = LOG_HEADER_BYTES as u64 + frames * FRAME_BYTES as u64;
            prop_assert_eq!(log_size_seen(log_size_on_disk(seen)), seen);
            prop_assert_eq!(log_size_seen(log_size_on_disk(seen) + 100), seen);
            prop_assert!(log_size_on_disk(seen + 1) > log_size_on_disk(seen));
        }
    }
}
