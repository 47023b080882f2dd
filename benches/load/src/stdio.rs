//! A server behind two pipes, one message per line.
use crate::measure::{self, Wire};
use crate::message::{self, Era};
use crate::{Plan, ending};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

pub fn run(plan: &Plan) -> Result<Value, String> {
    let started = Instant::now();
    let mut child = Command::new(&plan.command[0])
        .args(&plan.command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", plan.command[0]))?;
    let outcome = talk(plan, &mut child, started);
    ending::end(child);
    outcome
}

fn talk(plan: &Plan, child: &mut Child, started: Instant) -> Result<Value, String> {
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the server has no pipes".to_owned());
    };
    let mut pipes = Pipes { input, output: BufReader::with_capacity(1 << 16, output) };
    pipes.send(0, &message::opening(plan.era))?;
    let answer = pipes.receive(0)?;
    let start_ms = started.elapsed().as_secs_f64() * 1e3;
    if !answer.contains(r#""result":"#) {
        return Err(format!("the server refused: {answer}"));
    }
    if plan.era == Era::Legacy {
        pipes.send(0, message::INITIALIZED)?;
    }
    measure::run(plan, &mut pipes, child.id(), started, start_ms)
}

struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Wire for Pipes {
    fn lanes(&self) -> usize {
        1
    }

    fn send(&mut self, _: usize, message: &str) -> Result<(), String> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).map_err(|error| format!("writing: {error}"))
    }

    fn receive(&mut self, _: usize) -> Result<String, String> {
        loop {
            let mut line = String::new();
            match self.output.read_line(&mut line) {
                Ok(0) => return Err("the server closed its output".to_owned()),
                Ok(_) if line.contains(r#""method":"#) => continue,
                Ok(_) => return Ok(line),
                Err(error) => return Err(format!("reading: {error}")),
            }
        }
    }
}
