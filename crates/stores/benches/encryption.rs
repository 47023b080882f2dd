//! What encryption costs: the same commits and reads on a plain and on an encrypted store, in turns, the best of each as JSON lines.
//! Run with `cargo bench -p orchestr8-stores --bench encryption`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::time::{Duration, Instant};

use orchestr8_kernel::ports::store::{Batch, Cell, Statement, Store};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::{self, EncryptionKey, Options, Place, Sqlite, Sync};

const TABLES: Migration = Migration {
    name: "bench/0001-record",
    sql: "CREATE TABLE record (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;",
};

const ROUNDS: usize = 4;
const MEASURED: Duration = Duration::from_secs(2);

/// About 15 MB, several times the page cache of a reader: most reads need a page from the file.
const ROWS: i64 = 45_000;
const READS: i64 = 20_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut best = [[0.0_f64; 5]; 2];
        for round in 0..ROUNDS * 2 {
            let is_encrypted = round % 2 == 1;
            let rates = [
                commits(&open(is_encrypted, Sync::Full).0, 1).await,
                commits(&open(is_encrypted, Sync::Full).0, 64).await,
                // Without flushes, which hide what the processor does.
                commits(&open(is_encrypted, Sync::Normal).0, 1).await,
                reads(is_encrypted, ROWS).await,
                reads(is_encrypted, 1_000).await,
            ];
            for (best, rate) in best[round % 2].iter_mut().zip(rates) {
                *best = best.max(rate);
            }
        }
        let names = [
            "commit/1-client",
            "commit/64-clients",
            "commit/1-client-unflushed",
            "read/from-file",
            "read/from-cache",
        ];
        for (at, name) in names.iter().enumerate() {
            let (plain, encrypted) = (best[0][at], best[1][at]);
            print(&format!("{name}/plain"), plain, "/s");
            print(&format!("{name}/encrypted"), encrypted, "/s");
            print(&format!("{name}/ratio"), encrypted / plain * 100.0, "%");
        }
    });
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{{\"name\":\"encryption/{name}\",\"value\":{value:.1},\"unit\":\"{unit}\"}}");
}

fn open(is_encrypted: bool, sync: Sync) -> (Sqlite, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::File(folder.path().join("bench.sqlite3"));
    let key = is_encrypted.then(|| EncryptionKey::generate().unwrap());
    (sqlite::open(Options { key, sync, ..Options::new(place, vec![TABLES]) }).unwrap(), folder)
}

fn insert() -> Statement {
    Statement::new("INSERT INTO record (body) VALUES (?1)", vec![vec![7_u8; 300].into()])
}

/// Records of 300 bytes, each awaited before the client sends its next.
async fn commits(store: &Sqlite, clients: usize) -> f64 {
    let started = Instant::now();
    let tasks = (0..clients).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut count = 0_u32;
            while started.elapsed() < MEASURED {
                let mut batch = Batch::new();
                batch.then_one(insert());
                store.commit(batch).await.unwrap();
                count += 1;
            }
            count
        })
    });
    let mut count = 0;
    for task in tasks.collect::<Vec<_>>() {
        count += task.await.unwrap();
    }
    f64::from(count) / started.elapsed().as_secs_f64()
}

/// Reads by key, spread over all rows.
async fn reads(is_encrypted: bool, rows: i64) -> f64 {
    let (store, _folder) = open(is_encrypted, Sync::Full);
    for _ in 0..rows / 1_000 {
        let mut batch = Batch::new();
        for _ in 0..1_000 {
            batch.then_one(insert());
        }
        store.commit(batch).await.unwrap();
    }
    let started = Instant::now();
    for n in 0..READS {
        let id = 1 + n * 7_919 % rows;
        let question = Statement::new("SELECT body FROM record WHERE id = ?1", vec![Cell::from(id)]);
        assert_eq!(store.query(question).await.unwrap().len(), 1);
    }
    READS as f64 / started.elapsed().as_secs_f64()
}
