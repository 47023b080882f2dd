//! Sessions from the command line: one answer, a conversation at a terminal, and looking after them; with a server and without.

mod looking;
mod once;
mod serving;
pub mod terminal;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::program::{PATIENCE, Place, wait};

/// A place that finds no server of this machine.
fn alone() -> Place {
    Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1")
}

/// The ids of the sessions there are.
fn sessions(place: &Place, args: &[&str]) -> Vec<String> {
    let listed = crate::workflows::json_of(&place.run(&[&["sessions", "list", "--json"], args].concat()));
    let id = |session: &serde_json::Value| session["sessionId"].as_str().unwrap().to_owned();
    listed["sessions"].as_array().unwrap().iter().map(id).collect()
}

/// A command that runs while the test goes on; what it says is heard line by line, whichever way it says it.
struct Live {
    child: Child,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Live {
    fn start(place: &Place, args: &[&str]) -> Self {
        let mut child = place.command(args).stdin(Stdio::null()).spawn().unwrap();
        let (tell, lines) = channel();
        listen(child.stdout.take().unwrap(), tell.clone());
        listen(child.stderr.take().unwrap(), tell);
        Self { child, lines, heard: Vec::new() }
    }

    /// Waits for a line that has this in it.
    fn hear(&mut self, part: &str) {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let is_it = line.contains(part);
                    self.heard.push(line);
                    if is_it {
                        return;
                    }
                }
                Err(_) => panic!("{part:?} was not said, but {:#?}", self.heard),
            }
        }
    }

    /// The exit code, and everything that was said.
    fn end(mut self) -> (Option<i32>, String) {
        let code = wait(self.child).code();
        self.heard.extend(self.lines.iter());
        (code, self.heard.join("\n"))
    }
}

fn listen(stream: impl Read + Send + 'static, tell: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
}
