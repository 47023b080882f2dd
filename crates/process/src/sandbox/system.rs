//! What programs see of the system, everywhere the same: what they need to run, and no secrets.

/// Folders of the system. Where one is a link (`/bin` to `/usr/bin`), the sandbox has the same link.
pub const FOLDERS: [&str; 9] =
    ["/bin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/opt", "/sbin", "/usr"];

/// The part of `/etc` that programs need. A list of what is allowed: of what is secret there is no complete one.
pub const ETC: [&str; 31] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/debian_version",
    "/etc/group",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/xdg",
];

/// Devices that hold nothing and start nothing.
pub const DEVICES: [&str; 6] =
    ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// The temporary folder of a sandbox with its own mounts.
pub const TEMPORARY: &str = "/tmp";

/// The other one, whose files the host keeps longer and the sandbox does not.
pub const LASTING: &str = "/var/tmp";
