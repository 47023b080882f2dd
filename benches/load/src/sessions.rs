//! Sessions over WebSockets: repeats, reads, prompts, and what sessions and sockets cost in memory.
use crate::measure::at;
use crate::usage::{cpu_us, resident_mb};
use crate::ws::Socket;
use crate::{ending, http};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

pub const USAGE: &str = "\
usage: load sessions [options] -- COMMAND...   {address} in COMMAND becomes 127.0.0.1 and a free port

  --calls N     one after another (default 2000)
  --loaded N    with many in flight on one socket, and again over all sockets (default 100000)
  --in-flight N how many on one socket (default 64)
  --sockets N   how many sockets at once (default 100)
  --many N      how many sessions, and how many idle sockets, are counted in memory (default 1000)";

struct Plan {
    calls: usize,
    loaded: usize,
    in_flight: usize,
    sockets: usize,
    many: usize,
    command: Vec<String>,
}

const PATH: &str = "/ws/session";
const REPLAY: &str = r#"{"type":"create_session","sessionId":"bench","id":"bench-1"}"#;
const READ: &str = r#"{"type":"get_state","sessionId":"bench"}"#;

pub fn run(args: impl Iterator<Item = String>) -> Result<Value, String> {
    let plan = parse(args)?;
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))?;
    let words: Vec<String> =
        plan.command.iter().map(|part| part.replace("{address}", &address.to_string())).collect();
    let started = Instant::now();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", words[0]))?;
    let outcome = talk(&plan, &mut child, address, started);
    ending::end(child);
    outcome
}

fn talk(plan: &Plan, child: &mut Child, address: SocketAddr, started: Instant) -> Result<Value, String> {
    drop(http::connect(address, started)?);
    let mut socket = Socket::open(address, PATH)?;
    socket.read()?;
    let start_ms = started.elapsed().as_secs_f64() * 1e3;
    ask(&mut socket, REPLAY)?;
    let idle_mb = resident_mb(child.id());
    let mut figures = json!({"start_ms": start_ms, "idle_mb": idle_mb});
    for (name, command) in [("replay", REPLAY), ("read", READ)] {
        one_by_one(&mut socket, command, 500)?;
        let mut alone = one_by_one(&mut socket, command, plan.calls)?;
        alone.sort_unstable_by(f64::total_cmp);
        let (before, began) = (cpu_us(child.id()), Instant::now());
        pipelined(&mut [&mut socket], command, plan.loaded, plan.in_flight)?;
        let seconds = began.elapsed().as_secs_f64();
        figures[name] = json!({
            "p50_us": at(&alone, 0.50), "p95_us": at(&alone, 0.95), "rate_per_s": plan.loaded as f64 / seconds,
            "cpu_us": (cpu_us(child.id()) - before) as f64 / plan.loaded as f64,
        });
    }
    figures["first_delta"] = prompts(&mut socket, plan.calls / 4)?;
    drop(socket);
    figures["over_many"] = over_many(plan, address)?;
    memory(plan, child.id(), address, &mut figures)?;
    Ok(figures)
}

fn ask(socket: &mut Socket, command: &str) -> Result<Vec<u8>, String> {
    let mut frame = Vec::new();
    Socket::frame(&mut frame, command);
    socket.send(&frame)?;
    let response = socket.response()?;
    match response.windows(14).any(|part| part == br#""success":true"#) {
        true => Ok(response),
        false => Err(format!("{command} was answered {}", String::from_utf8_lossy(&response))),
    }
}

fn one_by_one(socket: &mut Socket, command: &str, calls: usize) -> Result<Vec<f64>, String> {
    let mut latencies = Vec::with_capacity(calls);
    for _ in 0..calls {
        let sent = Instant::now();
        ask(socket, command)?;
        latencies.push(sent.elapsed().as_secs_f64() * 1e6);
    }
    Ok(latencies)
}

/// Keeps so many commands open on each socket, and sends as many again as were answered.
fn pipelined(
    sockets: &mut [&mut Socket],
    command: &str,
    calls: usize,
    in_flight: usize,
) -> Result<(), String> {
    let mut one = Vec::new();
    Socket::frame(&mut one, command);
    let each = calls / sockets.len();
    for socket in sockets.iter_mut() {
        socket.send(&one.repeat(in_flight.min(each)))?;
    }
    let mut sent = in_flight.min(each);
    let mut answered = 0;
    while answered < each {
        let batch = in_flight.min(each - answered).div_ceil(2);
        let next = batch.min(each - sent);
        for socket in sockets.iter_mut() {
            for _ in 0..batch {
                socket.response()?;
            }
            if next > 0 {
                socket.send(&one.repeat(next))?;
            }
        }
        (answered, sent) = (answered + batch, sent + next);
    }
    Ok(())
}

/// From sending a prompt to the first piece of its answer.
fn prompts(socket: &mut Socket, count: usize) -> Result<Value, String> {
    ask(socket, r#"{"type":"switch_session","sessionId":"bench"}"#)?;
    let mut latencies = Vec::with_capacity(count);
    for _ in 0..count {
        ask(socket, r#"{"type":"new_session","sessionId":"bench"}"#)?;
        let mut frame = Vec::new();
        Socket::frame(&mut frame, r#"{"type":"prompt","sessionId":"bench","message":"hello"}"#);
        let sent = Instant::now();
        socket.send(&frame)?;
        while !socket.read()?.windows(12).any(|part| part == br#""text_delta""#) {}
        latencies.push(sent.elapsed().as_secs_f64() * 1e6);
        socket.response()?;
    }
    latencies.sort_unstable_by(f64::total_cmp);
    Ok(json!({"p50_us": at(&latencies, 0.50), "p95_us": at(&latencies, 0.95)}))
}

fn over_many(plan: &Plan, address: SocketAddr) -> Result<Value, String> {
    let mut sockets = (0..plan.sockets)
        .map(|_| {
            let mut socket = Socket::open(address, PATH)?;
            socket.read()?;
            Ok(socket)
        })
        .collect::<Result<Vec<_>, String>>()?;
    // Every command is told to every client: with many of them that is most of the work.
    let calls = plan.loaded / 20;
    let mut all: Vec<&mut Socket> = sockets.iter_mut().collect();
    let mut rates = json!({"sockets": plan.sockets});
    for (name, command) in [("replay_per_s", REPLAY), ("read_per_s", READ)] {
        let began = Instant::now();
        pipelined(&mut all, command, calls, 4)?;
        rates[name] = json!((calls / plan.sockets * plan.sockets) as f64 / began.elapsed().as_secs_f64());
    }
    Ok(rates)
}

fn memory(plan: &Plan, server: u32, address: SocketAddr, figures: &mut Value) -> Result<(), String> {
    let mut socket = Socket::open(address, PATH)?;
    socket.read()?;
    let before = resident_mb(server);
    for number in 0..plan.many {
        ask(&mut socket, &format!(r#"{{"type":"create_session","sessionId":"many-{number}"}}"#))?;
    }
    let with_sessions = resident_mb(server);
    let mut idle = Vec::with_capacity(plan.many);
    for _ in 0..plan.many.saturating_sub(10) {
        let mut one = Socket::open(address, PATH)?;
        one.read()?;
        idle.push(one);
    }
    let with_sockets = resident_mb(server);
    let each = |from: f64, to: f64, count: usize| (to - from) * 1024.0 / count.max(1) as f64;
    figures["session_kb"] = json!(each(before, with_sessions, plan.many));
    figures["socket_kb"] = json!(each(with_sessions, with_sockets, idle.len()));
    figures["loaded_mb"] = json!(with_sockets);
    Ok(())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan =
        Plan { calls: 2000, loaded: 100_000, in_flight: 64, sockets: 100, many: 1000, command: vec![] };
    while let Some(flag) = args.next() {
        if flag == "--" {
            plan.command = args.collect();
            break;
        }
        let value = args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--calls" => plan.calls = number()?,
            "--loaded" => plan.loaded = number()?,
            "--in-flight" => plan.in_flight = number()?,
            "--sockets" => plan.sockets = number()?,
            "--many" => plan.many = number()?,
            _ => return Err(format!("{flag} {value}: unknown\n{USAGE}")),
        }
    }
    if plan.command.is_empty() { Err(USAGE.to_owned()) } else { Ok(plan) }
}
