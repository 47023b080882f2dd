//! The trail: whole, shared, in pieces, torn and changed.

use std::os::unix::fs::FileExt;
use std::path::Path;

use super::*;

const OPTIONS: Options = Options { segment_bytes: limits::SEGMENT_BYTES, lock_ms: limits::LOCK_MS };

struct World {
    folder: tempfile::TempDir,
    root: Arc<Root>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(folder.path().to_str().unwrap()).unwrap());
        Self { folder, root }
    }

    fn open(&self) -> Trail {
        Trail::open(&self.root, OPTIONS).unwrap()
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
    let (one, two) = (Trail::open(&world.root, options).unwrap(), Trail::open(&world.root, options).unwrap());
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
    assert_eq!(Trail::open(&world.root, options).unwrap().append(body(0), 1).await.unwrap().seq, 31);
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

/// A crash in the middle of a write leaves the beginning of a line, which nobody was told of.
#[tokio::test]
async fn what_a_crash_cut_off_is_taken_away_and_what_was_acknowledged_stays() {
    let world = World::new();
    fill(&world.open(), 3).await;
    let whole = std::fs::read(world.file()).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..whole.len() - 1 {
        std::fs::write(world.file(), &whole[..cut]).unwrap();
        let sealed = world.open().append(body(7), 1).await.unwrap();
        assert_eq!((sealed.seq, world.prove().unwrap().entries), (3, 3), "cut at {cut}");
    }
    let zeros = [&whole[..], &[0; 100]].concat();
    std::fs::write(world.file(), zeros).unwrap();
    assert_eq!(world.open().append(body(7), 1).await.unwrap().seq, 4);
    // What was never the end of a write is no such cut.
    let strange = [&whole[..], b"hello"].concat();
    std::fs::write(world.file(), strange).unwrap();
    assert!(matches!(Trail::open(&world.root, OPTIONS), Err(Error::Broken { seq: 4, .. })));
}

#[tokio::test]
async fn what_others_did_to_the_file_meanwhile_is_found_before_anything_is_added() {
    let world = World::new();
    let trail = world.open();
    fill(&trail, 2).await;
    let file = std::fs::OpenOptions::new().write(true).open(world.file()).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_at(b"{\"forged\":true}\n", length).unwrap();
    assert!(matches!(trail.append(body(3), 1).await, Err(Error::Broken { seq: 3, .. })));
    file.set_len(10).unwrap();
    assert!(matches!(trail.append(body(3), 1).await, Err(Error::Broken { .. })));
}

#[tokio::test]
async fn a_trail_that_is_held_is_waited_for_and_then_given_up() {
    let world = World::new();
    let trail = Trail::open(&world.root, Options { lock_ms: 20, ..OPTIONS }).unwrap();
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
    assert!(matches!(Trail::open(&world.root, OPTIONS), Err(Error::Io(_))));
    assert!(Lines::of_file(Path::new("/nowhere")).is_err());
}
