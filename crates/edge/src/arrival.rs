//! One request as every face takes it in: its parts, the parameters of its path, its whole body, and the id it is found by.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, RawPathParams, Request};
use axum::response::Response;
use bytes::Bytes;
use futures::FutureExt;
use http::request::Parts;
use orchestr8_contract::id::CorrelationId;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_kernel::ports::ids::{For, Ids};

use crate::{Caller, ask, body};

/// How much of a body a face takes, and how slowly it may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intake {
    pub limit_bytes: usize,
    pub timeout_ms: u64,
}

/// A request that is whole.
pub struct Arrival {
    pub parts: Parts,
    pub correlation: CorrelationId,
    pub body: Bytes,
    pub params: Params,
}

/// The parameters of a path.
pub struct Params(Option<RawPathParams>);

/// An endpoint of a face: a function from a call of this face to a response, or to why there is none.
pub trait Endpoint<Call, Failure>: Clone + Send + Sync + 'static {
    fn run(&self, call: Call) -> impl Future<Output = Result<Response, Failure>> + Send;
}

impl<Call, Failure, F, R> Endpoint<Call, Failure> for F
where
    F: Fn(Call) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Response, Failure>> + Send,
{
    fn run(&self, call: Call) -> impl Future<Output = Result<Response, Failure>> + Send {
        self(call)
    }
}

impl Arrival {
    /// Takes a request apart and its body in. The correlation id is known whatever else is wrong.
    pub async fn take(
        request: Request,
        ids: &dyn Ids,
        intake: Intake,
    ) -> (Result<Self, body::Error>, CorrelationId) {
        let (mut parts, body) = request.into_parts();
        let correlation = ask::correlation(&parts.headers)
            .unwrap_or_else(|| CorrelationId::from_uuid(ids.fresh(For::Correlation)));
        let timeout = Duration::from_millis(intake.timeout_ms);
        let body = match body::read(body, intake.limit_bytes, timeout).await {
            Ok(body) => body,
            Err(error) => return (Err(error), correlation),
        };
        // It only looks into the extensions, so it is ready at once; a path without parameters has none.
        let params = RawPathParams::from_request_parts(&mut parts, &()).now_or_never().and_then(Result::ok);
        (Ok(Self { parts, correlation: correlation.clone(), body, params: Params(params) }), correlation)
    }

    /// Whether credentials are required here and the request shows none: only paths with credentials of their own get such.
    pub fn is_anonymous(&self) -> bool {
        Caller::of(&self.parts.extensions).is_some_and(|caller| !caller.verified && caller.name.is_empty())
    }

    /// The principal that the edge has verified; none: the person at this machine.
    pub fn principal(&self) -> Result<Option<Arc<Principal>>, Fault> {
        let Some(caller) = Caller::of(&self.parts.extensions) else { return Ok(None) };
        Ok(caller.principal()?.map(Arc::new))
    }
}

impl Params {
    /// Whether the path has a parameter of this name, whatever it is.
    pub fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|params| params.iter().any(|(found, _)| found == name))
    }

    /// The id of this name. What cannot be an id names nothing: it is too long, or cannot be printed.
    pub fn id(&self, name: &str, limit_bytes: usize) -> Option<&str> {
        let (_, value) = self.0.as_ref()?.iter().find(|(found, _)| *found == name)?;
        let fits = (1..=limit_bytes).contains(&value.len()) && !value.chars().any(char::is_control);
        fits.then_some(value)
    }
}

impl From<body::Error> for Fault {
    /// Nothing was done in any case. Each face adds the details of its own contract.
    fn from(error: body::Error) -> Self {
        match error {
            body::Error::TooLarge { limit_bytes } => {
                Fault::new(Code::PayloadTooLarge, format!("the body is larger than {limit_bytes} bytes"))
            }
            body::Error::Slow => {
                let text = "the body came too slowly; nothing was done, so sending it again is safe";
                Fault::new(Code::Timeout, text)
            }
            body::Error::Broken(_) => Fault::invalid("the body ended early or is not framed as HTTP says"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use orchestr8_kernel::ports::ids::Counted;
    use tower::ServiceExt;

    const INTAKE: Intake = Intake { limit_bytes: 10, timeout_ms: 1000 };

    /// What a face would see of a request: the id it is found by, its parameter, its body, who sends it.
    async fn seen(mut request: http::Request<Body>, caller: Option<Caller>) -> String {
        if let Some(caller) = caller {
            request.extensions_mut().insert(Arc::new(caller));
        }
        let see = |request: Request| async {
            let (arrival, correlation) = Arrival::take(request, &Counted::default(), INTAKE).await;
            match arrival {
                Ok(arrival) => {
                    let who = arrival.principal().map(|who| who.map(|who| who.name.to_string()));
                    let body = String::from_utf8_lossy(&arrival.body).into_owned();
                    format!("{correlation} {:?} {body:?} {who:?}", arrival.params.id("id", 5))
                }
                Err(error) => format!("{correlation} {}", Fault::from(error).code),
            }
        };
        let router: Router = Router::new().route("/{id}", get(see));
        let response = router.oneshot(request).await.unwrap();
        let body = body::read(response.into_body(), 1000, Duration::from_secs(60)).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    fn request(path: &str, body: &'static str) -> http::Request<Body> {
        http::Request::builder().uri(path).header("x-correlation-id", "c-1").body(Body::from(body)).unwrap()
    }

    #[tokio::test]
    async fn a_request_is_taken_in_whole() {
        assert_eq!(seen(request("/a%20b", "hello"), None).await, r#"c-1 Some("a b") "hello" Ok(None)"#);
        for strange in ["/toolong", "/a%0Ab"] {
            assert!(seen(request(strange, ""), None).await.starts_with("c-1 None"), "{strange}");
        }
        assert_eq!(seen(request("/a", "more than ten"), None).await, "c-1 PAYLOAD_TOO_LARGE");
        let unnamed = http::Request::builder().uri("/a").body(Body::empty()).unwrap();
        assert!(seen(unnamed, None).await.starts_with("00000001-"), "one is made for it");
    }

    #[tokio::test]
    async fn only_who_is_verified_has_a_name() {
        let caller = |verified, tenant: &str| Caller {
            name: "ann".into(),
            tenant: tenant.into(),
            roles: Vec::new(),
            verified,
            grant: None,
        };
        let who = |caller| async { seen(request("/a", ""), Some(caller)).await };
        assert!(who(caller(true, "acme")).await.ends_with(r#"Ok(Some("ann"))"#));
        assert!(who(caller(false, "acme")).await.ends_with("Ok(None)"));
        assert!(who(caller(true, "no tenant")).await.contains("no tenant name"));
    }
}
