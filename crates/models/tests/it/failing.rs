//! Refusals, overload, cuts and silence: what is tried again, what is said, and that the key is never shown.

use std::time::Duration;

use futures::StreamExt;
use orchestr8_contract::Code;
use orchestr8_contract::id::Tenant;
use orchestr8_kernel::resilience::Resilience;
use orchestr8_models::{Block, Delta, Kind, Provider, Request};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, fed, gone};
use crate::world::{
    KINDS, answer, ask, ask_with, beginning, detail, fault, model, prelude, provider, reason, request, text,
};

const OVERLOADED: Reply =
    Reply::Status(529, &[], r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);

#[tokio::test]
async fn who_asks_too_often_waits_as_long_as_the_provider_says() {
    for kind in KINDS {
        let busy = Reply::Status(
            429,
            &[("retry-after", "1")],
            r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#,
        );
        let server = Server::start([busy, Reply::Events(text(kind))]).await;
        let began = Instant::now();
        let done = answer(&model(provider(kind, &server.url))).await;
        assert_eq!(done.content, [Block::text("Hello, wörld!")]);
        assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(server.asked().len(), 2);
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told_instead() {
    let busy = Reply::Status(429, &[("retry-after", "7200")], "{}");
    let server = Server::start([busy]).await;
    let fault = fault(&model(provider(Kind::OpenAi, &server.url))).await;
    assert_eq!(
        (fault.code, detail(&fault, "reason")),
        (Code::ResourceExhausted, Some(&json!("rate_limited")))
    );
    assert_eq!((detail(&fault, "retryAfterMs"), server.asked().len()), (Some(&json!(7_200_000)), 1));
}

#[tokio::test]
async fn an_overloaded_provider_is_tried_again_and_then_left_alone() {
    let replies = (0..10).map(|_| OVERLOADED);
    let server = Server::start(replies).await;
    let model = model(provider(Kind::Anthropic, &server.url));
    let first = fault(&model).await;
    assert_eq!((first.code, reason(&first)), (Code::Unavailable, "overloaded"));
    assert_eq!((detail(&first, "attempts"), server.asked().len()), (Some(&json!(3)), 3));
    // The fifth failure in a row opens the circuit, so that the sixth attempt is not made.
    assert_eq!(fault(&model).await.code, Code::CircuitOpen);
    let open = fault(&model).await;
    assert_eq!((open.code, detail(&open, "key")), (Code::CircuitOpen, Some(&json!("cb:model:p"))));
    assert_eq!(server.asked().len(), 5);
}

#[tokio::test]
async fn the_failures_of_one_tenant_open_no_circuit_for_another() {
    let replies = (0..5).map(|_| OVERLOADED).chain([Reply::Events(text(Kind::Anthropic))]);
    let server = Server::start(replies).await;
    let model = model(provider(Kind::Anthropic, &server.url));
    let of = |name: &str| Request { tenant: Some(Tenant::parse(name).unwrap()), ..request() };
    for _ in 0..2 {
        ask_with(&model, of("acme")).await;
    }
    let open = ask_with(&model, of("acme")).await.1.unwrap();
    assert_eq!((open.code, detail(&open, "key")), (Code::CircuitOpen, Some(&json!("cb:model:p:~acme/"))));
    let (deltas, fault) = ask_with(&model, of("rival")).await;
    assert!(fault.is_none() && matches!(deltas.last(), Some(Delta::Done(_))), "{fault:?}");
}

#[tokio::test]
async fn a_cut_before_the_first_word_is_mended() {
    for kind in KINDS {
        let server =
            Server::start([Reply::Cut(prelude(kind)), Reply::Cut(b""), Reply::Events(text(kind))]).await;
        let (deltas, fault) = ask(&model(provider(kind, &server.url))).await;
        assert!(fault.is_none() && matches!(deltas.last(), Some(Delta::Done(_))), "{fault:?}");
        let starts = deltas.iter().filter(|delta| matches!(delta, Delta::TextStart { .. })).count();
        assert_eq!((starts, server.asked().len()), (1, 3));
    }
}

#[tokio::test]
async fn a_cut_after_the_first_word_is_the_end() {
    for kind in KINDS {
        let (reply, feed, _) = fed();
        let server = Server::start([reply]).await;
        let mut stream = model(provider(kind, &server.url)).stream(request(), CancellationToken::new());
        feed.send(beginning(kind));
        stream.next().await.unwrap().unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Text { index: 0, delta: "Hello".into() });
        feed.cut();
        let fault = stream.next().await.unwrap().unwrap_err();
        assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"));
        assert!(stream.next().await.is_none());
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_broken() {
    for kind in KINDS {
        let begun = beginning(kind);
        // Between two events, and in the middle of one.
        for (bytes, deltas_given) in [(begun, 2), (&begun[..begun.len() - 40], 0)] {
            let server = Server::start([Reply::Events(bytes)]).await;
            let once = Resilience { max_attempts: 1, ..Resilience::default() };
            let model = model(Provider { resilience: once, ..provider(kind, &server.url) });
            let (deltas, fault) = ask(&model).await;
            let fault = fault.unwrap();
            assert_eq!((fault.code, reason(&fault)), (Code::Unavailable, "stream_broken"));
            let given = if kind == Kind::Anthropic { deltas_given.max(1) } else { deltas_given };
            assert_eq!((deltas.len(), server.asked().len()), (given, 1));
        }
    }
}

#[tokio::test]
async fn silence_is_not_waited_out() {
    for kind in KINDS {
        let (half, feed, _) = fed();
        feed.send(beginning(kind));
        let (mute, _left) = gone();
        let server = Server::start([Reply::Silence(mute), half]).await;
        let mut provider = provider(kind, &server.url);
        provider.idle_timeout_ms = 100;
        let began = Instant::now();
        let (deltas, fault) = ask(&model(provider)).await;
        let fault = fault.unwrap();
        assert_eq!(
            (fault.code, detail(&fault, "reason")),
            (Code::Unavailable, Some(&json!("stream_broken")))
        );
        assert_eq!(
            (deltas.len(), server.asked().len()),
            (2, 2),
            "silence before the first word is tried again"
        );
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_not_shown() {
    for status in [401, 403] {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-do-not-tell-anybody","type":"authentication_error"}}"#;
        let server = Server::start([Reply::Status(status, &[], body)]).await;
        let fault = fault(&model(provider(Kind::OpenAi, &server.url))).await;
        assert_eq!((fault.code, detail(&fault, "provider")), (Code::Unauthenticated, Some(&json!("p"))));
        assert_eq!(server.asked().len(), 1);
    }
    let body = r#"{"error":{"message":"bad request with sk-do-not-tell-anybody"}}"#;
    let server = Server::start([Reply::Status(400, &[], body)]).await;
    assert_eq!(fault(&model(provider(Kind::OpenAi, &server.url))).await.code, Code::InvalidArgument);
    let events =
        b"data: {\"error\":{\"message\":\"sk-do-not-tell-anybody\",\"type\":\"invalid_request_error\"}}\n\n";
    let server = Server::start([Reply::Events(events)]).await;
    assert_eq!(fault(&model(provider(Kind::OpenAi, &server.url))).await.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start([]).await;
    let location: &'static str = Box::leak(elsewhere.url.clone().into_boxed_str());
    let headers: &'static [(&str, &str)] = Box::leak(Box::new([("location", location)]));
    let server = Server::start([Reply::Status(307, headers, "")]).await;
    assert_eq!(fault(&model(provider(Kind::Anthropic, &server.url))).await.code, Code::Configuration);
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn a_conversation_that_is_too_long_says_so() {
    let body =
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#;
    let server = Server::start([Reply::Status(400, &[], body)]).await;
    let fault = fault(&model(provider(Kind::Anthropic, &server.url))).await;
    assert_eq!(
        (fault.code, detail(&fault, "reason")),
        (Code::InvalidArgument, Some(&json!("context_too_long")))
    );
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let fault = fault(&model(provider(Kind::OpenAi, &url))).await;
    assert_eq!((fault.code, fault.message.as_ref()), (Code::Unavailable, "p cannot be reached"));
}

#[tokio::test]
async fn a_stream_without_end_is_cut_off() {
    let pings: &'static [u8] = Box::leak(": ping\n\n".repeat(10_000).into_bytes().into_boxed_slice());
    let server = Server::start([Reply::Events(pings)]).await;
    let mut small = provider(Kind::Anthropic, &server.url);
    small.max_stream_bytes = 10_000;
    let fault = fault(&model(small)).await;
    assert_eq!(
        (fault.code, detail(&fault, "reason")),
        (Code::PayloadTooLarge, Some(&json!("answer_too_large")))
    );
    assert_eq!(server.asked().len(), 1, "another try would give as much");
}
