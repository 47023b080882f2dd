//! The audit trail: who did what, and the proof that nobody changed the record of it.

use http::StatusCode;

use super::Arguments;
use super::lists::page;
use crate::actions::{AUDIT, VERIFY_AUDIT};
use crate::answer;
use crate::call::{Call, Outcome};

/// The longest name a filter takes.
const TEXT: usize = 256;

/// `GET /audit`, the newest first.
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["action", "principal", "end", "object", "cursor", "limit"])?;
    let args = page(&query)?
        .maybe("action", query.bounded("action", TEXT)?)
        .maybe("principal", query.bounded("principal", TEXT)?)
        .maybe("end", query.bounded("end", TEXT)?)
        .maybe("object", query.bounded("object", TEXT)?);
    Ok(answer::json(StatusCode::OK, &call.ask(AUDIT, args.into_map()).await?))
}

/// `GET /audit/verify`: reads all of it.
pub(crate) async fn verify(call: Call) -> Outcome {
    call.query(&[])?;
    Ok(answer::json(StatusCode::OK, &call.ask(VERIFY_AUDIT, Arguments::default().into_map()).await?))
}
