//! Tests of one event stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use orchestr8_contract::id::CorrelationId;

use super::*;
use crate::http::event::Kind;

const NAME: Name = Name { life: 1, kind: Kind::Call, number: 2 };

fn stream() -> (Arc<Stream>, Arc<Budget>) {
    let budget = Arc::new(Budget::default());
    (Stream::new(&budget, true), budget)
}

fn reply(text: &str) -> Reply {
    Reply {
        text: text.into(),
        status: 200,
        correlation: CorrelationId::parse("c").unwrap(),
        is_replay: false,
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(reader: &Reader) -> Poll<Option<String>> {
    let mut context = Context::from_waker(Waker::noop());
    reader
        .poll_events(&mut context, &mut None)
        .map(|frame| frame.map(|frame| String::from_utf8(frame.to_vec()).unwrap()))
}

fn begun(stream: &Stream) -> Option<Begun> {
    match stream.poll_begun(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(begun) => Some(begun),
        Poll::Pending => None,
    }
}

#[test]
fn a_lone_reply_is_no_stream() {
    let (stream, _) = stream();
    assert!(begun(&stream).is_none());
    stream.finish(Some(reply("{}")));
    assert!(matches!(begun(&stream), Some(Begun::Reply(Some(reply))) if reply.text == "{}"));
}

#[test]
fn a_cancelled_request_has_no_reply() {
    let (stream, _) = stream();
    stream.finish(None);
    assert!(matches!(begun(&stream), Some(Begun::Reply(None))));
}

#[test]
fn the_first_message_makes_it_a_stream_and_the_reply_its_last_event() {
    let (stream, _) = stream();
    assert!(stream.send("1".into()));
    assert!(matches!(begun(&stream), Some(Begun::Events)));
    stream.name(NAME);
    stream.finish(Some(reply("2")));
    assert!(!stream.send("late".into()), "nothing follows the reply");
    let reader = stream.attach(0);
    let both = "id: 00000001-c2-1\nevent: message\ndata: 1\n\nid: 00000001-c2-2\nevent: message\ndata: 2\n\n";
    assert_eq!(poll(&reader), Poll::Ready(Some(both.into())));
    assert_eq!(poll(&reader), Poll::Ready(None));
}

#[test]
fn what_goes_first_goes_with_the_first_event() {
    let (stream, _) = stream();
    stream.send("1".into());
    let reader = stream.attach(0);
    let mut first = Some(Bytes::from_static(b":\n\n"));
    let frame = reader.poll_events(&mut Context::from_waker(Waker::noop()), &mut first);
    assert_eq!(frame, Poll::Ready(Some(Bytes::from_static(b":\n\nevent: message\ndata: 1\n\n"))));
    assert!(first.is_none());
}

#[test]
fn a_stream_begun_in_silence_still_ends_with_its_reply() {
    let (stream, _) = stream();
    stream.finish(Some(reply("1")));
    let reader = stream.attach(0);
    assert_eq!(poll(&reader), Poll::Ready(Some("event: message\ndata: 1\n\n".into())));
    assert_eq!(poll(&reader), Poll::Ready(None));
}

#[test]
fn whoever_waits_is_woken_by_news_and_by_the_end() {
    let (stream, _) = stream();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut context = Context::from_waker(&waker);
    let reader = stream.attach(0);
    let mut waits = || assert!(reader.poll_events(&mut context, &mut None).is_pending());
    waits();
    stream.send("1".into());
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&reader), Poll::Ready(Some(_))));
    waits();
    stream.close();
    assert_eq!(bell.0.load(Ordering::SeqCst), 2);
}

#[test]
fn a_reader_resumes_after_the_last_event_it_saw() {
    let (stream, _) = stream();
    stream.name(NAME);
    for text in ["1", "2", "3"] {
        stream.send(text.into());
    }
    let first = stream.attach(0);
    assert!(matches!(poll(&first), Poll::Ready(Some(_))));
    drop(first);
    assert!(!stream.is_attached());
    let second = stream.attach(2);
    assert_eq!(poll(&second), Poll::Ready(Some("id: 00000001-c2-3\nevent: message\ndata: 3\n\n".into())));
    assert!(poll(&second).is_pending());
    let beyond = stream.attach(99);
    stream.send("4".into());
    assert_eq!(poll(&beyond), Poll::Ready(Some("id: 00000001-c2-4\nevent: message\ndata: 4\n\n".into())));
    assert_eq!(poll(&second), Poll::Ready(None), "the newer reader has taken its place");
}

#[test]
fn a_replaced_reader_does_not_detach_the_one_after_it() {
    let (stream, _) = stream();
    let first = stream.attach(0);
    let second = stream.attach(0);
    drop(first);
    assert!(stream.is_attached());
    drop(second);
    assert!(!stream.is_attached());
}

#[test]
fn closing_ends_the_reader_but_not_the_stream() {
    let (stream, _) = stream();
    stream.name(NAME);
    stream.close();
    assert!(matches!(begun(&stream), Some(Begun::Events)), "the client must be told where to come back to");
    let first = stream.attach(0);
    assert_eq!(poll(&first), Poll::Ready(None));
    drop(first);
    stream.finish(Some(reply("1")));
    let second = stream.attach(0);
    assert_eq!(poll(&second), Poll::Ready(Some("id: 00000001-c2-1\nevent: message\ndata: 1\n\n".into())));
    assert_eq!(poll(&second), Poll::Ready(None));
}

#[test]
fn a_client_that_was_not_primed_is_not_asked_to_come_back() {
    let stream = Stream::new(&Arc::default(), false);
    let reader = stream.attach(0);
    stream.close();
    assert!(poll(&reader).is_pending());
}

#[test]
fn a_slow_reader_loses_the_newest_messages_but_never_the_reply() {
    let (stream, budget) = stream();
    stream.name(NAME);
    let message = "x".repeat(EVENT_BYTES / 4);
    let taken = (0..9).filter(|_| stream.send(message.clone())).count();
    assert_eq!(taken, 4);
    assert_eq!(budget.taken(), EVENT_BYTES);
    stream.finish(Some(reply("the reply")));
    let reader = stream.attach(0);
    let mut seen = String::new();
    while let Poll::Ready(Some(frame)) = poll(&reader) {
        seen.push_str(&frame);
    }
    assert!(seen.ends_with("data: the reply\n\n"));
}

#[test]
fn many_small_messages_are_bounded_too() {
    let (stream, _) = stream();
    assert_eq!((0..2 * EVENTS).filter(|_| stream.send(String::new())).count(), EVENTS);
}

#[test]
fn what_was_delivered_makes_way_for_what_is_new() {
    let (stream, budget) = stream();
    stream.name(NAME);
    let reader = stream.attach(0);
    for _ in 0..20 {
        assert!(stream.send("x".repeat(EVENT_BYTES / 2)));
        assert!(matches!(poll(&reader), Poll::Ready(Some(_))));
    }
    assert_eq!(budget.taken(), EVENT_BYTES, "the last two are kept for a client that comes back");
}

#[test]
fn a_stream_without_a_name_keeps_nothing_it_has_delivered() {
    let (stream, budget) = stream();
    let reader = stream.attach(0);
    stream.send("1".into());
    assert_eq!(budget.taken(), 1);
    assert!(matches!(poll(&reader), Poll::Ready(Some(_))));
    assert_eq!(budget.taken(), 0);
}

#[test]
fn all_streams_together_are_bounded_and_give_back_what_they_held() {
    let budget = Arc::new(Budget::default());
    let streams: Vec<_> = (0..70).map(|_| Stream::new(&budget, true)).collect();
    let taken = streams.iter().filter(|stream| stream.send("x".repeat(EVENT_BYTES))).count();
    assert_eq!(taken * EVENT_BYTES, ALL_BYTES);
    drop(streams);
    assert_eq!(budget.taken(), 0);
}

#[test]
fn a_large_backlog_is_handed_out_in_pieces() {
    let (stream, _) = stream();
    for _ in 0..10 {
        stream.send("x".repeat(FRAME_BYTES / 2));
    }
    let reader = stream.attach(0);
    let mut frames = 0;
    while let Poll::Ready(Some(frame)) = poll(&reader) {
        assert!(frame.len() <= FRAME_BYTES + 64);
        frames += 1;
    }
    assert_eq!(frames, 10);
}
