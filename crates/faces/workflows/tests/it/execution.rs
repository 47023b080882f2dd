//! GET /executions/{id}: tags, conditions, waits, words (ADR-003).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use orchestr8_contract::{Code, Fault};
use serde_json::json;

use crate::world::{World, execution};

#[tokio::test]
async fn an_execution_has_a_strong_tag_and_a_repeat_costs_nothing_adr_003() {
    let world = World::new();
    world.gives("executions.get", execution("running"));
    let answer = world.get("/v1/executions/e1").await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, execution("running")));
    let tag = answer.header("etag").to_owned();
    assert!(tag.len() == 18 && tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    assert_eq!(answer.header("cache-control"), "private, max-age=0, must-revalidate");

    let fresh = world.get_with("/v1/executions/e1", &[("if-none-match", &tag)]).await;
    assert_eq!((fresh.status.as_u16(), fresh.text.as_str(), fresh.header("etag")), (304, "", tag.as_str()));
    assert!(!fresh.header("x-correlation-id").is_empty());

    world.gives("executions.get", execution("completed"));
    let changed = world.get_with("/v1/executions/e1", &[("if-none-match", &tag)]).await;
    assert_eq!((changed.status.as_u16(), changed.header("cache-control")), (200, "private, max-age=60"));
    assert_ne!(changed.header("etag"), tag);

    let failed = world.get_with("/v1/executions/e1", &[("if-match", &tag)]).await;
    assert_eq!(failed.error(412), "CONFLICT");
    assert_eq!(failed.header("etag"), changed.header("etag"));
    let met = world.get_with("/v1/executions/e1", &[("if-match", changed.header("etag"))]).await;
    assert_eq!(met.status, 200);
}

#[tokio::test]
async fn errors_inside_speak_the_words_of_the_contract_wf_19_8() {
    let world = World::new();
    let mut failed = execution("failed");
    failed["steps"]["a"]["error"] = json!({"code": "AGENT_FAILED", "message": "m", "isRetryable": false});
    failed["errors"] =
        json!([{"stepId": "a", "code": "EXPR_PATH_NOT_FOUND", "message": "m", "isRetryable": false}]);
    world.gives("executions.get", failed);
    let body = world.get("/v1/executions/e1").await.json();
    assert_eq!(body["errors"][0]["category"], "validation");
    let expected =
        json!({"code": "AGENT_FAILED", "category": "business", "message": "m", "isRetryable": false});
    assert_eq!(body["steps"]["a"]["error"], expected);
}

#[tokio::test]
async fn a_wait_without_a_tag_is_for_the_end() {
    let world = World::new();
    world.gives("executions.get", execution("completed"));
    for (wait, ms) in [("10", 10_000), ("250ms", 250), ("3600", 60_000)] {
        let answer = world.get(&format!("/v1/executions/e1?wait={wait}")).await;
        assert_eq!(answer.status, 200);
        let asked = world.heard().last().unwrap().args.clone();
        assert_eq!(asked, json!({"executionId": "e1", "waitMs": ms, "until": "final"}));
    }
    let answer = world.get("/v1/executions/e1?wait=soon").await;
    assert_eq!(answer.error(400), "VALIDATION");
}

#[tokio::test]
async fn a_wait_with_a_tag_is_for_a_change() {
    let world = World::new();
    world.gives("executions.get", execution("running"));
    let tag = world.get("/v1/executions/e1").await.header("etag").to_owned();
    let looks = Arc::new(AtomicU64::new(0));
    let count = looks.clone();
    world.on("executions.get", move |args| {
        // The first look finds it as it was, the second a change that does not matter, the third one that does.
        let look = count.fetch_add(1, Ordering::SeqCst);
        assert_eq!(args["until"] == "change", look > 0, "{args}");
        assert_eq!(args["after"].as_u64(), (look > 0).then_some(look + 3), "it goes on after what was seen");
        let mut found = execution("running");
        found["lastSequence"] = (look + 4).into();
        if look == 2 {
            found["outputs"] = json!({"a": {"n": 1}, "b": 2});
        }
        Ok(found)
    });
    let answer = world.get_with("/v1/executions/e1?wait=30", &[("if-none-match", &tag)]).await;
    assert_eq!((answer.status.as_u16(), looks.load(Ordering::SeqCst)), (200, 3));
    assert_eq!(answer.json()["outputs"]["b"], 2);
}

#[tokio::test]
async fn a_wait_for_a_change_that_does_not_come_ends_with_304() {
    let world = World::new();
    world.gives("executions.get", execution("running"));
    let tag = world.get("/v1/executions/e1").await.header("etag").to_owned();
    world.on_later("executions.get", |args, context| async move {
        let wait_ms = args["waitMs"].as_u64().unwrap_or(0);
        context.kernel.ports().clock.sleep(std::time::Duration::from_millis(wait_ms)).await;
        Ok(execution("running"))
    });
    let answer = world.get_with("/v1/executions/e1?wait=30ms", &[("if-none-match", &tag)]).await;
    assert_eq!((answer.status.as_u16(), answer.header("etag")), (304, tag.as_str()));
}

#[tokio::test]
async fn a_moment_can_be_looked_at_but_not_waited_for() {
    let world = World::new();
    world.gives("executions.get", execution("running"));
    assert_eq!(world.get("/v1/executions/e1?at=3").await.status, 200);
    assert_eq!(world.heard_once("executions.get").args, json!({"executionId": "e1", "at": 3}));
    assert_eq!(world.get("/v1/executions/e1?at=3&wait=1").await.error(400), "VALIDATION");
    assert_eq!(world.get("/v1/executions/e1?at=-3").await.error(400), "VALIDATION");
}

#[tokio::test]
async fn what_does_not_exist_is_404_with_its_id() {
    let world = World::new();
    world.fails("executions.get", Fault::new(Code::NotFound, "there is no execution e9"));
    let answer = world.get("/v1/executions/e9").await;
    assert_eq!(answer.error(404), "NOT_FOUND");
    assert_eq!(answer.json()["executionId"], "e9");
    for no_id in ["/v1/executions/a%20b", "/v1/executions/%00", "/v1/executions/%FF"] {
        assert_eq!(world.get(no_id).await.error(404), "NOT_FOUND", "{no_id}");
    }
}

#[tokio::test]
async fn lists_translate_their_filters_and_refuse_strange_ones() {
    let world = World::new();
    let row =
        json!({"executionId": "e1", "error": {"code": "STORE_FAILED", "message": "m", "isRetryable": true}});
    world.gives("executions.list", json!({"executions": [row], "nextCursor": "c2"}));
    let target = "/v1/executions?status=failed&workflowId=w&correlationId=c&since=2026-01-01T00:00:00Z&until=2026-02-01T00:00:00Z&cursor=c1&limit=7";
    let answer = world.get(target).await;
    assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (200, "no-store"));
    assert_eq!(answer.json()["executions"][0]["error"]["code"], "RETRYABLE");
    assert_eq!(
        world.heard_once("executions.list").args,
        json!({
            "status": "failed", "workflowId": "w", "correlationId": "c", "since": "2026-01-01T00:00:00Z",
            "until": "2026-02-01T00:00:00Z", "cursor": "c1", "limit": 7,
        })
    );
    for wrong in ["status=FAILED", "limit=0", "limit=501", "limit=x", "since=yesterday", "cursor=", "page=2"]
    {
        assert_eq!(world.get(&format!("/v1/executions?{wrong}")).await.error(400), "VALIDATION", "{wrong}");
    }
    assert_eq!(world.get("/v1/dashboard/executions?limit=5").await.status, 200);
}
