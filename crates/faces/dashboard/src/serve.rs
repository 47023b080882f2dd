//! Which requests are for pages, and what they are answered with.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, UPGRADE,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method};

use crate::files::{self, File, INDEX, UNBUILT};

/// The places of the dashboard. A browser that opens one of them gets the page; a program that asks there for data does not.
const PAGES: [&str; 10] = [
    "executions",
    "workflows",
    "plans",
    "sessions",
    "tools",
    "knowledge",
    "messages",
    "secrets",
    "audit",
    "tokens",
];

/// Below this, names change with the content.
const ASSETS: &str = "/assets/";

/// Where the build leaves room for the token of pages.
const TOKEN: &str = "__PAGE_TOKEN__";

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
/// The page has the token in it.
const NEVER_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// Nothing but what this server itself has: no other address, no script or style written into the page.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

/// The faces with the dashboard before them. `token` is what the pages show when they change something.
pub fn over(faces: Router, token: &str) -> Router {
    let index = match files::find(INDEX) {
        Some(file) => String::from_utf8_lossy(file.bytes).replace(TOKEN, token),
        None => UNBUILT.replace(TOKEN, token),
    };
    faces.layer(from_fn_with_state(Arc::<str>::from(index), answer))
}

/// Whether the request is for what has no secrets: a page of the dashboard, or a file of it.
pub fn is_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    wanted(method, path, headers).is_some()
}

enum Wanted {
    Index,
    File(&'static File),
}

fn wanted(method: &Method, path: &str, headers: &HeaderMap) -> Option<Wanted> {
    let reads = method == Method::GET || method == Method::HEAD;
    if !reads || headers.contains_key(UPGRADE) {
        return None;
    }
    if path == "/" || (is_place(path) && accepts(headers, ACCEPT, "text/html")) {
        return Some(Wanted::Index);
    }
    files::find(path).filter(|file| file.path != INDEX).map(Wanted::File)
}

fn is_place(path: &str) -> bool {
    path.strip_prefix('/').and_then(|path| path.split('/').next()).is_some_and(|first| PAGES.contains(&first))
}

fn accepts(headers: &HeaderMap, name: http::HeaderName, what: &str) -> bool {
    headers.get_all(name).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(what)))
}

async fn answer(State(index): State<Arc<str>>, request: Request, next: Next) -> Response {
    match wanted(request.method(), request.uri().path(), request.headers()) {
        Some(Wanted::Index) => page(&index),
        Some(Wanted::File(file)) => asset(file, request.headers()),
        None => next.run(request).await,
    }
}

fn page(index: &str) -> Response {
    let mut response = Response::new(Body::from(index.to_owned()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(files::media_type(INDEX)));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(CACHE_CONTROL, NEVER_KEPT);
    response
}

fn asset(file: &'static File, asked: &HeaderMap) -> Response {
    let packed = file.gzip.filter(|_| accepts(asked, ACCEPT_ENCODING, "gzip"));
    let mut response = Response::new(Body::from(packed.unwrap_or(file.bytes)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(files::media_type(file.path)));
    headers.insert(CACHE_CONTROL, if file.path.starts_with(ASSETS) { FOR_EVER } else { ASK_AGAIN });
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if packed.is_some() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    fn faces() -> Router {
        let others = Router::new().route("/", get(async || "sessions")).fallback(async || "elsewhere");
        over(others, "token-of-pages")
    }

    async fn ask(path: &str, headers: &[(&str, &str)]) -> (HeaderMap, String) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = faces().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.headers, String::from_utf8_lossy(&body.collect().await.unwrap().to_bytes()).into_owned())
    }

    #[tokio::test]
    async fn the_root_is_a_page_and_stays_a_socket_for_who_asks_for_one() {
        let (headers, body) = ask("/", &[]).await;
        assert!(body.contains("token-of-pages") && !body.contains(TOKEN), "{body}");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
        let (_, body) = ask("/", &[("upgrade", "websocket"), ("connection", "upgrade")]).await;
        assert_eq!(body, "sessions");
    }

    #[tokio::test]
    async fn a_browser_that_opens_a_place_gets_the_page_and_a_program_does_not() {
        let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
        for path in ["/executions", "/executions/exec-1", "/knowledge/a/b"] {
            assert!(ask(path, &browser).await.1.contains("token-of-pages"), "{path}");
            assert_eq!(ask(path, &[("accept", "application/json")]).await.1, "elsewhere");
        }
        for path in ["/v1/executions", "/documents", "/index.html", "/assets/none.js", "/executionsx"] {
            assert_eq!(ask(path, &browser).await.1, "elsewhere", "{path}");
        }
    }

    #[tokio::test]
    async fn writing_is_never_answered_with_a_page() {
        let request = Request::post("/").header("accept", "text/html").body(Body::empty()).unwrap();
        let response = faces().oneshot(request).await.unwrap();
        assert_eq!(response.status(), http::StatusCode::METHOD_NOT_ALLOWED);
    }

    #[tokio::test]
    async fn assets_are_kept_for_ever_and_packed_for_who_can_unpack() {
        static FILE: File = File { path: "/assets/a.js", bytes: b"plain", gzip: Some(b"gz") };
        let mut asked = HeaderMap::new();
        let plain = asset(&FILE, &asked);
        assert_eq!(plain.headers()[CONTENT_TYPE], "text/javascript; charset=utf-8");
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        asked.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"));
        let packed = asset(&FILE, &asked);
        assert_eq!(packed.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(packed.headers()[CACHE_CONTROL], FOR_EVER);
        assert_eq!(packed.into_body().collect().await.unwrap().to_bytes(), "gz");
    }
}
