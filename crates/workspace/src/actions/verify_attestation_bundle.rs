//! `verify_attestation_bundle`: whether a bundle is what was signed, and whether the trail still has what it says.

use serde_json::{Value, json};

use crate::attest;
use crate::blocking;
use crate::desk::{BOTH, Call, Done, Tool};
use crate::refusal::Refusal;
use crate::trail::{Lines, prove};

pub static TOOL: Tool = Tool {
    name: "verify_attestation_bundle",
    about: "Checks the hash and the signature of a bundle, that this server signed it, and that the audit trail of this workspace still has the entry it names.",
    roles: BOTH,
    input: || json!({"type": "object", "properties": {"bundle": {"type": "object"}}, "required": ["bundle"]}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let bundle = call.fields.object("bundle")?.clone();
    let own_key = call.hub.settings().signing_key.public()?;
    let end = session.trail.check().await.map_err(|error| error.refusal())?;
    blocking::run(move || {
        let mut problems = attest::problems(&bundle);
        let audit = bundle.get("audit").unwrap_or(&Value::Null);
        let (head, count) =
            (audit["head"].as_str().unwrap_or_default().to_owned(), audit["entries"].as_i64().unwrap_or(0));
        let mut has_head = count == 0;
        let mut lines = Lines::of(&session.root).map_err(|error| error.refusal())?;
        let mut has_end = end.seq == 0;
        let proof = prove(&mut lines, |entry| {
            has_head |= entry.seq == count && entry.entry_hash == head.as_bytes();
            has_end |= entry.seq == end.seq && entry.entry_hash == end.hash.as_bytes();
        });
        match proof {
            Ok(_) if has_end => {}
            Ok(_) => problems.push(format!(
                "TAMPERED: entry {} of the audit trail is not the one that this server wrote",
                end.seq
            )),
            Err(error) => problems.push(format!("TAMPERED: {error}")),
        }
        if !has_head {
            problems.push(String::from("the audit trail of this workspace does not have the entry it names"));
        }
        let is_own =
            bundle.get("signature").is_some_and(|signature| signature["public_key"] == own_key.as_str());
        if !is_own {
            problems.push(String::from("it is signed with a key that this server does not know"));
        }
        Ok(Done::with(
            json!({"valid": problems.is_empty(), "signed_by_this_server": is_own, "problems": problems}),
        ))
    })
    .await
}
