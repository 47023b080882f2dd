//! How fast the audit trail takes entries and is proven whole, as JSON lines. Run with `cargo xtask bench audit`.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orchestr8_contract::chain::{Entry, GENESIS, line, seal};
use orchestr8_workspace::ServerSigningKey;
use orchestr8_workspace::root::Root;
use orchestr8_workspace::trail::{Lines, NAME, Options, Trail, TrailHeads, accept, prove};

/// How long each rate is measured.
const MEASURED: Duration = Duration::from_secs(3);

/// An entry as a call leaves it.
const BODY: &str = r#"{"args_hash":"e7d7c1ce017a815c683077e8487f57d4c7fc455dfb445ce36bb26912ed0d2ef1","cause":null,"change":{"after":"4a1e67f2fe1d1cc7b31d0ca2ec441da4778203a036a77da10344c85e24ff0f92","before":null,"path":"src/greeting.txt"},"error_code":null,"invariant_id":null,"phase_id":"PHASE_1","plan_hash":"fef385c18000200bff443cf50745dfcd0af0720638fec4078214479ccce743f6","result":"success","result_hash":"596aa95ca6f9083cd4019ea1301ee579b38bd18af60884a9216f703b418cbe6d","role":"WINDSURF","session_id":"00000003-0000-4000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","tool_name":"write_file"}"#;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    anchor();
    for clients in [1, 64] {
        for entries in [0, 1000, 100_000, 1_000_000] {
            runtime.block_on(append(clients, entries));
        }
    }
    verify();
}

fn print(name: &str, value: f64, unit: &str) {
    println!("{{\"name\":\"audit/{name}\",\"value\":{value:.2},\"unit\":\"{unit}\"}}");
}

/// What the disk itself can do: lines of this length appended to a file, each flushed.
fn anchor() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("anchor")).unwrap();
    let (started, mut count) = (Instant::now(), 0_u64);
    while started.elapsed() < Duration::from_secs(1) {
        file.write_all_at(&[b'x'; 900], count * 900).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    print("anchor/append and flush", count as f64 / started.elapsed().as_secs_f64(), "/s");
}

/// A trail of so many entries, written without waiting for the disk.
fn lay(folder: &Path, entries: i64) {
    let mut out = BufWriter::new(std::fs::File::create(folder.join(NAME)).unwrap());
    let mut prev = GENESIS.to_owned();
    for seq in 1..=entries {
        let hash = seal(&prev, seq, 1_767_225_600_000, BODY.as_bytes());
        let entry = Entry {
            seq,
            at_ms: 1_767_225_600_000,
            body: BODY.as_bytes(),
            prev_hash: prev.as_bytes(),
            entry_hash: hash.as_bytes(),
        };
        out.write_all(&line::write(&entry)).unwrap();
        out.write_all(b"\n").unwrap();
        prev = hash;
    }
    out.into_inner().unwrap().sync_all().unwrap();
}

/// Entries on stable storage per second, on top of a trail of some length; each client waits for one before the next.
async fn append(clients: usize, entries: i64) {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), entries);
    let root = Arc::new(Root::open(folder.path().to_str().unwrap()).unwrap());
    let store = Arc::new(orchestr8_testing::memory(&[orchestr8_workspace::tables::MIGRATIONS]));
    let heads = TrailHeads::new(store, ServerSigningKey::of([7; 32]), &root);
    let options = Options { segment_bytes: u64::MAX, ..Options::default() };
    accept(&root, &heads, options).unwrap();
    let opened = Instant::now();
    let trail = Arc::new(Trail::open(&root, heads, options).unwrap());
    let open_ms = opened.elapsed().as_secs_f64() * 1000.0;
    let started = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let trail = trail.clone();
        tasks.push(tokio::spawn(async move {
            let mut count = 0_u64;
            while started.elapsed() < MEASURED {
                trail.append(BODY.to_owned(), 1_767_225_600_000).await.unwrap();
                count += 1;
            }
            count
        }));
    }
    let mut count = 0;
    for task in tasks {
        count += task.await.unwrap();
    }
    let rate = count as f64 / started.elapsed().as_secs_f64();
    print(&format!("append, {clients} at once, after {entries} entries"), rate, "/s");
    if clients == 1 {
        print(&format!("open a trail of {entries} entries"), open_ms, "ms");
    }
}

/// A trail of 100,000 entries, whole and with one byte flipped near its end.
fn verify() {
    let folder = tempfile::tempdir().unwrap();
    lay(folder.path(), 100_000);
    let root = Root::open(folder.path().to_str().unwrap()).unwrap();
    let prove = || {
        let started = Instant::now();
        let proof = prove(&mut Lines::of(&root).unwrap(), |_| {});
        (proof, started.elapsed().as_secs_f64() * 1000.0)
    };
    let (proof, ms) = prove();
    assert_eq!(proof.unwrap().entries, 100_000);
    print("verify 100000 entries", ms, "ms");
    let file = std::fs::OpenOptions::new().read(true).write(true).open(folder.path().join(NAME)).unwrap();
    let place = file.metadata().unwrap().len() - 500;
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).unwrap();
    file.write_all_at(&[byte[0] ^ 1], place).unwrap();
    let (proof, ms) = prove();
    assert!(proof.is_err(), "one flipped byte is found");
    print("verify 100000 entries, one byte flipped in the last", ms, "ms");
}
