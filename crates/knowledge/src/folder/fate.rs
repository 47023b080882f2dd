//! What becomes of one document when a folder and the tree meet.

use super::entries::{Entry, Stored};
use super::names::last;
use super::reconcile::{Side, Ways};

/// What becomes of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Same,
    Push,
    /// Whether the file has changes of its own, which are kept aside.
    Pull {
        aside: bool,
    },
    DropTree,
    DropFile {
        aside: bool,
    },
    Conflict(&'static str),
    Left(&'static str),
    /// There is nothing to it.
    Nothing,
}

/// What becomes of a document that the folder and the tree have like this, and once had like that.
pub fn fate(
    local: Option<(&str, &Entry<'_>)>,
    remote: Option<&Stored>,
    known: Option<&str>,
    ways: Ways,
) -> Fate {
    let prefer = |why, folder: Fate, tree: Fate| match ways.prefer {
        Some(Side::Folder) if ways.push => folder,
        Some(Side::Tree) if ways.pull => tree,
        Some(_) | None => Fate::Conflict(why),
    };
    match (local, remote) {
        (None, None) => Fate::Nothing,
        (Some((_, entry)), None) => match (known, entry.print()) {
            (None, _) if ways.push => Fate::Push,
            (None, _) => Fate::Left("only in the folder"),
            (Some(_), None) => Fate::Nothing,
            (Some(known), Some(print)) if print == known => match ways.remove && ways.pull {
                true => Fate::DropFile { aside: false },
                false => Fate::Left("deleted in the tree"),
            },
            (Some(_), Some(_)) => prefer(
                "changed in the folder, deleted in the tree",
                Fate::Push,
                Fate::DropFile { aside: true },
            ),
        },
        (None, Some(stored)) => match known {
            None if ways.pull => Fate::Pull { aside: false },
            None => Fate::Left("only in the tree"),
            // Without a way back the tree is what counts.
            Some(_) if !ways.push => Fate::Pull { aside: false },
            Some(known) if stored.print() == known => match ways.remove {
                true => Fate::DropTree,
                false => Fate::Left("deleted in the folder"),
            },
            Some(_) => {
                let drop = match ways.remove {
                    true => Fate::DropTree,
                    false => Fate::Left("deleted in the folder"),
                };
                prefer("deleted in the folder, changed in the tree", drop, Fate::Pull { aside: false })
            }
        },
        (Some((path, entry)), Some(stored)) => {
            let Some(print) = entry.print() else { return folder_only(path, stored, ways) };
            let theirs = stored.print();
            match known {
                _ if print == theirs => Fate::Same,
                Some(known) if print == known && ways.pull => Fate::Pull { aside: false },
                Some(known) if print == known => Fate::Left("changed in the tree"),
                Some(known) if theirs == known && ways.push => Fate::Push,
                Some(_) => prefer("changed on both sides", Fate::Push, Fate::Pull { aside: true }),
                None => prefer("differs on both sides", Fate::Push, Fate::Pull { aside: true }),
            }
        }
    }
}

/// A folder says nothing, so a document that says more gets its file.
fn folder_only(path: &str, stored: &Stored, ways: Ways) -> Fate {
    let bare = stored.body.is_empty() && stored.metadata.len() == 1 && stored.title() == last(path);
    if bare || !ways.pull { Fate::Same } else { Fate::Pull { aside: false } }
}
