//! The people who follow a session, as the tools it calls see them: told of progress, asked questions.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use orchestr8_contract::{Code, Fault, Priority};
use orchestr8_kernel::Kernel;
use orchestr8_kernel::action::Action;
use orchestr8_kernel::peer::{About, Answered, Ask, Peer, Severity};
use orchestr8_kernel::ports::ids::For;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// A question waits this long for somebody to answer it.
const ANSWER_MS: u64 = 300_000;

/// Whoever follows the session while a tool call is under way.
pub struct Person {
    pub kernel: Kernel,
    pub session: Arc<Session>,
    pub call: String,
    pub tool: String,
    pub stop: CancellationToken,
}

impl Peer for Person {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let event = json!({"type": "tool_execution_update", "toolCallId": self.call, "toolName": self.tool,
            "partialResult": {"progress": done, "total": total, "message": message}});
        self.session.whisper(&self.kernel, event, Priority::Normal);
    }

    fn log(&self, severity: Severity, logger: Option<&str>, data: Value) {
        let event = json!({"type": "tool_execution_update", "toolCallId": self.call, "toolName": self.tool,
            "partialResult": {"log": {"level": severity, "logger": logger, "data": data}}});
        self.session.whisper(&self.kernel, event, Priority::Normal);
    }

    fn can(&self, about: About) -> bool {
        match about {
            About::Elicit | About::Roots => true,
            About::Sample => false,
        }
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<Answered, Fault>> {
        match ask.about {
            About::Elicit => self.elicit(ask.params).boxed(),
            About::Roots => {
                let cwd = self.session.with_header(|header| header.cwd.clone());
                let roots = json!({"roots": [{"uri": format!("file://{cwd}"), "name": "cwd"}]});
                async move { Ok(Answered::With(roots)) }.boxed()
            }
            About::Sample => {
                let fault = Fault::new(Code::CapabilityMissing, "a session cannot write for its own tools");
                async move { Err(fault) }.boxed()
            }
        }
    }

    fn sees(&self, action: &Action) -> bool {
        self.session.with_header(|header| {
            header.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == action.name.as_str()))
        })
    }
}

impl Person {
    async fn elicit(&self, params: Value) -> Result<Answered, Fault> {
        let form = Form::of(&params);
        let id = self.kernel.ports().ids.fresh(For::Record).to_string();
        let answer = self.session.questions.ask(&id, form.method())?;
        let mut event = json!({"type": "extension_ui_request", "requestId": id, "method": form.method(),
            "title": params["message"], "message": params["message"], "timeout": ANSWER_MS});
        form.describe(&mut event);
        self.session.whisper(&self.kernel, event, Priority::Critical);
        let response = tokio::select! {
            biased;
            response = answer => response.unwrap_or_else(|_| json!({"method": "cancelled"})),
            () = self.stop.cancelled() => json!({"method": "cancelled"}),
            () = self.kernel.ports().clock.sleep(Duration::from_millis(ANSWER_MS)) => json!({"method": "cancelled"}),
        };
        self.session.questions.withdraw(&id);
        Ok(Answered::With(form.result(&response)))
    }
}

/// How a form of MCP is put to a person: one field in the way that suits it, several as an interview.
enum Form {
    Confirm(String),
    Select(String, Vec<Value>),
    Input(String),
    Interview(Value),
}

impl Form {
    fn of(params: &Value) -> Self {
        let schema = &params["requestedSchema"];
        let fields = schema["properties"].as_object();
        match fields.map(|fields| (fields.len(), fields.iter().next())) {
            Some((1, Some((name, field)))) => match (field["type"].as_str(), field["enum"].as_array()) {
                (Some("boolean"), _) => Form::Confirm(name.clone()),
                (_, Some(options)) => Form::Select(name.clone(), options.clone()),
                (Some("string"), None) => Form::Input(name.clone()),
                _ => Form::Interview(schema.clone()),
            },
            _ => Form::Interview(schema.clone()),
        }
    }

    fn method(&self) -> &'static str {
        match self {
            Form::Confirm(_) => "confirm",
            Form::Select(..) => "select",
            Form::Input(_) => "input",
            Form::Interview(_) => "interview",
        }
    }

    fn describe(&self, event: &mut Value) {
        match self {
            Form::Confirm(_) => {}
            Form::Input(name) => event["placeholder"] = json!(name),
            Form::Select(_, options) => event["options"] = json!(options),
            Form::Interview(schema) => event["schema"] = schema.clone(),
        }
    }

    /// The answer in the words of MCP.
    fn result(&self, response: &Value) -> Value {
        if response["method"] == "cancelled" {
            return json!({"action": "cancel"});
        }
        let content = match self {
            Form::Confirm(name) => json!({name: response["confirmed"]}),
            Form::Select(name, _) | Form::Input(name) => json!({name: response["value"]}),
            Form::Interview(_) => response["responses"].clone(),
        };
        json!({"action": "accept", "content": content})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value) -> Form {
        Form::of(&json!({"message": "?", "requestedSchema": {"type": "object", "properties": properties}}))
    }

    #[test]
    fn a_form_is_asked_in_the_way_that_suits_it() {
        for (properties, method) in [
            (json!({"sure": {"type": "boolean"}}), "confirm"),
            (json!({"size": {"type": "string", "enum": ["s", "m"]}}), "select"),
            (json!({"name": {"type": "string"}}), "input"),
            (json!({"age": {"type": "integer"}}), "interview"),
            (json!({"a": {"type": "string"}, "b": {"type": "string"}}), "interview"),
        ] {
            assert_eq!(form(properties).method(), method);
        }
    }

    #[test]
    fn an_answer_is_given_in_the_words_of_the_protocol() {
        let sure = form(json!({"sure": {"type": "boolean"}}));
        let answer = sure.result(&json!({"method": "confirm", "confirmed": true}));
        assert_eq!(answer, json!({"action": "accept", "content": {"sure": true}}));
        assert_eq!(sure.result(&json!({"method": "cancelled"})), json!({"action": "cancel"}));
    }
}
