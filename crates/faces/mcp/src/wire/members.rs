//! The members of a JSON object, kept as the text they came in.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::Scan;

/// The envelope, params and `_meta` may have this many members; more are refused before they are compared.
pub const MEMBERS: usize = 256;

/// The text of one JSON value, found to be well formed when the message around it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    pub fn get(self) -> &'a str {
        self.0
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

/// The members of an object, unread.
#[derive(Debug, Default)]
pub struct Members<'a> {
    members: Vec<(Cow<'a, str>, Raw<'a>)>,
}

/// Why a text is not the members of an object.
#[derive(Debug)]
pub enum Shape {
    NotAnObject,
    Crowded,
    Unreadable(String),
}

impl fmt::Display for Shape {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::NotAnObject => out.write_str("not an object"),
            Shape::Crowded => write!(out, "more than {MEMBERS} members"),
            Shape::Unreadable(message) => out.write_str(message),
        }
    }
}

impl<'a> Members<'a> {
    pub fn read(text: &'a str) -> Result<Self, Shape> {
        if text.trim_ascii_start().as_bytes().first() != Some(&b'{') {
            return Err(Shape::NotAnObject);
        }
        let members: Self =
            serde_json::from_str(text).map_err(|error| Shape::Unreadable(error.to_string()))?;
        if members.members.len() > MEMBERS { Err(Shape::Crowded) } else { Ok(members) }
    }

    /// The members of a value that is well formed already: each is found by its end, and not judged a second time.
    pub fn within(raw: Raw<'a>) -> Result<Self, Shape> {
        if raw.get().as_bytes().first() != Some(&b'{') {
            return Err(Shape::NotAnObject);
        }
        let members = Scan::new(raw.get()).members()?;
        if members.len() > MEMBERS { Err(Shape::Crowded) } else { Ok(Self { members }) }
    }

    pub fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.members.iter().find(|(found, _)| found == name).map(|(_, raw)| *raw)
    }

    /// The first name that is given twice.
    pub fn repeated(&self) -> Option<&str> {
        let names = self.members.iter().enumerate();
        names
            .filter(|(place, (name, _))| self.members[..*place].iter().any(|(before, _)| before == name))
            .map(|(_, (name, _))| name.as_ref())
            .next()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(4);
                while let Some(Name(name)) = map.next_key()? {
                    let raw: &'de RawValue = map.next_value()?;
                    // One more than allowed is kept, which is how the reader learns of the rest.
                    if members.len() <= MEMBERS {
                        members.push((name, Raw::from(raw)));
                    }
                }
                Ok(Members { members })
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A name that is borrowed from the text where it can be.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrow;
        impl<'de> Visitor<'de> for Borrow {
            type Value = Name<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrow)
    }
}
