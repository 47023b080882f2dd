//! `orchestr8 doctor` on a sound installation and on broken ones.

use serde_json::Value;

use crate::program::Place;
use crate::stdio::Client;

fn report(place: &Place) -> (Option<i32>, Value) {
    let said = place.run(&["--json", "doctor"]);
    (said.code, serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}")))
}

fn status(report: &Value, name: &str) -> String {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{report:#}"));
    found["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_fresh_installation_is_in_order() {
    let place = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0");
    let (code, fresh) = report(&place);
    assert_eq!((code, &fresh["ok"]), (Some(0), &Value::from(true)), "{fresh:#}");
    let client = Client::ready(&place, &[]);
    let (code, used) = report(&place);
    assert_eq!((code, status(&used, "store").as_str()), (Some(0), "ok"), "beside a running server: {used:#}");
    client.end();
    let said = place.run(&["doctor"]);
    assert!(
        said.out.lines().all(|line| line.starts_with("ok ") || line.starts_with("warn ")),
        "{}",
        said.out
    );
}

#[test]
fn what_is_broken_is_named_with_a_hint() {
    let place = Place::new()
        .with("ORCHESTR8_HTTP_LISTEN", "0.0.0.0:0")
        .with("ORCHESTR8_SERVER_NAM", "x")
        .with("PATH", "/nowhere");
    place.write("orchestr8.toml", "[mcpServers.files]\ncommand = 'no-such-program'\n");
    place.write("home/.local/share/orchestr8/orchestr8.sqlite3", "not a database at all");
    let (code, report) = report(&place);
    assert_eq!(code, Some(1));
    assert_eq!(status(&report, "environment"), "warn");
    for name in ["http", "mcp server", "store"] {
        assert_eq!(status(&report, name), "fail", "{name}");
    }
    let hints = report["checks"].as_array().unwrap().iter().filter(|check| check["status"] != "ok");
    assert!(hints.into_iter().all(|check| check["hint"].is_string()), "{report:#}");
}

#[test]
fn a_broken_configuration_is_the_first_thing_said() {
    let place = Place::new();
    place.write("orchestr8.json", "{");
    let said = place.run(&["doctor"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.out.starts_with("FAIL  configuration  orchestr8.json: EOF")
            || said.out.contains("configuration"),
        "{}",
        said.out
    );
}

#[test]
fn it_says_which_models_can_be_asked() {
    let place = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:0");
    let details = |report: &Value| -> Vec<String> {
        let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["name"] == "models");
        checks
            .map(|check| {
                format!("{} {}", check["status"].as_str().unwrap(), check["detail"].as_str().unwrap())
            })
            .collect()
    };
    let (_, fresh) = report(&place);
    assert!(
        details(&fresh)[0].starts_with("ok offline/echo answers; for others set ANTHROPIC_API_KEY"),
        "{fresh:#}"
    );
    let place = place.with("ANTHROPIC_API_KEY", "sk-canary");
    place.write(
        "orchestr8.json",
        r#"{"models": {"providers": {"mine": {"kind": "openai", "baseUrl": "http://127.0.0.1:1/v1", "keyVariable": "MINE", "models": ["m1", "m2"]}}}}"#,
    );
    let (code, keyed) = report(&place);
    let told = details(&keyed);
    assert_eq!(code, Some(0), "{keyed:#}");
    assert!(
        told[0].starts_with("ok ready: anthropic/claude-") && told[0].ends_with("offline/echo"),
        "{told:?}"
    );
    assert_eq!(told[1], "warn mine has no key, so its 2 models are left out");
    assert!(!keyed.to_string().contains("sk-canary"));
}
