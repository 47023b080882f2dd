//! A conversation at a terminal: a real one as far as the program can tell.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::{alone, sessions};
use crate::program::{PATIENCE, Place, signal, wait};

/// A terminal with a program at it.
pub struct Desk {
    child: Child,
    keyboard: File,
    pieces: Receiver<String>,
    /// What is on the screen and has not been looked at.
    screen: String,
}

impl Desk {
    pub fn sit_down(place: &Place, args: &[&str]) -> Self {
        let desk = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&desk).unwrap();
        unlockpt(&desk).unwrap();
        let name = ptsname(&desk, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let child = place.command(args).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keyboard = File::from(desk);
        let mut screen = keyboard.try_clone().unwrap();
        let (tell, pieces) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The read fails once the program is gone.
            while let Ok(read @ 1..) = screen.read(&mut buffer) {
                if tell.send(String::from_utf8_lossy(&buffer[..read]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, pieces, screen: String::new() }
    }

    /// Waits until this is on the screen; what was before it is given back, and is not looked at again.
    pub fn see(&mut self, part: &str) -> String {
        loop {
            if let Some(at) = self.screen.find(part) {
                let rest = self.screen.split_off(at + part.len());
                return std::mem::replace(&mut self.screen, rest);
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => self.screen.push_str(&piece),
                Err(_) => panic!("{part:?} is not on the screen, but {:?}", self.screen),
            }
        }
    }

    pub fn type_line(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn press_ctrl_d(&mut self) {
        self.keyboard.write_all(&[4]).unwrap();
    }

    pub fn end(self) -> Option<i32> {
        wait(self.child).code()
    }

    /// Everything that is on the screen when the program has ended.
    pub fn all(mut self) -> String {
        wait(self.child);
        // The reader ends when the last bytes are read: the other side is closed.
        while let Ok(piece) = self.pieces.recv_timeout(PATIENCE) {
            self.screen.push_str(&piece);
        }
        self.screen
    }
}

#[test]
fn it_is_talked_and_looked_around() {
    let place = alone().with("NO_COLOR", "1");
    let mut desk = Desk::sit_down(&place, &["chat", "--session", "desk"]);
    desk.see("the offline model answers");
    desk.see("session desk, model offline/echo");
    desk.see("> ");
    desk.type_line("hello \\");
    desk.see("… ");
    desk.type_line("world");
    let shown = desk.see("hello \r\nworld\r\n");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    desk.see("tokens in, ");
    desk.see("> ");
    desk.type_line("/think well\n/tool echo {\"message\":\"hi\"}");
    desk.see("well\r\n");
    desk.see("→ echo {\"message\":\"hi\"}");
    desk.see("echo answered: {\"message\":\"hi\"}\r\n");
    for (line, answer) in [
        ("/help", "twice within a second leaves"),
        ("/model", "*  offline/echo"),
        ("/model offline/echo", "offline/echo answers from now on"),
        ("/model nobody/knows", "Model not found: nobody/knows"),
        ("/thinking low", "thinking is low from now on"),
        ("/thinking", "thinking is low"),
        ("/thinking sideways", "is no level of thinking"),
        ("/tree", "← here"),
        ("/stats", "1 tool calls"),
        ("/export page.html", "the session is in page.html"),
        ("//help", "/help\r\n"),
    ] {
        desk.see("> ");
        desk.type_line(line);
        desk.see(line);
        desk.see(answer);
    }
    assert!(place.read("page.html").contains("echo answered"));
    desk.see("> ");
    desk.type_line("/quit");
    desk.see("go on with: orchestr8 chat --session desk");
    assert_eq!(desk.end(), Some(0));
    assert_eq!(sessions(&place, &[]), ["desk"]);
}

#[test]
fn it_is_forked_before_something_that_was_said() {
    let place = alone();
    let mut desk = Desk::sit_down(&place, &["chat", "--session", "first"]);
    for line in ["one", "two"] {
        desk.see("> ");
        desk.type_line(line);
        desk.see("tokens in");
    }
    desk.type_line("/fork");
    desk.see("say /fork and one of these:");
    let listed = desk.see("two");
    let entry = listed.trim_end_matches("two").split_whitespace().last().unwrap().to_owned();
    desk.type_line(&format!("/fork {entry}"));
    desk.see("here you had said:");
    desk.see("two\r\n");
    desk.press_ctrl_d();
    desk.see("go on with");
    assert_eq!(desk.end(), Some(0));
    assert_eq!(sessions(&place, &[]).len(), 2);
}

#[test]
fn a_question_of_a_tool_is_asked_at_the_terminal() {
    let place = alone();
    let mut desk = Desk::sit_down(&place, &["chat", "--conformance"]);
    desk.see("Ctrl-D leaves");
    desk.type_line("/tool test_elicitation {\"message\":\"who are you?\"}");
    desk.see("who are you?");
    desk.see("email?");
    desk.type_line("ada@example.org");
    desk.see("username?");
    desk.type_line("ada");
    desk.see("action=accept");
    desk.see("ada@example.org");
    desk.see("tokens in");
    desk.type_line("/tool test_elicitation {\"message\":\"and now?\"}");
    desk.see("email?");
    desk.type_line("");
    desk.see("action=cancel");
    desk.see("tokens in");
    desk.press_ctrl_d();
    assert_eq!(desk.end(), Some(0));
}

#[test]
fn ctrl_c_stops_the_agent_and_twice_it_leaves() {
    let place = alone();
    let mut desk = Desk::sit_down(&place, &["chat"]);
    desk.see("Ctrl-D leaves");
    desk.type_line("/tool echo {\"message\":\"x\"}\\\n/then\\\n/slow 60000\\\nnever");
    desk.see("← echo");
    signal(&desk.child, Signal::INT);
    desk.see("stopped");
    desk.type_line("still there");
    desk.see("still there\r\n");
    desk.see("tokens in");
    signal(&desk.child, Signal::INT);
    desk.see("Ctrl-C again or Ctrl-D leaves");
    signal(&desk.child, Signal::INT);
    assert_eq!(desk.end(), Some(130));
}

#[test]
fn where_nothing_was_said_nothing_is_left() {
    let place = alone();
    let mut desk = Desk::sit_down(&place, &["chat"]);
    desk.see("> ");
    desk.press_ctrl_d();
    assert_eq!(desk.end(), Some(0));
    assert!(sessions(&place, &[]).is_empty());
    let mut desk = Desk::sit_down(&place, &["chat", "--session", "kept"]);
    desk.see("> ");
    desk.type_line("x");
    desk.see("tokens in");
    desk.press_ctrl_d();
    assert_eq!(desk.end(), Some(0));
    let mut desk = Desk::sit_down(&place, &["sessions", "delete", "kept"]);
    desk.see("[y/N]");
    desk.type_line("n");
    assert_eq!(desk.end(), Some(130));
    assert_eq!(sessions(&place, &[]), ["kept"]);
}
