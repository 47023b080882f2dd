//! Documents one by one: written, read, moved, deleted, restored, listed and found.

use serde_json::json;

use super::{alone, done, know, put};
use crate::workflows::json_of;

#[test]
fn a_document_is_written_read_and_written_again() {
    let place = alone();
    let none = know(&place, &["tree"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    assert!(none.err.contains("there are no documents"), "{}", none.err);
    let above = place.run_with(&["knowledge", "put", "/Handbook/Setup"], "text");
    assert_eq!(above.code, Some(3), "{above:?}");
    assert!(above.err.contains("there is no document at /Handbook\nhint: give --parents"), "{}", above.err);
    let id = put(&place, "/Handbook/Setup", "# Setup\nfirst");
    assert_eq!(done(&place, &["get", "/Handbook/Setup"]).out, "# Setup\nfirst\n");
    let again = place.run_with(&["knowledge", "put", "/Handbook/Setup", "-"], "# Setup\nfirst");
    assert_eq!(again.err, "unchanged, revision 1\n", "the same twice changes nothing");
    place.write("new.md", "---\ntags: [guide, ops]\nowner: Ada\n---\n# Setup\nsecond\n");
    let plan = done(&place, &["put", &id, "new.md", "--dry-run"]);
    assert!(plan.out.contains("-first\n+second"), "{}", plan.out);
    assert_eq!(done(&place, &["get", &id]).out, "# Setup\nfirst\n");
    assert_eq!(done(&place, &["put", &id, "new.md"]).err, "changed, revision 2\n");
    let shown = json_of(&know(&place, &["get", &id, "--json"]));
    assert_eq!(shown["metadata"], json!({"owner": "Ada", "tags": ["guide", "ops"], "title": "Setup"}));
    assert_eq!((&shown["path"], &shown["revision"]), (&json!("/Handbook/Setup"), &json!(2)));
    assert_eq!(done(&place, &["get", &id, "--revision", "1"]).out, "# Setup\nfirst\n");
    // What `get` writes, `put` takes.
    done(&place, &["get", "-f", "-o", "copy.md", &id]);
    assert_eq!(done(&place, &["put", &id, "copy.md"]).err, "unchanged, revision 2\n");
}

#[test]
fn somebody_faster_is_a_conflict_and_nothing_is_lost() {
    let place = alone();
    let id = put(&place, "/A", "one");
    put(&place, "/A", "two");
    let late = place.run_with(&["knowledge", "put", "/A", "--revision", "1"], "three");
    assert_eq!(late.code, Some(5), "{late:?}");
    assert!(late.err.contains("revision 2, not 1"), "{}", late.err);
    assert_eq!(done(&place, &["get", &id]).out, "two\n");
    let new = place.run_with(&["knowledge", "put", "/B", "--revision", "4"], "x");
    assert_eq!(new.code, Some(3), "{new:?}");
}

#[test]
fn what_is_wrong_is_said_with_its_exit_code() {
    let place = alone();
    put(&place, "/A", "one");
    for (args, code, part) in [
        (vec!["get", "/Nothing"], 3, "there is no document at /Nothing"),
        (vec!["get", "/"], 2, "the root is no document"),
        (vec!["get", "8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11"], 3, "there is no document"),
        (vec!["mv", "/A", "/Nothing"], 3, "there is no document at /Nothing"),
        (vec!["mv", "/A", "/A"], 5, "would create a cycle"),
        (vec!["put", "/A", "no-such-file.md"], 3, "no-such-file.md"),
        (vec!["rm", "/A"], 2, "this needs --yes"),
        (vec!["restore", "/A"], 3, "nothing deleted is titled 'A'"),
        (vec!["query", "x", "--where", "y"], 2, "'y' is not NAME=VALUE"),
        (vec!["query", "x", "--top-k", "21"], 2, "21"),
        (vec!["webhooks", "add", "http://127.0.0.1/x"], 4, "loopback"),
        (vec!["webhooks", "remove", "8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11"], 3, "no webhook"),
    ] {
        let said = know(&place, &args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
    let twice = |text: &str| json!({"document_id": text, "parent_id": "root", "content": {"mime_type": "text/plain", "body": ""}, "metadata": {"title": "A"}});
    place.write("twice.json", &twice("8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11").to_string());
    done(&place, &["put", "8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11", "twice.json", "--title", "A", "--raw"]);
    let said = know(&place, &["get", "/A"]);
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.err.contains("2 documents are at /A\n     - "), "{}", said.err);
}

#[test]
fn the_tree_is_drawn_in_its_order_and_moves_change_it() {
    let place = alone();
    for path in ["/Handbook/Setup/Linux", "/Handbook/Security", "/Notes"] {
        put(&place, path, "x");
    }
    assert_eq!(
        done(&place, &["tree"]).out,
        "/\n├── Handbook\n│   ├── Setup\n│   │   └── Linux\n│   └── Security\n└── Notes\n"
    );
    assert_eq!(
        done(&place, &["tree", "/Handbook", "--depth", "1"]).out,
        "Handbook\n├── Setup\n└── Security\n"
    );
    done(&place, &["mv", "/Handbook/Security", "/", "--before", "/Notes"]);
    done(&place, &["mv", "/Notes", "/", "--at", "0"]);
    assert_eq!(
        done(&place, &["tree"]).out,
        "/\n├── Notes\n├── Handbook\n│   └── Setup\n│       └── Linux\n└── Security\n"
    );
    let json = json_of(&know(&place, &["tree", "--json"]));
    assert_eq!(json["documents"][1]["children"][0]["children"][0]["path"], "/Handbook/Setup/Linux");
}

#[test]
fn what_is_deleted_can_be_restored_and_its_history_says_why() {
    let place = alone();
    put(&place, "/Handbook/Setup", "zebra");
    let plan = done(&place, &["rm", "/Handbook", "--dry-run"]);
    assert_eq!(plan.out, "delete /Handbook with 1 document below it\n");
    let gone = done(&place, &["rm", "/Handbook", "--yes", "--reason", "old"]);
    let id = gone.out.trim().to_owned();
    assert!(gone.err.contains(&format!("orchestr8 knowledge restore {id}")), "{}", gone.err);
    assert_eq!(know(&place, &["get", "/Handbook/Setup"]).code, Some(3));
    assert!(done(&place, &["query", "zebra"]).err.contains("nothing was found"));
    assert!(done(&place, &["tree", "--deleted"]).out.contains(&id));
    done(&place, &["restore", "Handbook"]);
    assert!(done(&place, &["query", "zebra"]).out.contains("/Handbook/Setup"));
    let history = done(&place, &["history", "/Handbook"]).out;
    let rows: Vec<Vec<&str>> = history.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["REVISION", "WHEN", "WHAT", "BY", "TITLE", "REASON"]);
    let whats: Vec<&str> = rows[1..].iter().map(|row| row[3]).collect();
    assert_eq!(whats, ["restore", "delete", "create"]);
    assert_eq!(rows[2].last(), Some(&"old"));
    let planned = done(&place, &["rm", "/Handbook", "--yes", "--at", "7d"]);
    assert!(planned.err.contains("to be deleted at 20"), "{}", planned.err);
}

#[test]
fn a_query_shows_where_its_passages_stand() {
    let place = alone();
    let id = put(&place, "/Trips/Hà Nội", "# Hà Nội\nThủ đô của Việt Nam là Hà Nội. Running is fun there.");
    put(&place, "/Other", "Nothing of it.");
    let said = done(&place, &["query", "thu", "do", "runs", "--color", "always"]);
    assert!(said.out.contains("1. /Trips/Hà Nội"), "{}", said.out);
    assert!(said.out.contains(&format!("{id}  revision 1, characters ")), "{}", said.out);
    assert!(said.out.contains("\x1b[36mRunning\x1b[0m"), "words are marked in all their forms: {}", said.out);
    assert!(said.err.contains("1 passage, lexical only"), "{}", said.err);
    let json = json_of(&know(&place, &["query", "thủ đô", "--json"]));
    let item = &json["context"][0];
    assert_eq!((&json["extractive"], &item["path"]), (&json!(true), &json!("/Trips/Hà Nội")));
    let filtered = json_of(&know(&place, &["query", "thủ đô", "--json", "--below", "/Other"]));
    assert_eq!(filtered["context"], json!([]));
}

#[test]
fn an_editor_gets_the_document_and_gives_it_back() {
    let place = alone().with("EDITOR", "sed -i s/first/second/").with("PATH", "/usr/bin:/bin");
    put(&place, "/A", "first\n");
    assert_eq!(done(&place, &["edit", "/A"]).err, "changed, revision 2\n");
    assert_eq!(done(&place, &["get", "/A"]).out, "second\n");
    assert_eq!(json_of(&know(&place, &["get", "/A", "--json"]))["metadata"], json!({"title": "A"}));
    assert_eq!(done(&place, &["edit", "/A"]).err, "nothing was changed\n");
    let broken = alone().with("EDITOR", "false").with("PATH", "/usr/bin:/bin");
    put(&broken, "/A", "first\n");
    assert_eq!(know(&broken, &["edit", "/A"]).code, Some(7));
    assert_eq!(know(&alone(), &["edit", "/A"]).code, Some(2), "no editor is named");
}

#[test]
fn tenants_have_their_own_trees() {
    let place = alone();
    put(&place, "/Ours", "x");
    let said = place.run_with(&["knowledge", "put", "/Theirs", "-", "--tenant", "globex"], "y");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(done(&place, &["tree"]).out, "/\n└── Ours\n");
    assert_eq!(done(&place, &["tree", "--tenant", "globex"]).out, "/\n└── Theirs\n");
}
