//! `trails.show` and `trails.accept`: where the trail of a workspace ends, and going on with one that the server does not know.

use std::sync::Arc;

use orchestr8_contract::envelope::{Surroundings, Thrown};
use orchestr8_contract::{Code, Envelope};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Args, Context};
use serde_json::{Value, json};

use crate::blocking;
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::trail::{self, Record};

pub async fn show(hub: Hub, args: Args, context: Context) -> Result<Value, Refusal> {
    let (path, root) = open(&hub, &args, &context).await?;
    let heads = hub.heads(&root);
    let head = blocking::run(move || heads.load().map_err(|error| error.refusal())).await?;
    let head = head.ok_or_else(|| {
        let message = format!("the server has no record of a trail in {path}");
        Refusal::new(Code::NotFound, message)
    })?;
    Ok(
        json!({"workspace": path, "entries": head.seq, "head": head.hash, "pending": head.pending.lines().count()}),
    )
}

pub async fn accept(hub: Hub, args: Args, context: Context) -> Result<Value, Refusal> {
    let (path, root) = open(&hub, &args, &context).await?;
    let heads = hub.heads(&root);
    let options = hub.settings().trail;
    let accepted = root.clone();
    let (before, after) = blocking::run(move || {
        let failed = |error: trail::Error| error.refusal();
        // One whose signature does not hold is replaced as well.
        let before = heads.load().ok().flatten();
        Ok((before, trail::accept(&root, &heads, options).map_err(failed)?))
    })
    .await?;
    let before = before.map(|head| json!({"entries": head.seq, "head": head.hash}));
    let output = json!({"workspace": path, "entries": after.seq, "head": after.hash, "before": before});
    let reason = args.text("reason").unwrap_or_default();
    record(&hub, &context, accepted, &output, reason).await?;
    Ok(output)
}

/// The trail itself says that it was accepted, by whom and why.
async fn record(
    hub: &Hub,
    context: &Context,
    root: Arc<Root>,
    output: &Value,
    reason: &str,
) -> Result<(), Refusal> {
    let now_ms = hub.ports().clock.now_ms();
    let at = Surroundings {
        tool_name: String::from("trails.accept"),
        timestamp: iso(now_ms),
        workspace_root: root.path().to_str().map(str::to_owned),
        ..Surroundings::default()
    };
    let cause = Thrown::Value(json!({
        "reason": reason, "principal": &*context.principal.name, "before": output["before"],
    }));
    let told = Envelope::tool_failure(Code::UnknownToolFailure, "", at).caused_by(cause);
    let args_hash = orchestr8_contract::canonical::sha256_hex(&json!({"id": output["workspace"]}));
    let body = Record::success(&told, args_hash, output, None).body(&hub.ports().redactor);
    let hub = hub.clone();
    let (trail, _) = blocking::run(move || hub.place(&root)).await?;
    trail.append(body, now_ms).await.map(|_| ()).map_err(|error| error.refusal())
}

/// The folder of a request, which must be a workspace for the caller's tenant or, for the operator's, any folder.
async fn open(hub: &Hub, args: &Args, context: &Context) -> Result<(String, Arc<Root>), Refusal> {
    let text = args.text("id").unwrap_or_default().to_owned();
    let (hub, context) = (hub.clone(), context.clone());
    blocking::run(move || {
        let root = match context.principal.administers_machine() {
            true => Arc::new(Root::open(&text)?),
            // Whether the folder is there is not told.
            false => hub
                .enter(&text, context.transport, &context.principal.tenant)
                .map_err(|_| Refusal::new(Code::NotFound, format!("there is no workspace '{text}'")))?,
        };
        Ok((root.path().to_string_lossy().into_owned(), root))
    })
    .await
}
