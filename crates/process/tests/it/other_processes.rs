//! Without a process namespace, programs share the process ids of the host, and change nothing of what runs outside of the sandbox.

use std::process::{Child, Command, Stdio};

use orchestr8_process::sandbox::SandboxLevel;

use crate::attacks::python;
use crate::world::World;

/// A process of the same user, outside.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Limits, priority and CPUs, as the kernel shows them.
    fn state(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).unwrap();
        let stat = read("stat");
        let (nice, allowed) = (stat.split(' ').nth(18).unwrap(), read("status"));
        let allowed: String = allowed.lines().filter(|line| line.contains("_allowed")).collect();
        format!("{}{nice}{allowed}", read("limits"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines of Python, each of which would change the process `P`.
const CHANGES: &[&str] = &[
    "import resource; resource.prlimit(P, resource.RLIMIT_NOFILE, (3, 3))",
    "os.setpriority(os.PRIO_PROCESS, P, 19)",
    "os.setpriority(os.PRIO_PGRP, os.getpgid(P), 19)",
    "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
    "os.sched_setaffinity(P, {0})",
    "os.sched_setscheduler(P, os.SCHED_IDLE, os.sched_param(0))",
    "os.sched_setparam(P, os.sched_param(0))",
    "call('ioprio_set', 1, P, 3 << 13)",
    "call('sched_setattr', P, ctypes.create_string_buffer(b'\\x30\\0\\0\\0\\x05', 48), 0)",
    "call('migrate_pages', P, 64, ctypes.create_string_buffer(8), ctypes.create_string_buffer(8))",
    "call('move_pages', P, 0, 0, 0, 0, 0)",
    "os.pidfd_open(P)",
];

/// Ways to send a signal to the process `P`, one of them through the kernel's own notification of input.
const SIGNALS: &[&str] = &[
    "os.kill(P, 0)",
    "os.kill(P, 9)",
    "os.kill(-os.getpgid(P), 9)",
    "os.setpgid(0, os.getpgid(P)); os.kill(0, 9)",
    "call('tgkill', P, P, 9)",
    "call('tkill', P, 9)",
    "call('rt_sigqueueinfo', P, 9, ctypes.create_string_buffer(b'\\x09\\0\\0\\0\\0\\0\\0\\0\\xff\\xff\\xff\\xff', 128))",
    "import fcntl; a, b = socket.socketpair(); fcntl.fcntl(a, 8, P); fcntl.fcntl(a, 10, 9); \
     fcntl.fcntl(a, 4, os.O_ASYNC | os.O_NONBLOCK); b.send(b'x'); import time; time.sleep(0.2); os.kill(P, 0)",
];

fn attack(line: &str, process: u32) -> String {
    let numbers = match cfg!(target_arch = "x86_64") {
        true => {
            "{'ioprio_set': 251, 'sched_setattr': 314, 'migrate_pages': 256, 'move_pages': 279, 'tgkill': 234, 'tkill': 200, 'rt_sigqueueinfo': 129}"
        }
        false => {
            "{'ioprio_set': 30, 'sched_setattr': 274, 'migrate_pages': 238, 'move_pages': 239, 'tgkill': 131, 'tkill': 130, 'rt_sigqueueinfo': 138}"
        }
    };
    python(&format!(
        "P = {process}\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         def call(name, *args):\n  if libc.syscall({numbers}[name], *args) < 0: raise OSError(ctypes.get_errno(), name)\n{line}"
    ))
}

#[tokio::test]
async fn programs_change_no_process_outside() {
    let world = World::at(SandboxLevel::Landlock);
    let mut victim = Victim::start();
    let before = victim.state();
    for line in CHANGES.iter().chain(SIGNALS) {
        let ran = world.shell(&attack(line, victim.0.id())).await;
        assert!(!ran.output.contains("SUCCEEDED"), "{line}: {}", ran.output);
        assert!(
            ran.output.contains("PermissionError") || ran.output.contains("not implemented"),
            "{line}: {}",
            ran.output
        );
    }
    assert!(victim.is_alive());
    assert_eq!(victim.state(), before);
}

/// Before Linux 6.12 only the filter is there.
#[tokio::test]
async fn no_signal_gets_out_where_the_kernel_cannot_scope_signals() {
    let mut world = World::at(SandboxLevel::Landlock);
    world.settings.without_signal_scope = true;
    let mut victim = Victim::start();
    for line in SIGNALS {
        let ran = world.shell(&attack(line, victim.0.id())).await;
        assert!(ran.output.contains("PermissionError"), "{line}: {}", ran.output);
    }
    assert!(victim.is_alive());
    let ran = world.shell("timeout 0.1 sleep 60; echo $?; python3 -c 'import os; os.abort()'; echo $?").await;
    assert!(ran.output.starts_with("124\n") && !ran.output.ends_with("\n0\n"), "{}", ran.output);
}

#[tokio::test]
async fn programs_set_their_own_limits_and_priorities_and_stop_their_children() {
    let world = World::at(SandboxLevel::Landlock);
    let ran = world
        .shell(
            "ulimit -n 64 && nice -n 5 true && ionice -c 3 true && taskset -c 0 true && timeout 0.1 sleep 60; echo $?; \
             sleep 60 & kill $!; wait $!; echo $?; set -m; sleep 60 & kill %1; wait %1; echo $?",
        )
        .await;
    assert_eq!(
        ran.output.lines().filter(|line| line.parse::<u8>().is_ok()).collect::<Vec<_>>(),
        ["124", "143", "143"],
        "{}",
        ran.output
    );
}
