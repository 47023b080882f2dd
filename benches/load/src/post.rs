//! Posts one body to one path of a server that already runs, many times over keep-alive connections.
use crate::http::{self, Connection};
use crate::measure::at;
use crate::usage;
use rustix::event::epoll;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub const USAGE: &str = "\
usage: load post --address HOST:PORT --path PATH [options]

  --body TEXT           what to post (default {})
  --expect TEXT         every answer must contain it
  --process PID         a process of the server, for CPU and memory; may be given several times
  --warm-up N           calls over all connections before anything is measured (default 500)
  --calls N             calls one after another (default 1000)
  --loaded-calls N      calls over all connections at once (default 20000)
  --in-flight N         how many connections (default 32)
  --seconds N           end each of the three after this long, however many were made (default 60)";

/// What to do, as the command line says it.
struct Plan {
    address: SocketAddr,
    path: String,
    body: String,
    expect: String,
    processes: Vec<u32>,
    warm_up: usize,
    calls: usize,
    loaded_calls: usize,
    in_flight: usize,
    limit: Duration,
}

pub fn run(args: impl Iterator<Item = String>) -> Result<Value, String> {
    let plan = parse(args)?;
    let mut lanes = Lanes::open(&plan)?;
    let all = plan.in_flight;
    lanes.run(all, plan.warm_up, plan.limit)?;
    let idle_mb = resident_mb(&plan);
    let before = plan.cpu_us();
    let alone = lanes.run(1, plan.calls, plan.limit)?;
    let alone_cpu = plan.cpu_us() - before;
    let (before, own) = (plan.each_cpu_us(), usage::process_cpu_us(std::process::id()));
    let loaded = lanes.run(all, plan.loaded_calls, plan.limit)?;
    let own_cpu = usage::process_cpu_us(std::process::id()) - own;
    let spent: Vec<u64> =
        plan.each_cpu_us().iter().zip(before).map(|(after, before)| after - before).collect();
    let of_each = |cpu: u64, made: &Made| cpu as f64 / made.latencies_us.len() as f64;
    let processes = plan.processes.iter().zip(&spent).map(
        |(process, cpu)| json!({"cpu_us": of_each(*cpu, &loaded), "loaded_mb": usage::resident_mb(*process)}),
    );
    Ok(json!({
        "calls": alone.latencies_us.len(),
        "p50_us": at(&alone.latencies_us, 0.50),
        "p95_us": at(&alone.latencies_us, 0.95),
        "cpu_alone_us": of_each(alone_cpu, &alone),
        "loaded_calls": loaded.latencies_us.len(),
        "rate_per_s": loaded.latencies_us.len() as f64 / loaded.seconds,
        "loaded_p50_us": at(&loaded.latencies_us, 0.50),
        "loaded_p95_us": at(&loaded.latencies_us, 0.95),
        "cpu_us": of_each(spent.iter().sum(), &loaded),
        "client_cpu_us": of_each(own_cpu, &loaded),
        "idle_mb": idle_mb,
        "loaded_mb": resident_mb(&plan),
        "processes": processes.collect::<Vec<Value>>(),
    }))
}

impl Plan {
    fn each_cpu_us(&self) -> Vec<u64> {
        self.processes.iter().map(|process| usage::process_cpu_us(*process)).collect()
    }

    fn cpu_us(&self) -> u64 {
        self.each_cpu_us().iter().sum()
    }
}

fn resident_mb(plan: &Plan) -> f64 {
    plan.processes.iter().map(|process| usage::resident_mb(*process)).sum()
}

/// What a phase made: how long each call took, from short to long, and how long all of them.
struct Made {
    latencies_us: Vec<f64>,
    seconds: f64,
}

/// The connections and the one request they all send. One thread serves all of them: on a small machine a
/// client with a thread for each would take from the server what it is about to measure.
struct Lanes {
    connections: Vec<Connection>,
    ready: rustix::fd::OwnedFd,
    request: Vec<u8>,
    expect: String,
}

impl Lanes {
    fn open(plan: &Plan) -> Result<Lanes, String> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        let started = Instant::now();
        let mut connections = Vec::with_capacity(plan.in_flight);
        for lane in 0..plan.in_flight {
            let connection = http::connect(plan.address, started)?;
            let data = epoll::EventData::new_u64(lane as u64);
            epoll::add(&ready, connection.socket(), data, epoll::EventFlags::IN)
                .map_err(|error| format!("epoll: {error}"))?;
            connections.push(connection);
        }
        let request = http::request(plan.address, &plan.path, "", &plan.body).into_bytes();
        Ok(Lanes { connections, ready, request, expect: plan.expect.clone() })
    }

    /// Keeps `lanes` calls open until `calls` were made or the time is up, and waits for the last answers.
    fn run(&mut self, lanes: usize, calls: usize, limit: Duration) -> Result<Made, String> {
        let began = Instant::now();
        let mut latencies_us = Vec::with_capacity(calls);
        let mut sent_at = vec![began; lanes];
        let (mut sent, mut open) = (0, 0);
        while open < lanes.min(calls) {
            sent_at[open] = Instant::now();
            self.connections[open].write(&self.request)?;
            (sent, open) = (sent + 1, open + 1);
        }
        let mut events = Vec::with_capacity(lanes);
        while open > 0 {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                let lane = event.data.u64() as usize;
                let began_call = sent_at.get_mut(lane).ok_or("the server closed an idle connection")?;
                self.take(lane)?;
                let now = Instant::now();
                latencies_us.push((now - *began_call).as_secs_f64() * 1e6);
                if sent < calls && now - began < limit {
                    *began_call = now;
                    self.connections[lane].write(&self.request)?;
                    sent += 1;
                } else {
                    open -= 1;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        latencies_us.sort_unstable_by(f64::total_cmp);
        Ok(Made { latencies_us, seconds })
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> Result<(), String> {
        let limit = http::ANSWER_LIMIT.try_into().map_err(|_| "the limit of an answer is too long")?;
        match epoll::wait(&self.ready, rustix::buffer::spare_capacity(events), Some(&limit)) {
            Ok(0) => Err(format!("no answer within {} s", http::ANSWER_LIMIT.as_secs())),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(format!("epoll: {error}")),
        }
    }

    fn take(&mut self, lane: usize) -> Result<(), String> {
        let body = self.connections[lane].read()?.body;
        if body.contains(&self.expect) { Ok(()) } else { Err(format!("not the expected answer: {body}")) }
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Plan, String> {
    let mut plan = Plan {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        path: String::new(),
        body: "{}".to_owned(),
        expect: String::new(),
        processes: vec![],
        warm_up: 500,
        calls: 1000,
        loaded_calls: 20_000,
        in_flight: 32,
        limit: Duration::from_secs(60),
    };
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--address" => plan.address = value.parse().map_err(|_| format!("{value}: not an address"))?,
            "--path" => plan.path = value,
            "--body" => plan.body = value,
            "--expect" => plan.expect = value,
            "--process" => plan.processes.push(number()? as u32),
            "--warm-up" => plan.warm_up = number()?,
            "--calls" => plan.calls = number()?,
            "--loaded-calls" => plan.loaded_calls = number()?,
            "--in-flight" => plan.in_flight = number()?,
            "--seconds" => plan.limit = Duration::from_secs(number()? as u64),
            _ => return Err(format!("{flag} {value}: unknown\n{USAGE}")),
        }
    }
    let complete = plan.address.port() > 0 && plan.path.starts_with('/') && plan.in_flight > 0;
    if complete { Ok(plan) } else { Err(USAGE.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::{Value, run};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Answers every request with its own path and body, and counts them.
    fn mirror() -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = count.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = counted.clone();
                std::thread::spawn(move || answer(BufReader::new(stream), &counted));
            }
        });
        (address, count)
    }

    fn answer(mut stream: BufReader<std::net::TcpStream>, count: &AtomicUsize) {
        loop {
            let (mut first, mut length) = (String::new(), 0);
            if stream.read_line(&mut first).unwrap() == 0 {
                return;
            }
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let text = format!("{} {}", first.trim(), String::from_utf8(body).unwrap());
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len());
            stream.get_mut().write_all(reply.as_bytes()).unwrap();
        }
    }

    fn ask(address: SocketAddr, more: &str) -> Result<Value, String> {
        let words = format!("--address {address} --path /run --body hello {more}");
        run(words.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter())
    }

    #[test]
    fn every_call_of_every_phase_is_made_and_answered() {
        let (address, count) = mirror();
        let own = std::process::id();
        let figures = ask(
            address,
            &format!("--warm-up 7 --calls 5 --loaded-calls 23 --in-flight 4 --expect hello --process {own}"),
        );
        let figures = figures.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 35);
        assert_eq!((figures["calls"].as_u64(), figures["loaded_calls"].as_u64()), (Some(5), Some(23)));
        assert!(figures["p50_us"].as_f64() <= figures["p95_us"].as_f64());
        assert!(figures["loaded_mb"].as_f64() > Some(0.0));
    }

    #[test]
    fn a_phase_ends_when_its_time_is_up() {
        let (address, count) = mirror();
        let figures =
            ask(address, "--warm-up 0 --calls 0 --loaded-calls 100 --in-flight 4 --seconds 0").unwrap();
        assert_eq!((count.load(Ordering::SeqCst), figures["loaded_calls"].as_u64()), (4, Some(4)));
        assert_eq!(figures["p50_us"], Value::Null);
    }

    #[test]
    fn a_wrong_answer_and_a_missing_path_are_errors() {
        let (address, _) = mirror();
        assert!(ask(address, "--expect goodbye").unwrap_err().contains("POST /run HTTP/1.1 hello"));
        assert!(run(["--address".to_owned(), address.to_string()].into_iter()).is_err());
    }
}
