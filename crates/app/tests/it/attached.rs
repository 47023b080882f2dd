//! Several processes on one data directory: one owns it, the others attach to it and speak as themselves.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Place, signal};
use crate::server::Server;
use crate::stdio::{Client, call, error_of};

/// The content of a tool's answer.
fn content(answer: &Value) -> Value {
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn register(client: &mut Client, agent: &str) {
    content(&client.call(90, "agents.register", json!({"agentId": agent})));
}

fn inbox(client: &mut Client, agent: &str) -> Vec<Value> {
    let read =
        content(&client.call(91, "aacp.inbox", json!({"agentId": agent, "afterSeq": 0, "limit": 100})));
    let messages = read["messages"].as_array().unwrap();
    messages.iter().map(|message| message["envelope"]["payload"].clone()).collect()
}

fn event(sender: usize, n: usize) -> Value {
    json!({"messageId": format!("{sender:08x}-0000-4000-8000-{n:012x}"), "sourceAgentId": format!("sender-{sender}"),
        "targetAgentId": "board", "messageType": "EVENT", "payload": {"sender": sender, "n": n}})
}

fn attached(place: &Place, args: &[&str]) -> Client {
    let client = Client::ready(place, args);
    client.logged("attached to the process that owns the data");
    client
}

#[test]
fn two_processes_share_agents_workflows_and_keyed_calls() {
    let place = Place::new();
    let mut first = Client::ready(&place, &["--conformance"]);
    let mut second = attached(&place, &["--conformance"]);
    register(&mut first, "board");
    content(&second.call(1, "aacp.send", event(1, 1)));
    assert_eq!(inbox(&mut first, "board"), [json!({"sender": 1, "n": 1})]);
    // A call with a key that one process made is answered from the ledger to the other.
    let keyed = |client: &mut Client, value: &str| {
        let mut append = call(2, "test_append", json!({"list": "l", "value": value}));
        append["params"]["_meta"] = json!({"idempotencyKey": "once"});
        client.ask(&append)
    };
    let (once, again) = (keyed(&mut first, "v"), keyed(&mut second, "v"));
    assert_eq!(content(&once), content(&again));
    assert_eq!(again["result"]["_meta"]["orchestr8/replayed"], true, "{again}");
    let conflict = error_of(&keyed(&mut second, "other"));
    assert_eq!(conflict["cause"]["code"], "IDEMPOTENCY_KEY_CONFLICT", "{conflict}");
    // An execution that one started is the other's to look at.
    let definition = json!({"id": "hello", "name": "hello", "version": "1.0.0",
        "steps": [{"id": "say", "agentId": "@orchestr8/echo", "input": {"text": "hi"}}]});
    let started = content(&first.call(3, "run_workflow", json!({"workflow": definition})));
    let status = content(&second.call(
        4,
        "get_status",
        json!({"executionId": started["executionId"], "waitForMs": 10_000}),
    ));
    assert_eq!(
        (&status["executionId"], &status["status"]),
        (&started["executionId"], &json!("ok")),
        "{status}"
    );
    second.end();
    first.end();
}

#[test]
fn five_processes_that_start_at_once_share_one_store() {
    const SENDERS: usize = 5;
    const EACH: usize = 12;
    let place = Place::new();
    let mut clients: Vec<Client> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..SENDERS).map(|_| scope.spawn(|| Client::ready(&place, &[]))).collect();
        started.into_iter().map(|client| client.join().unwrap()).collect()
    });
    register(&mut clients[0], "board");
    std::thread::scope(|scope| {
        for (sender, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for n in 0..EACH {
                    content(&client.call(n as u64, "aacp.send", event(sender, n)));
                }
            });
        }
    });
    for client in &mut clients {
        let seen = inbox(client, "board");
        for sender in 0..SENDERS {
            let own: Vec<u64> = seen
                .iter()
                .filter(|payload| payload["sender"] == sender)
                .map(|payload| payload["n"].as_u64().unwrap())
                .collect();
            assert_eq!(own, (0..EACH as u64).collect::<Vec<_>>(), "in order, each once");
        }
    }
    for client in clients {
        assert_eq!(client.end().0.code(), Some(0));
    }
}

#[test]
fn a_process_takes_over_when_the_owner_leaves() {
    let place = Place::new();
    let mut owner = Client::ready(&place, &[]);
    let mut second = attached(&place, &[]);
    let mut third = attached(&place, &[]);
    register(&mut second, "board");
    content(&third.call(1, "aacp.send", event(3, 1)));
    content(&owner.call(1, "aacp.send", event(0, 1)));
    assert_eq!(owner.end().0.code(), Some(0));
    for (n, client) in [&mut second, &mut third].into_iter().enumerate() {
        content(&client.call(5, "aacp.send", event(n + 5, 1)));
    }
    assert_eq!(inbox(&mut second, "board").len(), 4);
    assert_eq!(inbox(&mut third, "board").len(), 4);
    assert_eq!(second.end().0.code(), Some(0));
    assert_eq!(inbox(&mut third, "board").len(), 4);
    assert_eq!(third.end().0.code(), Some(0));
}

#[test]
fn a_killed_owner_loses_nothing_that_was_acknowledged() {
    const KILLS: usize = 3;
    const AHEAD: usize = 20;
    let place = Place::new();
    let mut owner = Client::ready(&place, &[]);
    register(&mut owner, "board");
    for round in 0..KILLS {
        let progress = AtomicUsize::new(0);
        let mut senders = [attached(&place, &[]), attached(&place, &[])];
        let acknowledged: Vec<Vec<usize>> = std::thread::scope(|scope| {
            let progress = &progress;
            let working: Vec<_> = senders
                .iter_mut()
                .enumerate()
                .map(|(at, sender)| {
                    scope.spawn(move || {
                        let name = round * 10 + at + 1;
                        (0..AHEAD * 2).filter(|n| send_until_known(sender, name, *n, progress)).collect()
                    })
                })
                .collect();
            while progress.load(Ordering::SeqCst) < AHEAD {
                std::thread::yield_now();
            }
            signal(owner.child(), Signal::KILL);
            working.into_iter().map(|sent| sent.join().unwrap()).collect()
        });
        let [first, mut second] = senders;
        let mut seen = Vec::new();
        loop {
            let after = seen.len();
            let args = json!({"agentId": "board", "afterSeq": after, "limit": 100});
            let page = content(&second.call(91, "aacp.inbox", args));
            let messages = page["messages"].as_array().unwrap();
            if messages.is_empty() {
                break;
            }
            seen.extend(messages.iter().map(|message| message["envelope"]["payload"].clone()));
        }
        for (at, sent) in acknowledged.iter().enumerate() {
            let own = seen.iter().filter(|payload| payload["sender"] == round * 10 + at + 1);
            let own: Vec<usize> =
                own.map(|payload| usize::try_from(payload["n"].as_u64().unwrap()).unwrap()).collect();
            assert_eq!(&own, sent, "each once, in order");
            assert_eq!(sent.len(), AHEAD * 2);
        }
        first.end();
        inbox(&mut second, "board"); // It answers once it owns the data, if it did not before.
        owner = second;
    }
    owner.end();
}

/// Sends a message until it is known that it is there: a call that was cut off is repeated with the same id.
fn send_until_known(client: &mut Client, sender: usize, n: usize, progress: &AtomicUsize) -> bool {
    loop {
        let answer = client.call(n as u64, "aacp.send", event(sender, n));
        progress.fetch_add(1, Ordering::SeqCst);
        if answer["result"]["isError"] == false {
            return true;
        }
        let error = error_of(&answer);
        assert_eq!(
            (&error["code"], &error["details"]["reason"]),
            (&json!("OUTCOME_UNKNOWN"), &json!("owner_lost"))
        );
    }
}

#[test]
fn each_process_has_its_own_role_and_tools() {
    let place = Place::new();
    let mut owner = Client::ready(&place, &[]);
    let names = |client: &mut Client| -> Vec<String> {
        let listed = client.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let of_owner = names(&mut owner);
    for role in ["planner", "executor"] {
        let mut governed = attached(&place, &["--governed", role]);
        let seen = names(&mut governed);
        assert!(seen.iter().any(|name| !of_owner.contains(name)), "{role} sees governed tools: {seen:?}");
        assert_eq!(names(&mut owner), of_owner, "and the owner does not");
        governed.end();
    }
    let mut narrow = attached(&place, &["--tools", "echo"]);
    assert_eq!(names(&mut narrow), ["echo"]);
    assert_eq!(error_of(&narrow.call(2, "health", json!({})))["code"], "NOT_FOUND");
    narrow.end();
    owner.end();
}

#[test]
fn settings_that_do_not_apply_are_named() {
    let place = Place::new();
    let owner = Client::ready(&place, &[]);
    let other = place.path().join("other.json");
    place.plant("other.json", r#"{"aacp": {"maxAttempts": 2}, "tools": {"filter": ["echo"]}}"#);
    let mut second = place.command(&["--config", other.to_str().unwrap(), "mcp"]).spawn().unwrap();
    let mut lines = BufReader::new(second.stderr.take().unwrap()).lines();
    let warned = lines.find(|line| line.as_ref().unwrap().contains("do not apply")).unwrap().unwrap();
    assert!(warned.contains("aacp.maxAttempts") && !warned.contains("tools.filter"), "{warned}");
    drop(second.stdin.take());
    assert!(second.wait().unwrap().success());
    owner.end();
}

#[test]
fn a_server_is_attached_to_as_well() {
    let place = Place::new();
    let server = Server::start(&place, &["--data-dir", "data"]);
    let mut client = attached(&place, &["--data-dir", "data"]);
    register(&mut client, "board");
    let sent = place.run(&["agents", "list", "--data-dir", "data"]);
    assert!(sent.out.contains("board"), "{sent:?}");
    let doctor = place.run(&["doctor", "--data-dir", "data"]);
    assert!(doctor.out.contains("other processes attach to it"), "{doctor:?}");
    // Another server is none that attaches.
    let said = place.run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    assert_eq!((said.code, said.out.as_str()), (Some(7), ""), "{said:?}");
    server.terminate();
    // Nothing of the server is left, and the client goes on with the data.
    content(&client.call(1, "aacp.send", event(1, 1)));
    assert_eq!(inbox(&mut client, "board").len(), 1);
    client.end();
}

#[test]
fn a_signal_ends_an_attached_process_in_order() {
    let place = Place::new();
    let owner = Client::ready(&place, &["--conformance"]);
    let mut second = attached(&place, &["--conformance"]);
    second.say(&call(1, "test_sleep", json!({"ms": 300})).to_string());
    // Once this is answered, the call before it has begun.
    assert_eq!(second.call(2, "echo", json!({"message": "x"}))["id"], 2);
    signal(second.child(), Signal::TERM);
    assert_eq!(second.hear()["id"], 1, "what was begun is answered");
    assert_eq!(second.end().0.code(), Some(0));
    owner.end();
}

/// The files beside the data file, for a test that plays the owner.
struct Beside {
    lock: PathBuf,
    record: PathBuf,
    socket: PathBuf,
}

impl Beside {
    fn of(place: &Place) -> Self {
        let with = |end: &str| PathBuf::from(format!("{}{end}", place.data_file().display()));
        Self { lock: with(".lock"), record: with(".attach"), socket: with(".sock") }
    }

    fn write_record(&self) {
        let text = json!({"socket": self.socket, "secret": "5".repeat(64), "pid": 1}).to_string();
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&self.record).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn data_that_is_held_by_a_process_that_cannot_be_attached_to_is_an_error() {
    let place = Place::new();
    Client::ready(&place, &[]).end();
    let beside = Beside::of(&place);
    let held = OpenOptions::new().read(true).write(true).open(&beside.lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let said = place.run(&["mcp"]);
    assert_eq!((said.code, said.out.as_str()), (Some(7), ""), "{said:?}");
    assert!(said.err.contains("that process does not let others attach"), "{}", said.err);
    assert!(said.err.contains("hint: stop that process, or wait until it ends"), "{}", said.err);
    let mut alone = Client::ready(&place, &["--ephemeral"]);
    assert_eq!(alone.call(1, "echo", json!({"message": "x"}))["result"]["isError"], false);
    alone.end();
}

#[test]
fn a_forged_socket_is_told_nothing() {
    let place = Place::new();
    Client::ready(&place, &[]).end();
    let beside = Beside::of(&place);
    beside.write_record();
    let listener = UnixListener::bind(&beside.socket).unwrap();
    let held = OpenOptions::new().read(true).write(true).open(&beside.lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let forger = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let opening: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(opening.as_object().unwrap().len(), 2, "a version and a nonce: {opening}");
        let forged = json!({"attach": 1, "nonce": "6".repeat(64), "proof": "7".repeat(64)});
        (&stream).write_all(format!("{forged}\n").as_bytes()).unwrap();
        assert!(lines.next().is_none(), "nothing follows");
    });
    let said = place.run_with(&["mcp"], &format!("{}\n", call(1, "echo", json!({"message": "secret"}))));
    assert_eq!((said.code, said.out.as_str()), (Some(7), ""), "{said:?}");
    assert!(said.err.contains("the process that listens there does not own the data"), "{}", said.err);
    forger.join().unwrap();
}

#[test]
fn a_stranger_without_the_secret_is_refused() {
    let place = Place::new();
    let owner = Client::ready(&place, &[]);
    let stream = UnixStream::connect(Beside::of(&place).socket).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |message: Value| -> Option<Value> {
        // The other side may be gone already.
        let _ = (&stream).write_all(format!("{message}\n").as_bytes());
        lines.next().and_then(Result::ok).map(|line| serde_json::from_str(&line).unwrap())
    };
    let challenge = ask(json!({"attach": 1, "nonce": "6".repeat(64)})).unwrap();
    assert_eq!(challenge["attach"], 1, "{challenge}");
    // What the owner has said is no proof of ours.
    let verdict = ask(json!({"proof": challenge["proof"], "hello": {"governed": "planner"}})).unwrap();
    assert_eq!((&verdict["accepted"], &verdict["reason"]), (&json!(false), &json!("the proof is wrong")));
    assert_eq!(ask(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})), None);
    owner.end();
}

/// Only root can be another user; for others the comparison has a test of its own beside the code.
#[test]
fn another_user_is_refused_by_the_socket() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let owner = Client::ready(&place, &[]);
    let socket = Beside::of(&place).socket;
    for folder in socket.ancestors().skip(1).take_while(|folder| folder.starts_with(place.path())) {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    let heard = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65_534)).unwrap();
        let stream = UnixStream::connect(socket).unwrap();
        // It may be gone already.
        let _ = (&stream).write_all(b"{\"attach\":1,\"nonce\":\"n\"}\n");
        BufReader::new(stream).lines().next().and_then(Result::ok)
    });
    assert_eq!(heard.join().unwrap(), None);
    assert!(owner.logged("a process of another user was refused").contains("65534"));
    owner.end();
}

#[test]
fn a_command_beside_a_server_reads_but_does_not_write_elsewhere() {
    let place = Place::new();
    let client = Client::ready(&place, &["--conformance"]);
    assert_eq!(place.run(&["tools", "call", "echo", "--args", r#"{"message":"x"}"#]).code, Some(0));
    let args = r#"{"list":"l","value":"v"}"#;
    let append = place.run(&["tools", "call", "test_append", "--conformance", "--args", args]);
    assert_eq!(append.code, Some(7), "{append:?}");
    client.end();
}
