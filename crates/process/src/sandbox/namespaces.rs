//! New namespaces for the supervisor's children.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use super::Error;

/// All that separate a program from the host: its users, mounts, processes, network, IPC and host name.
const APART: UnshareFlags = UnshareFlags::NEWNS
    .union(UnshareFlags::NEWPID)
    .union(UnshareFlags::NEWNET)
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWUTS)
    .union(UnshareFlags::NEWCGROUP);

/// A user namespace, in which this process may make the others. Possible only while there is one thread. Returns whether there
/// is one: root of a host without user namespaces can do without.
pub fn enter_user() -> Result<bool, Error> {
    let (uid, gid) = (geteuid(), getegid());
    let failed = |what: &'static str| move |error: io::Error| Error::Setup(what, error);
    match unshare(UnshareFlags::NEWUSER) {
        Ok(()) => {
            // Groups can be dropped to get around permissions, so a map of groups needs this first.
            fs::write("/proc/self/setgroups", "deny").map_err(failed("setgroups"))?;
            let map = |id: u32| format!("{id} {id} 1");
            fs::write("/proc/self/uid_map", map(uid.as_raw())).map_err(failed("uid_map"))?;
            fs::write("/proc/self/gid_map", map(gid.as_raw())).map_err(failed("gid_map"))?;
            keep_mounting().map_err(failed("capabilities"))?;
            Ok(true)
        }
        Err(_) if uid.is_root() => Ok(false),
        Err(error) => Err(Error::Setup("user namespaces", error)),
    }
}

/// A user other than root loses its capabilities in the namespace when it becomes another program, as the first process does.
/// This one stays until the program itself is started, which gets none.
fn keep_mounting() -> io::Result<()> {
    let has = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::SYS_ADMIN, ..has })?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// The other namespaces. The next child of this process is the first one of a new process namespace; until then, and after it,
/// this process can start no threads.
pub fn enter_others() -> Result<(), Error> {
    unshare(APART).map_err(|error| Error::Setup("namespaces", error))
}

#[expect(
    deprecated,
    reason = "its replacement is unsafe because of shared tables of open files, which are not among our flags"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}
