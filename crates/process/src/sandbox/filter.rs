//! The system calls a sandbox refuses: sockets, other processes, mounts, keys, set-user-id files, and what only attacks need.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use super::spec::SandboxLevel;
use super::{Error, other_processes};

/// Numbers that are the same on every architecture, and missing from some versions of the C library.
mod number {
    pub const IO_URING_SETUP: i64 = 425;
    pub const IO_URING_ENTER: i64 = 426;
    pub const IO_URING_REGISTER: i64 = 427;
    pub const OPEN_TREE: i64 = 428;
    pub const MOVE_MOUNT: i64 = 429;
    pub const FSOPEN: i64 = 430;
    pub const FSCONFIG: i64 = 431;
    pub const FSMOUNT: i64 = 432;
    pub const FSPICK: i64 = 433;
    pub const CLONE3: i64 = 435;
    pub const OPENAT2: i64 = 437;
    pub const PIDFD_GETFD: i64 = 438;
    pub const PROCESS_MADVISE: i64 = 440;
    pub const MOUNT_SETATTR: i64 = 442;
    pub const QUOTACTL_FD: i64 = 443;
    pub const MEMFD_SECRET: i64 = 447;
    pub const FCHMODAT2: i64 = 452;
    pub const OPEN_TREE_ATTR: i64 = 467;
}

/// Refused with "operation not permitted".
const REFUSED: &[i64] = &[
    // The network, and every socket with a name: even where a namespace has no network, a socket file may be in reach.
    libc::SYS_socket,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    number::PIDFD_GETFD,
    number::PROCESS_MADVISE,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    number::OPEN_TREE,
    number::OPEN_TREE_ATTR,
    number::MOVE_MOUNT,
    number::FSOPEN,
    number::FSCONFIG,
    number::FSMOUNT,
    number::FSPICK,
    number::MOUNT_SETATTR,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Keys.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    number::QUOTACTL_FD,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Answered as a kernel that does not have them, so that programs use what is checked: `io_uring` goes around this filter, the
/// arguments of `clone3` and `openat2` cannot be seen by it, and the rest is memory that no limit counts.
const UNKNOWN: &[i64] = &[
    number::IO_URING_SETUP,
    number::IO_URING_ENTER,
    number::IO_URING_REGISTER,
    number::CLONE3,
    number::OPENAT2,
    number::MEMFD_SECRET,
    libc::SYS_memfd_create,
    libc::SYS_shmget,
    libc::SYS_msgget,
];

/// Bits of a mode with which a file gives its owner's rights to every user who starts it. Programs outside of the sandbox are
/// started with them, so no file may have them. (File capabilities need a capability, which no program of a sandbox has.)
const OWNERS_RIGHTS: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls that set a mode, and which argument it is.
const MODES: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (number::FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that set a mode only if they create a file, and which argument is the flags; the mode is the next one.
const OPENING: &[(i64, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// Flags that create a file. The other bit of `O_TMPFILE` is that of directories, which have no mode to set here.
const CREATING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// Typing into the terminal of another process, and the console's own way to do so.
const TERMINAL_REQUESTS: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Flags of `clone` that make namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Both filters, ready to be applied.
pub struct Filters([BpfProgram; 2]);

impl Filters {
    /// `scopes_signals`: whether Landlock keeps signals inside of the sandbox.
    pub fn compile(level: SandboxLevel, scopes_signals: bool) -> Result<Self, Error> {
        let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
            REFUSED.iter().map(|number| (*number, Vec::new())).collect();
        let wrong = |error: seccompiler::BackendError| Error::Filter(error.to_string());
        let rule = |argument, length, comparison, value| {
            SeccompCondition::new(argument, length, comparison, value)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(wrong)
        };
        // Pairs of connected sockets have no name that anything outside could connect to; many runtimes need them.
        let family = rule(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?;
        refused.insert(libc::SYS_socketpair, vec![family]);
        let mut requests = Vec::new();
        for request in TERMINAL_REQUESTS {
            requests.push(rule(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?);
        }
        refused.insert(libc::SYS_ioctl, requests);
        let mut namespaces = Vec::new();
        for bit in (0..u64::BITS).map(|bit| 1_u64 << bit).filter(|bit| NAMESPACES & bit != 0) {
            namespaces.push(rule(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bit), bit)?);
        }
        refused.insert(libc::SYS_clone, namespaces);
        refused.extend(owners_rights().map_err(wrong)?);
        let mut unknown: BTreeMap<i64, Vec<SeccompRule>> =
            UNKNOWN.iter().map(|number| (*number, Vec::new())).collect();
        if level != SandboxLevel::Namespaces {
            refused.extend(other_processes::shared_process_ids().map_err(wrong)?);
            unknown.extend(other_processes::HANDLES.iter().map(|number| (*number, Vec::new())));
            let signals = if scopes_signals {
                BTreeMap::new()
            } else {
                other_processes::unscoped_signals().map_err(wrong)?
            };
            for (call, rules) in signals {
                refused.entry(call).or_default().extend(rules);
            }
        }
        Ok(Self([compiled(refused, libc::EPERM)?, compiled(unknown, libc::ENOSYS)?]))
    }

    /// For the calling thread and all it starts.
    pub fn apply(&self) -> Result<(), Error> {
        self.0
            .iter()
            .try_for_each(|program| apply_filter(program).map_err(|error| Error::Filter(error.to_string())))
    }
}

/// The rules against set-user-id and set-group-id files.
fn owners_rights() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let has = |argument, bits: u32| {
        let bits = u64::from(bits);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for right in OWNERS_RIGHTS {
        for (call, mode) in MODES {
            rules.entry(*call).or_default().push(SeccompRule::new(vec![has(*mode, right)?])?);
        }
        for (call, flags) in OPENING {
            for creating in CREATING {
                let both = vec![has(*flags, creating.cast_unsigned())?, has(*flags + 1, right)?];
                rules.entry(*call).or_default().push(SeccompRule::new(both)?);
            }
        }
    }
    Ok(rules)
}

fn compiled(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, Error> {
    let wrong = |error: seccompiler::BackendError| Error::Filter(error.to_string());
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(wrong)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(wrong)?;
    let program = BpfProgram::try_from(filter).map_err(wrong)?;
    Ok(without_x32(program))
}

/// The numbers of the x32 calls are those of the others with one bit more, so that no rule would match them.
#[cfg(target_arch = "x86_64")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const NUMBER_OFFSET: u32 = 0;
    const X32_BIT: u32 = 0x4000_0000;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let prologue = [
        sock_filter { code: LOAD_WORD, jt: 0, jf: 0, k: NUMBER_OFFSET },
        sock_filter { code: JUMP_IF_GREATER_OR_EQUAL, jt: 0, jf: 1, k: X32_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
    ];
    prologue.into_iter().chain(program).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32(program: BpfProgram) -> BpfProgram {
    program
}
