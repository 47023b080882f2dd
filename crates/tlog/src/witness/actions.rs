//! The actions of a witness: take heads, show them, forget a log.

use orchestr8_contract::merkle::Hash;
use orchestr8_contract::{Code, Fault, Kind, Output, canonical};
use orchestr8_kernel::action::{self, Cost, Slotting};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::ledger::{ConsistencyProof, WitnessVerdict, WitnessedHead, judge};
use crate::head::TreeHead;
use crate::key::LogPublicKey;
use crate::{limits, tables};

/// Why a head is refused that is larger than the stored one and comes without a proof.
pub(super) const UNPROVEN: &str = "consistency_proof_missing";

/// Every action of a witness.
pub fn all() -> Result<Vec<Action>, schema::Error> {
    let origin = json!({"type": "string", "minLength": 1, "maxLength": limits::ORIGIN_CHARACTERS});
    let note = json!({"type": "string", "minLength": 1, "maxLength": limits::NOTE_CHARACTERS});
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let hash = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    let proof = object(
        json!({"origin": origin, "from": {"type": "integer", "minimum": 0},
            "hashes": {"type": "array", "maxItems": limits::PROOF_HASHES, "items": hash}}),
        &["origin", "from", "hashes"],
    );
    let submit_input = object(
        json!({"key": {"type": "string", "minLength": 1, "maxLength": limits::NOTE_CHARACTERS},
            "heads": {"type": "array", "minItems": 1, "maxItems": limits::HEADS_AT_ONCE, "items": note},
            "proofs": {"type": "array", "maxItems": limits::HEADS_AT_ONCE, "items": proof}}),
        &["key", "heads"],
    );
    Ok(vec![
        Action::unlisted(
            "witness.submit",
            "Remembers the signed heads of another server's logs, unless they contradict what is remembered.",
            submit_input,
            changing(),
            action::work(submit),
        )?,
        Action::unlisted(
            "witness.heads",
            "Lists the heads that are remembered; with an origin, those of one log, the newest first.",
            object(json!({"origin": origin}), &[]),
            Policy { slotting: Slotting::Free, ..Policy::read() },
            action::work(heads),
        )?,
        Action::unlisted(
            "witness.forget",
            "Forgets the heads of a log, so that it can begin again: after a restore of the other server, or a change of its key.",
            object(json!({"origin": origin, "principal": origin}), &["origin", "principal"]),
            Policy { destructive: true, ..changing() },
            action::work(forget),
        )?,
    ])
}

fn changing() -> Policy {
    const REFUSALS: &[Kind] = &[Kind::Invalid, Kind::NotFound, Kind::Forbidden, Kind::Exhausted];
    Policy {
        slotting: Slotting::Free,
        cost: Cost::Work,
        refusals: REFUSALS,
        idempotent: true,
        ..Policy::stored()
    }
}

async fn submit(args: Args, context: Context) -> Result<Reply, Halt> {
    let key = args.text("key").unwrap_or_default();
    let public = LogPublicKey::parse(key)
        .ok_or_else(|| Fault::invalid("/key: it is not a public key of a log").with("path", "/key"))?;
    let notes = args.get("heads").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (tenant, principal) = (context.principal.tenant.as_str(), &*context.principal.name);
    let (mut effects, mut kept) = (Batch::new(), Vec::new());
    for (index, note) in notes.iter().filter_map(Value::as_str).enumerate() {
        let head = TreeHead::open(note, &public).map_err(|cause| {
            Fault::invalid(format!("/heads/{index}: {cause}")).with("path", format!("/heads/{index}"))
        })?;
        let new = WitnessedHead {
            origin: head.origin,
            key: key.to_owned(),
            size: head.size,
            root: head.root,
            at_ms: head.at_ms,
            note: note.to_owned(),
        };
        let known = newest(&context, principal, &new.origin).await?;
        match judge(known.as_ref(), &new, proof_of(&args, &new.origin).as_ref()) {
            WitnessVerdict::Known => {}
            WitnessVerdict::Unproven => return Err(unproven(&new, known.as_ref()).into()),
            WitnessVerdict::Refuse(why) => return Err(refused(why, &new, known.as_ref()).into()),
            WitnessVerdict::Keep => {
                if known.is_none() {
                    check_room(&context, principal).await?;
                }
                // Two that come at once: the second finds the first, and is decided again by its sender.
                let before = known.map_or(-1, |known| known.at_ms);
                effects.then_one(tables::head_insert(
                    tenant,
                    principal,
                    &new,
                    before,
                    context.kernel.ports().clock.now_ms(),
                ));
                effects.then(tables::heads_trim(tenant, principal, &new.origin, limits::HEADS_KEPT));
            }
        }
        kept.push(json!({"origin": new.origin, "size": new.size}));
    }
    // The audit entry names the log of the first head.
    let name = kept.first().map(|head| head["origin"].clone()).unwrap_or_default();
    Ok(Reply::new(Output::json(json!({"name": name, "heads": kept})), effects))
}

/// The consistency proof that comes with the head of a log.
fn proof_of(args: &Args, origin: &str) -> Option<ConsistencyProof> {
    let proofs = args.get("proofs")?.as_array()?;
    let proof = proofs.iter().find(|proof| proof["origin"] == origin)?;
    let hash = |text: &Value| -> Option<Hash> { canonical::unhex(text.as_str()?)?.try_into().ok() };
    let hashes = proof["hashes"].as_array()?.iter().map(hash).collect::<Option<Vec<Hash>>>()?;
    Some(ConsistencyProof { from: proof["from"].as_u64()?, hashes })
}

/// The sender learns from which size it has to prove that the log has grown.
fn unproven(new: &WitnessedHead, known: Option<&WitnessedHead>) -> Fault {
    let from = known.map_or(0, |known| known.size);
    let text =
        format!("the head of {} needs a proof that the log has grown from its size {from}", new.origin);
    Fault::new(Code::StateConflict, text)
        .with("reason", UNPROVEN)
        .with("origin", new.origin.as_str())
        .with("from", from)
        .with("stored", known.map(|known| known.note.clone()).unwrap_or_default())
}

/// The stored head goes with the refusal: the sender can compare it with its own.
fn refused(why: &str, new: &WitnessedHead, known: Option<&WitnessedHead>) -> Fault {
    Fault::new(Code::StateConflict, format!("the head of {} is refused: {why}", new.origin))
        .with("reason", "witness_conflict")
        .with("origin", new.origin.as_str())
        .with("stored", known.map(|known| known.note.clone()).unwrap_or_default())
}

async fn heads(args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, store) = (context.principal.tenant.as_str(), &context.kernel.ports().store);
    let statement = match args.text("origin") {
        // One log of the principal that asks: what it sent itself.
        Some(origin) => tables::heads_of(tenant, &context.principal.name, origin, limits::HEADS_KEPT),
        None => tables::newest_heads(tenant, limits::LOGS_LISTED),
    };
    let rows = store.query(statement).await.map_err(store_fault)?;
    let shown: Vec<Value> = rows.iter().map(shown).collect::<Result<_, Fault>>()?;
    Ok(Output::json(json!({"heads": shown})).into())
}

async fn forget(args: Args, context: Context) -> Result<Reply, Halt> {
    let (origin, principal) =
        (args.text("origin").unwrap_or_default(), args.text("principal").unwrap_or_default());
    let tenant = context.principal.tenant.as_str();
    if newest(&context, principal, origin).await?.is_none() {
        let text = format!("no heads of {origin} by {principal} are remembered");
        return Err(Fault::new(Code::NotFound, text).into());
    }
    let mut effects = Batch::new();
    effects.then(tables::heads_delete(tenant, principal, origin));
    Ok(Reply::new(Output::json(json!({"name": origin, "principal": principal, "forgotten": true})), effects))
}

/// A principal has room for so many logs, so that a token cannot fill the disk.
async fn check_room(context: &Context, principal: &str) -> Result<(), Fault> {
    let statement = tables::logs_count(context.principal.tenant.as_str(), principal);
    let rows = context.kernel.ports().store.query(statement).await.map_err(store_fault)?;
    let count = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(store_fault)?;
    match count < limits::LOGS_PER_PRINCIPAL {
        true => Ok(()),
        false => Err(Fault::new(
            Code::ResourceExhausted,
            format!("{count} logs of '{principal}' are remembered already"),
        )),
    }
}

async fn newest(context: &Context, principal: &str, origin: &str) -> Result<Option<WitnessedHead>, Fault> {
    let statement = tables::heads_of(context.principal.tenant.as_str(), principal, origin, 1);
    let rows = context.kernel.ports().store.query(statement).await.map_err(store_fault)?;
    rows.first().map(read).transpose()
}

/// The columns of `tables::heads_of`.
fn read(row: &Row) -> Result<WitnessedHead, Fault> {
    let read = || {
        let root: Hash = row.blob(4)?.try_into().unwrap_or_default();
        Ok(WitnessedHead {
            origin: row.text(1)?.to_owned(),
            key: row.text(2)?.to_owned(),
            size: row.int(3)?.unsigned_abs(),
            root,
            at_ms: row.int(5)?,
            note: row.text(6)?.to_owned(),
        })
    };
    read().map_err(store_fault)
}

fn shown(row: &Row) -> Result<Value, Fault> {
    let head = read(row)?;
    Ok(json!({
        "principal": row.text(0).map_err(store_fault)?, "origin": head.origin, "key": head.key, "size": head.size,
        "root": canonical::hex(&head.root), "at": iso(head.at_ms), "note": head.note,
        "receivedAt": iso(row.int(7).map_err(store_fault)?),
    }))
}
