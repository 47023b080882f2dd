//! Words and meaning in one answer: what is fused, what is said about it, and what happens when one side fails (KNO-8.5).

use std::sync::Arc;

use orchestr8_knowledge::vectors::Embedded;
use orchestr8_knowledge::{Meaning, tables};
use orchestr8_testing::{Parts, memory};
use serde_json::json;

use crate::letters::{DIMENSIONS, Letters};
use crate::world::World;

fn world() -> (World, Letters) {
    let letters = Letters::new("a");
    let dense = Arc::new(Embedded::new(DIMENSIONS, 64 << 20));
    let meaning = Meaning { embedder: Arc::new(letters.clone()), dense };
    let store = memory(&[tables::MIGRATIONS]);
    (World::meaning(Parts::on(Arc::new(store.clone())), store, meaning), letters)
}

#[tokio::test]
async fn an_answer_says_that_both_sides_were_asked_and_scores_are_shares() {
    let (world, _) = world();
    for n in 1..=5 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra number{n} stands in the grass")).await;
    }
    let found = world.ask("query_knowledge", json!({"query": "zebra number3", "top_k": 3})).await;
    assert_eq!((&found["retrieval"], found.get("degraded")), (&json!("hybrid"), None), "{found}");
    assert_eq!(found["context"][0]["metadata"]["title"], "T3");
    assert!(found["usage"]["qdrant_hits"].as_u64().unwrap() > 0, "{found}");
    let scores: Vec<f64> =
        found["context"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
}

#[tokio::test]
async fn what_only_one_side_finds_is_found() {
    let (world, letters) = world();
    world.put(1, "root", "Wings", "lift grows with speed").await;
    world.put(2, "root", "Bread", "flour and water").await;
    // Words that are stemmed are the same to the one side and different to the other.
    assert_eq!(world.find(json!({"query": "lifts growing speeds"})).await[0], "Wings");
    letters.fail_passages(true);
    world.put(3, "root", "Fresh", "quite unlearned yet").await;
    let found = world.ask("query_knowledge", json!({"query": "unlearned"})).await;
    assert_eq!(
        found["context"][0]["metadata"]["title"], "Fresh",
        "words find what meaning does not know yet"
    );
    assert_eq!(found["degraded"], true);
}

#[tokio::test]
async fn a_caller_may_ask_one_side_alone() {
    let (world, _) = world();
    world.put(1, "root", "Wings", "lift grows with speed").await;
    for (side, said) in [("lexical", "lexical only"), ("dense", "dense only"), ("hybrid", "hybrid")] {
        let found =
            world.ask("query_knowledge", json!({"query": "lift", "routing": {"retrieval": side}})).await;
        assert_eq!((&found["retrieval"], found.get("degraded")), (&json!(said), None), "{found}");
        assert_eq!(found["context"][0]["metadata"]["title"], "Wings");
        let hits = |name: &str| found["usage"][name].as_u64().unwrap() > 0;
        assert_eq!((hits("lexical_hits"), hits("qdrant_hits")), (side != "dense", side != "lexical"));
    }
}

#[tokio::test]
async fn without_its_model_words_are_searched_and_the_answer_says_so() {
    let (world, letters) = world();
    world.put(1, "root", "Wings", "lift grows with speed").await;
    letters.fail(true);
    let found = world.ask("query_knowledge", json!({"query": "lift"})).await;
    assert_eq!((&found["retrieval"], &found["degraded"]), (&json!("lexical only"), &json!(true)));
    assert_eq!(found["context"][0]["metadata"]["title"], "Wings");
    letters.fail(false);
    let found = world.ask("query_knowledge", json!({"query": "lift"})).await;
    assert_eq!((&found["retrieval"], found.get("degraded")), (&json!("hybrid"), None));
}

#[tokio::test]
async fn nothing_of_another_tenant_and_nothing_outside_a_filter_comes_by_meaning() {
    let (world, _) = world();
    world.put(1, "root", "Mine", "zebra grass").await;
    let other = crate::world::document(2, "root", "Theirs", "zebra grass savannah");
    orchestr8_testing::settled::value(
        world.settle_as("globex", "owner", "knowledge.create_document", other).await,
    );
    assert_eq!(world.find(json!({"query": "zebra savannah"})).await, ["Mine"]);
    let filtered = json!({"query": "zebra grass", "filters": {"tags": ["none"]}});
    assert!(world.find(filtered).await.is_empty());
}
