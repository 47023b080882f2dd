//! Tests of the streams of one session.

use std::task::{Context, Poll, Waker};

use super::*;
use crate::http::stream::Reader;

fn streams() -> Arc<Streams> {
    Streams::new(7, Arc::default())
}

fn heard(reader: &Reader) -> Option<String> {
    match reader.poll_events(&mut Context::from_waker(Waker::noop()), &mut None) {
        Poll::Ready(Some(frame)) => Some(String::from_utf8(frame.to_vec()).unwrap()),
        Poll::Ready(None) => Some("end".into()),
        Poll::Pending => None,
    }
}

fn place(name: &Name) -> Place {
    Place { name: name.clone(), position: 0 }
}

#[test]
fn an_unasked_message_goes_to_exactly_one_stream_the_newest_that_is_read() {
    let streams = streams();
    assert!(!streams.send("nobody listens".into()));
    let (_, one) = streams.listen(true).unwrap();
    let (_, two) = streams.listen(true).unwrap();
    let (first, second) = (one.attach(0), two.attach(0));
    assert!(streams.send("a".into()));
    assert_eq!(heard(&first), None);
    assert!(heard(&second).unwrap().contains("data: a"));
    drop(second);
    assert!(streams.send("b".into()));
    assert!(heard(&first).unwrap().contains("data: b"));
    drop(first);
    assert!(streams.send("c".into()), "it is kept for a client that comes back");
    let again = two.attach(1);
    assert!(heard(&again).unwrap().contains("data: c"));
}

#[test]
fn unasked_messages_never_go_to_the_answer_of_a_call() {
    let streams = streams();
    let call = Stream::new(&Arc::default(), true);
    streams.register(&call).unwrap();
    let _reader = call.attach(0);
    assert!(!streams.send("x".into()));
}

#[test]
fn a_place_leads_to_its_stream_only_within_its_life() {
    let streams = streams();
    let call = Stream::new(&Arc::default(), true);
    let name = streams.register(&call).unwrap();
    assert!(matches!(streams.find(&place(&name)), Found::Stream(found) if Arc::ptr_eq(&found, &call)));
    let earlier = Name { life: 8, ..name.clone() };
    assert!(matches!(streams.find(&place(&earlier)), Found::Gone));
    let other_kind = Name { kind: Kind::Listening, ..name };
    assert!(
        matches!(streams.find(&place(&other_kind)), Found::Listen),
        "listening begins anew after a restart"
    );
}

#[test]
fn the_oldest_listening_stream_ends_when_there_are_too_many() {
    let streams = streams();
    let open: Vec<_> = (0..=LISTENING).map(|_| streams.listen(true).unwrap()).collect();
    let ended: Vec<bool> = open.iter().map(|(_, stream)| stream.has_ended()).collect();
    assert_eq!(ended, [true, false, false, false, false]);
}

#[test]
fn ended_answers_are_kept_for_a_while_and_not_too_many_of_them() {
    let streams = streams();
    let names: Vec<Name> = (0..KEPT + 5)
        .map(|_| {
            let call = Stream::new(&Arc::default(), true);
            let name = streams.register(&call).unwrap();
            call.end();
            name
        })
        .collect();
    let kept = |name: &Name| matches!(streams.find(&place(name)), Found::Stream(_));
    assert_eq!(names.iter().filter(|name| kept(name)).count(), KEPT);
    assert!(!kept(&names[0]) && kept(&names[KEPT + 4]));
    streams.sweep(1000);
    streams.sweep(1000 + RESUME_WINDOW_MS - 1);
    assert!(kept(&names[KEPT + 4]));
    streams.sweep(1000 + RESUME_WINDOW_MS);
    assert!(!names.iter().any(kept));
}

#[test]
fn a_running_answer_is_kept_and_an_unread_listening_stream_is_not() {
    let streams = streams();
    let call = Stream::new(&Arc::default(), true);
    let running = streams.register(&call).unwrap();
    let (unread, stream) = streams.listen(true).unwrap();
    drop(stream.attach(0));
    streams.sweep(0);
    let (read, stream) = streams.listen(true).unwrap();
    let _reader = stream.attach(0);
    streams.sweep(RESUME_WINDOW_MS);
    assert!(matches!(streams.find(&place(&running)), Found::Stream(_)));
    assert!(matches!(streams.find(&place(&read)), Found::Stream(_)));
    assert!(matches!(streams.find(&place(&unread)), Found::Listen));
}

#[test]
fn a_client_that_comes_back_starts_the_wait_anew() {
    let streams = streams();
    let (name, stream) = streams.listen(true).unwrap();
    streams.sweep(0);
    let reader = stream.attach(0);
    streams.sweep(RESUME_WINDOW_MS);
    drop(reader);
    streams.sweep(RESUME_WINDOW_MS + 1);
    assert!(matches!(streams.find(&place(&name)), Found::Stream(_)));
}

#[test]
fn the_end_of_the_session_ends_every_stream_and_opens_no_other() {
    let streams = streams();
    let (_, stream) = streams.listen(true).unwrap();
    let reader = stream.attach(0);
    streams.end();
    assert_eq!(heard(&reader).unwrap(), "end");
    assert!(streams.listen(true).is_none());
    assert!(streams.register(&Stream::new(&Arc::default(), true)).is_none());
    assert!(!streams.send("x".into()));
}
