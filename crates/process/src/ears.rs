//! Listening to a program, without keeping more than there is room for.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;

/// Bytes taken at once.
const PIECE_BYTES: usize = 8192;

/// Lets a program say everything into one pipe, so that what it says stays in order. The command holds an end of the pipe:
/// drop it once the program has been started, or there is no end to what it says.
pub fn as_one(command: &mut Command) -> io::Result<Receiver> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    Receiver::from_owned_fd(OwnedFd::from(reader))
}

/// The end of what a program says.
pub struct Tail {
    kept: VecDeque<u8>,
    max: usize,
    cut: bool,
}

impl Tail {
    pub fn new(max: usize) -> Self {
        Self { kept: VecDeque::new(), max, cut: false }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
        let excess = self.kept.len().saturating_sub(self.max);
        self.cut |= excess > 0;
        self.kept.drain(..excess);
    }

    /// Listens until there is nothing more to hear.
    pub async fn listen(&mut self, mut to: impl AsyncRead + Unpin) {
        let mut piece = [0; PIECE_BYTES];
        while let Ok(read @ 1..) = to.read(&mut piece).await {
            self.take(&piece[..read]);
        }
    }

    /// Whether there was more.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.kept.into()
    }

    /// As a text; what is none is marked. A character that was cut in half is left out.
    pub fn text(&self) -> String {
        let (one, two) = self.kept.as_slices();
        let bytes = [one, two].concat();
        let half =
            if self.cut { bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count() } else { 0 };
        String::from_utf8_lossy(&bytes[half..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_no_half_of_a_character() {
        let mut tail = Tail::new(5);
        tail.take("ab".as_bytes());
        assert_eq!((tail.text().as_str(), tail.is_cut()), ("ab", false));
        tail.take("äöü".as_bytes());
        assert_eq!((tail.text().as_str(), tail.is_cut()), ("öü", true));
        tail.take(b"\xff");
        assert_eq!(tail.text(), "öü\u{fffd}");
        assert_eq!(tail.into_bytes().len(), 5);
    }
}
