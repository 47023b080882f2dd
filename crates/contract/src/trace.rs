//! A place in a trace, as W3C Trace Context writes it: `00-<trace id>-<parent id>-<flags>`.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The name of the header, and of the member of `_meta`, that carries it.
pub const TRACEPARENT: &str = "traceparent";

/// Which trace a piece of work belongs to, and which span of it caused it. A value of this type is well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent {
    trace: [u8; 16],
    parent: [u8; 8],
    flags: u8,
}

impl TraceParent {
    /// The flag of version 00: somebody records this trace.
    const SAMPLED: u8 = 1;

    /// None for what is not well formed; the standard wants such a thing ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let [version] = bytes(parts.next()?)?;
        let trace: [u8; 16] = bytes(parts.next()?)?;
        let parent: [u8; 8] = bytes(parts.next()?)?;
        let [flags] = bytes(parts.next()?)?;
        // Later versions may say more after the flags.
        let is_known = version == 0 && parts.next().is_none() || (1..0xff).contains(&version);
        let is_set = trace != [0; 16] && parent != [0; 8];
        (is_known && is_set).then_some(Self { trace, parent, flags: flags & Self::SAMPLED })
    }

    /// The same trace, caused by the run of this id.
    #[must_use]
    pub fn within(self, run: Uuid) -> Self {
        let mut parent = [0; 8];
        // The last bytes of an id are the ones that tell it from others, whichever version it has. They are never all zero,
        // since the first two bits of them are the variant.
        parent.copy_from_slice(&run.as_bytes()[8..]);
        Self { parent, ..self }
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("no place in a trace")
    }
}

impl From<TraceParent> for String {
    fn from(trace: TraceParent) -> String {
        trace.to_string()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, parent) = (u128::from_be_bytes(self.trace), u64::from_be_bytes(self.parent));
        write!(out, "00-{trace:032x}-{parent:016x}-{:02x}", self.flags)
    }
}

/// So many bytes in lower-case hexadecimal digits, and nothing else.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_the_standard_allows_is_read() {
        assert_eq!(TraceParent::parse(GOOD).unwrap().to_string(), GOOD);
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-more";
        assert_eq!(TraceParent::parse(later).unwrap().to_string(), GOOD, "in the version we speak");
        assert!(TraceParent::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").is_some());
    }

    #[test]
    fn it_is_stored_as_it_is_written() {
        let trace = TraceParent::parse(GOOD).unwrap();
        let stored = serde_json::to_string(&trace).unwrap();
        assert_eq!((stored.trim_matches('"'), serde_json::from_str(&stored).ok()), (GOOD, Some(trace)));
        assert!(serde_json::from_str::<TraceParent>("\"00-x\"").is_err());
    }

    #[test]
    fn what_it_forbids_is_not() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902é-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_child_keeps_the_trace_and_names_its_run() {
        let run = Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0001);
        let child = TraceParent::parse(GOOD).unwrap().within(run);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-8000000000000001-01");
    }
}
