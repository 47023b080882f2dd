//! What is kept of a message that is too long: the members that say who asks for what, without what makes it long.
//!
//! The message is read in pieces and never held. The skeleton is a message of its own, so that a long request passes the same
//! checks in the same order as any other; only what it carries is gone: arguments are `{}`, long texts are one placeholder.

use crate::era::{CAPABILITIES_KEY, VERSION_KEY};
use crate::wire::ID_BYTES;

/// A text or a number longer than this is replaced by the placeholder. No id and no correlation id is that long.
const KEPT_BYTES: usize = ID_BYTES + 2;

/// So often one member is kept: twice is enough to see that it is repeated.
const REPEATS: u8 = 2;

/// The members that are kept, by how deep their object lies.
const KEPT: [&[&str]; 3] = [
    &["jsonrpc", "id", "method", "params", "result", "error"],
    &["name", "arguments", "uri", "task", "_meta"],
    &["correlationId", VERSION_KEY, CAPABILITIES_KEY],
];

/// Reads over a message in pieces.
#[derive(Debug, Default)]
pub struct Skeleton {
    /// How long the message is so far.
    pub bytes: usize,
    objects: Vec<Object>,
    /// How many containers deep we are in what is not kept.
    skipped: usize,
    text: Option<Text>,
    /// The outermost value, once it has ended.
    value: Vec<u8>,
    is_broken: bool,
}

/// An object whose members are looked at.
#[derive(Debug, Default)]
struct Object {
    members: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
    /// After the `:` of a member.
    in_value: bool,
    seen: [u8; KEPT[0].len()],
}

/// A string that has not ended.
#[derive(Debug, Default)]
struct Text {
    kept: Vec<u8>,
    is_escaped: bool,
    is_long: bool,
}

impl Skeleton {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        for byte in bytes {
            self.step(*byte);
        }
    }

    /// The skeleton as JSON text. None: there is nothing in it that could be answered.
    pub fn finish(&self) -> Option<&[u8]> {
        let is_whole = self.objects.is_empty() && self.skipped == 0 && self.text.is_none();
        (is_whole && !self.is_broken && !self.value.is_empty()).then_some(&self.value)
    }

    fn step(&mut self, byte: u8) {
        if let Some(text) = &mut self.text {
            if !text.step(byte) {
                return;
            }
            if let Some(text) = self.text.take().filter(|_| self.skipped == 0) {
                self.put(&text.finish());
            }
            return;
        }
        match byte {
            b'"' => self.text = Some(Text { kept: vec![b'"'], ..Text::default() }),
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => self.close(byte),
            _ if self.skipped > 0 || byte.is_ascii_whitespace() => {}
            b':' => match self.objects.last_mut() {
                Some(object) if !object.in_value => object.in_value = true,
                Some(_) | None => self.is_broken = true,
            },
            b',' => {
                let depth = self.objects.len();
                match self.objects.last_mut() {
                    Some(object) => object.end_member(depth),
                    None => self.is_broken = true,
                }
            }
            _ => self.put(&[byte]),
        }
    }

    fn open(&mut self, byte: u8) {
        if self.skipped == 0 && byte == b'{' && self.is_looked_at() {
            self.objects.push(Object::default());
            return;
        }
        if self.skipped == 0 {
            self.put(if byte == b'{' { b"{}" } else { b"[]" });
        }
        self.skipped += 1;
    }

    fn close(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let depth = self.objects.len();
        match self.objects.pop().filter(|_| byte == b'}') {
            Some(mut object) => {
                object.end_member(depth);
                let mut whole = vec![b'{'];
                whole.append(&mut object.members);
                whole.push(b'}');
                self.put_whole(whole);
            }
            None => self.is_broken = true,
        }
    }

    /// Whether the object that begins here is the message, its params or their `_meta`.
    fn is_looked_at(&self) -> bool {
        match (self.objects.last(), self.objects.len()) {
            (None, _) => self.value.is_empty(),
            (Some(object), 1) => object.is_in("params"),
            (Some(object), 2) => object.is_in("_meta"),
            (Some(_), _) => false,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let place = match self.objects.last_mut() {
            None => &mut self.value,
            Some(object) if object.in_value => &mut object.value,
            Some(object) => &mut object.name,
        };
        match place.len() + bytes.len() <= 2 * KEPT_BYTES {
            true => place.extend_from_slice(bytes),
            // A number without end.
            false => *place = placeholder(),
        }
    }

    fn put_whole(&mut self, object: Vec<u8>) {
        let place = self.objects.last_mut().map_or(&mut self.value, |outer| &mut outer.value);
        self.is_broken |= !place.is_empty();
        *place = object;
    }
}

impl Object {
    fn is_in(&self, name: &str) -> bool {
        self.in_value && self.value.is_empty() && self.name().as_deref() == Some(name)
    }

    fn name(&self) -> Option<String> {
        serde_json::from_slice(&self.name).ok()
    }

    /// Keeps the member that ends here, if it is one of those that are kept in an object so deep.
    fn end_member(&mut self, depth: usize) {
        let (name, value) = (self.name(), std::mem::take(&mut self.value));
        self.name.clear();
        self.in_value = false;
        let kept = KEPT.get(depth.saturating_sub(1)).copied().unwrap_or_default();
        let Some(place) = name.and_then(|name| kept.iter().position(|kept| *kept == name)) else { return };
        let Some(seen) = self.seen.get_mut(place).filter(|seen| **seen < REPEATS) else { return };
        *seen += 1;
        if !self.members.is_empty() {
            self.members.push(b',');
        }
        self.members.push(b'"');
        self.members.extend_from_slice(kept[place].as_bytes());
        self.members.extend_from_slice(b"\":");
        self.members.extend_from_slice(&value);
    }
}

impl Text {
    /// Whether the string has ended.
    fn step(&mut self, byte: u8) -> bool {
        self.is_long |= self.kept.len() > KEPT_BYTES;
        if !self.is_long {
            self.kept.push(byte);
        }
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => return true,
            _ => {}
        }
        false
    }

    fn finish(self) -> Vec<u8> {
        if self.is_long { placeholder() } else { self.kept }
    }
}

/// Too long for an id, and not fit to be any other name either.
fn placeholder() -> Vec<u8> {
    let mut text = vec![b'"'];
    text.resize(ID_BYTES + 2, b' ');
    text.push(b'"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(text: &str) -> Option<String> {
        let mut skeleton = Skeleton::default();
        // In pieces of three, so that every piece boundary is tried.
        text.as_bytes().chunks(3).for_each(|piece| skeleton.feed(piece));
        skeleton.finish().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn what_names_the_call_is_kept_wherever_it_stands() {
        let long = "}\\\",".repeat(10_000);
        let params = format!(
            r#"{{ "arguments": {{"id":99,"s":"{long}","params":{{"name":1}}}}, "_meta": {{"correlationId":"c,1","junk":[{{"a":"{long}"}}]}}, "name":"ec\u0068o" }}"#
        );
        let text =
            format!(r#" {{"junk":{params}, "params" : {params} ,"method":"tools/call", "id" : -7.5e0 }} "#);
        assert_eq!(
            skeleton(&text).as_deref(),
            Some(
                r#"{"params":{"arguments":{},"_meta":{"correlationId":"c,1"},"name":"ec\u0068o"},"method":"tools/call","id":-7.5e0}"#
            )
        );
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        let long = "1".repeat(5000);
        for (text, kept) in [
            (r#"{"id":1,"id":2,"id":3}"#, r#"{"id":1,"id":2}"#),
            (r#"{"params":[{"name":"x"}],"id":{"a":1}}"#, r#"{"params":[],"id":{}}"#),
            (
                r#"{"params":{"arguments":[1],"name":5,"_meta":7}}"#,
                r#"{"params":{"arguments":[],"name":5,"_meta":7}}"#,
            ),
            (r#"[{"id":1}]"#, "[]"),
            (r#"{"id":1,"result":{"method":"x"}}"#, r#"{"id":1,"result":{}}"#),
        ] {
            assert_eq!(skeleton(text).as_deref(), Some(kept), "{text}");
        }
        let id = skeleton(&format!(r#"{{"id":{long}}}"#)).unwrap();
        assert!(id.len() > ID_BYTES && id.contains("\"   "), "{id}");
        assert!(skeleton(&format!(r#"{{"id":"{long}"}}"#)).unwrap().contains("\"   "));
        for text in ["", "{", r#"{"id":"#, r#""no end"#, "}"] {
            assert_eq!(skeleton(text), None, "{text}");
        }
    }

    #[test]
    fn a_skeleton_is_short_however_long_the_message_is() {
        let members: String = (0..50_000).map(|number| format!(r#""m{number}":1,"id":{number},"#)).collect();
        let text = format!(r#"{{{members}"params":{{{members}"_meta":{{{members}"x":1}}}}}}"#);
        assert!(skeleton(&text).unwrap().len() < 200);
    }
}
