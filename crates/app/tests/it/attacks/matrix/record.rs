//! What is left of an attack: the state of the tenant, which must not have changed, and the refusals in the audit trail.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::callers::{Caller, Kind};
use super::objects::Objects;
use super::recipe::Recipe;
use super::wire::{Request, Verdict, Wire, get};

/// The answers to everything that lists or shows something of the tenant, as its owner sees them.
pub struct Snapshot(BTreeMap<String, Value>);

/// Members that change when something is only looked at.
const VOLATILE: [&str; 6] =
    ["lastUsedAt", "lastSeenAt", "correlationId", "timestamp", "last_seen_at", "duration"];

impl Snapshot {
    pub fn take(objects: &Objects) -> Self {
        let lists = [
            "/v1/workflows",
            "/v1/executions?limit=500",
            "/v1/schedules",
            "/v1/approvals",
            "/v1/tokens",
            "/v1/secrets",
            "/documents",
            "/documents?deleted=true",
            "/webhooks",
            "/admin/keys",
            "/aacp/agents",
            "/aacp/pairs",
            "/aacp/requests",
            "/mcp/heartbeat",
        ];
        let commands = [json!({"type": "list_sessions"})];
        let tools = Request::Mcp { method: "tools/list", params: json!({}) };
        let one_by_one = [
            get(format!("/v1/executions/{}", objects.execution())),
            get(format!("/v1/executions/{}/journal", objects.execution())),
            get(format!("/v1/workflows/{}", objects.workflow())),
            get(format!("/v1/schedules/{}", objects.schedule())),
            get(format!("/documents/{}?full=true", objects.document())),
            get(format!("/aacp/agents/{}/inbox", objects.agent())),
            Request::Command(json!({"type": "get_messages", "sessionId": objects.session()})),
            Request::Command(json!({"type": "get_state", "sessionId": objects.session()})),
            tools,
        ];
        let requests = lists.into_iter().map(get).chain(commands.map(Request::Command)).chain(one_by_one);
        Self(requests.map(|request| (format!("{request:?}"), steady(shown(objects.own(&request))))).collect())
    }

    pub fn differences(&self, before: &Snapshot) -> Vec<String> {
        let changed = self.0.iter().filter(|(request, now)| before.0.get(*request) != Some(now));
        changed.map(|(request, now)| format!("{request}: {} became {now}", before.0[request])).collect()
    }
}

/// What was asked for, without the id of the question.
fn shown(mut said: Value) -> Value {
    if let Some(members) = said
        .as_object_mut()
        .filter(|members| members.contains_key("jsonrpc") || members.contains_key("command"))
    {
        members.remove("id");
    }
    said
}

fn steady(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            members.values_mut().for_each(|member| *member = steady(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = steady(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

/// How often each principal was refused each action.
#[derive(Default)]
pub struct Refusals(BTreeMap<(String, String), usize>);

impl Refusals {
    pub fn count(&mut self, caller: &Caller, recipe: &Recipe) {
        // Others are refused more often than the audit trail has entries for one principal.
        if matches!(caller.kind, Kind::Role(_)) {
            let action = match (recipe.action.as_str(), caller.kind) {
                // They administer their tenant, and claim the machine.
                ("server.objectives", Kind::Role("admin" | "owner")) => "auth.claim",
                ("server.objectives", _) => "keys.manage",
                (action, _) => recipe.audited_as.unwrap_or(action),
            };
            let action = action.to_owned();
            *self.0.entry((caller.name.clone(), action)).or_default() += 1;
        }
    }

    /// The refusals that the audit trail does not have.
    pub fn missing(&self, address: SocketAddr) -> Vec<String> {
        let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
        for entry in refused(address) {
            let text = |member: &str| entry[member].as_str().unwrap_or_default().to_owned();
            *found.entry((text("principal"), text("action"))).or_default() += 1;
        }
        let lacks =
            |(key, count): &(&(String, String), &usize)| found.get(*key).copied().unwrap_or(0) < **count;
        self.0
            .iter()
            .filter(lacks)
            .map(|(key, count)| format!("{key:?}: {count} refusals, {:?}", found.get(key)))
            .collect()
    }
}

/// The audit trail holds so many refusals of one principal in a minute, and counts the rest.
const BUDGET: usize = 60;

/// A principal that is refused all the time is in the audit trail, and does not fill it.
pub fn check_budget(address: SocketAddr, principal: &str) {
    let entries = refused(address).iter().filter(|entry| entry["principal"] == principal).count();
    assert!((BUDGET..=2 * BUDGET).contains(&entries), "{entries} entries of {principal}");
}

/// Uses of a revoked token are failed logins, for those who run the machine to see.
pub fn check_failed_logins(address: SocketAddr) {
    let failed = Wire::new(address, "root").ask(&get("/v1/audit?action=auth.login&limit=5"));
    assert!(failed.text.contains("UNAUTHENTICATED"), "{}", failed.text);
}

/// Every entry of a refusal, as an admin of the tenant reads them.
pub fn refused(address: SocketAddr) -> Vec<Value> {
    let (mut admin, mut entries, mut cursor) = (Wire::new(address, "admin"), Vec::new(), String::new());
    loop {
        let reply = admin.ask(&get(format!("/v1/audit?limit=500{cursor}")));
        assert_eq!(reply.verdict, Verdict::Done, "{}", reply.text);
        let page: Value = serde_json::from_str(&reply.text).unwrap();
        let page_entries = page["entries"].as_array().cloned().unwrap_or_default();
        // An action that found by itself that the caller has no right ended with that; others never began.
        let is_refusal = |entry: &Value| entry["end"] == "refused" || entry["errorCode"] == "UNAUTHORIZED";
        entries.extend(page_entries.into_iter().filter(is_refusal));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return entries,
        }
    }
}
