//! An echo server on rmcp, the official Rust SDK, set up as fast as it can be: the peer we measure against.
use axum::serve::ListenerExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use std::error::Error;
use std::sync::Arc;

#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = serde_json::json!({
            "type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]
        });
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Returns its message", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(message) = arguments.get("message").and_then(|value| value.as_str()) else {
            return Err(ErrorData::invalid_params("message: a string is needed", None));
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (Some("stdio"), None) => stdio().await,
        (Some("http"), Some(address)) => http(&address).await,
        _ => Err("usage: rmcp-echo stdio | http ADDRESS".into()),
    }
}

async fn stdio() -> Result<(), Box<dyn Error>> {
    // Pipes driven by the reactor instead of the blocking pool: several times faster than `stdio()`.
    let service = Echo.serve(rmcp::transport::io::stdio_pipes()).await?;
    service.waiting().await?;
    Ok(())
}

async fn http(address: &str) -> Result<(), Box<dyn Error>> {
    // No sessions, one JSON body instead of an event stream, and no Nagle delay: each of these costs the
    // default set-up dearly, and a comparison against a slow set-up would say nothing.
    let config =
        StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}
