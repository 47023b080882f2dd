//! Resources, prompts, suggestions, updates and log messages of another server, through us.

use orchestr8_contract::{Code, Output};
use orchestr8_kernel::bus::Filter;
use orchestr8_kernel::peer::{About, LOG_MESSAGE, Severity};
use orchestr8_kernel::registry::{CHANGED, RESOURCE_UPDATED};
use orchestr8_kernel::{Principal, Submission, Why};
use orchestr8_testing::settled::{fault, text, value};
use orchestr8_testing::{Person, until, within};
use orchestr8_tools::remote::{Phase, Server, accept};
use serde_json::{Value, json};

use crate::world::{World, fixture};

const ERAS: [&[&str]; 2] = [&["--offers"], &["--offers", "--modern"]];

/// With the fixture, once it is known what it offers.
async fn world(flags: &[&str]) -> World {
    let world = World::with(fixture(flags)).await;
    until_listed(&world, "prompts", 1).await;
    world
}

async fn list(world: &World, list: &str) -> Vec<Value> {
    let listed = value(world.call("upstream.list", json!({"list": list})).await);
    listed.as_array().unwrap().clone()
}

async fn until_listed(world: &World, what: &str, count: usize) {
    while list(world, what).await.len() != count {
        tokio::task::yield_now().await;
    }
}

/// Until the server says this of what it was asked for.
async fn until_offered(world: &World, expected: &Value) {
    loop {
        let offered: Value =
            serde_json::from_str(&text(world.call("other.offered", json!({})).await)).unwrap();
        if offered == *expected {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn read(world: &World, uri: &str) -> Submission {
    world.submission("upstream.read", json!({"uri": uri}))
}

#[tokio::test]
async fn what_a_server_offers_is_listed_under_addresses_of_ours() {
    for flags in ERAS {
        let world = world(flags).await;
        let meta = |name: &str| json!({"orchestr8/server": "other", "orchestr8/name": name});
        assert_eq!(
            list(&world, "resources").await,
            [
                json!({"uri": "mcp://other/file:///a.txt", "name": "a", "title": "A", "size": 2, "mimeType": "text/plain",
                    "description": "Hidden \\u{200b} words.", "annotations": {"priority": 0.5}, "_meta": meta("file:///a.txt")}),
                json!({"uri": "mcp://other/plain", "name": "without a scheme", "_meta": meta("plain")}),
            ],
            "all pages, without the malformed one"
        );
        let template = json!({"uriTemplate": "mcp://other/file:///{name}", "name": "files", "description": "Any file.",
            "_meta": meta("file:///{name}")});
        assert_eq!(list(&world, "resourceTemplates").await, [template]);
        let prompts = list(&world, "prompts").await;
        assert_eq!(
            (&prompts[0]["name"], &prompts[0]["arguments"][0]["name"]),
            (&json!("other.greet"), &json!("who"))
        );
        let mut news = world.kernel.bus().subscribe(&Filter::names([CHANGED])).unwrap();
        text(world.call("other.grow", json!({})).await);
        while &*within(news.next()).await.unwrap().subject != "resources" {}
        assert_eq!(list(&world, "resources").await.len(), 3);
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn what_a_tool_links_to_can_be_read() {
    for flags in ERAS {
        let world = world(flags).await;
        let Ok(Output::Blocks { blocks, .. }) = world.call("other.link", json!({})).await.result else {
            panic!("blocks")
        };
        let link = serde_json::to_value(&blocks[0]).unwrap();
        let uri = link["uri"].as_str().unwrap();
        assert_eq!(uri, "mcp://other/file:///a.txt");
        let settled = within(world.kernel.submit(read(&world, uri))).await;
        let Ok(Output::Resource { contents }) = settled.result else { panic!("contents") };
        assert_eq!(
            serde_json::to_value(contents).unwrap(),
            json!([
                {"uri": uri, "mimeType": "text/plain", "text": "a\n", "_meta": {"m": 1}},
                {"uri": "mcp://other/file:///a.bin", "blob": "AA=="},
            ])
        );
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn prompts_and_suggestions_come_through() {
    for flags in ERAS {
        let world = world(flags).await;
        let prompt = |name: &str| json!({"name": name, "arguments": {"who": "Ada"}});
        let Ok(Output::Prompt { description, messages }) =
            world.call("upstream.prompt", prompt("other.greet")).await.result
        else {
            panic!("a prompt")
        };
        assert_eq!(description.as_deref(), Some("A greeting."));
        let messages = serde_json::to_value(messages).unwrap();
        assert_eq!(messages[0], json!({"role": "user", "content": {"type": "text", "text": "Hello Ada"}}));
        assert_eq!(messages[1]["content"]["uri"], "mcp://other/file:///a.txt");
        assert_eq!(world.call("upstream.prompt", prompt("other.no")).await.code(), Some(Code::NotFound));
        let wrong = world.call("upstream.prompt", json!({"name": "other.greet"})).await.code();
        assert_eq!(wrong, Some(Code::InvalidArgument), "its own word");
        for (about, own) in [("prompt", "other.greet"), ("uri", "mcp://other/file:///{name}")] {
            let args = json!({about: own, "argument": "x", "value": "ty", "known": {"known": "k"}});
            let completion = value(world.call("upstream.complete", args).await);
            let named = own.trim_start_matches("other.").trim_start_matches("mcp://other/");
            assert_eq!(completion, json!({"values": [named, "ty", "k"], "hasMore": true}));
        }
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_has_the_right_code_within_the_time_limit() {
    for flags in ERAS {
        let mut server = fixture(flags);
        server.timeout_ms = Some(500);
        let world = World::with(server).await;
        for (uri, code) in [
            ("mcp://other/no://such", Code::NotFound),
            ("mcp://no-such-server/x", Code::NotFound),
            ("mcp://other", Code::NotFound),
            ("file:///a.txt", Code::NotFound),
            ("mcp://other/test://refused", Code::Unavailable),
            ("mcp://other/test://broken", Code::Unavailable),
            ("mcp://other/test://hang", Code::Timeout),
        ] {
            let settled = within(world.kernel.submit(read(&world, uri))).await;
            assert_eq!(settled.code(), Some(code), "{uri}: {settled:?}");
        }
        world.remote.stop().await;
    }
    let world = world(&["--offers"]).await;
    let settled = within(world.kernel.submit(read(&world, "mcp://other/test://big"))).await;
    assert_eq!(settled.code(), Some(Code::PayloadTooLarge));
    world.remote.stop().await;
    let gone = World::with(Server { start_timeout_ms: 200, ..fixture(&["--mute"]) }).await;
    let settled = within(gone.kernel.submit(read(&gone, "mcp://other/file:///a.txt"))).await;
    assert_eq!((settled.code(), gone.seen().phase), (Some(Code::Unavailable), Phase::Waiting));
    gone.remote.stop().await;
}

#[tokio::test]
async fn a_read_that_is_cancelled_is_cancelled_there_too() {
    let world = world(&["--offers"]).await;
    let submission = read(&world, "mcp://other/test://hang");
    let (kernel, cancel) = (world.kernel.clone(), submission.cancel.clone());
    let call = tokio::spawn(async move { kernel.submit(submission).await });
    until("the read to run", || world.kernel.running() == 1).await;
    cancel.fire(Why::Client);
    assert_eq!(within(call).await.unwrap().code(), Some(Code::Cancelled));
    while text(world.call("other.cancelled", json!({})).await) == "[]" {
        tokio::task::yield_now().await;
    }
    world.remote.stop().await;
}

/// In the current revision a read may end with a question and be made again.
#[tokio::test]
async fn a_read_may_ask_its_client_something() {
    let world = world(&["--offers", "--modern"]).await;
    let mut submission = read(&world, "mcp://other/test://ask");
    submission.peer = Some(Person::always(&[About::Elicit], json!({"action": "decline"})));
    let settled = within(world.kernel.submit(submission)).await;
    let Ok(Output::Resource { contents }) = settled.result else { panic!("contents: {settled:?}") };
    assert!(serde_json::to_value(&contents[0]).unwrap()["text"].is_string());
    world.remote.stop().await;
}

#[tokio::test]
async fn what_clients_follow_is_followed_there_and_told_here() {
    for flags in ERAS {
        let world = world(flags).await;
        let uri = "mcp://other/file:///a.txt";
        assert_eq!(
            value(world.call("upstream.follow", json!({"uri": uri})).await),
            json!({"followed": true})
        );
        let tenant = Principal::local().tenant;
        let interest = world.kernel.interests().follow(&tenant, uri);
        let same = world.kernel.interests().follow(&tenant, uri);
        until_offered(&world, &json!({"followed": ["file:///a.txt"], "level": null})).await;
        let mut news = world.kernel.bus().subscribe(&Filter::names([RESOURCE_UPDATED])).unwrap();
        text(world.call("other.touch", json!({})).await);
        assert_eq!(&*within(news.next()).await.unwrap().subject, uri);
        drop(interest);
        // A server that comes again is asked again.
        let pid = world.seen().pid.unwrap();
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        until("the next process to run", || {
            let seen = world.seen();
            seen.phase == Phase::Running && seen.pid != Some(pid)
        })
        .await;
        until_offered(&world, &json!({"followed": ["file:///a.txt"], "level": null})).await;
        drop(same);
        until_offered(&world, &json!({"followed": [], "level": null})).await;
        world.remote.stop().await;
    }
}

#[tokio::test]
async fn a_server_without_updates_says_so() {
    let world = World::with(fixture(&[])).await;
    let refused = fault(world.call("upstream.follow", json!({"uri": "mcp://other/x"})).await);
    assert_eq!(refused.code, Code::InvalidArgument);
    world.remote.stop().await;
}

#[tokio::test]
async fn log_messages_reach_those_who_want_them() {
    let world = world(&["--offers"]).await;
    let tenant = Principal::local().tenant;
    let _quiet = world.kernel.interests().log_from(&tenant, Severity::Error);
    until_offered(&world, &json!({"followed": [], "level": "error"})).await;
    let _loud = world.kernel.interests().log_from(&tenant, Severity::Info);
    until_offered(&world, &json!({"followed": [], "level": "info"})).await;
    let mut news = world.kernel.bus().subscribe(&Filter::names([LOG_MESSAGE])).unwrap();
    text(world.call("other.log", json!({})).await);
    let event = within(news.next()).await.unwrap();
    assert_eq!(
        *event.data,
        json!({"level": "warning", "logger": "other/own", "tenant": "local",
            "data": {"said": "so", "password": "[REDACTED]"}})
    );
    world.remote.stop().await;
}

#[tokio::test]
async fn a_prompt_that_changes_is_in_quarantine_until_it_is_accepted() {
    let world = world(&["--offers"]).await;
    text(world.call("other.change_prompt", json!({})).await);
    until_listed(&world, "prompts", 0).await;
    let args = json!({"name": "other.greet", "arguments": {"who": "Ada"}});
    let refused = fault(world.call("upstream.prompt", args.clone()).await);
    assert_eq!((refused.code, &refused.details.unwrap()["prompt"]), (Code::Quarantined, &json!("greet")));
    accept(world.kernel.ports(), "other", "prompts/greet", None, None).await.unwrap();
    until_listed(&world, "prompts", 1).await;
    assert_eq!(list(&world, "prompts").await[0]["description"], "Greets, and more.");
    assert!(world.call("upstream.prompt", args).await.result.is_ok());
    world.remote.stop().await;
}

#[tokio::test]
async fn resources_of_a_tenant_are_those_of_its_own_instance() {
    let world = world(&["--offers"]).await;
    let of_acme = async || {
        let args = json!({"list": "resources"});
        value(world.call_as("acme", "upstream.list", args).await).as_array().unwrap().len()
    };
    assert_eq!(of_acme().await, 0, "those of another instance are not shown");
    while of_acme().await == 0 {
        tokio::task::yield_now().await;
    }
    let pid = |tenant: &str| world.seen_of("other", tenant).unwrap().pid;
    assert!(pid("acme").is_some() && pid("acme") != pid("local"));
    world.remote.stop().await;
}
