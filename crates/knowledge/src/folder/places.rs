//! Where documents that a folder adds will stand among their siblings: worked out before anything is sent, so that it does not matter
//! in which order the calls arrive, nor where a run was cut off.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

use super::entries::{Entry, Stored};
use crate::limits::PLACE_BYTES;
use crate::order::between;

/// The places of those that are new where they are, by id. Each comes right behind the one before it in the folder; the first
/// before the next one that is there, and where none is, behind all that is there.
pub fn places(sorted: &[(&str, &Entry<'_>)], stored: &[Stored]) -> HashMap<String, String> {
    let mut taken: HashMap<&str, BTreeSet<String>> = HashMap::new();
    for one in stored {
        taken.entry(&one.parent).or_default().insert(one.place.clone());
    }
    let there: HashMap<&str, &Stored> = stored.iter().map(|one| (one.id.as_str(), one)).collect();
    let mut families: HashMap<&str, Vec<&Entry<'_>>> = HashMap::new();
    for (_, entry) in sorted {
        families.entry(&entry.parent).or_default().push(entry);
    }
    let mut found = HashMap::new();
    for (parent, siblings) in families {
        let known = |entry: &&Entry<'_>| {
            there.get(entry.id.as_str()).filter(|one| one.parent == parent).map(|one| one.place.clone())
        };
        let taken = taken.entry(parent).or_default();
        let mut before: Option<String> = None;
        for (at, entry) in siblings.iter().enumerate() {
            if let Some(place) = known(entry) {
                before = Some(place);
                continue;
            }
            let next = siblings[at + 1..].iter().find_map(known);
            let place = spot(before.as_ref(), next.as_ref(), taken, &entry.id);
            // Where there is no room the server finds some.
            let Some(place) = place.filter(|place| place.len() <= PLACE_BYTES) else { continue };
            taken.insert(place.clone());
            found.insert(entry.id.clone(), place.clone());
            before = Some(place);
        }
    }
    found
}

fn spot(
    before: Option<&String>,
    next: Option<&String>,
    taken: &BTreeSet<String>,
    id: &str,
) -> Option<String> {
    match (before, next) {
        (Some(before), _) => {
            let upper = taken.range::<String, _>((Excluded(before), Unbounded)).next();
            between(Some(before), upper.map(String::as_str), id)
        }
        (None, Some(next)) => {
            let lower = taken.range::<String, _>(..next).next_back();
            between(lower.map(String::as_str), Some(next), id)
        }
        (None, None) => between(taken.last().map(String::as_str), None, id),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{done, file};
    use super::super::{File, plan};
    use super::*;
    use crate::folder::reconcile::Base;
    use crate::record::ROOT;
    use proptest::prelude::*;

    fn files(names: &[String]) -> Vec<File> {
        names.iter().map(|name| file(&format!("{name}.md"), "x")).collect()
    }

    fn order(mut stored: Vec<Stored>) -> Vec<String> {
        stored.sort_by(|one, other| (&one.place, &one.id).cmp(&(&other.place, &other.id)));
        stored.iter().map(|one| one.title().to_owned()).collect()
    }

    #[test]
    fn what_is_added_stands_between_its_neighbours() {
        let names = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let first = done(Vec::new(), &plan(&files(&names("b d")), &[], &Base::new(), ROOT));
        let all = files(&names("a b c d e"));
        let second = done(first.clone(), &plan(&all, &first, &Base::new(), ROOT));
        assert_eq!(order(second), names("a b c d e"));
        let other = done(first.clone(), &plan(&files(&names("z")), &first, &Base::new(), ROOT));
        assert_eq!(order(other), names("b d z"), "a stranger comes last");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn the_order_is_that_of_the_folder_however_calls_arrive_and_wherever_they_stop(
            names in proptest::collection::btree_set("[a-d]{1,4}", 1..30),
            cut in 0usize..30,
            seed in any::<prop::sample::Index>(),
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let all = files(&names);
            let mut calls = plan(&all, &[], &Base::new(), ROOT);
            let turned = seed.index(calls.len());
            calls.rotate_left(turned);
            calls.reverse();
            calls.truncate(cut);
            let half = done(Vec::new(), &calls);
            let rest = plan(&all, &half, &Base::new(), ROOT);
            prop_assert_eq!(order(done(half, &rest)), names);
        }
    }
}
