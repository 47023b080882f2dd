//! Agents with a callback address: what they get, what they may answer, and what happens when they are not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::routing::post;
use http::StatusCode;
use orchestr8_agents::aacp::Settings;
use orchestr8_outbound::{Allowed, SIGNATURE, signature};
use orchestr8_testing::within;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{World, settings};

const EVENT: &str = "00000000-0000-4000-8000-0000000000e0";
const REQUEST: &str = "00000000-0000-4000-8000-0000000000f0";

/// An agent on a port of its own: it fails so often, then answers requests in the same breath.
struct Elsewhere {
    url: String,
    heard: Arc<Mutex<Vec<Value>>>,
    /// Everything that was posted, also what was refused.
    posted: Arc<Mutex<Vec<Value>>>,
}

async fn elsewhere(failures: usize) -> Elsewhere {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let (heard, calls) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::new(AtomicUsize::new(0)));
    let (kept, posted) = (heard.clone(), Arc::<Mutex<Vec<Value>>>::default());
    let all = posted.clone();
    let answer = move |axum::Json(envelope): axum::Json<Value>| {
        let (kept, calls, all) = (kept.clone(), calls.clone(), all.clone());
        async move {
            all.lock().push(envelope.clone());
            if calls.fetch_add(1, Ordering::SeqCst) < failures {
                return (StatusCode::SERVICE_UNAVAILABLE, axum::Json(json!({})));
            }
            let payload = json!({"doubled": envelope["payload"]["n"].as_u64().unwrap_or(0) * 2});
            let is_request = envelope["messageType"] == "REQUEST";
            kept.lock().push(envelope);
            match is_request {
                true => (StatusCode::OK, axum::Json(json!({"payload": payload}))),
                false => (StatusCode::ACCEPTED, axum::Json(json!({}))),
            }
        }
    };
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/in", post(answer))).await.unwrap() },
    );
    Elsewhere { url, heard, posted }
}

fn open() -> Settings {
    Settings {
        callbacks: Allowed { private: true, ..settings().callbacks },
        timeout_ms: 60_000,
        ..settings()
    }
}

#[tokio::test]
async fn messages_are_brought_in_order_and_an_answer_may_come_back_at_once() {
    let (world, agent) = (World::with(open()), elsewhere(2).await);
    let put = json!({"agentId": "far", "callbackUrl": agent.url});
    assert_eq!(world.post("/aacp/agents", put).await.json()["kind"], "callback");
    for n in 1..=3 {
        let event = json!({"sourceAgentId": "me", "targetAgentId": "far", "messageType": "EVENT", "payload": {"n": n}});
        assert_eq!(world.post("/aacp/messages", event).await.status, 201);
    }
    let request = json!({"sourceAgentId": "me", "targetAgentId": "far", "messageType": "REQUEST", "payload": {"n": 21}});
    let answer = within(world.post("/aacp/messages?wait=50", request)).await.json();
    assert_eq!(answer["request"]["response"], json!({"doubled": 42}), "{answer}");
    let seqs: Vec<u64> =
        agent.heard.lock().iter().map(|envelope| envelope["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4], "each once, in order, though the first attempts failed");
    let first = agent.heard.lock()[0]["messageId"].as_str().unwrap().to_owned();
    let told = world.get(&format!("/aacp/messages/{first}")).await.json();
    assert_eq!(told["outcome"], "COMPLETED");
}

#[tokio::test]
async fn what_is_brought_is_signed_with_the_secret_of_the_agent() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let (tell, mut told) = tokio::sync::mpsc::channel::<(Option<String>, String)>(8);
    let answer = move |headers: http::HeaderMap, body: String| {
        let signed = headers.get(SIGNATURE).map(|value| value.to_str().unwrap().to_owned());
        let tell = tell.clone();
        async move {
            tell.send((signed, body)).await.unwrap();
            StatusCode::ACCEPTED
        }
    };
    tokio::spawn(
        async move { axum::serve(listener, Router::new().route("/in", post(answer))).await.unwrap() },
    );
    let world = World::with(open());
    let secret = "a secret of this agent";
    let event =
        json!({"sourceAgentId": "me", "targetAgentId": "far", "messageType": "EVENT", "payload": "é"});
    let known = world.post("/aacp/agents", json!({"agentId": "far", "callbackUrl": url})).await;
    assert_eq!(known.json()["signed"], false);
    world.post("/aacp/messages", event.clone()).await;
    assert_eq!(within(told.recv()).await.unwrap().0, None, "without a secret there is nothing to sign with");
    let put = json!({"agentId": "far", "callbackUrl": url, "callbackSecret": secret});
    let known = world.post("/aacp/agents", put).await;
    assert_eq!(known.json()["signed"], true);
    assert!(!known.text.contains(secret), "it is never shown: {}", known.text);
    world.post("/aacp/messages", event.clone()).await;
    let (signed, body) = within(told.recv()).await.unwrap();
    assert_eq!(signed.unwrap(), signature(secret, &body).unwrap());
    let again = world.post("/aacp/agents", json!({"agentId": "far", "callbackUrl": url})).await;
    assert_eq!(again.json()["signed"], true, "nobody can read it back to give it again");
    world.post("/aacp/messages", event).await;
    let (signed, body) = within(told.recv()).await.unwrap();
    assert_eq!(signed.unwrap(), signature(secret, &body).unwrap());
    for wrong in [
        json!({"agentId": "far", "callbackUrl": url, "callbackSecret": "short"}),
        json!({"agentId": "far", "callbackSecret": secret}),
    ] {
        let refused = world.post("/aacp/agents", wrong).await;
        assert_eq!(refused.code(), "INVALID_ARGUMENT");
        assert!(!refused.text.contains(secret), "{}", refused.text);
    }
}

#[tokio::test]
async fn an_agent_that_is_never_there_leaves_the_outcome_unknown() {
    let world = World::with(open());
    let nobody = "http://127.0.0.1:9/in";
    world.post("/aacp/agents", json!({"agentId": "far", "callbackUrl": nobody})).await;
    let message = |kind: &str, id: &str| json!({"messageId": id, "sourceAgentId": "me", "targetAgentId": "far", "messageType": kind, "payload": {}});
    world.post("/aacp/messages", message("EVENT", EVENT)).await;
    let mut request = message("REQUEST", REQUEST);
    request["requestId"] = REQUEST.into();
    world.post("/aacp/messages", request).await;
    let failed = world.until(&format!("/aacp/messages/{EVENT}"), |told| told["outcome"] == "FAILED").await;
    assert_eq!(failed["error"]["code"], "UNAVAILABLE", "{failed}");
    let unknown = world.until(&format!("/aacp/requests/{REQUEST}"), |told| told["status"] == "UNKNOWN").await;
    assert!(unknown.get("completedAt").is_none(), "{unknown}");
}

#[tokio::test]
async fn addresses_inside_are_refused_unless_somebody_allows_them() {
    let world = World::new();
    for url in ["http://127.0.0.1:1/in", "http://169.254.169.254/latest", "file:///etc/passwd", "nothing"] {
        let answer = world.post("/aacp/agents", json!({"agentId": "far", "callbackUrl": url})).await;
        assert!(answer.status.is_client_error(), "{url}: {}", answer.text);
    }
}

#[tokio::test]
async fn aacp_1_each_transmission_to_a_callback_has_an_id_of_its_own() {
    let (world, agent) = (World::with(open()), elsewhere(2).await);
    world.post("/aacp/agents", json!({"agentId": "far", "callbackUrl": agent.url})).await;
    let request = json!({"messageId": EVENT, "requestId": REQUEST, "sourceAgentId": "me", "targetAgentId": "far",
        "messageType": "REQUEST", "payload": {"n": 21}});
    let answer = within(world.post("/aacp/messages?wait=50", request)).await.json();
    assert_eq!(answer["request"]["status"], "COMPLETED", "{answer}");
    assert_eq!(answer["request"]["attempts"], 3, "each transmission counts: {answer}");
    let posted = agent.posted.lock().clone();
    let of = |name: &str| posted.iter().map(|envelope| envelope[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("retryCount"), [json!(null), json!(1), json!(2)]);
    assert_eq!(
        (of("requestId"), of("seq")),
        (vec![json!(REQUEST); 3], vec![json!(1); 3]),
        "what repeats are known by"
    );
    let ids: std::collections::BTreeSet<String> = of("messageId").iter().map(Value::to_string).collect();
    assert_eq!(ids.len(), 3, "{posted:?}");
    assert_eq!(posted[0]["messageId"], EVENT);
    // Under the id of its last transmission it is the same message.
    let last = posted[2]["messageId"].as_str().unwrap();
    let told = world.get(&format!("/aacp/messages/{last}")).await.json();
    assert_eq!((&told["messageId"], &told["retryCount"]), (&json!(EVENT), &json!(2)), "{told}");
}

#[tokio::test]
async fn the_code_of_the_answering_agent_is_kept() {
    let world = World::with(open());
    for name in ["ann", "bob"] {
        world.post("/aacp/agents", json!({"agentId": name})).await;
    }
    let request = json!({"requestId": REQUEST, "sourceAgentId": "ann", "targetAgentId": "bob", "messageType": "REQUEST"});
    assert_eq!(world.post("/aacp/messages", request).await.status, 201);
    let error = json!({"code": "QUOTA", "message": "spent", "details": {"limit": 5}});
    let response = json!({"requestId": REQUEST, "sourceAgentId": "bob", "targetAgentId": "ann",
        "messageType": "RESPONSE", "outcome": "FAILED", "error": error});
    assert_eq!(world.post("/aacp/messages", response).await.status, 201);
    let told = world.get(&format!("/aacp/requests/{REQUEST}")).await.json();
    let kept =
        json!({"code": "AGENT_FAILED", "message": "spent", "details": {"limit": 5, "agentCode": "QUOTA"}});
    assert_eq!(told["error"], kept, "{told}");
    let read = world.get("/aacp/agents/ann/inbox").await.json();
    assert_eq!(read["messages"][0]["envelope"]["error"], kept, "{read}");
}
