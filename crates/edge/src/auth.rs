//! Who is calling: the bearer of a token of the settings or of the store, or on loopback the person at this machine.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{AccessRole, Code, Fault, RoleSet, api_token};
use orchestr8_kernel::grant::{TokenGrant, TokenHash, TokenTable};
use orchestr8_kernel::{Principal, Source};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::failed_logins::label;
use crate::{Error, sockets};

/// The tokens that are known. With tokens in the settings, and on every address that others can reach, each request must show
/// one; on loopback without any in the settings a request without a token comes from the person at this machine.
#[derive(Clone, Default)]
pub struct Auth {
    pub tokens: Vec<Token>,
    /// Those of the store.
    pub stored: Option<TokenTable>,
}

/// A token we know by its hash only, so that reading the configuration does not give it away.
#[derive(Clone)]
pub struct Token {
    pub name: String,
    pub sha256_hex: String,
    pub roles: Vec<String>,
    pub tenant: String,
    /// It takes over the name of an API token, with everything that belongs to that name.
    pub reuse_name: bool,
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
    /// The API token of the store that was shown.
    pub grant: Option<Arc<TokenGrant>>,
}

/// The address of the peer of a request, kept in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub IpAddr);

/// The source of a request that a face takes in.
pub fn source(face: &'static str, extensions: &Extensions) -> Source {
    Source::request(face, extensions.get::<PeerAddress>().map(|peer| peer.0))
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
        let principal = Principal::new(self.name.as_str(), tenant, self.role_set());
        Ok(Some(principal.granted(self.grant.clone())))
    }

    pub fn role_set(&self) -> RoleSet {
        role_set(&self.roles)
    }

    /// Asked for nothing that needs a name: a health probe.
    pub(crate) fn nobody() -> Self {
        Self { name: String::new(), tenant: String::new(), roles: Vec::new(), verified: false, grant: None }
    }

    fn local() -> Self {
        Self {
            name: LOCAL_NAME.into(),
            tenant: LOCAL_TENANT.into(),
            roles: Vec::new(),
            verified: false,
            grant: None,
        }
    }
}

/// Refuses an address others can reach unless callers must show credentials, and some exist.
pub fn check_bind(addr: SocketAddr, auth: &Auth) -> Result<(), Error> {
    let has_stored = auth.stored.as_ref().is_some_and(|stored| !stored.is_empty());
    match is_loopback(addr) || !auth.tokens.is_empty() || has_stored {
        true => Ok(()),
        false => Err(Error::OpenBind { addr }),
    }
}

fn is_loopback(addr: SocketAddr) -> bool {
    addr.ip().to_canonical().is_loopback()
}

/// The profile, made ready for the hot path.
pub(crate) struct Verifier {
    tokens: Vec<(TokenHash, Arc<Caller>)>,
    stored: Option<TokenTable>,
    /// Who calls without a token, where that is allowed.
    open: Option<Arc<Caller>>,
}

/// Why a request has no caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejected {
    NoToken,
    /// With what the token is called in logs.
    WrongToken(String),
}

impl Verifier {
    pub fn new(auth: &Auth, addr: SocketAddr) -> Result<Self, Error> {
        let is_open = auth.tokens.is_empty() && is_loopback(addr);
        Ok(Self {
            tokens: auth.tokens.iter().map(known).collect::<Result<_, _>>()?,
            stored: auth.stored.clone(),
            open: is_open.then(|| Arc::new(Caller::local())),
        })
    }

    /// The caller of a request. Credentials that are not known are refused, also on loopback: a damaged token must not have more
    /// rights than the whole one. `foreign`: the face has credentials of its own and checks them itself.
    pub fn verify(&self, headers: &HeaderMap, foreign: bool) -> Result<Arc<Caller>, Rejected> {
        let Some(presented) = presented(headers).or_else(|| sockets::offered_token(headers)) else {
            return match &self.open {
                Some(_) if !foreign && shows_other_credentials(headers) => {
                    Err(Rejected::WrongToken(String::from("unknown")))
                }
                Some(open) => Ok(open.clone()),
                None => Err(Rejected::NoToken),
            };
        };
        let hash: TokenHash = Sha256::digest(&presented).into();
        if let Some(caller) = find(&self.tokens, &hash).or_else(|| self.find_stored(&hash)) {
            return Ok(caller);
        }
        let is_ours = std::str::from_utf8(&presented).is_ok_and(|text| api_token::id_of(text).is_some());
        match &self.open {
            Some(open) if foreign && !is_ours => Ok(open.clone()),
            Some(_) | None => Err(Rejected::WrongToken(label(&presented))),
        }
    }

    fn find_stored(&self, hash: &TokenHash) -> Option<Arc<Caller>> {
        let grant = self.stored.as_ref()?.find(hash)?;
        Some(Arc::new(Caller {
            name: grant.name.to_string(),
            tenant: grant.tenant.as_str().to_owned(),
            roles: grant.roles.clone(),
            verified: true,
            grant: Some(grant),
        }))
    }
}

fn known(token: &Token) -> Result<(TokenHash, Arc<Caller>), Error> {
    let hash = parse_hash(&token.sha256_hex).ok_or_else(|| Error::Token { name: token.name.clone() })?;
    let caller = Caller {
        name: token.name.clone(),
        tenant: token.tenant.clone(),
        roles: token.roles.clone(),
        verified: true,
        grant: None,
    };
    Ok((hash, Arc::new(caller)))
}

fn parse_hash(text: &str) -> Option<TokenHash> {
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

/// Whether the bearer token has the form of a JWT, which ours have not.
pub(crate) fn shows_jwt(headers: &HeaderMap) -> bool {
    let is_part = |part: &[u8]| {
        !part.is_empty() && part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    presented(headers).is_some_and(|token| {
        let parts: Vec<&[u8]> = token.split(|byte| *byte == b'.').collect();
        parts.len() == 3 && parts.into_iter().all(is_part)
    })
}

/// Whether a request without one bearer token shows something else in its place.
fn shows_other_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || sockets::offers_token(headers)
}

/// Compares with every known hash in constant time, so that the time taken tells nothing about any token.
fn find(tokens: &[(TokenHash, Arc<Caller>)], hash: &TokenHash) -> Option<Arc<Caller>> {
    let mut place = 0u64;
    let mut found = Choice::from(0);
    for (index, (known, _)) in (0u64..).zip(tokens) {
        let same = known.ct_eq(hash);
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
    use orchestr8_contract::api_token::ApiToken;
    use orchestr8_kernel::ports::clock::Simulated;

    const HERE: &str = "127.0.0.1:80";
    const ABROAD: &str = "192.0.2.1:80";

    fn token(name: &str, secret: &str) -> Token {
        let sha256_hex = Sha256::digest(secret).iter().map(|byte| format!("{byte:02X}")).collect();
        Token {
            name: name.into(),
            sha256_hex,
            roles: vec!["admin".into()],
            tenant: "acme".into(),
            reuse_name: false,
        }
    }

    fn verifier(auth: &Auth, addr: &str) -> Verifier {
        Verifier::new(auth, addr.parse().unwrap()).unwrap()
    }

    fn ask(verifier: &Verifier, values: &[&str]) -> Result<String, Rejected> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        verifier.verify(&headers, false).map(|caller| caller.name.clone())
    }

    fn stored() -> (TokenTable, String) {
        let table = TokenTable::new(Arc::new(Simulated::new()));
        let token = ApiToken::new("abcdefghijkl", &[1; 32]).as_str().to_owned();
        let hash = Sha256::digest(&token).into();
        table.insert(hash, TokenGrant::new("abcdefghijkl", "bot", Tenant::parse("acme").unwrap()));
        (table, token)
    }

    #[test]
    fn a_known_token_names_its_caller() {
        let auth = Auth { tokens: vec![token("ci", "s3cret"), token("ops", "0ther")], stored: None };
        let verifier = verifier(&auth, HERE);
        assert_eq!(ask(&verifier, &["Bearer s3cret"]), Ok("ci".into()));
        assert_eq!(ask(&verifier, &["bearer 0ther"]), Ok("ops".into()));
        for wrong in ["Bearer s3cre", "Bearer s3crett", "Bearer ", "Bearer S3CRET"] {
            assert!(matches!(ask(&verifier, &[wrong]), Err(Rejected::WrongToken(_))), "{wrong}");
        }
        for missing in [&[][..], &["Basic czNjcmV0"], &["Bearer"], &["Bearer s3cret", "Bearer s3cret"]] {
            assert_eq!(ask(&verifier, missing), Err(Rejected::NoToken), "{missing:?}");
        }
    }

    #[test]
    fn a_token_of_the_store_is_held_to_its_grant_and_ends_when_it_is_revoked() {
        let (table, token) = stored();
        let shown = format!("Bearer {token}");
        for addr in [HERE, ABROAD] {
            let auth = Auth { tokens: Vec::new(), stored: Some(table.clone()) };
            assert_eq!(ask(&verifier(&auth, addr), &[&shown]), Ok("bot".into()));
        }
        let auth = Auth { tokens: Vec::new(), stored: Some(table.clone()) };
        let (here, abroad) = (verifier(&auth, HERE), verifier(&auth, ABROAD));
        table.revoke("abcdefghijkl");
        let wrong = Err(Rejected::WrongToken("o8_abcdefghijkl".into()));
        assert_eq!(ask(&here, &[&shown]), wrong, "a revoked token is not the person at this machine");
        assert_eq!(ask(&abroad, &[&shown]), wrong);
        assert_eq!(ask(&here, &[]), Ok("local".into()));
        let mut jwt = HeaderMap::new();
        jwt.insert(AUTHORIZATION, HeaderValue::from_static("Bearer a.jwt.of-another-profile"));
        assert_eq!(here.verify(&jwt, true).map(|caller| caller.name.clone()), Ok("local".into()));
        assert!(shows_jwt(&jwt));
        jwt.insert(AUTHORIZATION, HeaderValue::from_str(&shown).unwrap());
        assert!(!shows_jwt(&jwt));
        assert_eq!(ask(&abroad, &[]), Err(Rejected::NoToken));
    }

    #[test]
    fn credentials_that_are_not_known_are_refused_on_loopback_too() {
        let (table, token) = stored();
        let damaged = format!("Bearer {}", &token[..token.len() - 3]);
        for auth in [Auth::default(), Auth { tokens: Vec::new(), stored: Some(table) }] {
            let here = verifier(&auth, HERE);
            for wrong in
                [&damaged, "Bearer garbage", "Bearer ", "Bearer", "Basic eDp5", "Token x", "Bearer\tx", ""]
            {
                assert!(matches!(ask(&here, &[wrong]), Err(Rejected::WrongToken(_))), "{wrong}");
            }
            assert!(matches!(ask(&here, &["Bearer a", "Bearer a"]), Err(Rejected::WrongToken(_))));
            assert_eq!(ask(&here, &[]), Ok("local".into()));
        }
    }

    #[test]
    fn loopback_asks_for_nothing_and_claims_nothing() {
        let caller = verifier(&Auth::default(), HERE).verify(&HeaderMap::new(), false).unwrap();
        assert_eq!(*caller, Caller::local());
        assert!(!caller.verified && caller.roles.is_empty());
    }

    #[test]
    fn a_bad_hash_is_refused_at_start() {
        for bad in ["", "xyz", &"g".repeat(64), &"a".repeat(63), &"é".repeat(32)] {
            let tokens = vec![Token { sha256_hex: bad.into(), ..token("ci", "x") }];
            let made = Verifier::new(&Auth { tokens, stored: None }, HERE.parse().unwrap());
            assert!(matches!(made, Err(Error::Token { name }) if name == "ci"));
        }
    }

    #[test]
    fn only_loopback_may_be_bound_without_credentials() {
        let bearer = Auth { tokens: vec![token("ci", "s3cret")], stored: None };
        let in_store = Auth { tokens: Vec::new(), stored: Some(stored().0) };
        let empty = Auth { tokens: Vec::new(), stored: Some(TokenTable::new(Arc::new(Simulated::new()))) };
        for addr in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            let addr = addr.parse().unwrap();
            assert!(check_bind(addr, &Auth::default()).is_ok(), "{addr}");
        }
        for addr in ["0.0.0.0:80", "192.168.1.2:80", "[::]:80", "[2001:db8::1]:80"] {
            let addr = addr.parse().unwrap();
            for nobody in [&Auth::default(), &empty] {
                let error = check_bind(addr, nobody).unwrap_err();
                assert!(matches!(error, Error::OpenBind { addr: named } if named == addr));
                assert!(error.to_string().contains(&addr.to_string()));
                assert!(error.hint().contains("orchestr8 tokens create"));
            }
            assert!(check_bind(addr, &bearer).is_ok());
            assert!(check_bind(addr, &in_store).is_ok());
        }
    }
}
