//! Stands before the router: looks at every request once, cheaply, and lets the honest ones through.

use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use hyper::body::Incoming;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::ids::Ids;
use tower::Service;

use crate::auth::{self, Caller, PeerAddress, Rejected, Verifier};
use crate::body;
use crate::correlation::{self, CORRELATION};
use crate::cors::{self, Origins};
use crate::failed_logins::{FailedLogins, LoginFailure, Verdict, WrongCredentials};
use crate::health;
use crate::hosts::Hosts;
use crate::pages;
use crate::settings::{OnLoginFailure, OnScopeRefusal, URI_LIMIT_BYTES};
use crate::signal::ConnectionSignal;
use crate::sockets;
use crate::streams::{self, StreamTable};
use crate::{Error, Pages, Refusal, RejectionLog, RejectionReason, Settings, Voice};

/// On every answer that does not set its own.
pub(crate) static SECURITY: [(HeaderName, HeaderValue); 4] = [
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'self'")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// What signed requests carry instead of a token.
const SIGNATURE: HeaderName = HeaderName::from_static("x-jws-signature");

/// The secret of the admin tools, which their face compares.
const ADMIN_TOKEN: HeaderName = HeaderName::from_static("x-admin-token");

pub(crate) struct Guard {
    router: Router,
    hosts: Hosts,
    origins: Origins,
    verifier: Verifier,
    body_limit_bytes: usize,
    own_credentials: Vec<&'static str>,
    foreign_credentials: bool,
    trust_this_process: bool,
    pages: Option<Pages>,
    voices: Vec<Voice>,
    ids: Arc<dyn Ids>,
    faces: Vec<(&'static str, &'static str)>,
    streams: Arc<StreamTable>,
    logins: FailedLogins,
    on_login_failure: Option<OnLoginFailure>,
    on_scope_refusal: Option<OnScopeRefusal>,
    rejections: Option<Arc<RejectionLog>>,
}

/// A request on a face that the scope of its token does not include.
#[derive(Debug, Clone)]
pub struct ScopeRefusal {
    pub caller: Arc<Caller>,
    pub face: &'static str,
    pub path: String,
    pub address: IpAddr,
}

impl Guard {
    pub fn new(router: Router, listen: SocketAddr, settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            // Without it every call would wrap its route anew.
            router: router.with_state(()),
            hosts: Hosts::new(listen, &settings.allowed_hosts)?,
            origins: Origins::new(&settings.allowed_origins)?,
            verifier: Verifier::new(&settings.auth, listen)?,
            body_limit_bytes: settings.body_limit_bytes,
            own_credentials: settings.own_credentials.clone(),
            foreign_credentials: settings.foreign_credentials,
            trust_this_process: settings.trust_this_process,
            pages: settings.pages.clone(),
            voices: settings.voices.clone(),
            ids: settings.ids.clone(),
            faces: settings.faces.clone(),
            streams: StreamTable::new(settings.max_streams_per_principal),
            logins: FailedLogins::new(settings.max_failed_logins),
            on_login_failure: settings.on_login_failure.clone(),
            on_scope_refusal: settings.on_scope_refusal.clone(),
            rejections: settings.rejections.clone(),
        })
    }

    pub fn bounded(&self, body: Incoming, signal: &Arc<ConnectionSignal>) -> Body {
        body::bound(body, self.body_limit_bytes, signal)
    }

    /// Refuses a request that the server has no room for.
    pub fn turn_away(&self, target: &Uri, refusal: Refusal) -> Response {
        let mut response = self.refuse(target, refusal, None);
        self.finish(&mut response, None);
        response
    }

    pub fn fresh_id(&self) -> HeaderValue {
        correlation::fresh(&*self.ids)
    }

    /// Always an answer, whatever the request and whatever the route does.
    pub async fn answer(&self, mut request: Request<Body>, signal: &ConnectionSignal) -> Response {
        let given = correlation::given(request.headers());
        // Cheap: a target is shared, not copied.
        let target = request.uri().clone();
        let page = self.place(&request, signal);
        let outcome = match &page {
            Err(refusal) => Err(refusal.clone()),
            // Asked by a browser on behalf of the page; it shows no credentials and reaches no face.
            Ok(Some(_)) if cors::is_preflight(request.method(), request.headers()) => {
                Ok(cors::preflight(request.headers()))
            }
            Ok(_) => match self.caller(&request, signal) {
                Ok(caller) => {
                    let own = !caller.verified
                        && self.is_own(target.path())
                        && shows_credentials(request.headers());
                    request.extensions_mut().insert(caller);
                    request.extensions_mut().insert(PeerAddress(signal.address));
                    let routed = self.route(request).await;
                    // A face that checks credentials of its own has found them wrong.
                    match routed.as_ref().is_ok_and(|said| is_wrong(said, own)) {
                        true => self.login_failed(signal, None, target.path()).map_or(routed, Err),
                        false => routed,
                    }
                }
                Err(refusal) => Err(refusal),
            },
        };
        let mut response = outcome.unwrap_or_else(|refusal| self.refuse(&target, refusal, given.clone()));
        if let Ok(Some(page)) = page {
            cors::allow(response.headers_mut(), page);
        }
        self.finish(&mut response, given);
        response
    }

    /// Refusals are for the client to mend, so they are logged quietly; a failure of ours is not.
    fn refuse(&self, target: &Uri, refusal: Refusal, given: Option<HeaderValue>) -> Response {
        let id = given.unwrap_or_else(|| self.fresh_id());
        if refusal.code == Code::Internal {
            tracing::error!(correlationId = ?id, "a route panicked; its request was answered with INTERNAL");
        } else {
            tracing::debug!(correlationId = ?id, status = refusal.status.as_u16(), reason = %refusal.message, "refused");
        }
        let own_header = refusal.own_header();
        let worded = self.voices.iter().find_map(|voice| voice(target.path(), &refusal, &id));
        let mut response = worded.unwrap_or_else(|| refusal.into_response());
        let headers = response.headers_mut();
        headers.insert(CORRELATION, id);
        if let Some((name, value)) = own_header {
            headers.insert(name, value);
        }
        response
    }

    /// From where it is asked: Ok for our own names, with the page's origin if it is a configured one.
    fn place<B>(
        &self,
        request: &Request<B>,
        signal: &ConnectionSignal,
    ) -> Result<Option<HeaderValue>, Refusal> {
        let (headers, uri) = (request.headers(), request.uri());
        let rejected = |reason, name: HeaderName| {
            let value = headers.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
            self.rejected(reason, signal, value, uri.path());
        };
        if uri.path_and_query().is_some_and(|target| target.as_str().len() > URI_LIMIT_BYTES) {
            return Err(Refusal::uri_too_long());
        }
        // A request may name its host in the target too; then both must be ours.
        if !self.names_us(headers)
            || uri.authority().is_some_and(|name| !self.hosts.admits(name.as_str().as_bytes()))
        {
            rejected(RejectionReason::Host, HOST);
            return Err(Refusal::host());
        }
        let page = self
            .origins
            .check(headers, &self.hosts)
            .inspect_err(|_| rejected(RejectionReason::Origin, ORIGIN))?;
        if page.is_none() && sockets::is_handshake(headers) && !sockets::is_own_page(headers, &self.hosts) {
            rejected(RejectionReason::Origin, ORIGIN);
            return Err(Refusal::origin());
        }
        match &self.pages {
            Some(ours) if page.is_none() && !pages::may_ask(ours, request.method(), headers) => {
                rejected(RejectionReason::Page, ORIGIN);
                Err(Refusal::page())
            }
            Some(_) | None => Ok(page),
        }
    }

    /// Who asks, once nothing about the body speaks against it.
    fn caller<B>(&self, request: &Request<B>, signal: &ConnectionSignal) -> Result<Arc<Caller>, Refusal> {
        let (headers, path) = (request.headers(), request.uri().path());
        if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Refusal::encoding());
        }
        if announced_bytes(headers).is_some_and(|bytes| bytes > self.body_limit_bytes) {
            return Err(Refusal::body_too_large(self.body_limit_bytes));
        }
        if headers.contains_key(&ADMIN_TOKEN) && self.logins.blocks_address(signal.address) {
            return Err(Refusal::too_many_logins());
        }
        // Clients of a face with credentials of its own show its tokens on their other requests too.
        let foreign = self.foreign_credentials && (self.is_own(path) || auth::shows_jwt(headers));
        match self.verifier.verify(headers, foreign) {
            Ok(caller) if !caller.verified && !signal.is_own_user(self.trust_this_process) => {
                match self.is_open(request) {
                    true => Ok(Arc::new(Caller::nobody())),
                    false => {
                        self.rejected(RejectionReason::Credentials, signal, b"", path);
                        Err(Refusal::other_user())
                    }
                }
            }
            Ok(caller) => self.admit(caller, request, signal),
            // Probes cannot show a token, and the health routes ask nobody's name. A face with credentials of its own asks itself.
            Err(_) if self.is_open(request) => Ok(Arc::new(Caller::nobody())),
            Err(Rejected::NoToken) => {
                self.rejected(RejectionReason::Credentials, signal, b"", path);
                Err(Refusal::no_token())
            }
            Err(Rejected::WrongToken(token)) => {
                Err(self.login_failed(signal, Some(token), path).unwrap_or_else(Refusal::wrong_token))
            }
        }
    }

    /// Whether a request gets past the edge without credentials: its face asks for them, or nothing does.
    fn is_open<B>(&self, request: &Request<B>) -> bool {
        self.is_own(request.uri().path()) || self.is_public(request)
    }

    /// Whether a request is for something that asks for no credentials at all.
    fn is_public<B>(&self, request: &Request<B>) -> bool {
        let path = request.uri().path();
        let is_page = |pages: &Pages| (pages.is_page)(request.method(), path, request.headers());
        health::is_open(path) || self.pages.as_ref().is_some_and(is_page)
    }

    fn is_own(&self, path: &str) -> bool {
        self.own_credentials.iter().any(|own| below(path, own))
    }

    /// What a caller with valid credentials may not do all the same: more than its scope, or more streams than its share.
    fn admit<B>(
        &self,
        caller: Arc<Caller>,
        request: &Request<B>,
        signal: &ConnectionSignal,
    ) -> Result<Arc<Caller>, Refusal> {
        if caller.verified {
            if self.logins.blocks(signal.address, &caller) {
                return Err(Refusal::too_many_logins());
            }
            if signal.first_login() {
                self.logins.succeed(signal.address, &caller);
            }
        }
        if let Some(grant) = &caller.grant {
            let path = request.uri().path();
            let face = self.faces.iter().find(|(prefix, _)| below(path, prefix)).map(|(_, face)| *face);
            let refused = face.filter(|face| !grant.scope.allows_face(face) && !self.is_public(request));
            if let Some(face) = refused {
                if let Some(report) = &self.on_scope_refusal {
                    report(ScopeRefusal {
                        caller: caller.clone(),
                        face,
                        path: path.to_owned(),
                        address: signal.address,
                    });
                }
                return Err(Refusal::out_of_scope());
            }
            signal.hold_grant(grant.clone());
        }
        if streams::asks_for_stream(request.method(), request.headers()) && !caller.name.is_empty() {
            signal.hold_stream(self.streams.open(&caller).ok_or_else(Refusal::too_many_streams)?);
        }
        Ok(caller)
    }

    /// Notes a rejected request for the audit log.
    fn rejected(&self, reason: RejectionReason, signal: &ConnectionSignal, value: &[u8], path: &str) {
        if let Some(rejections) = &self.rejections {
            rejections.note(reason, signal.address, value, path);
        }
    }

    /// Counts and reports wrong credentials. Gives the refusal if there were too many.
    fn login_failed(&self, signal: &ConnectionSignal, token: Option<String>, path: &str) -> Option<Refusal> {
        let token = token.unwrap_or_else(|| String::from("unknown"));
        let verdict = self.logins.fail(signal.address, &token);
        let (report, limited) = match verdict {
            Verdict::Counted => (true, false),
            Verdict::Limited { first } => (first, true),
        };
        if let Some(on_failure) = self.on_login_failure.as_ref().filter(|_| report) {
            on_failure(LoginFailure { address: signal.address, token, path: path.to_owned(), limited });
        }
        limited.then(Refusal::too_many_logins)
    }

    /// Exactly one Host header, and it is ours.
    fn names_us(&self, headers: &HeaderMap) -> bool {
        let mut names = headers.get_all(HOST).iter();
        match (names.next(), names.next()) {
            (Some(name), None) => self.hosts.admits(name.as_bytes()),
            (Some(_) | None, _) => false,
        }
    }

    /// A panic in a route is that request's failure alone: the connection and the process live on.
    async fn route(&self, request: Request<Body>) -> Result<Response, Refusal> {
        let mut router = self.router.clone();
        match AssertUnwindSafe(async move { router.call(request).await }).catch_unwind().await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(never)) => match never {},
            Err(_) => Err(Refusal::panicked()),
        }
    }

    fn finish(&self, response: &mut Response, given: Option<HeaderValue>) {
        let failed = response.status().is_client_error() || response.status().is_server_error();
        let headers = response.headers_mut();
        headers.reserve(SECURITY.len());
        for (name, value) in &SECURITY {
            headers.entry(name).or_insert_with(|| value.clone());
        }
        if failed && !headers.contains_key(&CORRELATION) {
            headers.insert(CORRELATION, given.unwrap_or_else(|| self.fresh_id()));
        }
    }
}

/// Whether a request shows credentials of any kind.
fn shows_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(SIGNATURE)
}

/// Whether a face says that credentials of its own were wrong.
fn is_wrong(said: &Response, own: bool) -> bool {
    (own && said.status() == StatusCode::UNAUTHORIZED)
        || said.extensions().get::<WrongCredentials>().is_some()
}

fn below(path: &str, own: &str) -> bool {
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The parser below has already refused lengths that are not numbers or contradict each other.
fn announced_bytes(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Whether the answer hands the socket over to another protocol.
pub(crate) fn upgrades(response: &Response) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}
