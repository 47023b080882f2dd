//! Approvals: JSON for programs, a page with a form for people.

use http::Method;
use orchestr8_contract::{Code, Fault};
use serde_json::json;

use crate::world::World;

fn world() -> World {
    let world = World::new();
    let approval = json!({
        "executionId": "e1", "stepId": "review", "message": "Ship <it>?", "who": ["ann"], "token": "tok-1",
        "url": "/v1/approvals/tok-1", "expiresAt": "2026-01-02T00:00:00.000Z",
        "form": {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
    });
    world.on("executions.approvals", move |args| match args["token"].as_str() {
        None | Some("tok-1") => Ok(json!({"approvals": [approval]})),
        Some(_) => Err(Fault::new(Code::NotFound, "nothing waits for this decision")),
    });
    world.gives(
        "executions.approve",
        json!({"executionId": "e1", "stepId": "review", "decision": "approved"}),
    );
    world
}

#[tokio::test]
async fn programs_list_and_answer_in_json() {
    let world = world();
    let list = world.get("/v1/approvals?executionId=e1").await;
    assert_eq!((list.status.as_u16(), &list.json()["approvals"][0]["token"]), (200, &json!("tok-1")));
    assert_eq!(world.heard_once("executions.approvals").args, json!({"executionId": "e1"}));
    assert_eq!(world.get("/v1/approvals/tok-1").await.json()["stepId"], "review");
    assert_eq!(world.get("/v1/approvals/tok-2").await.error(404), "NOT_FOUND");
    let decision =
        json!({"decision": "approve", "onBehalfOf": "ann", "comment": "ok", "data": {"amount": 3}});
    let answer = world.post("/v1/approvals/tok-1", decision).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["decision"]), (200, &json!("approved")));
    assert_eq!(
        world.heard_once("executions.approve").args,
        json!({"token": "tok-1", "decision": "approve", "onBehalfOf": "ann", "comment": "ok", "data": {"amount": 3}})
    );
    let answer = world.post("/v1/approvals", json!({"token": "tok-1", "decision": "reject"})).await;
    assert_eq!(answer.status, 200);
    let twice = json!({"token": "other", "decision": "reject"});
    assert_eq!(world.post("/v1/approvals/tok-1", twice).await.error(400), "VALIDATION");
}

#[tokio::test]
async fn people_get_a_page_and_its_form_works() {
    let world = world();
    let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let page = world.get_with("/v1/approvals/tok-1", &browser).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(
        page.text.contains("Ship &lt;it&gt;?") && page.text.contains("action=\"/v1/approvals/tok-1\""),
        "{}",
        page.text
    );
    assert!(page.text.contains("name=\"data.amount\"") && !page.text.contains("<script"), "{}", page.text);
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");

    let form = [("content-type", "application/x-www-form-urlencoded"), browser[0]];
    let sent = "data.amount=3&onBehalfOf=Ann+B&comment=&decision=approve".to_owned();
    let done = world.ask(Method::POST, "/v1/approvals/tok-1", &form, Some(sent)).await;
    assert_eq!(done.status, 200);
    assert!(done.text.contains("Recorded: approved"), "{}", done.text);
    let expected =
        json!({"token": "tok-1", "decision": "approve", "onBehalfOf": "Ann B", "data": {"amount": 3}});
    assert_eq!(world.heard_once("executions.approve").args, expected);

    world.fails("executions.approve", Fault::new(Code::VersionMismatch, "it was answered <before>"));
    let late = world.ask(Method::POST, "/v1/approvals/tok-1", &form, Some("decision=reject".into())).await;
    assert_eq!(late.status, 409);
    assert!(late.text.contains("it was answered &lt;before&gt;"), "{}", late.text);
    assert_eq!(world.get_with("/v1/approvals/tok-2", &browser).await.status, 404);
}
