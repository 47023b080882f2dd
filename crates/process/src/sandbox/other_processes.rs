//! Rules against calls that change other processes of the same user. A sandbox without a process namespace shares the ids of the host, and the kernel
//! asks for nothing but the same user: limits, priorities, CPUs and memory nodes of the server could be changed.

use std::collections::BTreeMap;

use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Numbers that are the same on every architecture, and missing from some versions of the C library.
mod number {
    pub const PIDFD_SEND_SIGNAL: i64 = 424;
    pub const PIDFD_OPEN: i64 = 434;
    pub const PROCESS_MRELEASE: i64 = 448;
}

/// Calls whose first argument is a process, 0 being the calling one, which is the only one they may name. The C library sets limits and affinity of
/// the calling thread with 0; programs that name another thread of their own by its id are refused too, because a filter cannot tell whose id it is.
const FIRST_IS_PROCESS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls whose first argument says what the second one is, and its value for "a process". Groups and users reach beyond the sandbox.
const SECOND_IS_PROCESS: &[(i64, u64)] =
    &[(libc::SYS_setpriority, libc::PRIO_PROCESS as u64), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];

const IOPRIO_WHO_PROCESS: u64 = 1;

/// Answered as unknown, so that runtimes use `kill` and `wait` instead, which are confined.
pub const HANDLES: &[i64] = &[number::PIDFD_OPEN, number::PIDFD_SEND_SIGNAL, number::PROCESS_MRELEASE];

/// Signals that a process may send to any thread id where the kernel cannot scope signals: they are ignored by default. Go preempts its own
/// threads with SIGURG.
const HARMLESS_SIGNALS: [i32; 3] = [0, libc::SIGURG, libc::SIGWINCH];

/// Commands of `fcntl` that make the kernel send signals to a process of choice.
const SIGNAL_OWNERS: [i32; 3] = [libc::F_SETOWN, F_SETSIG, F_SETOWN_EX];
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// The same by `ioctl`: `FIOSETOWN` and `SIOCSPGRP`.
const SIGNAL_OWNER_REQUESTS: [u64; 2] = [0x8901, 0x8902];

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The rules of a sandbox that shares the process ids of the host.
pub fn shared_process_ids() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for call in FIRST_IS_PROCESS {
        rules.insert(*call, vec![SeccompRule::new(vec![is_not(0, 0)?])?]);
    }
    for (call, process) in SECOND_IS_PROCESS {
        let another_kind = SeccompRule::new(vec![is_not(0, *process)?])?;
        rules.insert(*call, vec![another_kind, SeccompRule::new(vec![is_not(1, 0)?])?]);
    }
    Ok(rules)
}

/// The rules where Landlock cannot scope signals either (before Linux 6.12). A filter does not know whose an id is, and the id of any thread of the
/// server reaches all of it, so that `kill` is left with the caller's own process group; the sandbox is a session of its own, out of which no
/// process can join the server's group.
pub fn unscoped_signals() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    rules.insert(libc::SYS_kill, vec![SeccompRule::new(vec![is_not(0, 0)?])?]);
    for (call, signal) in [(libc::SYS_tkill, 1), (libc::SYS_tgkill, 2)] {
        let harmful =
            HARMLESS_SIGNALS.iter().map(|harmless| is_not(signal, u64::from(harmless.unsigned_abs())));
        rules.insert(call, vec![SeccompRule::new(harmful.collect::<Result<_, _>>()?)?]);
    }
    for call in [libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo] {
        rules.insert(call, Vec::new());
    }
    let is = |value| SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value);
    let mut owners = Vec::new();
    for command in SIGNAL_OWNERS {
        owners.push(SeccompRule::new(vec![is(u64::from(command.unsigned_abs()))?])?);
    }
    rules.insert(libc::SYS_fcntl, owners);
    let mut requests = Vec::new();
    for request in SIGNAL_OWNER_REQUESTS {
        requests.push(SeccompRule::new(vec![is(request)?])?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    Ok(rules)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}
