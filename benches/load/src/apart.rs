//! Gives the server and the client a core each: the rate is then what the server can do, not what the client leaves to it.
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;

/// Moves all threads of the server to one core and this one to another; false where there is only one.
pub fn place(server: u32) -> Result<bool, String> {
    let allowed = sched_getaffinity(None).map_err(|error| format!("the cores: {error}"))?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let (Some(first), Some(second)) = (cores.next(), cores.next()) else { return Ok(false) };
    for thread in threads(server) {
        // One that has ended since needs no core.
        let _ = sched_setaffinity(Some(thread), &only(first));
    }
    sched_setaffinity(None, &only(second)).map_err(|error| format!("a core of its own: {error}"))?;
    Ok(true)
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

fn threads(process: u32) -> Vec<Pid> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::{place, threads};
    use rustix::thread::sched_getaffinity;
    use std::process::{Command, Stdio};

    #[test]
    fn the_server_and_the_client_share_no_core() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let apart = place(child.id()).unwrap();
        let cores = |thread| {
            let set = sched_getaffinity(thread).unwrap();
            (0..1024).filter(|core| set.is_set(*core)).collect::<Vec<_>>()
        };
        let (server, client) = (cores(threads(child.id()).pop()), cores(None));
        drop(child.stdin.take());
        child.wait().unwrap();
        if apart {
            assert_eq!((server.len(), client.len()), (1, 1));
            assert_ne!(server, client);
        }
    }
}
