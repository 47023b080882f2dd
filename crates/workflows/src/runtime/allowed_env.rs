//! The environment variables that definitions may name. The server lists them; a definition only chooses among them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use orchestr8_contract::Code;

use crate::definition::model::{Kind, Which, Workflow};
use crate::definition::{Problem, Problems};

/// The variables of the setting `workflows.env`, with their values at start-up. Empty by default: no definition reads anything.
#[derive(Clone, Default)]
pub struct AllowedEnv(Arc<BTreeMap<String, Option<String>>>);

impl AllowedEnv {
    /// Each name with its value; a variable that is allowed and not set has none.
    pub fn new(variables: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self(Arc::new(variables.into_iter().collect()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_deref()
    }

    /// Rejects a definition that lists a variable which the server does not allow, in itself or in a workflow inside it.
    pub fn check(&self, workflow: &Workflow) -> Result<(), Problems> {
        let mut problems = Vec::new();
        self.collect(workflow, "$", &mut problems);
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    fn collect(&self, workflow: &Workflow, at: &str, problems: &mut Vec<Problem>) {
        for name in workflow.env.iter().filter(|name| !self.0.contains_key(&***name)) {
            problems.push(Problem::new(
                declared_at(workflow, at, name),
                Code::EnvNotAllowed,
                format!("this server does not allow definitions to read the environment variable {name}"),
                format!("An administrator can add {name:?} to the setting workflows.env; use a named secret for credentials."),
            ));
        }
        for (place, step) in workflow.steps.iter().enumerate() {
            if let Kind::Workflow(child) = &step.kind
                && let Which::Inline(inner) = &child.which
            {
                self.collect(inner, &format!("{at}.{}.workflow", workflow.path(place)), problems);
            }
        }
    }
}

impl fmt::Debug for AllowedEnv {
    /// The names; a value may be confidential.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

/// Where the definition names the variable, in either form.
fn declared_at(workflow: &Workflow, at: &str, name: &str) -> String {
    let lists = [
        ("", workflow.source.get("allowedEnvVars")),
        (".context", workflow.source.pointer("/context/allowedEnvVars")),
    ];
    for (outer, list) in lists {
        let found = list.and_then(|list| list.as_array()?.iter().position(|item| item == name));
        if let Some(index) = found {
            return format!("{at}{outer}.allowedEnvVars[{index}]");
        }
    }
    format!("{at}.allowedEnvVars")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::read_value;
    use serde_json::json;

    #[test]
    fn variables_that_the_server_does_not_list_are_refused_also_inside() {
        let echo = json!({"id": "a", "agentId": "@orchestr8/echo", "input": {"k": "${env.KEY}"}});
        let inner =
            json!({"id": "in", "version": "1.0.0", "name": "in", "allowedEnvVars": ["KEY"], "steps": [echo]});
        let outer = json!({"id": "out", "version": "1.0.0", "name": "out", "allowedEnvVars": ["REGION", "AWS_SECRET_ACCESS_KEY"],
            "steps": [{"id": "c", "type": "workflow", "workflow": inner}]});
        let workflow = read_value(&outer).unwrap();
        let allowed =
            AllowedEnv::new([("REGION".to_owned(), Some("eu".to_owned())), ("EMPTY".to_owned(), None)]);
        let Problems(problems) = allowed.check(&workflow).unwrap_err();
        let told: Vec<_> = problems.iter().map(|problem| (problem.path.as_str(), problem.code)).collect();
        assert_eq!(
            told,
            [
                ("$.allowedEnvVars[1]", Code::EnvNotAllowed),
                ("$.steps[0].workflow.allowedEnvVars[0]", Code::EnvNotAllowed)
            ]
        );
        assert!(problems[0].hint.contains("workflows.env"), "{:?}", problems[0]);
        assert_eq!(
            (allowed.get("REGION"), allowed.get("EMPTY"), allowed.get("KEY")),
            (Some("eu"), None, None)
        );
        assert_eq!(format!("{allowed:?}"), r#"{"EMPTY", "REGION"}"#);
        let all = ["REGION", "AWS_SECRET_ACCESS_KEY", "KEY"].map(|name| (name.to_owned(), None));
        assert_eq!(AllowedEnv::new(all).check(&workflow), Ok(()));
    }
}
