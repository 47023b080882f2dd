//! Passes lines between the client of an attached process and the owner of the data, and goes on with the next owner when one ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::lines::{Heard, LineSplitter, Piece};
use super::replay::{Conversation, Replay};
use crate::failure::Failure;

/// What one read takes at most.
const READ_BYTES: usize = 65_536;

/// A client on one side and owners on the other, one after the other. Clones share it.
#[derive(Clone)]
pub struct LineProxy(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    conversation: Conversation,
    /// Nothing while the next owner is looked for.
    owner: Option<Arc<OwnerLink>>,
    /// The client says no more.
    has_ended: bool,
    /// There is no owner any more.
    is_over: bool,
}

/// The connection to one owner.
struct OwnerLink {
    socket: Socket,
    /// Lines of several threads are written one after the other.
    writing: Mutex<()>,
}

impl OwnerLink {
    fn new(socket: Socket) -> Arc<Self> {
        Arc::new(Self { socket, writing: Mutex::new(()) })
    }

    fn write(&self, line: &[u8], end: &[u8]) -> io::Result<()> {
        let _turn = self.writing.lock();
        (&self.socket).write_all(line)?;
        (&self.socket).write_all(end)
    }
}

impl LineProxy {
    pub fn new(owner: Socket) -> Self {
        let state = State { owner: Some(OwnerLink::new(owner)), ..State::default() };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// The client says no more: the owner answers what it has, and the conversation ends.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        state.has_ended = true;
        if let Some(owner) = &state.owner {
            let _ = owner.socket.shutdown(Shutdown::Write);
        }
        self.0.changed.notify_all();
    }

    /// Passes lines until the conversation ends. `next_owner` connects to another owner, or makes this process one.
    pub fn run(
        &self,
        input: impl Read + Send + 'static,
        mut output: impl Write,
        line_bytes: usize,
        mut next_owner: impl FnMut() -> Result<Socket, Failure>,
    ) -> Result<(), Failure> {
        let client = self.clone();
        let reading = std::thread::Builder::new().name("attach-read".into());
        if reading.spawn(move || client.pass_on(input, line_bytes)).is_err() {
            self.end();
        }
        let mut lines = LineSplitter::new(line_bytes);
        loop {
            let Some(owner) = self.0.state.lock().owner.clone() else { return Ok(()) };
            if self.pass_back(&owner, &mut lines, &mut output, |_| false).is_err() {
                // The client reads no more.
                let _ = owner.socket.shutdown(Shutdown::Both);
                return Ok(());
            }
            lines = LineSplitter::new(line_bytes);
            if !self.recover(&mut output, &mut lines, &mut next_owner)? {
                return Ok(());
            }
        }
    }

    /// From the client to the owner.
    fn pass_on(&self, mut input: impl Read, line_bytes: usize) {
        let (mut lines, mut chunk) = (LineSplitter::new(line_bytes), vec![0; READ_BYTES]);
        loop {
            let read = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut is_over = false;
            lines.feed(&chunk[..read], |piece| is_over = is_over || !self.send(&piece));
            if is_over {
                return;
            }
        }
        // A last line without a line end is a line all the same.
        if let Some(rest) = lines.rest() {
            self.send(&Piece::Line(&rest));
        }
        self.end();
    }

    /// False: there is no owner any more.
    fn send(&self, piece: &Piece<'_>) -> bool {
        let mut failed: Option<Arc<OwnerLink>> = None;
        loop {
            let mut state = self.0.state.lock();
            let owner = loop {
                let is_new = |owner: &&Arc<OwnerLink>| {
                    failed.as_ref().is_none_or(|failed| !Arc::ptr_eq(failed, owner))
                };
                match state.owner.as_ref().filter(is_new) {
                    Some(owner) => break owner.clone(),
                    None if state.is_over => return false,
                    None => self.0.changed.wait(&mut state),
                }
            };
            let (is_request, written) = match piece {
                Piece::Line(line) => {
                    let is_request = state.conversation.note_sent(line);
                    drop(state);
                    (is_request, owner.write(line, b"\n"))
                }
                Piece::Part(part) => {
                    drop(state);
                    // Nothing is kept of it: what of it was lost with an owner is lost.
                    (true, owner.write(part, b""))
                }
            };
            // What is a request is sent again, or answered, by the thread that finds the next owner.
            if written.is_ok() || is_request {
                return true;
            }
            failed = Some(owner);
        }
    }

    /// From the owner to the client, until the owner ends or `is_enough` says so of a line. Fails if the client reads no more.
    fn pass_back(
        &self,
        owner: &OwnerLink,
        lines: &mut LineSplitter,
        output: &mut impl Write,
        mut is_enough: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<()> {
        let (mut chunk, mut enough) = (vec![0; READ_BYTES], false);
        while !enough {
            let read = match (&owner.socket).read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Ok(()),
            };
            let mut out = Vec::new();
            lines.feed(&chunk[..read], |piece| match piece {
                Piece::Line(line) => {
                    enough |= is_enough(line);
                    if self.0.state.lock().conversation.note_received(line) {
                        out.extend_from_slice(line);
                        out.push(b'\n');
                    }
                }
                Piece::Part(part) => out.extend_from_slice(part),
            });
            output.write_all(&out).and_then(|()| output.flush())?;
        }
        Ok(())
    }

    /// The owner has ended. False: the conversation is over. A failure is told to the client's requests first.
    fn recover(
        &self,
        output: &mut impl Write,
        lines: &mut LineSplitter,
        next_owner: &mut impl FnMut() -> Result<Socket, Failure>,
    ) -> Result<bool, Failure> {
        let (answers, replay) = {
            let mut state = self.0.state.lock();
            state.owner = None;
            if state.has_ended && !state.conversation.is_waiting() {
                return Ok(false);
            }
            state.conversation.lose()
        };
        if !say(output, &answers) || self.is_done() {
            return Ok(false);
        }
        match next_owner() {
            Ok(socket) => {
                self.introduce(OwnerLink::new(socket), replay, output, lines);
                Ok(true)
            }
            Err(failure) => {
                let answers = {
                    let mut state = self.0.state.lock();
                    state.is_over = true;
                    self.0.changed.notify_all();
                    state.conversation.give_up()
                };
                say(output, &answers);
                Err(failure)
            }
        }
    }

    fn is_done(&self) -> bool {
        let state = self.0.state.lock();
        state.has_ended && !state.conversation.is_waiting()
    }

    /// Brings a new owner to where the conversation is. One that ends meanwhile is found out by the next read.
    fn introduce(
        &self,
        owner: Arc<OwnerLink>,
        replay: Replay,
        output: &mut impl Write,
        lines: &mut LineSplitter,
    ) {
        let Replay { initialize, setup, requests } = replay;
        if let Some((line, id)) = initialize
            && owner.write(&line, b"\n").is_ok()
        {
            let is_answer = |line: &[u8]| {
                serde_json::from_slice::<Heard>(line).is_ok_and(|heard| {
                    heard.method.is_none() && heard.id.map(|id| id.to_string()).as_ref() == Some(&id)
                })
            };
            let _ = self.pass_back(&owner, lines, output, is_answer);
        }
        for line in setup {
            let _ = owner.write(&line, b"\n");
        }
        let mut state = self.0.state.lock();
        state.owner = Some(owner.clone());
        self.0.changed.notify_all();
        drop(state);
        // Beside the thread that reads the answers: neither side may wait for the other.
        let proxy = self.clone();
        let repeat = move || {
            for line in requests {
                let _ = owner.write(&line, b"\n");
            }
            if proxy.0.state.lock().has_ended {
                let _ = owner.socket.shutdown(Shutdown::Write);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("attach-repeat".into()).spawn(repeat) {
            drop(error);
            self.end();
        }
    }
}

/// False: the client reads no more.
fn say(output: &mut impl Write, lines: &[Vec<u8>]) -> bool {
    let write = |line: &Vec<u8>, output: &mut dyn Write| {
        output.write_all(line)?;
        output.write_all(b"\n")
    };
    lines.iter().try_for_each(|line| write(line, output)).and_then(|()| output.flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::sync::mpsc;

    use serde_json::{Value, json};

    use super::*;

    /// One side of a connection, line by line.
    struct End {
        lines: std::io::Lines<BufReader<Socket>>,
        socket: Socket,
    }

    impl End {
        fn of(socket: Socket) -> Self {
            Self { lines: BufReader::new(socket.try_clone().unwrap()).lines(), socket }
        }

        fn say(&self, message: &Value) {
            (&self.socket).write_all(format!("{message}\n").as_bytes()).unwrap();
        }

        fn hear(&mut self) -> Value {
            serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
        }
    }

    #[test]
    fn a_conversation_goes_on_with_the_next_owner_and_ends_with_its_client() {
        let (client, client_end) = Socket::pair().unwrap();
        let (first, first_end) = Socket::pair().unwrap();
        let (second, second_end) = Socket::pair().unwrap();
        let proxy = LineProxy::new(first_end);
        let (next, nexts) = mpsc::channel();
        next.send(second_end).unwrap();
        let (input, output) = (client_end.try_clone().unwrap(), client_end);
        let running = std::thread::spawn(move || {
            proxy.run(input, output, 1000, || {
                let gone = || Failure::new(orchestr8_contract::Code::Unavailable, "no owner");
                nexts.try_recv().map_err(|_| gone())
            })
        });
        let (mut client, mut first, mut second) = (End::of(client), End::of(first), End::of(second));
        let (initialize, opened) =
            (json!({"id": 0, "method": "initialize"}), json!({"method": "notifications/initialized"}));
        client.say(&initialize);
        assert_eq!(first.hear(), initialize);
        first.say(&json!({"id": 0, "result": 1}));
        assert_eq!(client.hear(), json!({"id": 0, "result": 1}));
        let (list, pay) =
            (json!({"id": 1, "method": "tools/list"}), json!({"id": 2, "method": "tools/call"}));
        for message in [&opened, &list, &pay] {
            client.say(message);
            assert_eq!(&first.hear(), message);
        }
        drop(first);
        assert_eq!(client.hear()["id"], 2, "what may have taken effect is not repeated");
        assert_eq!(second.hear(), initialize);
        second.say(&json!({"id": 0, "result": 2}));
        assert_eq!((second.hear(), second.hear()), (opened, list));
        second.say(&json!({"id": 1, "result": 3}));
        assert_eq!(client.hear(), json!({"id": 1, "result": 3}), "and not the handshake a second time");
        let more = json!({"id": 4, "method": "ping"});
        client.say(&more);
        assert_eq!(second.hear(), more);
        client.socket.shutdown(Shutdown::Write).unwrap();
        assert!(second.lines.next().is_none(), "the end of the client is told");
        second.say(&json!({"id": 4, "result": 5}));
        assert_eq!(client.hear()["id"], 4, "the last answer is passed back");
        drop(second);
        running.join().unwrap().unwrap();
    }

    #[test]
    fn without_another_owner_every_request_is_answered() {
        let (client, client_end) = Socket::pair().unwrap();
        let (owner, owner_end) = Socket::pair().unwrap();
        let proxy = LineProxy::new(owner_end);
        let (input, output) = (client_end.try_clone().unwrap(), client_end);
        let running = std::thread::spawn(move || {
            proxy.run(input, output, 1000, || {
                Err(Failure::new(orchestr8_contract::Code::Unavailable, "no owner"))
            })
        });
        let (mut client, mut owner) = (End::of(client), End::of(owner));
        client.say(&json!({"id": 1, "method": "tools/list"}));
        owner.hear();
        drop(owner);
        let answer = client.hear();
        assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)));
        assert!(running.join().unwrap().is_err());
    }
}
