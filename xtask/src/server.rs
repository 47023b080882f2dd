//! Servers that tests and benchmarks start for themselves, and wait for.
use crate::process::Group;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const READY_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A running program that writes its log to a file; dropping it ends it.
pub struct Service {
    group: Group,
    name: String,
    log: PathBuf,
}

impl Service {
    /// Starts a program whose log goes to `<folder>/<name>.log`.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Service> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(Service { group: Group::spawn(&mut command)?, name: name.to_owned(), log })
    }

    /// Waits until a path of it is answered with 200.
    pub fn ready(mut self, port: u16, path: &str) -> Result<Service> {
        match wait(port, path, &mut self.group) {
            Ok(()) => Ok(self),
            Err(_) => bail!("{} did not become ready\n{}", self.name, self.log()),
        }
    }

    /// Waits until something listens on its port, whatever it would answer.
    pub fn listening(mut self, port: u16) -> Result<Service> {
        let deadline = Instant::now() + READY_LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if self.group.has_ended() || Instant::now() > deadline {
                bail!("{} did not begin to listen\n{}", self.name, self.log());
            }
            std::thread::sleep(POLL);
        }
        Ok(self)
    }

    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// A throwaway `orchestr8 serve` on a free port, for tests that come from outside.
pub struct Server {
    service: Service,
    _folder: tempfile::TempDir,
    pub url: String,
}

impl Server {
    pub fn start(binary: &Path) -> Result<Server> {
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--conformance", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"]);
        command.arg(folder.path().join("data"));
        let service = Service::start("orchestr8", command, folder.path())?.ready(port, "/readyz")?;
        Ok(Server { service, _folder: folder, url: format!("http://127.0.0.1:{port}/mcp") })
    }

    /// What the server wrote on its way.
    pub fn log(&self) -> String {
        self.service.log()
    }
}

/// Waits until a path of a program is answered with 200.
pub fn wait(port: u16, path: &str, group: &mut Group) -> Result<()> {
    let deadline = Instant::now() + READY_LIMIT;
    while !status(port, path).is_ok_and(|line| line.contains(" 200 ")) {
        if group.has_ended() || Instant::now() > deadline {
            bail!("it did not become ready");
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?.port())
}

fn status(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line)
}
