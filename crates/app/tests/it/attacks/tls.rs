//! TLS served directly: a real certificate, a real client, reloads while connections are open, and clients that stall.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::Signal;

use crate::program::{PATIENCE, Place, signal};

/// An authority of the test.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Writes a certificate for this machine, and its key.
    fn issue(&self, folder: &Path, name: &str) -> String {
        let key = KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned(), name.to_owned()];
        let cert = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
        cert.pem()
    }
}

pub(super) struct TlsServer {
    child: Child,
    pub(super) address: SocketAddr,
    log: std::sync::mpsc::Receiver<String>,
}

impl TlsServer {
    pub(super) fn start(place: &Place) -> Self {
        let mut command: Command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("listening on https://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("serve said {line:?}")).parse().unwrap();
        let (sender, log) = std::sync::mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, address, log }
    }

    /// Waits until the log says this.
    fn says(&self, word: &str) {
        while let Ok(line) = self.log.recv_timeout(PATIENCE) {
            if line.contains(word) {
                return;
            }
        }
        panic!("the log never said {word}");
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn place(authority: &Authority) -> Place {
    let place = Place::new();
    std::fs::write(place.path().join("ca.pem"), authority.0.pem()).unwrap();
    authority.issue(place.path(), "first.example.org");
    place.write("orchestr8.toml", "[http.tls]\ncert = 'cert.pem'\nkey = 'key.pem'\n");
    place
}

/// A client that trusts the authority of the test, as any other does.
fn client(place: &Place) -> reqwest::Client {
    let ca = std::fs::read(place.path().join("ca.pem")).unwrap();
    let certificates = reqwest::Certificate::from_pem_bundle(&ca).unwrap();
    reqwest::Client::builder().no_proxy().tls_certs_only(certificates).tls_info(true).build().unwrap()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// The certificate that a new connection gets, and the status of a request on it.
async fn look(client: &reqwest::Client, address: SocketAddr) -> (u16, Vec<u8>) {
    let answer = client.get(format!("https://{address}/v1/executions")).send().await.unwrap();
    let info = answer.extensions().get::<reqwest::tls::TlsInfo>().unwrap();
    (answer.status().as_u16(), info.peer_certificate().unwrap().to_vec())
}

#[test]
fn a_real_client_speaks_https_and_strangers_are_not_believed() {
    let authority = Authority::new();
    let place = place(&authority);
    let server = TlsServer::start(&place);
    run(async {
        assert_eq!(look(&client(&place), server.address).await.0, 200);
        let stranger = reqwest::Client::builder().no_proxy().build().unwrap();
        let refused = stranger.get(format!("https://{}/healthz", server.address)).send().await;
        assert!(refused.is_err_and(|error| error.is_connect()), "an unknown authority is not trusted");
    });
    let url = format!("https://{}", server.address);
    let trusted = place.run(&["list", "--server", &url, "--ca", "ca.pem", "--json"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let untrusted = place.run(&["list", "--server", &url]);
    assert_eq!(untrusted.code, Some(7), "{untrusted:?}");
}

#[test]
fn plain_http_and_stalled_handshakes_cost_the_others_nothing() {
    let authority = Authority::new();
    let place = place(&authority).with("ORCHESTR8_HTTP_MAX_CONNECTIONS", "16");
    let server = TlsServer::start(&place);
    let mut plain = TcpStream::connect(server.address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = String::new();
    plain.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("HTTPS"), "{said}");
    let mut stalled = Vec::new();
    for round in 0..60 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        // A record of a handshake that never goes on.
        stream.write_all(if round % 2 == 0 { b"\x16\x03\x01\x02\x00\x01" } else { b"" }).unwrap();
        stalled.push(stream);
    }
    run(async {
        for _ in 0..5 {
            assert_eq!(look(&client(&place), server.address).await.0, 200);
        }
    });
}

#[test]
fn a_new_certificate_is_taken_up_without_cutting_connections_and_a_broken_one_is_not() {
    let authority = Authority::new();
    let place = place(&authority);
    let server = TlsServer::start(&place);
    run(async {
        let kept = client(&place);
        let (_, first) = look(&kept, server.address).await;
        authority.issue(place.path(), "second.example.org");
        signal(&server.child, Signal::HUP);
        server.says("certificate was reloaded");
        let (status, second) = look(&client(&place), server.address).await;
        assert_eq!(status, 200);
        assert_ne!(first, second, "new connections get the new certificate");
        let (status, same) = look(&kept, server.address).await;
        assert_eq!((status, same), (200, first), "the open connection goes on");
        // Found by itself, without a signal.
        std::fs::write(place.path().join("cert.pem"), "-----BEGIN CERTIFICATE-----\nbroken\n").unwrap();
        server.says("the old one stays in use");
        assert_eq!(look(&client(&place), server.address).await, (200, second));
        authority.issue(place.path(), "third.example.org");
        server.says("certificate was reloaded");
        assert_eq!(look(&client(&place), server.address).await.0, 200);
    });
}

#[test]
fn a_certificate_without_its_key_is_refused_at_start() {
    let authority = Authority::new();
    let place = place(&authority);
    let cert = std::fs::read(place.path().join("cert.pem")).unwrap();
    authority.issue(place.path(), "other.example.org");
    std::fs::write(place.path().join("cert.pem"), cert).unwrap();
    let said = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("do not go together"), "{}", said.err);
    place.write("orchestr8.toml", "[http.tls]\ncert = 'cert.pem'\n");
    let said = place.run(&["config", "check"]);
    assert!(said.err.contains("http.tls.key: is missing"), "{said:?}");
}
