//! How fast the store commits and reads, as JSON lines. Run with `cargo bench -p orchestr8-stores`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orchestr8_kernel::ports::store::{Batch, Cell, Link, Statement, Store};
use orchestr8_stores::Migration;
use orchestr8_stores::merkle::LogSource;
use orchestr8_stores::sqlite::simulated::Rates;
use orchestr8_stores::sqlite::{self, Options, Place, Simulated, Sqlite};

const TABLES: Migration = Migration {
    name: "bench/0001-record",
    sql: "CREATE TABLE record (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
          CREATE TABLE keyed (key TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;",
};

/// How long each rate is measured; long enough that the log is moved into the file at least once.
const MEASURED: Duration = Duration::from_secs(5);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        anchor();
        for clients in [1, 64, 512] {
            commit(clients).await;
        }
        point_query().await;
        chain().await;
        merkle().await;
        simulated().await;
    });
}

fn open(folder: &tempfile::TempDir) -> Sqlite {
    sqlite::open(Options::new(Place::File(folder.path().join("bench.sqlite3")), vec![TABLES])).unwrap()
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{{\"name\":\"store/{name}\",\"value\":{value:.1},\"unit\":\"{unit}\"}}");
}

/// What the disk itself can do: writes of one log page, each flushed, into a file that is already that long.
fn anchor() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("anchor")).unwrap();
    file.write_all_at(&vec![0; 32 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&[1; 8216], count % 4_000 * 8216).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    print("anchor/flush", count as f64 / started.elapsed().as_secs_f64(), "/s");
}

/// Records of 300 bytes, each awaited before the client sends its next.
async fn commit(clients: usize) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let started = Instant::now();
    let tasks = (0..clients).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut times_us = Vec::new();
            while started.elapsed() < MEASURED {
                let started = Instant::now();
                store.commit(record()).await.unwrap();
                times_us.push(started.elapsed().as_secs_f64() * 1e6);
            }
            times_us
        })
    });
    let mut times_us = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        times_us.extend(task.await.unwrap());
    }
    let seconds = started.elapsed().as_secs_f64();
    let name = if clients == 1 { "commit/1-client".to_owned() } else { format!("commit/{clients}-clients") };
    print(&name, times_us.len() as f64 / seconds, "/s");
    quantiles(&name, times_us);
}

fn quantiles(name: &str, mut times_us: Vec<f64>) {
    times_us.sort_by(f64::total_cmp);
    print(&format!("{name}/p50"), times_us[times_us.len() / 2], "us");
    print(&format!("{name}/p99"), times_us[times_us.len() * 99 / 100], "us");
    print(&format!("{name}/max"), times_us[times_us.len() - 1], "us");
}

fn record() -> Batch {
    let mut batch = Batch::new();
    batch.then_one(Statement::new("INSERT INTO record (body) VALUES (?1)", vec![vec![7_u8; 300].into()]));
    batch
}

/// A simulated process with fifty commits, from its start.
async fn simulated() {
    let disk = Simulated::faultless(&[TABLES]).unwrap();
    let seeds = 1_000;
    let started = Instant::now();
    for seed in 0..seeds {
        let store = disk.copy(seed, Rates::default()).unwrap();
        for _ in 0..50 {
            store.commit(record()).await.unwrap();
        }
    }
    print("simulated/seed-of-50-commits", started.elapsed().as_secs_f64() * 1e6 / seeds as f64, "us");
    let started = Instant::now();
    for seed in 0..seeds {
        disk.copy(seed, Rates::default()).unwrap();
    }
    print("simulated/copy", started.elapsed().as_secs_f64() * 1e6 / seeds as f64, "us");
}

async fn point_query() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(open(&folder));
    let mut batch = Batch::new();
    for n in 0..9_000 {
        let cells = vec![Cell::from(format!("key-{n}")), Cell::from("b".repeat(300))];
        batch.then_one(Statement::new("INSERT INTO keyed (key, body) VALUES (?1, ?2)", cells));
    }
    store.commit(batch).await.unwrap();
    let mut times_us = Vec::new();
    for n in 0..20_000 {
        let question = Statement::new(
            "SELECT body FROM keyed WHERE key = ?1",
            vec![format!("key-{}", n % 9_000).into()],
        );
        let started = Instant::now();
        assert_eq!(store.query(question).await.unwrap().len(), 1);
        times_us.push(started.elapsed().as_secs_f64() * 1e6);
    }
    quantiles("query/point", times_us);
}

/// Rows of 600 bytes in commits of four, on disk and in memory: what the hashes of a Merkle log add. Both in turns, the best of five.
async fn merkle() {
    const NOTES: LogSource = LogSource {
        name: "records",
        chain: None,
        rows_sql: "SELECT id, body FROM record WHERE id > ?1 ORDER BY id LIMIT ?2",
        label_sql: "SELECT NULL WHERE ?1 < 0",
        missing_sql: "SELECT NULL WHERE ?1 < 0",
        checks: &[],
    };
    for (name, is_file) in [("disk", true), ("memory", false)] {
        let mut best = [f64::MAX; 2];
        for round in 0..10 {
            let folder = tempfile::tempdir().unwrap();
            let place =
                if is_file { Place::File(folder.path().join("bench.sqlite3")) } else { Place::Memory };
            let options = Options { logs: vec![NOTES], ..Options::new(place, vec![TABLES]) };
            let store = sqlite::open(options).unwrap();
            let started = Instant::now();
            for _ in 0..500 {
                let mut batch = Batch::new();
                for _ in 0..4 {
                    let row =
                        Statement::new("INSERT INTO record (body) VALUES (?1)", vec![vec![7_u8; 600].into()]);
                    if round % 2 == 0 {
                        batch.then_one(row)
                    } else {
                        batch.then_logged(row, "records")
                    };
                }
                store.commit(batch).await.unwrap();
            }
            let commit_us = started.elapsed().as_secs_f64() * 1e6 / 500.0;
            best[round % 2] = best[round % 2].min(commit_us);
        }
        print(&format!("merkle/{name}/commit-of-4/plain"), best[0], "us");
        print(&format!("merkle/{name}/commit-of-4/logged"), best[1], "us");
    }
}

/// Appending must cost the same at the first entry and at the hundred thousandth.
async fn chain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let append = async |links: usize| {
        let started = Instant::now();
        for _ in 0..links / 100 {
            let mut batch = Batch::new();
            for _ in 0..100 {
                batch.link(Link { chain: "bench".into(), at_ms: 1, body: "b".repeat(300) });
            }
            store.commit(batch).await.unwrap();
        }
        started.elapsed().as_secs_f64() * 1e6 / links as f64
    };
    print("chain/append/at-1", append(2_000).await, "us");
    append(98_000).await;
    print("chain/append/at-100k", append(2_000).await, "us");
    let started = Instant::now();
    let verified = store.verify_chain("bench").await.unwrap();
    let per_100k = 100_000.0 / verified.entries as f64;
    print("chain/verify-100k", started.elapsed().as_secs_f64() * 1e3 * per_100k, "ms");
}
