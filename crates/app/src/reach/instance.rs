//! How a client knows the server that owns its data directory, before it tells that server anything.
//!
//! A running server writes its address and a fresh secret beside its data file, readable by its user only. A client reads
//! them, sends a nonce to that address and expects the nonce back, authenticated with the secret together with the address.
//! Another process that listens there cannot answer, and gets neither a token nor a document. See ADR 31.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hmac::{Hmac, Mac};
use http::StatusCode;
use http::header::CACHE_CONTROL;
use orchestr8_kernel::ports::Ids;
use orchestr8_kernel::ports::ids::{For, Random};
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Where a server answers with a proof. It asks for no credentials, and tells nothing but the proof.
pub const PATH: &str = "/.well-known/orchestr8-instance";

/// What the proof is about, so that it cannot be taken for anything else.
const PURPOSE: &[u8] = b"orchestr8 instance proof 1";

/// A record is shorter.
const RECORD_BYTES: u64 = 4096;

/// Hexadecimal digits of a nonce.
const NONCE_DIGITS: usize = 64;

/// A server that owns a data file, as it has written itself down.
#[derive(Clone)]
pub struct Instance {
    pub address: SocketAddr,
    secret: String,
}

/// The record of a running server; it is removed when the server ends in order.
pub struct PublishedInstance {
    path: PathBuf,
    instance: Instance,
}

impl PublishedInstance {
    /// Writes down that this process owns the data file and listens there.
    pub fn publish(data: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = path_of(data);
        let instance = Instance { address: reachable(address), secret: fresh() };
        let record = json!({
            "address": instance.address.to_string(), "pid": std::process::id(), "secret": instance.secret,
        });
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let unfinished = PathBuf::from(name);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(format!("{record}\n").as_bytes())?;
        fs::rename(&unfinished, &path)?;
        Ok(Self { path, instance })
    }

    /// The route that proves it.
    pub fn router(&self) -> Router {
        let instance = self.instance.clone();
        Router::new().route(PATH, get(async move |RawQuery(query)| answer(&instance, query.as_deref())))
    }
}

impl Drop for PublishedInstance {
    fn drop(&mut self) {
        // Another server may have taken the data file over in the meantime.
        if read(&self.path).is_some_and(|there| there.secret == self.instance.secret) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Instance {
    /// The server that has written itself down beside the data file; whether it still runs is not known.
    pub fn of(data: &Path) -> Option<Self> {
        read(&path_of(data))
    }

    /// Whether an answer proves that the server which gave it has written this record.
    pub fn is_proven_by(&self, nonce: &str, answer: &Value) -> bool {
        let proof = answer["proof"].as_str().and_then(from_hex).unwrap_or_default();
        self.mac(nonce).is_some_and(|mac| mac.verify_slice(&proof).is_ok())
    }

    fn proof(&self, nonce: &str) -> Option<String> {
        Some(hex(&self.mac(nonce)?.finalize().into_bytes()))
    }

    fn mac(&self, nonce: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).ok()?;
        for part in [PURPOSE, nonce.as_bytes(), self.address.to_string().as_bytes()] {
            mac.update(part);
            mac.update(b"\n");
        }
        Some(mac)
    }
}

/// 64 random hexadecimal digits, also in a run whose ids are counted.
pub fn fresh() -> String {
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(Random.fresh(For::Record).as_bytes());
    }
    hex(&hash.finalize())
}

fn answer(instance: &Instance, query: Option<&str>) -> Response {
    let nonce = query.and_then(|query| query.strip_prefix("nonce="));
    let is_nonce =
        |nonce: &&str| nonce.len() == NONCE_DIGITS && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
    let headers = [(CACHE_CONTROL, "no-store")];
    match nonce.filter(is_nonce).and_then(|nonce| instance.proof(nonce)) {
        Some(proof) => (headers, axum::Json(json!({"proof": proof}))).into_response(),
        None => (StatusCode::BAD_REQUEST, headers).into_response(),
    }
}

fn path_of(data: &Path) -> PathBuf {
    let mut name = data.as_os_str().to_owned();
    name.push(".server");
    PathBuf::from(name)
}

/// Only what this user wrote and others cannot even read.
fn read(path: &Path) -> Option<Instance> {
    const OTHERS: u32 = 0o077;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_file() || !is_own || metadata.mode() & OTHERS != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(RECORD_BYTES).read_to_string(&mut text).ok()?;
    let record: Value = serde_json::from_str(&text).ok()?;
    let secret = record["secret"].as_str().filter(|secret| secret.len() == NONCE_DIGITS)?;
    let address: SocketAddr = record["address"].as_str()?.parse().ok()?;
    is_local(address.ip()).then(|| Instance { address, secret: secret.to_owned() })
}

/// Whether an address is one of this machine. A record that came with an archive cannot name a server elsewhere.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// An address that means "everywhere" is reached on loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn everywhere_is_reached_on_loopback() {
        for (listen, reached) in
            [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("192.0.2.1:80", "192.0.2.1:80")]
        {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), reached);
        }
    }

    #[test]
    fn only_the_server_of_the_data_file_proves_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (data, other) = (folder.path().join("data"), folder.path().join("other"));
        let published = PublishedInstance::publish(&data, "127.0.0.1:8088".parse().unwrap()).unwrap();
        let stranger = PublishedInstance::publish(&other, "127.0.0.1:8088".parse().unwrap()).unwrap();
        let known = Instance::of(&data).unwrap();
        let nonce = fresh();
        let answer =
            |published: &PublishedInstance, nonce: &str| json!({"proof": published.instance.proof(nonce)});
        assert!(known.is_proven_by(&nonce, &answer(&published, &nonce)));
        assert!(!known.is_proven_by(&nonce, &answer(&published, &fresh())), "an old answer");
        assert!(!known.is_proven_by(&nonce, &answer(&stranger, &nonce)), "another secret");
        let moved = Instance { address: "127.0.0.1:9".parse().unwrap(), ..published.instance.clone() };
        assert!(
            !known.is_proven_by(&nonce, &json!({"proof": moved.proof(&nonce)})),
            "passed on from elsewhere"
        );
        for nonsense in [json!({}), json!({"proof": ""}), json!({"proof": "zz"}), json!({"proof": 1})] {
            assert!(!known.is_proven_by(&nonce, &nonsense));
        }
        drop(published);
        assert!(Instance::of(&data).is_none(), "it has ended");
        assert!(Instance::of(&other).is_some());
    }

    #[test]
    fn a_record_that_others_could_have_written_or_read_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let published = PublishedInstance::publish(&data, "127.0.0.1:8088".parse().unwrap()).unwrap();
        assert_eq!(fs::metadata(path_of(&data)).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(path_of(&data), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Instance::of(&data).is_none());
        fs::set_permissions(path_of(&data), fs::Permissions::from_mode(0o600)).unwrap();
        let far = folder.path().join("far");
        std::mem::forget(PublishedInstance::publish(&far, "192.0.2.1:8088".parse().unwrap()).unwrap());
        assert!(path_of(&far).exists() && Instance::of(&far).is_none(), "an address of another machine");
        let link = folder.path().join("linked");
        std::os::unix::fs::symlink(path_of(&data), path_of(&link)).unwrap();
        assert!(Instance::of(&link).is_none());
        drop(published);
    }
}
