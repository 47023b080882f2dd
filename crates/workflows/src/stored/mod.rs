//! Workflows that are kept under their id, in every revision. An execution is pinned to the one it began with.

mod tables;

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{self, Batch};
use orchestr8_kernel::row_seal::RowSeal;
use serde_json::{Value, json};

use crate::authors::{Author, Authors};
use crate::definition::model::Workflow;
use crate::runtime::{Hub, fault, load};

/// Revisions shown of one workflow.
const REVISIONS: i64 = 100;

/// One revision as it is listed.
pub struct Revision {
    pub id: String,
    pub revision: i64,
    pub version: String,
    pub name: String,
    pub about: Value,
    pub hash: String,
    pub applied_ms: i64,
    /// None: it was applied by an earlier version, which did not record it.
    pub author: Option<Author>,
    /// The author as it is stored.
    author_cells: [Option<String>; 2],
    seal: Option<String>,
}

/// A stored definition and the principals that answer for it.
pub struct StoredDefinition {
    pub workflow: Arc<Workflow>,
    pub revision: i64,
    /// Who applied its first revision.
    pub defined_by: Option<Author>,
    /// Who applied this one.
    pub edited_by: Option<Author>,
}

impl StoredDefinition {
    pub fn into_parts(self) -> (Arc<Workflow>, Authors) {
        let authors =
            Authors { defined_by: self.defined_by, edited_by: self.edited_by, ..Authors::default() };
        (self.workflow, authors)
    }
}

impl Revision {
    fn read(row: &store::Row) -> Result<Self, Fault> {
        let text = |column| row.text(column).map(str::to_owned).map_err(fault);
        let optional = |column| Ok::<_, Fault>(row.optional_text(column).map_err(fault)?.map(str::to_owned));
        Ok(Self {
            id: text(0)?,
            revision: row.int(1).map_err(fault)?,
            version: text(2)?,
            name: text(3)?,
            about: serde_json::from_str(&text(4)?).unwrap_or(Value::Null),
            hash: text(5)?,
            applied_ms: row.int(6).map_err(fault)?,
            author: match (row.optional_text(7).map_err(fault)?, row.optional_text(8).map_err(fault)?) {
                (Some(name), Some(rights)) => Some(Author::stored(name, rights)),
                (_, _) => None,
            },
            author_cells: [optional(7)?, optional(8)?],
            seal: optional(9)?,
        })
    }

    /// Fails if the row is not the one that this server wrote: it says which definition runs, and with whose rights.
    fn check_seal(&self, seal: &RowSeal, tenant: &str) -> Result<(), Fault> {
        let [author, roles] = self.author_cells.each_ref().map(Option::as_deref);
        let cells = SealedCells {
            tenant,
            id: &self.id,
            revision: self.revision,
            version: &self.version,
            hash: &self.hash,
            author,
            roles,
        };
        let checked = cells.with(|cells| seal.check(TABLE, cells, self.seal.as_deref()));
        checked.map_err(|fault| {
            fault.with("hint", "delete the workflow, look at its definition and store it again")
        })
    }

    pub fn summary(&self) -> Value {
        json!({"id": self.id, "name": self.name, "version": self.version, "revision": self.revision, "hash": self.hash,
               "description": self.about["description"], "tags": self.about["tags"], "steps": self.about["steps"],
               "appliedAt": iso(self.applied_ms), "appliedBy": self.author.as_ref().map(|author| &author.name)})
    }
}

const TABLE: &str = "wf_workflows";

/// What the seal of a revision covers.
struct SealedCells<'a> {
    tenant: &'a str,
    id: &'a str,
    revision: i64,
    version: &'a str,
    hash: &'a str,
    author: Option<&'a str>,
    roles: Option<&'a str>,
}

impl SealedCells<'_> {
    fn with<T>(&self, work: impl FnOnce(&[Option<&str>]) -> T) -> T {
        let Self { tenant, id, revision, version, hash, author, roles } = self;
        let revision = revision.to_string();
        work(&[Some(tenant), Some(id), Some(&revision), Some(version), Some(hash), *author, *roles])
    }
}

fn unknown(id: &str, version: Option<&str>) -> Fault {
    let what = version.map_or(String::new(), |version| format!(" with version {version}"));
    Fault::new(Code::NotFound, format!("there is no workflow named '{id}'{what}")).with("workflowId", id)
}

async fn query(hub: &Hub, statement: store::Statement) -> Result<Vec<Revision>, Fault> {
    let rows = hub.ports().store.query(statement).await.map_err(fault)?;
    rows.iter().map(Revision::read).collect()
}

/// The newest revision, or the newest with this version.
pub async fn find(
    hub: &Hub,
    tenant: &str,
    id: &str,
    version: Option<&str>,
) -> Result<StoredDefinition, Fault> {
    let statement = match version {
        Some(version) => tables::with_version(tenant, id, version),
        None => tables::newest(tenant, id),
    };
    let found = query(hub, statement).await?.into_iter().next().ok_or_else(|| unknown(id, version))?;
    with_authors(hub, tenant, found).await
}

/// The revision with this number, as long as the workflow is not deleted.
pub async fn pinned(hub: &Hub, tenant: &str, id: &str, revision: i64) -> Result<StoredDefinition, Fault> {
    let found = query(hub, tables::with_number(tenant, id, revision)).await?.into_iter().next();
    let unknown = || {
        Fault::new(Code::NotFound, format!("workflow '{id}' has no revision {revision}"))
            .with("workflowId", id)
            .with("revision", revision)
    };
    with_authors(hub, tenant, found.ok_or_else(unknown)?).await
}

/// The same, which must have this version.
pub async fn pinned_with_version(
    hub: &Hub,
    tenant: &str,
    id: &str,
    (revision, version): (i64, &str),
) -> Result<StoredDefinition, Fault> {
    let found = pinned(hub, tenant, id, revision).await?;
    let has = &found.workflow.version;
    if **has != *version {
        let message = format!("/revision: revision {revision} of '{id}' has version {has}, not {version}");
        return Err(Fault::invalid(message).with("path", "/revision"));
    }
    Ok(found)
}

async fn with_authors(hub: &Hub, tenant: &str, found: Revision) -> Result<StoredDefinition, Fault> {
    let first = match found.revision {
        1 => None,
        _ => query(hub, tables::first(tenant, &found.id)).await?.into_iter().next(),
    };
    for revision in first.iter().chain([&found]) {
        revision.check_seal(hub.row_seal(), tenant)?;
    }
    Ok(StoredDefinition {
        workflow: load::definition(hub, tenant, &found.hash).await?,
        revision: found.revision,
        defined_by: first.map_or_else(|| found.author.clone(), |first| first.author),
        edited_by: found.author,
    })
}

/// Whether a definition with this hash is stored under this id.
pub async fn has_revision(
    (store, seal): (&Arc<dyn Store>, &RowSeal),
    tenant: &str,
    id: &str,
    hash: &str,
) -> Result<bool, Fault> {
    let rows = store.query(tables::with_hash(tenant, id, hash)).await.map_err(fault)?;
    let revisions = rows.iter().map(Revision::read).collect::<Result<Vec<_>, Fault>>()?;
    Ok(revisions.iter().any(|revision| revision.check_seal(seal, tenant).is_ok()))
}

/// What applying a definition changes.
pub struct Applied {
    pub answer: Value,
    pub effects: Batch,
}

pub async fn apply(hub: &Hub, principal: &Principal, workflow: &Workflow) -> Result<Applied, Fault> {
    if principal.tools.is_some() {
        // What it stores would run later for others, who are not limited.
        let what = "a caller whose tools are limited cannot store workflows";
        return Err(Fault::new(Code::Unauthorized, what).with("reason", "tool_limit"));
    }
    let tenant = principal.tenant.as_str();
    let newest = query(hub, tables::newest(tenant, &workflow.id)).await?.into_iter().next();
    let answer = |revision: i64, unchanged: bool| {
        json!({"id": workflow.id, "name": workflow.name, "version": workflow.version, "revision": revision,
               "hash": workflow.hash, "unchanged": unchanged})
    };
    newest.as_ref().map_or(Ok(()), |newest| newest.check_seal(hub.row_seal(), tenant))?;
    if let Some(same) = newest.as_ref().filter(|newest| *newest.hash == *workflow.hash) {
        return Ok(Applied { answer: answer(same.revision, true), effects: Batch::new() });
    }
    check_version(hub, tenant, workflow).await?;
    let last = hub.ports().store.query(tables::last_revision(tenant, &workflow.id)).await.map_err(fault)?;
    let revision = last.first().and_then(|row| row.int(0).ok()).unwrap_or(0) + 1;
    let about =
        json!({"description": workflow.description, "tags": workflow.tags, "steps": workflow.steps.len()});
    let author_roles = Author::of(principal).stored_rights();
    let cells = SealedCells {
        tenant,
        id: &workflow.id,
        revision,
        version: &workflow.version,
        hash: &workflow.hash,
        author: Some(&principal.name),
        roles: Some(&author_roles),
    };
    let seal = cells.with(|cells| hub.row_seal().seal(TABLE, cells))?;
    let mut effects = Batch::new();
    effects.then(crate::tables::definition_keep(tenant, &workflow.hash, workflow.source.to_string()));
    effects.then(tables::supersede(tenant, &workflow.id));
    effects.then_one(tables::add(tables::Revision {
        tenant,
        id: &workflow.id,
        revision,
        version: &workflow.version,
        name: &workflow.name,
        about: about.to_string(),
        hash: &workflow.hash,
        applied_ms: hub.ports().clock.now_ms(),
        author: &principal.name,
        author_roles,
        seal,
    }));
    Ok(Applied { answer: answer(revision, false), effects })
}

/// A stored version is immutable: the same version with other content is refused.
async fn check_version(hub: &Hub, tenant: &str, workflow: &Workflow) -> Result<(), Fault> {
    let stored = query(hub, tables::with_version(tenant, &workflow.id, &workflow.version)).await?;
    let Some(other) = stored.into_iter().next().filter(|stored| *stored.hash != *workflow.hash) else {
        return Ok(());
    };
    let message = format!(
        "version {} of workflow '{}' is stored with other content; give the changed workflow a new version",
        workflow.version, workflow.id
    );
    Err(Fault::new(Code::StateConflict, message)
        .with("reason", "version_exists")
        .with("workflowId", &*workflow.id)
        .with("version", &*workflow.version)
        .with("revision", other.revision)
        .with("storedHash", other.hash))
}

pub async fn list(
    hub: &Hub,
    tenant: &str,
    after: &str,
    search: Option<&str>,
    limit: i64,
) -> Result<Vec<Revision>, Fault> {
    query(hub, tables::page(tenant, after, search, limit)).await
}

pub async fn show(hub: &Hub, tenant: &str, id: &str, revision: Option<i64>) -> Result<Value, Fault> {
    let revisions = query(hub, tables::revisions(tenant, id, REVISIONS)).await?;
    let shown = revisions
        .iter()
        .find(|one| revision.is_none_or(|wanted| one.revision == wanted))
        .ok_or_else(|| unknown(id, None))?;
    let workflow = load::definition(hub, tenant, &shown.hash).await?;
    let mut answer = shown.summary();
    answer["workflow"] = (*workflow.source).clone();
    answer["inputs"] = workflow.inputs.clone().unwrap_or(Value::Null);
    answer["revisions"] = revisions
        .iter()
        .map(|one| json!({"revision": one.revision, "version": one.version, "hash": one.hash, "appliedAt": iso(one.applied_ms),
                         "appliedBy": one.author.as_ref().map(|author| &author.name)}))
        .collect();
    Ok(answer)
}

/// What deleting changes; executions that run go on.
pub async fn delete(hub: &Hub, tenant: &str, id: &str) -> Result<Batch, Fault> {
    if query(hub, tables::newest(tenant, id)).await?.is_empty() {
        return Err(unknown(id, None));
    }
    let mut effects = Batch::new();
    effects.then(tables::delete(tenant, id));
    Ok(effects)
}
