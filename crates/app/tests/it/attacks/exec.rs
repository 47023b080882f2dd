//! A workflow's author tries to run more than the templates of `@orchestr8/exec` allow.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use orchestr8_testing::until;
use serde_json::{Value, json};

use super::is_unlocked;
use crate::program::Place;
use crate::server::{Http, Server};

fn script(place: &Place, name: &str, text: &str) -> String {
    place.write(name, text);
    let path = place.path().join(name);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// A bash script, git with one fixed command, a link to a program, and one whose directory is the data's.
fn place() -> Place {
    let place = Place::new();
    place.write("work/readme", "hello");
    place.write("outside/secret", "PRIVATE-KEY");
    let work = place.path().join("work").display().to_string();
    let data = place.data_file().parent().unwrap().display().to_string();
    std::fs::create_dir_all(&data).unwrap();
    let report =
        script(&place, "bin/report.sh", "#!/bin/bash\ndate > date; echo \"{\\\"mode\\\": \\\"$MODE\\\"}\"\n");
    let probe = script(
        &place,
        "bin/probe.sh",
        "#!/bin/bash\ncat \"$1\" 2>/dev/null\nexec 3<>\"/dev/tcp/127.0.0.1/$2\" && echo CONNECTED\ntrue\n",
    );
    let slow = script(
        &place,
        "bin/slow.sh",
        // The lock is held by whatever lives of it, so that a second one sees the first.
        "#!/bin/bash\ntrap '' TERM\nexec 9>lock\nflock -n 9 || echo overlap >> overlaps\n\
         (setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' &)\necho begun >> begun\n\
         [ $(wc -l < begun) -gt 1 ] && { sleep 1; echo '\"done\"'; exit 0; }\nsleep 600\n",
    );
    let link = place.path().join("bin/tool").display().to_string();
    std::os::unix::fs::symlink("/bin/echo", &link).unwrap();
    let template = |program: &str, args: Value, more: Value| {
        let mut template = json!({"program": program, "args": args, "directory": work});
        template.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        template
    };
    let templates = json!({
        "report": template(&report, json!([]), json!({"variables": ["MODE"]})),
        "probe": template(&probe, json!(["{file}", "{port}"]), json!({"holes": {"file": "text", "port": "integer"}})),
        "log": template("/usr/bin/git", json!(["log", "--oneline", "{revision}"]), json!({"holes": {"revision": "text"}})),
        "tool": template(&link, json!(["hi"]), json!({})),
        "slow": template(&slow, json!([]), json!({})),
        "data": {"program": "/bin/ls", "args": ["-la"], "directory": data},
        "admins": template("/bin/echo", json!(["hi"]), json!({"roles": ["admin"]})),
    });
    place.write("orchestr8.json", &json!({"workflows": {"exec": {"templates": templates}}}).to_string());
    place
}

fn definition(config: &Value) -> Value {
    json!({"id": "w", "version": "1.0.0", "name": "w",
        "steps": [{"id": "a", "agentId": "@orchestr8/exec", "config": config, "maxRetries": 0}]})
}

pub fn run(http: &mut Http, config: Value) -> Value {
    let body = json!({"workflow": definition(&config)}).to_string();
    let answer = http.request("POST", "/v1/workflows/execute?mode=sync", "", Some(&body)).unwrap();
    answer.json()
}

#[test]
fn only_what_a_template_names_is_run() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let right = run(&mut http, json!({"template": "report", "env": {"MODE": "fast"}}));
    assert_eq!(right["outputs"]["a"], json!({"mode": "fast"}), "{right}");
    let proof = place.path().join("work/pwned").display().to_string();
    let payload = format!("() {{ /usr/bin/id > {proof}; }}");
    for config in [
        json!({"program": "/bin/bash", "args": ["-c", format!("id > {proof}")]}),
        json!({"template": "report", "args": ["-c", "id"]}),
        json!({"template": "report", "cwd": "/"}),
        json!({"template": "report", "env": {"BASH_ENV": format!("$(/usr/bin/id >{proof})")}}),
        json!({"template": "report", "env": {"BASH_FUNC_date%%": payload}}),
        json!({"template": "report", "env": {"LD_PRELOAD": "/x.so"}}),
        json!({"template": "report", "env": {"PATH": "/x"}}),
        json!({"template": "report", "env": {"GIT_TRACE": proof}}),
        json!({"template": "log", "values": {"revision": "--output=pwned"}}),
        json!({"template": "log", "values": {"revision": "-calias.x=!id"}}),
        json!({"template": "log", "values": {"revision": "HEAD", "more": "-c"}}),
        json!({"template": "probe", "values": {"file": "x", "port": "1; id"}}),
        json!({"template": "nothing"}),
    ] {
        let answer = run(&mut http, config.clone());
        assert_ne!(answer["status"], "completed", "{config}: {answer}");
        assert!(!Path::new(&proof).exists(), "{config}");
    }
    let listed = http.get("/v1/agents");
    assert!(listed.body.contains("@orchestr8/exec"), "{}", listed.body);
    let empty = Place::new();
    let server = Server::start(&empty, &[]);
    let listed = server.connect().get("/v1/agents");
    assert!(!listed.body.contains("@orchestr8/exec"), "{}", listed.body);
}

#[test]
fn templates_that_could_be_bent_do_not_start_a_server() {
    let place = Place::new();
    for (template, key) in [
        (json!({"program": "/bin/echo", "variables": ["BASH_ENV"]}), "variables"),
        (json!({"program": "/bin/echo", "variables": ["LD_LIBRARY_PATH"]}), "variables"),
        (json!({"program": "echo"}), "program"),
        (json!({"program": "/bin/echo", "args": ["{x}"]}), "args"),
    ] {
        let config = json!({"workflows": {"exec": {"templates": {"t": template}}}});
        place.write("orchestr8.json", &config.to_string());
        let said = place.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(&format!("workflows.exec.templates.t.{key}")), "{said:?}");
    }
    place.write("orchestr8.json", "{\"workflows\": {\"exec\": {\"programs\": [\"/bin/sh\"]}}}");
    assert_eq!(place.run(&["serve", "--listen", "127.0.0.1:0"]).code, Some(2), "the free form is gone");
}

#[test]
fn a_program_sees_neither_data_nor_network() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    for file in [place.path().join("outside/secret"), place.data_file(), "/etc/shadow".into()] {
        let values = json!({"file": file, "port": server.address.port()});
        let answer = run(&mut http, json!({"template": "probe", "values": values}));
        assert_eq!(
            (&answer["status"], &answer["outputs"]["a"]),
            (&json!("completed"), &Value::Null),
            "{answer}"
        );
    }
    let answer = run(&mut http, json!({"template": "data"}));
    assert_ne!(answer["status"], "completed", "{answer}");
}

#[test]
fn a_link_that_points_elsewhere_is_noticed() {
    let place = place();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let config = json!({"template": "tool"});
    assert_eq!(run(&mut http, config.clone())["outputs"]["a"], json!({"stdout": "hi\n"}));
    let link = place.path().join("bin/tool");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("/usr/bin/id", &link).unwrap();
    let answer = run(&mut http, config);
    assert!(
        answer["status"] != "completed" && answer.to_string().contains("not the file it was"),
        "{answer}"
    );
}

#[tokio::test]
async fn after_a_kill_of_the_server_the_retry_runs_alone() {
    let place = place();
    let work = place.path().join("work");
    let server = Server::start(&place, &[]);
    let body = json!({"workflow": definition(&json!({"template": "slow"}))}).to_string();
    let started =
        server.connect().request("POST", "/v1/workflows/execute?mode=async", "", Some(&body)).unwrap();
    let id = started.json()["executionId"].as_str().unwrap().to_owned();
    until("the program to begin", || work.join("begun").exists()).await;
    assert!(!is_unlocked(&work.join("lock")), "it lives");
    server.kill();
    let server = Server::start(&place, &[]);
    let mut http = server.connect();
    let target = format!("/v1/executions/{id}");
    until("the second attempt", || http.get(&target).json()["status"] == "completed").await;
    assert_eq!(http.get(&target).json()["outputs"]["a"], "done");
    assert_eq!(place.read("work/begun"), "begun\nbegun\n", "once before and once after the kill");
    assert!(!work.join("overlaps").exists(), "never both at once");
    assert!(is_unlocked(&work.join("lock")), "and nothing is left of the second either");
}
