//! The processes of a sandbox, as the table of processes shows them to its first one.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::process::{Pid, getpid};

use super::spec::SandboxLevel;

/// What all processes of a sandbox use together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxUsage {
    /// Processes and threads.
    pub processes: u64,
    /// Resident, with what several share counted for each.
    pub memory_bytes: u64,
}

/// Finds the processes of a sandbox.
pub struct SandboxProcesses {
    /// Whether the table shows only those of the sandbox.
    is_own: bool,
    page_bytes: u64,
}

impl SandboxProcesses {
    pub fn of(level: SandboxLevel) -> Self {
        let is_own = match level {
            SandboxLevel::Namespaces => true,
            SandboxLevel::Landlock | SandboxLevel::Unconfined => false,
        };
        Self { is_own, page_bytes: u64::try_from(rustix::param::page_size()).unwrap_or(4096) }
    }

    /// All but this one.
    pub fn all(&self) -> Vec<Pid> {
        let table = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = table.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        let own = getpid();
        let pids = pids.filter(|pid| *pid != own);
        if self.is_own { pids.collect() } else { descendants(own, pids) }
    }

    pub fn usage(&self) -> SandboxUsage {
        let mut usage = SandboxUsage::default();
        for pid in self.all() {
            let pid = pid.as_raw_nonzero();
            let Ok(memory) = fs::read_to_string(format!("/proc/{pid}/statm")) else { continue };
            let resident: u64 = memory.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
            usage.memory_bytes += resident * self.page_bytes;
            usage.processes += threads(pid.get());
        }
        usage
    }

    /// With what several share counted once. It takes longer to find out. None: the kernel does not say.
    pub fn proportional_memory_bytes(&self) -> Option<u64> {
        let mut kib = 0;
        for pid in self.all() {
            let path = format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero());
            match fs::read_to_string(path) {
                Ok(text) => kib += field(&text, "Pss:")?,
                // It has ended meanwhile, unless this process may not look.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return None,
                Err(_) => {}
            }
        }
        Some(kib * 1024)
    }
}

/// Processes and threads that this user has on the host.
pub fn of_this_user() -> u64 {
    let own = rustix::process::getuid().as_raw();
    let table = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = table.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == own));
    own.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(threads).sum()
}

fn threads(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "Threads:").unwrap_or(1)
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Children and theirs.
fn descendants(of: Pid, pids: impl Iterator<Item = Pid>) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<Pid>> = HashMap::new();
    for pid in pids {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut open = vec![of.as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if seen.insert(child) {
                open.push(child.as_raw_nonzero().get());
                found.push(child);
            }
        }
    }
    found
}

/// The name of a program is in parentheses and may hold any characters, these too.
fn parent(pid: Pid) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
