//! The methods of open files, as SQLite calls them.
#![allow(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]

use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods};

use crate::data_file::DataFile;
use crate::layout::{PROLOGUE_BYTES, log_size_on_disk, log_size_seen};
use crate::log_file::LogFile;
use crate::memory_file::MemoryFile;
use crate::raw_file::{RawFile, ReadAmount, Status};

/// A file of this VFS: what SQLite knows, our part, and behind it the file of the VFS below.
#[repr(C)]
pub(crate) struct VfsFile {
    base: sqlite3_file,
    content: *mut OpenFile,
}

/// Where the file of the VFS below begins: aligned for anything.
pub(crate) const INNER_OFFSET: usize = size_of::<VfsFile>().next_multiple_of(16);

pub(crate) enum OpenFile {
    Data(DataFile),
    Log(LogFile),
    /// A journal that is never on the disk. There is no file below.
    Memory(MemoryFile),
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // 2: shared memory, and no mapped pages, which would bypass the codec.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// Marks a file as not open, so that SQLite does not close it.
///
/// # Safety
/// `file` points to the space of `INNER_OFFSET` bytes and the file below, which SQLite gives to `xOpen`.
pub(crate) unsafe fn clear(file: *mut sqlite3_file) {
    // SAFETY: the caller gives space for both files.
    unsafe {
        (*file).pMethods = ptr::null();
        (*inner(file)).pMethods = ptr::null();
    }
}

/// Gives an open file its content.
///
/// # Safety
/// As for `clear`; the file below is open, or cleared for `OpenFile::Memory`.
pub(crate) unsafe fn install(file: *mut sqlite3_file, content: OpenFile) {
    let own = file.cast::<VfsFile>();
    // SAFETY: the space begins with a `VfsFile`, as `szOsFile` of the VFS says.
    unsafe {
        (*own).content = Box::into_raw(Box::new(content));
        (*own).base.pMethods = &raw const METHODS;
    }
}

/// The file of the VFS below.
///
/// # Safety
/// As for `clear`.
pub(crate) unsafe fn inner(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: the space that SQLite allocates is as long as `szOsFile` of the VFS: ours and that of the VFS below.
    unsafe { file.cast::<u8>().add(INNER_OFFSET).cast() }
}

/// The open file below with its methods; none for a file in memory.
///
/// # Safety
/// `file` was opened by this VFS.
unsafe fn below(file: *mut sqlite3_file) -> Option<(*mut sqlite3_file, &'static sqlite3_io_methods)> {
    // SAFETY: the methods of an open file live as long as the program: they are a table of the VFS below.
    unsafe {
        let inner = inner(file);
        (*inner).pMethods.as_ref().map(|methods| (inner, methods))
    }
}

/// The content of a file.
///
/// # Safety
/// `file` was opened by this VFS, and nothing else uses its content: SQLite uses a file on one thread at a time.
unsafe fn content<'f>(file: *mut sqlite3_file) -> &'f mut OpenFile {
    // SAFETY: `install` has put a box there, which only `close` takes away.
    unsafe { &mut *(*file.cast::<VfsFile>()).content }
}

/// The file below, as the codecs use it.
struct Below(*mut sqlite3_file, &'static sqlite3_io_methods);

impl RawFile for Below {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<ReadAmount, Status> {
        let (read, length) = (self.1.xRead.ok_or(ffi::SQLITE_IOERR)?, length(buffer.len())?);
        // SAFETY: the file is open, and the buffer has that many bytes.
        match unsafe { read(self.0, buffer.as_mut_ptr().cast(), length, signed(offset)?) } {
            ffi::SQLITE_OK => Ok(ReadAmount::Whole),
            ffi::SQLITE_IOERR_SHORT_READ => Ok(ReadAmount::Short),
            status => Err(status),
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> Result<(), Status> {
        let (write, length) = (self.1.xWrite.ok_or(ffi::SQLITE_IOERR)?, length(bytes.len())?);
        // SAFETY: the file is open, and there are that many bytes.
        done(unsafe { write(self.0, bytes.as_ptr().cast(), length, signed(offset)?) })
    }

    fn size(&mut self) -> Result<u64, Status> {
        let mut size = 0;
        let ask = self.1.xFileSize.ok_or(ffi::SQLITE_IOERR)?;
        // SAFETY: the file is open, and the size is written to a local variable.
        done(unsafe { ask(self.0, &raw mut size) })?;
        u64::try_from(size).map_err(|_| ffi::SQLITE_IOERR)
    }
}

fn length(bytes: usize) -> Result<c_int, Status> {
    c_int::try_from(bytes).map_err(|_| ffi::SQLITE_IOERR)
}

fn signed(offset: u64) -> Result<i64, Status> {
    i64::try_from(offset).map_err(|_| ffi::SQLITE_IOERR)
}

fn done(status: c_int) -> Result<(), Status> {
    if status == ffi::SQLITE_OK { Ok(()) } else { Err(status) }
}

fn status(result: Result<(), Status>) -> c_int {
    result.err().unwrap_or(ffi::SQLITE_OK)
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let own = file.cast::<VfsFile>();
    // SAFETY: SQLite closes a file once, and does not use it afterwards.
    unsafe {
        drop(Box::from_raw((*own).content));
        (*own).content = ptr::null_mut();
        match below(file) {
            Some((inner, methods)) => methods.xClose.map_or(ffi::SQLITE_OK, |close| close(inner)),
            None => ffi::SQLITE_OK,
        }
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, amount: c_int, offset: i64) -> c_int {
    let (Ok(amount), Ok(offset)) = (usize::try_from(amount), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: the file is open, and SQLite gives a buffer of that many bytes.
    let (content, buffer, below) =
        unsafe { (content(file), slice::from_raw_parts_mut(to.cast::<u8>(), amount), below(file)) };
    let below = below.map(|(inner, methods)| Below(inner, methods));
    let read = match (&mut *content, below) {
        (OpenFile::Data(data), Some(mut below)) => data.read(&mut below, buffer, offset),
        (OpenFile::Log(log), Some(mut below)) => log.read(&mut below, buffer, offset),
        (OpenFile::Memory(memory), _) => Ok(memory.read(buffer, offset)),
        (OpenFile::Data(_) | OpenFile::Log(_), None) => Err(ffi::SQLITE_IOERR_READ),
    };
    match read {
        Ok(ReadAmount::Whole) => ffi::SQLITE_OK,
        Ok(ReadAmount::Short) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(status) => {
            buffer.fill(0);
            status
        }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    let (Ok(amount), Ok(offset)) = (usize::try_from(amount), u64::try_from(offset)) else {
        return ffi::SQLITE_IOERR_WRITE;
    };
    // SAFETY: the file is open, and SQLite gives that many bytes.
    let (content, bytes, below) =
        unsafe { (content(file), slice::from_raw_parts(from.cast::<u8>(), amount), below(file)) };
    let below = below.map(|(inner, methods)| Below(inner, methods));
    status(match (&mut *content, below) {
        (OpenFile::Data(data), Some(mut below)) => data.write(&mut below, bytes, offset),
        (OpenFile::Log(log), Some(mut below)) => log.write(&mut below, bytes, offset),
        (OpenFile::Memory(memory), _) => memory.write(bytes, offset),
        (OpenFile::Data(_) | OpenFile::Log(_), None) => Err(ffi::SQLITE_IOERR_WRITE),
    })
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    let Ok(size) = u64::try_from(size) else { return ffi::SQLITE_IOERR_TRUNCATE };
    // SAFETY: the file is open.
    let (content, below) = unsafe { (content(file), below(file)) };
    let on_disk = match content {
        OpenFile::Data(_) => size.saturating_add(PROLOGUE_BYTES as u64),
        OpenFile::Log(_) => log_size_on_disk(size),
        OpenFile::Memory(memory) => {
            memory.truncate(size);
            return ffi::SQLITE_OK;
        }
    };
    match (below.and_then(|(inner, methods)| Some((inner, methods.xTruncate?))), i64::try_from(on_disk)) {
        // SAFETY: the file below is open.
        (Some((inner, truncate)), Ok(on_disk)) => unsafe { truncate(inner, on_disk) },
        (None, _) | (_, Err(_)) => ffi::SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, to: *mut i64) -> c_int {
    // SAFETY: the file is open.
    let (content, below) = unsafe { (content(file), below(file)) };
    let on_disk =
        || below.map_or(Err(ffi::SQLITE_IOERR_FSTAT), |(inner, methods)| Below(inner, methods).size());
    let seen = match content {
        OpenFile::Data(_) => on_disk().map(|size| size.saturating_sub(PROLOGUE_BYTES as u64)),
        OpenFile::Log(_) => on_disk().map(log_size_seen),
        OpenFile::Memory(memory) => Ok(memory.size()),
    };
    status(seen.and_then(signed).map(|size| {
        // SAFETY: SQLite gives a place for the size.
        unsafe { *to = size }
    }))
}

/// Calls the same method of the file below; a file in memory has nothing to do.
macro_rules! delegate {
    ($name:ident, $method:ident, $none:expr $(, $arg:ident: $type:ty)*) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $arg: $type)*) -> c_int {
            // SAFETY: the file is open, and the arguments are those that SQLite gives for this method.
            unsafe {
                match below(file).and_then(|(inner, methods)| Some((inner, methods.$method?))) {
                    Some((inner, method)) => method(inner $(, $arg)*),
                    None => $none,
                }
            }
        }
    };
}

delegate!(sync, xSync, ffi::SQLITE_OK, flags: c_int);
delegate!(lock, xLock, ffi::SQLITE_OK, level: c_int);
delegate!(unlock, xUnlock, ffi::SQLITE_OK, level: c_int);
delegate!(check_reserved_lock, xCheckReservedLock, ffi::SQLITE_OK, to: *mut c_int);
delegate!(sector_size, xSectorSize, 0);
delegate!(shm_map, xShmMap, ffi::SQLITE_IOERR, page: c_int, size: c_int, extend: c_int, to: *mut *mut c_void);
delegate!(shm_lock, xShmLock, ffi::SQLITE_IOERR, offset: c_int, count: c_int, flags: c_int);
delegate!(shm_unmap, xShmUnmap, ffi::SQLITE_OK, delete: c_int);

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    // SAFETY: the file is open, and so is the one below.
    unsafe {
        if let Some((inner, methods)) = below(file)
            && let Some(barrier) = methods.xShmBarrier
        {
            barrier(inner);
        }
    }
}

/// The disk overwrites safely, so that SQLite does not pad the log to whole sectors. Nothing else is promised: above all no
/// reads of parts of pages, and no atomic writes that would bypass a journal.
unsafe extern "C" fn device_characteristics(_: *mut sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the file is open.
    let (content, below) = unsafe { (content(file), below(file)) };
    let Some((inner, control)) = below.and_then(|(inner, methods)| Some((inner, methods.xFileControl?)))
    else {
        return ffi::SQLITE_NOTFOUND;
    };
    match (op, content) {
        // Mapped pages, growth in chunks and atomic writes would bypass the codec or its offsets.
        (
            ffi::SQLITE_FCNTL_MMAP_SIZE
            | ffi::SQLITE_FCNTL_CHUNK_SIZE
            | ffi::SQLITE_FCNTL_BEGIN_ATOMIC_WRITE
            | ffi::SQLITE_FCNTL_COMMIT_ATOMIC_WRITE
            | ffi::SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE,
            _,
        )
        | (ffi::SQLITE_FCNTL_SIZE_HINT, OpenFile::Log(_) | OpenFile::Memory(_)) => ffi::SQLITE_NOTFOUND,
        (ffi::SQLITE_FCNTL_SIZE_HINT, OpenFile::Data(_)) => {
            // SAFETY: the argument of this operation is a size.
            let mut size = unsafe { *argument.cast::<i64>() }.saturating_add(PROLOGUE_BYTES as i64);
            // SAFETY: the file below is open, and the size is a local variable.
            unsafe { control(inner, op, (&raw mut size).cast()) }
        }
        // SAFETY: the file below is open, and the argument is the one that SQLite gives.
        (_, OpenFile::Data(_) | OpenFile::Log(_) | OpenFile::Memory(_)) => unsafe {
            control(inner, op, argument)
        },
    }
}
