//! Artifacts (KNO-5): uploaded here and named in an envelope, or a document's content behind a signed link.

use std::sync::Arc;

use axum::response::Response;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, StatusCode};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Fault, RoleSet};

use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::clock;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Principal, Transport};
use serde_json::{Map, Value, json};

use crate::actions;
use crate::answer;
use crate::artifact::{self, Body, Link, To, Wrong};
use crate::call::{Call, Outcome};
use crate::failure::Failure;
use crate::limits::ARTIFACT_KEPT_MS;
use crate::tables;

/// The row of the access table for uploads.
const CREATE: &str = "artifacts.create";

/// `POST /artifacts`: keeps the body for a day and gives a link to it.
pub(crate) async fn upload(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    call.authorize(CREATE, &principal).await?;
    let media = call.parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mime_type = artifact::media(media.unwrap_or_default());
    artifact::check_type(&mime_type)?;
    let (face, limit_bytes) = (&call.face, call.face.settings.artifact_bytes);
    if call.body.len() > limit_bytes {
        return Err(artifact::too_large(limit_bytes));
    }
    let (name, now_ms) = (artifact::hash(&call.body), face.now_ms());
    let (tenant, kept_ms) = (principal.tenant.as_str(), now_ms.saturating_add(ARTIFACT_KEPT_MS));
    let mut batch = Batch::new();
    batch.then(tables::artifact_put(tenant, &name, &mime_type, call.body.to_vec(), kept_ms));
    let change = StateChange {
        principal: &principal.name,
        transport: Transport::Http,
        source: call.source(),
        detail: json!({"bytes": call.body.len()}),
        ..StateChange::by_server(CREATE, tenant, Some(&name))
    };
    batch.link(change.link(now_ms));
    face.kernel.ports().store.commit(batch).await.map_err(store_fault)?;
    let link = Link { to: To::Upload, tenant: tenant.to_owned(), name: name.clone() };
    signed(&call, &link, name, &mime_type, StatusCode::CREATED).await
}

/// `POST /documents/{id}/link`: a link to the content of a document, for whoever may read it.
pub(crate) async fn link(call: Call) -> Outcome {
    let principal = call.person(&call.query(&[])?).await?;
    let name = call.param("id")?.to_owned();
    let body = content(&call, &principal, &name).await?;
    let link = Link { to: To::Document, tenant: principal.tenant.as_str().to_owned(), name };
    signed(&call, &link, artifact::hash(&body.bytes), &body.mime_type, StatusCode::OK).await
}

/// What a link leads to. The link is all the proof there is, and all that is asked for.
pub(crate) async fn download(call: Call) -> Outcome {
    let uri = call.parts.uri.path_and_query().map_or("", |target| target.as_str());
    let link = match call.face.links.open(uri, call.face.now_ms()).await? {
        Some(Ok(link)) => link,
        Some(Err(Wrong::Late)) => return Err(Failure::expired("the link has expired")),
        Some(Err(Wrong::Signature)) | None => return Err(Failure::forbidden("the link is not one of ours")),
    };
    let body = match link.to {
        To::Upload => artifact::stored(&call.face, &link).await?,
        To::Document => {
            let tenant = Tenant::parse(&link.tenant).map_err(|error| Fault::invalid(error.to_string()))?;
            let roles = RoleSet::of(&[AccessRole::Viewer]);
            let reader = Arc::new(Principal::new("signed-link", tenant, roles).with_document_proof());
            content(&call, &reader, &link.name).await?
        }
    };
    Ok(serve(body))
}

fn serve(body: Body) -> Response {
    // The type is one of ours, so it is a header value; whatever is inside, a browser must not run it.
    let media = HeaderValue::from_str(&body.mime_type).unwrap_or(HeaderValue::from_static("text/plain"));
    let mut response = answer::bytes(StatusCode::OK, media, body.bytes);
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The whole content of a document.
async fn content(call: &Call, principal: &Arc<Principal>, id: &str) -> Result<Body, Failure> {
    let args = Map::from_iter([("document_id".to_owned(), id.into()), ("full".to_owned(), true.into())]);
    let given = call.ask(principal, actions::GET, args).await?;
    let content = given.value.get("content").unwrap_or(&Value::Null);
    let text = content.as_str().or_else(|| content.get("body").and_then(Value::as_str)).unwrap_or_default();
    let mime_type = content.get("mime_type").and_then(Value::as_str).unwrap_or("text/plain");
    Ok(Body { mime_type: mime_type.to_owned(), bytes: text.as_bytes().to_vec() })
}

async fn signed(call: &Call, link: &Link, hash: String, mime_type: &str, status: StatusCode) -> Outcome {
    let (target, expires_ms) = call.face.links.sign(link, call.face.now_ms()).await?;
    let data = json!({
        "artifact_uri": format!("{}{target}", base(call)), "artifact_hash": hash, "mime_type": mime_type,
        "expires_at": clock::iso(expires_ms),
    });
    Ok(answer::success(status, &data))
}

/// Where we are reached: as configured, or as the client called us, which the edge has checked.
fn base(call: &Call) -> String {
    if let Some(url) = &call.face.settings.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = call.parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    host.map_or_else(String::new, |host| format!("http://{host}"))
}
