//! Example data for `orchestr8 serve --demo`: workflows, documents and a session to look at, and something that runs.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Fault, Kind, Output};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Halt, Kernel, Principal, Submission};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

const WORKFLOWS: [&str; 7] = [
    include_str!("../../../../examples/hello-world.json"),
    include_str!("../../../../examples/data-pipeline.json"),
    include_str!("../../../../examples/order-saga.json"),
    include_str!("../../../../examples/multi-agent.json"),
    include_str!("../../../../examples/approval.json"),
    include_str!("../../../../examples/nightly.json"),
    include_str!("../../templates/demo-parcels.json"),
];
const SCHEDULE: &str = include_str!("../../../../examples/nightly.schedule.json");

/// Their ids are fixed, so that a second start finds them.
const DOCUMENTS: [(&str, &str, &str, &str); 3] = [
    (
        "00000000-0000-4000-8000-00000000d001",
        "root",
        "Handbook",
        include_str!("../../templates/demo-handbook.md"),
    ),
    (
        "00000000-0000-4000-8000-00000000d002",
        "00000000-0000-4000-8000-00000000d001",
        "Returns and refunds",
        include_str!("../../templates/demo-refunds.md"),
    ),
    (
        "00000000-0000-4000-8000-00000000d003",
        "00000000-0000-4000-8000-00000000d001",
        "Shipping",
        include_str!("../../templates/demo-shipping.md"),
    ),
];

/// What runs, one after the other, so that there is something to watch.
const ROUND: [(&str, &str); 10] = [
    ("parcels", "{}"),
    ("hello-world", r#"{"who":"Ada"}"#),
    ("order-saga", r#"{"courier":"echo"}"#),
    ("parcels", r#"{"van":2}"#),
    ("data-pipeline", "{}"),
    ("multi-agent", "{}"),
    ("parcels", r#"{"van":3}"#),
    ("hello-world", r#"{"who":"Grace"}"#),
    ("data-pipeline", r#"{"report":"short"}"#),
    ("order-saga", "{}"),
];
const PAUSE: Duration = Duration::from_secs(2);
/// A demo that somebody forgot fills no disk.
const RUNS_LIMIT: usize = 1_000;

/// Puts the examples in and keeps some of them running until told to stop. What is there already stays as it is.
pub async fn show(kernel: Kernel, stop: CancellationToken) {
    let examples = Examples { kernel, principal: Arc::new(Principal::local().with_document_proof()) };
    if let Err(fault) = examples.put_in().await {
        let why = json!({"cause": fault.message});
        return examples.kernel.log().warn("the example data is not complete", why);
    }
    for (workflow, inputs) in ROUND.iter().cycle().take(RUNS_LIMIT) {
        let run = json!({"workflowId": workflow, "inputs": parsed(inputs)});
        if let Err(fault) = examples.ask("workflows.execute", run).await {
            examples.kernel.log().warn("an example did not start", json!({"cause": fault.message}));
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = examples.kernel.ports().clock.sleep(PAUSE) => {}
        }
    }
}

struct Examples {
    kernel: Kernel,
    principal: Arc<Principal>,
}

impl Examples {
    async fn put_in(&self) -> Result<(), Fault> {
        for text in WORKFLOWS {
            match self.ask("workflows.apply", json!({"workflow": parsed(text)})).await {
                Ok(_) => {}
                // An earlier release stored this version with other content: that one stays.
                Err(fault) if fault.code.kind() == Kind::Conflict => {}
                Err(fault) => return Err(fault),
            }
        }
        self.ask("schedules.apply", parsed(SCHEDULE)).await?;
        for (id, parent, title, body) in DOCUMENTS {
            let document = json!({
                "document_id": id, "parent_id": parent, "metadata": {"title": title},
                "content": {"mime_type": "text/markdown", "body": body},
            });
            match self.ask("knowledge.create_document", document).await {
                Ok(_) => {}
                // It is there from an earlier start, and so is the rest.
                Err(fault) if fault.code.kind() == Kind::Conflict => return Ok(()),
                Err(fault) => return Err(fault),
            }
        }
        self.ask("workflows.execute", json!({"workflowId": "approval"})).await?;
        let session = self.ask("start_session", json!({"name": "Welcome"})).await?;
        for message in ["Hello! What can you do?", "/tool health {}"] {
            self.ask("prompt_session", json!({"sessionId": session["sessionId"], "message": message}))
                .await?;
        }
        Ok(())
    }

    async fn ask(&self, action: &str, args: Value) -> Result<Value, Fault> {
        let args = match args {
            Value::Object(args) => Args::new(args),
            _ => Args::new(Map::new()),
        };
        let correlation = CorrelationId::from_uuid(self.kernel.ports().ids.fresh(For::Correlation));
        let submission = Submission::new(action, args, self.principal.clone(), correlation);
        match self.kernel.submit(submission).await.result {
            Ok(Output::Json { value }) => Ok(value),
            Ok(_) => Ok(Value::Null),
            Err(Halt::Fault(fault)) => Err(fault),
            Err(Halt::Asks(_)) => Err(Fault::internal("an example asks a question")),
        }
    }
}

/// The texts are part of the program; a test reads all of them.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_workflow_that_is_run_by_its_name() {
        // The canonical form has its id among its metadata.
        let id = |workflow: &Value| workflow.get("id").unwrap_or(&workflow["metadata"]["id"]).clone();
        let ids: Vec<Value> = WORKFLOWS.iter().map(|text| id(&parsed(text))).collect();
        for (workflow, inputs) in ROUND {
            assert!(ids.contains(&json!(workflow)), "{workflow}");
            assert!(parsed(inputs).is_object(), "{inputs}");
        }
        assert_eq!(parsed(SCHEDULE)["workflowId"], "nightly");
    }
}
