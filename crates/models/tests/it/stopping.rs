//! Stopping at any point: the stream ends at once, without `Done`, and the provider's connection is closed.

use std::time::Duration;

use futures::StreamExt;
use orchestr8_models::{Delta, Kind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::server::{Reply, Server, fed, gone};
use crate::world::{KINDS, beginning, model, provider, request};

/// It takes a millisecond; a busy machine may need more, but nothing that is waited for here ends as soon.
const AT_ONCE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn in_the_middle_of_an_answer() {
    for kind in KINDS {
        let (reply, feed, left) = fed();
        let server = Server::start([reply]).await;
        let cancel = CancellationToken::new();
        let mut stream = model(provider(kind, &server.url)).stream(request(), cancel.clone());
        feed.send(beginning(kind));
        assert_eq!(stream.next().await.unwrap().unwrap(), Delta::TextStart { index: 0 });
        stream.next().await.unwrap().unwrap();
        let began = Instant::now();
        let (next, ()) = tokio::join!(stream.next(), async { cancel.cancel() });
        assert!(next.is_none() && stream.next().await.is_none());
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        drop(stream);
        left.await.unwrap();
    }
}

#[tokio::test]
async fn while_the_provider_has_not_answered_yet() {
    let (mute, left) = gone();
    let server = Server::start([Reply::Silence(mute)]).await;
    let cancel = CancellationToken::new();
    let mut stream = model(provider(Kind::OpenAi, &server.url)).stream(request(), cancel.clone());
    let asked = async {
        while server.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        Instant::now()
    };
    let (next, began) = tokio::join!(stream.next(), asked);
    assert!(next.is_none());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    left.await.unwrap();
}

#[tokio::test]
async fn between_two_tries() {
    let busy = Reply::Status(429, &[("retry-after", "300")], "{}");
    let server = Server::start([busy]).await;
    let cancel = CancellationToken::new();
    let mut stream = model(provider(Kind::OpenAi, &server.url)).stream(request(), cancel.clone());
    let mut next = stream.next();
    tokio::select! {
        _ = &mut next => panic!("it does not wait"),
        () = async { while server.asked().is_empty() { tokio::task::yield_now().await } } => {}
    }
    let began = Instant::now();
    cancel.cancel();
    assert!(next.await.is_none());
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn by_dropping_the_stream() {
    let (reply, feed, left) = fed();
    let server = Server::start([reply]).await;
    let mut stream =
        model(provider(Kind::Anthropic, &server.url)).stream(request(), CancellationToken::new());
    feed.send(beginning(Kind::Anthropic));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    left.await.unwrap();
}
