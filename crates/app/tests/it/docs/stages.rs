//! What a page takes for granted before its first command, and what the names in its commands stand for.

use serde_json::{Value, json};

use super::reader::{Meaning, Reader, free_port};
use crate::governed::Governed;
use crate::program::Place;
use crate::workflows::{json_of, newest};

/// Every name stands for itself.
pub const AS_WRITTEN: &[Meaning] = &[];

pub const AN_EXECUTION: &[Meaning] = &[("$EXECUTION", |place| newest(place, &[]))];

pub const A_HEAD: &[Meaning] = &[("HASH", |place| field(place, &["audit", "verify", "--json"], "/head"))];

pub const LETTERS_AND_A_KEY: &[Meaning] = &[
    (" 17", |place| format!(" {}", field(place, &["dlq", "list", "--json"], "/dead_letters/0/seq"))),
    (" 18", |place| format!(" {}", field(place, &["dlq", "list", "--json"], "/dead_letters/1/seq"))),
    ("k-6e9f3665113a", |place| field(place, &["keys", "list", "--json"], "/keys/0/kid")),
];

/// A member of what a command prints as JSON.
fn field(place: &Place, args: &[&str], pointer: &str) -> String {
    let said = place.run(args);
    match json_of(&said).pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => panic!("{pointer} of {said:?}"),
    }
}

pub fn nothing(_: &mut Reader) {}

/// Something is in the store.
pub fn some_work(reader: &mut Reader) {
    assert_eq!(reader.place.run(&["run", "examples/hello-world.json"]).code, Some(0));
}

pub fn some_notes(reader: &mut Reader) {
    reader.place.write("setup.md", "# Setup\nRestart the service with `systemctl restart orchestr8`.\n");
    reader.place.write("notes/faq/backup.md", "---\ntags: [ops]\n---\n# Backups\nRestore one every month.\n");
}

pub fn a_broken_workflow(reader: &mut Reader) {
    reader.place.write(
        "broken.json",
        r#"{"id": "broken", "version": "1", "name": "Broken", "steps": [{"id": "a", "agentID": "@orchestr8/echo"}]}"#,
    );
}

/// An envelope to sign, a large file to upload, and two messages that were given up.
pub fn an_envelope(reader: &mut Reader) {
    reader.place.write("envelope.json", &crate::bus::create(1).to_string());
    reader.place.write("large.md", "# Large\n");
    reader.serve();
    let server = reader.server.as_ref().unwrap();
    for number in 1..=2 {
        assert_eq!(crate::bus::publish(&mut server.connect(), &crate::bus::lost(number)).unwrap(), 202);
    }
    crate::bus::letters(&reader.place, &[], 2);
}

/// A workspace in which an executor has done something.
pub fn a_governed_folder(reader: &mut Reader) {
    let place = std::mem::replace(&mut reader.place, Place::new());
    let mut governed = Governed::start(place, "executor", &[]);
    governed.begin();
    governed.call("read_file", json!({"path": "none"})).unwrap_err();
    reader.place = governed.end().1;
}

/// What `init` has made, with its agent on a port that nobody else has.
pub fn a_new_project(reader: &mut Reader) {
    let port = free_port().to_string();
    let place = std::mem::replace(&mut reader.place, Place::new()).with("PORT", &port);
    assert_eq!(place.run(&["init", "."]).code, Some(0));
    place.write("orchestr8.json", &place.read("orchestr8.json").replace("8090", &port));
    reader.place = place;
}

/// Another MCP server with a tool that has changed since it was first seen.
pub fn another_server(reader: &mut Reader) {
    let place = &reader.place;
    place.write("server.sh", &crate::others::SERVER.replace("\"hi\"", "\"read\""));
    place.write("orchestr8.toml", "[mcpServers.files]\ncommand = 'sh'\nargs = ['server.sh']\n");
    place.write("about", "first");
    assert_eq!(place.run(&["tools", "call", "files.read"]).code, Some(0));
    place.write("about", "second");
    assert_eq!(place.run(&["tools", "call", "files.read"]).code, Some(4));
}
