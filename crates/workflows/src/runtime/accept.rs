//! A new execution: what is stored of it, and how it begins once that is durable.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_contract::{Code, Fault, RoleSet, TraceParent};
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::TokenGrant;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::tool_limit::ToolLimit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::actor::Actor;
use super::admit::begun;
use super::gates::{Entry, Pass};
use super::load::Tail;
use super::quota::ExecutionPermit;
use super::trees::{TreePlace, TreeRoot};
use super::{Hub, inputs, limit_overrides};
use crate::authors::{Author, Authors};
use crate::definition::model::Workflow;
use crate::engine::evaluation;
use crate::engine::event::{Status, Task};
use crate::engine::identity::ScheduledMoment;
use crate::engine::state::{Identity, State};
use crate::tags::{self, ExecutionTags, TagSources};
use crate::{limits, merkle, tables};

/// What somebody wants executed.
pub struct Request {
    pub workflow: Arc<Workflow>,
    /// Over the definition's own variables.
    pub variables: Map<String, Value>,
    pub correlation: CorrelationId,
    /// The trace it is a part of, which its steps pass on.
    pub trace: Option<TraceParent>,
    /// Who starts it.
    pub principal: Arc<Principal>,
    /// Who else answers for what it does. It has the rights that all of them and the starter have.
    pub authors: Authors,
    pub timeout_ms: Option<u64>,
    pub priority: Option<i32>,
    pub tags: TagSources,
    pub parent: Option<Parent>,
    pub forked_from: Option<Arc<str>>,
    /// Outputs taken over from the execution it was forked from.
    pub kept: Vec<(usize, Value)>,
    /// How often other executions did and undid its steps before: part of their keys.
    pub generations: Vec<(usize, u32)>,
    /// The moment of the schedule that starts it, or started what it belongs to.
    pub schedule: Option<ScheduledMoment>,
}

/// The step of another execution that waits for this one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parent {
    pub num: i64,
    pub id: Arc<str>,
    pub task: Task,
    /// How many workflows are around it.
    pub depth: usize,
    /// The execution at the top of its tree; earlier versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<TreeRoot>,
    /// The step does not wait: it was done when this one began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detached: bool,
}

/// What is stored of a request beside the columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Given {
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    pub principal: String,
    #[serde(default, skip_serializing_if = "RoleSet::is_empty")]
    pub roles: RoleSet,
    /// The scope that its steps are held to: what the tokens of its starter and its authors have in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    /// The tools that its steps may use, if those of its starter are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolLimit>,
    #[serde(default, skip_serializing_if = "Authors::is_empty")]
    pub authors: Authors,
    /// Also in the index of tags.
    #[serde(default, skip_serializing_if = "ExecutionTags::is_empty")]
    pub tags: ExecutionTags,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<(usize, Value)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generations: Vec<(usize, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduledMoment>,
}

impl Given {
    /// Its starter, with the rights that the execution has.
    pub fn starter(&self) -> Author {
        let Self { principal, roles, scope, tools, .. } = self;
        Author { name: principal.as_str().into(), roles: *roles, scope: scope.clone(), tools: tools.clone() }
    }
}

/// What is needed to begin an execution.
#[derive(Clone)]
pub struct Seed {
    pub num: i64,
    pub tenant: Tenant,
    pub identity: Arc<Identity>,
    pub given: Arc<Given>,
    pub priority: i32,
    pub created_ms: i64,
    pub principal: Arc<Principal>,
    /// It began before and waits for its turn again: its start has counted.
    pub is_retried: bool,
    /// Its place among the executions with its key, once it has one.
    pub pass: Option<Arc<Pass>>,
    /// Its place among the executions of its tenant, while it runs or waits for its turn.
    #[expect(dead_code, reason = "it counts for as long as it is held")]
    pub permit: Option<Arc<ExecutionPermit>>,
}

/// An execution that will exist once its batch is durable.
pub struct Accepted {
    pub id: Arc<str>,
    pub num: i64,
    pub status: Status,
    pub batch: Batch,
    /// Its place in the tree of the execution that started it.
    pub place: Option<TreePlace>,
    begin: Begin,
}

impl Accepted {
    fn identity(&self) -> &Identity {
        match &self.begin {
            Begin::Now(actor) => &actor.state.identity,
            Begin::Later(seed) => &seed.identity,
        }
    }

    fn tenant(&self) -> &Tenant {
        match &self.begin {
            Begin::Now(actor) => &actor.seed.tenant,
            Begin::Later(seed) => &seed.tenant,
        }
    }

    pub fn workflow(&self) -> &Workflow {
        &self.identity().workflow
    }

    pub fn correlation(&self) -> &CorrelationId {
        &self.identity().correlation
    }
}

enum Begin {
    Now(Box<Actor>),
    Later(Seed),
}

impl Hub {
    /// Prepares an execution. Nothing has happened until the batch is committed; then `launch` it.
    pub fn accept(&self, request: Request) -> Result<Accepted, Fault> {
        let shared = &self.0;
        shared.check_started()?;
        shared.settings.env.check(&request.workflow)?;
        inputs::check(&request.workflow, &request.variables)?;
        inputs::check_schedule(&request.workflow, request.schedule.as_ref())?;
        let depth = shared.scheduler.depth().waiting_executions;
        if depth >= shared.settings.queued_executions {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{depth} executions wait for their turn; send again later"),
            )
            .with("reason", "queue_full")
            .with("queueDepth", depth));
        }
        let tenant = &request.principal.tenant;
        // A detached child is not waited for, so nothing else bounds how many there are.
        let is_free = request.parent.as_ref().is_some_and(|parent| !parent.detached);
        let limit = (!is_free).then(|| limit_overrides::executions_of(self, tenant));
        let permit = shared.quota.take(tenant, limit)?;
        let mut seed = Seed { permit: Some(permit), ..self.seed(request)? };
        if limit.is_some() {
            shared.limit_overrides.count_start(&seed.tenant, seed.created_ms)?;
        }
        let mut batch = Batch::new();
        let workflow = &seed.identity.workflow;
        if shared.recent.is_new_definition(&seed.tenant, &workflow.hash) {
            let (tenant, source) = (seed.tenant.as_str(), workflow.source.to_string());
            batch.then(tables::definition_keep(tenant, &workflow.hash, source));
        }
        let (id, num) = (seed.identity.execution.clone(), seed.num);
        let slot = match shared.gates.try_enter(&seed, true, seed.created_ms)? {
            Entry::Open(pass) => {
                seed.pass = pass;
                shared.scheduler.try_begin(&seed.tenant)
            }
            Entry::Shut { .. } => None,
        };
        let state = State::new(seed.identity.clone());
        // Where the first look at the graph may cost much, the answer does not wait for it.
        let Some(slot) = slot.filter(|_| evaluation::may_run_inline(&state, &begun(self, &seed))) else {
            insert(&mut batch, &seed, queued())?;
            batch.wake(super::FEED);
            let (status, begin) = (Status::Queued, Begin::Later(seed));
            return Ok(Accepted { id, num, status, batch, place: None, begin });
        };
        // Listed before it is stored: a timer or a message may come for it as soon as it is.
        let line = shared.claim(num).map_err(|_| Fault::internal("a number was given twice"))?;
        let mut actor = Actor::new(line, self.clone(), seed, state, Tail::default());
        actor.begin(slot);
        actor.is_new = true;
        actor.absorb();
        actor.is_new = false;
        insert(&mut batch, &actor.seed, actor.progress())?;
        batch.merge(actor.take_batch());
        Ok(Accepted {
            id,
            num,
            status: Status::Running,
            batch,
            place: None,
            begin: Begin::Now(Box::new(actor)),
        })
    }

    /// Begins what was accepted. Its batch must be durable.
    pub fn launch(&self, accepted: Accepted) {
        let tenant = accepted.tenant();
        self.0.recent.definition_stored(tenant, &accepted.workflow().hash);
        self.0.recent.open(&accepted.id, tenant);
        if let Some(place) = accepted.place {
            self.0.trees.hold(accepted.num, place);
        }
        match accepted.begin {
            Begin::Now(actor) => actor.spawn(),
            Begin::Later(seed) => self.line_up(seed),
        }
    }

    /// Lets it wait for its turn, once its key lets it.
    pub(super) fn line_up(&self, mut seed: Seed) {
        let shared = &self.0;
        if seed.pass.is_none() {
            let given_back = shared.gates.given_back();
            match shared.gates.try_enter(&seed, false, shared.now_ms()) {
                Ok(Entry::Open(pass)) => seed.pass = pass,
                Ok(Entry::Shut { wait_ms: Some(wait_ms) }) => {
                    let (hub, sleep) =
                        (self.clone(), shared.ports.clock.sleep(Duration::from_millis(wait_ms)));
                    tokio::spawn(async move {
                        tokio::select! {
                            () = sleep => {}
                            () = given_back => {}
                        }
                        hub.line_up(seed);
                    });
                    return;
                }
                Ok(Entry::Shut { wait_ms: None }) => return shared.gates.wait(seed),
                Err(fault) => {
                    // The key was resolved when it was accepted, so this does not happen; it begins without one.
                    shared.log().error(
                        "the key of an execution could not be read",
                        json!({"execution": seed.identity.execution, "error": orchestr8_kernel::log::error(&fault)}),
                    );
                }
            }
        }
        // A child waits with what started it, so that a tree gets no more turns than one execution.
        let (tenant, workflow) = (seed.tenant.clone(), seed.tree_root().workflow);
        shared.scheduler.line_up((&tenant, &workflow), (seed.priority, seed.num), seed);
    }

    fn seed(&self, request: Request) -> Result<Seed, Fault> {
        let ports = &self.0.ports;
        let id: Arc<str> = format!("exec-{}", ports.ids.fresh(For::Execution)).into();
        let mut variables = request.workflow.variables.clone();
        variables.extend(request.variables.clone());
        let reduced = request.authors.reduce(Principal::clone(&request.principal));
        let scope = reduced.scope_entries();
        let grant = TokenGrant::recorded(&reduced.name, reduced.tenant.clone(), &scope);
        let principal = Arc::new(Principal { grant, document_proof: false, ..reduced });
        let identity = Arc::new(Identity {
            execution: id,
            correlation: request.correlation,
            variables,
            timeout_ms: request.timeout_ms,
            schedule: request.schedule.clone(),
            workflow: request.workflow.clone(),
            started_by: principal.name.clone(),
        });
        let template = request.workflow.policies.tags.as_ref();
        let tags = tags::resolve(template, request.tags, || State::new(identity.clone()))?;
        let given = Given {
            variables: request.variables,
            timeout_ms: request.timeout_ms,
            trace: request.trace,
            principal: request.principal.name.to_string(),
            roles: principal.roles,
            scope,
            tools: principal.tools.clone(),
            authors: request.authors,
            tags,
            parent: request.parent,
            forked_from: request.forked_from,
            kept: request.kept,
            generations: request.generations,
            schedule: request.schedule,
        };
        Ok(Seed {
            num: self.0.fresh_number(),
            tenant: request.principal.tenant.clone(),
            identity,
            given: Arc::new(given),
            priority: request.priority.unwrap_or(request.workflow.policies.priority),
            created_ms: ports.clock.now_ms(),
            principal,
            is_retried: false,
            pass: None,
            permit: None,
        })
    }
}

/// An execution that waits for its turn.
fn queued() -> tables::Progress {
    let status = Status::Queued.as_str();
    tables::Progress { status, awake: true, started_ms: None, ended_ms: None, error: None, signals: 0 }
}

fn insert(batch: &mut Batch, seed: &Seed, progress: tables::Progress) -> Result<(), Fault> {
    let workflow = &seed.identity.workflow;
    let given = serde_json::to_string(&*seed.given)
        .map_err(|error| Fault::internal("the request cannot be stored").because(error))?;
    let new = tables::NewExecution {
        num: seed.num,
        tenant: seed.tenant.as_str(),
        id: &seed.identity.execution,
        workflow: &workflow.id,
        name: &workflow.name,
        version: &workflow.version,
        hash: &workflow.hash,
        priority: seed.priority,
        correlation: seed.identity.correlation.as_str(),
        given,
        parent: seed.given.parent.as_ref().map(|parent| parent.num),
        tree: tree_of(seed),
        created_ms: seed.created_ms,
        progress,
    };
    merkle::insert_execution(batch, new);
    insert_tags(batch, seed)
}

/// The root and the level of a child.
fn tree_of(seed: &Seed) -> Option<(i64, i64)> {
    let at = seed.tree_level();
    (at.level > 0).then(|| (at.root, i64::try_from(at.level).unwrap_or(i64::MAX)))
}

/// An execution without tags costs nothing here.
fn insert_tags(batch: &mut Batch, seed: &Seed) -> Result<(), Fault> {
    if !seed.given.tags.is_empty() {
        let tags = serde_json::to_string(&seed.given.tags)
            .map_err(|error| Fault::internal("the tags cannot be stored").because(error))?;
        batch.then(tags::tables::insert(seed.tenant.as_str(), seed.num, tags));
    }
    Ok(())
}

/// Refuses children of children of children.
pub fn check_depth(depth: usize) -> Result<(), Fault> {
    if depth < limits::CHILD_DEPTH {
        return Ok(());
    }
    let limit = limits::CHILD_DEPTH;
    Err(Fault::new(Code::LimitExceeded, format!("workflows inside workflows go {limit} deep at most"))
        .with("limit", limit))
}
