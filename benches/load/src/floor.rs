//! The least that a server does for a call over HTTP on this machine: reads it, finds its id, writes an answer of the usual
//! length. Nothing is checked, and nothing is kept; whatever a real server costs beside it is its own.
use rustix::event::epoll;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

const USAGE: &str = "usage: load floor ADDRESS";
const LISTENER: u64 = u64::MAX;
const ID: &[u8] = br#""id":"#;

pub fn run(mut args: impl Iterator<Item = String>) -> Result<Value, String> {
    let address = args.next().ok_or(USAGE)?;
    serve(&address).map_err(|error| format!("{address}: {error}"))?;
    Ok(Value::Null)
}

fn serve(address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut open = HashMap::new();
    let mut events = Vec::with_capacity(64);
    let mut buffer = vec![0; 1 << 16];
    let mut answer = Vec::new();
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            if event.data.u64() == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let name = u64::try_from(stream.as_raw_fd()).unwrap_or_default();
                    epoll::add(&poll, &stream, epoll::EventData::new_u64(name), epoll::EventFlags::IN)?;
                    open.insert(name, stream);
                }
            } else if let Some(stream) = open.get_mut(&event.data.u64())
                && !turn(stream, &mut buffer, &mut answer)
            {
                open.remove(&event.data.u64());
            }
        }
    }
}

/// One request, which comes in one piece from the client beside this. False: the connection is over.
fn turn(stream: &mut TcpStream, buffer: &mut [u8], answer: &mut Vec<u8>) -> bool {
    let Ok(count @ 1..) = stream.read(buffer) else { return false };
    let request = &buffer[..count];
    answer.clear();
    let id = find(request, ID).map(|at| &request[at + ID.len()..]);
    let id = id.map(|rest| &rest[..rest.iter().take_while(|byte| byte.is_ascii_digit()).count()]);
    let Some(id) = id.and_then(|digits| std::str::from_utf8(digits).ok()) else {
        return stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_ok();
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{{\"message\":\"hello\"}}"}}]}}}}"#
    );
    // Writing to a vector cannot fail.
    let _ = write!(
        answer,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer).is_ok()
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}
