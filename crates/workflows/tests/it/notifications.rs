//! Signed requests to an address of the owner: an execution failed, asks for an approval, has spent its budget.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use orchestr8_contract::Code;
use orchestr8_outbound::{is_signature, is_timed_signature};
use orchestr8_stores::sqlite::Place;
use orchestr8_workflows::Settings;
use orchestr8_workflows::agents::settings::Http;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{World, step};

const SECRET: &str = "a secret of the receiver";

/// A server that answers with a status and remembers what it was sent.
struct Receiver {
    address: SocketAddr,
    status: Arc<AtomicU16>,
    heard: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

impl Receiver {
    async fn start() -> Self {
        let (status, heard) =
            (Arc::new(AtomicU16::new(200)), Arc::<Mutex<Vec<(HeaderMap, String)>>>::default());
        let (answer, memory) = (status.clone(), heard.clone());
        let take = move |headers: HeaderMap, body: String| {
            let (answer, memory) = (answer.clone(), memory.clone());
            async move {
                memory.lock().push((headers, body));
                StatusCode::from_u16(answer.load(Ordering::Acquire)).unwrap()
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/hook", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, status, heard }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn count(&self) -> usize {
        self.heard.lock().len()
    }

    /// The body of the n-th request, once it has come; its signatures are right.
    async fn body(&self, world: &World, number: usize) -> Value {
        loop {
            if let Some((headers, body)) = self.heard.lock().get(number).cloned() {
                let header =
                    |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
                assert!(is_signature(header("x-orchestr8-signature"), SECRET, &body), "{headers:?}");
                let now_ms = world.kernel.ports().clock.now_ms();
                assert!(is_timed_signature(
                    header("x-orchestr8-signature-v1"),
                    SECRET,
                    &body,
                    now_ms,
                    60_000
                ));
                let body: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(header("x-orchestr8-event"), body["event"].as_str().unwrap());
                assert_eq!(header("x-orchestr8-delivery"), body["id"].as_str().unwrap());
                return body;
            }
            // Asking is what takes time.
            world.ask("triggers.list", json!({})).await;
        }
    }
}

async fn world() -> World {
    let http = Http { allowed_hosts: vec![String::from("127.0.0.1")], allow_private: false };
    World::with(Place::Memory, Settings { http, ..Settings::default() }, Arc::default()).await
}

async fn notify(world: &World, receiver: &Receiver, workflows: Value) {
    let notify =
        json!({"url": receiver.url(), "on": ["failed", "approval", "budget"], "workflows": workflows});
    let args = json!({"id": "pager", "notify": notify, "secret": {"value": SECRET}});
    world.ask("triggers.apply", args).await;
}

async fn shown(world: &World) -> Value {
    world.ask("triggers.show", json!({"id": "pager"})).await
}

#[tokio::test]
async fn failures_approvals_and_spent_budgets_are_told_without_inputs_and_outputs() {
    let (world, receiver) = (world().await, Receiver::start().await);
    notify(&world, &receiver, json!([])).await;
    world.run(json!([step("a", &[], json!({"value": "harmless"}))])).await;
    let failed = world.run(json!([step("a", &[], json!({"fail": "NOT_FOUND", "card": "4711"}))])).await;
    let told = receiver.body(&world, 0).await;
    assert_eq!(
        (&told["event"], &told["executionId"]),
        (&json!("execution.failed"), &failed["executionId"]),
        "{told}"
    );
    assert!(!told.to_string().contains("4711"), "{told}");
    let asking = world.start(json!([{"id": "ok", "approval": {"message": "Pay card 4711?"}}])).await;
    let told = receiver.body(&world, 1).await;
    assert_eq!(
        (&told["event"], &told["executionId"]),
        (&json!("approval.requested"), &json!(asking)),
        "{told}"
    );
    assert!(!told.to_string().contains("4711"), "{told}");
    let token = told["approval"]["url"].as_str().unwrap().strip_prefix("/v1/approvals/").unwrap().to_owned();
    world.ask("executions.approve", json!({"token": token, "decision": "approve"})).await;
    assert_eq!(world.end(&asking).await["status"], "completed");
    let mut spent = json!({"id": "spent", "version": "1.0.0", "name": "Spent", "steps": [
        step("a", &[], json!({})), step("b", &["a"], json!({}))]});
    spent["policies"] = json!({"budget": {"steps": 1}});
    let paused = world.start_whole(spent, json!({})).await;
    let told = receiver.body(&world, 2).await;
    assert_eq!((&told["event"], &told["executionId"]), (&json!("budget.spent"), &json!(paused)), "{told}");
    assert_eq!((receiver.count(), &shown(&world).await["deliveries"]), (3, &json!(3)));
}

#[tokio::test]
async fn a_notification_is_tried_again_given_up_and_sent_again() {
    let (world, receiver) = (world().await, Receiver::start().await);
    notify(&world, &receiver, json!(["flow"])).await;
    receiver.status.store(500, Ordering::Release);
    world.run(json!([step("a", &[], json!({"fail": "NOT_FOUND"}))])).await;
    let first = receiver.body(&world, 0).await;
    receiver.status.store(410, Ordering::Release);
    let again = receiver.body(&world, 1).await;
    assert_eq!(first["id"], again["id"], "the same delivery has the same id");
    let given_up = loop {
        let shown = shown(&world).await;
        if shown["failed"] == 1 {
            break shown;
        }
    };
    assert_eq!((&given_up["pending"], &given_up["lastError"]), (&json!(0), &json!("410 Gone")), "{given_up}");
    receiver.status.store(200, Ordering::Release);
    assert_eq!(world.ask("triggers.redrive", json!({"id": "pager"})).await["redriven"], 1);
    assert_eq!(receiver.body(&world, 2).await["id"], first["id"]);
    loop {
        let shown = shown(&world).await;
        if shown["failed"] == 0 && shown["pending"] == 0 {
            break;
        }
    }
}

#[tokio::test]
async fn an_address_inside_and_a_workflow_of_its_own_are_refused() {
    let world = world().await;
    let apply = |notify: Value| json!({"id": "pager", "notify": notify, "secret": {"value": SECRET}});
    for url in ["http://169.254.169.254/latest", "http://10.0.0.1/", "no address"] {
        let refused = world.refused("triggers.apply", apply(json!({"url": url, "on": ["failed"]}))).await;
        assert_ne!(refused.code, Code::Internal, "{refused:?}");
    }
    let mut both = apply(json!({"url": "https://example.com/", "on": ["failed"]}));
    both["workflowId"] = json!("flow");
    assert!(world.refused("triggers.apply", both).await.message.starts_with("/workflowId"));
}

/// A trigger that tells of nothing by itself is told what definitions name it for.
#[tokio::test]
async fn a_definition_says_who_is_told_of_what() {
    let (world, receiver) = (world().await, Receiver::start().await);
    let channel = |workflows: Value| json!({"id": "pager", "notify": {"url": receiver.url(), "on": [], "workflows": workflows}, "secret": {"value": SECRET}});
    let flow = |notify: Value, steps: Value| json!({"id": "flow", "version": "1.0.0", "name": "Flow", "policies": {"notify": notify}, "steps": steps});
    let failing = json!([step("a", &[], json!({"fail": "NOT_FOUND"}))]);
    let refused = world
        .refused("workflows.apply", json!({"workflow": flow(json!([{"to": "pagr"}]), failing.clone())}))
        .await;
    assert_eq!(refused.code, Code::InvalidWorkflow);
    assert!(format!("{refused:?}").contains("there is no trigger with notify named 'pagr'"), "{refused:?}");
    let inner = json!([{"id": "child", "workflow": flow(json!([{"to": "pagr"}]), failing.clone())}]);
    let refused = world.refused("workflows.apply", json!({"workflow": flow(json!([]), inner)})).await;
    assert!(format!("{refused:?}").contains("$.steps[0].workflow.policies.notify[0].to"), "{refused:?}");
    world.ask("triggers.apply", channel(json!([]))).await;
    let told_of = json!([{"to": "pager", "on": ["failed"]}]);
    world.ask("workflows.apply", json!({"workflow": flow(told_of.clone(), failing.clone())})).await;
    world.run(failing.clone()).await;
    let failed = world.start_whole(flow(told_of.clone(), failing.clone()), json!({})).await;
    let told = receiver.body(&world, 0).await;
    assert_eq!(
        (&told["event"], &told["executionId"]),
        (&json!("execution.failed"), &json!(failed)),
        "{told}"
    );
    // An approval that a child asks for is one that its parent waits for.
    let asking = json!([{"id": "child", "workflow": {"id": "inner", "version": "1.0.0", "name": "Inner",
        "steps": [{"id": "ok", "approval": {"message": "?"}}]}}]);
    world.start_whole(flow(told_of, asking.clone()), json!({})).await;
    let parent = world.start_whole(flow(json!([{"to": "pager"}]), asking), json!({})).await;
    let told = receiver.body(&world, 1).await;
    assert_eq!(told["event"], "approval.requested", "{told}");
    let child = world.ask("executions.get", json!({"executionId": told["executionId"]})).await;
    assert_eq!(
        child["parentExecutionId"],
        json!(parent),
        "the first one asked to be told of failures only: {child:#}"
    );
    // The owner says which definitions may name it.
    world.ask("triggers.apply", channel(json!(["other"]))).await;
    world.end(&world.start_whole(flow(json!([{"to": "pager"}]), failing.clone()), json!({})).await).await;
    let mut other = flow(json!([{"to": "pager"}]), failing);
    other["id"] = json!("other");
    let last = world.start_whole(other, json!({})).await;
    assert_eq!(receiver.body(&world, 2).await["executionId"], json!(last));
}
