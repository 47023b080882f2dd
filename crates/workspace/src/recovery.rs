//! Writes that a killed server left: the trail says what became of each before anyone works in the workspace again.

use orchestr8_kernel::ports::clock::iso;
use rustix::fs::{AtFlags, OFlags, unlinkat};
use serde_json::json;

use crate::blocking;
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::root::{Found, Inside, Links, Root};
use crate::session::Session;
use crate::trail::{OpenWrite, open_writes};
use crate::write_turn::WriteTurn;

/// What became of a write.
struct Fate {
    is_in_place: bool,
    message: &'static str,
}

/// Records the outcome of each write that has none. While another write goes on there is nothing to do: that one may be it, and
/// the next session looks again.
pub async fn recover_writes(hub: &Hub, session: &Session) -> Result<(), Refusal> {
    let Some(_turn) = WriteTurn::try_take(session)? else { return Ok(()) };
    let root = session.root.clone();
    let open = blocking::run(move || {
        let open = open_writes(&root).map_err(|error| error.refusal())?;
        Ok(open.into_iter().map(|write| (fate(&root, &write), write)).collect::<Vec<_>>())
    });
    for (fate, write) in open.await? {
        let Fate { is_in_place, message } = fate;
        let cause = json!({"name": "Recovery", "code": "INTERRUPTED", "message": message});
        let now_ms = hub.ports().clock.now_ms();
        let record = write.outcome(iso(now_ms), is_in_place, cause);
        let body = record.body(&hub.ports().redactor);
        session.trail.append(body, now_ms).await.map_err(|error| error.refusal())?;
    }
    Ok(())
}

/// Only a verified text is ever put in its place, by one rename; so what is there tells how far the server came.
fn fate(root: &Root, write: &OpenWrite) -> Fate {
    let no = |message| Fate { is_in_place: false, message };
    let path = Inside::own(write.change.path.clone());
    remove_temporaries(root, &path);
    let Ok(found) = root.look(&path) else {
        return no("the server ended during the write, and the file cannot be read now");
    };
    let now = found.as_ref().map(Found::hash);
    let has_gates = write.intent.plan_hash.is_some();
    let is_written = now.as_deref() == Some(write.change.after.as_str());
    match (is_written, now == write.change.before) {
        (true, false) if write.is_verified || !has_gates => Fate {
            is_in_place: true,
            message: "the server ended before it recorded the write; the verified text is in its place",
        },
        (_, true) => no("the server ended during the write; the file is as it was before"),
        (true, false) => {
            no("the server ended before the text was verified; something else has put it there since")
        }
        (false, false) => no("the server ended during the write; something else has changed the file since"),
    }
}

/// Texts that were written beside the file and never got its name.
fn remove_temporaries(root: &Root, path: &Inside) {
    let folder = path.split().0;
    let names = match folder {
        Some(folder) => root.list(folder),
        None => root.names(),
    };
    let Ok(handle) = root.open_at(
        &Inside::own(folder.unwrap_or(".").to_owned()),
        OFlags::PATH | OFlags::DIRECTORY,
        Links::None,
    ) else {
        return;
    };
    for name in names.unwrap_or_default() {
        if is_temporary(&name) {
            // The next recovery in this folder tries again.
            let _ = unlinkat(&handle, name.as_str(), AtFlags::empty());
        }
    }
}

/// The name of a text beside its place, from an id.
pub fn temporary_name(id: impl std::fmt::Display) -> String {
    format!(".o8-{id}.tmp")
}

fn is_temporary(name: &str) -> bool {
    let id = name.strip_prefix(".o8-").and_then(|rest| rest.strip_suffix(".tmp"));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::root::sha256;
    use crate::trail::{Change, Record};

    fn open_write(path: &str, before: Option<&str>, is_verified: bool, plan: Option<&str>) -> OpenWrite {
        let change = Change {
            path: path.to_owned(),
            before: before.map(|text| sha256(text.as_bytes())),
            after: sha256(b"new"),
        };
        let mut intent: Value = json!({
            "tool_name": "write_file", "error_code": null, "invariant_id": null, "plan_hash": plan, "phase_id": null,
            "timestamp": "2026-01-01T00:00:00.000Z", "cause": null, "session_id": "s", "role": null, "args_hash": "a",
            "result": "intent", "result_hash": "",
        });
        intent["change"] = json!(change);
        let intent: Record = serde_json::from_value(intent).unwrap();
        OpenWrite { intent, change, is_verified }
    }

    #[test]
    fn what_is_there_tells_what_became_of_a_write() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path().to_str().unwrap()).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let (old, plan) = (Some("old"), Some("p"));
        for (there, write, is_in_place) in [
            (old, open_write("src/a", old, false, plan), false),
            (old, open_write("src/a", old, true, plan), false),
            (None, open_write("src/a", None, true, plan), false),
            (Some("new"), open_write("src/a", old, true, plan), true),
            (Some("new"), open_write("src/a", None, true, plan), true),
            // A report has no commands that would verify it.
            (Some("new"), open_write("src/a", None, false, None), true),
            // The commands had not succeeded yet, so the server did not put it there.
            (Some("new"), open_write("src/a", old, false, plan), false),
            (Some("other"), open_write("src/a", old, true, plan), false),
            (None, open_write("src/a", old, true, plan), false),
            (Some("new"), open_write("src/a", Some("new"), false, plan), false),
        ] {
            let path = folder.path().join("src/a");
            let _ = std::fs::remove_file(&path);
            if let Some(text) = there {
                std::fs::write(&path, text).unwrap();
            }
            let fate = fate(&root, &write);
            assert_eq!(fate.is_in_place, is_in_place, "{there:?} {write:?}: {}", fate.message);
            let record = write.outcome(String::new(), fate.is_in_place, json!({"message": fate.message}));
            assert_eq!((record.result == "success", record.change.is_some()), (is_in_place, is_in_place));
        }
    }

    #[test]
    fn texts_that_never_got_their_names_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path().to_str().unwrap()).unwrap();
        let (left, other) = (temporary_name("0".repeat(32)), ".o8-notes.tmp");
        for place in ["", "src/"] {
            std::fs::create_dir_all(folder.path().join(place)).unwrap();
            for name in [&left, other] {
                std::fs::write(folder.path().join(format!("{place}{name}")), "x").unwrap();
            }
            fate(&root, &open_write(&format!("{place}a"), None, false, Some("p")));
            assert!(!folder.path().join(format!("{place}{left}")).exists());
            assert!(folder.path().join(format!("{place}{other}")).exists());
        }
    }
}
