//! Server-sent events, read from either side: the text of the stream becomes one event after another.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use orchestr8_contract::Code;

use crate::failure::Failure;

/// A single event larger than this is not one of ours.
const EVENT_BYTES: usize = 4 * 1024 * 1024;

/// One event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// To go on after it.
    pub id: String,
    pub name: String,
    pub data: String,
}

pub struct Events {
    pieces: BoxStream<'static, Result<Bytes, Failure>>,
    reading: Reading,
    ready: VecDeque<Event>,
}

impl Events {
    pub fn new(pieces: impl futures::Stream<Item = Result<Bytes, Failure>> + Send + 'static) -> Self {
        Self { pieces: pieces.boxed(), reading: Reading::default(), ready: VecDeque::new() }
    }

    /// The next event; none at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.pieces.next().await {
                None => return Ok(None),
                Some(piece) => self.ready.extend(self.reading.take(&piece?)?),
            }
        }
    }
}

/// What has been read of the next event.
#[derive(Default)]
struct Reading {
    rest: Vec<u8>,
    event: Event,
    has_data: bool,
}

impl Reading {
    fn take(&mut self, piece: &[u8]) -> Result<Vec<Event>, Failure> {
        self.rest.extend_from_slice(piece);
        let mut events = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            events.extend(self.line(line.trim_end_matches(['\n', '\r'])));
        }
        if self.rest.len() + self.event.data.len() > EVENT_BYTES {
            return Err(Failure::new(Code::PayloadTooLarge, "an event of the stream is too large")
                .hinting("is it orchestr8 that listens there?"));
        }
        Ok(events)
    }

    /// An empty line ends an event; a line that begins with a colon keeps the connection alive.
    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            // The id holds until another comes.
            let next = Event { id: self.event.id.clone(), ..Event::default() };
            let event = std::mem::replace(&mut self.event, next);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => self.event.id = value.to_owned(),
            "event" => self.event.name = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, name: &str, data: &str) -> Event {
        Event { id: id.into(), name: name.into(), data: data.into() }
    }

    #[tokio::test]
    async fn events_are_read_however_the_text_is_cut() {
        let text = ": hello\n\nid: 1\nevent: step.started\ndata: {\"a\":1}\n\nid: 2\r\ndata: one\r\ndata: two\r\n\r\n:\n\ndata: kept id\n\n";
        let expected =
            [event("1", "step.started", "{\"a\":1}"), event("2", "", "one\ntwo"), event("2", "", "kept id")];
        for size in [1, 2, 7, text.len()] {
            let pieces: Vec<Result<Bytes, Failure>> =
                text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let mut events = Events::new(futures::stream::iter(pieces));
            let mut seen = Vec::new();
            while let Some(event) = events.next().await.unwrap() {
                seen.push(event);
            }
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }

    #[tokio::test]
    async fn an_endless_line_is_refused() {
        let pieces = futures::stream::repeat_with(|| Ok(Bytes::from(vec![b'a'; 65_536])));
        let failure = Events::new(pieces).next().await.unwrap_err();
        assert_eq!(failure.code, Code::PayloadTooLarge);
    }
}
