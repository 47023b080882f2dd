//! How a conversation begins: the gate and the handshake of the legacy era, the check of each request in the modern one.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::peer::Severity;
use serde_json::{Value, json};

use crate::body::{Body, CacheScope};
use crate::connection::{Connection, Facts, Incoming, Phase};
use crate::era::{CAPABILITIES_KEY, Era, LOG_LEVEL_KEY, MODERN, Revision, TASKS, VERSION_KEY};
use crate::from_wire::{Capabilities, Params, map, severity};
use crate::methods::{self, Gate, Method};
use crate::request::{Outcome, Request};
use crate::wire::{self, Error, text_of};

/// What is known about a request once it may be served.
pub struct Admitted<'a> {
    pub method: &'static Method,
    pub era: Era,
    pub params: Params<'a>,
    pub capabilities: Capabilities,
    pub log_level: Option<Severity>,
}

/// The gate of the legacy era: state first (MCP-ORDER-1), then the method, then the shape of its params.
pub fn admit_legacy<'a>(
    connection: &Connection,
    name: &str,
    params: Result<Params<'a>, Error>,
) -> Result<Admitted<'a>, Outcome> {
    if !connection.face.settings().eras.legacy {
        let asked =
            params.ok().and_then(|params| params.text("protocolVersion").ok().flatten().map(String::from));
        return Err(Err(unsupported(asked.as_deref().unwrap_or_default())).into());
    }
    let found = methods::find(name);
    let state = connection.state.lock();
    let opening = found.is_some_and(|method| method.gate == Gate::Opening);
    match (state.phase, opening) {
        (Phase::Running, false) | (Phase::Starting, true) => {}
        (Phase::Initializing | Phase::Running, true) => {
            return Err(Err(Error::new(wire::INVALID_REQUEST, "Invalid Request: already initialized")).into());
        }
        (Phase::Starting | Phase::Initializing | Phase::Closed, _) => {
            let error = Error::new(wire::NOT_INITIALIZED, "Not initialized")
                .with("code", Code::NotInitialized.as_str())
                .with("message", Code::NotInitialized.advice())
                .status(400);
            return Err(Outcome { result: Err(error), correlation: Some(connection.id.clone()) });
        }
    }
    let known = found.filter(|method| method.legacy.is_some_and(|since| opening || since <= state.revision));
    let method = known.ok_or_else(|| Err(method_not_found(name)))?;
    Ok(Admitted {
        method,
        era: Era::Legacy(state.revision),
        params: params.map_err(Err)?,
        capabilities: state.capabilities,
        log_level: state.log_level,
    })
}

/// The check of the modern era: the method, then `_meta`, then the headers, then the version.
pub fn admit_modern<'a>(
    connection: &Connection,
    name: &str,
    params: Result<Params<'a>, Error>,
    incoming: &Incoming<'_>,
) -> Result<Admitted<'a>, Outcome> {
    let method = methods::find(name)
        .filter(|method| method.modern)
        .ok_or_else(|| Err(method_not_found(name).status(404)))?;
    let params = params.map_err(|error| Err(error.status(400)))?;
    let missing = |key: &str| Err(Error::params(format!("_meta[\"{key}\"] is missing")).status(400));
    let wrong = |error: Error| Err(error.status(400));
    let version = params.meta(VERSION_KEY).ok_or_else(|| missing(VERSION_KEY))?;
    let version =
        text_of(version).ok_or_else(|| wrong(Error::params("the protocol version must be a string")))?;
    let declared = params.meta(CAPABILITIES_KEY).ok_or_else(|| missing(CAPABILITIES_KEY))?;
    let declared = map(declared, "the client's capabilities").map_err(wrong)?;
    if let Some(check) = incoming.check_headers {
        let object = method.object.map(|object| params.text(object)).transpose().map_err(wrong)?.flatten();
        let is_call = name == "tools/call";
        let who = incoming.who.as_deref().unwrap_or(&connection.who);
        let tool = object.as_deref().filter(|_| is_call).and_then(|name| connection.face.tool(name, who));
        let facts = Facts {
            method: name,
            version: &version,
            name: object.as_deref(),
            tool: tool.as_deref(),
            arguments: params.get("arguments").filter(|_| is_call),
        };
        check(&facts)
            .map_err(|why| Err(Error::new(wire::HEADER_MISMATCH, format!("Header mismatch: {why}"))))?;
    }
    if version != MODERN {
        return Err(Err(unsupported(&version)).into());
    }
    let log_level = match params.meta(LOG_LEVEL_KEY) {
        None => None,
        Some(raw) => Some(severity(&text_of(raw).unwrap_or_default()).map_err(wrong)?),
    };
    let capabilities = Capabilities::of(&Value::Object(declared));
    Ok(Admitted { method, era: Era::Modern, params, capabilities, log_level })
}

fn method_not_found(name: &str) -> Error {
    const SHOWN_CHARACTERS: usize = 128;
    let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
    Error::new(wire::METHOD_NOT_FOUND, format!("Method not found: {shown}"))
}

fn unsupported(requested: &str) -> Error {
    Error::new(wire::VERSION_UNSUPPORTED, "Unsupported protocol version")
        .with("supported", vec![MODERN])
        .with("requested", requested)
}

/// STARTING → INITIALIZING (MCP-INIT-1, MCP-INIT-2, MCP-PROP-1).
pub fn initialize(request: &Request<'_>) -> Result<Body, Error> {
    let revision = Revision::negotiate(&request.params.required_text("protocolVersion")?);
    let declared = Value::Object(request.params.map("capabilities")?.unwrap_or_default());
    request.params.map("clientInfo")?;
    request.connection.change(|state| {
        // Looked at again: two requests of one HTTP session may come at the same moment.
        if state.phase != Phase::Starting {
            return Err(Error::new(wire::INVALID_REQUEST, "Invalid Request: already initialized"));
        }
        state.phase = Phase::Initializing;
        state.revision = revision;
        state.capabilities = Capabilities::of(&declared);
        state.declared = declared;
        Ok(())
    })?;
    let settings = request.settings();
    let body = Body::with_capacity(512)
        .text("protocolVersion", revision.as_str())
        .value("capabilities", &legacy_capabilities(revision))
        .raw("serverInfo", request.connection.face.server());
    Ok(match &settings.instructions {
        Some(instructions) => body.text("instructions", instructions),
        None => body,
    })
}

/// INITIALIZING → RUNNING (MCP-INIT-3). Anywhere else the notification means nothing.
pub fn initialized(connection: &Arc<Connection>) {
    let is_first = connection.change(|state| {
        let is_first = state.phase == Phase::Initializing;
        if is_first {
            state.phase = Phase::Running;
        }
        is_first
    });
    if is_first {
        connection.listen_to_changes();
    }
}

fn legacy_capabilities(revision: Revision) -> Value {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if revision >= Revision::V2025_03_26 {
        capabilities["completions"] = json!({});
    }
    if revision >= Revision::V2025_11_25 {
        capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
    capabilities
}

pub fn discover(request: &Request<'_>) -> Result<Body, Error> {
    let capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "completions": {},
        "logging": {},
        "extensions": {TASKS: {}},
    });
    let settings = request.settings();
    let body = Body::with_capacity(512)
        .value("supportedVersions", &[MODERN])
        .value("capabilities", &capabilities)
        .cached(settings.cache_ttl_ms, CacheScope::Public);
    Ok(match &settings.instructions {
        Some(instructions) => body.text("instructions", instructions),
        None => body,
    })
}

pub fn ping(_: &Request<'_>) -> Result<Body, Error> {
    Ok(Body::empty())
}

pub fn set_level(request: &Request<'_>) -> Result<Body, Error> {
    let level = severity(&request.params.required_text("level")?)?;
    request.connection.change(|state| state.log_level = Some(level));
    request.connection.with_listener(|listener| {
        listener.log_from(level);
        Ok(())
    })?;
    Ok(Body::empty())
}
