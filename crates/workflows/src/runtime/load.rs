//! Executions as they are stored, folded back into what they are.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault, RoleSet};
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::TokenGrant;
use orchestr8_kernel::heavy::INLINE_BYTES;
use orchestr8_kernel::ports::store;

use super::accept::{Given, Seed};
use super::{Hub, fault};
use crate::definition::model::Workflow;
use crate::engine::event::{Event, Status};
use crate::engine::state::{Identity, State};
use crate::engine::{self, evaluation, view};
use crate::{limits, merkle, tables};

/// One row of the table of executions.
#[derive(Debug, Clone)]
pub struct Row {
    pub num: i64,
    pub tenant: Tenant,
    pub id: Arc<str>,
    pub workflow: String,
    pub name: String,
    pub version: String,
    pub hash: String,
    pub status: Status,
    pub priority: i32,
    pub correlation: CorrelationId,
    pub given: Arc<Given>,
    pub created_ms: i64,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub error: Option<String>,
}

/// An execution with its state.
pub struct Loaded {
    pub row: Row,
    pub seed: Seed,
    pub state: State,
    pub tail: Tail,
}

/// Where a journal ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tail {
    /// The number of its last entry.
    pub seq: u64,
    pub at_ms: i64,
    /// What all its entries hold.
    pub bytes: usize,
}

impl Loaded {
    pub fn resource(&self, now_ms: i64) -> serde_json::Value {
        view::resource(&self.state, &self.seed.facts(self.tail.seq), now_ms)
    }
}

impl Seed {
    pub fn facts(&self, seq: u64) -> view::Facts {
        view::Facts {
            created_ms: self.created_ms,
            parent: self.given.parent.as_ref().map(|parent| parent.id.to_string()),
            detached: self.given.parent.as_ref().is_some_and(|parent| parent.detached),
            forked_from: self.given.forked_from.as_ref().map(ToString::to_string),
            authors: self.given.authors.clone(),
            tools: self.given.tools.clone(),
            tags: self.given.tags.clone(),
            last_sequence: seq,
        }
    }
}

fn damaged(what: &str) -> Fault {
    Fault::new(Code::StoreCorrupt, format!("the stored execution cannot be read: {what}"))
}

pub fn read(row: &store::Row) -> Result<Row, Fault> {
    let text = |column| row.text(column).map_err(fault);
    let int = |column| row.int(column).map_err(fault);
    let optional = |column: usize| match row.0.get(column) {
        Some(store::Cell::Null) | None => Ok(None),
        Some(_) => int(column).map(Some),
    };
    let given: Given = serde_json::from_str(text(10)?).map_err(|error| damaged("given").because(error))?;
    Ok(Row {
        num: int(0)?,
        tenant: Tenant::parse(text(1)?).map_err(|_| damaged("tenant"))?,
        id: text(2)?.into(),
        workflow: text(3)?.to_owned(),
        name: text(4)?.to_owned(),
        version: text(5)?.to_owned(),
        hash: text(6)?.to_owned(),
        status: Status::parse(text(7)?).ok_or_else(|| damaged("status"))?,
        priority: i32::try_from(int(8)?).map_err(|_| damaged("priority"))?,
        correlation: CorrelationId::parse(text(9)?).map_err(|_| damaged("correlation"))?,
        given: Arc::new(given),
        created_ms: int(12)?,
        started_ms: optional(13)?,
        ended_ms: optional(14)?,
        error: row.optional_text(15).map_err(fault)?.map(str::to_owned),
    })
}

pub async fn find(hub: &Hub, tenant: &str, id: &str) -> Result<Option<Row>, Fault> {
    let rows = hub.0.ports.store.query(tables::execution_find(tenant, id)).await.map_err(fault)?;
    rows.first().map(read).transpose()
}

/// How many triggers started each other before the newest execution with a correlation id; 0 if there is none.
pub async fn trigger_depth_of(hub: &Hub, tenant: &str, correlation: &str) -> Result<u32, Fault> {
    let newest = crate::triggers::tables::newest_of_correlation(tenant, correlation);
    let rows = hub.0.ports.store.query(newest).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Ok(0) };
    let given: Given =
        serde_json::from_str(row.text(0).map_err(fault)?).map_err(|error| damaged("given").because(error))?;
    Ok(given.authors.trigger_depth)
}

/// As the store has it, for whoever goes on with it.
pub async fn by_number(hub: &Hub, num: i64) -> Result<Loaded, Fault> {
    let rows = hub.0.ports.store.query(tables::execution_by_number(num)).await.map_err(fault)?;
    let Some(row) = rows.first() else {
        return Err(Fault::new(Code::NotFound, "the execution is gone"));
    };
    let row = read(row)?;
    check_start(hub, num).await?;
    let seed = seed(hub, &row).await?;
    let (state, tail) = fold(hub, &seed).await?;
    Ok(Loaded { row, seed, state, tail })
}

/// Fails if the row of an execution does not agree with its journal, which is in the Merkle log: it says who started it, and with
/// what. Such an execution does not go on.
pub async fn check_start(hub: &Hub, num: i64) -> Result<(), Fault> {
    let rows = hub.0.ports.store.query(merkle::tables::accepted_of(num)).await.map_err(fault)?;
    let found = rows.first().map(merkle::check_start).transpose().map_err(fault)?.flatten();
    match found {
        None => Ok(()),
        Some(what) => Err(damaged(what).with("reason", "row_changed")),
    }
}

/// The state after the entry with this number.
pub async fn whole(hub: &Hub, row: Row, up_to: u64) -> Result<Loaded, Fault> {
    let seed = seed(hub, &row).await?;
    if up_to == u64::MAX
        && row.status.is_final()
        && let Some(ended) = hub.0.recent.get(row.tenant.as_str(), &row.id)
    {
        let tail = Tail { seq: ended.facts.last_sequence, ..Tail::default() };
        return Ok(Loaded { row, seed, state: ended.state.clone(), tail });
    }
    let (state, tail) = fold_to(hub, &seed, up_to, Patience::Refused).await?;
    Ok(Loaded { row, seed, state, tail })
}

pub async fn seed(hub: &Hub, row: &Row) -> Result<Seed, Fault> {
    let workflow = definition(hub, row.tenant.as_str(), &row.hash).await?;
    let given = row.given.clone();
    let mut variables = workflow.variables.clone();
    variables.extend(given.variables.clone());
    let identity = Identity {
        execution: row.id.clone(),
        correlation: row.correlation.clone(),
        variables,
        timeout_ms: given.timeout_ms,
        schedule: given.schedule.clone(),
        workflow,
        started_by: given.principal.as_str().into(),
    };
    let principal = Principal::new(given.principal.as_str(), row.tenant.clone(), given.roles)
        .granted(TokenGrant::recorded(&given.principal, row.tenant.clone(), &given.scope))
        .limited(given.tools.as_ref());
    Ok(Seed {
        num: row.num,
        tenant: row.tenant.clone(),
        identity: Arc::new(identity),
        given,
        priority: row.priority,
        created_ms: row.created_ms,
        principal: Arc::new(principal),
        is_retried: row.started_ms.is_some(),
        pass: None,
        permit: None,
    })
}

/// The definition an execution is pinned to.
pub async fn definition(hub: &Hub, tenant: &str, hash: &str) -> Result<Arc<Workflow>, Fault> {
    if let Some(workflow) = hub.0.definitions.get(hash) {
        return Ok(workflow);
    }
    let rows = hub.0.ports.store.query(tables::definition_find(tenant, hash)).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Err(damaged("its definition is gone")) };
    let text = row.text(0).map_err(fault)?.to_owned();
    let (own, bytes) = (hub.clone(), text.len());
    let read = move || {
        let source = serde_json::from_str(&text)
            .map_err(|error| damaged("its definition is no JSON").because(error))?;
        let read = own.0.definitions.get_or_read(&source);
        read.map_err(|_| damaged("its definition is not valid any more"))
    };
    let workflow = match bytes < INLINE_BYTES {
        true => read()?,
        false => {
            let tenant = Tenant::parse(tenant).map_err(|_| damaged("tenant"))?;
            let server = Principal::new("server", tenant, RoleSet::NONE);
            hub.0.kernel.heavy().reserve_beyond_budget(&server).await?.run(read).await??
        }
    };
    // The journal, which is in the Merkle log, names the hash: a definition that was changed in the file must not run.
    if *workflow.hash != *hash {
        return Err(damaged("its definition was changed in the data file"));
    }
    Ok(workflow)
}

pub async fn fold(hub: &Hub, seed: &Seed) -> Result<(State, Tail), Fault> {
    fold_to(hub, seed, u64::MAX, Patience::TakesTurn).await
}

/// What folding a large journal does when its tenant has used up its time for heavy work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// An execution that is woken must hear what it is told, a cancellation for example: it takes its turn all the same.
    TakesTurn,
    /// Whoever only reads is told to ask again later.
    Refused,
}

/// Folds some records. Many bytes, or conditions that may cost much, are folded on a thread for heavy work.
async fn fold_page(
    hub: &Hub,
    seed: &Seed,
    (mut state, mut after): (State, i64),
    rows: Vec<store::Row>,
    patience: Patience,
) -> Result<(State, i64), Fault> {
    let bytes: usize = rows.iter().map(|row| row.text(2).map_or(0, str::len)).sum();
    let cost =
        evaluation::bound_of_any(&state, bytes).saturating_mul(rows.len().try_into().unwrap_or(u64::MAX));
    let fold = move || {
        for row in &rows {
            let event: Event = serde_json::from_str(row.text(2).map_err(fault)?)
                .map_err(|error| damaged("a record").because(error))?;
            engine::next(&mut state, event, row.int(1).map_err(fault)?);
            after = row.int(0).map_err(fault)?;
        }
        Ok((state, after))
    };
    if bytes < INLINE_BYTES && cost <= limits::INLINE_FUEL {
        return fold();
    }
    let heavy = hub.0.kernel.heavy();
    let turn = match patience {
        Patience::TakesTurn => heavy.reserve_beyond_budget(&seed.principal).await?,
        Patience::Refused => heavy.reserve(&seed.principal, 0).await?,
    };
    turn.run(fold).await?
}

/// The end is looked up first and the state folded up to it: what is written in between belongs to the next look, so that every
/// state has the number of its own last entry.
async fn fold_to(hub: &Hub, seed: &Seed, up_to: u64, patience: Patience) -> Result<(State, Tail), Fault> {
    let mut state = State::new(seed.identity.clone());
    let store = &hub.0.ports.store;
    let end = store.query(tables::journal_end(seed.num)).await.map_err(fault)?;
    let Some(end) = end.first() else { return Ok((state, Tail::default())) };
    let number = |column| end.int(column).map_err(fault);
    let last = number(0)?.min(i64::try_from(up_to).unwrap_or(i64::MAX));
    let mut after = i64::MIN;
    loop {
        let page = tables::records(seed.num, (after, last), limits::RECORDS_READ);
        let rows = store.query(page).await.map_err(fault)?;
        let read = rows.len();
        (state, after) = fold_page(hub, seed, (state, after), rows, patience).await?;
        if read < usize::try_from(limits::RECORDS_READ).unwrap_or(usize::MAX) {
            break;
        }
    }
    let tail = Tail {
        seq: u64::try_from(last).unwrap_or(0),
        at_ms: number(1)?,
        bytes: usize::try_from(number(2)?).unwrap_or(usize::MAX),
    };
    Ok((state, tail))
}
