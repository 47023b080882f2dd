//! Server-sent events, read piece by piece. A line or an event that is too long is an error, not a growing buffer.

use crate::limits::{EVENT_BYTES, LINE_BYTES};

/// One event: its name, and its data lines put together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Empty when the stream names none.
    pub name: String,
    pub data: String,
}

/// What is wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a line of the stream is longer than {LINE_BYTES} bytes")]
    LongLine,
    #[error("an event of the stream is longer than {EVENT_BYTES} bytes")]
    LongEvent,
    #[error("the stream is not UTF-8")]
    NotText,
}

/// Takes bytes as they come and gives the events that are whole.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last line ended with a CR: an LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl Parser {
    /// Adds the events that end within these bytes. After an error the stream is of no more use, but what came before it is.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.hold(rest)?;
                break;
            };
            self.hold(&rest[..end])?;
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            events.extend(self.line(&line)?);
            // The buffer is used again.
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    /// What remains when the stream ends: the standard drops an event without its blank line, but some servers leave the
    /// last one out.
    pub fn end(&mut self) -> Result<Option<Event>, Error> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.line(&line)?;
        }
        Ok(self.dispatch())
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.line.len() + bytes.len() > LINE_BYTES {
            return Err(Error::LongLine);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<Option<Event>, Error> {
        let mut line = std::str::from_utf8(line).map_err(|_| Error::NotText)?;
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        if self.name.len() + self.data.len() + value.len() >= EVENT_BYTES {
            return Err(Error::LongEvent);
        }
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            // Comments, ids and waits are of no use here.
            _ => {}
        }
        Ok(None)
    }

    /// An event without data is none.
    fn dispatch(&mut self) -> Option<Event> {
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        std::mem::take(&mut self.has_data).then_some(Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: name.into(), data: data.into() }
    }

    fn all(text: &[u8], piece: usize) -> Result<Vec<Event>, Error> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for bytes in text.chunks(piece.max(1)) {
            parser.push(bytes, &mut events)?;
        }
        events.extend(parser.end()?);
        Ok(events)
    }

    #[test]
    fn events_are_read_in_every_form_of_the_standard() {
        let text = "\u{feff}event: a\ndata: 1\n\n: comment\nid: 7\nretry: 5\ndata:2\r\ndata: 3\r\n\r\nevent: empty\n\ndata\r\rnonsense\n\ndata:  x";
        let expected = [event("a", "1"), event("", "2\n3"), event("", ""), event("", " x")];
        for piece in 1..text.len() {
            assert_eq!(all(text.as_bytes(), piece).unwrap(), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_errors() {
        let mut parser = Parser::default();
        let mebibyte = vec![b'x'; 1024 * 1024];
        let failed = (0..100).find_map(|_| parser.push(&mebibyte, &mut Vec::new()).err());
        assert_eq!(failed, Some(Error::LongLine));
        assert!(parser.line.capacity() <= 2 * LINE_BYTES);
        let mut parser = Parser::default();
        let line = format!("data: {}\n", "x".repeat(1024 * 1024));
        let failed = (0..100).find_map(|_| parser.push(line.as_bytes(), &mut Vec::new()).err());
        assert_eq!(failed, Some(Error::LongEvent));
        assert_eq!(all(b"data: \xff\xfe\n\n", 100), Err(Error::NotText));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_and_never_panic(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd')], 0..200),
            piece in 1_usize..50,
        ) {
            prop_assert_eq!(all(&bytes, piece), all(&bytes, bytes.len()));
        }
    }
}
