//! The file below: what the blocks are read from and written to.

use std::ffi::c_int;

/// A result code of SQLite that is not `SQLITE_OK`.
pub(crate) type Status = c_int;

/// Whether a read found all it asked for. What is behind the end of the file reads as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAmount {
    Whole,
    Short,
}

pub(crate) trait RawFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<ReadAmount, Status>;
    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Status>;
    fn size(&mut self) -> Result<u64, Status>;
}

/// A file in memory, for tests of what lies above.
#[cfg(test)]
impl RawFile for Vec<u8> {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<ReadAmount, Status> {
        let start = usize::try_from(offset).unwrap().min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        buffer[count..].fill(0);
        Ok(if count == buffer.len() { ReadAmount::Whole } else { ReadAmount::Short })
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Status> {
        let start = usize::try_from(offset).unwrap();
        if self.len() < start + bytes.len() {
            self.resize(start + bytes.len(), 0);
        }
        self[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn size(&mut self) -> Result<u64, Status> {
        Ok(self.len() as u64)
    }
}
