//! Several clients each start one of us, on the same data.

use serde_json::json;

use crate::program::Place;
use crate::server::Server;
use crate::stdio::Client;

#[test]
fn a_second_stdio_server_works_in_memory_and_says_so() {
    let place = Place::new();
    let mut first = Client::ready(&place, &[]);
    let mut second = Client::ready(&place, &[]);
    let warned = second.logged("another orchestr8 has the data file");
    assert!(
        warned.contains("\"level\":\"warn\"") && warned.contains(&format!("\"pid\":{}", first.child().id())),
        "{warned}"
    );
    for client in [&mut first, &mut second] {
        assert_eq!(client.call(1, "echo", json!({"message": "x"}))["result"]["isError"], false);
    }
    first.end();
    second.end();
}

#[test]
fn whoever_names_the_place_gets_it_or_an_error() {
    let place = Place::new();
    let server = Server::start(&place, &["--data-dir", "data"]);
    for args in
        [&["mcp", "--data-dir", "data"][..], &["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]]
    {
        let said = place.run(args);
        assert_eq!(said.code, Some(7), "{said:?}");
        assert!(
            said.err.starts_with(
                "error: the store cannot be opened: $PLACE/data/orchestr8.sqlite3 is in use by the process "
            ),
            "{}",
            said.err
        );
        assert!(said.err.contains(
            "hint: stop that process, or give this one a place of its own with --data-dir DIR or --ephemeral"
        ));
    }
    server.terminate();
}

#[test]
fn serve_never_falls_back_to_memory() {
    let place = Place::new();
    let client = Client::ready(&place, &[]);
    let said = place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!((said.code, said.out.as_str()), (Some(7), ""));
    client.end();
}

#[test]
fn a_command_beside_a_server_reads_but_does_not_write_elsewhere() {
    let place = Place::new();
    let client = Client::ready(&place, &["--conformance"]);
    let echo = place.run(&["tools", "call", "echo", "--args", r#"{"message":"x"}"#]);
    assert_eq!(echo.code, Some(0), "{echo:?}");
    let args = r#"{"list":"l","value":"v"}"#;
    let append = place.run(&["tools", "call", "test_append", "--conformance", "--args", args]);
    assert_eq!(append.code, Some(7), "{append:?}");
    client.end();
}
