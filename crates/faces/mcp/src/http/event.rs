//! Server-sent events as text, and the ids by which a client says where it was.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};

/// The longest id we have given.
const ID_BYTES: usize = 64;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It carries the answer to one POST.
    Call,
    /// It carries what belongs to no request: a GET.
    Listening,
}

/// Names one stream of one session, in one life of the server: numbers begin anew after a restart, so a name says which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub life: u32,
    pub kind: Kind,
    pub number: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Call => 'c',
            Kind::Listening => 'l',
        };
        write!(out, "{:08x}-{kind}{}", self.life, self.number)
    }
}

/// A place on a stream: the last event a client has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub name: Name,
    pub position: u64,
}

impl Place {
    /// Reads an id we have given. None for anything else.
    pub fn parse(id: &str) -> Option<Self> {
        if id.len() > ID_BYTES {
            return None;
        }
        let mut parts = id.split('-');
        let (life, stream, position, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next())
        else {
            return None;
        };
        // `from_str_radix` would also take a plus sign.
        let is_life = life.len() == 8 && life.bytes().all(|byte| byte.is_ascii_hexdigit());
        let life = is_life.then(|| u32::from_str_radix(life, 16).ok())??;
        let kind = match stream.as_bytes().first()? {
            b'c' => Kind::Call,
            b'l' => Kind::Listening,
            _ => return None,
        };
        let number = digits(&stream[1..])?;
        Some(Self { name: Name { life, kind, number }, position: digits(position)? })
    }
}

fn digits(text: &str) -> Option<u64> {
    // `parse` would also take a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Keeps a silent connection alive: a comment, which clients pass over.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The event that gives a client an id to come back with, before anything is said, and the pause before it does.
pub(super) fn priming(name: &Name, position: u64, retry_ms: u64) -> Bytes {
    Bytes::from(format!("id: {name}-{position}\nretry: {retry_ms}\ndata: \n\n"))
}

/// Appends one message.
pub(super) fn write(out: &mut BytesMut, id: Option<(&Name, u64)>, text: &str) {
    out.reserve(text.len() + ID_BYTES + 32);
    if let Some((name, position)) = id {
        out.put_slice(format!("id: {name}-{position}\n").as_bytes());
    }
    out.put_slice(b"event: message\ndata: ");
    let start = out.len();
    out.put_slice(text.as_bytes());
    // A line break would cut the event. In JSON it can only be white space, since strings escape it.
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
        for byte in &mut out[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    out.put_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: Kind) -> Name {
        Name { life: 0xbeef, kind, number: 7 }
    }

    #[test]
    fn an_id_leads_back_to_its_place() {
        for kind in [Kind::Call, Kind::Listening] {
            let place = Place { name: name(kind), position: 42 };
            assert_eq!(Place::parse(&format!("{}-42", place.name)), Some(place));
        }
    }

    #[test]
    fn what_is_no_id_of_ours_leads_nowhere() {
        let long = format!("0000beef-c7-{}", "1".repeat(64));
        for id in [
            "",
            "1",
            "0000beef-c7",
            "0000beef-c7-",
            "0000beef-x7-1",
            "beef-c7-1",
            "0000beef-c-1",
            "0000beef-c7-1-1",
            "0000beef-c+7-1",
            "0000beef-c7--1",
            "0000beef-c7-99999999999999999999",
            "+000beef-c7-1",
            &long,
            "0000beef-é7-1",
        ] {
            let parsed = Place::parse(id);
            assert!(parsed.is_none(), "{id}: {parsed:?}");
        }
    }

    #[test]
    fn an_event_is_one_block_whatever_white_space_its_json_has() {
        let mut out = BytesMut::new();
        write(&mut out, Some((&name(Kind::Call), 1)), "{\n  \"a\": \"b\\n\"\r\n}");
        assert_eq!(out, "id: 0000beef-c7-1\nevent: message\ndata: {   \"a\": \"b\\n\"  }\n\n");
        let mut out = BytesMut::new();
        write(&mut out, None, "{}");
        assert_eq!(out, "event: message\ndata: {}\n\n");
    }

    #[test]
    fn the_priming_event_has_an_id_a_pause_and_empty_data() {
        assert_eq!(priming(&name(Kind::Call), 0, 500), "id: 0000beef-c7-0\nretry: 500\ndata: \n\n");
    }
}
