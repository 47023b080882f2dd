//! A witness of other servers' audit logs.

use serde_json::{Value, json};

use super::Path;
use super::operation::{Operation, text_of};
use super::shapes::{closed, list, open, text, truth, whole};

const TAG: &str = "witness";

pub(super) fn paths() -> Vec<Path> {
    vec![("/witness/heads", vec![("get", listing()), ("post", submit()), ("delete", forget())])]
}

fn head() -> Value {
    let members = json!({
        "principal": text(), "origin": text(), "key": text(), "size": whole(), "root": text(), "at": text(), "note": text(),
        "receivedAt": text(),
    });
    open(members, &["principal", "origin", "key", "size", "root", "at", "note"])
}

fn listing() -> Operation {
    Operation::new("listWitnessedHeads", TAG, "The newest head of each log that this server remembers.")
        .query("origin", text_of(256), "Those of one log that this caller has sent, the newest first.")
        .gives(200, "The heads.", open(json!({"heads": list(head())}), &["heads"]))
}

fn submit() -> Operation {
    let note = json!({"type": "string", "minLength": 1, "maxLength": 2048});
    let mut members = json!({
        "key": {"type": "string", "minLength": 1, "maxLength": 2048, "description": "The public key that verifies the heads, as `audit key` prints it."},
        "heads": {"type": "array", "minItems": 1, "maxItems": 16, "items": note},
    });
    let proof = closed(
        json!({"origin": text_of(256), "from": whole(), "hashes": {"type": "array", "maxItems": 65, "items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}}),
        &["origin", "from", "hashes"],
    );
    members["proofs"] = json!({"type": "array", "maxItems": 16, "items": proof,
        "description": "That a log has grown from the size `from` that is remembered of it (RFC 9162, 2.1.4)."});
    let kept = open(json!({"origin": text(), "size": whole()}), &["origin", "size"]);
    Operation::new("submitHeads", TAG, "Remembers the signed heads of another server's logs.")
        .about("A head that is smaller than the stored one, or has the same size and another root, or another key, is answered 409 with the stored one. A larger one comes with the consistency proof from the stored size; without it the 409 has the reason `consistency_proof_missing` and that size as `from`.")
        .body(closed(members, &["key", "heads"]))
        .gives(200, "They are remembered.", open(json!({"heads": list(kept)}), &["heads"]))
        .fails(&[409])
}

fn forget() -> Operation {
    Operation::new("forgetHeads", TAG, "Forgets the heads of a log, so that it can begin again.")
        .query("origin", text_of(256), "The log.")
        .query("principal", text_of(256), "The principal that has sent them.")
        .gives(200, "They are forgotten.", open(json!({"forgotten": truth()}), &["forgotten"]))
        .fails(&[404])
}
