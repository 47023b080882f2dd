//! The transformation of blocks on their way to the disk and back, behind one trait: encryption, or only a checksum.

use crate::layout::{HEADER_SLOT_BYTES, PAGE_BYTES};

/// Where a block belongs. A codec binds the block to it, so that a block in another place does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockAddress {
    /// A page of the data file, counted from 0.
    Page(u64),
    /// The header of the log.
    LogHeader,
    /// The header of a frame of the log, counted from 0.
    FrameHeader(u64),
    /// The page in a frame, with what its header says of it: page number, size of the database after a commit, and the salts of
    /// the log's generation.
    FramePage { frame: u64, header: [u8; 16] },
}

/// Why a block was not transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not what was written at this place with this key.
    #[error("a block of the data file fails its check")]
    NotAuthentic,
    /// SQLite wrote into the bytes that are reserved for the codec.
    #[error("the reserved bytes of a page are in use")]
    ReservedInUse,
    #[error("a block could not be encrypted")]
    Failed,
}

/// Seals blocks before they are written and opens them after they were read.
pub trait PageCodec: Send + Sync {
    /// Seals a page in place. Its last [`RESERVED_BYTES`](crate::RESERVED_BYTES) are zero before, and the codec's after.
    fn seal_page(&self, at: BlockAddress, page: &mut [u8; PAGE_BYTES]) -> Result<(), Error>;

    /// Opens a page in place; its reserved bytes are zero again. On an error the content is unspecified and must not be used.
    fn open_page(&self, at: BlockAddress, page: &mut [u8; PAGE_BYTES]) -> Result<(), Error>;

    /// Seals a header of the log, at most 32 bytes, into its slot.
    fn seal_header(
        &self,
        at: BlockAddress,
        header: &[u8],
        slot: &mut [u8; HEADER_SLOT_BYTES],
    ) -> Result<(), Error>;

    /// Opens the slot into the header, which has the length that was sealed.
    fn open_header(
        &self,
        at: BlockAddress,
        slot: &[u8; HEADER_SLOT_BYTES],
        header: &mut [u8],
    ) -> Result<(), Error>;
}
