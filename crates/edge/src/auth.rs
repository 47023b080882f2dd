//! Who is calling: on loopback anybody of this machine, elsewhere whoever shows a known bearer token.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Code, Fault, RoleSet};
use orchestr8_kernel::Principal;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::{Error, Refusal, sockets};

/// The auth profile.
#[derive(Clone)]
pub enum Auth {
    /// No credentials. Only for loopback addresses: `check_bind` sees to it.
    Loopback,
    /// Every request shows one of these tokens.
    Bearer { tokens: Vec<Token> },
}

/// A token we know by its hash only, so that reading the configuration does not give it away.
#[derive(Clone)]
pub struct Token {
    pub name: String,
    pub sha256_hex: String,
    pub roles: Vec<String>,
    pub tenant: String,
}

impl Token {
    pub fn role_set(&self) -> RoleSet {
        role_set(&self.roles)
    }
}

/// A token without a role is a viewer.
fn role_set(names: &[String]) -> RoleSet {
    match names.is_empty() {
        true => RoleSet::of(&[AccessRole::Viewer]),
        false => RoleSet::named(names),
    }
}

/// The verified caller of one request, kept in its extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub tenant: String,
    pub roles: Vec<String>,
    /// False on loopback, where nobody has to show anything.
    pub verified: bool,
}

/// The name and tenant of whoever calls over loopback.
pub const LOCAL_NAME: &str = "local";
pub const LOCAL_TENANT: &str = "default";

impl Caller {
    /// Who sent the request these extensions belong to. None means it did not come through the edge.
    pub fn of(extensions: &Extensions) -> Option<&Arc<Caller>> {
        extensions.get()
    }

    /// The caller as the kernel knows it. None: the person at this machine, who shows no credentials.
    pub fn principal(&self) -> Result<Option<Principal>, Fault> {
        if !self.verified {
            return Ok(None);
        }
        let tenant = Tenant::parse(&self.tenant)
            .map_err(|_| Fault::new(Code::Unauthorized, "the tenant of this token is no tenant name"))?;
        Ok(Some(Principal { name: self.name.as_str().into(), tenant, roles: self.role_set() }))
    }

    pub fn role_set(&self) -> RoleSet {
        role_set(&self.roles)
    }

    /// Asked for nothing that needs a name: a health probe.
    pub(crate) fn nobody() -> Self {
        Self { name: String::new(), tenant: String::new(), roles: Vec::new(), verified: false }
    }

    fn local() -> Self {
        Self { name: LOCAL_NAME.into(), tenant: LOCAL_TENANT.into(), roles: Vec::new(), verified: false }
    }
}

/// Refuses an address others can reach unless callers must show credentials.
pub fn check_bind(addr: SocketAddr, auth: &Auth) -> Result<(), Error> {
    match auth {
        Auth::Loopback if addr.ip().to_canonical().is_loopback() => Ok(()),
        Auth::Loopback => Err(Error::OpenBind { addr }),
        Auth::Bearer { tokens } if tokens.is_empty() => Err(Error::NoTokens),
        Auth::Bearer { .. } => Ok(()),
    }
}

/// The profile, made ready for the hot path.
pub(crate) enum Verifier {
    Open(Arc<Caller>),
    Bearer(Vec<([u8; 32], Arc<Caller>)>),
}

impl Verifier {
    pub fn new(auth: &Auth) -> Result<Self, Error> {
        match auth {
            Auth::Loopback => Ok(Self::Open(Arc::new(Caller::local()))),
            Auth::Bearer { tokens } if tokens.is_empty() => Err(Error::NoTokens),
            Auth::Bearer { tokens } => tokens.iter().map(known).collect::<Result<_, _>>().map(Self::Bearer),
        }
    }

    pub fn verify(&self, headers: &HeaderMap) -> Result<Arc<Caller>, Refusal> {
        match self {
            Self::Open(caller) => Ok(caller.clone()),
            Self::Bearer(tokens) => {
                let offered = || sockets::offered_token(headers);
                let presented = presented(headers).or_else(offered).ok_or_else(Refusal::no_token)?;
                find(tokens, &presented).ok_or_else(Refusal::wrong_token)
            }
        }
    }
}

fn known(token: &Token) -> Result<([u8; 32], Arc<Caller>), Error> {
    let hash = parse_hash(&token.sha256_hex).ok_or_else(|| Error::Token { name: token.name.clone() })?;
    let caller = Caller {
        name: token.name.clone(),
        tenant: token.tenant.clone(),
        roles: token.roles.clone(),
        verified: true,
    };
    Ok((hash, Arc::new(caller)))
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(hash)
}

/// The token of the one Authorization header, if its scheme is Bearer (in any case, RFC 9110).
fn presented(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| Cow::Borrowed(rest.trim_ascii()))
}

/// Compares with every known hash in constant time, so that the time taken tells nothing about any token.
fn find(tokens: &[([u8; 32], Arc<Caller>)], presented: &[u8]) -> Option<Arc<Caller>> {
    let hash: [u8; 32] = Sha256::digest(presented).into();
    let mut place = 0u64;
    let mut found = Choice::from(0);
    for (index, (known, _)) in (0u64..).zip(tokens) {
        let same = known.ct_eq(&hash);
        place.conditional_assign(&index, same);
        found |= same;
    }
    let place = usize::try_from(place).ok()?;
    if found.into() { tokens.get(place).map(|(_, caller)| caller.clone()) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn token(name: &str, secret: &str) -> Token {
        let sha256_hex = Sha256::digest(secret).iter().map(|byte| format!("{byte:02X}")).collect();
        Token { name: name.into(), sha256_hex, roles: vec!["admin".into()], tenant: "acme".into() }
    }

    fn ask(verifier: &Verifier, values: &[&str]) -> Result<String, Refusal> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        verifier.verify(&headers).map(|caller| caller.name.clone())
    }

    #[test]
    fn a_known_token_names_its_caller() {
        let auth = Auth::Bearer { tokens: vec![token("ci", "s3cret"), token("ops", "0ther")] };
        let verifier = Verifier::new(&auth).unwrap();
        assert_eq!(ask(&verifier, &["Bearer s3cret"]), Ok("ci".into()));
        assert_eq!(ask(&verifier, &["bearer 0ther"]), Ok("ops".into()));
        for wrong in ["Bearer s3cre", "Bearer s3crett", "Bearer ", "Bearer S3CRET"] {
            assert_eq!(ask(&verifier, &[wrong]), Err(Refusal::wrong_token()), "{wrong}");
        }
        for missing in [&[][..], &["Basic czNjcmV0"], &["Bearer"], &["Bearer s3cret", "Bearer s3cret"]] {
            assert_eq!(ask(&verifier, missing), Err(Refusal::no_token()), "{missing:?}");
        }
    }

    #[test]
    fn loopback_asks_for_nothing_and_claims_nothing() {
        let caller = Verifier::new(&Auth::Loopback).unwrap().verify(&HeaderMap::new()).unwrap();
        assert_eq!(*caller, Caller::local());
        assert!(!caller.verified && caller.roles.is_empty());
    }

    #[test]
    fn a_bad_hash_or_an_empty_profile_is_refused_at_start() {
        for bad in ["", "xyz", &"g".repeat(64), &"a".repeat(63), &"é".repeat(32)] {
            let tokens = vec![Token { sha256_hex: bad.into(), ..token("ci", "x") }];
            assert!(
                matches!(Verifier::new(&Auth::Bearer { tokens }), Err(Error::Token { name }) if name == "ci")
            );
        }
        assert!(matches!(Verifier::new(&Auth::Bearer { tokens: vec![] }), Err(Error::NoTokens)));
    }

    #[test]
    fn only_loopback_may_be_bound_without_credentials() {
        let bearer = Auth::Bearer { tokens: vec![token("ci", "s3cret")] };
        let nobody = Auth::Bearer { tokens: vec![] };
        for addr in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            let addr = addr.parse().unwrap();
            assert!(check_bind(addr, &Auth::Loopback).is_ok(), "{addr}");
        }
        for addr in ["0.0.0.0:80", "192.168.1.2:80", "[::]:80", "[2001:db8::1]:80"] {
            let addr = addr.parse().unwrap();
            let error = check_bind(addr, &Auth::Loopback).unwrap_err();
            assert!(matches!(error, Error::OpenBind { addr: named } if named == addr));
            assert!(error.to_string().contains(&addr.to_string()));
            assert!(error.hint().contains("bearer tokens"));
            assert!(check_bind(addr, &bearer).is_ok());
            assert!(matches!(check_bind(addr, &nobody), Err(Error::NoTokens)));
        }
    }
}
