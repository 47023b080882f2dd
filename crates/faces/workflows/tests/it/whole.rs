//! The face and the real engine together, where timing matters: races, waits and the live feed.

use std::sync::Arc;

use axum::body::Body;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::real::Real;
use crate::server::PATIENCE;
use crate::world::Answer;

const EXECUTE: &str = "/v1/workflows/execute";

fn workflow(steps: Value) -> String {
    json!({"workflow": {"id": "w", "version": "1.0.0", "name": "W", "steps": steps}}).to_string()
}

fn echo() -> Value {
    json!([{"id": "a", "type": "agent", "agentId": "@orchestr8/echo", "input": {"n": 1}}])
}

async fn send(real: &Real, target: &str, headers: &[(&str, &str)], body: Option<String>) -> Answer {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut all = vec![("content-type".to_owned(), "application/json".to_owned())];
    all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    real.ask(method, target, &all, body).await
}

/// Everything of a stream until a text has come.
async fn stream_until(real: &Real, target: &str, wanted: &str) -> String {
    let request = Request::builder().uri(target).body(Body::empty()).unwrap();
    let mut body = real.router.clone().oneshot(request).await.unwrap().into_body();
    let mut told = String::new();
    while !told.contains(wanted) {
        let frame = timeout(PATIENCE, body.frame()).await.unwrap().unwrap().unwrap();
        told.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
    }
    told
}

fn ids(told: &str) -> Vec<u64> {
    told.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect()
}

#[tokio::test]
async fn sixty_four_posts_with_one_key_are_one_execution() {
    let real = Arc::new(Real::start().await);
    let asks: Vec<_> = (0..64)
        .map(|number| {
            let real = real.clone();
            let target = if number % 2 == 0 { EXECUTE } else { "/api/v1/workflows/execute?mode=sync" };
            let body = Some(workflow(echo()));
            tokio::spawn(async move { send(&real, target, &[("idempotency-key", "one")], body).await })
        })
        .collect();
    let mut found = std::collections::BTreeSet::new();
    for ask in asks {
        let answer = ask.await.unwrap();
        assert!(answer.status.is_success(), "{}", answer.text);
        found.insert(answer.json()["executionId"].as_str().unwrap().to_owned());
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        send(&real, "/v1/executions", &[], None).await.json()["executions"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn the_feed_tells_an_execution_in_order_and_goes_on_anywhere() {
    let real = Real::start().await;
    let done = send(&real, &format!("{EXECUTE}?mode=sync"), &[], Some(workflow(echo()))).await;
    let id = done.json()["executionId"].as_str().unwrap().to_owned();
    let told = stream_until(&real, "/v1/events?lastEventId=0", "event: workflow.completed").await;
    let place =
        |word: &str| told.find(&format!("event: {word}\n")).unwrap_or_else(|| panic!("no {word}: {told}"));
    let words = [
        "connection.established",
        "workflow.started",
        "step.started",
        "step.completed",
        "workflow.completed",
    ];
    assert!(words.is_sorted_by_key(|word| place(word)), "{told}");
    let all = ids(&told);
    assert!(all.is_sorted() && all.len() >= 5, "{all:?}");
    // From any id on, exactly the rest is told.
    for (seen, last) in all.iter().enumerate().take(all.len() - 1) {
        let target = format!("/v1/events?executionId={id}&lastEventId={last}");
        let rest = ids(&stream_until(&real, &target, "event: workflow.completed").await);
        assert_eq!(rest, all[seen..], "after {last}");
    }
}

#[tokio::test]
async fn a_wait_with_a_tag_ends_with_the_change_and_not_before() {
    let real = Arc::new(Real::start().await);
    let steps = json!([{"id": "paid", "type": "wait", "wait": {"event": "paid"}}]);
    let begun = send(&real, EXECUTE, &[], Some(workflow(steps))).await;
    let url = begun.header("location").to_owned();
    // Until the step waits, the execution still changes by itself.
    let mut seen = send(&real, &url, &[], None).await;
    while seen.json()["steps"]["paid"]["status"] != "waiting" {
        let tag = seen.header("etag").to_owned();
        let next = send(&real, &format!("{url}?wait=20"), &[("if-none-match", &tag)], None).await;
        assert_eq!(next.status, 200, "{}", next.text);
        seen = next;
    }
    let tag = seen.header("etag").to_owned();
    let unchanged = send(&real, &format!("{url}?wait=50ms"), &[("if-none-match", &tag)], None).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.header("etag")), (304, tag.as_str()));
    let waiting = tokio::spawn({
        let (real, url, tag) = (real.clone(), url.clone(), tag.clone());
        async move { send(&real, &format!("{url}?wait=20"), &[("if-none-match", &tag)], None).await }
    });
    let told = send(&real, &format!("{url}/events"), &[], Some(json!({"name": "paid"}).to_string())).await;
    assert_eq!(told.status, 202, "{}", told.text);
    let changed = timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), tag);
}
