//! The trail: whole, shared, in pieces, torn and changed.

use std::os::unix::fs::FileExt;
use std::path::Path;

use orchestr8_contract::chain::{Entry, GENESIS, line, seal};
use orchestr8_kernel::ports::Store;
use orchestr8_testing::memory;

use super::*;
use crate::signing::ServerSigningKey;
use crate::tables::MIGRATIONS;

const OPTIONS: Options = Options { segment_bytes: limits::SEGMENT_BYTES, lock_ms: limits::LOCK_MS };

struct World {
    folder: tempfile::TempDir,
    root: Arc<Root>,
    store: Arc<dyn Store>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path().to_str().unwrap()).unwrap());
        Self { folder, root, store: Arc::new(memory(&[MIGRATIONS])) }
    }

    fn heads(&self) -> TrailHeads {
        TrailHeads::new(self.store.clone(), ServerSigningKey::of([7; 32]), &self.root)
    }

    fn try_open(&self, options: Options) -> Result<Trail, Error> {
        Trail::open(&self.root, self.heads(), options)
    }

    fn open(&self) -> Trail {
        self.try_open(OPTIONS).unwrap()
    }

    /// The lines of the file with their ends.
    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(self.file()).unwrap().split_inclusive('\n').map(str::to_owned).collect()
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join(NAME)
    }

    fn prove(&self) -> Proof {
        prove(&mut Lines::of(&self.root)?, |_| {})
    }
}

fn body(number: usize) -> String {
    format!("{{\"args_hash\":\"{number}\",\"tool_name\":\"t\"}}")
}

async fn fill(trail: &Trail, count: usize) {
    for number in 0..count {
        trail.append(body(number), 1).await.unwrap();
    }
}

fn broken_at(proof: Proof) -> i64 {
    match proof {
        Err(Error::Broken { seq, .. }) => seq,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn entries_are_numbered_chained_and_found_again() {
    let world = World::new();
    let trail = world.open();
    fill(&trail, 3).await;
    drop(trail);
    let sealed = world.open().append(body(9), 1).await.unwrap();
    assert_eq!(sealed.seq, 4);
    let verified = world.prove().unwrap();
    assert_eq!((verified.entries, verified.head), (4, sealed.hash));
    let newest = tail(&world.root, 2).unwrap();
    assert_eq!(newest.len(), 2);
    assert!(newest[1].contains("\"seq\":4"));
}

/// Calls that end at the same time share a flush, and each gets its own number.
#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_all_written_once() {
    let world = World::new();
    let trail = Arc::new(world.open());
    let mut tasks = Vec::new();
    for number in 0..500 {
        let trail = trail.clone();
        tasks.push(tokio::spawn(async move { trail.append(body(number), 1).await.unwrap().seq }));
    }
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.push(task.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=500).collect::<Vec<i64>>());
    assert_eq!(world.prove().unwrap().entries, 500);
}

/// A planner and an executor are two processes: each takes in what the other wrote.
#[tokio::test]
async fn two_writers_share_one_chain() {
    let world = World::new();
    let (one, two) = (world.open(), world.open());
    for _ in 0..20 {
        one.append(body(1), 1).await.unwrap();
        two.append(body(2), 1).await.unwrap();
        two.append(body(3), 1).await.unwrap();
    }
    assert_eq!(world.prove().unwrap().entries, 60);
}

#[tokio::test]
async fn a_long_trail_goes_on_in_the_next_file() {
    let world = World::new();
    let options = Options { segment_bytes: 1000, ..OPTIONS };
    let (one, two) = (world.try_open(options).unwrap(), world.try_open(options).unwrap());
    for number in 0..30 {
        let trail = if number % 3 == 0 { &two } else { &one };
        assert_eq!(trail.append(body(number), 1).await.unwrap().seq, number as i64 + 1);
    }
    let full = segments::full(&world.root).unwrap();
    assert!(full.len() > 3 && full[0] == "audit-log.000000000001.jsonl", "{full:?}");
    assert_eq!(world.prove().unwrap().entries, 30);
    assert_eq!(tail(&world.root, 30).unwrap().len(), 30);
    drop((one, two));
    // Opened between two files, when the current one is still empty.
    std::fs::rename(world.file(), world.folder.path().join("audit-log.000000000999.jsonl")).unwrap();
    assert_eq!(world.try_open(options).unwrap().append(body(0), 1).await.unwrap().seq, 31);
    // A file that is taken away leaves a gap.
    std::fs::remove_file(world.folder.path().join(&full[1])).unwrap();
    assert!(broken_at(world.prove()) > 1);
}

#[tokio::test]
async fn every_changed_byte_is_found_at_its_entry() {
    let world = World::new();
    fill(&world.open(), 4).await;
    let whole = std::fs::read(world.file()).unwrap();
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1 << (place % 8);
        std::fs::write(world.file(), &changed).unwrap();
        let before = whole[..place].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(broken_at(world.prove()), before as i64 + 1, "byte {place}");
    }
    std::fs::write(world.file(), &whole).unwrap();
    assert_eq!(world.prove().unwrap().entries, 4);
}

/// The next entry of a trail, chained, with its hash.
fn next_line(seq: i64, prev: &str, body: &str) -> (String, String) {
    let hash = seal(prev, seq, 1, body.as_bytes());
    let (prev_hash, entry_hash) = (prev.as_bytes(), hash.as_bytes());
    let line = line::write(&Entry { seq, at_ms: 1, body: body.as_bytes(), prev_hash, entry_hash });
    (String::from_utf8(line).unwrap() + "\n", hash)
}

/// A crash between the store and the file, at many places: what was acknowledged stays, and what was on its way is written now.
#[tokio::test]
async fn entries_that_a_crash_kept_from_the_file_are_written_when_it_is_opened() {
    const CUTS: usize = 16;
    for part in 0..=CUTS {
        let world = World::new();
        fill(&world.open(), 2).await;
        let heads = world.heads();
        let before = heads.load().unwrap().unwrap();
        let (third, hash3) = next_line(3, &before.hash, &body(3));
        let (fourth, hash4) = next_line(4, &hash3, &body(4));
        let lines = [third, fourth].concat();
        let after = heads.advance(&before, &[hash3, hash4], &lines).unwrap().unwrap();
        let whole = std::fs::read(world.file()).unwrap();
        let cut = lines.len() * part / CUTS;
        std::fs::write(world.file(), [&whole, &lines.as_bytes()[..cut]].concat()).unwrap();
        let trail = world.open();
        let end = trail.check().await.unwrap();
        assert_eq!((end.seq, &end.hash), (4, &after.hash), "cut at {cut}");
        assert_eq!(world.prove().unwrap().entries, 4, "cut at {cut}");
        assert_eq!(trail.append(body(5), 1).await.unwrap().seq, 5);
    }
}

fn tampered_at(what: &str, result: Result<Trail, Error>) -> i64 {
    match result {
        Err(Error::Tampered { seq, .. }) => seq,
        Err(other) => panic!("{what}: {other:?}"),
        Ok(_) => panic!("{what}: nothing was found"),
    }
}

/// An entry that was acknowledged is not the end of a write that a crash cut off.
#[tokio::test]
async fn a_trail_that_does_not_lead_to_its_end_names_the_first_entry_that_differs() {
    let world = World::new();
    let trail = world.open();
    fill(&trail, 6).await;
    // The second one is asked after the store knows that all entries are in the file.
    trail.check().await.unwrap();
    trail.check().await.unwrap();
    let lines = world.lines();
    let reseal = |bodies: &[usize]| -> String {
        let (mut prev, mut text) = (GENESIS.to_owned(), String::new());
        for (seq, number) in (1..).zip(bodies) {
            let (line, hash) = next_line(seq, &prev, &body(*number));
            text.push_str(&line);
            prev = hash;
        }
        text
    };
    let cases: [(&str, String, i64); 8] = [
        ("three cut", lines[..3].concat(), 4),
        ("the last cut in its middle", lines.concat()[..lines.concat().len() - 9].to_owned(), 6),
        ("all cut", String::new(), 1),
        ("one dropped, the rest sealed again", reseal(&[0, 1, 3, 4, 5]), 3),
        ("two exchanged and sealed again", reseal(&[0, 1, 3, 2, 4, 5]), 3),
        ("one changed and sealed again", reseal(&[0, 9, 2, 3, 4, 5]), 2),
        ("one added", reseal(&[0, 1, 2, 3, 4, 5, 6]), 7),
        ("strange bytes at the end", lines.concat() + "hello", 7),
    ];
    for (what, text, first) in cases {
        std::fs::write(world.file(), text).unwrap();
        assert_eq!(tampered_at(what, world.try_open(OPTIONS)), first, "{what}");
        for live in [trail.append(body(1), 1).await, trail.check().await, trail.append(body(1), 1).await] {
            assert!(matches!(live, Err(Error::Tampered { seq, .. }) if seq == first), "{what}: {live:?}");
        }
    }
    std::fs::remove_file(world.file()).unwrap();
    assert_eq!(tampered_at("deleted", world.try_open(OPTIONS)), 1);
    std::fs::write(world.file(), lines.concat()).unwrap();
    assert_eq!(world.open().append(body(7), 1).await.unwrap().seq, 7, "it is as it was");
}

#[tokio::test]
async fn a_trail_of_another_server_is_not_gone_on_with_unless_it_is_accepted() {
    let world = World::new();
    fill(&world.open(), 3).await;
    let other = World { store: Arc::new(memory(&[MIGRATIONS])), ..world };
    assert_eq!(tampered_at("unknown", other.try_open(OPTIONS)), 1);
    let head = accept(&other.root, &other.heads(), OPTIONS).unwrap();
    assert_eq!(head.seq, 3);
    assert_eq!(other.open().append(body(4), 1).await.unwrap().seq, 4);
    // The store was written by a server with another key.
    let strange = TrailHeads::new(other.store.clone(), ServerSigningKey::of([8; 32]), &other.root);
    assert_eq!(tampered_at("other key", Trail::open(&other.root, strange, OPTIONS)), 4);
    // One that is broken by itself is not accepted.
    let text = std::fs::read_to_string(other.file()).unwrap().replacen("\"1\"", "\"2\"", 1);
    std::fs::write(other.file(), text).unwrap();
    assert!(matches!(accept(&other.root, &other.heads(), OPTIONS), Err(Error::Broken { .. })));
}

#[tokio::test]
async fn what_others_did_to_the_file_meanwhile_is_found_before_anything_is_added() {
    let world = World::new();
    let trail = world.open();
    fill(&trail, 2).await;
    let file = std::fs::OpenOptions::new().write(true).open(world.file()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_at(b"{\"forged\":true}\n", length).unwrap();
    assert!(matches!(trail.append(body(3), 1).await, Err(Error::Tampered { seq: 3, .. })));
    file.set_len(10).unwrap();
    assert!(matches!(trail.append(body(3), 1).await, Err(Error::Tampered { seq: 1, .. })));
}

#[tokio::test]
async fn a_trail_that_is_held_is_waited_for_and_then_given_up() {
    let world = World::new();
    let trail = world.try_open(Options { lock_ms: 20, ..OPTIONS }).unwrap();
    let lock = std::fs::File::open(world.folder.path().join(LOCK)).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(matches!(trail.append(body(1), 1).await, Err(Error::Locked)));
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::Unlock).unwrap();
    assert_eq!(trail.append(body(1), 1).await.unwrap().seq, 1);
}

#[tokio::test]
async fn a_link_in_the_place_of_the_trail_is_not_followed() {
    let world = World::new();
    std::os::unix::fs::symlink("/dev/null", world.file()).unwrap();
    assert!(matches!(world.try_open(OPTIONS), Err(Error::Io(_))));
    assert!(Lines::of_file(Path::new("/nowhere")).is_err());
}
