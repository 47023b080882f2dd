//! Notifications: a signed request to an address of the tenant's owner when an execution fails, asks for an approval or has spent its
//! budget. What is to be told is in an outbox in the commit that moves past the event, and is sent until the other side takes it.

mod deliver;
pub mod tables;

use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_outbound::{Allowed, Client, Guard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::agents::settings::Http;
use crate::definition::model::{Child, Kind, Which};
use crate::definition::{Problem, Workflow};
use crate::limits;
use crate::runtime::{Hub, fault, load, tables as runtime_tables};
use crate::triggers::spec::wrong;
use crate::triggers::{Trigger, look_up};

pub use deliver::run;

/// What a notification trigger says: what it always tells of, and which definitions may name it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotifySpec {
    pub url: String,
    /// What it tells of, whatever definitions say; none: only of what they name it for.
    pub on: Vec<NotifyOn>,
    /// The ids of the workflows it is about; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<String>,
    /// The name of the secret that signs; none: the trigger has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyOn {
    Failed,
    Approval,
    Budget,
}

/// What a definition says: tell a trigger with `notify` of these events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyRule {
    /// The id of the trigger.
    pub to: Arc<str>,
    pub on: Vec<NotifyOn>,
}

impl NotifyOn {
    pub const ALL: [NotifyOn; 3] = [NotifyOn::Failed, NotifyOn::Approval, NotifyOn::Budget];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|on| on.as_str() == word)
    }

    fn as_str(self) -> &'static str {
        match self {
            NotifyOn::Failed => "failed",
            NotifyOn::Approval => "approval",
            NotifyOn::Budget => "budget",
        }
    }

    /// What an event of the feed means, if it is one of these.
    fn of(event: &Value) -> Option<Self> {
        match event["entry"].as_str()? {
            "execution-failed" if event["type"] == "workflow.failed" => Some(NotifyOn::Failed),
            "execution-compensated" if event["data"]["cause"] != "cancelled" => Some(NotifyOn::Failed),
            "execution-paused" if event["data"]["budget"] == true => Some(NotifyOn::Budget),
            "step-waiting" => Some(NotifyOn::Approval),
            _ => None,
        }
    }

    fn event(self) -> &'static str {
        match self {
            NotifyOn::Failed => "execution.failed",
            NotifyOn::Approval => "approval.requested",
            NotifyOn::Budget => "budget.spent",
        }
    }
}

impl NotifySpec {
    pub fn check(&self, hub: &Hub) -> Result<(), Fault> {
        let url = reqwest::Url::parse(&self.url);
        let url = url.map_err(|_| wrong("/notify/url", "is not an absolute address"))?;
        hub.notifier().guard.check_url(&url)
    }

    fn is_about(&self, workflow: &str) -> bool {
        self.workflows.is_empty() || self.workflows.iter().any(|id| id == workflow)
    }
}

/// What sends notifications.
pub struct Notifier {
    client: Client,
    guard: Arc<Guard>,
    pub(crate) due: Notify,
}

impl Notifier {
    /// It reaches what `@orchestr8/http` may reach.
    pub fn new(http: &Http) -> Self {
        let allowed = Allowed {
            hosts: http.allowed_hosts.clone(),
            private: http.allow_private,
            setting: "workflows.http",
        };
        let guard = Arc::new(Guard::new(&allowed));
        Self { client: Client::guarded(guard.clone()), guard, due: Notify::new() }
    }
}

/// Puts what an event is to tell into the outbox. False: the outbox is full, so the event waits.
pub async fn enqueue(
    hub: &Hub,
    trigger: &Trigger,
    spec: &NotifySpec,
    event: &Value,
    number: i64,
) -> Result<bool, Fault> {
    let Some(on) = NotifyOn::of(event) else { return Ok(true) };
    let is_about = spec.is_about(event["workflowId"].as_str().unwrap_or_default());
    let is_told = (is_about && spec.on.contains(&on)) || is_named(hub, trigger, spec, event, on).await?;
    if !is_told {
        return Ok(true);
    }
    let mut body = json!({"event": on.event(), "executionId": event["executionId"], "workflowId": event["workflowId"],
                          "at": event["timestamp"]});
    match on {
        NotifyOn::Failed => body["code"] = event["data"]["code"].clone(),
        NotifyOn::Budget => {}
        NotifyOn::Approval => match approval(hub, trigger, event).await? {
            Some(asked) => body["approval"] = asked,
            // A step that waits for something else, or what was asked is decided.
            None => return Ok(true),
        },
    }
    let counts =
        hub.ports().store.query(tables::counts(&trigger.tenant, &trigger.id)).await.map_err(fault)?;
    let waiting = counts.first().map_or(Ok(0), |row| row.int(0)).map_err(fault)?;
    if waiting >= limits::NOTIFICATIONS_WAITING {
        return Ok(false);
    }
    let (now_ms, id) = (hub.ports().clock.now_ms(), hub.ports().ids.fresh(For::Record).to_string());
    body["id"] = id.as_str().into();
    let mut batch = Batch::new();
    batch.then(tables::insert(trigger, &id, on.event(), body.to_string(), now_ms));
    batch.then_one(tables::told(trigger, number, now_ms));
    hub.ports().store.commit(batch).await.map_err(fault)?;
    hub.notifier().due.notify_one();
    Ok(true)
}

/// Whether the definition of the execution, or of one that waits for it, wants this trigger to tell of the event.
async fn is_named(
    hub: &Hub,
    trigger: &Trigger,
    spec: &NotifySpec,
    event: &Value,
    on: NotifyOn,
) -> Result<bool, Fault> {
    let mut next = event["executionId"].as_str().map(Arc::<str>::from);
    while let Some(id) = next {
        let Some(row) = load::find(hub, &trigger.tenant, &id).await? else { return Ok(false) };
        let workflow = load::seed(hub, &row).await?.identity.workflow.clone();
        let names = |rule: &NotifyRule| *rule.to == *trigger.id && rule.on.contains(&on);
        if spec.is_about(&workflow.id) && workflow.policies.notify.iter().any(names) {
            return Ok(true);
        }
        next = match on {
            // The failure of a child is told by its parent, if that fails too.
            NotifyOn::Failed => None,
            NotifyOn::Approval | NotifyOn::Budget => {
                row.given.parent.as_ref().filter(|parent| !parent.detached).map(|parent| parent.id.clone())
            }
        };
    }
    Ok(false)
}

/// The problems of a definition, or of one inside it, that names triggers which notify no address.
pub async fn unknown_names(hub: &Hub, tenant: &str, workflow: &Workflow) -> Result<Vec<Problem>, Fault> {
    let (mut problems, mut rules) = (Vec::new(), Vec::new());
    collect_rules(workflow, "$", &mut rules);
    for (path, rule) in rules {
        let trigger = look_up(hub, tenant, &rule.to).await?;
        if trigger.is_none_or(|trigger| trigger.spec.notify.is_none()) {
            problems.push(Problem::new(
                format!("{path}.to"),
                Code::InvalidWorkflow,
                format!("there is no trigger with notify named '{}'", rule.to),
                String::from("Run \"orchestr8 triggers list\", or let an owner store one with orchestr8 triggers apply."),
            ));
        }
    }
    Ok(problems)
}

fn collect_rules<'w>(workflow: &'w Workflow, at: &str, rules: &mut Vec<(String, &'w NotifyRule)>) {
    let own = workflow.policies.notify.iter().enumerate();
    rules.extend(own.map(|(place, rule)| (format!("{at}.policies.notify[{place}]"), rule)));
    for (place, step) in workflow.steps.iter().enumerate() {
        if let Kind::Workflow(Child { which: Which::Inline(inner), .. }) = &step.kind {
            collect_rules(inner, &format!("{at}.{}.workflow", workflow.path(place)), rules);
        }
    }
}

/// What is asked, with the link that decides if the author may decide. The question itself may hold values, and is left out.
async fn approval(hub: &Hub, trigger: &Trigger, event: &Value) -> Result<Option<Value>, Fault> {
    let (tenant, execution) = (trigger.tenant.as_str(), event["executionId"].as_str());
    let open = runtime_tables::approvals_open(tenant, execution, limits::PAGE);
    for row in hub.ports().store.query(open).await.map_err(fault)? {
        let ask: Value = serde_json::from_str(row.text(3).map_err(fault)?).unwrap_or_default();
        if ask["stepId"] == event["stepId"] {
            let token = row.text(0).map_err(fault)?;
            let link = trigger.may_decide(hub).then(|| format!("/v1/approvals/{token}"));
            return Ok(Some(json!({"stepId": ask["stepId"], "expiresAt": ask["expiresAt"], "url": link})));
        }
    }
    Ok(None)
}
