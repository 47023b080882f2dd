//! Places among siblings: texts that sort, with room between any two, so that a move touches only what moves.
//!
//! Places made at the same time from the same neighbours may not be told apart by where they lie, so each ends in a few signs of
//! its document; if even those agree, the ids decide. The order is total whatever happens at once.

use sha2::{Digest, Sha256};

use crate::limits::PLACE_BYTES;

const SIGNS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE: u64 = SIGNS.len() as u64;

/// Signs that count the places at the ends of the list.
const HEAD: usize = 8;

/// How far apart those are: room for some that come between without growing longer.
const STEP: u64 = BASE * BASE * BASE;

/// Signs of the document at the end.
const TAIL: usize = 3;

/// A place for a document between two others; none where there is no room, then the siblings are to be numbered anew.
pub fn between(lower: Option<&str>, upper: Option<&str>, id: &str) -> Option<String> {
    let place = match (lower, upper) {
        (None, None) => head(BASE.pow(8) / 2)?,
        (Some(lower), None) => head(count(lower)?.checked_add(STEP)?)?,
        (None, Some(upper)) => match count(upper).and_then(|at| at.checked_sub(STEP)) {
            Some(at) => head(at)?,
            None => middle("", upper)?,
        },
        (Some(lower), Some(upper)) => middle(lower, upper)?,
    };
    Some(place + &tail(id))
}

/// Whether a text is a place that documents can be put before and behind.
pub fn is_place(text: &str) -> bool {
    (HEAD + 1..=PLACE_BYTES).contains(&text.len())
        && text.bytes().all(|sign| digit(sign).is_some())
        && !text.ends_with('0')
}

/// The shortest text between two, which differs from the upper one before either ends.
fn middle(lower: &str, upper: &str) -> Option<String> {
    if lower >= upper {
        return None;
    }
    let mut place = String::new();
    let (lower, upper) = (lower.as_bytes(), upper.as_bytes());
    let mut bounded = true;
    for at in 0..=lower.len().max(upper.len()) {
        let low = lower.get(at).map_or(Some(0), |sign| digit(*sign))?;
        let high = match (bounded, upper.get(at)) {
            (true, Some(sign)) => digit(*sign)?,
            (true, None) => return None,
            (false, _) => BASE,
        };
        if high > low + 1 {
            place.push(char::from(SIGNS[usize::try_from((low + high) / 2).ok()?]));
            return Some(place);
        }
        place.push(char::from(SIGNS[usize::try_from(low).ok()?]));
        bounded = bounded && high == low;
    }
    None
}

fn digit(sign: u8) -> Option<u64> {
    SIGNS.binary_search(&sign).ok().map(|at| at as u64)
}

/// The number in the first signs of a place.
fn count(place: &str) -> Option<u64> {
    let signs = place.bytes().chain(std::iter::repeat(b'0')).take(HEAD);
    signs.map(digit).try_fold(0u64, |sum, digit| Some(sum * BASE + digit?))
}

fn head(mut number: u64) -> Option<String> {
    if number >= BASE.pow(8) {
        return None;
    }
    let mut signs = [b'0'; HEAD];
    for sign in signs.iter_mut().rev() {
        *sign = SIGNS[usize::try_from(number % BASE).ok()?];
        number /= BASE;
    }
    Some(signs.iter().map(|sign| char::from(*sign)).collect())
}

/// The last sign is never the smallest one: nothing fits below that.
fn tail(id: &str) -> String {
    let hash = Sha256::digest(id.as_bytes());
    let sign = |at: usize| {
        let found = usize::from(hash[at]) % SIGNS.len();
        char::from(SIGNS[if at + 1 == TAIL { found.max(1) } else { found }])
    };
    (0..TAIL).map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn appending_and_prepending_do_not_grow() {
        let mut places = vec![between(None, None, "first").unwrap()];
        for n in 0..2_000 {
            let last = between(places.last().map(String::as_str), None, &format!("a{n}")).unwrap();
            places.push(last);
            let first = between(None, places.first().map(String::as_str), &format!("p{n}")).unwrap();
            places.insert(0, first);
        }
        assert!(places.is_sorted() && places.iter().all(|place| place.len() == HEAD + TAIL));
    }

    #[test]
    fn putting_always_before_the_same_one_grows_slowly() {
        let upper = between(None, None, "u").unwrap();
        let mut lower = between(None, Some(&upper), "l").unwrap();
        for n in 0..500 {
            let place = between(Some(&lower), Some(&upper), &format!("{n}")).unwrap();
            assert!(lower < place && place < upper);
            lower = place;
        }
        assert!(lower.len() < 120, "{}", lower.len());
    }

    #[test]
    fn what_is_made_here_is_a_place_and_nothing_else() {
        let (first, other) = (between(None, None, "a").unwrap(), between(None, None, "b").unwrap());
        assert!(is_place(&first) && is_place(&between(Some(&first), None, "x").unwrap()));
        assert!(is_place(
            &between(Some(&first.clone().min(other.clone())), Some(&first.max(other)), "x").unwrap()
        ));
        for wrong in
            ["", "V", "V0000000", "V00000000", "V0000000-", "V0000000é", &"z".repeat(PLACE_BYTES + 1)]
        {
            assert!(!is_place(wrong), "{wrong}");
        }
    }

    #[test]
    fn between_equal_places_there_is_none() {
        assert_eq!(between(Some("abc"), Some("abc"), "x"), None);
        assert_eq!(between(Some("b"), Some("a"), "x"), None);
        assert_eq!(between(Some("zzzzzzzz"), None, "x"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_place_lies_between_its_neighbours(moves in proptest::collection::vec(any::<u16>(), 1..200)) {
            let mut places: Vec<String> = Vec::new();
            for (n, at) in moves.into_iter().enumerate() {
                let at = usize::from(at) % (places.len() + 1);
                let lower = at.checked_sub(1).map(|at| places[at].as_str());
                let upper = places.get(at).map(String::as_str);
                let place = between(lower, upper, &n.to_string());
                prop_assert!(place.is_some());
                places.insert(at, place.unwrap_or_default());
                prop_assert!(places.is_sorted());
            }
        }
    }
}
