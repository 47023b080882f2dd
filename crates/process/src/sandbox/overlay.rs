//! Mounts a directory with a layer over it that takes all changes: the directory itself is only read.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, mount};

use super::spec::OverlayPlaces;

/// Mounts the working directory of this process, overlaid, at a path. `host` is where the host's root is.
pub fn mount_overlay(places: &OverlayPlaces, host: &Path, at: &Path, flags: MountFlags) -> io::Result<()> {
    if has_mounts_beneath(host, at)? {
        return Err(io::Error::other(
            "something is mounted in the directory, which a layer over it does not show",
        ));
    }
    let on_host = |path: &Path| {
        let path = host.join(path.strip_prefix("/").unwrap_or(path));
        // These separate the options of a mount.
        let text = path.to_str().filter(|text| !text.contains([',', ':', '\\'])).map(str::to_owned);
        text.ok_or_else(|| io::Error::other("the path of the layer cannot be written as an option"))
    };
    let options = format!(
        "lowerdir=.,upperdir={},workdir={},userxattr,index=off,volatile",
        on_host(&places.upper)?,
        on_host(&places.work)?
    );
    let options = CString::new(options)?;
    Ok(mount("overlay", at, "overlay", flags, options.as_c_str())?)
}

fn has_mounts_beneath(host: &Path, directory: &Path) -> io::Result<bool> {
    let mounts = fs::read_to_string(host.join("proc/self/mountinfo"))?;
    let directory = host.join(directory.strip_prefix("/").unwrap_or(directory));
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4)).map(super::rootfs::unescape);
    Ok(points.into_iter().any(|point| point.starts_with(&directory) && point != directory))
}
