//! What a thread gives up for good, together with everything it starts.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use super::filter::Filters;
use super::spec::{LaunchSpec, SandboxLevel};
use super::system::{DEVICES, ETC, FOLDERS, LASTING, TEMPORARY};
use super::{Error, processes};

/// Before it, a file that may not be written could still be emptied.
const NEEDED: ABI = ABI::V3;

/// Used as far as the kernel has it: no TCP, no commands for devices, no signals and no abstract sockets to the outside.
const WANTED: ABI = ABI::V6;

/// Limits of each process. They hold for the calling process too.
pub fn limit(spec: &LaunchSpec) -> Result<(), Error> {
    let limits = &spec.limits;
    let mut all = vec![
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Core, 0),
    ];
    // Without a user namespace, the processes that the same user has outside count too.
    let outside = if spec.own_user { 0 } else { processes::of_this_user() };
    all.push((Resource::Nproc, limits.processes + outside));
    for (resource, most) in all {
        let most = getrlimit(resource).maximum.map_or(most, |before| before.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| Error::setup("resource limits", error))?;
    }
    Ok(())
}

/// For the calling thread and all it starts: the files it may use, no capabilities, no way to get any, no refused calls.
pub fn restrict(spec: &LaunchSpec, filters: &Filters) -> Result<(), Error> {
    set_no_new_privs(true).map_err(|error| Error::setup("no_new_privs", error))?;
    let status = confine_files(spec);
    match (spec.level, status) {
        (SandboxLevel::Landlock, Err(error)) => return Err(Error::Landlock(error.to_string())),
        (SandboxLevel::Landlock, Ok(RulesetStatus::NotEnforced)) => {
            return Err(Error::Landlock(String::from("the kernel enforces nothing")));
        }
        // With its own mounts and network, a sandbox is closed without it.
        (SandboxLevel::Namespaces | SandboxLevel::Unconfined, _)
        | (SandboxLevel::Landlock, Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced)) => {}
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(|error| Error::setup("capabilities", error))?;
    filters.apply()
}

fn confine_files(spec: &LaunchSpec) -> Result<RulesetStatus, RulesetError> {
    let (all, read) = (AccessFs::from_all(WANTED), AccessFs::from_read(WANTED));
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .set_compatibility(CompatLevel::BestEffort);
    let rules = match spec.level {
        SandboxLevel::Namespaces | SandboxLevel::Unconfined => rules
            .add_rules(path_beneath_rules(["/"], read))?
            .add_rules(path_beneath_rules(["/dev/shm", LASTING], all))?,
        SandboxLevel::Landlock => rules
            .add_rules(path_beneath_rules(FOLDERS.iter().chain(&ETC).chain(&["/proc"]), read))?
            .add_rules(path_beneath_rules(&spec.readable, read))?,
    };
    let temporary = spec.temporary.as_deref().unwrap_or(Path::new(TEMPORARY));
    rules
        .add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(spec.directory.iter().map(|_| Path::new(".")).chain([temporary]), all))
        .and_then(RulesetCreated::restrict_self)
        .map(|status| status.ruleset)
}
