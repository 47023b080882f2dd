//! `orchestr8 approve`: decides what an execution waits for a person to decide.

use clap::Args;
use http::{Method, StatusCode};
use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::follow::sequence;
use super::going::Going;
use super::reaching::{Intent, Reaching};
use super::words::text;
use super::{Shell, execution_id, inputs};
use crate::failure::Failure;
use crate::reach::{self, Reach, escape};
use crate::terminal::visible_line;

#[derive(Args)]
pub struct Approve {
    /// The token of the approval, or the execution that waits for one.
    which: String,
    /// Say no.
    #[arg(long)]
    reject: bool,
    /// Which step, when an execution waits for several.
    #[arg(long, value_name = "STEP")]
    step: Option<String>,
    /// The person for whom you decide. The decision is recorded under your own name as well.
    #[arg(long, value_name = "NAME")]
    on_behalf_of: Option<String>,
    /// Why.
    #[arg(long)]
    comment: Option<String>,
    /// What the form asks for.
    #[arg(long, value_name = "JSON|@FILE")]
    data: Option<String>,
    #[command(flatten)]
    going: Going,
    #[command(flatten)]
    reaching: Reaching,
}

impl Approve {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let body = self.body()?;
        self.reaching.run(shell, Intent::Execute, async |reach| {
            let approval = self.find(reach).await?;
            let path = format!("/v1/executions/{}", escape(text(&approval, "executionId")));
            let before = sequence(&reach.get(&path).await?);
            let answer =
                reach.post(&format!("/v1/approvals/{}", escape(text(&approval, "token"))), &body).await?;
            let id = match text(&answer, "executionId") {
                "" => text(&approval, "executionId").to_owned(),
                id => id.to_owned(),
            };
            let word = if self.reject { "rejected" } else { "approved" };
            shell.terminal.note(&format!("{word}: {}", visible_line(text(&approval, "message"))));
            self.going.go_on(shell, reach, &id, &answer, before).await
        })
    }

    fn body(&self) -> Result<Value, Failure> {
        let mut body = json!({"decision": if self.reject { "reject" } else { "approve" }});
        for (name, value) in [("onBehalfOf", &self.on_behalf_of), ("comment", &self.comment)] {
            if let Some(value) = value {
                body[name] = Value::from(value.as_str());
            }
        }
        if let Some(data) = &self.data {
            body["data"] = inputs::json("--data", data)?;
        }
        Ok(body)
    }

    /// The approval that is meant: by its token, or the one its execution waits for.
    async fn find(&self, reach: &Reach) -> Result<Value, Failure> {
        let token = format!("/v1/approvals/{}", escape(&self.which));
        let reply = reach.send(Method::GET, &token, &[], None).await?;
        if reply.status != StatusCode::NOT_FOUND {
            return reply.accepted();
        }
        let id = execution_id::resolve(reach, &self.which).await?;
        let path = reach::path("/v1/approvals", &[("executionId", Some(id))]);
        let own = reach.get(&path).await?;
        let own: Vec<&Value> = own["approvals"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|approval| self.step.as_ref().is_none_or(|step| text(approval, "stepId") == step))
            .collect();
        match own.as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(Failure::new(
                Code::NotFound,
                format!("nothing waits for an approval under '{}'", self.which),
            )
            .hinting("orchestr8 inspect EXECUTION shows what an execution waits for")),
            several => {
                let lines =
                    several.iter().map(|one| format!("{}: {}", text(one, "stepId"), text(one, "message")));
                Err(Failure::new(Code::InvalidArgument, "it waits for several approvals")
                    .listing(lines.collect())
                    .hinting("say which with --step"))
            }
        }
    }
}
