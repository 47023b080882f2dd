//! Carries calls to the tree, several at once: what is below another one waits for it, and a move waits for everything before it.

use std::collections::HashSet;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use orchestr8_knowledge::folder::Call;

use super::super::super::words::text;
use super::super::shelf::Shelf;
use super::carry::{Report, Stop, interrupted};
use super::progress::Progress;

/// Calls under way at once: enough for the server to write them down together, few enough to be done soon after Ctrl-C.
pub const AT_ONCE: usize = 16;

/// Who is on the way.
#[derive(Default)]
struct Air<'c> {
    ids: HashSet<&'c str>,
    /// One that nothing else may be beside.
    alone: bool,
}

impl Air<'_> {
    /// Whether a call has to wait for one that is on its way: there is no room, what it is below is not there yet, or the tree is
    /// being changed.
    fn holds_up(&self, call: &Call) -> bool {
        let known = |id: &str| self.ids.contains(id);
        self.alone
            || self.ids.len() >= AT_ONCE
            || known(&call.id)
            || above(call).into_iter().any(known)
            || (is_alone(call) && !self.ids.is_empty())
    }
}

/// What a call needs to be there.
pub fn above(call: &Call) -> [&str; 2] {
    ["parent_id", "new_parent_id"].map(|name| text(&call.args, name))
}

/// Who is where is changed by one at a time, in the order it was planned.
fn is_alone(call: &Call) -> bool {
    matches!(call.action, "knowledge.move_document" | "knowledge.delete_document")
}

/// Makes all calls, or as many as there is time for. A failure that would befall the rest as well ends it; what is on its way then
/// arrives first.
pub async fn fly<'c>(
    calls: impl Iterator<Item = &'c Call>,
    shelf: &Shelf<'_>,
    report: &mut Report,
    progress: &mut Progress,
    stop: &Stop,
) {
    let (mut under_way, mut air) = (FuturesUnordered::new(), Air::default());
    for call in calls {
        while air.holds_up(call) {
            let Some((landed, result)) = under_way.next().await else { break };
            land(landed, result, &mut air, report, progress);
        }
        if stop.is_asked() && report.unfinished.is_none() {
            report.unfinished = Some(interrupted());
        }
        if report.unfinished.is_some() {
            report.undone.insert(call.id.clone());
        } else if report.may_go(call) {
            air.ids.insert(&call.id);
            air.alone = is_alone(call);
            under_way.push(async move { (call, shelf.call(call.action, &call.args).await) });
        } else {
            progress.advance(1, &call.path);
        }
    }
    while let Some((landed, result)) = under_way.next().await {
        land(landed, result, &mut air, report, progress);
    }
}

fn land<'c>(
    call: &'c Call,
    result: Result<serde_json::Value, crate::failure::Failure>,
    air: &mut Air<'c>,
    report: &mut Report,
    progress: &mut Progress,
) {
    air.ids.remove(call.id.as_str());
    air.alone = false;
    report.landed(call, result);
    progress.advance(1, &call.path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn call(action: &'static str, id: &str, args: Value) -> Call {
        Call { action, id: id.to_owned(), path: id.to_owned(), args }
    }

    #[test]
    fn what_is_below_waits_and_what_moves_waits_for_all() {
        let create =
            |id: &str, parent: &str| call("knowledge.create_document", id, json!({"parent_id": parent}));
        let move_ =
            |id: &str, parent: &str| call("knowledge.move_document", id, json!({"new_parent_id": parent}));
        let mut air = Air::default();
        assert!(!air.holds_up(&create("a", "root")) && !air.holds_up(&move_("a", "root")));
        air.ids.insert("a");
        assert!(!air.holds_up(&create("b", "root")), "siblings do not wait");
        assert!(air.holds_up(&create("b", "a")), "what it is below is not there yet");
        assert!(air.holds_up(&call("knowledge.update_document", "a", json!({}))), "one after the other");
        assert!(air.holds_up(&move_("x", "root")));
        let many: Vec<String> = (0..AT_ONCE).map(|n| n.to_string()).collect();
        let full = Air { ids: many.iter().map(String::as_str).collect(), alone: false };
        assert!(full.holds_up(&create("b", "root")), "there is no room");
        let alone = Air { ids: HashSet::from(["m"]), alone: true };
        assert!(alone.holds_up(&create("b", "root")));
    }
}
