//! Tests of the whole SQLite store.

mod alone;
mod backups;
mod conversion;
mod damage;
mod encrypted;
mod faults;
mod groups;
mod merkle;
mod opening;
mod running;
mod simulation;

mod suite_file {
    use std::sync::Arc;

    use crate::sqlite::tests::{file, opened};
    use crate::suite::{Shared, TABLES};

    fn open() -> (Shared, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(opened(file(&folder), TABLES)), folder)
    }

    crate::store_suite!(open);
}

mod suite_encrypted {
    use std::sync::Arc;

    use crate::sqlite::tests::encrypted::opened;
    use crate::suite::Shared;

    fn open() -> (Shared, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (Arc::new(opened(&folder)), folder)
    }

    crate::store_suite!(open);
}

mod suite_memory {
    use std::sync::Arc;

    use crate::sqlite::Place;
    use crate::sqlite::tests::opened;
    use crate::suite::{Shared, TABLES};

    fn open() -> (Shared, ()) {
        (Arc::new(opened(Place::Memory, TABLES)), ())
    }

    crate::store_suite!(open);
}

mod suite_simulated {
    use std::sync::Arc;

    use crate::sqlite::Simulated;
    use crate::suite::{Shared, TABLES};

    fn open() -> (Shared, ()) {
        (Arc::new(Simulated::faultless(TABLES).unwrap()), ())
    }

    crate::store_suite!(open);
}

use std::path::{Path, PathBuf};

use orchestr8_kernel::ports::store::{Batch, Link, Statement, Store};

use super::{Options, Place, Sqlite, open};
use crate::migrations::Migration;
use crate::suite::TABLES;

fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("data").join("store.sqlite3")
}

fn file(folder: &tempfile::TempDir) -> Place {
    Place::File(path(folder))
}

/// The file with this ending beside the data file.
fn beside(data: &Path, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", data.display()))
}

fn insert(id: i64) -> Batch {
    crate::suite::batch([crate::suite::insert_item(id)])
}

fn link(body: &str) -> Batch {
    let link = Link { chain: "audit".into(), at_ms: 7, body: body.to_owned() };
    Batch { links: vec![link], ..Batch::new() }
}

async fn items(store: &Sqlite) -> Vec<i64> {
    let rows = store.query(Statement::new("SELECT id FROM item ORDER BY id", vec![])).await.unwrap();
    rows.iter().map(|row| row.int(0).unwrap()).collect()
}

fn suite_opened(folder: &tempfile::TempDir) -> Sqlite {
    opened(file(folder), TABLES)
}

fn opened(place: Place, tables: &[Migration]) -> Sqlite {
    open(Options::new(place, tables.to_vec())).unwrap()
}
