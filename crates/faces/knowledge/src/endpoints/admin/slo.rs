//! `GET /admin/slo`: whether the promises are kept.

use http::StatusCode;

use super::whose;
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::slo::{self, Objectives};

/// The figures are of all tenants together, so one of them may not see them.
pub(crate) async fn show(call: Call) -> Outcome {
    call.query(&[])?;
    if whose(&call).await?.is_some() {
        return Err(Failure::forbidden("this needs a token with the role admin"));
    }
    let (kernel, settings) = (&call.face.kernel, &call.face.settings);
    slo::write(kernel, &settings.metrics).await?;
    let report = slo::report(kernel, Objectives::of(&settings.security)).await?;
    Ok(answer::success(StatusCode::OK, &report))
}
