//! A client of workflows that no death of the server puts off: it starts executions, follows them, decides what they ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use super::ledger::Ledger;
use super::shapes::{SHAPES, Shape};
use crate::lives::random;
use crate::server::{Answer, Http};

/// How long to wait for an end before looking at what is finished so far.
const LOOK: &str = "25ms";

/// One of so many ended executions is asked for again under its key.
const ASK_AGAIN: u64 = 4;

/// What the clients share.
pub struct Board {
    pub ledger: Arc<Ledger>,
    /// By shape.
    pub definitions: Vec<Value>,
    pub finish: AtomicBool,
    pub replayed: AtomicU64,
}

/// An execution that was acknowledged, and has ended.
pub struct Ended {
    pub shape: Shape,
    pub key: String,
    pub id: String,
}

/// The server is gone: what was asked may have happened or not.
struct Gone;

impl From<std::io::Error> for Gone {
    fn from(_: std::io::Error) -> Self {
        Gone
    }
}

pub fn client(number: usize, board: &Board) -> Vec<Ended> {
    let mut client = Client { number, board, ended: Vec::new(), current: None, unanswered: false };
    let mut generation = 0;
    loop {
        let address;
        (generation, address) = board.ledger.lives.server_after(generation);
        let Ok(mut http) = Http::connect(address) else { continue };
        while let Ok(goes_on) = client.turn(&mut http) {
            if !goes_on {
                return client.ended;
            }
        }
    }
}

struct Client<'b> {
    number: usize,
    board: &'b Board,
    ended: Vec<Ended>,
    /// The execution under way, once it was acknowledged.
    current: Option<String>,
    /// A start was sent, and whether it happened is not known.
    unanswered: bool,
}

impl Client<'_> {
    fn shape(&self, at: usize) -> usize {
        (self.number + at) % SHAPES.len()
    }

    fn key(&self, at: usize) -> String {
        format!("client-{}-{at}", self.number)
    }

    /// False when there is nothing more to do.
    fn turn(&mut self, http: &mut Http) -> Result<bool, Gone> {
        let at = self.ended.len();
        let Some(id) = self.current.clone() else {
            if self.board.finish.load(Ordering::SeqCst) && at > 0 && !self.unanswered {
                return Ok(false);
            }
            self.unanswered = true;
            self.current = Some(self.execute(http, at)?.0);
            self.unanswered = false;
            self.board.ledger.lives.advance();
            return Ok(true);
        };
        let shape = SHAPES[self.shape(at)];
        let answer = ask(http, "GET", &format!("/v1/executions/{id}?wait={LOOK}"), "", None)?;
        assert_eq!(answer.status, 200, "{id} was acknowledged: {answer:?}");
        let resource = answer.json();
        for key in shape.keys(&id, &resource) {
            self.board.ledger.finish(key);
        }
        if shape == Shape::Approval && resource["steps"]["w"]["status"] == "waiting" {
            decide(http, &id)?;
        }
        if matches!(resource["status"].as_str(), Some("completed" | "failed" | "cancelled" | "compensated")) {
            assert_eq!(resource["status"], shape.status(), "{resource:#}");
            shape.check_outputs(&id, &resource);
            self.ended.push(Ended { shape, key: self.key(at), id });
            self.current = None;
            self.ask_again(http)?;
        }
        Ok(true)
    }

    /// Starts an execution, or finds the one that was started when nobody heard the answer.
    fn execute(&self, http: &mut Http, at: usize) -> Result<(String, bool), Gone> {
        let body = json!({"workflow": self.board.definitions[self.shape(at)]}).to_string();
        let key = format!("Idempotency-Key: {}\r\n", self.key(at));
        let answer = ask(http, "POST", "/v1/workflows/execute", &key, Some(&body))?;
        assert_eq!(answer.status, 202, "{answer:?}");
        let replayed = answer.head.to_ascii_lowercase().contains("idempotency-replayed: true");
        self.board.replayed.fetch_add(u64::from(replayed), Ordering::SeqCst);
        Ok((answer.json()["executionId"].as_str().unwrap().to_owned(), replayed))
    }

    /// The same key gives the same execution, in this life and in the next.
    fn ask_again(&self, http: &mut Http) -> Result<(), Gone> {
        let count = self.ended.len();
        let mut random = random(u64::try_from(self.number * 100_000 + count).unwrap());
        if random(ASK_AGAIN) == 0 {
            let at = usize::try_from(random(count as u64)).unwrap();
            let (id, replayed) = self.execute(http, at)?;
            assert_eq!((&id, replayed), (&self.ended[at].id, true), "{} has two executions", self.key(at));
        }
        Ok(())
    }
}

/// Lets an execution that waits for a person go on. If nobody heard the answer it has been decided already.
fn decide(http: &mut Http, id: &str) -> Result<(), Gone> {
    let open = ask(http, "GET", &format!("/v1/approvals?executionId={id}"), "", None)?.json();
    let Some(token) = open["approvals"][0]["token"].as_str() else { return Ok(()) };
    let body = json!({"decision": "approve", "onBehalfOf": id}).to_string();
    let answer = ask(http, "POST", &format!("/v1/approvals/{token}"), "", Some(&body))?;
    assert!(matches!(answer.status, 200 | 404), "{answer:?}");
    Ok(())
}

fn ask(
    http: &mut Http,
    method: &str,
    target: &str,
    headers: &str,
    body: Option<&str>,
) -> Result<Answer, Gone> {
    let answer = http.request(method, target, headers, body)?;
    // A server that is being killed may cut its last answer off.
    if serde_json::from_str::<Value>(&answer.body).is_err() {
        return Err(Gone);
    }
    Ok(answer)
}
