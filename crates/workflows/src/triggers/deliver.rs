//! One delivery to a webhook trigger: proven by its signature, recognised when it comes again, and durable before it is
//! acknowledged.

use orchestr8_contract::{Code, Fault, canonical};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::log;
use orchestr8_kernel::ports::store::{Batch, Link};
use orchestr8_outbound::{is_signature, is_timed_signature};
use orchestr8_secrets::{RecordKind, SecretText, SecretUse, Sink};
use serde_json::{Map, Value, json};

use super::mapping::{self, TriggerScope, TriggerSource};
use super::spec::{Batching, Debounce, SignatureScheme, WebhookSpec};
use super::tables::{self, DeliveryCount};
use super::{Trigger, look_up, stop};
use crate::limits;
use crate::runtime::{Hub, fault, inputs};
use crate::stored;

/// What a sender sent.
pub struct HookDelivery {
    /// The id of the trigger.
    pub name: String,
    /// As it was signed.
    pub body: String,
    /// By name in lower case, with `_` for `-`.
    pub headers: Map<String, Value>,
    pub query: Map<String, Value>,
    /// `X-Orchestr8-Signature-V1`.
    pub timed_signature: Option<String>,
    /// `X-Hub-Signature-256`.
    pub hub_signature: Option<String>,
}

/// The headers that name a delivery, in the order in which they are looked for.
const DELIVERY_IDS: [&str; 4] =
    ["x_orchestr8_delivery", "x_github_delivery", "webhook_id", "idempotency_key"];

/// Stands for the secret of a trigger that does not exist, so that both take the same time.
const NO_SECRET: &str = "no trigger has this name, and the answer takes as long";

impl HookDelivery {
    /// As expressions see it: the body is JSON, or else its text.
    fn value(&self) -> Value {
        let body = serde_json::from_str(&self.body).unwrap_or_else(|_| Value::from(self.body.as_str()));
        json!({"body": body, "headers": self.headers, "query": self.query})
    }

    fn is_signed(&self, scheme: SignatureScheme, secret: &str, now_ms: i64) -> bool {
        let timed = || {
            let header = self.timed_signature.as_deref();
            header.is_some_and(|header| {
                is_timed_signature(header, secret, &self.body, now_ms, limits::SIGNATURE_AGE_MS)
            })
        };
        let github = || {
            let header = self.hub_signature.as_deref();
            header.is_some_and(|header| is_signature(header, secret, &self.body))
        };
        match scheme {
            SignatureScheme::Timed => timed(),
            SignatureScheme::Github => github(),
            // A sender that signs the time is held to it.
            SignatureScheme::Any if self.timed_signature.is_some() => timed(),
            SignatureScheme::Any => github(),
        }
    }

    /// What was signed: a request that is sent again has the same, whatever its headers say.
    fn signed_hash(&self, scheme: SignatureScheme) -> String {
        let time = match scheme {
            SignatureScheme::Github => None,
            SignatureScheme::Any | SignatureScheme::Timed => self.timed_signature.as_deref(),
        };
        let time = time
            .and_then(|header| header.split(',').find_map(|member| member.trim_ascii().strip_prefix("t=")));
        canonical::sha256_hex_of(&format!("{}.{}", time.unwrap_or_default(), self.body))
    }
}

/// Takes a delivery in. What is answered is durable.
pub async fn deliver(hub: &Hub, tenant: &str, delivery: &HookDelivery) -> Result<Value, Fault> {
    let trigger = authenticate(hub, tenant, delivery).await?;
    let max_per_minute = trigger.spec.webhook.as_ref().and_then(|webhook| webhook.max_per_minute);
    let now_ms = hub.ports().clock.now_ms();
    let limit = max_per_minute.unwrap_or(limits::DELIVERIES_PER_MINUTE);
    if !hub.trigger_locks().count(tenant, &trigger.id, limit, now_ms) {
        return Err(refused("rate", format!("{limit} deliveries came within a minute; send it again later")));
    }
    let _turn = hub.trigger_locks().lock(tenant, &trigger.id).await;
    // Others may have been taken in meanwhile.
    let trigger = look_up(hub, tenant, &trigger.id).await?.ok_or_else(unknown)?;
    let webhook = trigger.spec.webhook.as_ref().ok_or_else(unknown)?;
    if trigger.paused.is_some() || stop::stop_unfit(hub, &trigger).await? {
        let what = "the trigger is paused and starts nothing";
        return Err(Fault::new(Code::StateConflict, what).with("reason", "paused"));
    }
    let value = delivery.value();
    let incoming = TriggerScope { source: TriggerSource::Hook, value: &value };
    let turn = Turn { hub, trigger: &trigger, now_ms, keys: keys(webhook, delivery, &incoming)? };
    if let Some(execution) = turn.duplicate_of().await? {
        return turn.count_duplicate(execution).await;
    }
    let remembered = turn.remembered().await?;
    let template = mapping::inputs(trigger.spec.inputs.as_ref(), TriggerSource::Hook)?;
    let inputs = mapping::resolve(&template, &incoming)?;
    match (&webhook.batch, webhook.debounce) {
        (Some(batch), _) => turn.add_to_batch(batch, inputs, remembered).await,
        (None, Some(debounce)) => turn.debounce(debounce, inputs, remembered).await,
        (None, None) => turn.start(inputs, remembered).await,
    }
}

/// The trigger that a delivery proves to know. Names that do not exist and wrong signatures get the same answer.
async fn authenticate(hub: &Hub, tenant: &str, delivery: &HookDelivery) -> Result<Trigger, Fault> {
    let trigger = look_up(hub, tenant, &delivery.name).await?;
    let webhook = trigger.as_ref().and_then(|trigger| Some((trigger, trigger.spec.webhook.as_ref()?)));
    let secret =
        webhook.and_then(|(trigger, webhook)| secret_of(hub, trigger, webhook.secret_name.as_deref()));
    let scheme = webhook.map_or(SignatureScheme::Any, |(_, webhook)| webhook.signature);
    let known = secret.is_some();
    let secret = secret.unwrap_or_else(|| SecretText::new(NO_SECRET));
    let is_signed = delivery.is_signed(scheme, secret.expose(), hub.ports().clock.now_ms());
    trigger.filter(|_| known && is_signed).ok_or_else(unknown)
}

fn unknown() -> Fault {
    Fault::new(
        Code::Unauthenticated,
        "no trigger takes this request: its name, its signature or the time of its signature is wrong",
    )
}

/// The secret of a trigger, unless it is gone or the vault is locked.
pub fn secret_of(hub: &Hub, trigger: &Trigger, name: Option<&str>) -> Option<SecretText> {
    let Some(name) = name else {
        return hub.vault().internal(RecordKind::Trigger, &trigger.tenant, &trigger.id);
    };
    let sink = Sink::Trigger { id: trigger.id.clone() };
    let usage =
        SecretUse { tenant: &trigger.tenant, name, workflow: None, hash: None, agent: None, sink: &sink };
    let revealed = hub.vault().reveal(&usage);
    if let Err(cause) = &revealed {
        let fields = json!({"triggerId": trigger.id, "error": log::error(cause)});
        hub.ports().log.warn("the secret of a trigger cannot be used", fields);
    }
    revealed.ok()
}

/// By what a delivery is recognised: its key, and what was signed.
struct Keys {
    own: String,
    own_until_ms: i64,
    signed: String,
}

fn keys(webhook: &WebhookSpec, delivery: &HookDelivery, incoming: &TriggerScope<'_>) -> Result<Keys, Fault> {
    let id = || DELIVERY_IDS.iter().find_map(|name| delivery.headers.get(*name)?.as_str());
    let own = match (&webhook.deduplication.key, id()) {
        (Some(text), _) => format!("k:{}", mapping::resolve_key(text, incoming)?),
        (None, Some(id)) => format!("d:{}", canonical::sha256_hex_of(id)),
        (None, None) => format!("b:{}", canonical::sha256_hex_of(&delivery.body)),
    };
    let signed = format!("s:{}", delivery.signed_hash(webhook.signature));
    Ok(Keys { own, own_until_ms: webhook.deduplication.window_ms, signed })
}

/// One delivery while no other of its trigger is taken in.
struct Turn<'t> {
    hub: &'t Hub,
    trigger: &'t Trigger,
    now_ms: i64,
    keys: Keys,
}

/// Rows that remember one delivery.
const KEYS_EACH: i64 = 2;

impl Turn<'_> {
    /// Some: it came before; inside, the execution that it started.
    async fn duplicate_of(&self) -> Result<Option<Option<String>>, Fault> {
        let Trigger { tenant, id, .. } = self.trigger;
        let keys = [self.keys.own.as_str(), self.keys.signed.as_str()];
        let known = tables::known_key(tenant, id, keys, self.now_ms);
        let rows = self.hub.ports().store.query(known).await.map_err(fault)?;
        let execution = |row: &orchestr8_kernel::ports::store::Row| {
            row.optional_text(1).map(|execution| execution.map(str::to_owned)).map_err(fault)
        };
        rows.first().map(execution).transpose()
    }

    async fn count_duplicate(&self, execution: Option<String>) -> Result<Value, Fault> {
        let mut batch = Batch::new();
        let counted = DeliveryCount { duplicates: 1, ..self.unchanged() };
        batch.then_one(tables::count(self.trigger, &counted));
        self.commit(batch).await?;
        Ok(json!({"accepted": true, "duplicate": true, "executionId": execution}))
    }

    fn unchanged(&self) -> DeliveryCount<'static> {
        DeliveryCount {
            duplicates: 0,
            started: 0,
            remembered: self.trigger.remembered,
            pending: self.trigger.pending,
            due_ms: self.trigger.due_ms,
            since_ms: self.trigger.since_ms,
            last_ms: self.now_ms,
            execution: None,
        }
    }

    /// How many keys are remembered with those of this delivery. Nothing that is remembered is evicted.
    async fn remembered(&self) -> Result<i64, Fault> {
        let wanted = self.trigger.remembered + KEYS_EACH;
        if wanted <= limits::DEDUPLICATION_KEYS {
            return Ok(wanted);
        }
        let Trigger { tenant, id, .. } = self.trigger;
        let count = tables::keys_count(tenant, id, self.now_ms);
        let rows = self.hub.ports().store.query(count).await.map_err(fault)?;
        let wanted = rows.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)? + KEYS_EACH;
        match wanted <= limits::DEDUPLICATION_KEYS {
            true => Ok(wanted),
            false => Err(refused(
                "deliveries_remembered",
                "so many deliveries are remembered that no other can be; shorten deduplication.windowMs",
            )),
        }
    }

    /// Starts an execution in the commit that remembers the delivery.
    async fn start(&self, inputs: Map<String, Value>, remembered: i64) -> Result<Value, Fault> {
        let mut accepted = self.hub.accept(self.trigger.request(self.hub, inputs).await?)?;
        let mut batch = std::mem::take(&mut accepted.batch);
        batch.link(started(self.trigger, &accepted.id, 1, self.now_ms));
        self.remember(&mut batch, Some(&accepted.id));
        let counted =
            DeliveryCount { started: 1, remembered, execution: Some(&accepted.id), ..self.unchanged() };
        batch.then_one(tables::count(self.trigger, &counted));
        self.commit(batch).await?;
        let answer = json!({"accepted": true, "duplicate": false, "executionId": accepted.id});
        self.hub.launch(accepted);
        Ok(answer)
    }

    /// Puts it in the place of the one that waits, for which more time begins.
    async fn debounce(
        &self,
        debounce: Debounce,
        inputs: Map<String, Value>,
        remembered: i64,
    ) -> Result<Value, Fault> {
        self.check(&inputs).await?;
        let Trigger { tenant, id, .. } = self.trigger;
        let since_ms = self.trigger.since_ms.unwrap_or(self.now_ms);
        let quiet_ms = self.now_ms.saturating_add(debounce.quiet_ms);
        let due_ms = debounce.max_wait_ms.map_or(quiet_ms, |max_ms| quiet_ms.min(since_ms + max_ms));
        let mut batch = Batch::new();
        batch.then(tables::pending_delete(tenant, id, i64::MAX));
        self.wait(
            batch,
            inputs,
            DeliveryCount {
                remembered,
                pending: 1,
                due_ms: Some(due_ms),
                since_ms: Some(since_ms),
                ..self.unchanged()
            },
        )
        .await
    }

    async fn add_to_batch(
        &self,
        batching: &Batching,
        inputs: Map<String, Value>,
        remembered: i64,
    ) -> Result<Value, Fault> {
        if self.trigger.pending >= limits::PENDING_DELIVERIES {
            let most = limits::PENDING_DELIVERIES;
            return Err(refused(
                "deliveries_pending",
                format!("{most} deliveries wait; send it again later"),
            ));
        }
        let item = Value::Object(inputs.clone());
        self.check(&Map::from_iter([(batching.input.clone(), json!([item]))])).await?;
        let since_ms = self.trigger.since_ms.unwrap_or(self.now_ms);
        let pending = self.trigger.pending + 1;
        let due_ms = match pending >= batching.size {
            true => self.now_ms,
            false => since_ms.saturating_add(batching.window_ms),
        };
        self.wait(
            Batch::new(),
            inputs,
            DeliveryCount {
                remembered,
                pending,
                due_ms: Some(due_ms),
                since_ms: Some(since_ms),
                ..self.unchanged()
            },
        )
        .await
    }

    async fn wait(
        &self,
        mut batch: Batch,
        inputs: Map<String, Value>,
        counted: DeliveryCount<'static>,
    ) -> Result<Value, Fault> {
        let Trigger { tenant, id, .. } = self.trigger;
        let text = Value::Object(inputs).to_string();
        batch.then(tables::pending_insert(tenant, id, self.now_ms, text));
        self.remember(&mut batch, None);
        batch.then_one(tables::count(self.trigger, &counted));
        self.commit(batch).await?;
        self.hub.look_at_timers();
        Ok(json!({"accepted": true, "duplicate": false, "pending": counted.pending}))
    }

    /// Refuses inputs that the execution would refuse later, when no sender hears of it.
    async fn check(&self, inputs: &Map<String, Value>) -> Result<(), Fault> {
        let Trigger { tenant, spec, .. } = self.trigger;
        let definition = stored::pinned(self.hub, tenant, &spec.workflow_id, spec.revision).await?;
        inputs::check(&definition.workflow, inputs)
    }

    fn remember(&self, batch: &mut Batch, execution: Option<&str>) {
        let Trigger { tenant, id, .. } = self.trigger;
        let own_until_ms = self.now_ms.saturating_add(self.keys.own_until_ms);
        // A signature with a time is refused by its age afterwards.
        let signed_until_ms = own_until_ms.max(self.now_ms + 2 * limits::SIGNATURE_AGE_MS);
        for (key, until_ms) in [(&self.keys.own, own_until_ms), (&self.keys.signed, signed_until_ms)] {
            batch.then_one(tables::key_insert((tenant, id), key, (self.now_ms, until_ms), execution));
        }
    }

    async fn commit(&self, batch: Batch) -> Result<(), Fault> {
        self.hub.ports().store.commit(batch).await.map_err(fault)
    }
}

/// The audit entry of a start.
pub(super) fn started(trigger: &Trigger, execution: &str, deliveries: usize, now_ms: i64) -> Link {
    let change = StateChange {
        principal: &trigger.spec.author.name,
        detail: json!({"triggerId": trigger.id, "deliveries": deliveries}),
        ..StateChange::by_server("triggers.fire", &trigger.tenant, Some(execution))
    };
    change.link(now_ms)
}

fn refused(reason: &'static str, what: impl Into<std::borrow::Cow<'static, str>>) -> Fault {
    Fault::new(Code::ResourceExhausted, what).with("reason", reason)
}
