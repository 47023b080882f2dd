//! Triggers: workflows that start when something comes in, and notifications.

use orchestr8_contract::{AccessRole, Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use orchestr8_secrets::limits::{VALUE_MAX_BYTES, VALUE_MIN_CHARACTERS};
use orchestr8_secrets::{RecordKind, SecretText, SecretVault};
use serde_json::{Value, json};

use super::{answer, changing, hidden, object, page, reading};
use crate::limits::{self, PAGE, TRIGGERS};
use crate::notifications::{self, NotifySpec};
use crate::runtime::{Hub, fault};
use crate::stored::{self, StoredDefinition};
use crate::triggers::spec::{TriggerAuthor, WebhookSpec, wrong};
use crate::triggers::{self, Trigger, TriggerSpec, event_feeds};

/// A trigger that a person paused.
const BY_REQUEST: &str = "user_request";

/// A secret that the face has made, for a trigger that needs one; the face shows it once.
const CANDIDATE: &str = "candidateSecret";

pub fn actions(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let one = || object(json!({"id": id()}), &["id"]);
    let list_input = object(
        json!({"cursor": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": PAGE}}),
        &[],
    );
    let applying = Policy { secret_args: &["secret", CANDIDATE], ..changing() };
    Ok(vec![
        hidden("triggers.apply", "Stores a trigger.", apply_input(), applying, hub, apply)?,
        hidden("triggers.list", "Lists triggers.", list_input, reading(), hub, list)?,
        hidden("triggers.show", "Shows a trigger.", one(), reading(), hub, show)?,
        hidden(
            "triggers.delete",
            "Deletes a trigger and what waits for it.",
            one(),
            changing(),
            hub,
            delete,
        )?,
        hidden("triggers.pause", "Lets a trigger refuse deliveries.", one(), changing(), hub, pause)?,
        hidden("triggers.resume", "Lets a paused trigger take deliveries.", one(), changing(), hub, resume)?,
        hidden("triggers.redrive", "Sends again what was given up.", one(), changing(), hub, redrive)?,
    ])
}

fn id() -> Value {
    json!({"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"})
}

fn apply_input() -> Value {
    let webhook = json!({"type": "object", "additionalProperties": false, "properties": {
        "signature": {"enum": ["any", "timed", "github"]},
        "deduplication": {"type": "object", "additionalProperties": false, "properties": {
            "key": {"type": "string", "minLength": 1, "maxLength": 1024}, "windowMs": {"type": "integer"}}},
        "debounce": {"type": "object", "additionalProperties": false, "required": ["quietMs"], "properties": {
            "quietMs": {"type": "integer"}, "maxWaitMs": {"type": "integer"}}},
        "batch": {"type": "object", "additionalProperties": false, "required": ["size", "windowMs", "input"], "properties": {
            "size": {"type": "integer"}, "windowMs": {"type": "integer"}, "input": {"type": "string", "minLength": 1, "maxLength": 128}}},
        "maxPerMinute": {"type": "integer"}}});
    let event = json!({"type": "object", "additionalProperties": false, "required": ["types"], "properties": {
        "types": {"type": "array", "minItems": 1, "maxItems": limits::EVENT_TYPES, "items": {"type": "string"}},
        "filter": {"type": "string", "minLength": 1, "maxLength": 4096}, "agent": {"type": "string", "minLength": 1, "maxLength": 256},
        "acknowledge": {"type": "boolean"}, "maxPerMinute": {"type": "integer"}}});
    let notify = json!({"type": "object", "additionalProperties": false, "required": ["url", "on"], "properties": {
        "url": {"type": "string", "minLength": 1, "maxLength": limits::URL_BYTES},
        "on": {"type": "array", "maxItems": 3, "items": {"enum": ["failed", "approval", "budget"]}},
        "workflows": {"type": "array", "maxItems": 100, "items": {"type": "string", "minLength": 1, "maxLength": 256}}}});
    object(
        json!({
            "id": id(), "workflowId": {"type": "string"}, "version": {"type": "string"},
            "revision": {"type": "integer", "minimum": 1}, "webhook": webhook, "event": event, "notify": notify, "inputs": {}, "paused": {"type": "boolean"},
            // Checked by `secret_of`: what is wrong with a value would be told with the value.
            "secret": {}, CANDIDATE: {}
        }),
        &["id"],
    )
}

fn tenant(context: &Context) -> &str {
    context.principal.tenant.as_str()
}

async fn named(hub: &Hub, args: &Args, context: &Context) -> Result<Trigger, Fault> {
    triggers::find_intact(hub, tenant(context), args.text("id").unwrap_or_default()).await
}

async fn apply(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), args.text("id").unwrap_or_default());
    if triggers::count_others(&hub, tenant, id).await? >= TRIGGERS {
        let what = format!("a tenant has at most {TRIGGERS} triggers; delete one first");
        return Err(Fault::new(Code::ResourceExhausted, what).with("limit", TRIGGERS).into());
    }
    let definition = match args.get("notify") {
        Some(_) => None,
        None => Some(definition(&hub, &args, tenant).await?),
    };
    let before = triggers::look_up(&hub, tenant, id).await?;
    let has_secret = args.get("webhook").or_else(|| args.get("notify")).is_some();
    let secret = match has_secret {
        true => secret_of(&hub, &args, tenant, before.as_ref())?,
        false if args.get("secret").is_some() => {
            return Err(wrong("/secret", "an event trigger has no secret").into());
        }
        false => SecretChoice::None,
    };
    let spec = TriggerSpec {
        workflow_id: args.text("workflowId").unwrap_or_default().to_owned(),
        revision: definition.as_ref().map_or(0, |definition| definition.revision),
        notify: member::<NotifySpec>(&args, "notify")?
            .map(|notify| NotifySpec { secret_name: secret.name(), ..notify }),
        webhook: member::<WebhookSpec>(&args, "webhook")?
            .map(|webhook| WebhookSpec { secret_name: secret.name(), ..webhook }),
        event: member(&args, "event")?,
        inputs: args.get("inputs").cloned(),
        author: TriggerAuthor::of(&context.principal),
    };
    spec.check()?;
    if let Some(definition) = &definition {
        crate::runtime::inputs::check_schedule(&definition.workflow, None)?;
        check_batch(definition, &spec)?;
    }
    if let Some(notify) = &spec.notify {
        may_notify(&args, &context)?;
        notify.check(&hub)?;
    }
    let paused = args.get("paused").and_then(Value::as_bool).unwrap_or(false);
    let mut trigger = Trigger::new(tenant, id.to_owned(), spec, paused.then(|| BY_REQUEST.to_owned()))?;
    trigger.cursor = cursor(&hub, &context, &trigger, before.as_ref()).await?;
    let trigger = before.map_or_else(|| trigger.clone(), |before| trigger.clone().in_place_of(before));
    let mut change = Batch::new();
    change.then(triggers::put(&hub, &trigger)?);
    let mut shown = trigger.shown();
    shown["secretGenerated"] = matches!(secret, SecretChoice::Generated(_)).into();
    store_secret(&hub, trigger, &context, secret, change, shown).await
}

/// What leaves the server is the owner's to decide, as with webhooks of knowledge; and a link to an approval decides it.
fn may_notify(args: &Args, context: &Context) -> Result<(), Fault> {
    if let Some(name) =
        ["workflowId", "inputs", "version", "revision"].iter().find(|name| args.get(name).is_some())
    {
        let path = format!("/{name}");
        return Err(wrong(&path, "a trigger that notifies starts no workflow"));
    }
    match context.principal.has(AccessRole::Owner) {
        true => Ok(()),
        false => Err(Fault::new(Code::Unauthorized, "a trigger with notify needs the role owner")
            .with("reason", "role_missing")
            .with("roles", ["owner"].as_slice())),
    }
}

/// The revision that it starts: the one that is named, or the newest.
async fn definition(hub: &Hub, args: &Args, tenant: &str) -> Result<StoredDefinition, Fault> {
    let id = args.text("workflowId").unwrap_or_default();
    match (args.get("revision").and_then(Value::as_i64), args.text("version")) {
        (Some(revision), Some(version)) => {
            stored::pinned_with_version(hub, tenant, id, (revision, version)).await
        }
        (Some(revision), None) => stored::pinned(hub, tenant, id, revision).await,
        (None, version) => stored::find(hub, tenant, id, version).await,
    }
}

/// The list of a batch goes to an input that the workflow declares.
fn check_batch(definition: &StoredDefinition, spec: &TriggerSpec) -> Result<(), Fault> {
    let batch = spec.webhook.as_ref().and_then(|webhook| webhook.batch.as_ref());
    let Some(batch) = batch else { return Ok(()) };
    let workflow = &definition.workflow;
    match crate::runtime::inputs::is_declared(workflow, &batch.input) {
        true => Ok(()),
        false => Err(wrong(
            "/webhook/batch/input",
            format!("the workflow \"{}\" declares no input \"{}\"", workflow.id, batch.input),
        )),
    }
}

/// Where the secret of a webhook trigger comes from.
enum SecretChoice {
    /// Made by the face, which shows it once.
    Generated(SecretText),
    Given(SecretText),
    Named(String),
    /// The one that it has.
    Kept,
    /// It is no webhook trigger.
    None,
}

impl SecretChoice {
    fn name(&self) -> Option<String> {
        match self {
            SecretChoice::Named(name) => Some(name.clone()),
            SecretChoice::Generated(_) | SecretChoice::Given(_) | SecretChoice::Kept | SecretChoice::None => {
                None
            }
        }
    }
}

/// A member of the arguments as what it stands for.
fn member<T: serde::de::DeserializeOwned>(args: &Args, name: &str) -> Result<Option<T>, Fault> {
    let value = args.get(name).cloned();
    value.map(serde_json::from_value).transpose().map_err(|error| wrong(&format!("/{name}"), error))
}

/// Where an event trigger reads on: one that is stored again goes on in the feed that it follows, a new one begins now.
async fn cursor(
    hub: &Hub,
    context: &Context,
    trigger: &Trigger,
    before: Option<&Trigger>,
) -> Result<i64, Fault> {
    let origin = trigger.spec.origin();
    // Whoever stores it must be allowed to read what it follows.
    let beginning = event_feeds::beginning(hub, &context.principal, &origin).await?;
    let goes_on = |before: &&Trigger| {
        before.spec.follows() && before.paused.is_none() && before.spec.origin() == origin
    };
    Ok(before.filter(goes_on).map_or(beginning, |before| before.cursor))
}

fn secret_of(hub: &Hub, args: &Args, tenant: &str, before: Option<&Trigger>) -> Result<SecretChoice, Fault> {
    let form = "give {\"generate\": true}, {\"value\": …} or {\"name\": …}";
    let generated = || {
        let made = args.text(CANDIDATE).map(SecretText::new).map(SecretChoice::Generated);
        made.ok_or_else(|| wrong("/secret", "no secret was given"))
    };
    let Some(secret) = args.get("secret").filter(|secret| !secret.is_null()) else {
        return match before {
            Some(before) if before.spec.webhook.is_some() || before.spec.notify.is_some() => {
                let name = before.spec.secret_name().map(str::to_owned);
                Ok(name.map_or(SecretChoice::Kept, SecretChoice::Named))
            }
            Some(_) | None => generated(),
        };
    };
    let members: Vec<(&String, &Value)> = secret.as_object().into_iter().flatten().collect();
    match members.as_slice() {
        [(name, Value::Bool(true))] if *name == "generate" => generated(),
        [(name, Value::String(value))] if *name == "value" => {
            let fits = value.chars().take(VALUE_MIN_CHARACTERS).count() >= VALUE_MIN_CHARACTERS
                && value.len() <= VALUE_MAX_BYTES
                && !value.contains('\0');
            match fits {
                true => Ok(SecretChoice::Given(SecretText::new(value.as_str()))),
                false => Err(wrong(
                    "/secret/value",
                    format!("has {VALUE_MIN_CHARACTERS} characters to {VALUE_MAX_BYTES} bytes"),
                )),
            }
        }
        [(name, Value::String(value))] if *name == "name" => match hub.vault().has(tenant, value) {
            true => Ok(SecretChoice::Named(value.clone())),
            false => Err(wrong("/secret/name", format!("there is no secret named '{value}'"))),
        },
        _ => Err(wrong("/secret", form)),
    }
}

/// Stores the trigger with its secret, which is kept in the vault only.
async fn store_secret(
    hub: &Hub,
    trigger: Trigger,
    context: &Context,
    secret: SecretChoice,
    mut change: Batch,
    shown: Value,
) -> Result<Reply, Halt> {
    let vault: SecretVault = hub.vault().clone();
    let value = match secret {
        SecretChoice::Generated(value) | SecretChoice::Given(value) => value,
        SecretChoice::Kept => return Ok(noted(hub, Reply::new(Output::json(shown), change), || ())),
        SecretChoice::Named(_) | SecretChoice::None => {
            change.then(vault.removal(RecordKind::Trigger, &trigger.tenant, &trigger.id));
            let forget = move || vault.forget(RecordKind::Trigger, &trigger.tenant, &trigger.id);
            return Ok(noted(hub, Reply::new(Output::json(shown), change), forget));
        }
    };
    let record = vault.draft(RecordKind::Trigger, &trigger.tenant, &trigger.id, &context.principal.name);
    change.then_one(vault.seal(&record, &value).await?);
    Ok(noted(hub, Reply::new(Output::json(shown), change), move || vault.remember(record, value)))
}

/// Tells those who follow events for triggers, once a change is durable.
fn noted(hub: &Hub, reply: Reply, then: impl FnOnce() + Send + 'static) -> Reply {
    let hub = hub.clone();
    reply.then(move || {
        then();
        hub.trigger_locks().note_change();
        hub.look_at_timers();
    })
}

async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let limit = page(&args, 100, PAGE);
    let after = args.text("cursor").unwrap_or_default();
    let mut found = triggers::list(&hub, tenant(&context), after, limit + 1).await?;
    let size = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > size;
    found.truncate(size);
    let next = found.last().filter(|_| more).map(|last| last.id.clone());
    let mut shown = Vec::new();
    for trigger in &found {
        shown.push(with_outbox(&hub, trigger).await?);
    }
    answer(json!({"triggers": shown, "nextCursor": next}))
}

async fn show(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let trigger = named(&hub, &args, &context).await?;
    answer(with_outbox(&hub, &trigger).await?)
}

/// With what waits to be sent and what was given up.
async fn with_outbox(hub: &Hub, trigger: &Trigger) -> Result<Value, Fault> {
    let mut shown = trigger.shown();
    if trigger.spec.notify.is_some() {
        let counts = notifications::tables::counts(&trigger.tenant, &trigger.id);
        let rows = hub.ports().store.query(counts).await.map_err(fault)?;
        if let Some(row) = rows.first() {
            shown["pending"] = row.int(0).map_err(fault)?.into();
            shown["failed"] = row.int(1).map_err(fault)?.into();
            shown["lastError"] = row.optional_text(2).map_err(fault)?.into();
        }
    }
    Ok(shown)
}

/// Sends again what was given up.
async fn redrive(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let trigger = named(&hub, &args, &context).await?;
    let shown = with_outbox(&hub, &trigger).await?;
    let mut effects = Batch::new();
    let now_ms = hub.ports().clock.now_ms();
    effects.then(notifications::tables::redrive(&trigger.tenant, &trigger.id, now_ms));
    let answer = json!({"id": trigger.id, "redriven": shown["failed"].as_i64().unwrap_or(0)});
    Ok(Reply::new(Output::json(answer), effects).then(move || hub.notifier().due.notify_one()))
}

async fn delete(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    // One that was changed in the data file can be deleted as well.
    let trigger = triggers::find(&hub, tenant(&context), args.text("id").unwrap_or_default()).await?;
    let vault = hub.vault().clone();
    let mut effects = Batch::new();
    triggers::delete(&trigger, &mut effects);
    effects.then(vault.removal(RecordKind::Trigger, &trigger.tenant, &trigger.id));
    let answer = json!({"id": trigger.id, "deleted": true, "pendingDropped": trigger.pending});
    let locks = hub.clone();
    Ok(noted(&hub, Reply::new(Output::json(answer), effects), move || {
        vault.forget(RecordKind::Trigger, &trigger.tenant, &trigger.id);
        locks.trigger_locks().forget(&trigger.tenant, &trigger.id);
    }))
}

async fn pause(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    switch(hub, &args, &context, Some(BY_REQUEST.to_owned())).await
}

async fn resume(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    switch(hub, &args, &context, None).await
}

async fn switch(hub: Hub, args: &Args, context: &Context, paused: Option<String>) -> Result<Reply, Halt> {
    let mut trigger = named(&hub, args, context).await?;
    if trigger.paused.is_some() && paused.is_none() {
        // What happened while it was paused was not missed: it goes on from now. Messages wait in their inbox.
        let beginning = event_feeds::beginning(&hub, &context.principal, &trigger.spec.origin()).await?;
        trigger.cursor = trigger.cursor.max(beginning);
    }
    trigger.paused = paused;
    let mut change = Batch::new();
    change.then_one(triggers::switch(&hub, &trigger)?);
    Ok(noted(&hub, Reply::new(Output::json(trigger.shown()), change), || ()))
}
