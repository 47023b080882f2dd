//! An action: what it is called, what it takes, what it promises, and the work it does.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::id::{ActionName, Tenant};
use orchestr8_contract::{AllowedRoles, Fault, Kind, access};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::resilience::Resilience;
use crate::schema::{self, Schema};
use crate::submission::{Args, Principal, Transport};

pub use crate::reply::{Halt, Reply, Then};

/// The work of an action.
pub trait Work: Send + Sync + 'static {
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>>;
}

/// The work that a closure does.
pub fn work<F, R>(closure: F) -> Arc<dyn Work>
where
    F: Fn(Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    Arc::new(Closure(closure))
}

struct Closure<F>(F);

impl<F, R> Work for Closure<F>
where
    F: Fn(Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    fn run(&self, args: Args, context: Context) -> BoxFuture<'static, Result<Reply, Halt>> {
        (self.0)(args, context).boxed()
    }
}

/// How the work uses the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Done within microseconds and never blocking: it runs where the request was read, without a task of its own.
    Quick,
    /// Asynchronous work in a task of its own.
    Work,
}

/// What the work changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Read,
    /// Only what it returns as `Reply::effects`: it may run again after a crash, since nothing of it is left behind.
    Stored,
    /// Something outside the store: after a crash nobody knows whether it happened.
    Outside(OnUnknown),
}

/// What a repeat of a key gets when the first run died in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnknown {
    /// Run again: the effect may happen twice.
    Retry,
    /// Answer OUTCOME_UNKNOWN and let a person look.
    Fail,
}

/// What to do when no slot is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slotting {
    /// Refuse at once (MCP-ORDER-6).
    Refuse,
    /// Wait, at most this long.
    Wait { limit_ms: u64 },
    /// Needs none: it must answer even when all slots are taken.
    Free,
}

/// What a successful run does to the version its submission names (SES-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioning {
    None,
    /// It counts as one change.
    Bump,
    /// The thing comes into being, at version 0.
    Create,
    /// The thing is gone, and its version with it.
    Remove,
}

/// Whether an MCP client may run it as a task it asks after later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasking {
    Forbidden,
    Optional,
    Required,
}

/// What an action promises and pays for.
#[derive(Debug, Clone)]
pub struct Policy {
    pub cost: Cost,
    pub effect: Effect,
    /// Work that fails in one of these ways did nothing: it is refused, and its key is free for another request.
    pub refusals: &'static [Kind],
    /// None: the server's default.
    pub timeout_ms: Option<u64>,
    /// How long the serialized arguments may be. None: the server's default.
    pub payload_bytes: Option<usize>,
    pub slotting: Slotting,
    /// At most this many runs of this action at once, within the server's own limit.
    pub concurrent_runs: Option<usize>,
    pub versioning: Versioning,
    pub resilience: Option<Resilience>,
    /// Actions with the same key here share one breaker, made by `breaker::key`. None: one of its own.
    pub breaker: Option<Arc<str>>,
    /// Record the beginning and the end in the journal.
    pub journalled: bool,
    /// Record the end in the audit chain before the reply leaves.
    pub audited: bool,
    /// Arguments that are secret: the hash of the arguments in the audit chain leaves them out, since the hash of a weak
    /// secret can be guessed.
    pub secret_args: &'static [&'static str],
    pub tasking: Tasking,
    /// Repeating it changes nothing more (a hint for clients).
    pub idempotent: bool,
    /// It may destroy something (a hint for clients).
    pub destructive: bool,
    /// It reaches beyond this server (a hint for clients).
    pub open_world: bool,
}

impl Policy {
    /// Reads, at once.
    pub fn quick_read() -> Self {
        Self { cost: Cost::Quick, ..Self::read() }
    }

    /// Reads, taking its time.
    pub fn read() -> Self {
        Self {
            cost: Cost::Work,
            effect: Effect::Read,
            refusals: &[],
            timeout_ms: None,
            payload_bytes: None,
            slotting: Slotting::Refuse,
            concurrent_runs: None,
            versioning: Versioning::None,
            resilience: None,
            breaker: None,
            journalled: false,
            audited: false,
            secret_args: &[],
            tasking: Tasking::Forbidden,
            idempotent: true,
            destructive: false,
            open_world: false,
        }
    }

    /// Changes only the store, in the commit of its outcome; journalled and audited.
    pub fn stored() -> Self {
        Self { effect: Effect::Stored, journalled: true, audited: true, idempotent: false, ..Self::read() }
    }

    /// Changes something outside; journalled and audited.
    pub fn outside(on_unknown: OnUnknown) -> Self {
        Self { effect: Effect::Outside(on_unknown), open_world: true, destructive: true, ..Self::stored() }
    }
}

/// How clients get to see an action.
#[derive(Debug, Clone)]
pub enum Shown {
    Tool,
    Resource(Resource),
    Prompt {
        arguments: Vec<PromptArgument>,
    },
    /// Not listed; for other actions and for faces of our own.
    Hidden,
}

#[derive(Debug, Clone)]
pub struct Resource {
    pub address: Address,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// One resource.
    Fixed(String),
    /// Many, with `{name}` places filled in by the client; the action gets them as arguments beside `uri`.
    Template(String),
}

#[derive(Debug, Clone)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

/// What people and models are told about an action.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub title: Option<String>,
    pub description: String,
    pub version: Option<String>,
    /// Other names it answers to, which are not held to the rule for names.
    pub aliases: Vec<String>,
    pub icons: Option<Value>,
    /// Facts for clients beyond the protocol.
    pub meta: Map<String, Value>,
}

/// Suggests values while somebody types an argument.
pub type Complete = Arc<dyn Fn(&str, &str, &Map<String, Value>) -> Vec<String> + Send + Sync>;

/// Says whether this caller may run it over this transport, beyond what roles say.
pub type Allow = Arc<dyn Fn(&Principal, Transport) -> Result<(), Fault> + Send + Sync>;

/// One thing that can be asked for, in whichever protocol.
pub struct Action {
    pub name: ActionName,
    pub about: About,
    pub shown: Shown,
    pub policy: Policy,
    pub input: Schema,
    pub output: Option<Schema>,
    pub complete: Option<Complete>,
    /// The roles that may run it: its row of the access table. Without one it cannot be registered.
    pub allowed: Option<AllowedRoles>,
    pub allow: Option<Allow>,
    /// The tenant that registered it at run time: only this tenant sees, runs and removes it. None: it is the program's.
    pub tenant: Option<Tenant>,
    pub work: Arc<dyn Work>,
}

impl Action {
    /// A tool. Its schema is compiled here, so a wrong one never gets registered.
    pub fn tool<F, R>(
        name: &str,
        description: &str,
        input: Value,
        policy: Policy,
        work: F,
    ) -> Result<Self, schema::Error>
    where
        F: Fn(Args, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Halt>> + Send + 'static,
    {
        Self::new(name, description, input, policy, self::work(work))
    }

    pub fn new(
        name: &str,
        description: &str,
        input: Value,
        policy: Policy,
        work: Arc<dyn Work>,
    ) -> Result<Self, schema::Error> {
        Self::with(name, description, Schema::compile(input)?, policy, work)
    }

    /// An action of the program that no list shows. There are many of them, and in most processes most are never asked for:
    /// its schema is compiled when it is.
    pub fn unlisted(
        name: &str,
        description: &str,
        input: Value,
        policy: Policy,
        work: Arc<dyn Work>,
    ) -> Result<Self, schema::Error> {
        Ok(Self::with(name, description, Schema::own(input)?, policy, work)?.hidden())
    }

    fn with(
        name: &str,
        description: &str,
        input: Schema,
        policy: Policy,
        work: Arc<dyn Work>,
    ) -> Result<Self, schema::Error> {
        Ok(Self {
            name: ActionName::parse(name).map_err(|error| schema::Error::Name(error.to_string()))?,
            about: About { description: description.to_owned(), ..About::default() },
            shown: Shown::Tool,
            policy,
            input,
            output: None,
            complete: None,
            allowed: access::roles_for(name),
            allow: None,
            tenant: None,
            work,
        })
    }

    /// A resource, read by running the action with `uri` and what the template captured.
    pub fn resource<F, R>(
        name: &str,
        description: &str,
        resource: Resource,
        work: F,
    ) -> Result<Self, schema::Error>
    where
        F: Fn(Args, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Halt>> + Send + 'static,
    {
        let mut action = Self::tool(name, description, schema::any_object(), Policy::read(), work)?;
        action.shown = Shown::Resource(resource);
        Ok(action)
    }

    pub fn prompt<F, R>(
        name: &str,
        description: &str,
        arguments: Vec<PromptArgument>,
        work: F,
    ) -> Result<Self, schema::Error>
    where
        F: Fn(Args, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Halt>> + Send + 'static,
    {
        let mut action = Self::tool(name, description, schema::any_object(), Policy::read(), work)?;
        action.shown = Shown::Prompt { arguments };
        Ok(action)
    }

    #[must_use]
    pub fn also_called(mut self, alias: &str) -> Self {
        self.about.aliases.push(alias.to_owned());
        self
    }

    #[must_use]
    pub fn titled(mut self, title: &str) -> Self {
        self.about.title = Some(title.to_owned());
        self
    }

    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.shown = Shown::Hidden;
        self
    }

    #[must_use]
    pub fn completing(mut self, complete: Complete) -> Self {
        self.complete = Some(complete);
        self
    }

    /// For tools that are not the program's own and so have no row in the access table.
    #[must_use]
    pub fn allowed_to(mut self, roles: AllowedRoles) -> Self {
        self.allowed = Some(roles);
        self
    }

    #[must_use]
    pub fn allowing(mut self, allow: Allow) -> Self {
        self.allow = Some(allow);
        self
    }

    /// Declares the shape of the output; a reply that breaks it is our fault, not the client's.
    pub fn giving(mut self, output: Value) -> Result<Self, schema::Error> {
        self.output = Some(Schema::compile(output)?);
        Ok(self)
    }

    /// Whether its schemas compile, which `unlisted` leaves open.
    pub fn prove(&self) -> Result<(), schema::Error> {
        self.input.prove()?;
        self.output.as_ref().map_or(Ok(()), Schema::prove)
    }

    pub fn timeout_ms(&self, default_ms: u64) -> u64 {
        self.policy.timeout_ms.unwrap_or(default_ms)
    }
}
