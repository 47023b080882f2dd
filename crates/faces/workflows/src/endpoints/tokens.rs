//! API tokens. The secret is made here, answered once, and known to the server by its hash only.

use http::StatusCode;
use orchestr8_contract::Fault;
use orchestr8_contract::api_token::ApiToken;
use serde_json::{Map, Value};

use super::lists::page;
use super::{Arguments, text};
use crate::actions::{CREATE_TOKEN, REVOKE_TOKEN, ROTATE_TOKEN, TOKENS};
use crate::answer;
use crate::call::{Call, Outcome};
use crate::failure::Failure;

/// The longest tenant name.
const TENANT: usize = 128;

/// `GET /tokens`
pub(crate) async fn list(call: Call) -> Outcome {
    let query = call.query(&["tenant", "cursor", "limit"])?;
    let args = page(&query)?.maybe("tenant", query.bounded("tenant", TENANT)?);
    Ok(answer::json(StatusCode::OK, &call.ask(TOKENS, args.into_map()).await?))
}

/// `POST /tokens`: the answer is the only one that holds the token. It is not kept, so a repeat with the same
/// `Idempotency-Key` could not be answered: the key is refused.
pub(crate) async fn create(call: Call) -> Outcome {
    call.query(&[])?;
    refuse_key(&call)?;
    let body = call.read(&["name", "tenant", "roles", "scope", "expiresAt", "reuseName"])?;
    let token = ApiToken::new(&ApiToken::fresh_id(&random()?), &random()?);
    answer_with(&call, CREATE_TOKEN, body.members, &token, StatusCode::CREATED).await
}

/// `POST /tokens/{id}/rotate`
pub(crate) async fn rotate(call: Call) -> Outcome {
    call.query(&[])?;
    refuse_key(&call)?;
    let body = call.read_if_any(&["graceMs"])?;
    let token = ApiToken::new(call.param("id")?, &random()?);
    answer_with(&call, ROTATE_TOKEN, body.members, &token, StatusCode::OK).await
}

/// `POST /tokens/{id}/revoke` and `DELETE /tokens/{id}`
pub(crate) async fn revoke(call: Call) -> Outcome {
    call.query(&[])?;
    call.read_if_any(&[])?;
    let args = Arguments::of("id", call.param("id")?);
    Ok(answer::json(StatusCode::OK, &call.ask(REVOKE_TOKEN, args.into_map()).await?))
}

/// Gives the hash to the action, and the token to the client.
async fn answer_with(
    call: &Call,
    action: &'static str,
    mut args: Map<String, Value>,
    token: &ApiToken,
    status: StatusCode,
) -> Outcome {
    let id = orchestr8_contract::api_token::id_of(token.as_str()).unwrap_or_default();
    if id.is_empty() {
        return Err(Failure::not_found("there is no token of this id"));
    }
    args.insert("id".into(), id.into());
    args.insert("sha256".into(), token.sha256_hex().into());
    let mut shown = call.ask(action, args).await?;
    shown.insert("token".into(), token.as_str().into());
    let mut response = answer::json(status, &shown);
    answer::locate(&mut response, &format!("{}/tokens/{}", call.prefix(), text(&shown, "id")));
    Ok(response)
}

pub(super) fn refuse_key(call: &Call) -> Result<(), Failure> {
    match call.headers().contains_key("idempotency-key") {
        true => Err(Failure::invalid(
            "Idempotency-Key",
            "the answer holds a secret and is not kept; leave the key out",
        )),
        false => Ok(()),
    }
}

pub(super) fn random<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0; BYTES];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(Fault::internal("the system has no randomness to give").into()),
    }
}
