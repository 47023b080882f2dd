//! What happens to the files of a case beside the server.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use orchestr8_contract::chain::{Entry, GENESIS, line, seal};
use orchestr8_contract::envelope::Role;
use orchestr8_workspace::plan::{Head, Status, hash_of, with_head};

use super::heard::Heard;

const TRAIL: &str = "workspace/audit-log.jsonl";

/// Does it; gives what a check finds. `plans` are the texts of the plans of the case by name.
pub fn act(place: &Path, words: &str, plans: &[(String, String)]) -> Option<Heard> {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let at = |name: &str| -> PathBuf { place.join(name) };
    match verb {
        "write" => put(&at(first), &unescaped(more)),
        "append" => {
            let text = std::fs::read_to_string(at(first)).unwrap() + &unescaped(more);
            put(&at(first), &text);
        }
        "plan" => {
            let (status, folder) = more.split_once(" in ").expect("plan NAME STATUS in FOLDER");
            let (_, text) = plans.iter().find(|(name, _)| name == first).expect("a plan of the case");
            plant(&at(folder), text, status);
        }
        "remove" if at(first).is_dir() => std::fs::remove_dir_all(at(first)).unwrap(),
        "remove" => std::fs::remove_file(at(first)).unwrap(),
        "folder" => std::fs::create_dir_all(at(first)).unwrap(),
        "link" => symlink(more, at(first)).unwrap(),
        "move" => std::fs::rename(at(first), at(more)).unwrap(),
        "copy" => drop(std::fs::copy(at(first), at(more)).unwrap()),
        "replace" => {
            let (old, new) = more.split_once(" => ").expect("replace PATH old => new");
            let text = std::fs::read_to_string(at(first)).unwrap();
            assert!(text.contains(old), "{first} has no {old}");
            put(&at(first), &text.replacen(&unescaped(old), &unescaped(new), 1));
        }
        "trail" => change_trail(&at(TRAIL), first, more),
        "check" => {
            return Some(match std::fs::read_to_string(at(first)) {
                Ok(text) => Heard::new("text", "", text),
                Err(_) => Heard::new("missing", "", ""),
            });
        }
        other => panic!("nothing outside is called {other}"),
    }
    None
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn unescaped(text: &str) -> String {
    text.replace("\\n", "\n")
}

fn plant(folder: &Path, text: &str, status: &str) {
    let status = match status {
        "APPROVED" => Status::Approved,
        "DRAFT" => Status::Draft,
        other => panic!("no plan is {other}"),
    };
    let hash = hash_of(text);
    let whole = with_head(text, &Head { hash: hash.clone(), role: Role::Planner, status });
    put(&folder.join(format!("docs/plans/{hash}.md")), &whole);
}

/// Changes the bodies of entries and seals all of them again.
fn change_trail(path: &Path, how: &str, more: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut bodies: Vec<(i64, Vec<u8>)> = text
        .lines()
        .map(|text| {
            let mut body = Vec::new();
            let at_ms = line::read(text.as_bytes(), &mut body).unwrap_or_else(|| panic!("{text}")).at_ms;
            (at_ms, body)
        })
        .collect();
    let number = |text: &str| -> usize { text.parse().unwrap_or_else(|_| panic!("{text} is no number")) };
    match how {
        "drop" => drop(bodies.remove(number(more) - 1)),
        "cut" => bodies.truncate(bodies.len() - number(more)),
        "swap" => {
            let (one, other) = more.split_once(' ').expect("trail swap N M");
            bodies.swap(number(one) - 1, number(other) - 1);
        }
        "edit" => {
            let (which, change) = more.split_once(' ').expect("trail edit N old => new");
            let (old, new) = change.split_once(" => ").expect("trail edit N old => new");
            let body = &mut bodies[number(which) - 1].1;
            let text = String::from_utf8(body.clone()).unwrap();
            assert!(text.contains(old), "{text} has no {old}");
            *body = text.replacen(old, new, 1).into_bytes();
        }
        "forge" => bodies.push((bodies.last().map_or(0, |(at_ms, _)| *at_ms), more.as_bytes().to_vec())),
        other => panic!("a trail is not {other}"),
    }
    std::fs::write(path, sealed(&bodies)).unwrap();
}

fn sealed(bodies: &[(i64, Vec<u8>)]) -> Vec<u8> {
    let (mut prev, mut lines) = (GENESIS.to_owned(), Vec::new());
    for (seq, (at_ms, body)) in (1..).zip(bodies) {
        let hash = seal(&prev, seq, *at_ms, body);
        let (prev_hash, entry_hash) = (prev.as_bytes(), hash.as_bytes());
        lines.extend(line::write(&Entry { seq, at_ms: *at_ms, body, prev_hash, entry_hash }));
        lines.push(b'\n');
        prev = hash;
    }
    lines
}
