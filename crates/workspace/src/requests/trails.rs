//! `trails.show` and `trails.accept`: where the trail of a workspace ends, and going on with one that the server does not know.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_kernel::{Args, Context};
use serde_json::{Value, json};

use crate::blocking;
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::root::Root;
use crate::trail::{self, Sealed};

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
    let (before, after) = blocking::run(move || {
        let failed = |error: trail::Error| error.refusal();
        // One whose signature does not hold is replaced as well.
        let before = heads.load().ok().flatten();
        Ok((before, trail::accept(&root, &heads, options).map_err(failed)?))
    })
    .await?;
    let before = before.map(|head| Sealed { seq: head.seq, hash: head.hash });
    Ok(json!({
        "workspace": path, "entries": after.seq, "head": after.hash,
        "before": before.map(|before| json!({"entries": before.seq, "head": before.hash})),
    }))
}

/// The folder of a request, which must be a workspace for the caller's tenant or, for the operator's, any folder.
async fn open(hub: &Hub, args: &Args, context: &Context) -> Result<(String, Arc<Root>), Refusal> {
    let text = args.text("id").unwrap_or_default().to_owned();
    let (hub, context) = (hub.clone(), context.clone());
    blocking::run(move || {
        let root = match context.principal.administers_machine() {
            true => Arc::new(Root::open(&text)?),
            false => hub.enter(&text, context.transport, &context.principal.tenant)?,
        };
        Ok((root.path().to_string_lossy().into_owned(), root))
    })
    .await
}
