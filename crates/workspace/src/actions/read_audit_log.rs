//! `read_audit_log`: entries of the trail, a page at a time.

use serde_json::{Value, json};

use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::fields::Fields;
use crate::limits;
use crate::refusal::Refusal;
use crate::replay::Filter;
use crate::trail::{Lines, Record, prove};

pub static TOOL: Tool = Tool {
    name: "read_audit_log",
    about: "Reads entries of the audit trail, 500 at a time; next_seq is where the next page begins.",
    roles: BOTH,
    input,
    changes: false,
    work: |call| Box::pin(work(call)),
};

pub fn input() -> Value {
    json!({"type": "object", "properties": {
        "plan_hash": {"type": "string"}, "phase_id": {"type": "string"}, "tool": {"type": "string"},
        "seq_start": {"type": "integer", "minimum": 1}, "seq_end": {"type": "integer", "minimum": 1},
    }})
}

pub fn filter(fields: &Fields) -> Result<Filter, Refusal> {
    Ok(Filter {
        plan_hash: fields.plan_hash("plan_hash")?,
        phase_id: fields.phase_id()?.map(str::to_owned),
        tool: fields.text("tool")?.map(str::to_owned),
        seq_start: fields.number("seq_start")?,
        seq_end: fields.number("seq_end")?,
    })
}

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let filter = filter(&call.fields)?;
    blocking::run(move || {
        let (mut entries, mut next) = (Vec::new(), None);
        let mut lines = Lines::of(&session.root).map_err(|error| error.refusal())?;
        let proof = prove(&mut lines, |entry| {
            let Ok(record) = serde_json::from_slice::<Record>(entry.body) else { return };
            if next.is_some() || !filter.takes(entry.seq, &record) {
                return;
            }
            if entries.len() >= limits::PAGE {
                next = Some(entry.seq);
                return;
            }
            let mut shown = json!(record);
            shown["seq"] = entry.seq.into();
            shown["prev_hash"] = String::from_utf8_lossy(entry.prev_hash).into();
            shown["entry_hash"] = String::from_utf8_lossy(entry.entry_hash).into();
            entries.push(shown);
        });
        proof.map_err(|error| error.refusal())?;
        Ok(Done::with(json!({"entries": entries, "next_seq": next})))
    })
    .await
}
