//! Resources of other servers: read through us, and followed.

use orchestr8_contract::content::ResourceContents;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Action, Policy};
use orchestr8_kernel::{Args, Context, Halt, schema};
use rmcp::model::ReadResourceRequestParams;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::desk::InstanceUse;
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
    Action::tool(FOLLOW, about, uri_schema(), Policy::read(), move |args, context| {
        let upstreams = upstreams.clone();
        async move { follow(&upstreams, &args, &context).await.map(Into::into).map_err(Halt::Fault) }
    })
    .map(Action::hidden)
}

fn uri_schema() -> Value {
    json!({"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]})
}

/// The server of an address, and the address there.
pub fn found(upstreams: &Upstreams, uri: &str, context: &Context) -> Result<(InstanceUse, String), Fault> {
    let unknown = || Fault::new(Code::NotFound, "there is no such resource").with("uri", uri);
    let (server, own) = theirs(uri).ok_or_else(unknown)?;
    let in_use = upstreams.instance(&context.principal.tenant, server).ok_or_else(unknown)??;
    Ok((in_use, own.to_owned()))
}

async fn read(upstreams: &Upstreams, args: &Args, context: Context) -> Result<Output, Halt> {
    let uri = args.text("uri").unwrap_or_default();
    let (in_use, own) = found(upstreams, uri, &context)?;
    let desk = in_use.desk().clone();
    let wanted = Wanted::Resource(ReadResourceRequestParams::new(own));
    let result = exchange(in_use, &context, wanted).await?;
    let server = desk.server.name.as_str();
    let broken = || desk.fault(Code::Unavailable, "gave contents of a resource that cannot be read");
    let items = result.get("contents").and_then(Value::as_array).ok_or_else(broken)?;
    let contents: Result<Vec<ResourceContents>, _> =
        items.iter().map(ResourceContents::deserialize).collect();
    let contents = contents.map_err(|error| broken().because(error))?;
    let contents = contents.into_iter().map(|contents| address::contents(server, uri, contents));
    Ok(Output::Resource { contents: contents.collect() })
}

async fn follow(upstreams: &Upstreams, args: &Args, context: &Context) -> Result<Output, Fault> {
    let (in_use, _) = found(upstreams, args.text("uri").unwrap_or_default(), context)?;
    let desk = in_use.desk();
    let line = desk.line().await?;
    let can = super::catalog::Abilities::of(&line.peer);
    match can.subscribe {
        true => Ok(Output::json(json!({"followed": true}))),
        false => Err(desk.fault(Code::InvalidArgument, "does not tell of changes of its resources")),
    }
}
