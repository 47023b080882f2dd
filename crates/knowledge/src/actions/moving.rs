//! Moves a document to another parent or place, never below itself (KNO-8.4).

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::create::{last_place, too_deep};
use super::{document_id, known_revision, named, wished_place};
use crate::hub::{Hub, tenant};
use crate::limits::{DEPTH, PLACE_BYTES};
use crate::order;
use crate::reading::{missing, plain_id, tables as reading};
use crate::record::{Document, Op, read};
use crate::tables::{self, Whose};
use crate::write::{Write, check_revision, number};

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id, parent) = (tenant(&context), document_id(&args)?, named(&args, "new_parent_id")?);
    let turn = hub.turns().in_tree(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.document(whose).await?;
    check_revision(&old, known_revision(&args))?;
    check_depth(&hub, tenant, &id, &parent).await?;
    let spot = match wished_place(&args)? {
        Some(place) => {
            let ordering = number_of(&hub, Whose { tenant, id: &parent }, &id, &place).await?;
            Spot { place, ordering, renumber: None }
        }
        None => spot(&hub, tenant, &id, &parent, args.get("position")).await?,
    };
    let new =
        Document { parent, place: spot.place, revision: old.revision + 1, updated_ms: hub.now_ms(), ..old };
    let mut write = Write::new(&context, hub.fresh());
    write.batch().then_one(tables::document_move(tenant, &new));
    if let Some(before) = spot.renumber {
        write.batch().then(tables::siblings_renumber(tenant, &new.parent));
        write.batch().then_one(tables::place_before(whose, &before));
    }
    write.record(&new, Op::Move, None, None);
    let output =
        json!({"id": new.id, "revision": new.revision, "parent_id": new.parent, "ordering": spot.ordering});
    Ok(write.reply(output, turn))
}

/// Where a document goes.
struct Spot {
    place: String,
    /// Its number among its siblings, from 0.
    ordering: i64,
    /// There was no room: the siblings are numbered anew, then it is put before this one.
    renumber: Option<String>,
}

async fn check_depth(hub: &Hub, tenant: &str, id: &str, parent: &str) -> Result<(), Fault> {
    let cycle = || {
        Fault::new(Code::StateConflict, "the move would create a cycle")
            .with("hint", "move the document somewhere that is not below it")
    };
    if parent == id {
        return Err(cycle());
    }
    let lineage = hub.lineage(tenant, parent).await?;
    if lineage.iter().any(|(above, _)| above == id) {
        return Err(cycle());
    }
    let height = hub.row(reading::height(Whose { tenant, id }, number(DEPTH))).await?;
    let height = height.as_ref().map_or(Ok(0), |row| row.int(0)).map_err(read)?;
    if number(lineage.len()) + height >= number(DEPTH) {
        return Err(too_deep());
    }
    Ok(())
}

async fn spot(
    hub: &Hub,
    tenant: &str,
    id: &str,
    parent: &str,
    position: Option<&Value>,
) -> Result<Spot, Fault> {
    let below = Whose { tenant, id: parent };
    let next = match position.map(|position| (position.get("before"), position.get("ordering"))) {
        Some((Some(Value::String(before)), _)) => Some(sibling(hub, tenant, id, parent, before).await?),
        Some((_, Some(Value::Number(at)))) => {
            let at = at.as_i64().unwrap_or(i64::MAX).max(0);
            let row = hub.row(reading::sibling_at(below, id, at)).await?;
            let pair = row.map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
            pair.transpose().map_err(read)?
        }
        _ => None,
    };
    let Some((before, upper)) = next else {
        let place = last_place(hub, tenant, parent, id).await?;
        let ordering = number_of(hub, below, id, &place).await?;
        return Ok(Spot { place, ordering, renumber: None });
    };
    let lower = hub.row(reading::place_before(below, id, &upper, &before)).await?;
    let lower = lower.as_ref().map(|row| row.text(0)).transpose().map_err(read)?;
    let row = hub.row(reading::number_of(below, id, &upper, &before)).await?;
    let ordering = row.map_or(Ok(0), |row| row.int(0)).map_err(read)?;
    let place = order::between(lower, Some(&upper), id).filter(|place| place.len() <= PLACE_BYTES);
    Ok(match place {
        Some(place) => Spot { place, ordering, renumber: None },
        None => Spot { place: upper, ordering, renumber: Some(before) },
    })
}

/// The id and place of the sibling it is to stand before.
async fn sibling(
    hub: &Hub,
    tenant: &str,
    id: &str,
    parent: &str,
    before: &str,
) -> Result<(String, String), Fault> {
    let before = plain_id(before);
    let wrong =
        |what: &str| Fault::invalid(format!("`position.before` {what}")).with("path", "position.before");
    if before == id {
        return Err(wrong("is the document itself"));
    }
    let found = hub.any_document(Whose { tenant, id: &before }).await?.filter(Document::visible);
    let found = found.ok_or_else(|| missing("document", &before))?;
    if found.parent != parent {
        return Err(wrong("is not directly below the new parent"));
    }
    Ok((before, found.place))
}

async fn number_of(hub: &Hub, below: Whose<'_>, id: &str, place: &str) -> Result<i64, Fault> {
    let row = hub.row(reading::number_of(below, id, place, id)).await?;
    row.map_or(Ok(0), |row| row.int(0)).map_err(read)
}
