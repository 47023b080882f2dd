//! `orchestr8 test`: what passes, what fails, and what is not a test.

use serde_json::json;

use super::{alone, json_of};

#[test]
fn the_examples_pass_their_tests() {
    let place = alone();
    let said = place.run(&["test", "examples/tests"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.ends_with(" passed, 0 failed\n"), "{}", said.out);
    assert!(!place.data_file().exists(), "nothing of it is kept");
    let json = json_of(&place.run(&["test", "examples/tests", "--filter", "hello", "--json"]));
    assert_eq!((&json["passed"], &json["failed"]), (&json!(2), &json!(0)));
    assert_eq!(json["tests"][0]["id"], "hello-world");
}

#[test]
fn a_failed_assertion_says_what_was_found() {
    let place = alone();
    let test = json!({"id": "t", "name": "wrong", "steps": [{"id": "a", "agentId": "@orchestr8/echo", "input": {"x": 1}}],
        "assertions": [{"type": "output", "path": "a.x", "expected": 2}, {"type": "status", "expected": "completed"}]});
    place.write("tests/wrong.test.json", &test.to_string());
    let said = place.run(&["test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(
        said.out,
        "FAIL  wrong (tests/wrong.test.json)\n      output a.x: equals 2 does not hold for 1\n0 passed, 1 failed\n"
    );
}

#[test]
fn a_workflow_that_never_ends_fails_its_test() {
    let place = alone();
    let test = json!({"id": "t", "steps": [{"id": "a", "wait": {"durationMs": 600_000}}], "timeoutMs": 100,
        "assertions": [{"type": "status", "expected": "completed"}]});
    place.write("tests/slow.test.json", &test.to_string());
    let said = place.run(&["test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("it is still waiting after 100 ms"), "{}", said.out);
}

#[test]
fn what_is_not_a_test_is_refused_and_nothing_runs() {
    let place = alone();
    place.write("tests/bad.test.json", r#"{"id": "t", "steps": [], "assertion": []}"#);
    let said = place.run(&["test"]);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("/assertion: is unknown"), "{}", said.err);
    assert_eq!(place.run(&["test", "nowhere"]).code, Some(3));
    assert_eq!(place.run(&["test", "examples"]).code, Some(0), "folders in folders are looked into");
    assert_eq!(place.run(&["test", "examples", "--filter", "nothing like it"]).code, Some(3));
}

/// Reads a report with expat, a strict parser, and gives suites, cases and what is in them.
const READ_REPORT: &str = r#"
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
def read(element):
    return {"tag": element.tag, "text": element.text, **{"@" + name: value for name, value in element.attrib.items()},
            "inside": [read(inner) for inner in element]}
print(json.dumps(read(root)))
"#;

fn report(file: &std::path::Path) -> serde_json::Value {
    let output = std::process::Command::new("python3").args(["-c", READ_REPORT]).arg(file).output();
    let output = output.expect("python3 is needed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_junit_report_is_xml_that_a_strict_parser_reads() {
    let place = alone();
    let name = "angle <b> & \"quoted\" 'single' \u{1b}[31m \u{0}\u{7} \u{fffe} tab\tline\nend ]]> ü 🙂";
    let step = json!([{"id": "a", "agentId": "@orchestr8/echo", "input": {"x": "<&>\u{1}"}}]);
    let passes = json!({"id": "p", "name": name, "steps": step, "assertions": [{"type": "status", "expected": "completed"}]});
    let fails = json!({"id": "f", "steps": step, "assertions": [{"type": "output", "path": "a.x", "expected": "</failure>"}]});
    let refused = json!({"id": "r", "steps": [{"id": "a", "agentId": "@orchestr8/echo", "input": {"x": "${steps.no.output}"}}],
        "assertions": [{"type": "status", "expected": "completed"}]});
    place.write("tests/1.test.json", &json!([passes, fails]).to_string());
    place.write("tests/2.test.json", &refused.to_string());
    let said = place.run(&["test", "--junit", "report.xml"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let root = report(&place.path().join("report.xml"));
    let counts = |of: &serde_json::Value| ["@tests", "@failures", "@errors"].map(|name| of[name].clone());
    assert_eq!((root["tag"].as_str(), counts(&root)), (Some("testsuites"), ["3", "1", "1"].map(Into::into)));
    let [first, second] = [0, 1].map(|at| root["inside"][at].clone());
    assert_eq!(
        (&first["@name"], counts(&first)),
        (&json!("tests/1.test.json"), ["2", "1", "0"].map(Into::into))
    );
    assert_eq!(first["@skipped"], "0");
    let shown = "angle <b> & \"quoted\" 'single' \\u{1b}[31m \\u{0}\\u{7} \\u{fffe} tab\tline\nend ]]> ü 🙂";
    let passed = &first["inside"][0];
    assert_eq!((&passed["@name"], &passed["inside"][0]["tag"]), (&json!(shown), &json!("system-out")));
    assert!(passed["@time"].as_str().unwrap().parse::<f64>().is_ok());
    let failure = &first["inside"][1]["inside"][0];
    assert_eq!((failure["tag"].as_str(), failure["@type"].as_str()), (Some("failure"), Some("assertion")));
    assert!(failure["text"].as_str().unwrap().contains("\"</failure>\" does not hold for"), "{failure}");
    let error = &second["inside"][0]["inside"][0];
    assert_eq!((error["tag"].as_str(), error["@type"].as_str()), (Some("error"), Some("execution")));
    let nowhere = place.run(&["test", "--junit", "no/such/folder/report.xml"]);
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
}
