//! Nothing of a sandbox outlives it: not what left its group and session, not what its server left behind.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::clock::Real;
use orchestr8_process::Ended;
use orchestr8_process::sandbox::SandboxLevel;
use orchestr8_testing::until;

use crate::world::{World, run};

const LEVELS: [SandboxLevel; 2] = [SandboxLevel::Namespaces, SandboxLevel::Landlock];

/// A process that left its group, its session and its parent, and ticks into a file while it lives.
const DAEMON: &str = "(setsid bash -c 'trap \"\" TERM INT HUP; while :; do echo tick >> ticks; sleep 0.02; done' &) ; \
     until [ -s ticks ]; do sleep 0.01; done";

/// Whether something has been written to the file.
fn has_begun(ticks: &Path) -> bool {
    std::fs::metadata(ticks).is_ok_and(|file| file.len() > 0)
}

/// Whether something still writes to the file.
async fn is_quiet(ticks: &Path) -> bool {
    let size = || std::fs::metadata(ticks).map_or(0, |file| file.len());
    let before = size();
    tokio::time::sleep(Duration::from_millis(200)).await;
    before > 0 && size() == before
}

#[tokio::test]
async fn what_left_its_session_ends_with_the_program() {
    for level in LEVELS {
        let world = World::at(level);
        let ran = world.shell(&format!("{DAEMON}; echo started")).await;
        assert_eq!((ran.code, ran.output.as_str()), (Some(0), "started\n"), "{level}");
        assert!(is_quiet(&world.path("work/ticks")).await, "{level}");
    }
}

#[tokio::test]
async fn what_is_stopped_or_dropped_is_gone_afterwards() {
    for level in LEVELS {
        let world = World::at(level);
        let ticks = world.path("work/ticks");
        let script = format!("{DAEMON}; trap '' TERM; while :; do sleep 1; done");
        let start = async || {
            let mut command = world.sandbox().command(run(Some(&world.path("work")), &script)).await.unwrap();
            command.command.stdin(Stdio::null());
            command.start(Arc::new(Real::new())).unwrap()
        };
        let child = start().await;
        let begun = until("the daemon to begin", || has_begun(&ticks));
        let ended = child.finish_unless(std::future::pending(), begun).await.unwrap();
        assert!(matches!(ended, Ended::Stopped { .. }), "{level}: {ended:?}");
        assert!(is_quiet(&ticks).await, "{level}: stopped");
        std::fs::remove_file(&ticks).unwrap();
        let child = start().await;
        until("the daemon to begin", || has_begun(&ticks)).await;
        let killer = child.killer();
        tokio::join!(async { killer.kill() }, async {
            let _ = child.finish(std::future::pending()).await;
        });
        assert!(is_quiet(&ticks).await, "{level}: killed");
        std::fs::remove_file(&ticks).unwrap();
        let child = start().await;
        until("the daemon to begin", || has_begun(&ticks)).await;
        drop(child);
        tokio::time::sleep(Duration::from_millis(orchestr8_process::limits::TERM_MS + 500)).await;
        assert!(is_quiet(&ticks).await, "{level}: dropped");
    }
}

/// The server is another process here, so that it can be killed.
#[tokio::test]
async fn nothing_survives_a_kill_of_the_server_and_the_next_one_waits_for_that() {
    for level in LEVELS {
        let world = World::at(level);
        let ticks = world.path("work/ticks");
        let mut server = Command::new(env!("CARGO_BIN_EXE_confine"))
            .args(["serve", level.as_str()])
            .args([world.path("data"), world.path("work")])
            .arg(format!("{DAEMON}; sleep 600"))
            .spawn()
            .unwrap();
        until("the daemon to begin", || has_begun(&ticks)).await;
        server.kill().unwrap();
        server.wait().unwrap();
        // The next server's first program begins when the daemon is gone, not before.
        let script = "a=$(stat -c %s ticks); sleep 0.2; b=$(stat -c %s ticks); [ $a = $b ] && echo alone";
        let ran = world.shell(script).await;
        assert_eq!(ran.output, "alone\n", "{level}");
    }
}
