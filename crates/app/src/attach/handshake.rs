//! What both sides say before MCP begins: one JSON object a line. Each proves with a nonce of the other that it knows the secret of
//! the record, and the attached process says who it is.
//!
//! ```text
//! attached: {"attach":1,"nonce":A}
//! owner:    {"attach":1,"nonce":B,"proof":HMAC(secret, "owner" A socket)}
//! attached: {"proof":HMAC(secret, "attached" B socket),"hello":{…}}
//! owner:    {"accepted":true,"pid":…,"version":"…","differing":[…]} or {"accepted":false,"reason":"…"}
//! ```

use std::collections::BTreeMap;
use std::io;

use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::record::AttachRecord;
use super::{HANDSHAKE, HANDSHAKE_BYTES};

/// Who is on the other side of a governed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum GovernedRole {
    Planner,
    Executor,
}

/// What an attached process says of itself: who it is, and what its own connection is to be like.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hello {
    pub version: String,
    pub pid: u32,
    pub governed: Option<GovernedRole>,
    pub server_name: String,
    pub server_version: String,
    pub instructions: Option<String>,
    /// The tools that are offered; empty: all.
    pub tools: Vec<String>,
    pub legacy: bool,
    pub modern: bool,
    pub max_result_bytes: usize,
    /// A hash of each setting that is not at its default.
    pub settings: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Opening {
    pub attach: u64,
    pub nonce: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Challenge {
    pub attach: u64,
    #[serde(default)]
    pub nonce: String,
    #[serde(default)]
    pub proof: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Introduction {
    pub proof: String,
    pub hello: Hello,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Verdict {
    pub accepted: bool,
    pub reason: String,
    pub pid: u32,
    pub version: String,
    /// Settings of the attached process that differ from those of the owner, and do not apply.
    pub differing: Vec<String>,
}

/// Which side a proof is of, so that neither can be given back as the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Owner,
    Attached,
}

impl AttachRecord {
    pub fn proof(&self, side: Side, nonce: &str) -> Option<String> {
        let bytes = self.mac(side, nonce)?.finalize().into_bytes();
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Compares in constant time.
    pub fn is_proven_by(&self, side: Side, nonce: &str, proof: &str) -> bool {
        let digits = proof.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let Some(bytes) = digits.collect::<Option<Vec<u8>>>() else { return false };
        self.mac(side, nonce).is_some_and(|mac| mac.verify_slice(&bytes).is_ok())
    }

    fn mac(&self, side: Side, nonce: &str) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).ok()?;
        let purpose: &[u8] = match side {
            Side::Owner => b"orchestr8 attach proof 1: owner",
            Side::Attached => b"orchestr8 attach proof 1: attached",
        };
        for part in [purpose, nonce.as_bytes(), self.socket.as_os_str().as_encoded_bytes()] {
            mac.update(part);
            mac.update(b"\n");
        }
        Some(mac)
    }
}

/// Sends one line.
pub(super) async fn send(stream: &mut UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    timeout(HANDSHAKE, stream.write_all(&line)).await?
}

/// Receives one line, and not a byte more: what follows belongs to MCP.
pub(super) async fn receive<T: for<'de> Deserialize<'de>>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = Vec::new();
    // A buffer of one byte reads no further than the line; a handshake is short.
    let mut reader = BufReader::with_capacity(1, stream).take(HANDSHAKE_BYTES);
    timeout(HANDSHAKE, reader.read_until(b'\n', &mut line)).await??;
    if line.pop() != Some(b'\n') {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    serde_json::from_slice(&line).map_err(io::Error::from)
}

/// Whether the other end of a connection is this user's, as the kernel says.
pub(super) fn is_own_peer(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| is_own(peer.uid(), rustix::process::geteuid().as_raw()))
}

fn is_own(peer: u32, own: u32) -> bool {
    peer == own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_side_one_nonce_and_one_socket() {
        let record = AttachRecord { socket: "/a/data.sock".into(), secret: "5".repeat(64), pid: 1 };
        let proof = record.proof(Side::Owner, "n").unwrap();
        assert!(record.is_proven_by(Side::Owner, "n", &proof));
        assert!(!record.is_proven_by(Side::Attached, "n", &proof), "given back");
        assert!(!record.is_proven_by(Side::Owner, "m", &proof), "an old one");
        let elsewhere = AttachRecord { socket: "/b/data.sock".into(), ..record.clone() };
        assert!(!elsewhere.is_proven_by(Side::Owner, "n", &proof), "passed on from elsewhere");
        let stranger = AttachRecord { secret: "6".repeat(64), ..record.clone() };
        assert!(!record.is_proven_by(Side::Owner, "n", &stranger.proof(Side::Owner, "n").unwrap()));
        for nonsense in ["", "zz", "5", "00"] {
            assert!(!record.is_proven_by(Side::Owner, "n", nonsense));
        }
    }

    #[test]
    fn another_user_is_not_us() {
        assert!(is_own(1000, 1000));
        for (peer, own) in [(1001, 1000), (0, 1000), (1000, 0)] {
            assert!(!is_own(peer, own), "{peer} {own}");
        }
    }

    #[tokio::test]
    async fn a_line_is_read_to_its_end_and_no_further() {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        one.write_all(b"{\"attach\":1,\"nonce\":\"n\"}\n{\"jsonrpc\"").await.unwrap();
        let opening: Opening = receive(&mut other).await.unwrap();
        assert_eq!((opening.attach, opening.nonce.as_str()), (1, "n"));
        let mut rest = [0; 10];
        other.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"{\"jsonrpc\"");
        drop(one);
        assert!(receive::<Opening>(&mut other).await.is_err());
    }
}
