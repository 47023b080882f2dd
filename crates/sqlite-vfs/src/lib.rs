//! A SQLite VFS that encrypts and authenticates every page of a data file and of its write-ahead log.
//!
//! It wraps the default VFS: locks, shared memory and flushes are SQLite's own. Only `xRead` and `xWrite` transform what passes
//! through them, with a [`PageCodec`]. A sealed data file begins with a prologue that holds its data key, wrapped by the
//! [`EncryptionKey`] of the installation; SQLite does not see it. See ADR 36.

mod cipher;
pub mod codec;
mod data_file;
pub mod key;
mod layout;
mod log_file;
mod log_scan;
mod memory_file;
mod methods;
mod prologue;
mod raw_file;
mod registry;
mod vfs;

pub use cipher::AeadCodec;
pub use codec::{BlockAddress, PageCodec};
pub use key::EncryptionKey;
pub use layout::{FRAME_SLOT_BYTES, HEADER_SLOT_BYTES, PAGE_BYTES, PROLOGUE_BYTES, RESERVED_BYTES};
pub use log_scan::{LogDamage, check_log};
pub use prologue::{FileFormat, file_format};
pub use registry::{Attachment, Error};
pub use vfs::{VFS_NAME, open_connection, reserve_page_bytes};
