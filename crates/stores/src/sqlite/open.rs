//! Opens a database: whose it is, its settings, its migrations. Nothing is changed before all of that is in order.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use orchestr8_kernel::ports::store;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

use super::access::DataAccess;
use super::conversion;
use super::errors::store_error;
use super::fresh;
use super::limits;
use super::lock::{self, Lock};
use super::options::{Options, Place, Sync};
use super::permissions::{self, Exposure};
use crate::migrations::{self, Applied, Migration};

/// Why a store could not be opened. Nothing of what is there was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} is in use by {}; one process owns a data file", holder(*.pid))]
    Held { path: PathBuf, pid: Option<u32> },
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error(transparent)]
    Exposed(#[from] Exposure),
    #[error("{path} is a database of another program; it was left as it is")]
    Foreign { path: PathBuf },
    #[error("{path} is encrypted, and no key is configured")]
    KeyMissing { path: PathBuf },
    #[error("the configured key does not open {path}; it was encrypted with another one")]
    WrongKey { path: PathBuf },
    #[error("{path} is not encrypted, and a key is configured")]
    NotEncrypted { path: PathBuf },
    #[error("{path}: {damage}")]
    LogDamaged { path: PathBuf, damage: orchestr8_sqlite_vfs::LogDamage },
    #[error("{path}: the copy does not have the content of the original: {what}")]
    CopyDiffers { path: PathBuf, what: String },
    #[error("{path} cannot use a write-ahead log; put the data on a local disk")]
    NoLog { path: PathBuf },
    #[error(transparent)]
    Migrations(#[from] migrations::Error),
    #[error("the migration `{name}` failed, and nothing was changed: {cause}")]
    Migration { name: String, cause: store::Error },
    #[error("the table `{0}` is not STRICT")]
    NotStrict(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// A connection that writes, and what the readers need to make theirs.
pub(super) struct Opened {
    pub connection: Connection,
    pub file: Option<DataFile>,
}

/// The data file, owned by this process as long as this lives.
pub(super) struct DataFile {
    pub access: DataAccess,
    _lock: Lock,
}

/// In a database's header: this file is ours. The letters `orc8`.
const APPLICATION_ID: i32 = 0x6f72_6338;

pub(super) fn open(options: &Options) -> Result<Opened, Error> {
    match &options.place {
        Place::Memory => {
            let connection = memory(&options.migrations)?;
            set_pages_max(&connection, options)?;
            Ok(Opened { connection, file: None })
        }
        Place::File(path) => {
            let (path, lock) = own(path)?;
            if is_fresh(&path) {
                fresh::create(&path, &options.migrations, options.key.as_ref())?;
            }
            let access = DataAccess::new(&path, options.key.as_ref())?;
            access.check_log(options.sync == Sync::Full)?;
            let connection = writer(&access, options.sync)?;
            migrate(&connection, &options.migrations)?;
            set_pages_max(&connection, options)?;
            Ok(Opened { connection, file: Some(DataFile { access, _lock: lock }) })
        }
    }
}

/// Makes this process the owner of a data file, and gives its path in full. What a conversion that was cut off left is removed.
pub(super) fn own(path: &Path) -> Result<(PathBuf, Lock), Error> {
    let path = folder(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })?;
    permissions::check_folder(path.parent().unwrap_or(Path::new("/")))?;
    let lock = lock::take(&path).map_err(|error| match error {
        lock::Error::Held(pid) => Error::Held { path: path.clone(), pid },
        lock::Error::Io(cause) => Error::Io { path: lock::path_of(&path), cause },
        lock::Error::Exposed(exposure) => Error::Exposed(exposure),
    })?;
    conversion::remove_unfinished(&path).map_err(|cause| Error::Io { path: path.clone(), cause })?;
    Ok((path, lock))
}

/// A database in memory, migrated.
pub(super) fn memory(migrations: &[Migration]) -> Result<Connection, Error> {
    let connection = Connection::open_in_memory().map_err(store_error)?;
    guard(&connection).map_err(store_error)?;
    migrate(&connection, migrations)?;
    Ok(connection)
}

/// Another database in memory with the same content.
pub(super) fn copy(from: &Connection) -> Result<Connection, store::Error> {
    let copy = || {
        let mut connection = Connection::open_in_memory()?;
        guard(&connection)?;
        Backup::new(from, &mut connection)?.step(-1)?;
        Ok(connection)
    };
    copy().map_err(store_error)
}

/// A connection that can only read.
pub(super) fn reader(access: &DataAccess) -> rusqlite::Result<Connection> {
    let connection = access.connect()?;
    guard(&connection)?;
    connection.pragma_update(None, "cache_size", -limits::READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Creates the folder for its owner alone, and gives the path in full: SQLite reads a name that begins with `file:` as
/// something else.
fn folder(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(folder.canonicalize()?.join(name))
}

/// Only whoever has the lock may look: closing a file takes SQLite's own locks on it away from the whole process.
fn is_fresh(path: &Path) -> bool {
    path.metadata().map_or_else(|error| error.kind() == io::ErrorKind::NotFound, |found| found.len() == 0)
}

pub(super) fn writer(access: &DataAccess, sync: Sync) -> Result<Connection, Error> {
    let connection = access.connect().map_err(store_error)?;
    guard(&connection).map_err(store_error)?;
    if !is_ours(&connection).map_err(store_error)? {
        return Err(Error::Foreign { path: access.path().to_owned() });
    }
    let set = || {
        use_memory_journal(&connection, access)?;
        connection.pragma_update(None, "page_size", limits::PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        let mode: String =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        let level = match sync {
            Sync::Full => "FULL",
            Sync::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", level)?;
        // Only macOS heeds these: its plain flush leaves data in the drive.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        // The writer moves the log itself, so that a failed flush is seen.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        connection.pragma_update(None, "journal_size_limit", limits::LOG_BYTES_KEPT.cast_signed())?;
        connection.pragma_update(None, "cache_size", -limits::WRITER_CACHE_KIB)?;
        Ok(mode)
    };
    let mode = set().map_err(store_error)?;
    if mode.eq_ignore_ascii_case("wal") {
        Ok(connection)
    } else {
        Err(Error::NoLog { path: access.path().to_owned() })
    }
}

/// A restored backup has no write-ahead log, and the one page that changes when it gets one would go through a journal of plain
/// text. For an encrypted file that journal is in memory.
fn use_memory_journal(connection: &Connection, access: &DataAccess) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if access.key().is_none() || mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))
}

/// The settings every connection has, in memory or on disk.
pub(super) fn guard(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(limits::BUSY)?;
    connection.set_prepared_statement_cache_capacity(limits::STATEMENTS_CACHED);
    connection
        .set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(limits::VALUE_BYTES_MAX).unwrap_or(i32::MAX))?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 16)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

pub(super) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(id == APPLICATION_ID || (id == 0 && tables == 0))
}

fn set_pages_max(connection: &Connection, options: &Options) -> Result<(), Error> {
    let Some(pages) = options.pages_max else { return Ok(()) };
    let set = connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
    set.map_err(|error| store_error(error).into())
}

/// All that is outstanding in one transaction: whichever of them fails, nothing has changed.
pub(super) fn migrate(connection: &Connection, lists: &[Migration]) -> Result<(), Error> {
    let transaction = connection.unchecked_transaction().map_err(store_error)?;
    sign(&transaction).map_err(store_error)?;
    let applied = applied(&transaction).map_err(store_error)?;
    for migration in migrations::outstanding(lists, &applied)? {
        let named = |error| Error::Migration { name: migration.name.to_owned(), cause: store_error(error) };
        apply(&transaction, &migration).map_err(named)?;
    }
    strict(&transaction)?;
    Ok(transaction.commit().map_err(store_error)?)
}

/// Says in the header whose file it is.
fn sign(connection: &Connection) -> rusqlite::Result<()> {
    let id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    // Written again it would be a change, and cost a flush with every start.
    if id == APPLICATION_ID {
        Ok(())
    } else {
        connection.pragma_update(None, "application_id", APPLICATION_ID)
    }
}

fn apply(connection: &Connection, migration: &Migration) -> rusqlite::Result<()> {
    connection.execute_batch(migration.sql)?;
    let record = "INSERT INTO schema_migrations (name, checksum) VALUES (?1, ?2)";
    connection.execute(record, [migration.name, &migration.checksum()]).map(|_| ())
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<Applied>> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations (
            position INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            checksum TEXT NOT NULL
        ) STRICT",
    )?;
    let mut statement =
        connection.prepare("SELECT name, checksum FROM schema_migrations ORDER BY position")?;
    let rows = statement.query_map([], |row| Ok(Applied { name: row.get(0)?, checksum: row.get(1)? }))?;
    rows.collect()
}

/// Columns hold what they say, so that a value reads back as it was written.
fn strict(connection: &Connection) -> Result<(), Error> {
    let find = || {
        let mut statement = connection.prepare(
            "SELECT name FROM pragma_table_list
             WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )?;
        let mut names = statement.query_map([], |row| row.get::<_, String>(0))?;
        names.next().transpose()
    };
    match find().map_err(store_error)? {
        None => Ok(()),
        Some(name) => Err(Error::NotStrict(name)),
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| String::from("another process"), |pid| format!("the process {pid}"))
}
