//! WebSockets that browsers open. A page cannot set headers there, and a handshake is a GET that no token of pages guards: its
//! origin speaks for it, and a bearer token travels as one of the protocols it offers.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

use crate::cors::authority;
use crate::hosts::Hosts;

/// The protocol that our sockets choose among those offered: a browser that offers some wants one of them chosen.
pub const SOCKET_PROTOCOL: &str = "orchestr8";

/// Before a bearer token in base64url, which has only letters that a protocol may have.
const BEARER: &str = "orchestr8.bearer.";

/// Whether a WebSocket is asked for.
pub(crate) fn is_handshake(headers: &HeaderMap) -> bool {
    headers.get_all(UPGRADE).iter().any(|value| {
        value.to_str().is_ok_and(|value| {
            value.split(',').any(|word| word.trim_ascii().eq_ignore_ascii_case("websocket"))
        })
    })
}

/// Whether the page that asks, if one does, is of this very server, or of a name that was configured for it. Pages of other
/// ports of this machine pass the check of origins, because they may read nothing; over a socket they would read and write.
pub(crate) fn is_own_page(headers: &HeaderMap, hosts: &Hosts) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Some(page) = authority(origin.as_bytes()) else { return false };
    hosts.is_configured(page)
        || headers.get(HOST).is_some_and(|host| host.as_bytes().eq_ignore_ascii_case(page))
}

/// The bearer token among the protocols that a handshake offers, if there is exactly one.
pub(crate) fn offered_token(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut tokens = offered_tokens(headers);
    let (token, None) = (tokens.next()?, tokens.next()) else { return None };
    URL_SAFE_NO_PAD.decode(token).ok().map(Cow::Owned)
}

/// Whether a handshake offers a bearer token, readable or not.
pub(crate) fn offers_token(headers: &HeaderMap) -> bool {
    offered_tokens(headers).next().is_some()
}

fn offered_tokens(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter(|_| is_handshake(headers));
    offers
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|word| word.trim_ascii().strip_prefix(BEARER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    #[test]
    fn a_page_is_ours_when_it_calls_where_it_came_from() {
        let hosts = Hosts::new("127.0.0.1:8088".parse().unwrap(), &["agents.example.org".into()]).unwrap();
        let own =
            |origin: &str, host: &str| is_own_page(&headers(&[("origin", origin), ("host", host)]), &hosts);
        assert!(own("http://127.0.0.1:8088", "127.0.0.1:8088"));
        assert!(own("http://LOCALHOST:8088", "localhost:8088"));
        assert!(own("https://agents.example.org", "agents.example.org"));
        // A proxy that calls us by our address speaks for a name that was configured.
        assert!(own("https://agents.example.org", "127.0.0.1:8088"));
        assert!(is_own_page(&headers(&[("host", "localhost:8088")]), &hosts), "no browser");
        for stranger in [
            "http://127.0.0.1:3000",
            "http://localhost:8088",
            "http://localhost",
            "null",
            "file://127.0.0.1:8088",
        ] {
            assert!(!own(stranger, "127.0.0.1:8088"), "{stranger}");
        }
    }

    #[test]
    fn a_token_is_taken_from_the_offer_of_a_handshake_and_from_nothing_else() {
        // "a+/=" in base64url.
        let offer = ("sec-websocket-protocol", "orchestr8, orchestr8.bearer.YSsvPQ");
        let upgrade = ("upgrade", "WebSocket");
        assert_eq!(offered_token(&headers(&[upgrade, offer])).as_deref(), Some(&b"a+/="[..]));
        assert_eq!(offered_token(&headers(&[offer])), None, "no handshake");
        assert!(!offers_token(&headers(&[offer])) && !offers_token(&headers(&[upgrade])));
        let damaged = ("sec-websocket-protocol", "orchestr8, orchestr8.bearer.a+/=");
        assert!(offers_token(&headers(&[upgrade, damaged])));
        for wrong in ["orchestr8", "orchestr8.bearer.a+/=", "orchestr8.bearer.YQ, orchestr8.bearer.YQ"] {
            assert_eq!(
                offered_token(&headers(&[upgrade, ("sec-websocket-protocol", wrong)])),
                None,
                "{wrong}"
            );
        }
    }
}
