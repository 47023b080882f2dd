//! GET /executions/{id}/journal: pages, filters, tags, lines (ADR-003, ADR-015, WF-19.7).

use orchestr8_contract::{Code, Fault};
use serde_json::{Value, json};

use crate::world::World;

const JOURNAL: &str = "/v1/executions/e1/journal";

fn entry(sequence: u64) -> Value {
    json!({"sequence": sequence, "timestamp": sequence, "type": "step.started", "level": "info", "data": {}})
}

/// A journal of `total` entries, page by page as the domain gives it.
fn page(args: &Value, total: u64) -> Value {
    let after: u64 = args["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    let limit = args["limit"].as_u64().unwrap();
    let last = (after + limit).min(total);
    json!({
        "executionId": "e1", "entries": (after + 1..=last).map(entry).collect::<Vec<_>>(),
        "pagination": {"hasMore": last < total, "nextCursor": if last < total { json!(last.to_string()) } else { Value::Null }, "limit": limit},
        "summary": {"totalEntries": total, "errors": 0, "warnings": 0, "retries": 0},
        "lastModified": "2026-01-01T00:00:01.500Z",
    })
}

fn world(total: u64) -> World {
    let world = World::new();
    world.on("executions.journal", move |args| Ok(page(args, total)));
    world
}

#[tokio::test]
async fn a_page_has_a_weak_tag_and_a_date_adr_003() {
    let world = world(3);
    let answer = world.get(JOURNAL).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (tag, body) = (answer.header("etag").to_owned(), answer.json());
    assert!(tag.starts_with("W/\"") && tag.len() == 20, "{tag}");
    assert_eq!((&body["etag"], &body["pagination"]["limit"]), (&json!(tag), &json!(100)));
    assert_eq!(answer.header("last-modified"), "Thu, 01 Jan 2026 00:00:01 GMT");
    let fresh = world.get_with(JOURNAL, &[("if-none-match", &tag)]).await;
    assert_eq!((fresh.status.as_u16(), fresh.text.as_str()), (304, ""));
    world.on("executions.journal", |args| Ok(page(args, 4)));
    let grown = world.get_with(JOURNAL, &[("if-none-match", &tag)]).await;
    assert_eq!(grown.status, 200);
    assert_ne!(grown.header("etag"), tag);
    assert_eq!(world.get_with(JOURNAL, &[("if-match", &tag)]).await.error(412), "VALIDATION");
}

#[tokio::test]
async fn filters_are_checked_and_passed_on_wf_19_7() {
    let world = world(3);
    let target = "?since=2&cursor=1&limit=1000&level=warn&types=step.failed,log&format=json";
    assert_eq!(world.get(&format!("{JOURNAL}{target}")).await.status, 200);
    let expected = json!({
        "executionId": "e1", "since": 2, "cursor": "1", "limit": 1000, "level": "warn", "types": ["step.failed", "log"],
    });
    assert_eq!(world.heard_once("executions.journal").args, expected);
    assert_eq!(world.get(&format!("{JOURNAL}?since=2026-01-01T00:00:00Z")).await.status, 200);
    assert_eq!(world.heard()[1].args["since"], "2026-01-01T00:00:00Z");
    for wrong in [
        "limit=1001",
        "limit=0",
        "since=last",
        "level=fatal",
        "types=",
        "types=a,,b",
        "format=xml",
        "cursor=x",
    ] {
        assert_eq!(world.get(&format!("{JOURNAL}?{wrong}")).await.error(400), "VALIDATION", "{wrong}");
    }
}

#[tokio::test]
async fn lines_go_through_all_pages_or_as_many_entries_as_wanted() {
    let world = world(1200);
    let answer = world.get(&format!("{JOURNAL}?format=ndjson")).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
    assert!(answer.header("etag").starts_with("W/"));
    let lines: Vec<Value> = answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sequences: Vec<u64> = lines.iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=1200).collect::<Vec<_>>());
    let some = world.get(&format!("{JOURNAL}?format=ndjson&limit=700")).await;
    assert_eq!(some.text.lines().count(), 700);
    let tag = answer.header("etag");
    let fresh = world.get_with(&format!("{JOURNAL}?format=ndjson"), &[("if-none-match", tag)]).await;
    assert_eq!(fresh.status, 304);
}

#[tokio::test]
async fn lines_that_are_too_many_end_with_where_to_go_on_adr_015() {
    let world = World::new();
    world.on("executions.journal", |args| {
        let mut page = page(args, 30);
        for entry in page["entries"].as_array_mut().unwrap() {
            entry["data"] = json!({"text": "x".repeat(1_000_000)});
        }
        Ok(page)
    });
    let answer = world.get(&format!("{JOURNAL}?format=ndjson")).await;
    let last: Value = serde_json::from_str(answer.text.lines().last().unwrap()).unwrap();
    assert_eq!(last, json!({"pagination": {"hasMore": true, "nextCursor": "10"}}));
    assert!(answer.text.len() <= 10_485_760);
}

#[tokio::test]
async fn errors_are_answered_before_anything_is_streamed() {
    let world = World::new();
    world.fails("executions.journal", Fault::new(Code::NotFound, "there is no execution e1"));
    for target in [JOURNAL.to_owned(), format!("{JOURNAL}?format=ndjson")] {
        let answer = world.get(&target).await;
        assert_eq!((answer.error(404).as_str(), &answer.json()["executionId"]), ("NOT_FOUND", &json!("e1")));
    }
}

#[tokio::test]
async fn errors_inside_entries_speak_the_words_of_the_contract() {
    let world = World::new();
    world.on("executions.journal", |args| {
        let mut page = page(args, 1);
        page["entries"][0]["data"] =
            json!({"error": {"code": "UNAVAILABLE", "message": "m", "isRetryable": true}});
        Ok(page)
    });
    let body = world.get(JOURNAL).await.json();
    assert_eq!(body["entries"][0]["data"]["error"]["code"], "RETRYABLE");
}
