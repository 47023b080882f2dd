//! Who sends a request, by the profile that is configured, and whom its envelope may therefore speak for.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Fault, RoleSet};
use orchestr8_edge::Caller;
use orchestr8_kernel::Principal;
use orchestr8_kernel::grant::TokenGrant;
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::{Batch, Error};
use serde_json::Value;

use super::jws::{Opened, Sealed};
use super::keys::KeyTable;
use super::{Refused, jwt, keys, roles};
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::headers::IDEMPOTENCY_KEY;
use crate::limits::TOKEN_BYTES;
use crate::settings::Security;
use crate::tables;

const SIGNATURE: HeaderName = HeaderName::from_static("x-jws-signature");
const JOSE: &str = "application/jose";

/// What a token proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proven {
    pub sub: String,
    pub tenant: String,
    pub roles: RoleSet,
    /// The API token, where one was shown.
    pub grant: Option<Arc<TokenGrant>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Somebody of this machine, who is believed to be whom they say.
    Stated,
    Proven(Proven),
}

/// What the signature of a request must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The envelope, which says what is to be done at once. Its signature may have an address (KNO-3 asks for none).
    Envelope,
    /// The address too: the body does not say what is to be done, or says it for more than one address. An envelope that was signed
    /// to be run at once must not be put on the bus by another.
    Address,
}

/// Finds out who sends a request. What comes back beside it is what was signed: the envelope.
pub(crate) async fn authenticate(
    security: &Security,
    table: KeyTable<'_>,
    parts: &Parts,
    body: Bytes,
    (kind, now_ms): (Kind, i64),
) -> Result<(Who, Bytes), Failure> {
    let caller = Caller::of(&parts.extensions);
    match security {
        Security::External => {
            let (proven, payload) = external(table, parts, &body, kind, now_ms).await?;
            Ok((Who::Proven(proven), payload.unwrap_or(body)))
        }
        Security::Local | Security::Basic(_) if caller.is_some_and(|caller| caller.verified) => {
            let proven = caller.map(|caller| Proven {
                sub: caller.name.clone(),
                tenant: caller.tenant.clone(),
                roles: caller.role_set(),
                grant: caller.grant.clone(),
            });
            Ok((proven.map_or(Who::Stated, Who::Proven), body))
        }
        Security::Local => match caller.is_some_and(|caller| caller.name.is_empty()) {
            true => Err(refuse(Refused::NoToken)),
            false => Ok((Who::Stated, body)),
        },
        Security::Basic(trust) => Ok((Who::Proven(basic(trust, &parts.headers, now_ms)?), body)),
    }
}

impl Who {
    /// Whom an envelope speaks for. What it says of itself must be what its token proves (KNO-3).
    pub fn principal(self, envelope: &Envelope) -> Result<Arc<Principal>, Failure> {
        let (granted, grant) = match self {
            Who::Stated if envelope.roles.is_empty() => (RoleSet::of(&[AccessRole::Owner]), None),
            Who::Stated => (roles::all(&envelope.roles), None),
            Who::Proven(proven) => {
                if proven.tenant != envelope.tenant.as_str() || proven.sub != envelope.sub {
                    return Err(Failure::forbidden(
                        "the envelope's tenant and principal are not the token's",
                    ));
                }
                let (granted, asked) = (proven.roles, roles::all(&envelope.roles));
                if !granted.contains(asked) {
                    return Err(Failure::forbidden("the envelope names roles the token does not grant"));
                }
                // Whoever names fewer roles than they have wants to be held to them.
                (if envelope.roles.is_empty() { granted } else { asked }, proven.grant)
            }
        };
        let principal =
            Principal::new(envelope.sub.as_str(), envelope.tenant.clone(), granted).granted(grant);
        Ok(Arc::new(principal.with_document_proof()))
    }

    /// Who asks without an envelope. Somebody of this machine says which tenant they mean, or means the only one.
    pub fn person(self, asked: Option<&str>) -> Result<Arc<Principal>, Failure> {
        let tenant = |text: &str| {
            Tenant::parse(text).map_err(|error| Failure::invalid("tenant_id", error.to_string()))
        };
        match self {
            Who::Stated => {
                let tenant = asked.map(tenant).transpose()?.unwrap_or_else(Tenant::local);
                let roles = RoleSet::of(&[AccessRole::Owner]);
                let person = Principal::new(orchestr8_edge::LOCAL_NAME, tenant, roles);
                Ok(Arc::new(person.with_document_proof()))
            }
            Who::Proven(proven) => {
                if asked.is_some_and(|asked| asked != proven.tenant) {
                    return Err(Failure::forbidden("the tenant asked for is not the token's"));
                }
                let tenant = tenant(&proven.tenant)?;
                let person = Principal::new(proven.sub, tenant, proven.roles).granted(proven.grant);
                Ok(Arc::new(person.with_document_proof()))
            }
        }
    }
}

fn basic(trust: &jwt::Trust, headers: &HeaderMap, now_ms: i64) -> Result<Proven, Failure> {
    let value = one(headers, &AUTHORIZATION).ok_or_else(|| refuse(Refused::NoToken))?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refuse(Refused::NoToken));
    }
    if token.len() > TOKEN_BYTES {
        return Err(refuse(Refused::TooLong));
    }
    trust.check(token.trim_ascii(), now_ms).map_err(refuse)
}

/// A signed request. The payload comes back where it was inside the signature.
async fn external(
    table: KeyTable<'_>,
    parts: &Parts,
    body: &Bytes,
    kind: Kind,
    now_ms: i64,
) -> Result<(Proven, Option<Bytes>), Failure> {
    let compact = one(&parts.headers, &CONTENT_TYPE).is_some_and(|media| media.eq_ignore_ascii_case(JOSE));
    let sealed = match one(&parts.headers, &SIGNATURE) {
        Some(text) if text.len() > TOKEN_BYTES => Err(Refused::TooLong),
        Some(text) if !compact => Sealed::detached(text, body),
        None if compact => str::from_utf8(body).map_err(|_| Refused::Form).and_then(Sealed::compact),
        Some(_) | None => Err(Refused::NoSignature),
    };
    let sealed = sealed.map_err(refuse)?;
    let key = keys::find(table, &sealed.kid).await?.ok_or_else(|| refuse(Refused::Kid))?;
    let opened = sealed.open(&key, now_ms).map_err(refuse)?;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let address = opened.address.as_ref().map(|(method, target)| (method.as_str(), target.as_str()));
    match (address, kind) {
        (None, Kind::Envelope) => {}
        (Some((htm, htu)), _) if htm == parts.method.as_str() && htu == target => {}
        (Some(_), _) | (None, Kind::Address) => return Err(refuse(Refused::Address)),
    }
    if !covers_key(&parts.headers, &opened) {
        return Err(refuse(Refused::Key));
    }
    let mut batch = Batch::new();
    batch.then_one(tables::nonce_use(&key.kid, &opened.nonce, opened.forget_ms));
    table.store.commit(batch).await.map_err(|error| match error {
        Error::Conflict { .. } => refuse(Refused::Replayed),
        other => store_fault(other).into(),
    })?;
    let keys::Owner { tenant, principal, roles } = key.owner;
    let payload = compact.then(|| Bytes::from(opened.payload));
    Ok((Proven { sub: principal, tenant, roles: roles::all(&roles), grant: None }, payload))
}

/// Whether what a request says in `Idempotency-Key` is signed: in the header of the signature, or in the envelope.
fn covers_key(headers: &HeaderMap, opened: &Opened) -> bool {
    let mut given = headers.get_all(&IDEMPOTENCY_KEY).iter().peekable();
    if given.peek().is_none() {
        return true;
    }
    let envelope: Option<Value> = serde_json::from_slice(&opened.payload).ok();
    let in_envelope = envelope.as_ref().and_then(|envelope| envelope.get("idempotency_key")?.as_str());
    let signed = opened.key.as_deref().or(in_envelope);
    given.all(|value| signed.is_some_and(|signed| signed.as_bytes() == value.as_bytes().trim_ascii()))
}

fn refuse(refused: Refused) -> Failure {
    Failure::unauthenticated(refused.to_string())
        .with("hint", "see the profile this server asks for in docs/guide/knowledge-api.md")
        .header(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"orchestr8\""))
}

/// The one value of a header; two say nothing.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (only, None) = (values.next()?, values.next()) else { return None };
    only.to_str().ok().map(str::trim_ascii)
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        Fault::new(orchestr8_contract::Code::Unauthenticated, refused.to_string())
    }
}
