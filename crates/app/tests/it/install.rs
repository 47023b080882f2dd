//! `orchestr8 mcp install`: one entry in an editor's file, and nothing else.

use serde_json::{Value, json};

use crate::program::Place;

const CLAUDE: [&str; 4] = ["mcp", "install", "--client", "claude"];

/// Where the user's own configuration is, which every entry names.
fn config(place: &Place) -> String {
    place.path().join("home/.config/orchestr8/orchestr8.json").to_str().unwrap().to_owned()
}

fn own() -> String {
    std::fs::canonicalize(env!("CARGO_BIN_EXE_orchestr8")).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_fresh_project_gets_a_whole_file() {
    for (client, file, section) in [
        ("claude", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ] {
        let place = Place::new();
        let said = place.run(&["mcp", "install", "--client", client]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
        let written: Value = serde_json::from_str(&place.read(file)).unwrap();
        let entry = &written[section]["orchestr8"];
        assert_eq!(
            (&entry["command"], &entry["args"]),
            (&json!(own()), &json!(["mcp", "--config", config(&place)])),
            "{written}"
        );
        assert_eq!(place.read("home/.config/orchestr8/orchestr8.json"), "{\n}\n");
        let again = place.run(&["--json", "mcp", "install", "--client", client]);
        assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap()["result"], "unchanged");
        assert!(!place.path().join(format!("{file}.bak")).exists());
    }
}

#[test]
fn a_dry_run_prints_a_diff_and_writes_nothing() {
    let place = Place::new();
    let before = "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n";
    place.write(".mcp.json", before);
    let said = place.run(&[&CLAUDE[..], &["--dry-run"]].concat());
    assert_eq!(said.code, Some(0));
    let expected = format!(
        "--- .mcp.json\n+++ .mcp.json\n@@ -1,5 +1,13 @@\n {{\n   \"mcpServers\": {{\n-    \"other\": {{ \"command\": \"x\" }}\n\
         +    \"other\": {{ \"command\": \"x\" }},\n+    \"orchestr8\": {{\n+      \"command\": \"{}\",\n+      \"args\": [\n\
         +        \"mcp\",\n+        \"--config\",\n+        \"{}\"\n+      ]\n+    }}\n   }}\n }}\n",
        own(),
        config(&place)
    );
    assert_eq!(said.out, expected);
    assert_eq!(place.read(".mcp.json"), before);
    assert!(!place.path().join("home/.config").exists(), "nor is a configuration made");
}

#[test]
fn other_entries_stay_and_the_old_file_is_kept() {
    let place = Place::new();
    let before = "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  }\n}\n";
    place.write(".mcp.json", before);
    assert_eq!(place.run(&CLAUDE).code, Some(0));
    let after = place.read(".mcp.json");
    assert!(after.contains("    \"other\": { \"command\": \"x\" },\n    \"orchestr8\": {\n"), "{after}");
    assert_eq!(place.read(".mcp.json.bak"), before);
    let left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn a_conflicting_entry_is_left_alone() {
    let place = Place::new();
    let before = "{\"mcpServers\":{\"orchestr8\":{\"command\":\"mine\"}}}";
    place.write(".mcp.json", before);
    let said = place.run(&CLAUDE);
    assert_eq!(said.code, Some(5));
    assert_eq!(
        said.err,
        "error: .mcp.json has another entry named \"orchestr8\"\n\
         hint: remove that entry, or choose another name with --name; nothing was written\n\
         code: ID_CONFLICT (trying the same again does not help; more: orchestr8 errors ID_CONFLICT)\n"
    );
    assert_eq!(place.read(".mcp.json"), before);
    assert_eq!(place.run(&[&CLAUDE[..], &["--name", "o8"]].concat()).code, Some(0));
}

#[test]
fn a_broken_file_is_left_alone() {
    let place = Place::new();
    place.write(".mcp.json", "{ broken");
    let said = place.run(&CLAUDE);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(place.read(".mcp.json"), "{ broken");
}

#[test]
fn the_user_scope_and_arguments_are_heeded() {
    let place = Place::new();
    let said =
        place.run(&["mcp", "install", "--client", "claude", "--scope", "user", "--", "--tools", "echo"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let written: Value = serde_json::from_str(&place.read("home/.claude.json")).unwrap();
    assert_eq!(
        written["mcpServers"]["orchestr8"]["args"],
        json!(["mcp", "--config", config(&place), "--tools", "echo"])
    );
}

/// Somebody who has us on the path gets an entry that works on every machine of the team.
#[test]
fn on_the_path_the_name_is_enough() {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_orchestr8")).parent().unwrap().to_str().unwrap();
    let place = Place::new().with("PATH", folder);
    assert_eq!(place.run(&CLAUDE).code, Some(0));
    assert!(place.read(".mcp.json").contains("\"command\": \"orchestr8\""));
}

/// The entry names what was named here, wherever the editor starts it.
#[test]
fn a_named_configuration_is_written_in_full() {
    let place = Place::new();
    place.plant("mine.json", "{}");
    let said = place.run(&["--config", "mine.json", "mcp", "install", "--client", "claude"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let written: Value = serde_json::from_str(&place.read(".mcp.json")).unwrap();
    let path = std::fs::canonicalize(place.path().join("mine.json")).unwrap();
    assert_eq!(written["mcpServers"]["orchestr8"]["args"], json!(["mcp", "--config", path]));
    assert_eq!(place.run(&["--config", "none.json", "mcp", "install", "--client", "cursor"]).code, Some(3));
    let given = place.run(&["mcp", "install", "--client", "cursor", "--", "--config", "/etc/o8.json"]);
    assert_eq!(given.code, Some(0), "{given:?}");
    let written: Value = serde_json::from_str(&place.read(".cursor/mcp.json")).unwrap();
    assert_eq!(written["mcpServers"]["orchestr8"]["args"], json!(["mcp", "--config", "/etc/o8.json"]));
}
