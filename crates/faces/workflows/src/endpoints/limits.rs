//! Limits of queues, agents and tenants that are changed while the server runs.

use http::StatusCode;
use orchestr8_kernel::Args;

use super::Arguments;
use crate::actions::{LIMITS, SET_LIMIT, UNSET_LIMIT};
use crate::answer;
use crate::call::{Call, Outcome};

/// The longest name of a tenant, and of what is limited.
const TENANT: usize = 128;
const NAME: usize = 256;

/// `GET /limits?tenant=`
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["tenant"])?;
    let args = Arguments::default().maybe("tenant", query.bounded("tenant", TENANT)?);
    Ok(answer::json(StatusCode::OK, &call.ask(LIMITS, args.into_map()).await?))
}

/// `PUT /limits`
pub(crate) async fn set(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["scope", "name", "value", "tenant"])?;
    let given = call.once(SET_LIMIT, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// `DELETE /limits?scope=&name=&tenant=`
pub(crate) async fn unset(call: Call) -> Outcome {
    let query = call.query(&["scope", "name", "tenant"])?;
    let args = Arguments::default()
        .maybe("scope", query.bounded("scope", NAME)?)
        .maybe("name", query.bounded("name", NAME)?)
        .maybe("tenant", query.bounded("tenant", TENANT)?);
    let given = call.once(UNSET_LIMIT, Args::new(args.into_map())).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}
