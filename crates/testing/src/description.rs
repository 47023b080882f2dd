//! Descriptions of an API: committed in `schemas`, and true.

use std::path::Path;

use serde_json::Value;

/// Whether a file of `schemas` is what the code declares. `O8_WRITE_SCHEMAS=1` writes it anew.
#[allow(clippy::disallowed_methods, reason = "a test is told by its environment whether to write")]
pub fn committed(name: &str, document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(name);
    let text = serde_json::to_string_pretty(document).unwrap() + "\n";
    if std::env::var_os("O8_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == text, "schemas/{name} is not what the code declares; O8_WRITE_SCHEMAS=1 writes it");
}

/// Every path that is described, as a client could ask for it, with the methods it takes, sorted.
pub fn described(document: &Value) -> Vec<(String, Vec<String>)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |operations: &Value| {
        let mut methods: Vec<String> =
            operations.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if methods.contains(&"GET".to_owned()) {
            methods.push("HEAD".to_owned());
        }
        methods.sort();
        methods
    };
    paths.iter().map(|(path, operations)| (path.replace(['{', '}'], ""), methods(operations))).collect()
}
