//! The face on a pair of pipes.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::{Limits, Principal};
use orchestr8_mcp::serve_stdio::{Ended, serve};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::world::{face, face_on, settings, store, tool_error};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// A test that hangs should fail.
const PATIENCE: Duration = Duration::from_secs(60);

struct Piped {
    input: PipeWriter,
    output: BufReader<PipeReader>,
    served: JoinHandle<std::io::Result<Ended>>,
    shutdown: CancellationToken,
}

fn start(face: orchestr8_mcp::Face, drain: Duration) -> Piped {
    let (server_input, input) = pipe().unwrap();
    let (output, server_output) = pipe().unwrap();
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    let served = tokio::spawn(async move {
        serve(&face, Arc::new(Principal::local()), server_input, server_output, token, drain).await
    });
    Piped { input, output: BufReader::new(output), served, shutdown }
}

impl Piped {
    fn say(&mut self, line: &str) {
        self.input.write_all(line.as_bytes()).unwrap();
        self.input.write_all(b"\n").unwrap();
    }

    fn begin(&mut self) {
        self.say(INITIALIZE);
        self.say(INITIALIZED);
        assert_eq!(self.hear()["id"], 0);
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ended(self) -> (Ended, Vec<Value>) {
        drop(self.input);
        let output = self.output;
        let rest = tokio::task::spawn_blocking(move || {
            output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
        });
        let ended = tokio::time::timeout(PATIENCE, self.served).await.unwrap().unwrap().unwrap();
        (ended, rest.await.unwrap())
    }
}

fn call(id: u64, name: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_may_end_in_any_way_and_come_in_any_pieces() {
    let mut piped = start(face(), PATIENCE);
    for byte in format!("{INITIALIZE}\r\n\r\n  \n{INITIALIZED}\n").bytes() {
        piped.input.write_all(&[byte]).unwrap();
    }
    assert_eq!(piped.hear()["result"]["serverInfo"]["name"], "test-server");
    // The last line has no line end, and is a line all the same.
    piped.input.write_all(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).unwrap();
    let (ended, rest) = piped.ended().await;
    assert_eq!((ended, rest), (Ended::Input, vec![json!({"jsonrpc": "2.0", "id": 1, "result": {}})]));
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_in_flight_are_given_after_the_input_ends() {
    let mut piped = start(face(), PATIENCE);
    piped.begin();
    for id in 1..=5 {
        piped.say(&call(id, "sleep", json!({"ms": 20 * id})));
    }
    let listen = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}, "notifications": {}});
    piped.say(
        &json!({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": listen}).to_string(),
    );
    let (ended, rest) = piped.ended().await;
    assert_eq!(ended, Ended::Input);
    let mut answered: Vec<u64> = rest.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3, 4, 5]);
    // A stream that would never end is brought to a good end.
    let end = rest.iter().find(|answer| answer["id"] == "s").unwrap();
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_longer_than_the_drain_is_not_waited_for() {
    let mut piped = start(face(), Duration::from_millis(20));
    piped.begin();
    piped.say(&call(1, "stubborn", json!({"ms": 3_600_000})));
    assert_eq!(piped.ended().await, (Ended::Input, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_too_long_to_keep_is_answered_and_the_next_one_served() {
    let limits = Limits { payload_bytes: 1000, ..Limits::default() };
    let mut piped = start(face_on(store(), limits, settings()), PATIENCE);
    let long = "x".repeat(5_000_000);
    // The gate comes before the size (MCP-ORDER-1); the id may stand anywhere.
    piped.say(&format!(r#"{{"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{long}"}}}},"jsonrpc":"2.0","id":"late"}}"#));
    let answer = piped.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("late"), &json!(-32002)));
    assert_eq!(answer["error"]["data"]["code"], "NOT_INITIALIZED");
    piped.begin();
    piped.say(&call(1, "echo", json!({"message": long})));
    let error = tool_error(&piped.hear());
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("RESOURCE_EXHAUSTED"), &json!("payload_too_large"))
    );
    piped.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{long}"}}"#));
    piped.say(&format!("\"{long}\""));
    assert_eq!(piped.hear()["id"], Value::Null, "a response is not answered, what is no message is");
    piped.say(&call(2, "echo", json!({"message": "short"})));
    assert_eq!(piped.hear()["id"], 2);
    assert_eq!(piped.ended().await.0, Ended::Input);
}

/// What the face says to a message is the same however long it is: over HTTP the same messages get the same answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_too_long_to_keep_is_checked_in_the_same_order_as_any_other() {
    let mut piped = start(face(), PATIENCE);
    piped.begin();
    let long = "x".repeat(5_000_000);
    let meta = |rest: Value| json!({"correlationId": "keep-me", "junk": long, "more": rest});
    for (params, code) in [
        (json!({"name": 5, "arguments": {"message": long}}), -32602),
        (json!({"name": "echo", "arguments": [long]}), -32602),
        (json!({"name": "echo", "arguments": long}), -32602),
        (json!({"name": "echo", "_meta": [long]}), -32602),
        (json!([long]), -32602),
    ] {
        piped.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string());
        let answer = piped.hear();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(code)));
    }
    for params in [
        json!({"_meta": meta(json!(1)), "name": "echo", "arguments": {"message": "short"}}),
        json!({"name": "no such tool", "arguments": {"message": long}, "_meta": meta(json!({}))}),
    ] {
        piped.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string());
        let error = tool_error(&piped.hear());
        assert_eq!(
            (&error["code"], &error["correlationId"]),
            (&json!("RESOURCE_EXHAUSTED"), &json!("keep-me"))
        );
    }
    let modern = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    for (method, meta, code) in [
        ("no/such", json!({"junk": long}), -32601),
        ("ping", json!({"junk": long}), -32600),
        ("ping", json!({"junk": long, "io.modelcontextprotocol/protocolVersion": "2026-07-28"}), -32601),
    ] {
        piped.say(
            &json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {"_meta": meta}}).to_string(),
        );
        assert_eq!(piped.hear()["error"]["code"], code, "{method}");
    }
    piped.say(&json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "echo", "arguments": {"message": long}, "_meta": modern}}).to_string());
    assert_eq!(piped.hear()["result"]["resultType"], "complete", "in the words of its era");
    piped.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"reason": long}})
            .to_string(),
    );
    piped.say(&call(5, "echo", json!({"message": "short"})));
    assert_eq!(piped.hear()["id"], 5, "a notification is not answered");
    assert_eq!(piped.ended().await.0, Ended::Input);
}

/// MCP-ORDER-4: the size is that of the serialized arguments, not of the line.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_long_on_the_wire_only_is_not_too_large() {
    let mut piped = start(face(), PATIENCE);
    piped.begin();
    let escaped = "\\u65e5".repeat(200_000);
    piped.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{escaped}"}}}}}}"#));
    assert_eq!(piped.hear()["result"]["isError"], json!(false));
    let meta = json!({"junk": "x".repeat(1_500_000)});
    let params = json!({"name": "echo", "arguments": {"message": "a"}, "_meta": meta});
    piped.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string());
    assert_eq!(piped.hear()["result"]["isError"], json!(false));
    assert_eq!(piped.ended().await.0, Ended::Input);
}

/// The work of a client that is gone is told so, whatever has been written.
#[tokio::test(flavor = "multi_thread")]
async fn work_hears_that_its_reader_is_gone() {
    let face = face();
    let mut piped = start(face.clone(), PATIENCE);
    piped.begin();
    let (mut ended, kernel) =
        (face.kernel().bus().subscribe(&Filter::names(["action.finished"])).unwrap(), face.kernel().clone());
    piped.say(&call(1, "sleep", json!({"ms": 3_600_000})));
    orchestr8_testing::until("the call to run", || kernel.running() == 1).await;
    let Piped { input, output, served, shutdown: _keep } = piped;
    drop(output);
    let event = orchestr8_testing::within(ended.next()).await.unwrap();
    assert_eq!(event.data["end"]["end"], "aborted", "it stopped because it was told to");
    assert_eq!(tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap().unwrap(), Ended::Output);
    drop(input);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_to_a_slow_reader_are_all_answered() {
    const COUNT: u64 = 5000;
    let mut piped = start(face(), PATIENCE);
    piped.begin();
    let mut input = piped.input.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for id in 1..=COUNT {
            let line = if id % 2 == 0 {
                call(id, "echo", json!({"message": "x".repeat(500)}))
            } else {
                call(id, "long", json!({"count": 300}))
            };
            input.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    });
    let mut answered: Vec<u64> = (0..COUNT).map(|_| piped.hear()["id"].as_u64().unwrap()).collect();
    writing.join().unwrap();
    answered.sort_unstable();
    assert_eq!(answered, (1..=COUNT).collect::<Vec<_>>());
    assert_eq!(piped.ended().await.0, Ended::Input);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_ends_it() {
    let Piped { mut input, output, served, shutdown: _keep } = start(face(), PATIENCE);
    drop(output);
    // The reply finds the pipe broken; a second write may find the reader gone as well.
    input.write_all(format!("{INITIALIZE}\n").as_bytes()).unwrap();
    let ended = tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap().unwrap();
    assert_eq!(ended, Ended::Output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_does_not_wait_for_a_read_that_hangs() {
    let mut piped = start(face(), PATIENCE);
    piped.begin();
    piped.say(&call(1, "sleep", json!({"ms": 50})));
    piped.say(&call(2, "echo", json!({"message": "x"})));
    assert_eq!(piped.hear()["id"], 2, "both have been taken");
    piped.shutdown.cancel();
    let Piped { input, mut output, served, .. } = piped;
    let ended = tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap().unwrap();
    assert_eq!(ended, Ended::Shutdown);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&line).unwrap()["id"],
        1,
        "what was in flight is still answered"
    );
    drop(input);
}
