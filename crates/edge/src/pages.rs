//! Whether a browser may change something here: a page of another server cannot show the token that ours have.
//!
//! The checks of Host and Origin stand before this one. They let pages of every port of this machine through, which need not
//! be ours: somebody's half-finished web application, or a server that another user started.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method};

use crate::Pages;

/// What pages of this server show when they change something.
const SHOWN: HeaderName = HeaderName::from_static("x-orchestr8-page");

/// Browsers say with it where a request comes from, and no script can. Other programs do not send it, and are not asked.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

pub(crate) fn may_ask(pages: &Pages, method: &Method, headers: &HeaderMap) -> bool {
    let reads = [Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
    // A browser never adds a bearer token by itself, so whoever sends one was given it.
    if reads || !headers.contains_key(SITE) || headers.contains_key(AUTHORIZATION) {
        return true;
    }
    // A form on a page of ours that works without scripts: the browser vouches for where it stands.
    let is_own_form = says(headers, &SITE, "same-origin") && says(headers, &MODE, "navigate");
    is_own_form || says(headers, &SHOWN, &pages.token)
}

fn says(headers: &HeaderMap, name: &HeaderName, value: &str) -> bool {
    headers.get(name).is_some_and(|found| found.as_bytes() == value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(method: Method, headers: &[(&'static str, &'static str)]) -> bool {
        let pages = Pages { token: "right".into(), is_page: |_, _, _| false };
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)));
        may_ask(&pages, &method, &headers.collect())
    }

    #[test]
    fn a_browser_that_writes_shows_the_token() {
        assert!(asks(Method::POST, &[("sec-fetch-site", "same-origin"), ("x-orchestr8-page", "right")]));
        for site in ["same-origin", "same-site", "cross-site", "none"] {
            assert!(!asks(Method::POST, &[("sec-fetch-site", site)]), "{site}");
            assert!(
                !asks(Method::DELETE, &[("sec-fetch-site", site), ("x-orchestr8-page", "wrong")]),
                "{site}"
            );
        }
    }

    #[test]
    fn programs_readers_and_bearers_are_not_asked() {
        assert!(asks(Method::POST, &[]));
        assert!(asks(Method::POST, &[("origin", "http://localhost:3000")]));
        assert!(asks(Method::GET, &[("sec-fetch-site", "cross-site")]));
        assert!(asks(Method::POST, &[("sec-fetch-site", "same-site"), ("authorization", "Bearer x")]));
    }

    #[test]
    fn a_form_of_ours_is_believed_and_one_of_others_is_not() {
        assert!(asks(Method::POST, &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")]));
        assert!(!asks(Method::POST, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate")]));
        assert!(!asks(Method::POST, &[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")]));
    }
}
