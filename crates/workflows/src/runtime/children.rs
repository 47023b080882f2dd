//! What an execution asks of others: child executions, and people.

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::error::StoredFault;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::log;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;

use super::accept::{Accepted, Parent, Request, check_depth};
use super::actor::Actor;
use super::remote_limits::{RemoteKey, RemotePlace};
use super::tables::{self, Approval};
use super::trees::{self, TreeLevel, TreePlace};
use super::{Posted, deliver, limit_overrides};
use crate::authors::Authors;
use crate::definition::model::{Kind, Which, Workflow};
use crate::engine::event::{Event, Task};
use crate::engine::scope::Frame;
use crate::engine::state::Phase;
use crate::expression::{Fuel, Template};
use crate::keyed_events::{self, tables::EventAddress};
use crate::limits;
use crate::stored;
use crate::tags::TagSources;

/// The workflow a step names.
enum Wanted {
    Inline(Arc<Workflow>),
    Stored { id: Arc<str>, version: Option<String> },
    Nothing,
}

/// What the next child of an execution needs to begin: a place in the tree, and its turn.
#[derive(Default)]
pub struct ChildAdmission {
    place: Option<TreePlace>,
    turn: Option<RemotePlace>,
    awaited: Option<BoxFuture<'static, Admitted>>,
}

enum Admitted {
    Place(Option<TreePlace>),
    Turn(Option<RemotePlace>),
}

impl ChildAdmission {
    pub fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }

    /// Waits for what is missing.
    pub async fn granted(&mut self) {
        let Some(awaited) = &mut self.awaited else { return };
        let admitted = awaited.await;
        self.awaited = None;
        match admitted {
            Admitted::Place(place) => self.place = place,
            Admitted::Turn(turn) => self.turn = turn,
        }
    }

    /// Gives back what no child needs now. A child that waits for its turn keeps its place.
    pub fn give_back(&mut self) {
        if self.awaited.is_none() {
            (self.place, self.turn) = (None, None);
        }
    }
}

impl Actor {
    /// Whether a child can begin now: not in a pause, and not while there is no place in the tree.
    pub(super) fn may_begin_children(&self) -> bool {
        let is_held_back = self.state.pause.is_some() || self.hub.0.closing.is_cancelled();
        !self.beginning.is_empty() && !self.admission.is_awaited() && !is_held_back
    }

    /// Accepts the children that are due, as many as fit into one commit; they are stored in the same commit as the fact that they
    /// were begun.
    pub async fn begin_children(&mut self) {
        let mut due = std::mem::take(&mut self.beginning).into_iter();
        while !self.is_batch_full()
            && let Some(task) = due.next()
        {
            // It may have been cancelled since.
            if self.state.work.get(&task).is_none_or(|work| work.phase != Phase::Beginning) {
                continue;
            }
            let Some((turn, place)) = self.admit_child().await else {
                self.beginning.push(task);
                break;
            };
            if let Err(fault) = self.begin_child(task, place).await {
                let fault = StoredFault::from(&fault);
                self.take_in(Event::Failed { task, attempts: 1, fault }, None);
            }
            // The turn is given on after the yield: the runtime has served sockets by then, so that requests and probes come between
            // any two children.
            tokio::task::yield_now().await;
            drop(turn);
        }
        self.beginning.extend(due);
    }

    async fn begin_child(&mut self, task: Task, place: Result<TreePlace, Fault>) -> Result<(), Fault> {
        let place = place?;
        let definition = match self.wanted(task) {
            Wanted::Inline(workflow) => (workflow, self.seed.given.authors.clone()),
            Wanted::Stored { id, version } => {
                let (hub, tenant) = (self.hub.clone(), self.seed.tenant.clone());
                let found = stored::find(&hub, tenant.as_str(), &id, version.as_deref()).await?;
                let (workflow, authors) = found.into_parts();
                let above = &self.seed.given.authors;
                let authors = authors.inheriting(above.iter());
                (workflow, Authors { trigger_depth: above.trigger_depth, ..authors })
            }
            Wanted::Nothing => return Err(Fault::internal("the step is no workflow")),
        };
        let undoable = definition.0.is_undoable();
        let mut accepted = self.child(task, definition)?;
        self.hub.0.trees.count_started(self.seed.tree_level().root);
        accepted.place = Some(place);
        self.add(std::mem::take(&mut accepted.batch));
        let (execution, detached) = (accepted.id.clone(), self.is_detached(task));
        // In the commit of the child itself, however full it is: after a kill there is both or neither.
        self.take_in(Event::ChildBegun { task, execution, undoable, detached }, None);
        self.launching.push(accepted);
        Ok(())
    }

    /// The turn of the next child, with its place in the tree or why it gets none. Nothing if they are to be waited for.
    async fn admit_child(&mut self) -> Option<(RemotePlace, Result<TreePlace, Fault>)> {
        let root = self.seed.tree_root();
        let at = TreeLevel { root: root.num, level: self.child_depth() };
        if root.num == self.seed.num {
            self.hub.0.trees.activate(root.num);
        }
        let allowed = match check_depth(at.level) {
            Ok(()) => trees::check_size(&self.hub, at.root).await,
            refused => refused,
        };
        let (shared, tenant, own) = (&self.hub.0, &self.seed.tenant, &mut self.admission);
        if allowed.is_ok() && own.place.is_none() {
            let is_full = shared.quota.is_full(tenant, limit_overrides::executions_of(&self.hub, tenant));
            match shared.trees.take(at, is_full.then_some(tenant)) {
                Ok(place) => own.place = Some(place),
                Err(receiver) => {
                    own.awaited = Some(receiver.map(|place| Admitted::Place(place.ok())).boxed());
                    return None;
                }
            }
        }
        let turn = match own.turn.take() {
            Some(turn) => turn,
            None => {
                let who = (tenant, &root.workflow, root.num);
                match shared.child_turns.take(child_turns(), limits::CHILD_STARTS, who) {
                    Ok(turn) => turn,
                    Err(receiver) => {
                        own.awaited = Some(receiver.map(|turn| Admitted::Turn(turn.ok())).boxed());
                        return None;
                    }
                }
            }
        };
        let place = own.place.take();
        Some((turn, allowed.and_then(|()| place.ok_or_else(|| Fault::internal("a place was lost")))))
    }

    /// How many workflows are around a child of this execution.
    fn child_depth(&self) -> usize {
        self.seed.given.parent.as_ref().map_or(0, |parent| parent.depth) + 1
    }

    /// Stops an attempt that runs, a child, or the rollback of a child.
    pub(super) fn stop_task(&mut self, task: Task) {
        self.cancel_running(task);
        let child = self.state.children.get(&task.undone()).map(|child| child.execution.clone());
        match (self.state.work.get(&task).map(|work| &work.phase), child) {
            (Some(Phase::Child { execution, .. }), _) => self.posting.push(Posted::stop(execution)),
            // Its rollback was stopped by force, so it is not waited for any more.
            (None, Some(execution)) if task.undo => self.posting.push(Posted::stop_by_force(&execution)),
            // It was a handler, and the handlers were stopped by force.
            (None, Some(execution)) => self.posting.push(Posted::stop(&execution)),
            (Some(_) | None, _) => {}
        }
    }

    /// Asks a child to undo what it did. After a crash it is asked again.
    pub(super) fn undo_child(&mut self, task: Task) {
        if let Some(child) = self.state.children.get(&task.undone()) {
            let reply_to = self.seed.num;
            self.posting.push(Posted::Undo { execution: child.execution.clone(), task, reply_to });
        }
    }

    /// Records that it waits for an event of this key; one that is kept is looked for once that is durable.
    pub(super) fn expect(&mut self, name: String, key: String) {
        let tenant = self.seed.tenant.clone();
        let address = EventAddress { tenant: tenant.as_str(), name: &name, key: &key };
        self.statement(keyed_events::tables::wait_insert(address, self.seed.num));
        self.posting.push(Posted::Expect { name, key });
    }

    /// Tells the execution that this one belongs to how it ended, or what it has undone.
    pub(super) fn report(&mut self) {
        let Some(parent) = self.seed.given.parent.as_ref().filter(|parent| !parent.detached) else { return };
        let event = match self.state.undo_asked {
            true => deliver::child_undone(&self.state, parent.task.undoing()),
            false => deliver::child_ended(&self.state, parent.task),
        };
        match self.hub.post_to(parent.num, &event, &mut self.batch) {
            Ok(posted) => self.posting.push(posted),
            Err(fault) => {
                self.hub.0.log().error("a parent was not told", json!({"error": log::error(&fault)}))
            }
        }
    }

    fn is_detached(&self, task: Task) -> bool {
        match &self.state.workflow().steps[task.step].kind {
            Kind::Workflow(child) => child.detached,
            Kind::Agent(_) | Kind::Wait(_) | Kind::Approval(_) | Kind::Switch(_) => false,
        }
    }

    fn wanted(&self, task: Task) -> Wanted {
        match &self.state.workflow().steps[task.step].kind {
            Kind::Workflow(child) => match &child.which {
                Which::Inline(workflow) => Wanted::Inline(workflow.clone()),
                Which::Stored { id, version } => Wanted::Stored { id: id.clone(), version: version.clone() },
            },
            Kind::Agent(_) | Kind::Wait(_) | Kind::Approval(_) | Kind::Switch(_) => Wanted::Nothing,
        }
    }

    fn child(&self, task: Task, (definition, authors): (Arc<Workflow>, Authors)) -> Result<Accepted, Fault> {
        let workflow = self.state.workflow().clone();
        let Kind::Workflow(child) = &workflow.steps[task.step].kind else {
            return Err(Fault::internal("the step is no workflow"));
        };
        let depth = self.child_depth();
        let variables = self.object(&child.inputs, task)?;
        // What an earlier child did for this step was undone, so its keys are used up.
        let generation = self.state.steps[task.step].generation_of(task.part);
        let steps = if generation > 0 { definition.steps.len() } else { 0 };
        let generations = (0..steps).map(|step| (step, generation)).collect();
        self.hub.accept(Request {
            workflow: definition,
            variables,
            correlation: self.state.identity.correlation.clone(),
            trace: self.seed.given.trace,
            principal: self.hub.current_principal(&self.seed)?,
            authors,
            timeout_ms: None,
            priority: Some(self.seed.priority),
            tags: TagSources { inherited: self.seed.given.tags.clone(), ..TagSources::default() },
            parent: Some(Parent {
                num: self.seed.num,
                id: self.state.identity.execution.clone(),
                task,
                depth,
                root: Some(self.seed.tree_root()),
                detached: child.detached,
            }),
            forked_from: None,
            kept: Vec::new(),
            generations,
            schedule: self.seed.given.schedule.clone(),
        })
    }

    fn object(&self, template: &Template, task: Task) -> Result<Map<String, Value>, Fault> {
        match template.resolve(&Frame::at(&self.state, task), &mut Fuel::evaluation())? {
            Value::Object(map) => Ok(map),
            Value::Null => Ok(Map::new()),
            other => Err(Fault::new(
                Code::InvalidArgument,
                format!("inputs must give an object, and gives {other}"),
            )),
        }
    }

    /// Asks somebody to decide. The token is what they decide with.
    pub fn ask(&mut self, task: Task, due_ms: Option<i64>) {
        let workflow = self.state.workflow().clone();
        let step = &workflow.steps[task.step];
        let Kind::Approval(approval) = &step.kind else { return };
        let message = match approval.message.resolve(&Frame::at(&self.state, task), &mut Fuel::evaluation()) {
            Ok(Value::String(text)) => text,
            Ok(other) => other.to_string(),
            Err(fault) => {
                let fault = StoredFault::from(&fault);
                return self.give(Event::Failed { task, attempts: 1, fault });
            }
        };
        let token = approval_token(&self.seed.tenant, self.hub.0.ports.ids.fresh(For::Record));
        let ask = json!({"stepId": step.id, "message": message, "who": approval.who, "form": approval.form,
                         "excludeStarter": approval.exclude_starter, "startedBy": self.seed.given.principal,
                         "expiresAt": due_ms.map(iso)});
        let (tenant, num) = (self.seed.tenant.clone(), self.seed.num);
        let (task, ask) = (task.to_string(), ask.to_string());
        let approval =
            Approval { token: &token, tenant: tenant.as_str(), execution: num, task: &task, ask: &ask };
        // Without a key it has no seal, and waits until the step times out or the server has its key again.
        let seal = approval.seal(self.hub.row_seal()).unwrap_or_default();
        self.statement(tables::approval_ask(&approval, seal));
    }
}

/// All executions of the process take turns to start children.
fn child_turns() -> RemoteKey {
    RemoteKey { agent: "children".into(), tenant: None }
}

/// A link to an approval works without credentials, so its token says which tenant it belongs to; that of the local tenant
/// needs no name.
fn approval_token(tenant: &Tenant, random: Uuid) -> String {
    match *tenant == Tenant::local() {
        true => random.simple().to_string(),
        false => format!("{}.{}", random.simple(), tenant.as_str()),
    }
}
