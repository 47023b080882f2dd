//! A throwaway `orchestr8 serve` on a free port, for tests that come from outside.
use crate::process::Group;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const READY_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A running server; dropping it ends it and removes its data.
pub struct Server {
    _group: Group,
    folder: tempfile::TempDir,
    pub url: String,
}

impl Server {
    pub fn start(binary: &Path) -> Result<Server> {
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--conformance", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]);
        command.arg(folder.path().join("data")).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(folder.path().join("log"))?);
        let mut group = Group::spawn(&mut command)?;
        let deadline = Instant::now() + READY_LIMIT;
        while !answers(port, "/readyz") {
            if group.has_ended() || Instant::now() > deadline {
                bail!("orchestr8 serve did not become ready\n{}", log(folder.path()));
            }
            std::thread::sleep(POLL);
        }
        Ok(Server { _group: group, folder, url: format!("http://127.0.0.1:{port}/mcp") })
    }

    /// What the server wrote on stderr.
    pub fn log(&self) -> String {
        log(self.folder.path())
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.port())
}

fn log(folder: &Path) -> String {
    let path: PathBuf = folder.join("log");
    std::fs::read_to_string(path).unwrap_or_default()
}

fn answers(port: u16, path: &str) -> bool {
    status(port, path).is_ok_and(|line| line.contains(" 200 "))
}

fn status(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}
