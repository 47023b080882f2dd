//! Good answers: the request that is sent, and deltas that come as soon as they are there.

use futures::StreamExt;
use orchestr8_models::{Block, Delta, Kind, StopReason};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, fed};
use crate::world::{KEY, KINDS, answer, beginning, model, provider, request, text};

#[tokio::test]
async fn a_request_is_sent_with_its_key_and_the_answer_is_read() {
    for kind in KINDS {
        let server = Server::start([Reply::Events(text(kind))]).await;
        let base = format!("{}/base/", server.url);
        let done = answer(&model(provider(kind, &base))).await;
        assert_eq!(done.content, [Block::text("Hello, wörld!")]);
        assert_eq!(
            (done.provider.as_str(), done.model.as_str(), done.stop_reason),
            ("p", "m-1", StopReason::Stop)
        );
        assert!(done.usage.total() > 100 && done.usage.cost > 0.0, "{:?}", done.usage);
        let asked = &server.asked()[0];
        assert_eq!(
            (asked.headers["content-type"].as_bytes(), &asked.body["stream"]),
            (b"application/json".as_slice(), &json!(true))
        );
        match kind {
            Kind::Anthropic => {
                assert_eq!(asked.path, "/base/v1/messages");
                assert_eq!(
                    (asked.headers["x-api-key"].as_bytes(), asked.headers.get("authorization")),
                    (KEY.as_bytes(), None)
                );
                assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
                assert_eq!(asked.body["tools"][0]["name"], "weather_get");
            }
            Kind::OpenAi | Kind::Offline => {
                assert_eq!(asked.path, "/base/chat/completions");
                assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
                assert_eq!(asked.body["messages"][1], json!({"role": "user", "content": "hello"}));
            }
        }
    }
}

#[tokio::test]
async fn deltas_come_before_the_answer_is_whole() {
    for kind in KINDS {
        let (reply, feed, _) = fed();
        let server = Server::start([reply]).await;
        let mut stream = model(provider(kind, &server.url)).stream(request(), CancellationToken::new());
        feed.send(beginning(kind));
        assert_eq!(stream.next().await.unwrap().unwrap(), Delta::TextStart { index: 0 });
        let hello = Delta::Text { index: 0, delta: "Hello".into() };
        assert_eq!(stream.next().await.unwrap().unwrap(), hello);
        feed.send(&text(kind)[beginning(kind).len()..]);
        let rest: Vec<Delta> = stream.map(Result::unwrap).collect().await;
        assert!(matches!(rest.last(), Some(Delta::Done(_))), "{rest:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_before_somebody_listens() {
    let server = Server::start([]).await;
    let stream = model(provider(Kind::OpenAi, &server.url)).stream(request(), CancellationToken::new());
    drop(stream);
    let mut stopped = model(provider(Kind::OpenAi, &server.url)).stream(request(), {
        let cancel = CancellationToken::new();
        cancel.cancel();
        cancel
    });
    assert!(stopped.next().await.is_none());
    assert!(server.asked().is_empty());
}
