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
        (true, false) => no("the server ended before the text was verified; something else has put it there since"),
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
