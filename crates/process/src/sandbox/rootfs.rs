//! The files a sandbox with its own mounts sees: the system read-only, the working directory, empty folders for the rest.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};

use super::Error;
use super::overlay::mount_overlay;
use super::sealed::{SealedPaths, between};
use super::spec::LaunchSpec;
use super::system::{DEVICES, ETC, FOLDERS, LASTING, TEMPORARY};

/// Where the host's files are while the new root is built.
const HOST: &str = "/.host";

/// Folders of the host that the new root may be mounted over for a moment.
const BASES: [&str; 4] = ["/tmp", "/mnt", "/run", "/var/tmp"];

/// The new root holds folders and links only.
const ROOT_OPTIONS: &str = "mode=0755,size=4m";

/// Few folders are needed, and the host's table of processes is not.
const SAFE: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV);

/// Replaces the root. The working directory of this process must be the one to be shown; it is used by its handle, so that
/// nothing can be put in its place meanwhile. Gives back what is sealed in it.
pub fn build(spec: &LaunchSpec) -> Result<SealedPaths, Error> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| Error::setup("private mounts", error))?;
    pivot()?;
    temporary(TEMPORARY, spec)?;
    temporary(LASTING, spec)?;
    for path in FOLDERS.iter().chain(&ETC).map(Path::new).chain(spec.readable.iter().map(PathBuf::as_path)) {
        show(path).map_err(|error| Error::At(path.to_owned(), error))?;
    }
    devices(spec)?;
    for folder in ["/proc", "/run"] {
        folder_at(Path::new(folder)).map_err(|error| Error::At(folder.into(), error))?;
    }
    let sealed = match &spec.directory {
        Some(directory) => show_directory(spec, directory)?,
        None => SealedPaths::default(),
    };
    for path in &spec.hidden {
        hide(path).map_err(|error| Error::At(path.clone(), error))?;
    }
    processes(spec)?;
    unmount(HOST, UnmountFlags::DETACH).map_err(|error| Error::setup("the host's root", error))?;
    fs::remove_dir(HOST).map_err(|error| Error::Setup("the host's root", error))?;
    remount(Path::new("/"), SAFE | MountFlags::RDONLY).map_err(|error| Error::Setup("the root", error))?;
    let directory = spec.directory.as_deref().unwrap_or(Path::new(TEMPORARY));
    rustix::process::chdir(directory).map_err(|error| Error::At(directory.to_owned(), error.into()))?;
    Ok(sealed)
}

/// The working directory, and in it what is read-only. A folder in which something is mounted could be moved away with it, and
/// another be made in its place; a folder that is itself mounted cannot, so each one on the way is mounted on itself.
fn show_directory(spec: &LaunchSpec, directory: &Path) -> Result<SealedPaths, Error> {
    folder_at(directory)
        .and_then(|()| match &spec.overlay {
            Some(places) => mount_overlay(places, Path::new(HOST), directory, SAFE),
            None => Ok(mount_bind_recursive(".", directory)?),
        })
        .and_then(|()| remount(directory, SAFE))
        .map_err(|error| Error::At(directory.to_owned(), error))?;
    let sealed = SealedPaths::find(directory, &spec.sealed)?;
    let places = sealed.paths.iter().chain(&spec.hidden);
    let folders: BTreeSet<PathBuf> = places.flat_map(|path| between(directory, path)).collect();
    let mount = |path: &PathBuf, flags: MountFlags| {
        let mounted = mount_bind_recursive(path, path).map_err(io::Error::from);
        mounted.and_then(|()| remount(path, flags)).map_err(|error| Error::At(path.clone(), error))
    };
    // In their order a folder comes before what is in it.
    folders.iter().try_for_each(|folder| mount(folder, SAFE))?;
    sealed.paths.iter().try_for_each(|path| mount(path, SAFE | MountFlags::RDONLY))?;
    Ok(sealed)
}

/// Takes away the folders that stood in for missing ones.
pub fn take_away(sealed: &SealedPaths) {
    for path in &sealed.meanwhile {
        // Without mounts of its own there is nothing to unmount; an empty folder that stays does no harm.
        let _ = unmount(path, UnmountFlags::DETACH);
        let _ = fs::remove_dir(path);
    }
}

/// An empty file system becomes the root; the old one is beneath it.
fn pivot() -> Result<(), Error> {
    let base = BASES.into_iter().find(|base| Path::new(base).is_dir());
    let base = base.ok_or(Error::Setup("a folder to mount over", io::ErrorKind::NotFound.into()))?;
    tmpfs(Path::new(base), ROOT_OPTIONS).map_err(|error| Error::Setup("a new root", error))?;
    let host = format!("{base}{HOST}");
    DirBuilder::new().mode(0o700).create(&host).map_err(|error| Error::Setup("a new root", error))?;
    rustix::process::pivot_root(base, host.as_str()).map_err(|error| Error::setup("pivot_root", error))
}

fn tmpfs(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(mount("tmpfs", at, "tmpfs", SAFE, options.as_c_str())?)
}

/// A path of the host, read-only under the same name. What the host does not have is left out.
fn show(path: &Path) -> io::Result<()> {
    let source = host(path);
    let found = match fs::symlink_metadata(&source) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        Err(error) => return Err(error),
    };
    if fs::symlink_metadata(path).is_ok() {
        // It lies in what is shown already.
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        folder_at(parent)?;
    }
    if found.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(&source)?, path);
    }
    match found.is_dir() {
        true => folder_at(path)?,
        false => drop(File::create_new(path)?),
    }
    mount_bind_recursive(&source, path)?;
    remount_all(path, SAFE | MountFlags::RDONLY)
}

fn host(path: &Path) -> PathBuf {
    Path::new(HOST).join(path.strip_prefix("/").unwrap_or(path))
}

fn folder_at(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Adds flags to a mount. Those it has cannot be taken away in a user namespace, so they are said again.
fn remount(path: &Path, more: MountFlags) -> io::Result<()> {
    let has = statvfs(path)?.f_flag;
    let kept = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | more, MountFlags::union);
    Ok(mount_remount(path, flags, c"")?)
}

/// The same for everything that is mounted beneath.
fn remount_all(path: &Path, more: MountFlags) -> io::Result<()> {
    remount(path, more)?;
    let Ok(mounts) = fs::read_to_string(format!("{HOST}/proc/self/mountinfo")) else { return Ok(()) };
    let beneath = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    for mounted in beneath.filter(|mounted| mounted.starts_with(path) && mounted != path) {
        match remount(&mounted, more) {
            // Something else is mounted over it, so no program can reach it.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                ) => {}
            result => result?,
        }
    }
    Ok(())
}

/// The table of mounts writes white space in octal.
pub(super) fn unescape(text: &str) -> PathBuf {
    let plain =
        text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\");
    PathBuf::from(plain)
}

fn temporary(at: &str, spec: &LaunchSpec) -> Result<(), Error> {
    let options = format!("mode=1777,size={}", spec.limits.file_bytes);
    folder_at(Path::new(at))
        .and_then(|()| tmpfs(Path::new(at), &options))
        .map_err(|error| Error::At(at.into(), error))
}

fn devices(spec: &LaunchSpec) -> Result<(), Error> {
    for device in DEVICES.map(Path::new) {
        if !host(device).exists() {
            continue;
        }
        folder_at(Path::new("/dev"))
            .and_then(|()| File::create_new(device))
            .and_then(|_| Ok(mount_bind_recursive(host(device), device)?))
            .map_err(|error| Error::At(device.to_owned(), error))?;
    }
    let links = [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")];
    for (name, descriptor) in links {
        let _ = std::os::unix::fs::symlink(format!("/proc/self/fd{descriptor}"), format!("/dev/{name}"));
    }
    temporary("/dev/shm", spec)
}

/// Covers what must not be seen, where it lies in what is shown.
fn hide(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => {
            tmpfs(path, "mode=0000,size=4k")?;
            remount(path, SAFE | MountFlags::RDONLY)
        }
        // A link leads to what is hidden by its own name, or to nothing.
        Ok(found) if found.is_symlink() => Ok(()),
        Ok(_) => Ok(mount_bind_recursive("/dev/null", path)?),
    }
}

/// The table of the sandbox's own processes. Hosts that hide parts of theirs allow no other; then there is none.
fn processes(spec: &LaunchSpec) -> Result<(), Error> {
    let flags = SAFE | MountFlags::NOEXEC;
    if mount("proc", "/proc", "proc", flags, None).is_err() {
        return Ok(());
    }
    // Newer kernels count processes of a namespace apart, root's too. The limit of the kernel itself is the least.
    let most = spec.limits.processes.max(LEAST_PID_MAX);
    let _ = fs::write("/proc/sys/kernel/pid_max", most.to_string());
    // Root needs no capability to change settings of the kernel, so this is no mere precaution.
    remount(Path::new("/proc"), flags | MountFlags::RDONLY).map_err(|error| Error::Setup("/proc", error))
}

/// The kernel takes no smaller number.
const LEAST_PID_MAX: u64 = 301;
