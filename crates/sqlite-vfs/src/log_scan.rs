//! Tells a damaged log from one whose last transaction was cut off by a crash.
//!
//! SQLite ends recovery at the first frame that is not valid, so one changed byte would silently drop every later commit. Where
//! each commit is flushed, a frame is only written after all transactions before its own are on the disk: a frame that does not
//! open, followed by a frame of a later transaction, was changed afterwards. Damage in the last transaction looks like a crash
//! while it was written, and is treated as one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::codec::{BlockAddress, PageCodec};
use crate::layout::{
    FRAME_HEADER_BYTES, FRAME_SLOT_BYTES, HEADER_SLOT_BYTES, LOG_HEADER_BYTES, PAGE_BYTES, frame_slot,
};
use crate::log_file::first_bytes;

/// The log was changed after it was written.
#[derive(Debug, thiserror::Error)]
pub enum LogDamage {
    #[error("the header of the write-ahead log fails its check")]
    Header,
    #[error("frame {0} of the write-ahead log fails its check, and later transactions follow it")]
    Frame(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a log whole. `commits_are_flushed`: whether each commit was flushed before the next began; without it only the header
/// is checked.
pub fn check_log(log: &Path, codec: &dyn PageCodec, commits_are_flushed: bool) -> Result<(), LogDamage> {
    let file = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut slot = [0; HEADER_SLOT_BYTES];
    if !fill(&file, &mut slot, 0)? || slot.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let mut header = [0; LOG_HEADER_BYTES];
    codec.open_header(BlockAddress::LogHeader, &slot, &mut header).map_err(|_| LogDamage::Header)?;
    match commits_are_flushed {
        true => Scan::new(header).run(&file, codec),
        false => Ok(()),
    }
}

struct Scan {
    header: [u8; LOG_HEADER_BYTES],
    /// The first frame that does not open.
    bad: Option<u64>,
    /// The checksum of the newest frame whose transaction ended at or after the bad one: whatever continues it came later.
    committed: Option<[u8; 8]>,
}

impl Scan {
    fn new(header: [u8; LOG_HEADER_BYTES]) -> Self {
        Self { header, bad: None, committed: None }
    }

    fn run(mut self, file: &File, codec: &dyn PageCodec) -> Result<(), LogDamage> {
        let mut slot = vec![0; FRAME_SLOT_BYTES];
        let mut frame = 0;
        while fill(file, &mut slot, frame_slot(frame))? {
            if !self.take(frame, &slot, codec)? {
                break;
            }
            frame += 1;
        }
        Ok(())
    }

    /// Looks at one frame; false where an older generation of the log begins.
    fn take(&mut self, frame: u64, slot: &[u8], codec: &dyn PageCodec) -> Result<bool, LogDamage> {
        let (Some(header_slot), Some(sealed)) = (slot.first_chunk(), slot.last_chunk::<PAGE_BYTES>()) else {
            return Ok(false);
        };
        let (mut page, mut header) = (*sealed, [0; FRAME_HEADER_BYTES]);
        let is_header_sound =
            codec.open_header(BlockAddress::FrameHeader(frame), header_slot, &mut header).is_ok();
        if is_header_sound && header[8..16] != self.header[16..24] {
            return Ok(false);
        }
        let address = BlockAddress::FramePage { frame, header: first_bytes(&header) };
        let is_sound = is_header_sound && codec.open_page(address, &mut page).is_ok();
        let is_commit = is_header_sound && header[4..8] != [0; 4];
        match (self.bad, self.committed) {
            (None, _) if !is_sound => self.bad = Some(frame),
            (Some(bad), Some(before)) if is_sound && self.continues(before, &header, &page) => {
                return Err(LogDamage::Frame(bad));
            }
            (None | Some(_), _) => {}
        }
        if self.bad.is_some() {
            self.committed = is_commit.then(|| tail(&header));
        }
        Ok(true)
    }

    /// Whether a frame was written right after the one with this checksum.
    fn continues(&self, before: [u8; 8], header: &[u8; FRAME_HEADER_BYTES], page: &[u8; PAGE_BYTES]) -> bool {
        let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        // The lowest bit of the magic says in which order the words of the checksum are read.
        let is_big = self.header[3] & 1 == 1;
        let start = (word(&before[..4]), word(&before[4..]));
        let sum = checksum(is_big, page, checksum(is_big, &header[..8], start));
        sum == (word(&header[16..20]), word(&header[20..24]))
    }
}

/// The checksum of SQLite's log, continued.
fn checksum(is_big: bool, bytes: &[u8], (mut first, mut second): (u32, u32)) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    };
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
        second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
    }
    (first, second)
}

fn tail(header: &[u8; FRAME_HEADER_BYTES]) -> [u8; 8] {
    let mut tail = [0; 8];
    tail.copy_from_slice(&header[16..]);
    tail
}

/// Fills the buffer; false if the file ends before.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
    match file.read_exact_at(buffer, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
