//! What a thread gives up for good, together with everything it starts.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{FileType, fstat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use super::filter::Filters;
use super::sealed::{readable, writable};
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
pub fn restrict(spec: &LaunchSpec, sealed: &[PathBuf], filters: &Filters) -> Result<(), Error> {
    set_no_new_privs(true).map_err(|error| Error::setup("no_new_privs", error))?;
    let status = confine_files(spec, sealed);
    match (spec.level, status) {
        (SandboxLevel::Landlock, Err(error)) => return Err(error),
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

fn confine_files(spec: &LaunchSpec, sealed: &[PathBuf]) -> Result<RulesetStatus, Error> {
    let (all, read) = (AccessFs::from_all(WANTED), AccessFs::from_read(WANTED));
    let wrong = |error: landlock::RulesetError| Error::Landlock(error.to_string());
    let rules = ruleset(spec.scope_signals).map_err(wrong)?;
    let is_host = spec.level == SandboxLevel::Landlock;
    let rules = match is_host {
        false => rules
            .add_rules(path_beneath_rules(["/"], read))
            .and_then(|rules| rules.add_rules(path_beneath_rules(["/dev/shm", LASTING], all))),
        true => {
            let system = FOLDERS.iter().chain(&ETC).map(Path::new);
            let shown = system.chain(spec.readable.iter().map(PathBuf::as_path));
            let shown = shown.flat_map(|path| readable(path, &spec.hidden)).chain(["/proc".into()]);
            rules.add_rules(path_beneath_rules(shown, read))
        }
    };
    let mut rules = rules.map_err(wrong)?;
    if is_host && !sealed.is_empty() {
        rules = rules.add_rules(path_beneath_rules(["."], read)).map_err(wrong)?;
        for handle in writable(Path::new("."), sealed)? {
            let is_folder = fstat(&handle).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir());
            let access = if is_folder { all } else { AccessFs::from_file(WANTED) };
            rules = rules.add_rule(PathBeneath::new(handle, access)).map_err(wrong)?;
        }
    } else if spec.directory.is_some() {
        rules = rules.add_rules(path_beneath_rules(["."], all)).map_err(wrong)?;
    }
    let temporary = spec.temporary.as_deref().unwrap_or(Path::new(TEMPORARY));
    rules
        .add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile))
        .and_then(|rules| rules.add_rules(path_beneath_rules([temporary], all)))
        .and_then(RulesetCreated::restrict_self)
        .map(|status| status.ruleset)
        .map_err(wrong)
}

fn ruleset(scope_signals: bool) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut scopes = Scope::from_all(WANTED);
    if !scope_signals {
        scopes.remove(Scope::Signal);
    }
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .handle_access(AccessNet::from_all(WANTED))?
        .scope(scopes)?
        .create()?;
    Ok(rules.set_compatibility(CompatLevel::BestEffort))
}

/// Whether this kernel can keep signals inside of a sandbox: Linux 6.12.
pub fn has_signal_scope() -> bool {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .is_ok()
}
