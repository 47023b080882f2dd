//! The error envelope: every code, every fallback, every strange request (contract: error body).

use http::Method;
use orchestr8_contract::error::Retry;
use orchestr8_contract::{Code, Fault};
use orchestr8_workflows_face::{PREFIXES, Settings};
use serde_json::json;

use crate::world::{World, workflow};

#[tokio::test]
async fn every_code_becomes_a_whole_error() {
    let world = World::new();
    for code in Code::ALL {
        let fault = Fault::new(*code, "it went wrong").with("n", 1).because("a secret cause");
        world.fails("executions.get", fault);
        let answer = world.get_with("/v1/executions/e1", &[("x-correlation-id", "c7")]).await;
        let word = answer.error(answer.status.as_u16());
        let body = answer.json();
        assert!(!answer.text.contains("secret"), "{body}");
        assert_eq!((&body["executionId"], &body["correlationId"]), (&json!("e1"), &json!("c7")));
        assert_eq!(
            (&body["error"]["details"]["n"], &body["error"]["message"]),
            (&json!(1), &json!("it went wrong"))
        );
        if word == code.as_str() {
            assert!(body["error"].get("cause").is_none());
        } else {
            assert_eq!(body["error"]["cause"], code.as_str());
        }
        let again = matches!(answer.status.as_u16(), 429 | 503 | 504) && code.retry() == Retry::Later;
        assert_eq!(!answer.header("retry-after").is_empty(), again, "{body}");
    }
}

#[tokio::test]
async fn nothing_below_our_prefixes_speaks_another_envelope() {
    let world = World::new();
    for prefix in PREFIXES {
        for nowhere in ["", "/", "/nothing", "/executions/e1/nothing", "/workflows/", "/%FF"] {
            let answer = world.get(&format!("{prefix}{nowhere}")).await;
            assert_eq!(answer.error(404), "NOT_FOUND", "{prefix}{nowhere}");
        }
        let answer = world.ask(Method::DELETE, &format!("{prefix}/executions/e1"), &[], None).await;
        assert_eq!(answer.error(405), "VALIDATION");
        assert_eq!(answer.header("allow"), "GET,HEAD");
    }
    assert_eq!(world.ask(Method::POST, "/ws", &[], None).await.error(405), "VALIDATION");
    assert_eq!(world.ask(Method::POST, "/openapi.json", &[], None).await.error(405), "VALIDATION");
    assert!(world.heard().is_empty());
}

#[tokio::test]
async fn bodies_must_be_json_and_say_so_adr_002() {
    let world = World::new();
    let text = workflow().to_string();
    let send = async |kind: &[(&str, &str)]| {
        world.ask(Method::POST, "/v1/workflows/execute", kind, Some(text.clone())).await
    };
    for kind in
        [&[][..], &[("content-type", "text/plain")], &[("content-type", "application/x-www-form-urlencoded")]]
    {
        assert_eq!(send(kind).await.error(415), "VALIDATION");
    }
    for kind in ["application/xml", "text/yaml", "application/x-yaml"] {
        let answer = send(&[("content-type", kind)]).await;
        assert_eq!(answer.error(415), "VALIDATION");
        assert!(answer.text.contains("Workflows must use JSON format (ADR-002)"), "{}", answer.text);
    }
    for broken in ["", "{", "nonsense", "{\"workflow\":{},\"workflow\":{}}", "{\"workflow\":\"\\ud800\"}"] {
        let headers = [("content-type", "application/json")];
        let answer = world.ask(Method::POST, "/v1/workflows/execute", &headers, Some(broken.into())).await;
        assert_eq!(answer.error(400), "VALIDATION", "{broken}");
    }
    assert!(world.heard().is_empty());
}

#[tokio::test]
async fn bodies_have_a_limit() {
    let world = World::with(Settings { body_limit_bytes: 100, ..Settings::new("1") });
    let large = json!({"workflow": {"name": "x".repeat(100)}});
    assert_eq!(world.post("/v1/workflows/execute", large).await.error(413), "PAYLOAD_TOO_LARGE");
    // What the body's limit lets through, the kernel's own may still refuse; sending it again would not help.
    let world = World::new();
    let large = json!({"workflow": {"name": "x".repeat(1_100_000)}});
    let answer = world.post("/v1/workflows/execute", large).await;
    assert_eq!(answer.error(413), "PAYLOAD_TOO_LARGE");
    assert_eq!(answer.json()["error"]["isRetryable"], false);
    assert!(world.heard().is_empty());
}

#[tokio::test]
async fn health_tells_what_runs_here() {
    let settings = Settings::new("9.8.7");
    let shutdown = settings.shutdown.clone();
    let world = World::with(settings);
    for target in ["/v1/health", "/api/v1/health"] {
        let body = world.get(target).await.json();
        assert_eq!(
            (&body["healthy"], &body["name"], &body["version"]),
            (&json!(true), &json!("orchestr8"), &json!("9.8.7"))
        );
        assert!(body["pid"].is_u64() && body["startedAt"].as_str().unwrap().ends_with('Z'));
    }
    shutdown.cancel();
    let answer = world.get("/v1/health").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["healthy"]), (503, &json!(false)));
}

#[tokio::test]
async fn waiting_requests_end_when_the_server_stops() {
    let settings = Settings::new("1");
    let shutdown = settings.shutdown.clone();
    let world = World::with(settings);
    world.on_later("executions.get", move |_, context| {
        let shutdown = shutdown.clone();
        async move {
            shutdown.cancel();
            context.cancel.fired().await;
            Err(Fault::new(Code::Cancelled, "stopped"))
        }
    });
    let answer = world.get("/v1/executions/e1?wait=60").await;
    assert_eq!(answer.error(503), "SERVICE_UNAVAILABLE");
    assert!(!answer.header("retry-after").is_empty());
}
