//! `lint_plan`: everything that is wrong with a plan, before it is saved.

use orchestr8_contract::Code;
use orchestr8_contract::envelope::Role;
use serde_json::json;

use super::read_plan::which;
use crate::blocking;
use crate::desk::{Call, Done, Tool};
use crate::plan::{self, Head, body, hash_of, lint, shown};
use crate::refusal::Refusal;

pub static TOOL: Tool = Tool {
    name: "lint_plan",
    about: "Says what is wrong with a plan: its text, or one that is saved.",
    roles: &[Role::Planner],
    input: || json!({"type": "object", "properties": {"content": {"type": "string"}, "path": {"type": "string"}, "hash": {"type": "string"}}}),
    changes: false,
    work: |call| Box::pin(work(call)),
};

async fn work(call: Call) -> Result<Done, Refusal> {
    let session = call.session()?;
    let content = call.fields.text("content")?.map(str::to_owned);
    let hash = if content.is_some() { None } else { Some(which(&call.fields)?) };
    blocking::run(move || {
        let text = match (content, &hash) {
            (Some(content), _) => content,
            (None, Some(hash)) => read(&session.root, hash)?,
            (None, None) => return Err(crate::fields::missing("content")),
        };
        let mut findings = lint(body(&text));
        let is = hash_of(&text);
        let claims = Head::read(&text).map(|head| head.hash);
        if [claims, hash].iter().flatten().any(|claimed| *claimed != is) {
            let message = String::from("the hash in the header or the name is not that of the text");
            findings.insert(0, plan::Finding { code: "PLAN_HASH_MISMATCH", line: 1, message });
        }
        Ok(Done::with(json!({"passed": findings.is_empty(), "hash": is, "errors": shown(&findings)})))
    })
    .await
}

/// The text of a plan as it lies there, whole or not.
fn read(root: &crate::root::Root, hash: &str) -> Result<String, Refusal> {
    let found = root.read(&plan::path_of(hash)).map_err(|refusal| match refusal.code {
        Code::FileNotFound | Code::PathNotFound => {
            Refusal::new(Code::PlanNotFound, format!("there is no plan {hash}"))
        }
        _ => refusal,
    })?;
    Ok(String::from_utf8_lossy(&found.bytes).into_owned())
}
