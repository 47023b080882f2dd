//! A rollback journal that is never written to the disk, for files that are still being made: if the process dies, the whole
//! unfinished file is thrown away.

use rusqlite::ffi;

use crate::raw_file::{ReadAmount, Status};

/// A new file has no old pages to keep, so its journal is little more than a header.
const JOURNAL_BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct MemoryFile(Vec<u8>);

impl MemoryFile {
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> ReadAmount {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let count = buffer.len().min(self.0.len() - start);
        buffer[..count].copy_from_slice(&self.0[start..start + count]);
        buffer[count..].fill(0);
        if count == buffer.len() { ReadAmount::Whole } else { ReadAmount::Short }
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Status> {
        let start = usize::try_from(offset).map_err(|_| ffi::SQLITE_FULL)?;
        let end = start.checked_add(bytes.len()).filter(|end| *end <= JOURNAL_BYTES_MAX);
        let end = end.ok_or(ffi::SQLITE_FULL)?;
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        self.0[start..end].copy_from_slice(bytes);
        Ok(())
    }

    pub fn truncate(&mut self, size: u64) {
        self.0.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    }

    pub fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_back_what_was_written_up_to_its_limit() {
        let mut file = MemoryFile::default();
        file.write(b"abc", 2).unwrap();
        let mut buffer = [9; 6];
        assert_eq!(file.read(&mut buffer, 1), ReadAmount::Short);
        assert_eq!(&buffer, b"\0abc\0\0");
        assert_eq!(file.read(&mut buffer[..2], 3), ReadAmount::Whole);
        file.truncate(4);
        assert_eq!(file.size(), 4);
        assert_eq!(file.write(b"x", JOURNAL_BYTES_MAX as u64), Err(ffi::SQLITE_FULL));
        assert_eq!(file.write(b"x", u64::MAX), Err(ffi::SQLITE_FULL));
    }
}
