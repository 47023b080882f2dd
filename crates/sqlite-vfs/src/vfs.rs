//! The VFS itself: registered once, on top of the default one; and the two calls that need a connection's handle.
#![allow(unsafe_code, reason = "SQLite calls a VFS through C function pointers")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_vfs};
use rusqlite::{Connection, OpenFlags};

use crate::data_file::DataFile;
use crate::layout::RESERVED_BYTES;
use crate::log_file::LogFile;
use crate::memory_file::MemoryFile;
use crate::methods::{INNER_OFFSET, OpenFile, clear, inner, install};
use crate::registry::{self, Attachment};

/// The name that connections ask for.
pub const VFS_NAME: &str = "orchestr8-sealed";
const NAME: &CStr = c"orchestr8-sealed";

const LOG_ENDING: &[u8] = b"-wal";
const JOURNAL_ENDING: &[u8] = b"-journal";

/// Opens a connection to an attached file.
pub fn open_connection(attached: &Attachment, flags: OpenFlags) -> rusqlite::Result<Connection> {
    register()?;
    Connection::open_with_flags_and_vfs(attached.path(), flags, VFS_NAME)
}

/// Asks for the reserved bytes at the end of every page of a database that has no page yet.
pub fn reserve_page_bytes(connection: &Connection) -> rusqlite::Result<()> {
    let mut bytes = RESERVED_BYTES as c_int;
    // SAFETY: the handle is open while the connection is borrowed, and the argument of this operation is an integer.
    let status = unsafe {
        ffi::sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_RESERVE_BYTES,
            (&raw mut bytes).cast(),
        )
    };
    outcome(status)
}

fn outcome(status: c_int) -> rusqlite::Result<()> {
    match status {
        ffi::SQLITE_OK => Ok(()),
        status => Err(rusqlite::Error::SqliteFailure(ffi::Error::new(status), None)),
    }
}

fn register() -> rusqlite::Result<()> {
    static STATUS: OnceLock<c_int> = OnceLock::new();
    outcome(*STATUS.get_or_init(|| {
        // SAFETY: no name means the default VFS, which lives as long as the program.
        let Some(base) = (unsafe { ffi::sqlite3_vfs_find(ptr::null()).as_mut() }) else {
            return ffi::SQLITE_ERROR;
        };
        let own_bytes = c_int::try_from(INNER_OFFSET).unwrap_or(c_int::MAX);
        let vfs = Box::new(sqlite3_vfs {
            iVersion: 2,
            szOsFile: own_bytes.saturating_add(base.szOsFile),
            mxPathname: base.mxPathname,
            pNext: ptr::null_mut(),
            zName: NAME.as_ptr(),
            pAppData: ptr::from_mut(base).cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_pathname),
            xDlOpen: Some(dl_open),
            xDlError: Some(dl_error),
            xDlSym: Some(dl_sym),
            xDlClose: Some(dl_close),
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(current_time_int64),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        });
        // SAFETY: the VFS is never freed, and it is not made the default.
        unsafe { ffi::sqlite3_vfs_register(Box::into_raw(vfs), 0) }
    }))
}

/// The VFS below.
///
/// # Safety
/// `vfs` is the one that `register` made.
unsafe fn base<'v>(vfs: *mut sqlite3_vfs) -> &'v mut sqlite3_vfs {
    // SAFETY: `register` puts the default VFS there, which lives as long as the program.
    unsafe { &mut *(*vfs).pAppData.cast::<sqlite3_vfs>() }
}

/// What a file is to SQLite, if this VFS opens such files.
fn content_of(name: &[u8], flags: c_int) -> Option<OpenFile> {
    if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 {
        return Some(OpenFile::Data(DataFile::new(registry::find(name)?.codec.clone())));
    }
    if flags & ffi::SQLITE_OPEN_WAL != 0 {
        return Some(OpenFile::Log(LogFile::new(
            registry::find(name.strip_suffix(LOG_ENDING)?)?.codec.clone(),
        )));
    }
    let is_journal = flags & ffi::SQLITE_OPEN_MAIN_JOURNAL != 0;
    let data = name.strip_suffix(JOURNAL_ENDING).filter(|_| is_journal)?;
    registry::find(data)?.is_unfinished.then(|| OpenFile::Memory(MemoryFile::default()))
}

/// Opens data files and their logs. Everything else would put plain text on the disk, or bring some from there: it is refused.
unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives space for a file of this VFS.
    unsafe { clear(file) };
    // SAFETY: a name that is not null is a string that lives as long as the file.
    let content = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    let Some(content) = content.and_then(|name| content_of(name.to_bytes(), flags)) else {
        return ffi::SQLITE_CANTOPEN;
    };
    if let OpenFile::Memory(_) = content {
        // SAFETY: the space is cleared, and a file in memory has none below.
        unsafe { install(file, content) };
        return ffi::SQLITE_OK;
    }
    // SAFETY: the VFS is ours; the file below has its space; the name and the flags are those that SQLite gives.
    unsafe {
        let (base, inner) = (base(vfs), inner(file));
        let Some(open) = base.xOpen else { return ffi::SQLITE_CANTOPEN };
        let status = open(base, name, inner, flags, flags_out);
        if status == ffi::SQLITE_OK {
            install(file, content);
        } else if let Some(close) = (*inner).pMethods.as_ref().and_then(|methods| methods.xClose) {
            close(inner);
        }
        status
    }
}

/// There are no journals on the disk: one that lies there was planted, and is not looked at.
unsafe extern "C" fn access(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    to: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives a name and a place for the answer; the VFS is ours.
    unsafe {
        if !name.is_null() && CStr::from_ptr(name).to_bytes().ends_with(JOURNAL_ENDING) {
            *to = 0;
            return ffi::SQLITE_OK;
        }
        let base = base(vfs);
        base.xAccess.map_or(ffi::SQLITE_IOERR_ACCESS, |access| access(base, name, flags, to))
    }
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite gives a name; the VFS is ours.
    unsafe {
        if !name.is_null() && CStr::from_ptr(name).to_bytes().ends_with(JOURNAL_ENDING) {
            return ffi::SQLITE_OK;
        }
        let base = base(vfs);
        base.xDelete.map_or(ffi::SQLITE_IOERR_DELETE, |delete| delete(base, name, sync))
    }
}

/// Calls the same method of the VFS below.
macro_rules! delegate {
    ($name:ident, $method:ident, $none:expr, $($arg:ident: $type:ty),*) => {
        unsafe extern "C" fn $name(vfs: *mut sqlite3_vfs, $($arg: $type),*) -> c_int {
            // SAFETY: the VFS is ours, and the arguments are those that SQLite gives for this method.
            unsafe {
                let base = base(vfs);
                base.$method.map_or($none, |method| method(base, $($arg),*))
            }
        }
    };
}

delegate!(full_pathname, xFullPathname, ffi::SQLITE_CANTOPEN, name: *const c_char, length: c_int, to: *mut c_char);
delegate!(randomness, xRandomness, 0, length: c_int, to: *mut c_char);
delegate!(sleep, xSleep, 0, microseconds: c_int);
delegate!(current_time, xCurrentTime, ffi::SQLITE_ERROR, to: *mut f64);
delegate!(current_time_int64, xCurrentTimeInt64, ffi::SQLITE_ERROR, to: *mut i64);
delegate!(last_error, xGetLastError, 0, length: c_int, to: *mut c_char);

/// Extensions are not loaded.
unsafe extern "C" fn dl_open(_: *mut sqlite3_vfs, _: *const c_char) -> *mut c_void {
    ptr::null_mut()
}

unsafe extern "C" fn dl_error(_: *mut sqlite3_vfs, _: c_int, _: *mut c_char) {}

type Symbol = unsafe extern "C" fn(*mut sqlite3_vfs, *mut c_void, *const c_char);

unsafe extern "C" fn dl_sym(_: *mut sqlite3_vfs, _: *mut c_void, _: *const c_char) -> Option<Symbol> {
    None
}

unsafe extern "C" fn dl_close(_: *mut sqlite3_vfs, _: *mut c_void) {}
