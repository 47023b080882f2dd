//! A WebSocket to a server on this machine: text frames, written and read by hand so that the client costs little.
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ANSWER_LIMIT: Duration = Duration::from_secs(20);
const TEXT: u8 = 0x81;

pub struct Socket {
    pub stream: TcpStream,
    buffer: Vec<u8>,
    /// What of the buffer was taken.
    taken: usize,
}

impl Socket {
    pub fn open(address: SocketAddr, path: &str) -> Result<Socket, String> {
        let mut stream = TcpStream::connect(address).map_err(|error| format!("connecting: {error}"))?;
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(Some(ANSWER_LIMIT));
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).map_err(|error| format!("asking for a WebSocket: {error}"))?;
        let mut socket = Socket { stream, buffer: Vec::with_capacity(1 << 16), taken: 0 };
        while !socket.buffer.windows(4).any(|four| four == b"\r\n\r\n") {
            socket.fill()?;
        }
        if !socket.buffer.starts_with(b"HTTP/1.1 101") {
            return Err(format!("no WebSocket: {}", String::from_utf8_lossy(&socket.buffer)));
        }
        let end = socket.buffer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
        socket.taken = end + 4;
        Ok(socket)
    }

    /// A client must mask what it sends; a mask of zeros changes nothing.
    pub fn frame(out: &mut Vec<u8>, text: &str) {
        out.push(TEXT);
        match text.len() {
            short @ 0..=125 => out.push(0x80 | short as u8),
            long => {
                out.push(0x80 | 126);
                out.extend((long as u16).to_be_bytes());
            }
        }
        out.extend([0; 4]);
        out.extend(text.as_bytes());
    }

    pub fn send(&mut self, frames: &[u8]) -> Result<(), String> {
        self.stream.write_all(frames).map_err(|error| format!("sending: {error}"))
    }

    /// The next text frame. Pings of the server are far apart; none comes during a measurement.
    pub fn read(&mut self) -> Result<&[u8], String> {
        loop {
            if let Some((from, to)) = self.whole() {
                self.taken = to;
                return Ok(&self.buffer[from..to]);
            }
            if self.taken > 0 {
                self.buffer.drain(..self.taken);
                self.taken = 0;
            }
            self.fill()?;
        }
    }

    /// Where the payload of the next frame lies, once all of it is there.
    fn whole(&self) -> Option<(usize, usize)> {
        let rest = &self.buffer[self.taken..];
        let (head, length) = match rest.get(1)? & 0x7f {
            126 => (4, usize::from(u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?]))),
            127 => (10, u64::from_be_bytes(rest.get(2..10)?.try_into().ok()?) as usize),
            short => (2, usize::from(short)),
        };
        (rest.len() >= head + length).then_some((self.taken + head, self.taken + head + length))
    }

    fn fill(&mut self) -> Result<(), String> {
        let mut bytes = [0; 1 << 16];
        match self.stream.read(&mut bytes).map_err(|error| format!("reading: {error}"))? {
            0 => Err("the server closed the connection".to_owned()),
            count => {
                self.buffer.extend(&bytes[..count]);
                Ok(())
            }
        }
    }

    /// Reads up to the next response; events are passed over.
    pub fn response(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let frame = self.read()?;
            if is_response(frame) {
                return Ok(frame.to_vec());
            }
        }
    }
}

/// Responses carry `"type":"response"` near their beginning; no event does.
pub fn is_response(frame: &[u8]) -> bool {
    let head = &frame[..frame.len().min(400)];
    head.windows(17).any(|part| part == br#""type":"response""#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_masked_and_carry_their_length() {
        let mut out = Vec::new();
        Socket::frame(&mut out, "hi");
        assert_eq!(out, [0x81, 0x82, 0, 0, 0, 0, b'h', b'i']);
        out.clear();
        Socket::frame(&mut out, &"x".repeat(300));
        assert_eq!(out[..4], [0x81, 0xfe, 1, 44]);
    }

    #[test]
    fn responses_are_told_from_events() {
        assert!(is_response(br#"{"id":"c1","type":"response","command":"get_state"}"#));
        assert!(!is_response(br#"{"type":"command_finished","data":{}}"#));
    }
}
