//! Finds the session files of a folder.

use std::fs::DirEntry;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::jsonl::Head;
use super::spot::Roots;
use crate::limits;

/// A session file, and what it says of itself.
pub struct Found {
    pub path: PathBuf,
    pub modified_ms: i64,
    pub head: Head,
}

/// Session files beneath some folders, the newest first. Links are not followed.
pub fn files(roots: &Roots) -> Vec<Found> {
    let mut found = Vec::new();
    let mut folders: Vec<(PathBuf, usize)> = roots.folders().iter().map(|root| (root.clone(), 0)).collect();
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        seen += 1;
        if seen > limits::FOLDERS_SEEN {
            break;
        }
        // What cannot be read is not ours to show.
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && depth < limits::FOLDER_DEPTH {
                folders.push((entry.path(), depth + 1));
            } else if kind.is_file() && found.len() < limits::FILES_LISTED {
                found.extend(look(roots, &entry));
            }
        }
    }
    found.sort_by(|one, two| two.modified_ms.cmp(&one.modified_ms).then_with(|| one.path.cmp(&two.path)));
    found.dedup_by(|one, two| one.path == two.path);
    found
}

fn look(roots: &Roots, entry: &DirEntry) -> Option<Found> {
    let path = entry.path();
    path.extension().filter(|ending| *ending == "jsonl" || *ending == "json")?;
    let modified = entry.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let head = head(roots, &path)?;
    Some(Found { path, modified_ms: i64::try_from(modified.as_millis()).ok()?, head })
}

fn head(roots: &Roots, path: &Path) -> Option<Head> {
    let mut first = String::new();
    let file = roots.spot(path)?.open().ok()?;
    BufReader::new(file.take(limits::HEAD_BYTES)).read_line(&mut first).ok()?;
    Head::read(&first).ok()
}
