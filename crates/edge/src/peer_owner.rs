//! Which user of this machine holds the other end of a loopback connection, as the system's table of sockets says.
//!
//! On loopback no credentials are asked for: the caller is the person at this machine. Other users of the machine reach the same
//! port, so a connection counts as that person's only if its socket belongs to the user who runs the server, or to root. Requests
//! that the server itself sends, for a workflow step or a webhook, are not that person's either: their addresses come from others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The tables of Linux; elsewhere there are none, and the owner is not known.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The open files of this process.
const OPEN_FILES: &str = "/proc/self/fd";

/// Who holds a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketOwner {
    User(u32),
    /// This process: a client of the server has connected to the server.
    ThisProcess,
    /// No process has it open any more, or it is not listed.
    None,
    /// This system has no table of sockets.
    Unknown,
}

/// Looks up the owner of the peer's socket. Reads a file that the kernel makes, as long as there are sockets.
pub(crate) fn owner_of(peer: SocketAddr, local: SocketAddr) -> SocketOwner {
    let mut owner = SocketOwner::Unknown;
    for table in TABLES {
        let Ok(text) = std::fs::read_to_string(table) else { continue };
        owner = SocketOwner::None;
        if let Some((user, inode)) = find(&text, peer, local) {
            return match is_open_here(inode) {
                true => SocketOwner::ThisProcess,
                false => SocketOwner::User(user),
            };
        }
    }
    owner
}

/// Whether the peer may act as the person at this machine.
pub(crate) fn is_own(owner: SocketOwner, user: u32) -> bool {
    match owner {
        SocketOwner::User(owner) => owner == user || owner == 0,
        SocketOwner::ThisProcess => false,
        // A socket that was closed before we looked shows no owner: that client does not wait for the answer, so it needs none.
        SocketOwner::None => false,
        SocketOwner::Unknown => true,
    }
}

/// Whether this process has the socket open. Looked up once for a connection, after its line was found in the table.
fn is_open_here(inode: u64) -> bool {
    let name = format!("socket:[{inode}]");
    let Ok(files) = std::fs::read_dir(OPEN_FILES) else { return false };
    files
        .flatten()
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == name.as_str()))
}

/// The user and the inode of the line whose local end is the peer and whose remote end is ours. A line without an inode has no owner.
fn find(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<(u32, u64)> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (from, to) = (address(fields.next()?)?, address(fields.next()?)?);
        if !is_same(from, peer) || !is_same(to, local) {
            return None;
        }
        // After the two ends: state, queues, timer, retransmits, then the user, a timeout and the inode.
        let mut rest = fields.skip(4);
        let user = rest.next()?.parse().ok()?;
        let inode = rest.nth(1)?.parse().ok()?;
        (inode != 0).then_some((user, inode))
    })
}

fn is_same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// `0100007F:1F98`: words of the address in the byte order of the machine, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for part in 0..4 {
                bytes[part * 4..part * 4 + 4].copy_from_slice(&word(part * 8)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_other_end_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:1F98 0100007F:C001 01 00000000:00000000 00:00000000 00000000   501        0 111 1 x 20 4 30 10 -1\n\
             1: 0100007F:C001 0100007F:1F98 01 00000000:00000000 00:00000000 00000000   502        0 112 1 x 20 4 30 10 -1\n\
             2: 0100007F:C002 0100007F:1F98 04 00000000:00000000 00:00000000 00000000     0        0 0 1 x 20 4 30 10 -1\n";
        if cfg!(target_endian = "little") {
            let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
            assert_eq!(find(table, at(0xC001), at(0x1F98)), Some((502, 112)));
            assert_eq!(find(table, at(0xC002), at(0x1F98)), None, "no process has it open");
            assert_eq!(find(table, at(0xC003), at(0x1F98)), None);
        }
    }

    #[test]
    fn a_mapped_address_is_the_same_address() {
        if cfg!(target_endian = "little") {
            let mapped = address("0000000000000000FFFF00000100007F:0050").unwrap();
            assert!(is_same(mapped, SocketAddr::from(([127, 0, 0, 1], 80))), "{mapped}");
        }
    }

    #[test]
    fn a_connection_of_this_process_has_no_user_and_one_of_another_process_has_its_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let here = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(here).unwrap();
        let (_held, peer) = listener.accept().unwrap();
        let mut other = std::process::Command::new("bash")
            .args(["-c", &format!("exec 3<>/dev/tcp/127.0.0.1/{}; read -u 3", here.port())])
            .spawn()
            .unwrap();
        let (_other_held, other_peer) = listener.accept().unwrap();
        if std::path::Path::new(TABLES[0]).exists() {
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(owner_of(peer, here), SocketOwner::ThisProcess);
            assert_eq!(owner_of(other_peer, here), SocketOwner::User(user));
        }
        drop(client);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn another_user_and_a_socket_without_an_owner_are_strangers() {
        assert!(!is_own(SocketOwner::User(1000), 1001) && !is_own(SocketOwner::None, 0));
        assert!(!is_own(SocketOwner::ThisProcess, 0));
        assert!(is_own(SocketOwner::User(0), 1001) && is_own(SocketOwner::Unknown, 1001));
    }
}
