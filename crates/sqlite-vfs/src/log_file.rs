//! The sealed write-ahead log: headers and pages in, any range out.
//!
//! SQLite recovers a log by reading whole frames until one is not valid. A frame that does not open reads as zeros there, which
//! is no valid frame: recovery ends before it, as it does at a torn frame of a plain log. Every other read of such a frame
//! fails.

use std::sync::Arc;

use rusqlite::ffi;

use crate::codec::{BlockAddress, PageCodec};
use crate::layout::{
    FRAME_BYTES, FRAME_HEADER_BYTES, FRAME_SLOT_BYTES, HEADER_SLOT_BYTES, LOG_HEADER_BYTES, LogBlock,
    PAGE_BYTES, frame_slot,
};
use crate::raw_file::{RawFile, ReadAmount, Status};

/// The part of a frame's header that its page is bound to.
pub(crate) const BOUND_BYTES: usize = 16;

pub(crate) struct LogFile {
    codec: Arc<dyn PageCodec>,
    header_slot: Box<[u8; HEADER_SLOT_BYTES]>,
    page: Box<[u8; PAGE_BYTES]>,
    /// The header that was written last: its page follows.
    newest: Option<(u64, [u8; BOUND_BYTES])>,
    /// The first and last frame that were written through this handle since the log began again. They are whole, so one that
    /// does not open was changed.
    own: Option<(u64, u64)>,
}

/// What was found in a slot.
enum Block<'a> {
    Plain(&'a [u8]),
    BehindEnd,
    NotAuthentic,
}

/// What was found in the slot of a frame: its header.
enum Frame {
    Opened([u8; FRAME_HEADER_BYTES]),
    BehindEnd,
    NotAuthentic,
}

impl LogFile {
    pub fn new(codec: Arc<dyn PageCodec>) -> Self {
        Self {
            codec,
            header_slot: Box::new([0; HEADER_SLOT_BYTES]),
            page: Box::new([0; PAGE_BYTES]),
            newest: None,
            own: None,
        }
    }

    pub fn read(
        &mut self,
        raw: &mut dyn RawFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<ReadAmount, Status> {
        let mut done = 0;
        while done < buffer.len() {
            let (block, within) = LogBlock::at(offset + done as u64);
            let left = buffer.len() - done;
            if let LogBlock::FrameHeader(frame) = block
                && within == 0
                && left >= FRAME_BYTES
            {
                let part = &mut buffer[done..done + FRAME_BYTES];
                if self.read_frame(raw, frame, part)? == ReadAmount::Short {
                    buffer[done..].fill(0);
                    return Ok(ReadAmount::Short);
                }
                done += FRAME_BYTES;
                continue;
            }
            let count = (block.bytes() - within).min(left);
            match self.load(raw, block)? {
                Block::Plain(plain) => {
                    buffer[done..done + count].copy_from_slice(&plain[within..within + count]);
                }
                Block::BehindEnd => {
                    buffer[done..].fill(0);
                    return Ok(ReadAmount::Short);
                }
                Block::NotAuthentic => return Err(ffi::SQLITE_CORRUPT),
            }
            done += count;
        }
        Ok(ReadAmount::Whole)
    }

    /// Takes whole headers and whole pages, as SQLite writes them where a disk overwrites safely.
    pub fn write(&mut self, raw: &mut dyn RawFile, bytes: &[u8], offset: u64) -> Result<(), Status> {
        let (block, within) = LogBlock::at(offset);
        if within != 0 || bytes.len() != block.bytes() {
            return Err(ffi::SQLITE_IOERR_WRITE);
        }
        let failed = |_| ffi::SQLITE_IOERR_WRITE;
        match block {
            LogBlock::Header => {
                (self.newest, self.own) = (None, None);
                self.codec
                    .seal_header(BlockAddress::LogHeader, bytes, &mut self.header_slot)
                    .map_err(failed)?;
                raw.write(self.header_slot.as_slice(), 0)
            }
            LogBlock::FrameHeader(frame) => {
                self.codec
                    .seal_header(BlockAddress::FrameHeader(frame), bytes, &mut self.header_slot)
                    .map_err(failed)?;
                self.newest = Some((frame, first_bytes(bytes)));
                let (first, last) = self.own.unwrap_or((frame, frame));
                self.own = Some((first.min(frame), last.max(frame)));
                raw.write(self.header_slot.as_slice(), frame_slot(frame))
            }
            LogBlock::FramePage(frame) => {
                let header = match self.newest {
                    Some((newest, header)) if newest == frame => header,
                    // A page that the same transaction changes again: its header is on the disk.
                    Some(_) | None => match self.load(raw, LogBlock::FrameHeader(frame))? {
                        Block::Plain(header) => first_bytes(header),
                        Block::BehindEnd | Block::NotAuthentic => return Err(ffi::SQLITE_IOERR_WRITE),
                    },
                };
                let header = self.bound(raw, header)?;
                self.page.copy_from_slice(bytes);
                self.codec
                    .seal_page(BlockAddress::FramePage { frame, header }, &mut self.page)
                    .map_err(failed)?;
                raw.write(self.page.as_slice(), frame_slot(frame) + HEADER_SLOT_BYTES as u64)
            }
        }
    }

    /// Header and page in one read, as recovery does.
    fn read_frame(
        &mut self,
        raw: &mut dyn RawFile,
        frame: u64,
        buffer: &mut [u8],
    ) -> Result<ReadAmount, Status> {
        let is_own = self.own.is_some_and(|(first, last)| (first..=last).contains(&frame));
        let (header, page) = buffer.split_at_mut(FRAME_HEADER_BYTES);
        match self.load_frame(raw, frame)? {
            Frame::Opened(opened) => {
                header.copy_from_slice(&opened);
                page.copy_from_slice(self.page.as_slice());
            }
            Frame::BehindEnd => return Ok(ReadAmount::Short),
            Frame::NotAuthentic if is_own => return Err(ffi::SQLITE_CORRUPT),
            Frame::NotAuthentic => buffer.fill(0),
        }
        Ok(ReadAmount::Whole)
    }

    fn load(&mut self, raw: &mut dyn RawFile, block: LogBlock) -> Result<Block<'_>, Status> {
        let (address, slot, length) = match block {
            LogBlock::Header => (BlockAddress::LogHeader, 0, LOG_HEADER_BYTES),
            LogBlock::FrameHeader(frame) => {
                (BlockAddress::FrameHeader(frame), frame_slot(frame), FRAME_HEADER_BYTES)
            }
            LogBlock::FramePage(frame) => {
                return Ok(match self.load_frame(raw, frame)? {
                    Frame::Opened(_) => Block::Plain(self.page.as_slice()),
                    Frame::BehindEnd => Block::BehindEnd,
                    Frame::NotAuthentic => Block::NotAuthentic,
                });
            }
        };
        if raw.read(self.header_slot.as_mut_slice(), slot)? == ReadAmount::Short {
            return Ok(Block::BehindEnd);
        }
        let mut plain = [0; LOG_HEADER_BYTES];
        let is_unwritten = block == LogBlock::Header && self.header_slot.iter().all(|byte| *byte == 0);
        if !is_unwritten && self.codec.open_header(address, &self.header_slot, &mut plain[..length]).is_err()
        {
            return Ok(Block::NotAuthentic);
        }
        self.header_slot[..length].copy_from_slice(&plain[..length]);
        Ok(Block::Plain(&self.header_slot[..length]))
    }

    /// Reads a frame; its page is in `self.page` afterwards.
    fn load_frame(&mut self, raw: &mut dyn RawFile, frame: u64) -> Result<Frame, Status> {
        let mut slot = [0; FRAME_SLOT_BYTES];
        if raw.read(&mut slot, frame_slot(frame))? == ReadAmount::Short {
            return Ok(Frame::BehindEnd);
        }
        let (sealed_header, sealed_page) = slot.split_at(HEADER_SLOT_BYTES);
        self.header_slot.copy_from_slice(sealed_header);
        self.page.copy_from_slice(sealed_page);
        let mut header = [0; FRAME_HEADER_BYTES];
        let address = BlockAddress::FrameHeader(frame);
        if self.codec.open_header(address, &self.header_slot, &mut header).is_err() {
            return Ok(Frame::NotAuthentic);
        }
        let bound = self.bound(raw, first_bytes(&header))?;
        let opened = self.codec.open_page(BlockAddress::FramePage { frame, header: bound }, &mut self.page);
        Ok(opened.map_or(Frame::NotAuthentic, |()| Frame::Opened(header)))
    }

    /// What a page is bound to. SQLite leaves the salts out of the headers that it is going to write again at the end of the
    /// transaction; then they are those of the log.
    fn bound(
        &mut self,
        raw: &mut dyn RawFile,
        mut header: [u8; BOUND_BYTES],
    ) -> Result<[u8; BOUND_BYTES], Status> {
        if header[8..] == [0; 8]
            && let Block::Plain(log) = self.load(raw, LogBlock::Header)?
        {
            header[8..].copy_from_slice(&log[16..24]);
        }
        Ok(header)
    }
}

pub(crate) fn first_bytes(header: &[u8]) -> [u8; BOUND_BYTES] {
    let mut first = [0; BOUND_BYTES];
    for (to, from) in first.iter_mut().zip(header) {
        *to = *from;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::AeadCodec;
    use crate::layout::RESERVED_BYTES;
    use proptest::prelude::*;

    const FRAME: u64 = FRAME_BYTES as u64;

    fn codec() -> Arc<dyn PageCodec> {
        Arc::new(AeadCodec::new(&[1; 32], [2; 16]).unwrap())
    }

    /// A log of this many frames, and what SQLite wrote into it.
    fn log(frames: u64) -> (LogFile, Vec<u8>, Vec<u8>) {
        let (mut file, mut raw, mut plain) = (LogFile::new(codec()), Vec::new(), vec![7; 32]);
        file.write(&mut raw, &[7; 32], 0).unwrap();
        for frame in 0..frames {
            let byte = frame.to_le_bytes()[0];
            let mut page = [byte; PAGE_BYTES];
            page[PAGE_BYTES - RESERVED_BYTES..].fill(0);
            file.write(&mut raw, &[byte; 24], 32 + frame * FRAME).unwrap();
            file.write(&mut raw, &page, 56 + frame * FRAME).unwrap();
            plain.extend_from_slice(&[byte; 24]);
            plain.extend_from_slice(&page);
        }
        (file, raw, plain)
    }

    #[test]
    fn a_page_is_rewritten_without_its_header_and_a_header_without_its_page() {
        let (mut file, mut raw, mut plain) = log(3);
        let mut page = [9; PAGE_BYTES];
        page[PAGE_BYTES - RESERVED_BYTES..].fill(0);
        file.write(&mut raw, &page, 56).unwrap();
        plain[56..56 + PAGE_BYTES].copy_from_slice(&page);
        // The checksum, which is not bound, changes with it.
        let mut header = [0; 24];
        header[16..].fill(5);
        file.write(&mut raw, &header, 32).unwrap();
        plain[32..56].copy_from_slice(&header);
        let mut buffer = vec![1; plain.len()];
        file.read(&mut raw, &mut buffer, 0).unwrap();
        assert_eq!(buffer, plain);
    }

    #[test]
    fn odd_writes_are_refused() {
        let (mut file, mut raw, _) = log(1);
        let before = raw.clone();
        for (count, offset) in [(31, 0), (32, 1), (24, 33), (23, 32), (PAGE_BYTES + 24, 32), (100, 56)] {
            assert_eq!(file.write(&mut raw, &vec![0; count], offset), Err(ffi::SQLITE_IOERR_WRITE));
        }
        assert_eq!(file.write(&mut raw, &[0; PAGE_BYTES], 56 + 5 * FRAME), Err(ffi::SQLITE_IOERR_WRITE));
        assert_eq!(raw, before);
    }

    #[test]
    fn recovery_stops_at_a_changed_frame_and_a_reader_fails() {
        let (mut own, mut raw, plain) = log(3);
        let mut other = LogFile::new(codec());
        let mut frame = vec![1; FRAME_BYTES];
        for at in [frame_slot(1), frame_slot(1) + 40, frame_slot(1) + 64, frame_slot(2) - 1] {
            raw[usize::try_from(at).unwrap()] ^= 1;
            assert_eq!(other.read(&mut raw, &mut frame, 32 + FRAME), Ok(ReadAmount::Whole));
            assert_eq!(frame, vec![0; FRAME_BYTES]);
            assert_eq!(own.read(&mut raw, &mut frame, 32 + FRAME), Err(ffi::SQLITE_CORRUPT));
            let mut page = vec![1; PAGE_BYTES];
            assert_eq!(other.read(&mut raw, &mut page, 56 + FRAME), Err(ffi::SQLITE_CORRUPT));
            raw[usize::try_from(at).unwrap()] ^= 1;
        }
        other.read(&mut raw, &mut frame, 32 + FRAME).unwrap();
        assert_eq!(frame, plain[32 + FRAME_BYTES..32 + 2 * FRAME_BYTES]);
        raw[3] ^= 1;
        assert_eq!(other.read(&mut raw, &mut [0; 32], 0), Err(ffi::SQLITE_CORRUPT));
    }

    proptest! {
        #[test]
        fn any_range_reads_as_it_was_written(start in 0_usize..3 * FRAME_BYTES, length in 1..2 * FRAME_BYTES) {
            let (_, mut raw, mut plain) = log(3);
            let mut buffer = vec![9; length];
            let amount = LogFile::new(codec()).read(&mut raw, &mut buffer, start as u64).unwrap();
            prop_assert_eq!(amount == ReadAmount::Whole, start + length <= plain.len());
            plain.resize(6 * FRAME_BYTES, 0);
            prop_assert_eq!(&buffer[..], &plain[start..start + length]);
        }
    }
}
