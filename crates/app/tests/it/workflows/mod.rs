//! Workflows from outside: the command line with and without a server, projects, tests, the guide, the demo.

mod agents;
mod demo;
mod execution_ids;
mod files;
mod guide;
mod killed;
mod running;
mod serving;
mod slots;
mod testing;
mod waiting;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::program::{PATIENCE, Place, Said};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A place that finds no server of this machine, with the examples in it.
pub fn alone() -> Place {
    let place = Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1");
    copy(&root().join("examples"), &place.path().join("examples"));
    place
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Writes a workflow with these steps.
pub fn write(place: &Place, id: &str, steps: &Value) -> String {
    let file = format!("{id}.json");
    let workflow = json!({"id": id, "version": "1.0.0", "name": id, "steps": steps});
    place.write(&file, &workflow.to_string());
    file
}

/// What a command printed as JSON.
pub fn json_of(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// A step that gives back its input.
pub fn echo(id: &str, dependencies: &[&str], input: Value) -> Value {
    json!({"id": id, "agentId": "@orchestr8/echo", "dependencies": dependencies, "input": input})
}

/// A step that calls a tool.
pub fn tool(id: &str, dependencies: &[&str], name: &str, arguments: Value) -> Value {
    json!({"id": id, "agentId": "@orchestr8/tool", "dependencies": dependencies,
        "config": {"tool": name}, "input": {"arguments": arguments}})
}

/// A command that runs while the test goes on, and is heard line by line.
pub struct Going {
    pub child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Going {
    pub fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.command(args).stdin(Stdio::null()).spawn().unwrap();
        let (tell, lines) = std::sync::mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for a line on stderr that has this in it.
    pub fn heard(&self, part: &str) -> String {
        let mut all = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => all.push(line),
                Err(_) => panic!("{part:?} was not said, but {all:#?}"),
            }
        }
    }

    /// Its end: the exit code, and the rest of stdout and stderr.
    pub fn end(self) -> Said {
        let Self { child, lines } = self;
        let output = child.wait_with_output().unwrap();
        let err: Vec<String> = lines.iter().collect();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: err.join("\n"),
        }
    }
}

/// The id of the newest execution.
pub fn newest(place: &Place, args: &[&str]) -> String {
    let said = place.run(&[&["list", "--json", "--limit", "1"], args].concat());
    json_of(&said)["executions"][0]["executionId"].as_str().unwrap_or_else(|| panic!("{said:?}")).to_owned()
}
