//! Callers that claim another identity, where a request has a place to say so; and actions asked for by a way they do not have.

use serde_json::{Value, json};

use super::content::{echo, envelope, key};
use super::objects::{Objects, TENANT};
use super::wire::{Request, Verdict, Wire, get, http, post, tool};
use super::{record, registered, serve};

/// A request, the token that sends it, and what must become of it.
struct Claim {
    token: &'static str,
    request: Request,
    verdict: Verdict,
}

fn refused(token: &'static str, request: Request) -> Claim {
    Claim { token, request, verdict: Verdict::Refused }
}

/// Another tenant, in the address.
fn tenants(objects: &Objects) -> Vec<Claim> {
    let paths = [
        String::from("/documents?tenant_id=acme"),
        format!("/documents/{}?tenant_id=acme", objects.document()),
        String::from("/webhooks?tenant_id=acme"),
        String::from("/admin/keys?tenant_id=acme"),
        String::from("/admin/queues?tenant_id=acme"),
        String::from("/admin/dead-letters?tenant_id=acme"),
        String::from("/mcp/heartbeat?tenant_id=acme"),
        format!("/mcp/requests/{}?tenant_id=acme", objects.envelope_request()),
        String::from("/a2a/replies/matrix?tenant_id=acme"),
        String::from("/v1/tokens?tenant=acme"),
    ];
    let mut claims: Vec<Claim> = paths.into_iter().map(|path| refused("eve", get(path))).collect();
    claims.extend([
        refused("eve", post("/artifacts?tenant_id=acme", json!({"a": 1}))),
        refused("eve", post("/v1/tokens", json!({"name": "mole", "tenant": TENANT}))),
        refused("eve", post("/v1/tokens", json!({"name": "mole", "tenant": "local"}))),
        refused("eve", post("/admin/keys", key("mole", TENANT, "mole"))),
        refused("admin-0", post("/v1/tokens", json!({"name": "mole", "roles": ["owner"]}))),
    ]);
    claims
}

/// Another principal, tenant or role in an envelope.
fn envelopes(objects: &Objects) -> Vec<Claim> {
    let read = |sub: &str, tenant: &str| {
        envelope(sub, tenant, &objects.uuid(), "knowledge.query_knowledge", json!({"query": "wombat"}))
    };
    let with_roles = |mut envelope: Value| {
        envelope["principal"]["roles"] = json!(["owner"]);
        envelope
    };
    let forged = [
        ("viewer-0", read("owner", TENANT)),
        ("viewer-0", with_roles(read("viewer-0", TENANT))),
        ("eve", read("owner", TENANT)),
        ("eve", read("eve", TENANT)),
    ];
    let ways = ["/mcp/actions", "/mcp/actions/knowledge.query_knowledge", "/a2a/publish"];
    let every = ways
        .iter()
        .flat_map(|way| forged.iter().map(move |(token, body)| (*token, post(*way, body.clone()))));
    every.map(|(token, request)| refused(token, request)).collect()
}

/// Another agent, peer, session or decider of the same tenant.
fn neighbours(objects: &Objects) -> Vec<Claim> {
    let (agent, session, approval) = (objects.agent(), objects.session(), objects.approval());
    let from =
        json!({"messageType": "EVENT", "sourceAgentId": agent, "targetAgentId": "echo", "payload": {}});
    let unknown = |request| Claim { token: "agent-0", request, verdict: Verdict::NotFound };
    let about = |name: &str| Request::Command(json!({"type": name, "sessionId": session, "message": "m"}));
    vec![
        refused("agent-0", post("/aacp/messages", from.clone())),
        refused("agent-0", tool("aacp.send", from)),
        refused("agent-0", get(format!("/aacp/agents/{agent}/inbox"))),
        refused("agent-0", post(format!("/aacp/agents/{agent}/acks"), json!({"inboxSeq": 1}))),
        refused("agent-0", http("POST", format!("/aacp/agents/{agent}/heartbeat"), None)),
        refused("agent-0", http("PUT", format!("/aacp/agents/{agent}"), Some(json!({"topics": ["mine"]})))),
        refused("agent-0", http("DELETE", format!("/aacp/agents/{agent}"), None)),
        refused(
            "agent-0",
            post("/mcp/heartbeat", json!({"status": "healthy", "revision": 1, "name": "owner"})),
        ),
        refused(
            "agent-0",
            post("/mcp/heartbeat", json!({"status": "healthy", "revision": 1, "name": "agent-00"})),
        ),
        refused(
            "approver-0",
            post(format!("/v1/approvals/{approval}"), json!({"decision": "approve", "onBehalfOf": "owner"})),
        ),
        unknown(about("get_messages")),
        unknown(about("prompt")),
        unknown(about("switch_session")),
        unknown(tool("get_session", json!({"sessionId": session}))),
    ]
}

#[test]
fn a_caller_is_who_its_credentials_say() {
    let (_place, server) = serve();
    let objects = Objects::new(server.address);
    let mut mistakes = Vec::new();
    for claim in [tenants(&objects), envelopes(&objects), neighbours(&objects)].into_iter().flatten() {
        let reply = Wire::new(server.address, claim.token).ask(&claim.request);
        if reply.verdict != claim.verdict {
            mistakes.push(format!("{} {:?}: {:?} {}", claim.token, claim.request, reply.verdict, reply.text));
        }
    }
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
    let entries = record::refused(server.address);
    for principal in ["viewer-0", "agent-0", "approver-0", "admin-0"] {
        assert!(
            entries.iter().any(|entry| entry["principal"] == principal),
            "{principal} is not in the audit trail"
        );
    }
}

/// Results that are read in pages, and tasks, belong to the caller whose call made them.
#[test]
fn results_and_tasks_belong_to_their_caller() {
    let (_place, server) = serve();
    let objects = Objects::new(server.address);
    let (mut owner, session) = (Wire::new(server.address, "owner"), objects.session());
    let long = owner.ask(&tool("echo", json!({"message": "x".repeat(200_000)})));
    let at = long.text.find("result://").unwrap_or_else(|| panic!("{}", long.text));
    let uri: String = long.text[at..].chars().take_while(|c| !matches!(c, '"' | '?')).collect();
    let with_tasks = |method, mut params: Value| {
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        Request::Mcp { method, params }
    };
    let prompt = json!({"name": "prompt_session", "arguments": {"sessionId": session, "message": "hello"}});
    let begun = owner.ask(&with_tasks("tools/call", prompt));
    let said: Value = serde_json::from_str(&begun.text).unwrap();
    let task = said["result"]["taskId"].as_str().or(said["result"]["task"]["taskId"].as_str());
    let task = task.unwrap_or_else(|| panic!("{said}"));
    let about = |method| with_tasks(method, json!({"taskId": task}));
    let read = Request::Mcp { method: "resources/read", params: json!({"uri": uri}) };
    for request in [&read, &about("tasks/get")] {
        assert_eq!(owner.ask(request).verdict, Verdict::Done, "{request:?}");
    }
    for stranger in ["eve", "owner-0", "agent-0"] {
        for request in [&read, &about("tasks/get"), &about("tasks/cancel")] {
            let reply = Wire::new(server.address, stranger).ask(request);
            let is_unknown = !matches!(reply.verdict, Verdict::Done | Verdict::Unauthenticated);
            assert!(is_unknown && !reply.text.contains("hello"), "{stranger} {request:?}: {}", reply.text);
        }
    }
}

/// What a claim cannot change: the principal that is on record.
#[test]
fn work_is_recorded_under_the_authenticated_principal() {
    let (_place, server) = serve();
    let objects = Objects::new(server.address);
    let mut operator = Wire::new(server.address, "operator-0");
    operator.headers =
        String::from("X-Forwarded-User: owner\r\nX-Principal: owner\r\nX-On-Behalf-Of: owner\r\n");
    let body = json!({"workflow": echo(&objects.fresh("claimed"), "mark"), "inputs": {"startedBy": "owner"}});
    let started: Value =
        serde_json::from_str(&operator.ask(&post("/v1/workflows/execute", body)).text).unwrap();
    let id = started["executionId"].as_str().unwrap_or_else(|| panic!("{started}"));
    assert_eq!(objects.own(&get(format!("/v1/executions/{id}")))["startedBy"], "operator-0");
    let entries = objects.own(&get("/v1/audit?action=workflows.execute&limit=1"));
    assert_eq!(entries["entries"][0]["principal"], "operator-0", "{entries}");
}

/// Credentials that are shown in another way, or twice, are not believed.
#[test]
fn credentials_are_shown_once_and_in_their_place() {
    let (_place, server) = serve();
    let mut both = Wire::new(server.address, "viewer-0");
    both.headers = String::from("Authorization: Bearer owner\r\n");
    assert_eq!(both.ask(&get("/v1/audit")).verdict, Verdict::Unauthenticated);
    let mut unknown = Wire::new(server.address, "unknown");
    for target in
        ["/v1/executions?access_token=owner", "/v1/executions?token=owner", "/documents?token=owner"]
    {
        let verdict = unknown.ask(&get(target)).verdict;
        assert!(matches!(verdict, Verdict::Unauthenticated | Verdict::Failed(_)), "{target}: {verdict:?}");
    }
    unknown.headers = String::from(
        "Cookie: token=owner; Authorization=owner\r\nX-Api-Key: owner\r\nX-Auth-Token: owner\r\n",
    );
    assert_eq!(unknown.ask(&get("/v1/executions")).verdict, Verdict::Unauthenticated);
}

/// Actions of the program are no tools: not even an owner calls them by name over MCP, in an envelope or from a step.
#[test]
fn an_action_is_reached_only_through_its_faces() {
    let (place, server) = serve();
    let objects = Objects::new(server.address);
    let (mut owner, mut mistakes) = (Wire::new(server.address, "owner"), Vec::new());
    for (action, reached) in super::reached(&place) {
        if reached == "tool" {
            continue;
        }
        let called = owner.ask(&tool(&action, json!({}))).verdict;
        if called != Verdict::NotFound {
            mistakes.push(format!("tools/call {action}: {called:?}"));
        }
        let takes_envelopes = action.starts_with("knowledge.");
        let body = envelope("owner", TENANT, &objects.uuid(), &action, json!({}));
        let sent = owner.ask(&post(format!("/mcp/actions/{action}"), body)).verdict;
        if sent == Verdict::Done && !takes_envelopes {
            mistakes.push(format!("/mcp/actions/{action}: {sent:?}"));
        }
    }
    assert!(registered(&place).len() > 150, "{}", registered(&place).len());
    assert_eq!(mistakes, Vec::<String>::new());
}
