//! What requests are about: objects of the tenant under attack, with a canary in each.
//!
//! Attackers meet the shared ones, which must be the same afterwards. Callers with the right get fresh ones, so that every
//! request of theirs can succeed.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::content::{document, echo, envelope, key, secret, workflow};
use super::wire::{Request, Verdict, Wire, done, get, http, post};
use crate::program::PATIENCE;

/// In the content of every object of the tenant under attack, and in none of its ids.
pub const CANARY: &str = "canary-5d0c7e1b";

/// The tool that an admin of the tenant has registered for attackers to find.
pub const DYNAMIC_TOOL: &str = "dynamic";

/// The tenant under attack.
pub const TENANT: &str = "acme";

/// What the senders of deliveries sign with.
const HOOK_SECRET: &str = "a secret of the sender";

/// A task that a worker has leased.
#[derive(Debug, Clone)]
pub struct Leased {
    pub id: String,
    pub lease: String,
}

/// The ids of what exists once, for attackers.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    workflow: String,
    schedule: String,
    trigger: String,
    execution: String,
    approval: String,
    task: Option<Leased>,
    document: String,
    session: String,
    token: String,
    secret: String,
    key: String,
    webhook: String,
    agent: String,
    message: String,
    request: String,
    envelope: String,
    dynamic_tool: String,
}

pub struct Objects {
    owner: RefCell<Wire>,
    admin: RefCell<Wire>,
    /// The caller whose turn it is: its name, and the tenant it is in.
    pub caller: String,
    pub tenant: &'static str,
    /// None: every object is made for the caller.
    shared: Option<Shared>,
    /// Whether a request names an object.
    pub named: Cell<bool>,
    serial: Cell<u32>,
}

impl Objects {
    /// Makes the shared objects.
    pub fn new(address: SocketAddr) -> Self {
        let mut objects = Self {
            owner: RefCell::new(Wire::new(address, "owner")),
            admin: RefCell::new(Wire::new(address, "admin")),
            caller: String::from("owner"),
            tenant: TENANT,
            shared: None,
            named: Cell::new(false),
            serial: Cell::new(1000),
        };
        let tools = Request::Mcp { method: "tools/list", params: json!({}) };
        #[allow(clippy::disallowed_methods, reason = "a test that waits in vain must end")]
        let begun = std::time::Instant::now();
        while !objects.own(&tools).to_string().contains("up.echo") {
            assert!(begun.elapsed() < PATIENCE, "the other server is not up");
        }
        let task = objects.task();
        objects.shared = Some(Shared {
            workflow: objects.workflow(),
            schedule: objects.schedule(),
            trigger: objects.trigger(),
            execution: objects.execution(),
            approval: objects.approval(),
            task: Some(task),
            document: objects.document(),
            session: objects.session(),
            token: objects.token(),
            secret: objects.secret(),
            key: objects.key(),
            webhook: objects.webhook(),
            agent: objects.agent(),
            message: objects.message().0,
            request: objects.message().1,
            envelope: objects.envelope_request(),
            dynamic_tool: objects.register(String::from(DYNAMIC_TOOL)),
        });
        objects
    }

    /// For a caller: the shared objects, or fresh ones.
    pub fn turn(&mut self, caller: &str, tenant: &'static str) {
        self.caller = caller.to_owned();
        self.tenant = tenant;
        self.named.set(false);
    }

    /// Changes the shared objects as their owner does.
    pub fn touch(&self) {
        self.own(&http("POST", format!("/v1/executions/{}/pause", self.execution()), None));
        self.own(&Request::Command(
            json!({"type": "prompt", "sessionId": self.session(), "message": CANARY}),
        ));
        let edit = json!({"old_str": "wombat", "new_str": "wombats"});
        self.own(&http("PATCH", format!("/documents/{}", self.document()), Some(edit)));
    }

    /// Takes the shared objects away: from here on every request gets fresh ones.
    pub fn release(&mut self) -> Shared {
        self.shared.take().unwrap()
    }

    /// What callers put into what they make: a stranger that makes something has no canary of the tenant.
    pub fn mark(&self) -> &'static str {
        if self.tenant == TENANT { CANARY } else { "of-the-stranger" }
    }

    pub fn serial(&self) -> u32 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    pub fn fresh(&self, what: &str) -> String {
        format!("{what}-{}", self.serial())
    }

    pub fn uuid(&self) -> String {
        format!("018f0000-0000-7000-8000-{:012}", self.serial())
    }

    fn shared<T: Clone>(&self, pick: impl Fn(&Shared) -> &T) -> Option<T> {
        self.named.set(true);
        self.shared.as_ref().map(|shared| pick(shared).clone())
    }

    /// Asks as the owner, who must succeed.
    pub fn own(&self, request: &Request) -> Value {
        done(&mut self.owner.borrow_mut(), request)
    }

    pub fn workflow(&self) -> String {
        self.shared(|shared| &shared.workflow).unwrap_or_else(|| {
            let id = self.fresh("workflow");
            self.own(&http("PUT", "/v1/workflows", Some(json!({"workflow": echo(&id, CANARY)}))));
            id
        })
    }

    pub fn schedule(&self) -> String {
        self.shared(|shared| &shared.schedule).unwrap_or_else(|| {
            let (id, workflow) = (self.fresh("schedule"), self.fresh("scheduled"));
            self.own(&http("PUT", "/v1/workflows", Some(json!({"workflow": echo(&workflow, CANARY)}))));
            let body = json!({"workflowId": workflow, "cron": "0 3 1 1 *", "inputs": {"note": CANARY}});
            self.own(&http("PUT", format!("/v1/schedules/{id}"), Some(body)));
            id
        })
    }

    pub fn trigger(&self) -> String {
        self.shared(|shared| &shared.trigger).unwrap_or_else(|| {
            let (id, workflow) = (self.fresh("trigger"), self.fresh("triggered"));
            self.own(&http("PUT", "/v1/workflows", Some(json!({"workflow": echo(&workflow, CANARY)}))));
            let body = json!({"workflowId": workflow, "webhook": {}, "inputs": {}, "secret": {"value": HOOK_SECRET}});
            self.own(&http("PUT", format!("/v1/triggers/{id}"), Some(body)));
            id
        })
    }

    /// A delivery to a trigger: signed, unless it is an attacker's, who does not know the secret.
    pub fn delivery(&self) -> Request {
        let secret = if self.shared.is_some() { "a guess of an attacker" } else { HOOK_SECRET };
        let target = format!("/v1/hooks/{}.{TENANT}", self.trigger());
        let body = String::from("{}");
        let signature = orchestr8_outbound::signature(secret, &body).unwrap();
        Request::Delivery { target, body, signature }
    }

    fn waiting(&self, who: Value) -> String {
        let step = json!({"id": "ask", "approval": {"message": CANARY, "who": who}});
        let definition = workflow(&self.fresh("waiting"), json!([step]));
        let started = self.own(&post("/v1/workflows/execute", json!({"workflow": definition})));
        started["executionId"].as_str().unwrap().to_owned()
    }

    /// An execution that waits for a decision.
    pub fn execution(&self) -> String {
        self.shared(|shared| &shared.execution).unwrap_or_else(|| self.waiting(json!([self.caller])))
    }

    /// An execution that has failed, in its step `a`.
    pub fn failed(&self) -> String {
        self.shared(|shared| &shared.execution).unwrap_or_else(|| {
            let step = json!({"id": "a", "agentId": "@orchestr8/tool", "input": {"tool": "none"}});
            let definition = workflow(&self.fresh("failing"), json!([step]));
            let body = json!({"workflow": definition});
            let said = self.owner.borrow_mut().ask(&post("/v1/workflows/execute?mode=sync", body)).text;
            let said: Value = serde_json::from_str(&said).unwrap();
            said["executionId"].as_str().unwrap().to_owned()
        })
    }

    /// The path of an artifact: `execution/artifacts/id`.
    pub fn artifact(&self) -> String {
        if let Some(shared) = self.shared(|shared| &shared.execution) {
            return format!("{shared}/artifacts/none");
        }
        let step = json!({"id": "a", "agentId": "@orchestr8/echo", "input": {"n": 1}, "output": "artifact"});
        let body = json!({"workflow": workflow(&self.fresh("kept"), json!([step]))});
        let said = self.owner.borrow_mut().ask(&post("/v1/workflows/execute?mode=sync", body)).text;
        let said: Value = serde_json::from_str(&said).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        format!("{}/artifacts/{}", text(&said["executionId"]), text(&said["outputs"]["a"]["$artifact"]))
    }

    /// The token of an approval that the caller may decide.
    pub fn approval(&self) -> String {
        self.shared(|shared| &shared.approval).unwrap_or_else(|| {
            let id = self.waiting(json!([self.caller]));
            loop {
                let open = self.own(&get(format!("/v1/approvals?executionId={id}")));
                if let Some(token) = open["approvals"][0]["token"].as_str() {
                    return token.to_owned();
                }
            }
        })
    }

    /// A queue in which a task waits for a worker.
    pub fn queue(&self) -> String {
        let queue = self.fresh("queue");
        let step = json!({"id": "work", "agentId": format!("@worker/{queue}"), "input": {"note": CANARY},
            "config": {"leaseMs": 600_000}});
        let definition = workflow(&self.fresh("working"), json!([step]));
        self.own(&post("/v1/workflows/execute", json!({"workflow": definition})));
        queue
    }

    pub fn task(&self) -> Leased {
        let shared = self.shared(|shared| &shared.task).flatten();
        shared.unwrap_or_else(|| {
            let queue = self.queue();
            let body = json!({"workerId": "w", "waitMs": 30_000});
            let polled = self.own(&post(format!("/v1/workers/{queue}/poll"), body));
            let task = &polled["tasks"][0];
            let text = |member: &str| task[member].as_str().unwrap_or_else(|| panic!("{polled}")).to_owned();
            Leased { id: text("taskId"), lease: text("leaseToken") }
        })
    }

    pub fn document(&self) -> String {
        self.shared(|shared| &shared.document).unwrap_or_else(|| {
            let id = self.uuid();
            self.own(&post("/documents", document(&id, CANARY)));
            id
        })
    }

    /// A deleted document, to be restored.
    pub fn deleted(&self) -> String {
        self.shared(|shared| &shared.document).unwrap_or_else(|| {
            let id = self.document();
            self.own(&http("DELETE", format!("/documents/{id}"), None));
            id
        })
    }

    /// A session of the owner, shared with the caller.
    pub fn session(&self) -> String {
        self.shared(|shared| &shared.session).unwrap_or_else(|| {
            let id = self.fresh("session");
            self.own(&Request::Command(json!({"type": "create_session", "sessionId": id, "sessionName": CANARY})));
            self.own(&Request::Command(json!({"type": "prompt", "sessionId": id, "message": CANARY})));
            if self.caller != "owner" {
                let share = json!({"type": "share_session", "sessionId": id, "principal": self.caller, "access": "write"});
                self.own(&Request::Command(share));
            }
            id
        })
    }

    /// A session that belongs to the caller.
    pub fn own_session(&self) -> String {
        self.shared(|shared| &shared.session).unwrap_or_else(|| {
            let id = self.fresh("session");
            let create = Request::Command(json!({"type": "create_session", "sessionId": id}));
            done(&mut Wire::new(self.owner.borrow().address, &self.caller), &create);
            id
        })
    }

    /// An entry of a session: the session, and the id of its first message.
    pub fn entry(&self) -> (String, String) {
        let id = self.session();
        let said = self.own(&Request::Command(json!({"type": "get_fork_messages", "sessionId": id})));
        let entry = said["data"]["messages"][0]["entryId"].as_str().unwrap_or_else(|| panic!("{said}"));
        (id, entry.to_owned())
    }

    pub fn token(&self) -> String {
        self.shared(|shared| &shared.token).unwrap_or_else(|| {
            let made = self.own(&post("/v1/tokens", json!({"name": self.fresh(CANARY), "roles": ["admin"]})));
            made["id"].as_str().unwrap().to_owned()
        })
    }

    pub fn secret(&self) -> String {
        self.shared(|shared| &shared.secret).unwrap_or_else(|| {
            let name = self.fresh("secret");
            self.own(&post("/v1/secrets", secret(&name, CANARY)));
            name
        })
    }

    pub fn key(&self) -> String {
        self.shared(|shared| &shared.key).unwrap_or_else(|| {
            let kid = self.fresh("key");
            self.own(&post("/admin/keys", key(&kid, TENANT, CANARY)));
            kid
        })
    }

    pub fn webhook(&self) -> String {
        self.shared(|shared| &shared.webhook).unwrap_or_else(|| {
            let body = json!({"url": format!("http://127.0.0.1:9/{CANARY}"), "events": ["document.created"]});
            self.own(&post("/webhooks", body))["id"].as_str().unwrap().to_owned()
        })
    }

    /// An agent that the caller may speak for: an attacker meets one of the owner.
    pub fn agent(&self) -> String {
        self.shared(|shared| &shared.agent).unwrap_or_else(|| {
            let id = self.fresh("agent");
            let body = json!({"agentId": id, "topics": ["t"], "description": CANARY});
            // Agents belong to the principal that registers them; an owner speaks for all.
            Wire::new(self.owner.borrow().address, self.speaker()).ask(&post("/aacp/agents", body));
            id
        })
    }

    fn speaker(&self) -> &str {
        let speaks = ["agent", "operator", "owner"].iter().any(|role| self.caller.starts_with(role));
        if speaks { &self.caller } else { "owner" }
    }

    /// A request that waits for its answer: the id of the message, and of the request.
    pub fn message(&self) -> (String, String) {
        let shared = self.shared(|shared| &shared.message).zip(self.shared(|shared| &shared.request));
        shared.unwrap_or_else(|| {
            let body = json!({"messageType": "REQUEST", "sourceAgentId": self.fresh("asker"),
                "targetAgentId": self.agent(), "payload": {"note": CANARY}});
            let sent = self.own(&post("/aacp/messages", body));
            let text = |member: &str| sent[member].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
            (text("messageId"), text("requestId"))
        })
    }

    /// The id of an envelope that was published by the caller, or by the owner for attackers.
    pub fn envelope_request(&self) -> String {
        self.shared(|shared| &shared.envelope).unwrap_or_else(|| {
            let id = self.uuid();
            let sender = if self.caller.is_empty() { "owner" } else { &self.caller };
            let body = envelope(sender, TENANT, &id, "knowledge.list_children", json!({"parent_id": "root"}));
            let reply = Wire::new(self.owner.borrow().address, sender).ask(&post("/a2a/publish", body));
            assert_eq!(reply.verdict, Verdict::Done, "{}", reply.text);
            id
        })
    }

    /// A tool that the admin of the tenant has registered.
    pub fn dynamic_tool(&self) -> String {
        self.shared(|shared| &shared.dynamic_tool).unwrap_or_else(|| self.register(self.fresh(DYNAMIC_TOOL)))
    }

    fn register(&self, name: String) -> String {
        let arguments = json!({"name": name, "description": CANARY, "toolType": "echo"});
        done(&mut self.admin.borrow_mut(), &super::wire::tool("admin.registerTool", arguments));
        name
    }
}
