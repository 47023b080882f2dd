//! Programs try to get at what belongs to the server and its user through the folders they were given.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use orchestr8_workspace::plan::Status;
use serde_json::json;

use super::exec::run;
use super::sandbox::Client;
use crate::governed::{GOOD, Governed, plant, with_workspace};
use crate::program::Place;
use crate::server::Server;

const CREDENTIALS: [&str; 10] = [
    ".vault-token",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".cargo/credentials.toml",
    ".config/git/credentials",
    ".pgpass",
    ".my.cnf",
    ".config/op/config",
    ".terraform.d/credentials.tfrc.json",
    ".ssh/id_rsa",
];

fn place(more: &str) -> Place {
    let place = Place::new();
    place.write("orchestr8.toml", &format!("{more}\n[sessions]\nbash = true\n"));
    for name in CREDENTIALS {
        place.write(&format!("home/{name}"), "PRIVATE-KEY");
    }
    place.write("home/project/readme", "hello");
    place
}

#[test]
fn the_home_is_no_working_folder_whatever_the_roots_are() {
    for roots in ["", "HOME", "ABOVE"] {
        let place = place("");
        let home = place.path().join("home");
        let listed = match roots {
            "HOME" => format!("roots = [{:?}]\n", home.display().to_string()),
            "ABOVE" => format!("roots = [{:?}]\n", place.path().display().to_string()),
            _ => String::new(),
        };
        place.write("orchestr8.toml", &format!("[sessions]\nbash = true\n{listed}"));
        std::os::unix::fs::symlink(&home, home.join("project/up")).unwrap();
        let server = Server::start(&place, &[]);
        let mut client = Client::connect(server.address, None);
        for (number, folder) in
            ["home", "home/project/up", "", "home/.local/state/orchestr8"].into_iter().enumerate()
        {
            let answer = client.session(&format!("s{number}"), &place.path().join(folder));
            assert_eq!(answer["success"], false, "{roots} {folder}: {answer}");
            assert!(answer["error"].to_string().contains("sessions.roots"), "{answer}");
        }
        // These are named by the sandbox, when a command is to run.
        for (number, folder) in [".ssh", ".config", ".config/git"].into_iter().enumerate() {
            let id = format!("h{number}");
            assert_eq!(client.session(&id, &home.join(folder))["success"], true);
            let ran = client.ask("bash", json!({"sessionId": id, "command": "ls -A"}));
            assert_eq!(ran["success"], false, "{folder}: {ran}");
            assert!(ran["error"].to_string().contains("sessions.roots"), "{ran}");
        }
        let answer = client.session("mine", &home.join("project"));
        assert_eq!(answer["success"], true, "{answer}");
        let ran = client.bash("mine", "cat readme; ls -A ..; cat up/.local/state/orchestr8/audit/log.key");
        assert!(ran["output"].as_str().unwrap().starts_with("helloproject\n"), "{ran}");
        assert_ne!(ran["exitCode"], 0, "{ran}");
    }
}

#[test]
fn the_state_of_the_server_is_neither_read_nor_written_through_readable_folders() {
    let place = place("");
    let home = place.path().join("home");
    place.write(
        "orchestr8.toml",
        &format!(
            "[sandbox]\nreadable = [{:?}]\n[sessions]\nbash = true\n",
            place.path().display().to_string()
        ),
    );
    let server = Server::start(&place, &[]);
    let mut client = Client::connect(server.address, None);
    assert!(home.join(".local/state/orchestr8/trusted.json").exists() && place.data_file().exists());
    assert_eq!(client.session("s", &home.join("project"))["success"], true);
    let names = CREDENTIALS.into_iter().chain([
        ".local/state/orchestr8/audit/log.key",
        ".local/state/orchestr8/trusted.json",
        ".local/share/orchestr8/orchestr8.sqlite3",
    ]);
    for name in names {
        let ran =
            client.bash("s", &format!("cat ../{name} | wc -c; echo x >> ../{name}; head -c 20 ../{name}"));
        assert!(!ran["output"].as_str().unwrap().contains("PRIVATE-KEY"), "{name}: {ran}");
        assert!(ran["output"].as_str().unwrap().contains("0\n"), "{name}: {ran}");
    }
    assert!(!std::fs::read_to_string(home.join(".vault-token")).unwrap().contains('x'));
}

#[test]
fn a_configuration_that_was_named_is_not_in_reach_of_the_folder_it_lies_in() {
    let place = place("");
    let project = place.path().join("home/project");
    let written = format!("[sessions]\nbash = true\nroots = [{:?}]\n", project.display().to_string());
    place.plant("home/project/conf/server.toml", &written);
    let file = project.join("conf/server.toml").display().to_string();
    let server = Server::start(&place, &["--config", &file]);
    let mut client = Client::connect(server.address, None);
    assert_eq!(client.session("s", &project)["success"], true);
    let ran = client
        .bash("s", "cat conf/server.toml; mv conf other; rm -f conf/server.toml; echo x > conf/server.toml");
    assert!(!ran["output"].as_str().unwrap().contains("sessions]"), "{ran}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn a_template_that_works_in_the_home_is_refused() {
    let place = Place::new();
    let home = place.path().join("home");
    place.write("home/.vault-token", "PRIVATE-KEY");
    let template = |folder: &Path| json!({"program": "/bin/cat", "args": [home.join(".vault-token")], "directory": folder});
    let templates =
        json!({"home": template(&home), "above": template(place.path()), "root": template(Path::new("/"))});
    place.write("orchestr8.json", &json!({"workflows": {"exec": {"templates": templates}}}).to_string());
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    for name in ["home", "above", "root"] {
        let answer = run(&mut http, json!({"template": name})).to_string();
        assert!(
            answer.contains("cannot be a working folder") && !answer.contains("PRIVATE-KEY"),
            "{name}: {answer}"
        );
    }
}

#[test]
fn shells_leave_no_set_user_id_file_and_keep_off_the_repository() {
    let place = place("");
    let project = place.path().join("home/project");
    place.write("home/project/.git/config", "[core]\n");
    place.write("home/project/docs/plans/p.md", "plan");
    place.plant("home/project/orchestr8.json", "{}");
    let server = Server::start(&place, &[]);
    let mut client = Client::connect(server.address, None);
    assert_eq!(client.session("s", &project)["success"], true);
    for attack in [
        "cp /bin/bash sb && chmod 4755 sb",
        "mkdir -p .git/hooks && echo x > .git/hooks/post-checkout",
        "echo x >> .git/config",
        "mv .git other",
        "echo x > docs/plans/evil.md",
        "mv docs other",
        "echo x > orchestr8.json",
    ] {
        let ran = client.bash("s", attack);
        assert_ne!(ran["exitCode"], 0, "{attack}: {ran}");
    }
    let mode = std::fs::metadata(project.join("sb")).unwrap().permissions().mode();
    assert_eq!(mode & 0o6000, 0);
    assert_eq!(std::fs::read_to_string(project.join(".git/config")).unwrap(), "[core]\n");
    assert_eq!(std::fs::read_to_string(project.join("orchestr8.json")).unwrap(), "{}");
}

#[test]
fn commands_of_a_plan_change_neither_the_repository_nor_what_governs_them() {
    let place = Place::new();
    place.write("workspace/.git/hooks/pre-commit.sample", "sample");
    let gate = "`echo x > .git/hooks/post-checkout && mv .git other && echo x > docs/plans/evil.md && mv docs old && echo x >> audit-log.jsonl && cp /bin/true src/suid && ! chmod 4755 src/suid && touch src/seen && test -e src/seen` (limit 30 s)";
    let plan = GOOD.replace("`test ! -e src/broken` (limit 30 s)", gate);
    let place = with_workspace(place);
    let hash = plant(&place, &plan, Status::Approved);
    let mut governed = Governed::start(place, "executor", &[]);
    governed.begin();
    let write = json!({"path": "src/a.rs", "plan": hash, "content": "fn f() {}\n",
        "intent": "Try what a command of a plan can change in the workspace"});
    let written = governed.call("write_file", write).unwrap();
    let told = written["discarded"][0]["paths"].to_string();
    assert!(
        told.contains("audit-log.jsonl") && told.contains("other/") && told.contains("src/seen"),
        "{written}"
    );
    let root = governed.root();
    for path in ["src/seen", "src/suid", ".git/hooks/post-checkout", "docs/plans/evil.md", "other", "old"] {
        assert!(root.join(path).symlink_metadata().is_err(), "{path}");
    }
    assert!(root.join(".git/hooks/pre-commit.sample").exists() && root.join("src/a.rs").exists());
    let checked = governed.call("verify_workspace_integrity", json!({})).unwrap();
    assert_eq!(checked["ok"], true, "{checked}");
}
