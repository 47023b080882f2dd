//! Queries: what is found, what is not, and what is said about it (KNO-8.5).

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement, Store};
use orchestr8_knowledge::{Settings, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, settled};
use serde_json::json;
use tokio::sync::watch;

use crate::world::{World, document, id};

#[tokio::test]
async fn a_writer_finds_what_it_has_written_with_the_next_query() {
    let world = World::new();
    for n in 1..=20 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra{n} stands here")).await;
        assert_eq!(world.find(json!({"query": format!("zebra{n}")})).await, [format!("T{n}")]);
    }
    let update = json!({"document_id": id(3), "update_mask": ["content.body"], "patch": {"content": {"body": "giraffe"}}});
    world.ask("update_document", update).await;
    assert!(world.find(json!({"query": "zebra3"})).await.is_empty());
    assert_eq!(world.find(json!({"query": "giraffes"})).await, ["T3"], "words are stemmed");
    world.ask("delete_document", json!({"document_id": id(3)})).await;
    assert!(world.find(json!({"query": "giraffe"})).await.is_empty());
    world.ask("restore_document", json!({"document_id": id(3)})).await;
    assert_eq!(world.find(json!({"query": "giraffe"})).await, ["T3"]);
}

#[tokio::test]
async fn a_citation_stands_where_it_says() {
    let world = World::new();
    let body = format!(
        "# Lift\n{}\n\n## Thủ đô\nThủ đô của Việt Nam là Hà Nội. Dân số đông.\n",
        "Wings make lift. ".repeat(120)
    );
    world.put(1, "root", "Mixed", &body).await;
    let found = world.ask("query_knowledge", json!({"query": "thủ đô Việt Nam"})).await;
    let item = &found["context"][0];
    let (offset, length) = (item["offset"].as_u64().unwrap(), item["length"].as_u64().unwrap());
    let cut: String =
        body.chars().skip(usize::try_from(offset).unwrap()).take(usize::try_from(length).unwrap()).collect();
    assert_eq!(item["snippet"], json!(cut));
    assert!(cut.contains("Hà Nội"));
    assert!(found["response"].as_str().unwrap().contains("Hà Nội"));
    assert_eq!(
        (&found["extractive"], &found["retrieval"], found.get("degraded")),
        (&json!(true), &json!("lexical only"), None)
    );
    assert_eq!((&found["usage"]["qdrant_hits"], &found["usage"]["lexical_hits"]), (&json!(0), &json!(1)));
    assert_eq!(item["revision"], 1);
}

#[tokio::test]
async fn vietnamese_is_found_with_marks_and_without_and_marks_count() {
    let world = World::new();
    world.put(1, "root", "Ma", "con ma đi trong đêm").await;
    world.put(2, "root", "Má", "má đi chợ sáng nay").await;
    world.put(3, "root", "Mã", "mã nguồn mở rộng").await;
    assert_eq!(world.find(json!({"query": "má"})).await[0], "Má");
    assert_eq!(world.find(json!({"query": "mã nguồn"})).await[0], "Mã");
    assert_eq!(world.find(json!({"query": "ma nguon mo rong"})).await[0], "Mã", "typed without marks");
    assert_eq!(world.find(json!({"query": "di cho"})).await[0], "Má");
}

#[tokio::test]
async fn filters_never_cost_a_hit() {
    let world = World::new();
    // Many that score better and do not pass, so that a filter applied afterwards would leave nothing.
    world.put(1000, "root", "Shelf", "").await;
    for n in 1..=300 {
        world.put(n, "root", &format!("Better {n}"), "falcon falcon falcon").await;
    }
    let mut rare = document(
        500,
        &id(1000),
        "Rare",
        "a long text about many things, with one falcon in it, and much more besides",
    );
    rare["metadata"]["tags"] = json!(["bird"]);
    rare["metadata"]["year"] = json!(2024);
    rare["metadata"]["places"] = json!(["Huế", "Đà Nẵng"]);
    world.ask("create_document", rare).await;
    for filters in [
        json!({"tags": ["bird"]}),
        json!({"tags": ["fish", "bird"]}),
        json!({"subtree": id(1000)}),
        json!({"metadata": {"year": 2024}}),
        json!({"metadata": {"places": "Huế", "year": 2024}}),
        json!({"tags": ["bird"], "subtree": id(1000), "tenant_id": "acme"}),
    ] {
        assert_eq!(world.find(json!({"query": "falcon", "filters": filters})).await, ["Rare"], "{filters}");
    }
    for filters in [
        json!({"tags": ["fish"]}),
        json!({"metadata": {"year": "2024"}}),
        json!({"metadata": {"year": 2025}}),
    ] {
        assert!(world.find(json!({"query": "falcon", "filters": filters})).await.is_empty(), "{filters}");
    }
    // Deleted ones that score better leave room for those that stay.
    for n in 1..=300 {
        world.ask("delete_document", json!({"document_id": id(n)})).await;
    }
    assert_eq!(world.find(json!({"query": "falcon"})).await, ["Rare"]);
    assert_eq!(world.find(json!({"query": "falcon", "filters": {"subtree": "root"}})).await, ["Rare"]);
}

#[tokio::test]
async fn another_tenant_changes_nothing_not_even_a_score() {
    let (alone, beside) = (World::new(), World::new());
    for n in 1..=30 {
        let text = format!("falcon number {n} {}", "and more ".repeat(n));
        alone.put(n, "root", &format!("T{n}"), &text).await;
        let args = document(n, "root", "theirs", &"falcon ".repeat(n));
        settled::value(beside.settle_as("globex", "owner", "knowledge.create_document", args).await);
        beside.put(n, "root", &format!("T{n}"), &text).await;
    }
    for query in ["falcon number 7", "more falcon", "nothing of it"] {
        let args = json!({"query": query, "top_k": 20});
        let (mut one, mut other) =
            (alone.ask("query_knowledge", args.clone()).await, beside.ask("query_knowledge", args).await);
        (one["usage"]["latency_ms"], other["usage"]["latency_ms"]) = (json!(0), json!(0));
        assert_eq!(one.to_string(), other.to_string());
    }
}

#[tokio::test]
async fn nothing_found_is_an_empty_answer() {
    let world = World::new();
    for query in ["anything", "", "?!"] {
        let found = world.ask("query_knowledge", json!({"query": query})).await;
        assert_eq!((&found["response"], &found["context"]), (&json!(""), &json!([])));
    }
    world.put(1, "root", "One", "text").await;
    let found = world.ask("query_knowledge", json!({"query": "elephant"})).await;
    assert_eq!((&found["response"], &found["context"]), (&json!(""), &json!([])));
    assert_eq!(world.find(json!({"query": "One"})).await, ["One"], "titles are searched, too");
    assert_eq!(
        world.code("query_knowledge", json!({"query": "x".repeat(2049)})).await,
        Code::InvalidArgument
    );
    assert_eq!(
        world.code("query_knowledge", json!({"query": "x", "top_k": 21})).await,
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn the_search_is_skipped_in_test_mode_only() {
    let args = json!({"query": "text", "routing": {"noop_qdrant": true}});
    let world = World::new();
    assert_eq!(world.code("query_knowledge", args.clone()).await, Code::InvalidArgument);
    let settings =
        Settings { test_mode: true, web_base: Some("https://example.org/".into()), ..Settings::default() };
    let world = World::with(memory(&[tables::MIGRATIONS]), settings);
    let made = world.put(1, "root", "One", "text").await;
    assert_eq!(made["web_uri"], json!(format!("https://example.org/documents/{}", id(1))));
    let found = world.ask("query_knowledge", args).await;
    assert_eq!((&found["context"], &found["usage"]["qdrant_hits"]), (&json!([]), &json!(0)));
    assert_eq!(world.find(json!({"query": "text"})).await, ["One"]);
}

#[tokio::test]
async fn an_answer_can_be_plain() {
    let world = World::new();
    world.put(1, "root", "One", "**Falcons** dive at `390` km/h over the sea.").await;
    let args = json!({"query": "falcons dive", "context_hints": {"preferred_format": "plain"}});
    assert_eq!(
        world.ask("query_knowledge", args).await["response"],
        "Falcons dive at 390 km/h over the sea."
    );
}

/// A store that never comes to an end of looking through postings.
struct Stuck(Sqlite);

impl Store for Stuck {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        self.0.commit(batch)
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        if statement.sql.contains("knowledge_posting") {
            return Box::pin(futures::future::pending());
        }
        self.0.query(statement)
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.0.watch(topic)
    }
}

#[tokio::test]
async fn an_answer_comes_in_time_and_says_what_it_lacks() {
    let store = memory(&[tables::MIGRATIONS]);
    let parts = Parts::on(Arc::new(Stuck(store.clone())));
    let world = World::from_parts(parts, store, Settings::default());
    world.put(1, "root", "One", "falcon").await;
    let args = json!({"query": "falcon", "routing": {"max_latency_ms": 1000}});
    let found = world.ask("query_knowledge", args).await;
    assert_eq!(
        (&found["degraded"], &found["context"], &found["response"]),
        (&json!(true), &json!([]), &json!(""))
    );
}
