//! Where the file of every document belongs: below the folder of its parent, under the name that it has or that its title gives.

use std::collections::{BTreeMap, HashMap};

use super::entries::{Entry, Stored};
use super::names::{Given, join, last, parent_path};

/// The place of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// Without its ending.
    pub path: String,
    /// Its number among its siblings.
    pub order: i64,
}

pub type Arranged = HashMap<String, At>;

/// What a folder has, by id: its path without ending and what it says; and what the tree has.
pub type Both<'r, 's> = (&'r HashMap<&'s str, (&'s str, &'s Entry<'s>)>, &'r HashMap<&'s str, &'s Stored>);

/// From the top down. What does not hang together with the top has no place. The paths of `stay` are not given to anybody else.
pub fn arrange(
    top: &str,
    parents: &BTreeMap<&str, &str>,
    (local, remote): Both<'_, '_>,
    stay: &[&str],
) -> Arranged {
    let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, parent) in parents {
        below.entry(parent).or_default().push(id);
    }
    let (mut arranged, mut open) = (Arranged::new(), vec![(top, String::new())]);
    while let Some((parent, folder)) = open.pop() {
        let Some(mut ids) = below.remove(parent) else { continue };
        ids.sort_by_key(|id| {
            let place = remote.get(id).map(|stored| stored.place.as_str());
            let wished = local.get(id).map_or(i64::MAX, |(_, entry)| entry.order);
            (place.is_none(), place, wished, *id)
        });
        let mut given = Given::default();
        for path in stay.iter().filter(|path| parent_path(path) == folder) {
            given.take(last(path));
        }
        let mut names: HashMap<&str, String> = HashMap::new();
        // Names that are here come first, then those that come from elsewhere: nothing is renamed for the sake of what is new.
        for is_here in [true, false] {
            for id in &ids {
                let Some((path, _)) = local.get(id) else { continue };
                if (parent_path(path) == folder) == is_here && (given.take(last(path)) || is_here) {
                    names.insert(id, last(path).to_owned());
                }
            }
        }
        for (order, id) in ids.iter().enumerate() {
            let name = names.remove(id).unwrap_or_else(|| {
                let title = remote.get(id).map(|stored| stored.title());
                let title = title.or_else(|| local.get(id).map(|(path, _)| last(path)));
                given.give(title.unwrap_or_default(), id)
            });
            let path = join(&folder, &name);
            let order = i64::try_from(order).unwrap_or(i64::MAX);
            arranged.insert((*id).to_owned(), At { path: path.clone(), order });
            open.push((id, path));
        }
    }
    arranged
}
