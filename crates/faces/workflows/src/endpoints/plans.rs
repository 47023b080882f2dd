//! Governed workspaces: plans that wait for a decision, the decision, and where the trail of a workspace ends.

use http::StatusCode;
use orchestr8_kernel::Args;

use super::Arguments;
use crate::actions::{ACCEPT_TRAIL, DECIDE_PLAN, PLAN, PLANS, TRAIL};
use crate::answer;
use crate::call::{Call, Outcome};

/// The longest path of a workspace, and the longest word of a status.
const PATH: usize = 4096;
const WORD: usize = 64;

/// As many plans as a page has at most.
const PAGE: u64 = 200;

/// `GET /plans?workspace=&status=&limit=`
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["workspace", "status", "limit"])?;
    let args = Arguments::default()
        .maybe("workspace", query.bounded("workspace", PATH)?)
        .maybe("status", query.bounded("status", WORD)?)
        .maybe("limit", query.number("limit", 1..=PAGE)?);
    Ok(answer::json(StatusCode::OK, &call.ask(PLANS, args.into_map()).await?))
}

/// `GET /plans/{hash}?workspace=`
pub(crate) async fn show(call: Call) -> Outcome {
    let query = call.query(&["workspace"])?;
    let args = Arguments::of("id", call.param("hash")?).maybe("workspace", query.bounded("workspace", PATH)?);
    Ok(answer::json(StatusCode::OK, &call.ask(PLAN, args.into_map()).await?))
}

/// `POST /plans/{hash}`: the decision.
pub(crate) async fn decide(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&["decision", "workspace", "comment"])?;
    body.members.insert("id".into(), call.param("hash")?.into());
    let given = call.once(DECIDE_PLAN, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// `GET /trails?workspace=`
pub(crate) async fn trail(call: Call) -> Outcome {
    let query = call.query(&["workspace"])?;
    let args = Arguments::default().maybe("id", query.bounded("workspace", PATH)?);
    Ok(answer::json(StatusCode::OK, &call.ask(TRAIL, args.into_map()).await?))
}

/// `POST /trails/accept`
pub(crate) async fn accept_trail(call: Call) -> Outcome {
    call.query(&[])?;
    let mut body = call.read(&["workspace", "reason"])?;
    if let Some(workspace) = body.members.remove("workspace") {
        body.members.insert("id".into(), workspace);
    }
    let given = call.once(ACCEPT_TRAIL, Args::new(body.members)).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}
