//! Compares what a tenant's indexes hold with its documents, mends them, and writes them anew.

use orchestr8_contract::{Fault, Output};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use crate::hub::{Hub, tenant};
use crate::retrieval::Mend;

/// `{repair?}` -> `{ok, documents, wrong, mended, examples, vectors?}`. What is mended is right from then on, but for vectors
/// that have to be learned again: that goes on in the background.
pub async fn verify(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let repair = args.get("repair").and_then(Value::as_bool).unwrap_or(false);
    let mend = if repair { Mend::Wrong } else { Mend::No };
    Ok(Output::json(look(&hub, tenant(&context), mend).await?).into())
}

/// `{}` -> the same: everything is written anew, and counted as it was found.
pub async fn reindex(hub: Hub, _args: Args, context: Context) -> Result<Reply, Halt> {
    Ok(Output::json(look(&hub, tenant(&context), Mend::All).await?).into())
}

async fn look(hub: &Hub, tenant: &str, mend: Mend) -> Result<Value, Fault> {
    let index = hub.check_tenant(tenant, mend).await?;
    let vectors = hub.check_vectors(tenant, mend).await?;
    let astray = vectors.as_ref().map_or(0, |vectors| vectors.wrong + vectors.astray);
    let right = index.wrong == index.mended
        && vectors.as_ref().is_none_or(|vectors| vectors.mended == vectors.wrong + vectors.astray);
    let mut shown = json!({"ok": right, "documents": index.documents, "wrong": index.wrong + astray,
        "mended": index.mended + vectors.as_ref().map_or(0, |vectors| vectors.mended), "examples": index.examples});
    if let Some(vectors) = vectors {
        shown["vectors"] = vectors.shown();
    }
    Ok(shown)
}
