//! The official Rust client: both generations, and its own way of finding out which one to use.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test client: it waits on the wall clock and prints what it saw"
)]

use anyhow::{Context, Result, bail};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ProtocolVersion};
use rmcp::service::{PeerRequestOptions, RequestHandle, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

type Client = RunningService<RoleClient, ()>;

struct Options {
    era: String,
    slots: usize,
    url: Option<String>,
    command: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = parse(std::env::args().skip(1))?;
    let client = connect(&options).await?;
    let info = client.peer().peer_info().context("no server information")?;
    let mut seen = json!({
        "revision": info.protocol_version.to_string(),
        "server": info.server_info.as_ref().map(|server| server.name.clone()),
    });
    let tools = client.peer().list_all_tools().await?;
    seen["tools"] = tools.iter().map(|tool| Value::from(tool.name.to_string())).collect();
    seen["echo"] = echo(&client, "hello").await?.into();
    fill_and_cancel(&client, options.slots, &mut seen).await?;
    client.cancel().await?;
    seen["closed"] = true.into();
    println!("{seen}");
    Ok(())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options { era: "legacy".to_owned(), slots: 10, url: None, command: Vec::new() };
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--era" => options.era = args.next().context("--era")?,
            "--slots" => options.slots = args.next().context("--slots")?.parse()?,
            "--url" => options.url = args.next(),
            "--" => options.command = args.by_ref().collect(),
            _ => bail!("unknown option {flag}"),
        }
    }
    Ok(options)
}

async fn connect(options: &Options) -> Result<Client> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match options.era.as_str() {
        "legacy" => ClientLifecycleMode::Initialize,
        "modern" => ClientLifecycleMode::Discover { preferred_versions },
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        other => bail!("unknown era {other}"),
    };
    if let Some(url) = &options.url {
        let transport = StreamableHttpClientTransport::from_uri(url.as_str());
        return Ok(().serve_with_lifecycle(transport, lifecycle).await?);
    }
    let (program, arguments) = options.command.split_first().context("a command or a --url is needed")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments);
    Ok(().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?)
}

fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

/// Calls the echo tool; none when the server says that it has no room.
async fn echo(client: &Client, message: &str) -> Result<Option<String>> {
    let result = client.call_tool(call("echo", json!({ "message": message }))).await?;
    if result.is_error == Some(true) {
        return Ok(None);
    }
    Ok(Some(result.content.iter().filter_map(|part| part.as_text().map(|text| text.text.clone())).collect()))
}

/// Only a cancellation that reached the server frees its slots, so `freed` is evidence, not courtesy.
async fn fill_and_cancel(client: &Client, slots: usize, seen: &mut Value) -> Result<()> {
    let mut slow = Vec::new();
    for _ in 0..slots {
        slow.push(send_slow_call(client).await?);
    }
    seen["full"] = fill(client, &mut slow).await?.into();
    let mut cancelled = 0;
    for request in slow {
        request.cancel(Some("no longer needed".to_owned())).await?;
        cancelled += 1;
    }
    seen["cancelled"] = cancelled.into();
    seen["freed"] = becomes_free(client).await?.into();
    Ok(())
}

async fn send_slow_call(client: &Client) -> Result<RequestHandle<RoleClient>> {
    let request = ClientRequest::from(CallToolRequest::new(call("test_sleep", json!({"ms": 60_000}))));
    Ok(client.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await?)
}

/// Waits until the slow calls hold every slot. An echo that overtakes a slow call on another connection may have the last slot for
/// a moment; the slow call is then refused and sent again.
async fn fill(client: &Client, slow: &mut [RequestHandle<RoleClient>]) -> Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if echo(client, "room?").await?.is_none() {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
        for request in slow.iter_mut() {
            if request.rx.try_recv().is_ok() {
                *request = send_slow_call(client).await?;
            }
        }
    }
    Ok(false)
}

/// Waits until the server has a free slot.
async fn becomes_free(client: &Client) -> Result<bool> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if echo(client, "room?").await?.is_some() {
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(false)
}
