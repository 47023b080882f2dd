//! What the fixture offers beside tools, with `--offers`: resources, templates, prompts, suggestions, updates, log messages.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Server, error, result, said};

/// Entries on one page of a list.
const PAGE: usize = 2;

#[derive(Default)]
pub struct Offers {
    pub followed: BTreeSet<String>,
    pub level: Option<String>,
    /// What there is more of since a call of `grow`.
    pub grown: bool,
}

pub fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true}, "completions": {}, "logging": {},
    })
}

/// Whether a method is about what is no tool.
pub fn is_of(method: &str) -> bool {
    ["resources/", "prompts/", "completion/", "logging/"].iter().any(|of| method.starts_with(of))
}

impl Offers {
    /// The answer to a request about what is no tool; none, if there is to be none.
    pub fn answer(
        &mut self,
        method: &str,
        params: &Value,
        changed: bool,
        modern: bool,
    ) -> Option<(&'static str, Value)> {
        Some(match method {
            "resources/list" => page("resources", self.resources(), params),
            "resources/templates/list" => page("resourceTemplates", templates(), params),
            "prompts/list" => page("prompts", prompts(changed), params),
            "resources/read" => return read(params, modern),
            "prompts/get" => prompt(params),
            "completion/complete" => complete(params),
            "resources/subscribe" => {
                self.followed.insert(params["uri"].as_str().unwrap_or_default().to_owned());
                result(json!({}))
            }
            "resources/unsubscribe" => {
                self.followed.remove(params["uri"].as_str().unwrap_or_default());
                result(json!({}))
            }
            "logging/setLevel" => {
                self.level = params["level"].as_str().map(str::to_owned);
                result(json!({}))
            }
            _ => error(-32_601, "Method not found"),
        })
    }

    fn resources(&self) -> Vec<Value> {
        let mut resources = vec![
            json!({"uri": "file:///a.txt", "name": "a", "title": "A", "description": "Hidden \u{200b} words.",
                "mimeType": "text/plain", "size": 2, "annotations": {"priority": 0.5}}),
            json!({"uri": 5, "name": "malformed"}),
            json!({"uri": "plain", "name": "without a scheme"}),
        ];
        if self.grown {
            resources.push(json!({"uri": "file:///b.txt", "name": "b"}));
        }
        resources
    }
}

fn templates() -> Vec<Value> {
    vec![json!({"uriTemplate": "file:///{name}", "name": "files", "description": "Any file."})]
}

fn prompts(changed: bool) -> Vec<Value> {
    let about = if changed { "Greets, and more." } else { "Greets." };
    let who = json!({"name": "who", "description": "Whom to greet.", "required": true});
    vec![json!({"name": "greet", "title": "Greet", "description": about, "arguments": [who]})]
}

fn page(member: &str, all: Vec<Value>, params: &Value) -> (&'static str, Value) {
    let from = params["cursor"].as_str().and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or(0);
    let shown: Vec<&Value> = all.iter().skip(from).take(PAGE).collect();
    let mut listed = json!({member: shown, "ttlMs": 0, "cacheScope": "private"});
    if from + PAGE < all.len() {
        listed["nextCursor"] = json!((from + PAGE).to_string());
    }
    result(listed)
}

fn read(params: &Value, modern: bool) -> Option<(&'static str, Value)> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let contents = |items: Value| result(json!({"contents": items, "ttlMs": 0, "cacheScope": "private"}));
    Some(match uri {
        "file:///a.txt" => contents(json!([
            {"uri": uri, "mimeType": "text/plain", "text": "a\n", "_meta": {"m": 1}},
            {"uri": "file:///a.bin", "blob": "AA=="},
        ])),
        "plain" => contents(json!([{"uri": uri, "text": "plain"}])),
        "test://hang" => return None,
        "test://broken" => contents(json!([{"uri": uri}])),
        "test://big" => contents(json!([{"uri": uri, "text": "x".repeat(20_000_000)}])),
        "test://refused" => error(-32_603, "it broke"),
        // A client of the current revision is asked in rounds.
        "test://ask" if modern => match params["inputResponses"].get("it") {
            Some(answer) => contents(json!([{"uri": uri, "text": answer.to_string()}])),
            None => {
                let form =
                    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}});
                let question = json!({"method": "elicitation/create", "params": form});
                (
                    "result",
                    json!({"resultType": "input_required", "inputRequests": {"it": question}, "requestState": "s"}),
                )
            }
        },
        _ if modern => {
            ("error", json!({"code": -32602, "message": "Resource not found", "data": {"uri": uri}}))
        }
        _ => error(-32_002, "Resource not found"),
    })
}

fn prompt(params: &Value) -> (&'static str, Value) {
    let Some(who) = params["arguments"]["who"].as_str().filter(|_| params["name"] == "greet") else {
        return error(-32_602, "there is no such prompt");
    };
    let link = json!({"type": "resource_link", "uri": "file:///a.txt", "name": "a"});
    let text = json!({"type": "text", "text": format!("Hello {who}")});
    result(json!({"description": "A greeting.", "messages": [
        {"role": "user", "content": text}, {"role": "assistant", "content": link},
    ]}))
}

fn complete(params: &Value) -> (&'static str, Value) {
    let about = params["ref"]["name"].as_str().or(params["ref"]["uri"].as_str()).unwrap_or_default();
    let values = [about, params["argument"]["value"].as_str().unwrap_or_default()];
    let known = params["context"]["arguments"]["known"].as_str();
    result(
        json!({"completion": {"values": values.into_iter().chain(known).collect::<Vec<_>>(), "hasMore": true}}),
    )
}

impl Server {
    /// The tools of `--offers`, which change what there is beside tools or tell of it.
    pub fn call_of_offers(&mut self, params: &Value) -> Option<(&'static str, Value)> {
        Some(match params["name"].as_str().unwrap_or_default() {
            "offered" => {
                said(&json!({"followed": self.offers.followed, "level": self.offers.level}).to_string())
            }
            "touch" => {
                for uri in self.offers.followed.clone() {
                    self.notify("notifications/resources/updated", json!({"uri": uri}));
                }
                said("touched")
            }
            "log" => {
                let message = json!({"level": "warning", "logger": "own", "data": {"said": "so", "password": "canary"}});
                self.notify("notifications/message", message);
                said("logged")
            }
            "grow" => {
                self.offers.grown = !self.offers.grown;
                self.notify("notifications/resources/list_changed", json!({}));
                said("grown")
            }
            "change_prompt" => {
                self.changed = !self.changed;
                self.notify("notifications/prompts/list_changed", json!({}));
                said("changed")
            }
            "link" => {
                result(json!({"content": [{"type": "resource_link", "uri": "file:///a.txt", "name": "a"}]}))
            }
            _ => return None,
        })
    }
}
