//! A running `orchestr8 serve`, and a plain HTTP client with one connection to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{PATIENCE, Place, signal, wait};

pub struct Server {
    child: Option<Child>,
    pub address: SocketAddr,
}

impl Server {
    /// On a free port of loopback; ready when this returns.
    pub fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_at(place, 0, args)
    }

    /// The same on a certain port.
    pub fn start_at(place: &Place, port: u16, args: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{port}");
        Self::of(place.command(&[&["serve", "--listen", &listen], args].concat()))
    }

    /// On a free port, with more environment variables.
    pub fn start_with(place: &Place, variables: &[(&str, &str)]) -> Self {
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied());
        Self::of(command)
    }

    pub fn of(mut command: Command) -> Self {
        command.stderr(Stdio::null());
        Self::logging(command)
    }

    /// Its log goes where the command says.
    pub fn logging(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("listening on http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let Some(address) = address else {
            let _ = child.kill();
            panic!("serve said {line:?} and ended with {:?}", child.wait());
        };
        Self { address: address.parse().unwrap(), child: Some(child) }
    }

    pub fn connect(&self) -> Http {
        Http::connect(self.address).unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn terminate(mut self) -> ExitStatus {
        let child = self.child.take().unwrap();
        signal(&child, Signal::TERM);
        wait(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One kept-alive connection.
pub struct Http {
    stream: BufReader<TcpStream>,
    pub address: SocketAddr,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Http {
    pub fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address), "").unwrap()
    }

    /// A message of the modern era: it stands for itself.
    pub fn modern(
        &mut self,
        id: u64,
        method: &str,
        mut params: Value,
        more: &str,
    ) -> std::io::Result<Answer> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let head = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}{more}");
        self.post(&head, &body)
    }

    pub fn post(&mut self, more: &str, body: &str) -> std::io::Result<Answer> {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{more}\r\n",
            self.address,
            body.len()
        );
        self.send(&head, body)
    }

    /// Any request; with a body it is JSON. `more` are whole header lines.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        more: &str,
        body: Option<&str>,
    ) -> std::io::Result<Answer> {
        let kind = if body.is_some() { "Content-Type: application/json\r\n" } else { "" };
        let body = body.unwrap_or_default();
        let (address, length) = (self.address, body.len());
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n{kind}{more}\r\n"
        );
        self.send(&head, body)
    }

    pub fn send(&mut self, head: &str, body: &str) -> std::io::Result<Answer> {
        self.stream.get_mut().write_all([head, body].concat().as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> std::io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
        };
        let mut body = Vec::new();
        if let Some(length) = header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body)?;
        } else if header("transfer-encoding").is_some() {
            self.chunks(&mut body)?;
        }
        Ok(Answer { status, head, body: String::from_utf8(body).unwrap() })
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> std::io::Result<()> {
        loop {
            let mut size = String::new();
            self.stream.read_line(&mut size)?;
            let size =
                usize::from_str_radix(size.trim(), 16).map_err(|_| std::io::ErrorKind::UnexpectedEof)?;
            let start = body.len();
            body.resize(start + size, 0);
            self.stream.read_exact(&mut body[start..])?;
            self.stream.read_line(&mut String::new())?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}
