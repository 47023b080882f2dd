//! Resources of other servers: read through us, and followed.

use std::sync::Arc;

use orchestr8_contract::content::ResourceContents;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Action, Policy};
use orchestr8_kernel::{Args, Context, Halt, schema};
use rmcp::model::ReadResourceRequestParams;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::desk::Desk;
use super::Upstreams;
use super::address::{self, theirs};
use super::exchange::{Wanted, exchange};

pub const READ: &str = "upstream.read";
pub const FOLLOW: &str = "upstream.follow";

pub fn read_action(upstreams: Upstreams, timeout_ms: u64) -> Result<Action, schema::Error> {
    let policy = Policy { timeout_ms: Some(timeout_ms), open_world: true, ..Policy::read() };
    let about = "Reads a resource of another MCP server by its address mcp://<server>/<address there>.";
    Action::tool(READ, about, uri_schema(), policy, move |args, context| {
        let upstreams = upstreams.clone();
        async move { read(&upstreams, &args, context).await.map(Into::into) }
    })
    .map(Action::hidden)
}

/// Whether changes of a resource can be heard of. The following itself is an interest of its client.
pub fn follow_action(upstreams: Upstreams) -> Result<Action, schema::Error> {
    let about = "Says whether another MCP server tells of changes of a resource.";
    Action::tool(FOLLOW, about, uri_schema(), Policy::quick_read(), move |args, context| {
        std::future::ready(follow(&upstreams, &args, &context).map(Into::into).map_err(Halt::Fault))
    })
    .map(Action::hidden)
}

fn uri_schema() -> Value {
    json!({"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]})
}

/// The server of an address, and the address there.
pub fn found(upstreams: &Upstreams, uri: &str, context: &Context) -> Result<(Arc<Desk>, String), Fault> {
    let unknown = || Fault::new(Code::NotFound, "there is no such resource").with("uri", uri);
    let (server, own) = theirs(uri).ok_or_else(unknown)?;
    let desk = upstreams.instance(&context.principal.tenant, server).ok_or_else(unknown)?;
    Ok((desk, own.to_owned()))
}

async fn read(upstreams: &Upstreams, args: &Args, context: Context) -> Result<Output, Halt> {
    let uri = args.text("uri").unwrap_or_default();
    let (desk, own) = found(upstreams, uri, &context)?;
    let wanted = Wanted::Resource(ReadResourceRequestParams::new(own));
    let result = exchange(&desk, &context, wanted).await?;
    let server = desk.server.name.as_str();
    let broken = || desk.fault(Code::Unavailable, "gave contents of a resource that cannot be read");
    let items = result.get("contents").and_then(Value::as_array).ok_or_else(broken)?;
    let contents: Result<Vec<ResourceContents>, _> =
        items.iter().map(ResourceContents::deserialize).collect();
    let contents = contents.map_err(|error| broken().because(error))?;
    let contents = contents.into_iter().map(|contents| address::contents(server, uri, contents));
    Ok(Output::Resource { contents: contents.collect() })
}

fn follow(upstreams: &Upstreams, args: &Args, context: &Context) -> Result<Output, Fault> {
    let (desk, _) = found(upstreams, args.text("uri").unwrap_or_default(), context)?;
    let line = desk.line()?;
    let can = super::catalog::Abilities::of(&line.peer);
    match can.subscribe {
        true => Ok(Output::json(json!({"followed": true}))),
        false => Err(desk.fault(Code::InvalidArgument, "does not tell of changes of its resources")),
    }
}
