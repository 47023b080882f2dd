//! A launcher: it confines itself to a folder and then becomes the program it is given.
//!
//! A process can only confine itself, and for good, so the server cannot do it for a child without code that is not safe.
//! Instead it starts its own program as the launcher, which calls `confine`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Why the program was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this machine cannot confine programs to a folder: {0}")]
    Unconfined(String),
    #[error("the program could not be started: {0}")]
    Unstarted(#[from] io::Error),
}

/// From here on, this process and what it starts can write only beneath the folder and `/tmp`, and read only there and in the
/// folders of the system. Then it becomes the program; if this returns, it did not.
pub fn confine(folder: &Path, program: &OsStr, args: &[OsString]) -> Error {
    match restrict(folder) {
        Ok(()) => Error::Unstarted(Command::new(program).args(args).exec()),
        Err(error) => error,
    }
}

#[cfg(target_os = "linux")]
pub use linux::{available, restrict};

#[cfg(target_os = "linux")]
mod linux {
    use std::path::Path;

    use landlock::{
        ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };

    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

    use super::Error;

    /// The least that makes sense: before it, a file that may not be written could still be emptied.
    const NEEDED: ABI = ABI::V3;

    /// Used as far as the kernel has it: devices take no commands, processes outside get no signals.
    const WANTED: ABI = ABI::V6;

    /// What programs need to run at all. Nobody's home is among it, and none of our own data.
    const READABLE: [&str; 11] =
        ["/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/sbin", "/sys", "/usr"];

    const DEVICES: [&str; 6] =
        ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

    /// Whether this machine can confine programs.
    pub fn available() -> bool {
        ruleset().is_ok()
    }

    /// Confines the thread that calls it, for good, and what it becomes.
    pub fn restrict(folder: &Path) -> Result<(), Error> {
        let unconfined = |error: RulesetError| Error::Unconfined(error.to_string());
        let (all, read) = (AccessFs::from_all(WANTED), AccessFs::from_read(WANTED));
        let own = PathFd::new(folder).map_err(|error| Error::Unconfined(error.to_string()))?;
        let status = ruleset()
            .and_then(|rules| {
                rules.set_compatibility(CompatLevel::BestEffort).add_rule(PathBeneath::new(own, all))
            })
            .and_then(|rules| rules.add_rules(path_beneath_rules(["/tmp"], all)))
            .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile)))
            .and_then(|rules| rules.add_rules(path_beneath_rules(READABLE, read)))
            .and_then(RulesetCreated::restrict_self)
            .map_err(unconfined)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {}
            RulesetStatus::NotEnforced => {
                return Err(Error::Unconfined(String::from("nothing was enforced")));
            }
        }
        give_up_rights().map_err(|error| Error::Unconfined(error.to_string()))
    }

    /// Root may look into other processes, our own and its secrets among them, whatever else it is denied. No program that is
    /// started later gets these rights back: that was ruled out together with the rest.
    fn give_up_rights() -> rustix::io::Result<()> {
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
    }

    fn ruleset() -> Result<RulesetCreated, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(WANTED))?
            .scope(Scope::from_all(WANTED))?
            .create()
    }
}

#[cfg(not(target_os = "linux"))]
pub fn available() -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn restrict(_: &Path) -> Result<(), Error> {
    Err(Error::Unconfined(String::from("only Linux can")))
}
