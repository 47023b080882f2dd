//! Approvals: what waits for a person's word, and the word. A browser gets a page with a form, a program JSON.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use orchestr8_kernel::Args;
use serde_json::{Map, Value};

use super::Arguments;
use super::approval_page::{self, POLICY};
use crate::actions::{APPROVALS, APPROVE};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::{ERROR_CODE, Failure};
use crate::headers::{self, Media};
use crate::settings::PAGE_LIMIT;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// The longest id of an execution.
const ID: usize = 256;

/// `GET /approvals`.
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["executionId", "limit"])?;
    let args = Arguments::default()
        .maybe("executionId", query.bounded("executionId", ID)?)
        .maybe("limit", query.number("limit", 1..=PAGE_LIMIT)?);
    Ok(answer::json(StatusCode::OK, &call.ask(APPROVALS, args.into_map()).await?))
}

/// `POST /approvals`: the token is in the body.
pub(crate) async fn decide(call: Call) -> Outcome {
    call.query(&[])?;
    let body = call.read(&["token", "decision", "onBehalfOf", "comment", "data"])?;
    let given = call.once(APPROVE, Args::new(body.members)).await?;
    let mut response = answer::json(StatusCode::OK, &given.value);
    answer::mark_replayed(&mut response, given.replayed);
    Ok(response)
}

/// `GET /approvals/{token}`: what is asked, as JSON or as a page with a form.
pub(crate) async fn show(call: Call) -> Outcome {
    call.query(&[])?;
    let wants_page = headers::wants_page(call.headers());
    match find(&call).await {
        Ok(approval) if wants_page => {
            Ok(page(StatusCode::OK, approval_page::form(&approval, call.parts.uri.path())))
        }
        Ok(approval) => Ok(answer::json(StatusCode::OK, &approval)),
        Err(failure) if wants_page => Ok(sorry(&failure)),
        Err(failure) => Err(failure),
    }
}

/// `POST /approvals/{token}`: the word itself, as JSON or from the form of the page.
pub(crate) async fn answer(call: Call) -> Outcome {
    call.query(&[])?;
    if headers::media(call.headers()) != Media::Form {
        let mut body = call.read(&["decision", "onBehalfOf", "comment", "data"])?;
        body.members.insert("token".into(), call.param("token")?.into());
        let given = call.once(APPROVE, Args::new(body.members)).await?;
        let mut response = answer::json(StatusCode::OK, &given.value);
        answer::mark_replayed(&mut response, given.replayed);
        return Ok(response);
    }
    match answer_form(&call).await {
        Ok(decision) => Ok(page(StatusCode::OK, approval_page::thanks(&decision))),
        Err(failure) => Ok(sorry(&failure)),
    }
}

async fn answer_form(call: &Call) -> Result<String, Failure> {
    let approval = find(call).await?;
    let mut args = approval_page::read_form(call.body(), approval.get("form"))?;
    args.insert("token".into(), call.param("token")?.into());
    let decision = super::text(&args, "decision").to_owned();
    call.once(APPROVE, Args::new(args)).await?;
    Ok(decision)
}

/// The open approval of the token in the path.
async fn find(call: &Call) -> Result<Map<String, Value>, Failure> {
    let token = call.param("token")?;
    let mut found = call.ask(APPROVALS, Arguments::of("token", token).into_map()).await?;
    match found.remove("approvals").and_then(|open| open.as_array()?.first()?.as_object().cloned()) {
        Some(approval) => Ok(approval),
        None => Err(Failure::not_found("nothing waits under this token; it may have been answered")),
    }
}

fn page(status: StatusCode, html: String) -> Response {
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HTML);
    headers.insert(CACHE_CONTROL, answer::NO_STORE);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn sorry(failure: &Failure) -> Response {
    let mut response = page(failure.http_status(), approval_page::sorry(failure.message()));
    response.headers_mut().insert(ERROR_CODE, HeaderValue::from_static(failure.word()));
    response
}
