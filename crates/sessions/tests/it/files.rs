//! Session files: there and back, from other programs, and never out of the folders they belong in.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::access::RoleSet;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::{End, Principal};
use orchestr8_testing::settled;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::world::World;

const HEAD: &str =
    r#"{"type":"session","version":3,"id":"x","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/"}"#;

/// A folder with session files, and a world around it.
async fn place() -> (TempDir, World) {
    let temp = tempdir().unwrap();
    fs::create_dir(temp.path().join("sessions")).unwrap();
    let world = World::at(temp.path()).await;
    (temp, world)
}

fn file(temp: &TempDir, name: &str, said: &[&str]) -> String {
    let mut text = format!("{HEAD}\n");
    let mut parent = Value::Null;
    for said in said {
        let message = json!({"role": "user", "content": said});
        let id = format!("id of {said}");
        text +=
            &format!("{}\n", json!({"type": "message", "id": id, "parentId": parent, "message": message}));
        parent = json!(id);
    }
    let path = temp.path().join("sessions").join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn tree(world: &World, id: &str) -> Value {
    world.ask("get_tree", json!({"sessionId": id})).await
}

#[tokio::test]
async fn an_exported_session_is_the_same_when_it_is_loaded() {
    let (temp, world) = place().await;
    world.session().await;
    world.ask("set_session_name", json!({"sessionId": "s", "name": "mine"})).await;
    world.ask("set_thinking_level", json!({"sessionId": "s", "level": "high"})).await;
    world.prompt("one").await;
    world.prompt("/tool math.add {\"a\": 2, \"b\": 3}").await;
    let before = tree(&world, "s").await;
    let first = before["nodes"][1]["entryId"].clone();
    let options = json!({"label": "here"});
    world.ask("navigate_tree", json!({"sessionId": "s", "targetId": first, "options": options})).await;
    let exported = world.ask("export_session", json!({"sessionId": "s"})).await;
    let path = temp.path().join("sessions/s.jsonl");
    assert_eq!(exported, json!({"path": path}));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "it is private");

    let loaded = world.settle("load_session", json!({"sessionId": "t", "sessionPath": path})).await;
    assert_eq!(loaded.version, Some(0));
    let info = settled::value(loaded)["sessionInfo"].clone();
    assert_eq!((&info["sessionName"], &info["sessionFile"]), (&json!("mine"), &json!(path)));
    assert_eq!((&info["thinkingLevel"], &info["cwd"]), (&json!("high"), &json!(temp.path())));
    assert_eq!(tree(&world, "t").await, tree(&world, "s").await);
    let stats = |id| world.ask("get_session_stats", json!({"sessionId": id}));
    let (mut one, mut two) = (stats("s").await, stats("t").await);
    assert_eq!(one["sessionFile"], json!(path));
    (one["sessionId"], two["sessionId"]) = (Value::Null, Value::Null);
    assert_eq!(one, two);
    let restarted = World::on(world.store.clone()).await;
    assert_eq!(restarted.ask("get_state", json!({"sessionId": "t"})).await["sessionFile"], json!(path));
    world.ask("export_session", json!({"sessionId": "t", "outputPath": path})).await;
    let files = fs::read_dir(temp.path().join("sessions")).unwrap().count();
    assert_eq!(files, 1, "written over, and nothing left beside it");
}

#[tokio::test]
async fn the_tree_of_a_file_becomes_another_root() {
    let (temp, world) = place().await;
    world.session().await;
    world.prompt("before").await;
    let path = file(&temp, "a.jsonl", &["from a file", "and more"]);
    let switched = world.settle("switch_session_file", json!({"sessionId": "s", "sessionPath": path})).await;
    assert_eq!((switched.end, switched.version), (End::Success, Some(2)));
    assert_eq!(settled::value(switched), json!({"cancelled": false}));
    assert_eq!(world.texts().await, ["user: from a file", "user: and more"]);
    world.prompt("after").await;
    assert_eq!(world.texts().await.len(), 4);
    let tree = tree(&world, "s").await;
    let parents: Vec<&Value> =
        tree["nodes"].as_array().unwrap().iter().map(|node| &node["parentId"]).collect();
    assert_eq!(json!(parents), json!([null, "00000000", null, "00000002", "00000003", "00000004"]));
    let state = world.ask("get_state", json!({"sessionId": "s"})).await;
    assert_eq!((&state["messageCount"], &state["sessionFile"]), (&json!(4), &json!(path)));
    let stats = world.ask("get_session_stats", json!({"sessionId": "s"})).await;
    assert_eq!((&stats["userMessages"], &stats["totalMessages"]), (&json!(4), &json!(6)));
}

#[tokio::test]
async fn files_are_found_in_the_folder_and_in_the_project() {
    let (temp, world) = place().await;
    world.session().await;
    let one = file(&temp, "one.jsonl", &["hi"]);
    let own = temp.path().join(".orchestr8/sessions/deep");
    fs::create_dir_all(&own).unwrap();
    let two = own.join("two.json");
    fs::copy(&one, &two).unwrap();
    fs::write(own.join("none.json"), "{}").unwrap();
    fs::write(own.join("notes.txt"), HEAD).unwrap();
    symlink(&one, own.join("link.jsonl")).unwrap();
    let listed = world.ask("list_session_files", json!({"sessionId": "s"})).await;
    let mut paths: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    let mut expected = [two.to_str().unwrap(), one.as_str()];
    expected.sort_unstable();
    assert_eq!(paths, expected);
    assert!(listed["files"][0]["modifiedAt"].as_str().unwrap().ends_with('Z'));

    world.ask("export_session", json!({"sessionId": "s"})).await;
    world.ask("create_session", json!({"sessionId": "unsaved"})).await;
    let stored = world.ask("list_stored_sessions", json!({})).await;
    let lines: Vec<String> = stored["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| {
            assert_eq!(session["sessionFile"], session["sessionPath"]);
            let path = Path::new(session["sessionPath"].as_str().unwrap());
            let name = path.file_name().unwrap().to_str().unwrap();
            format!("{} {name} {}", session["sessionId"].as_str().unwrap(), session["fileExists"])
        })
        .collect();
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    let expected =
        ["one one.jsonl true", "s s.jsonl true", "two two.json true", "unsaved unsaved.jsonl false"];
    assert_eq!(sorted, expected);
    assert!(lines[2..].iter().all(|line| line.contains("one") || line.contains("two")), "the newest first");
}

#[tokio::test]
async fn paths_that_lead_elsewhere_are_refused() {
    let (temp, world) = place().await;
    world.session().await;
    let outside = tempdir().unwrap();
    let secret = outside.path().join("secret.jsonl");
    fs::write(&secret, format!("{HEAD}\n")).unwrap();
    let inside = temp.path().join("sessions");
    fs::write(inside.join("a.txt"), HEAD).unwrap();
    fs::create_dir(inside.join("folder.jsonl")).unwrap();
    for (name, to) in
        [("out.jsonl", secret.as_path()), ("ending.jsonl", &inside.join("a.txt")), ("way", outside.path())]
    {
        symlink(to, inside.join(name)).unwrap();
    }
    let beneath = |name: &str| inside.join(name).to_str().unwrap().to_owned();
    let allowed = "must be under an allowed session directory for this server (e.g. its session folder or this project's .orchestr8/sessions/)";
    let exists = "must point to an existing session file";
    let ending = "must point to a .jsonl or .json session file";
    let cases = [
        (beneath("../a.jsonl"), "contains potentially dangerous path components"),
        ("~/a.jsonl".into(), "contains potentially dangerous path components"),
        (format!("{}\0.jsonl", beneath("a")), "contains potentially dangerous path components"),
        ("a.jsonl".into(), "must be an absolute path"),
        (beneath("a.txt"), ending),
        (beneath("ending.jsonl"), ending),
        (secret.to_str().unwrap().into(), allowed),
        (beneath("out.jsonl"), allowed),
        (beneath("way/secret.jsonl"), allowed),
        ("/etc/a.json".into(), allowed),
        (beneath("gone.jsonl"), exists),
        (beneath("folder.jsonl"), exists),
    ];
    for (path, why) in cases {
        for command in ["load_session", "switch_session_file"] {
            let id = if command == "load_session" { "t" } else { "s" };
            let fault =
                settled::fault(world.settle(command, json!({"sessionId": id, "sessionPath": path})).await);
            assert_eq!(
                (fault.code, fault.message.as_ref()),
                (Code::InvalidArgument, format!("sessionPath {why}").as_str()),
                "{path}"
            );
        }
    }
    assert_eq!(
        world.settle("get_state", json!({"sessionId": "s"})).await.version,
        Some(0),
        "nothing has changed"
    );
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_its_line_and_leaves_nothing_behind() {
    let (temp, world) = place().await;
    let path = file(&temp, "a.jsonl", &["fine"]);
    fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"type\": \"mess").unwrap();
    let load = |path: &str| json!({"sessionId": "t", "sessionPath": path});
    let fault = settled::fault(world.settle("load_session", load(&path)).await);
    assert_eq!(
        (fault.code, fault.message.as_ref()),
        (Code::InvalidArgument, "line 3: it is not JSON at column 14")
    );
    fs::write(&path, b"{}\n\xff").unwrap();
    let fault = settled::fault(world.settle("load_session", load(&path)).await);
    assert_eq!(fault.message, "sessionPath must point to a text; line 2 is none");
    assert_eq!(world.settle("get_state", json!({"sessionId": "t"})).await.code(), Some(Code::NotFound));
    let whole = file(&temp, "b.jsonl", &["fine"]);
    world.ask("load_session", load(&whole)).await;
    let again = settled::fault(world.settle("load_session", load(&whole)).await);
    assert_eq!(again.message, "Session t already exists");
}

#[tokio::test]
async fn what_is_written_goes_only_where_it_may_and_never_over_a_link() {
    let (temp, world) = place().await;
    world.session().await;
    let outside = tempdir().unwrap();
    let victim = outside.path().join("victim.jsonl");
    fs::write(&victim, "precious").unwrap();
    let inside = temp.path().join("sessions");
    symlink(&victim, inside.join("link.jsonl")).unwrap();
    symlink(outside.path(), inside.join("way")).unwrap();
    fs::create_dir(inside.join("folder.jsonl")).unwrap();
    let cases = [
        (inside.join("link.jsonl"), "must not point to something other than a plain file"),
        (inside.join("folder.jsonl"), "must not point to something other than a plain file"),
        (
            inside.join("way/victim.jsonl"),
            "must be under a folder this session may write to (its own, or the session folder of this server)",
        ),
        (
            victim.clone(),
            "must be under a folder this session may write to (its own, or the session folder of this server)",
        ),
        (inside.join("a.txt"), "must end with .jsonl or .json"),
        (inside.join("gone/a.jsonl"), "must be in a folder that exists"),
        ("a.jsonl".into(), "must be an absolute path"),
    ];
    for (path, why) in cases {
        let refused = world.settle("export_session", json!({"sessionId": "s", "outputPath": path})).await;
        assert_eq!(settled::fault(refused).message, format!("outputPath {why}"), "{}", path.display());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let left: Vec<_> = fs::read_dir(&inside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[tokio::test]
async fn a_file_with_more_entries_than_a_commit_has_steps_is_loaded() {
    let (temp, world) = place().await;
    let many: Vec<String> = (0..12_345).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let path = file(&temp, "long.jsonl", &many);
    let loaded = world.ask("load_session", json!({"sessionId": "s", "sessionPath": path})).await;
    assert_eq!(loaded["sessionInfo"]["messageCount"], 12_345);
    let texts = world.texts().await;
    assert_eq!((texts.len(), texts.last().unwrap().as_str()), (12_345, "user: 12344"));
}

#[tokio::test]
async fn tenants_do_not_see_each_others_files() {
    let (temp, world) = place().await;
    let other = Arc::new(Principal::new("other", Tenant::parse("..").unwrap(), RoleSet::named(["owner"])));
    let ask = async |name: &str, args: Value| {
        let mut wish = world.wish(name, args);
        wish.principal = other.clone();
        world.kernel.submit(wish).await
    };
    let ours = file(&temp, "ours.jsonl", &["hi"]);
    let refused = ask("load_session", json!({"sessionId": "t", "sessionPath": ours})).await;
    assert!(settled::fault(refused).message.starts_with("sessionPath must be under an allowed"));
    settled::value(ask("create_session", json!({"sessionId": "t"})).await);
    let theirs = settled::value(ask("export_session", json!({"sessionId": "t"})).await)["path"].clone();
    let folder = temp.path().join("sessions/tenants/tenant-../principals");
    assert!(theirs.as_str().unwrap().starts_with(folder.to_str().unwrap()), "{theirs}");
    let refused = world
        .settle(
            "load_session",
            json!({"sessionId": "u", "sessionPath": temp.path().join("sessions/tenants/a.jsonl")}),
        )
        .await;
    assert!(settled::fault(refused).message.starts_with("sessionPath must be under an allowed"));
    let stored = world.ask("list_stored_sessions", json!({})).await;
    assert_eq!(stored["sessions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_is_written_for_people() {
    let (temp, world) = place().await;
    world.session().await;
    world.ask("set_session_name", json!({"sessionId": "s", "name": "<Mine>"})).await;
    world.prompt("/tool math.add {\"a\": 2, \"b\": 3}").await;
    let path = world.ask("export_html", json!({"sessionId": "s"})).await["path"].clone();
    assert_eq!(path, json!(temp.path().join("sessions/exports/s.html")));
    let page = fs::read_to_string(path.as_str().unwrap()).unwrap();
    assert!(page.contains("<title>&lt;Mine&gt;</title>") && page.contains("Calls <code>math.add</code>"));
    let own = temp.path().join("page.html");
    let asked = world.settle("export_html", json!({"sessionId": "s", "outputPath": own})).await;
    assert_eq!((asked.end, asked.version), (End::Success, Some(4)));
    assert_eq!(fs::read_to_string(own).unwrap(), page);
    let inline = world.ask("export_html", json!({"sessionId": "s", "inline": true})).await;
    assert_eq!(inline, json!({"content": page}));
    let inline = world.ask("export_session", json!({"sessionId": "s", "inline": true})).await;
    assert!(inline["content"].as_str().unwrap().lines().count() > 3 && inline["path"].is_null());
    for (path, why) in [("/etc/page.html", "must be under a folder"), ("/etc/passwd", "must end with .html")]
    {
        let refused = world.settle("export_html", json!({"sessionId": "s", "outputPath": path})).await;
        assert!(settled::fault(refused).message.starts_with(&format!("outputPath {why}")));
    }
}
