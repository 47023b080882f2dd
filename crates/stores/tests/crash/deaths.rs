//! The ways to die, and what must be left.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use orchestr8_stores::sqlite::{self, Options, Place, Point};

use crate::child::{Role, TABLES};
use crate::ledger::Ledger;

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;
const KILLS: usize = 40;

fn data(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("store.sqlite3")
}

fn role(folder: &tempfile::TempDir, from: i64, tasks: usize) -> Role {
    Role { path: data(folder), from, tasks, abort: None }
}

#[test]
fn killed_at_any_moment_it_loses_nothing_acknowledged_and_keeps_no_half() {
    kill_repeatedly(&data);
}

#[test]
fn killed_at_any_moment_an_encrypted_store_loses_nothing_either() {
    kill_repeatedly(&|folder| folder.path().join("store.encrypted"));
}

/// One database through all of it: each process starts on what the killed one before left.
fn kill_repeatedly(data: &dyn Fn(&tempfile::TempDir) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::default();
    for kill in 0..KILLS {
        let from = i64::try_from(kill).unwrap() * 1_000_000;
        // From at once (while it opens) to some hundred commits later.
        let after = kill * 37 % 200;
        let role = Role { path: data(&folder), ..role(&folder, from, 1 + kill % 16) };
        let status = ledger.follow(role.start(), Some(after));
        assert_eq!(status.signal(), Some(SIGKILL), "{status}");
        if kill % 4 == 3 {
            ledger.verify(&data(&folder));
        }
    }
    assert!(ledger.len() > KILLS * 50, "{} acknowledged", ledger.len());
}

#[test]
fn aborted_at_every_fail_point_it_keeps_exactly_what_it_must() {
    for point in Point::ALL {
        for nth in [1, 2, 9] {
            let folder = tempfile::tempdir().unwrap();
            let mut ledger = Ledger::default();
            let abort = Some((point, nth));
            let status = ledger.follow(Role { abort, ..role(&folder, 0, 1) }.start(), None);
            assert_eq!(status.signal(), Some(SIGABRT), "{point:?} {nth}: {status}");
            assert_eq!(ledger.len(), nth - 1, "{point:?} {nth}");
            let kept = ledger.verify(&data(&folder)).len();
            let expected = if point == Point::AfterCommit { nth } else { nth - 1 };
            assert_eq!(kept, expected, "{point:?} {nth}");
        }
    }
}

#[test]
fn aborted_inside_a_group_it_keeps_whole_groups() {
    for point in Point::ALL {
        for nth in [3, 30] {
            let folder = tempfile::tempdir().unwrap();
            let mut ledger = Ledger::default();
            let abort = Some((point, nth));
            let status = ledger.follow(Role { abort, ..role(&folder, 0, 16) }.start(), None);
            assert_eq!(status.signal(), Some(SIGABRT), "{point:?} {nth}: {status}");
            let kept = ledger.verify(&data(&folder)).len();
            if point == Point::AfterCommit {
                assert!(kept > ledger.len(), "the last group is durable and nobody was told");
            }
        }
    }
}

/// A real write error, at a commit: the operating system refuses to let the log grow, and not because the disk is full.
#[test]
fn a_write_error_stops_the_process_and_what_it_acknowledged_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::default();
    // The database comes first, so that only the log meets the limit.
    ledger.verify(&data(&folder));
    let inner = role(&folder, 0, 4).command();
    let mut command = Command::new("sh");
    // 2048 blocks of 512 bytes; without the trap the signal would end it before the error is seen.
    command
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -c 0; ulimit -f 2048; exec \"$0\" \"$@\"")
        .arg(inner.get_program());
    command.args(inner.get_args()).envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let status = ledger.follow(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap(), None);
    assert_eq!(status.signal(), Some(SIGABRT), "{status}");
    assert!(ledger.len() > 20, "{} acknowledged", ledger.len());
    ledger.verify(&data(&folder));
}

#[test]
fn a_second_process_is_refused_and_told_who_owns_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite::open(Options::new(Place::File(data(&folder)), TABLES.to_vec())).unwrap();
    let mut child = role(&folder, 0, 1).start();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    assert!(said.contains(&format!("in use by the process {}", std::process::id())), "{said}");
    assert!(said.contains("store.sqlite3"), "{said}");
    drop(store);
    let mut ledger = Ledger::default();
    ledger.follow(role(&folder, 0, 1).start(), Some(1));
    assert!(ledger.len() >= 1);
}
