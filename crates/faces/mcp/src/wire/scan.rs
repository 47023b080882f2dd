//! Finds the members of an object in a text that is known to be JSON: by quotes and brackets alone, without judging values.
//!
//! A text that is no JSON after all gives an error or members that are none, never more than that.

use std::borrow::Cow;

use memchr::memchr2;

use super::members::{MEMBERS, Raw, Shape};

/// A place in a text.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Up to one more member than allowed, which is how the reader learns of the rest.
    pub fn members(mut self) -> Result<Vec<(Cow<'a, str>, Raw<'a>)>, Shape> {
        let mut members = Vec::with_capacity(4);
        self.take(b'{')?;
        if self.next() == Some(b'}') {
            return Ok(members);
        }
        while members.len() <= MEMBERS {
            let name = self.name()?;
            self.take(b':')?;
            members.push((name, self.value()?));
            if self.next() == Some(b'}') {
                break;
            }
            self.take(b',')?;
        }
        Ok(members)
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))?;
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Result<(), Shape> {
        if self.next() != Some(wanted) {
            return Err(broken());
        }
        self.at += 1;
        Ok(())
    }

    fn name(&mut self) -> Result<Cow<'a, str>, Shape> {
        if self.next() != Some(b'"') {
            return Err(broken());
        }
        let whole = self.until(Self::string)?;
        let inner = whole.get(1..whole.len() - 1).ok_or_else(broken)?;
        match inner.contains('\\') {
            false => Ok(Cow::Borrowed(inner)),
            true => {
                let read = serde_json::from_str(whole);
                read.map(Cow::Owned).map_err(|error| Shape::Unreadable(error.to_string()))
            }
        }
    }

    fn value(&mut self) -> Result<Raw<'a>, Shape> {
        let end = match self.next().ok_or_else(broken)? {
            b'"' => Self::string,
            b'{' | b'[' => Self::nested,
            _ => Self::word,
        };
        self.until(end).map(Raw::new)
    }

    /// What lies between here and an end, which becomes the place to go on from.
    fn until(&mut self, end: fn(&[u8]) -> Option<usize>) -> Result<&'a str, Shape> {
        let (from, rest) = (self.at, self.text.as_bytes().get(self.at..).unwrap_or_default());
        self.at += end(rest).ok_or_else(broken)?;
        self.text.get(from..self.at).ok_or_else(broken)
    }

    /// The length of the string that begins here, with its quotes.
    fn string(bytes: &[u8]) -> Option<usize> {
        let mut at = 1;
        loop {
            at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
            match bytes.get(at)? {
                b'"' => return Some(at + 1),
                _ => at += 2,
            }
        }
    }

    /// The length of the object or array that begins here, with its brackets.
    fn nested(bytes: &[u8]) -> Option<usize> {
        let (mut at, mut depth) = (0, 0_usize);
        loop {
            match bytes.get(at)? {
                b'"' => at += Self::string(bytes.get(at..)?)? - 1,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// The length of the number or word that begins here.
    fn word(bytes: &[u8]) -> Option<usize> {
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        bytes.iter().position(is_end).filter(|length| *length > 0)
    }
}

fn broken() -> Shape {
    Shape::Unreadable(String::from("not an object that can be read"))
}
