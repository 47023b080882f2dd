//! The description of this API: OpenAPI 3.1, built here, committed as `schemas/aacp.openapi.json`, served as it is.

use serde_json::{Map, Value, json};

/// Members of a message, in both shapes.
pub(crate) const MEMBERS: [&str; 23] = [
    "messageId",
    "requestId",
    "sourceAgentId",
    "targetAgentId",
    "topic",
    "seq",
    "ack",
    "messageType",
    "timestamp",
    "payload",
    "outcome",
    "error",
    "timeoutMs",
    "ttlMs",
    "expiresAt",
    "id",
    "type",
    "source",
    "destination",
    "correlationId",
    "causationId",
    "ttl",
    "priority",
];

pub(crate) const STATUSES: [&str; 4] = ["PENDING", "COMPLETED", "FAILED", "UNKNOWN"];
pub(crate) const PAGE: u64 = 500;
pub(crate) const TOPIC_LETTERS: usize = 128;

/// The largest number that every reader of JSON reads as it is.
pub(crate) const COUNT_MAX: u64 = 1 << 53;

const ID: &str = "^[A-Za-z0-9_.:-]{1,128}$";
/// A UUID of version 4.
const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$";
const AGENT: &str = "^[^\\x00-\\x1f\\x7f-\\x9f/]{1,128}$";

const ABOUT: &str = "Messages between agents that are kept until they are acknowledged: numbered from 1 for each pair of agents, sent again \
until they are received, and never worked on twice under one requestId. Every request may carry X-Correlation-ID, and every answer has one.";

/// The whole description.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "orchestr8 messages", "version": "1.0.0", "summary": "Reliable messages between agents.", "description": ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": crate::PREFIX}],
        "security": [{}, {"bearer": []}],
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "responses": refusals(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn paths() -> Value {
    json!({
        "/messages": {"post": send()},
        "/messages/{id}": {"get": operation("getMessage", "A message and what became of it.", &[path(ID)], (200, "Message"), &[404])},
        "/requests": {"get": operation(
            "listRequests", "Requests, the newest first.",
            &[query("status", json!({"type": "string", "enum": STATUSES})), query("agentId", bounded(256)), page()],
            (200, "Requests"), &[],
        )},
        "/pairs": {"get": operation(
            "listPairs", "Pairs of agents that messages go between, those with most unacknowledged first.",
            &[query("agentId", bounded(256)), page()], (200, "Pairs"), &[],
        )},
        "/purge": {"post": with_body(
            operation("purgeExpired", "Deletes messages and requests whose expiresAt is over.", &[], (200, "Purged"), &[]),
            closed(json!({}), &[]), json!({}), false,
        )},
        "/requests/{id}": {"get": operation(
            "getRequest", "What became of a request; with wait, once it has ended.", &[path(ID), wait()], (200, "Request"), &[404],
        )},
        "/agents": {
            "get": operation("listAgents", "The agents messages can be sent to.", &[query("topic", bounded(TOPIC_LETTERS))], (200, "Agents"), &[]),
            "post": with_body(
                operation("registerAgent", "Registers an agent, or changes it.", &[], (200, "Agent"), &[409]),
                registration(true), json!({"agentId": "planner", "topics": ["builds"]}), true,
            ),
        },
        "/agents/{id}": {
            "put": with_body(
                operation("putAgent", "Registers the agent of this id, or changes it.", &[path(AGENT)], (200, "Agent"), &[404, 409]),
                registration(false), json!({"topics": ["builds"]}), false,
            ),
            "delete": operation("unregisterAgent", "Forgets an agent.", &[path(AGENT)], (200, "Unregistered"), &[404]),
        },
        "/agents/{id}/heartbeat": {"post": with_body(
            operation("heartbeat", "A sign of life.", &[path(AGENT)], (200, "Agent"), &[404]),
            closed(json!({"state": {"type": "string", "enum": ["idle", "busy", "draining"]}}), &[]), json!({"state": "busy"}), false,
        )},
        "/agents/{id}/inbox": {"get": inbox()},
        "/agents/{id}/acks": {"post": with_body(
            operation("acknowledge", "Says that messages are here.", &[path(AGENT)], (200, "Acknowledged"), &[404]),
            closed(json!({"sourceAgentId": bounded(256), "seq": count(), "inboxSeq": count()}), &[]), json!({"inboxSeq": 0}), true,
        )},
        "/openapi.json": {"get": operation("getDescription", "This description.", &[], (200, "Description"), &[])},
    })
}

fn send() -> Value {
    let mut send = operation(
        "sendMessage",
        "Sends a message; durable when it is answered.",
        &[wait()],
        (201, "Sent"),
        &[404, 409],
    );
    send["responses"]["200"] = given("It was here before; nothing is done twice.", "Sent");
    for status in ["200", "201"] {
        let parameters = json!({"id": "$response.body#/messageId"});
        send["responses"][status]["links"]["getMessage"] =
            json!({"operationId": "getMessage", "parameters": parameters});
    }
    with_body(
        send,
        json!({"$ref": "#/components/schemas/Envelope"}),
        json!({"sourceAgentId": "me", "targetAgentId": "echo", "messageType": "REQUEST", "payload": {"type": "hello"}}),
        true,
    )
}

fn inbox() -> Value {
    let page = json!({"type": "integer", "minimum": 1, "maximum": crate::settings::PAGE});
    let parameters = [path(AGENT), query("afterSeq", count()), query("limit", page), wait()];
    let mut inbox = operation(
        "readInbox",
        "Messages for an agent: a page, or with Accept: text/event-stream a stream that goes on. Without afterSeq (or Last-Event-ID) \
         it begins with what was not acknowledged.",
        &parameters,
        (200, "Page"),
        &[404],
    );
    inbox["responses"]["200"]["content"]["text/event-stream"] = json!({"schema": {"type": "string"}});
    inbox
}

fn operation(
    id: &str,
    summary: &str,
    parameters: &[Value],
    (status, schema): (u16, &str),
    fails: &[u16],
) -> Value {
    let mut responses = Map::new();
    responses.insert(status.to_string(), given("Done.", schema));
    for status in [400, 401, 403, 429, 500, 503].iter().chain(fails) {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    json!({"operationId": id, "summary": summary, "parameters": parameters, "responses": responses})
}

fn with_body(mut operation: Value, schema: Value, example: Value, required: bool) -> Value {
    operation["requestBody"] = json!({"required": required, "content": {"application/json": {"schema": schema, "example": example}}});
    for status in [408, 413, 415] {
        operation["responses"][status.to_string()] =
            json!({"$ref": format!("#/components/responses/{status}")});
    }
    operation
}

fn given(about: &str, schema: &str) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}}})
}

fn path(pattern: &str) -> Value {
    json!({"in": "path", "name": "id", "required": true, "schema": {"type": "string", "pattern": pattern}})
}

fn query(name: &str, schema: Value) -> Value {
    json!({"in": "query", "name": name, "required": false, "schema": schema})
}

fn page() -> Value {
    query("limit", json!({"type": "integer", "minimum": 1, "maximum": PAGE}))
}

fn wait() -> Value {
    let about = "How long to wait: seconds, or milliseconds with ms.";
    json!({"in": "query", "name": "wait", "required": false, "description": about, "schema": {"type": "string", "pattern": "^[0-9]{1,4}(ms|s)?$"}})
}

fn bounded(letters: usize) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": letters, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": COUNT_MAX})
}

fn closed(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn open(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn registration(with_id: bool) -> Value {
    let mut members = json!({
        "callbackUrl": {"type": "string", "maxLength": 2048},
        "callbackSecret": {"type": "string", "minLength": 16, "maxLength": 256}, "description": {"type": "string", "maxLength": 1000},
        "topics": {"type": "array", "maxItems": 64, "items": bounded(TOPIC_LETTERS)},
    });
    if with_id {
        members["agentId"] = bounded(256);
    }
    closed(members, if with_id { &["agentId"] } else { &[] })
}

fn schemas() -> Value {
    let (text, truth) = (json!({"type": "string"}), json!({"type": "boolean"}));
    let moment = json!({"type": "string", "format": "date-time"});
    let status = json!({"type": "string", "enum": STATUSES});
    let request = json!({
        "requestId": text, "status": status, "sourceAgentId": text, "targetAgentId": text, "messageId": text, "attempts": count(),
        "timestamp": moment, "expiresAt": moment, "completedAt": moment, "nextRetryAt": moment, "late": truth, "response": true,
        "error": {"type": "object"},
    });
    let shown = [
        "requestId",
        "status",
        "sourceAgentId",
        "targetAgentId",
        "messageId",
        "attempts",
        "timestamp",
        "expiresAt",
    ];
    let pair = json!({
        "sourceAgentId": text, "targetAgentId": text, "seq": count(), "ack": count(), "unacknowledged": count(), "held": count(),
        "waitingSince": moment,
    });
    let agent = json!({
        "agentId": text, "kind": {"type": "string", "enum": ["local", "callback", "inbox"]},
        "state": {"type": "string", "enum": ["idle", "busy", "draining", "offline"]}, "topics": {"type": "array", "items": text},
        "registeredAt": moment, "lastSeenAt": moment, "callbackUrl": text, "signed": {"type": "boolean"}, "description": text,
    });
    let place = open(json!({"inboxSeq": count(), "envelope": {"type": "object"}}), &["inboxSeq", "envelope"]);
    let fault = open(
        json!({"code": text, "message": text, "hint": text, "isRetryable": truth, "details": {"type": "object"}}),
        &["code", "message", "hint"],
    );
    json!({
        "Envelope": envelope(),
        "Sent": open(json!({
            "messageId": text, "requestId": text, "seq": count(), "ack": count(), "duplicate": truth, "held": truth,
            "gaps": {"type": "array", "items": open(json!({"from": count(), "to": count()}), &["from", "to"])},
            "request": {"$ref": "#/components/schemas/Request"}, "copies": {"type": "array"}, "skipped": {"type": "array"},
        }), &["messageId", "seq", "ack", "duplicate"]),
        "Message": open(json!({
            "messageId": text, "requestId": text, "outcome": status, "timestamp": moment, "expiresAt": moment, "held": truth,
            "retryCount": count(), "envelope": {"type": "object"}, "error": {"type": "object"},
            "request": {"$ref": "#/components/schemas/Request"},
        }), &["messageId", "outcome", "timestamp", "expiresAt", "envelope"]),
        "Request": open(request, &shown),
        "Requests": open(json!({"requests": {"type": "array", "items": {"$ref": "#/components/schemas/Request"}}}), &["requests"]),
        "Pair": open(pair, &["sourceAgentId", "targetAgentId", "seq", "ack", "unacknowledged", "held"]),
        "Pairs": open(json!({"pairs": {"type": "array", "items": {"$ref": "#/components/schemas/Pair"}}}), &["pairs"]),
        "Purged": open(json!({"purged": count()}), &["purged"]),
        "Agent": open(agent, &["agentId", "kind", "state"]),
        "Agents": open(json!({"agents": {"type": "array", "items": {"$ref": "#/components/schemas/Agent"}}, "truncated": truth}), &["agents", "truncated"]),
        "Unregistered": open(json!({"agentId": text, "unregistered": {"const": true}}), &["agentId", "unregistered"]),
        "Acknowledged": open(json!({"agentId": text, "waiting": count()}), &["agentId", "waiting"]),
        "Page": open(json!({"messages": {"type": "array", "items": place}, "lastSeq": count()}), &["messages", "lastSeq"]),
        "Description": {"type": "object"},
        "Error": open(json!({"error": fault, "correlationId": text}), &["error"]),
    })
}

/// What a schema can say of both shapes; the rest is said with the path of the mistake.
fn envelope() -> Value {
    let id = json!({"type": "string", "pattern": ID});
    let number = json!({"type": "integer", "minimum": 1, "maximum": COUNT_MAX});
    let moment = json!({"type": "string", "format": "date-time", "maxLength": 64});
    let mut members: Map<String, Value> = Map::new();
    for name in MEMBERS {
        let schema = match name {
            "messageId" => json!({"type": "string", "format": "uuid", "pattern": UUID}),
            "requestId" => id.clone(),
            "id" => json!({"type": ["string", "null"], "pattern": ID}),
            "sourceAgentId" | "targetAgentId" => bounded(256),
            "topic" => bounded(TOPIC_LETTERS),
            "seq" => number.clone(),
            "ack" => count(),
            "messageType" => json!({"type": "string", "enum": ["REQUEST", "RESPONSE", "EVENT"]}),
            "outcome" => json!({"type": "string", "enum": ["COMPLETED", "FAILED"]}),
            "timeoutMs" => json!({"type": "integer", "minimum": 1, "maximum": 86_400_000}),
            "ttlMs" => json!({"type": "integer", "minimum": 1, "maximum": 2_592_000_000_u64}),
            "ttl" => json!({"type": ["integer", "null"], "minimum": 1, "maximum": 2_592_000_000_u64}),
            "timestamp" | "expiresAt" => moment.clone(),
            "correlationId" | "causationId" => {
                let mut text = bounded(256);
                text["type"] = json!(["string", "null"]);
                text
            }
            _ => json!(true),
        };
        members.insert(name.to_owned(), schema);
    }
    closed(members.into(), &[])
}

fn refusals() -> Value {
    let meanings = [
        (400, "Something of the request is wrong; the message names its place."),
        (401, "The server asks for a token."),
        (403, "This caller may not speak for this agent."),
        (404, "There is no such thing."),
        (408, "The body came too slowly."),
        (409, "The id or the number was used for something else."),
        (413, "Too large."),
        (415, "The body must be JSON."),
        (429, "A mailbox or another limit is full; Retry-After says when to come again."),
        (500, "The server failed."),
        (503, "Something needed is not there now."),
    ];
    meanings
        .into_iter()
        .map(|(status, about)| (status.to_string(), given(about, "Error")))
        .collect::<Map<_, _>>()
        .into()
}
