//! The sealed data file: whole pages in, any range out. What does not open is never given to SQLite.

use std::sync::Arc;

use rusqlite::ffi;

use crate::codec::{BlockAddress, PageCodec};
use crate::layout::{PAGE_BYTES, PROLOGUE_BYTES};
use crate::raw_file::{RawFile, ReadAmount, Status};

/// SQLite reads the header of the first page without a lock when a connection is opened, and a checkpoint may write that page
/// at the same time. A read that was torn by it is repeated.
const READS_MAX: usize = 16;

pub(crate) struct DataFile {
    codec: Arc<dyn PageCodec>,
    page: Box<[u8; PAGE_BYTES]>,
}

impl DataFile {
    pub fn new(codec: Arc<dyn PageCodec>) -> Self {
        Self { codec, page: Box::new([0; PAGE_BYTES]) }
    }

    pub fn read(
        &mut self,
        raw: &mut dyn RawFile,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<ReadAmount, Status> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let within = usize::try_from(at % PAGE_BYTES as u64).unwrap_or_default();
            if self.load(raw, at / PAGE_BYTES as u64)? == ReadAmount::Short {
                buffer[done..].fill(0);
                return Ok(ReadAmount::Short);
            }
            let count = (PAGE_BYTES - within).min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&self.page[within..within + count]);
            done += count;
        }
        Ok(ReadAmount::Whole)
    }

    /// Takes whole pages only: anything else would have to be written as plain text, or read first.
    pub fn write(&mut self, raw: &mut dyn RawFile, bytes: &[u8], offset: u64) -> Result<(), Status> {
        if !offset.is_multiple_of(PAGE_BYTES as u64) || !bytes.len().is_multiple_of(PAGE_BYTES) {
            return Err(ffi::SQLITE_IOERR_WRITE);
        }
        for (page, plain) in (offset / PAGE_BYTES as u64..).zip(bytes.chunks_exact(PAGE_BYTES)) {
            self.page.copy_from_slice(plain);
            self.codec
                .seal_page(BlockAddress::Page(page), &mut self.page)
                .map_err(|_| ffi::SQLITE_IOERR_WRITE)?;
            raw.write(self.page.as_slice(), on_disk(page))?;
        }
        Ok(())
    }

    /// Reads and opens one page; short if the file ends before it.
    fn load(&mut self, raw: &mut dyn RawFile, page: u64) -> Result<ReadAmount, Status> {
        for _ in 0..READS_MAX {
            let amount = raw.read(self.page.as_mut_slice(), on_disk(page))?;
            if amount == ReadAmount::Short && raw.size()? <= on_disk(page) {
                return Ok(ReadAmount::Short);
            }
            let is_whole = amount == ReadAmount::Whole;
            if is_whole && self.codec.open_page(BlockAddress::Page(page), &mut self.page).is_ok() {
                return Ok(ReadAmount::Whole);
            }
            std::thread::yield_now();
        }
        Err(ffi::SQLITE_CORRUPT)
    }
}

fn on_disk(page: u64) -> u64 {
    PROLOGUE_BYTES as u64 + page * PAGE_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::AeadCodec;
    use crate::layout::RESERVED_BYTES;
    use proptest::prelude::*;

    fn file() -> (DataFile, Vec<u8>) {
        (DataFile::new(Arc::new(AeadCodec::new(&[1; 32], [2; 16]).unwrap())), vec![0; PROLOGUE_BYTES])
    }

    fn plain(pages: usize) -> Vec<u8> {
        let mut all: Vec<u8> =
            (0..pages * PAGE_BYTES).map(|at| (at * 7 + at / 8192).to_le_bytes()[0]).collect();
        for page in all.chunks_mut(PAGE_BYTES) {
            page[PAGE_BYTES - RESERVED_BYTES..].fill(0);
        }
        all
    }

    #[test]
    fn writes_that_are_not_whole_pages_are_refused_and_leave_nothing() {
        let (mut file, mut raw) = file();
        let bytes = plain(1);
        for (count, offset) in [(100, 0), (PAGE_BYTES, 1), (PAGE_BYTES - 1, 0)] {
            assert_eq!(file.write(&mut raw, &bytes[..count], offset), Err(ffi::SQLITE_IOERR_WRITE));
        }
        assert_eq!(file.write(&mut raw, &[1; PAGE_BYTES], 0), Err(ffi::SQLITE_IOERR_WRITE), "reserved bytes");
        assert_eq!(raw.len(), PROLOGUE_BYTES);
    }

    #[test]
    fn a_page_that_was_zeroed_or_cut_is_an_error_and_the_end_is_not() {
        let (mut file, mut raw) = file();
        file.write(&mut raw, &plain(2), 0).unwrap();
        let mut buffer = [1; 100];
        assert_eq!(file.read(&mut raw, &mut buffer, 2 * PAGE_BYTES as u64), Ok(ReadAmount::Short));
        assert_eq!(buffer, [0; 100]);
        raw.truncate(raw.len() - 1);
        assert_eq!(file.read(&mut raw, &mut buffer, PAGE_BYTES as u64), Err(ffi::SQLITE_CORRUPT));
        raw[PROLOGUE_BYTES..2 * PROLOGUE_BYTES].fill(0);
        assert_eq!(file.read(&mut raw, &mut buffer, 0), Err(ffi::SQLITE_CORRUPT));
    }

    proptest! {
        #[test]
        fn any_range_reads_as_it_was_written(start in 0..3 * PAGE_BYTES, length in 1..2 * PAGE_BYTES) {
            let (mut file, mut raw) = file();
            let mut all = plain(3);
            file.write(&mut raw, &all, 0).unwrap();
            let mut buffer = vec![9; length];
            let whole = start + length <= all.len();
            let amount = file.read(&mut raw, &mut buffer, start as u64).unwrap();
            prop_assert_eq!(amount == ReadAmount::Whole, whole);
            all.resize(6 * PAGE_BYTES, 0);
            prop_assert_eq!(&buffer[..], &all[start..start + length]);
        }
    }
}
