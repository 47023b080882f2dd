//! Recipes of MCP over HTTP: every tool, resource and prompt, completions and subscriptions, governed tools.

use serde_json::{Value, json};

use super::content::echo;
use super::objects::{DYNAMIC_TOOL, Objects};
use super::recipe::Recipe;
use super::reference::GOVERNED;
use super::wire::{Request, tool};

/// With the names of the governed tools, as the program lists them.
pub fn all(governed_tools: &[String]) -> Vec<Recipe> {
    [tools(), messages(), reads(), upstream(), lists(), governed(governed_tools)]
        .into_iter()
        .flatten()
        .collect()
}

fn call(name: &'static str, arguments: impl Fn(&Objects) -> Value + 'static) -> Recipe {
    Recipe::new(format!("tools/call {name}"), name, move |o| tool(name, arguments(o)))
}

fn tools() -> Vec<Recipe> {
    vec![
        call("echo", |_| json!({"message": "hello"})),
        call("health", |_| json!({})),
        call("run_workflow", |o| json!({"workflow": echo(&o.fresh("ran"), o.mark())})),
        call("get_status", |o| json!({"executionId": o.execution()})),
        call("cancel_workflow", |o| json!({"executionId": o.execution()})),
        call("send_event", |o| json!({"name": "paid", "key": o.fresh("order"), "payload": o.mark()})),
        call("start_session", |_| json!({})),
        call("get_session", |o| json!({"sessionId": o.session()})),
        call("prompt_session", |o| json!({"sessionId": o.session(), "message": "hello"})),
        call("search_knowledge", |_| json!({"query": "wombat"})),
        call("get_document", |o| json!({"document_id": o.document()})),
        call("list_documents", |_| json!({})),
        call(
            "admin.registerTool",
            |o| json!({"name": o.fresh("registered"), "description": "d", "toolType": "echo"}),
        ),
        call("admin.unregisterTool", |o| json!({"name": o.dynamic_tool()})),
        call("admin.listQuarantined", |_| json!({})),
        call("admin.acceptTool", |_| json!({"server": "up", "tool": "none", "changed": "c"})).ends(&["404"]),
        // Who may call the tools of other servers is who may call tools.
        Recipe::new("tools/call (upstream)", "run_workflow", |_| tool("up.echo", json!({"message": "x"})))
            .audited_as("up.echo"),
        // Who may call what an admin registers is who may call tools.
        Recipe::new("tools/call (registered)", "run_workflow", |o| {
            tool(&o.dynamic_tool(), json!({"message": "x"}))
        })
        .audited_as(DYNAMIC_TOOL),
    ]
}

fn messages() -> Vec<Recipe> {
    vec![
        call("agent.list", |_| json!({})),
        call("agent.getState", |_| json!({"agentId": "echo"})),
        call(
            "agent.sendMessage",
            |_| json!({"targetAgentId": "echo", "message": {"type": "note", "payload": 1}}),
        ),
        call("agents.list", |_| json!({})),
        call("agents.register", |o| json!({"agentId": o.fresh("registered")})),
        call("aacp.send", |o| {
            json!({"messageType": "EVENT", "sourceAgentId": o.fresh("source"), "targetAgentId": "echo",
                "payload": {"note": o.mark()}})
        }),
        call("aacp.inbox", |o| json!({"agentId": o.agent()})),
        call("aacp.ack", |o| json!({"agentId": o.agent(), "inboxSeq": 0})),
        call("aacp.purge_expired", |_| json!({})),
        call("aacp.request_status", |o| json!({"requestId": o.message().1})),
    ]
}

/// The address of an object of the test.
type Address = fn(&Objects) -> String;

/// The resources and prompts, by every method that tells of one.
fn reads() -> Vec<Recipe> {
    let resources: [(&'static str, Address); 4] = [
        ("workflow", |o| format!("workflow://{}", o.workflow())),
        ("execution", |o| format!("execution://{}", o.execution())),
        ("session", |o| format!("session://{}", o.session())),
        ("knowledge.document", |o| format!("knowledge://{}", o.document())),
    ];
    let mut recipes = Vec::new();
    for (name, uri) in resources {
        recipes.push(Recipe::new(format!("resources/read {name}"), name, move |o| Request::Mcp {
            method: "resources/read",
            params: json!({"uri": uri(o)}),
        }));
        // A subscription says nothing of the object; what it tells later is for the tenant of the object only.
        recipes.push(
            Recipe::new(format!("resources/subscribe {name}"), name, move |o| Request::LegacyMcp {
                method: "resources/subscribe",
                params: json!({"uri": uri(o)}),
            })
            .filtering(),
        );
        recipes.push(Recipe::new(format!("completion/complete {name}"), name, move |_| {
            let template =
                format!("{}://{{id}}", if name == "knowledge.document" { "knowledge" } else { name });
            complete(json!({"type": "ref/resource", "uri": template}), "id")
        }));
    }
    recipes.extend([
        Recipe::new("resources/read mcp.result", "mcp.result", |_| Request::Mcp {
            method: "resources/read",
            params: json!({"uri": "result://none"}),
        })
        .ends(&["404"]),
        prompt("create_workflow", |_| json!({"goal": "g"})),
        prompt("analyze_workflow", |o| json!({"executionId": o.execution()})),
        Recipe::new("completion/complete create_workflow", "create_workflow", |_| {
            complete(json!({"type": "ref/prompt", "name": "create_workflow"}), "goal")
        }),
        Recipe::new("completion/complete analyze_workflow", "analyze_workflow", |_| {
            complete(json!({"type": "ref/prompt", "name": "analyze_workflow"}), "executionId")
        }),
    ]);
    recipes
}

/// What another server offers beside tools.
fn upstream() -> Vec<Recipe> {
    let uri = "mcp://up/workflow://none";
    vec![
        Recipe::new("resources/read upstream.read", "upstream.read", move |_| Request::Mcp {
            method: "resources/read",
            params: json!({"uri": uri}),
        })
        .ends(&["404"]),
        Recipe::new("resources/subscribe upstream.follow", "upstream.follow", move |_| Request::LegacyMcp {
            method: "resources/subscribe",
            params: json!({"uri": uri}),
        })
        .filtering(),
        Recipe::new("prompts/get upstream.prompt", "upstream.prompt", |_| Request::Mcp {
            method: "prompts/get",
            params: json!({"name": "up.create_workflow", "arguments": {"goal": "g"}}),
        })
        .ends(&["*"]),
        Recipe::new("completion/complete upstream.complete", "upstream.complete", |_| {
            complete(json!({"type": "ref/resource", "uri": "mcp://up/workflow://{id}"}), "id")
        }),
    ]
}

fn prompt(name: &'static str, arguments: fn(&Objects) -> Value) -> Recipe {
    Recipe::new(format!("prompts/get {name}"), name, move |o| Request::Mcp {
        method: "prompts/get",
        params: json!({"name": name, "arguments": arguments(o)}),
    })
}

fn complete(about: Value, argument: &str) -> Request {
    let params = json!({"ref": about, "argument": {"name": argument, "value": ""}});
    Request::Mcp { method: "completion/complete", params }
}

/// Lists show what the caller may use; everyone may ask for them.
fn lists() -> Vec<Recipe> {
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover"]
        .into_iter()
        .map(|method| Recipe::new(method, "open", move |_| Request::Mcp { method, params: json!({}) }))
        .chain(["ping", "logging/setLevel", "tasks/list"].into_iter().map(|method| {
            let params = if method == "logging/setLevel" { json!({"level": "error"}) } else { json!({}) };
            Recipe::new(method, "open", move |_| Request::LegacyMcp { method, params: params.clone() })
        }))
        // Tasks belong to the caller that began them; there are none.
        .chain(["tasks/get", "tasks/cancel", "tasks/update"].into_iter().map(|method| {
            Recipe::new(method, "open", move |_| Request::Mcp { method, params: json!({"taskId": "none"}) })
                .ends(&["*"])
        }))
        .chain(["tasks/result", "resources/unsubscribe"].into_iter().map(|method| {
            let params = json!({"taskId": "none", "uri": "workflow://none"});
            Recipe::new(method, "open", move |_| Request::LegacyMcp { method, params: params.clone() })
                .ends(&["*"])
        }))
        .collect()
}

/// The tools of governed workspaces: the planner and the executor call them by their plain names, others find none.
fn governed(names: &[String]) -> Vec<Recipe> {
    names
        .iter()
        .map(|name| {
            let plain = name.strip_prefix(GOVERNED).unwrap().to_owned();
            // Without a workspace they fail, each in its own way.
            Recipe::new(format!("tools/call {name}"), name, move |_| tool(&plain, json!({}))).ends(&["*"])
        })
        .collect()
}
