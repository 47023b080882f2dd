//! A witness: the signed heads of other servers' logs, which it remembers so that they cannot be taken back.

use http::StatusCode;
use orchestr8_kernel::Args;

use super::Arguments;
use crate::actions::{FORGET_HEADS, SUBMIT_HEADS, WITNESS_HEADS};
use crate::answer;
use crate::call::{Call, Outcome};

/// The longest name of a log.
const ORIGIN: usize = 256;

/// `GET /witness/heads`: the newest head of each log; with `origin` those of one log that this caller has sent.
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["origin"])?;
    let args = Arguments::default().maybe("origin", query.bounded("origin", ORIGIN)?);
    Ok(answer::json(StatusCode::OK, &call.ask(WITNESS_HEADS, args.into_map()).await?))
}

/// `POST /witness/heads`: a head that contradicts the stored one is answered 409 with the stored one.
pub(crate) async fn submit(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["key", "heads", "proofs"])?;
    let given = call.once(SUBMIT_HEADS, Args::new(body.members)).await?;
    Ok(answer::json(StatusCode::OK, &given.value))
}

/// `DELETE /witness/heads?origin=&principal=`
pub(crate) async fn forget(call: Call) -> Outcome {
    let query = call.query(&["origin", "principal"])?;
    let args = Arguments::default()
        .maybe("origin", query.bounded("origin", ORIGIN)?)
        .maybe("principal", query.bounded("principal", ORIGIN)?);
    Ok(answer::json(StatusCode::OK, &call.ask(FORGET_HEADS, args.into_map()).await?))
}
