//! The passages that one word stands in, and how often, in few bytes: most words stand once in a passage, and near the one
//! before.

/// How often a word stands in the parts of a passage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub body: u32,
    pub head: u32,
    /// As the plain form of a word with marks.
    pub fold: u32,
}

/// One passage after another, by ascending slot. What follows the distance from the slot before depends on its lowest two bits.
#[derive(Debug, Clone, Default)]
pub struct Postings {
    bytes: Vec<u8>,
    last: u32,
    passages: u32,
}

/// Once in the body; nothing follows.
const ONCE: u64 = 0;
/// Only in the body: how often.
const BODY: u64 = 1;
/// Only as a plain form: how often.
const FOLD: u64 = 2;
/// How often in the body, in the head, as a plain form.
const ALL: u64 = 3;

/// Room that a list gets when it is full: a quarter more, since doubling would waste what many short lists do not need.
const GROWTH: usize = 4;
const ROOM: usize = 8;

impl Postings {
    /// Adds a passage. Its slot is higher than all before.
    pub fn push(&mut self, slot: u32, counts: Counts) {
        let distance = u64::from(slot.saturating_sub(self.last)) << 2;
        let Counts { body, head, fold } = counts;
        let mut code = Code::default();
        match counts {
            Counts { body: 1, head: 0, fold: 0 } => code.write(distance | ONCE),
            Counts { head: 0, fold: 0, .. } => {
                code.write(distance | BODY);
                code.write(u64::from(body));
            }
            Counts { body: 0, head: 0, .. } => {
                code.write(distance | FOLD);
                code.write(u64::from(fold));
            }
            Counts { .. } => {
                code.write(distance | ALL);
                [body, head, fold].into_iter().for_each(|count| code.write(u64::from(count)));
            }
        }
        let code = &code.bytes[..code.length];
        if self.bytes.capacity() - self.bytes.len() < code.len() {
            self.bytes.reserve_exact(code.len().max(self.bytes.len() / GROWTH + ROOM));
        }
        self.bytes.extend_from_slice(code);
        self.last = slot;
        self.passages += 1;
    }

    /// Passages, those that are gone by now included.
    pub fn len(&self) -> usize {
        self.passages as usize
    }

    pub fn is_empty(&self) -> bool {
        self.passages == 0
    }

    /// Bytes outside of itself.
    pub fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.bytes, slot: 0 }
    }
}

/// The bytes of one passage: four numbers, of which none takes more than five.
#[derive(Default)]
struct Code {
    bytes: [u8; 20],
    length: usize,
}

impl Code {
    /// Seven bits at a time, the lowest first; the last byte says that it is the last.
    fn write(&mut self, mut number: u64) {
        loop {
            let low = number.to_le_bytes()[0];
            number >>= 7;
            self.bytes[self.length] = if number > 0 { low | 0x80 } else { low & 0x7f };
            self.length += 1;
            if number == 0 {
                break;
            }
        }
    }
}

/// Reads what was pushed.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
    slot: u32,
}

impl Iterator for Iter<'_> {
    type Item = (u32, Counts);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let first = self.read()?;
        self.slot = self.slot.wrapping_add((first >> 2) as u32);
        let mut counts = Counts::default();
        match first & 3 {
            ONCE => counts.body = 1,
            BODY => counts.body = self.read()? as u32,
            FOLD => counts.fold = self.read()? as u32,
            _ => {
                counts.body = self.read()? as u32;
                counts.head = self.read()? as u32;
                counts.fold = self.read()? as u32;
            }
        }
        Some((self.slot, counts))
    }
}

impl Iter<'_> {
    #[inline]
    fn read(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn what_is_pushed_comes_back(
            list in proptest::collection::btree_map(any::<u32>(), (0..5_000u32, 0..3u32, 0..200u32), 0..80),
        ) {
            let mut postings = Postings::default();
            let all: Vec<(u32, Counts)> =
                list.into_iter().map(|(slot, (body, head, fold))| (slot, Counts { body, head, fold })).collect();
            for (slot, counts) in &all {
                postings.push(*slot, *counts);
            }
            prop_assert_eq!(postings.len(), all.len());
            prop_assert_eq!(postings.iter().collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn a_word_that_stands_once_takes_one_byte() {
        let mut postings = Postings::default();
        for slot in 0..1_000 {
            postings.push(slot * 20, Counts { body: 1, ..Counts::default() });
        }
        assert_eq!(postings.bytes.len(), 1_000);
        assert!(postings.bytes() < 1_400, "{}", postings.bytes());
    }
}
