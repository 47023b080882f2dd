//! Tests of the whole SQLite store.

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

use super::{Options, Place, Sqlite, open};
use crate::migrations::Migration;

fn file(folder: &tempfile::TempDir) -> Place {
    Place::File(folder.path().join("data").join("store.sqlite3"))
}

fn opened(place: Place, tables: &[Migration]) -> Sqlite {
    open(Options::new(place, tables.to_vec())).unwrap()
}
