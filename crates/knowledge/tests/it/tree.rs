//! The tree: each action's promises, one by one (KNO-8).

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_testing::settled;
use serde_json::{Value, json};

use crate::world::{World, document, id};

#[tokio::test]
async fn kno_8_1_a_document_is_created_once_below_a_parent_that_exists() {
    let world = World::new();
    assert_eq!(world.put(1, "root", "One", "text").await, json!({"id": id(1), "revision": 1}));
    let fault = world.fault("create_document", document(1, "root", "One", "text")).await;
    assert_eq!(fault.code, Code::StateConflict);
    for parent in ["nowhere".to_owned(), id(9)] {
        assert_eq!(world.code("create_document", document(2, &parent, "Two", "")).await, Code::NotFound);
    }
    let bad = json!({"document_id": "not-a-uuid", "parent_id": "root", "content": {"mime_type": "text/plain", "body": ""}, "metadata": {"title": "x"}});
    assert_eq!(world.code("create_document", bad).await, Code::InvalidArgument);
    let mut bad = document(3, "root", "x", "{");
    bad["content"]["mime_type"] = json!("application/json");
    assert_eq!(world.code("create_document", bad).await, Code::InvalidArgument);
    assert_eq!(world.code("create_document", document(3, "root", "  ", "")).await, Code::InvalidArgument);
}

#[tokio::test]
async fn kno_8_2_an_update_is_a_merge_patch_within_its_mask() {
    let world = World::new();
    let mut new = document(1, "root", "One", "first");
    new["metadata"]["tags"] = json!(["a"]);
    new["metadata"]["source"] = json!("s");
    world.ask("create_document", new).await;
    let update = json!({"document_id": id(1), "last_known_revision": 1, "update_mask": ["content.body", "metadata.source"],
        "patch": {"content": {"body": "second"}, "metadata": {"title": "ignored"}}});
    assert_eq!(world.ask("update_document", update.clone()).await, json!({"id": id(1), "revision": 2}));
    let read = world.ask("get_document", json!({"document_id": id(1)})).await;
    assert_eq!(read["content"], json!({"mime_type": "text/markdown", "body": "second"}));
    assert_eq!(
        read["metadata"],
        json!({"title": "One", "tags": ["a"]}),
        "in the mask and not in the patch: removed"
    );
    let fault = world.fault("update_document", update).await;
    assert_eq!(fault.code, Code::VersionMismatch);
    let details = fault.details.unwrap();
    assert_eq!((&details["expected_revision"], &details["actual"]), (&json!(1), &json!(2)));
    for mask in ["content.body", "metadata.title", "content", "metadata"] {
        let fault = world
            .fault("update_document", json!({"document_id": id(1), "update_mask": [mask], "patch": {}}))
            .await;
        assert_eq!(fault.details.unwrap()["reason"], "UNPROCESSABLE_ENTITY", "{mask}");
    }
    let old = world.ask("get_document", json!({"document_id": id(1), "revision": 1})).await;
    assert_eq!((&old["content"]["body"], &old["metadata"]["source"]), (&json!("first"), &json!("s")));
}

#[tokio::test]
async fn n_writers_on_one_revision_have_one_winner_and_the_others_know_why() {
    let world = Arc::new(World::new());
    world.put(1, "root", "One", "x").await;
    let writers = (0..64).map(|n| {
        let world = world.clone();
        tokio::spawn(async move {
            let args = json!({"document_id": id(1), "last_known_revision": 1, "update_mask": ["content.body"],
                              "patch": {"content": {"body": format!("by {n}")}}});
            world.settle("update_document", args).await
        })
    });
    let mut won = 0;
    for ended in futures::future::join_all(writers).await {
        match ended.unwrap() {
            ended if ended.result.is_ok() => won += 1,
            ended => {
                let details = settled::fault(ended).details.unwrap();
                assert_eq!((&details["expected_revision"], &details["actual"]), (&json!(1), &json!(2)));
            }
        }
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn kno_8_3_what_is_deleted_is_gone_with_all_below_it_until_it_is_restored() {
    let world = World::new();
    world.put(1, "root", "One", "alpha").await;
    world.put(2, &id(1), "Two", "beta").await;
    world.put(3, &id(2), "Three", "gamma").await;
    let deleted = world.ask("delete_document", json!({"document_id": id(2), "reason": "old"})).await;
    assert_eq!((&deleted["deleted"], deleted["purge_at"].is_string()), (&json!(true), true));
    for n in [2, 3] {
        assert_eq!(world.code("get_document", json!({"document_id": id(n)})).await, Code::NotFound);
        assert_eq!(world.code("delete_document", json!({"document_id": id(n)})).await, Code::NotFound);
        let fault = world.fault("create_document", document(n, "root", "again", "")).await;
        assert_eq!(fault.code, Code::StateConflict);
        assert!(fault.details.unwrap()["hint"].as_str().unwrap().contains("restore"));
    }
    assert_eq!(world.code("create_document", document(4, &id(2), "Four", "")).await, Code::NotFound);
    assert!(world.children(&id(1)).await.is_empty());
    assert_eq!(world.code("restore_document", json!({"document_id": id(3)})).await, Code::StateConflict);
    let trash = world.ask("list", json!({"deleted": true})).await;
    assert_eq!(trash["documents"].as_array().unwrap().len(), 1);
    world.ask("restore_document", json!({"document_id": id(2)})).await;
    assert_eq!(world.children(&id(1)).await, ["Two"]);
    assert_eq!(world.children(&id(2)).await, ["Three"]);
    let history = world.ask("document_history", json!({"document_id": id(2)})).await;
    let ops: Vec<&str> =
        history["revisions"].as_array().unwrap().iter().map(|one| one["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["restore", "delete", "create"]);
    assert_eq!(history["revisions"][1]["reason"], "old");
    assert_eq!(history["revisions"][0]["by"], "tester");
}

#[tokio::test]
async fn what_was_deleted_before_its_parent_stays_deleted_after_it_is_back() {
    let world = World::new();
    world.put(1, "root", "One", "").await;
    world.put(2, &id(1), "Two", "").await;
    world.put(3, &id(1), "Three", "").await;
    world.ask("delete_document", json!({"document_id": id(2)})).await;
    world.ask("delete_document", json!({"document_id": id(1)})).await;
    assert_eq!(world.code("restore_document", json!({"document_id": id(2)})).await, Code::StateConflict);
    world.ask("restore_document", json!({"document_id": id(1)})).await;
    assert_eq!(world.children(&id(1)).await, ["Three"]);
    world.ask("restore_document", json!({"document_id": id(2)})).await;
    assert_eq!(world.children(&id(1)).await, ["Two", "Three"]);
}

#[tokio::test]
async fn kno_8_4_a_move_makes_no_cycle_and_keeps_the_order_it_was_asked_for() {
    let world = World::new();
    for (n, title) in ["A", "B", "C", "D"].into_iter().enumerate() {
        world.put(n + 1, "root", title, "").await;
    }
    let to = |n: usize, parent: String, position: Value| json!({"document_id": id(n), "new_parent_id": parent, "position": position});
    let moved = world.ask("move_document", to(4, "root".into(), json!({"before": id(2)}))).await;
    assert_eq!(moved, json!({"id": id(4), "revision": 2, "parent_id": "root", "ordering": 1}));
    assert_eq!(world.children("root").await, ["A", "D", "B", "C"]);
    world.ask("move_document", to(3, "root".into(), json!({"ordering": 0}))).await;
    assert_eq!(world.children("root").await, ["C", "A", "D", "B"]);
    let moved = world.ask("move_document", to(1, "root".into(), json!({}))).await;
    assert_eq!(moved["ordering"], 3);
    world.ask("move_document", to(2, id(1), json!({"ordering": 99}))).await;
    world.ask("move_document", to(3, id(2), json!({}))).await;
    for parent in [1, 2, 3] {
        let fault = world.fault("move_document", to(1, id(parent), json!({}))).await;
        assert_eq!((fault.code, fault.message.contains("would create a cycle")), (Code::StateConflict, true));
    }
    assert_eq!(world.code("move_document", to(1, id(77), json!({}))).await, Code::NotFound);
    assert_eq!(
        world.code("move_document", to(1, "root".into(), json!({"before": id(3)}))).await,
        Code::InvalidArgument
    );
    let read = world.ask("get_document", json!({"document_id": id(3)})).await;
    assert_eq!(read["path"], "/A/B/C");
}

#[tokio::test]
async fn places_are_numbered_anew_when_there_is_no_room() {
    let world = World::new();
    for n in 1..=3 {
        world.put(n, "root", &format!("T{n}"), "").await;
    }
    for round in 0..1_500usize {
        let n = 1 + round % 2;
        let position = json!({"before": id(3)});
        world
            .ask(
                "move_document",
                json!({"document_id": id(n), "new_parent_id": "root", "position": position}),
            )
            .await;
        let wanted = if n == 1 { ["T2", "T1", "T3"] } else { ["T1", "T2", "T3"] };
        assert_eq!(world.children("root").await, wanted, "round {round}");
    }
    let rows = world.rows("SELECT MAX(length(place)) FROM knowledge_document").await;
    assert!(rows[0].int(0).unwrap() <= 200);
}

#[tokio::test]
async fn a_tree_has_a_bottom() {
    let world = World::new();
    let mut parent = String::from("root");
    for n in 1..=64 {
        world.put(n, &parent, "x", "").await;
        parent = id(n);
    }
    assert_eq!(world.code("create_document", document(65, &parent, "x", "")).await, Code::ResourceExhausted);
    world.put(66, "root", "y", "").await;
    let args = json!({"document_id": id(66), "new_parent_id": parent});
    assert_eq!(world.code("move_document", args).await, Code::ResourceExhausted);
}

#[tokio::test]
async fn reads_are_partial_unless_all_is_asked_for() {
    let world = World::new();
    let body = "đ".repeat(700);
    world.put(1, "root", "Long", &body).await;
    world.put(2, "root", "Short", "x").await;
    let read = world.ask("get_document", json!({"document_id": id(1)})).await;
    assert_eq!(read["content"]["body"].as_str().unwrap().chars().count(), 500);
    assert_eq!((&read["truncated"], &read["content_length"]), (&json!(true), &json!(700)));
    let read = world.ask("get_document", json!({"document_id": id(1), "full": true})).await;
    assert_eq!((read["content"]["body"].as_str().unwrap(), read.get("truncated")), (body.as_str(), None));
    let many = world.ask("get_many", json!({"ids": [id(2), id(9), id(1)]})).await;
    assert_eq!(many["documents"].as_array().unwrap().len(), 2);
    assert_eq!(many["not_found"], json!([id(9)]));
    let shown = |n: usize| world.ask("get_document", json!({"document_id": id(n)}));
    assert_eq!(
        many["documents"],
        json!([shown(2).await, shown(1).await]),
        "as one by one, in the order asked for"
    );
    let full = world.ask("get_many", json!({"ids": [id(1), id(1)], "full": true})).await;
    assert_eq!(full["documents"][1]["content"]["body"].as_str().unwrap(), body);
}

#[tokio::test]
async fn an_edit_replaces_what_stands_there_once() {
    let world = World::new();
    world.put(1, "root", "One", "red green red").await;
    let edit = |old: &str, new: &str| json!({"document_id": id(1), "old_str": old, "new_str": new});
    assert_eq!(world.ask("edit", edit("green", "blue")).await, json!({"id": id(1), "revision": 2}));
    let fault = world.fault("edit", edit("green", "x")).await;
    assert_eq!(fault.details.unwrap()["reason"], "NOT_FOUND_IN_CONTENT");
    let details = world.fault("edit", edit("red", "x")).await.details.unwrap();
    assert_eq!((&details["reason"], &details["occurrences"]), (&json!("AMBIGUOUS"), &json!(2)));
    assert_eq!(world.find(json!({"query": "blue"})).await, ["One"]);
}

#[tokio::test]
async fn lists_go_page_by_page() {
    let world = World::new();
    world.put(100, "root", "Hand/book", "").await;
    for n in 1..=7 {
        world.put(n, &id(100), &format!("Page {n}"), "").await;
    }
    world.put(200, "root", "Other", "").await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut args = json!({"prefix": "Hand%2Fbook/Pa", "limit": 3});
        if cursor.is_string() {
            args["cursor"] = cursor;
        }
        let page = world.ask("list", args).await;
        seen.extend(
            page["documents"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap().to_owned()),
        );
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, (1..=7).map(|n| format!("/Hand%2Fbook/Page {n}")).collect::<Vec<_>>());
    let all = world.ask("list", json!({})).await;
    assert_eq!(all["documents"].as_array().unwrap().len(), 9);
    assert_eq!(world.ask("list", json!({"prefix": "/"})).await, all);
    // Without a prefix they come in the order of their ids, each once, with their paths, whatever moves meanwhile.
    let (mut ids, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut args = json!({"limit": 2});
        if cursor.is_string() {
            args["cursor"] = cursor;
        }
        let page = world.ask("list", args).await;
        for one in page["documents"].as_array().unwrap() {
            let read = world.ask("get_document", json!({"document_id": one["id"]})).await;
            assert_eq!(one["path"], read["path"]);
            ids.push(one["id"].as_str().unwrap().to_owned());
        }
        world.ask("move_document", json!({"document_id": id(1), "new_parent_id": "root"})).await;
        world
            .ask(
                "move_document",
                json!({"document_id": id(1), "new_parent_id": id(100), "position": {"ordering": 0}}),
            )
            .await;
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let mut wanted: Vec<String> = (1..=7).chain([100, 200]).map(id).collect();
    wanted.sort();
    assert_eq!(ids, wanted);
    assert_eq!(world.code("list", json!({"cursor": "nonsense"})).await, Code::InvalidArgument);
    let first = world.ask("list_children", json!({"parent_id": id(100), "limit": 5})).await;
    let rest = world
        .ask("list_children", json!({"parent_id": id(100), "limit": 5, "cursor": first["next_cursor"]}))
        .await;
    assert_eq!((rest["children"].as_array().unwrap().len(), rest.get("next_cursor")), (2, None));
}

#[tokio::test]
async fn kno_6_roles_decide() {
    let world = World::new();
    world.put(1, "root", "One", "").await;
    let writes = [
        ("create_document", document(2, "root", "x", ""), ["owner", "editor", "agent"].as_slice()),
        (
            "update_document",
            json!({"document_id": id(1), "patch": {"metadata": {"title": "t"}}, "update_mask": ["metadata.title"]}),
            &["owner", "editor"],
        ),
        ("move_document", json!({"document_id": id(1), "new_parent_id": "root"}), &["owner", "editor"]),
        ("edit", json!({"document_id": id(1), "old_str": "x", "new_str": "y"}), &["owner", "editor"]),
        ("restore_document", json!({"document_id": id(1)}), &["owner", "editor"]),
        ("delete_document", json!({"document_id": id(9)}), &["owner", "editor"]),
        ("query_knowledge", json!({"query": "x"}), &["owner", "editor", "viewer", "agent"]),
        ("get_document", json!({"document_id": id(1)}), &["owner", "editor", "viewer", "agent"]),
        ("list_children", json!({}), &["owner", "editor", "viewer", "agent"]),
        ("document_history", json!({"document_id": id(1)}), &["owner", "editor", "viewer", "agent"]),
    ];
    for (name, args, allowed) in writes {
        for role in ["owner", "editor", "viewer", "agent", "nobody"] {
            let ended = world.settle_as("acme", role, &format!("knowledge.{name}"), args.clone()).await;
            let refused = ended.code() == Some(Code::Unauthorized);
            assert_eq!(refused, !allowed.contains(&role), "{role} {name} {:?}", ended.code());
        }
    }
}
