//! What an attached process remembers of its conversation, so that another owner can go on with it: the handshake, what was switched
//! on, and the requests that are not answered. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use orchestr8_contract::Code;
use serde_json::{Value, json};

use super::lines::{Heard, Said};

/// Bytes of requests that are kept to be sent again; what is beyond is answered with an error instead.
const KEPT_BYTES: usize = 16 << 20;

/// How often one request is sent to a new owner. One that ends every owner must not end the next as well.
const REPEATS: u32 = 2;

/// One conversation, as it has gone so far.
#[derive(Default)]
pub(super) struct Conversation {
    initialize: Option<Kept>,
    is_initialized: bool,
    /// The line that says that the handshake is over.
    opened: Option<Vec<u8>>,
    level: Option<Kept>,
    subscriptions: BTreeMap<String, Kept>,
    waiting: VecDeque<InFlight>,
    kept_bytes: usize,
    /// Answers to what was said again; the client has them already.
    unwanted: BTreeSet<String>,
}

#[derive(Clone)]
struct Kept {
    id: String,
    line: Vec<u8>,
}

struct InFlight {
    id: Value,
    /// Nothing where a repeat might do something twice, or there is no room.
    line: Option<Vec<u8>>,
    repeats: u32,
}

/// What a new owner is told, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Replay {
    /// The handshake, and the id of its answer.
    pub initialize: Option<(Vec<u8>, String)>,
    /// What follows the answer.
    pub setup: Vec<Vec<u8>>,
    /// Requests that are still to be answered.
    pub requests: Vec<Vec<u8>>,
}

impl Conversation {
    /// Notes a line of the client. True: it is a request, which is answered in any case.
    pub fn note_sent(&mut self, line: &[u8]) -> bool {
        let Ok(said) = serde_json::from_slice::<Said>(line) else { return false };
        let Some(method) = said.method else { return false };
        let Some(id) = said.id.filter(|id| !id.is_null()) else {
            if method == "notifications/initialized" && self.initialize.is_some() {
                self.opened = Some(line.to_vec());
            }
            return false;
        };
        let params = said.params.unwrap_or_default();
        let kept = || Kept { id: id.to_string(), line: line.to_vec() };
        match method.as_str() {
            "initialize" if self.initialize.is_none() => self.initialize = Some(kept()),
            "logging/setLevel" => self.level = Some(kept()),
            "resources/subscribe" => {
                self.subscriptions.insert(params["uri"].to_string(), kept());
            }
            "resources/unsubscribe" => {
                self.subscriptions.remove(&params["uri"].to_string());
            }
            _ => {}
        }
        let is_repeatable = method != "tools/call" || params["_meta"]["idempotencyKey"].is_string();
        let has_room = self.kept_bytes + line.len() <= KEPT_BYTES;
        let line = (is_repeatable && has_room).then(|| line.to_vec());
        self.kept_bytes += line.as_ref().map_or(0, Vec::len);
        self.waiting.push_back(InFlight { id, line, repeats: 0 });
        true
    }

    /// Notes a line of the server. False: the client has this answer already.
    pub fn note_received(&mut self, line: &[u8]) -> bool {
        let Ok(Heard { id: Some(id), method: None }) = serde_json::from_slice::<Heard>(line) else {
            return true;
        };
        let text = id.to_string();
        if self.unwanted.remove(&text) {
            return false;
        }
        self.is_initialized |= self.initialize.as_ref().is_some_and(|kept| kept.id == text);
        if let Some(at) = self.waiting.iter().position(|request| request.id == id)
            && let Some(request) = self.waiting.remove(at)
        {
            self.kept_bytes -= request.line.map_or(0, |line| line.len());
        }
        true
    }

    /// Whether requests are still to be answered.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The owner is gone: answers what cannot be repeated, and says what the next owner is to be told.
    pub fn lose(&mut self) -> (Vec<Vec<u8>>, Replay) {
        let mut answers = Vec::new();
        self.waiting.retain_mut(|request| {
            request.repeats += 1;
            let is_kept = request.line.is_some() && request.repeats <= REPEATS;
            if !is_kept {
                self.kept_bytes -= request.line.take().map_or(0, |line| line.len());
                answers.push(unknown(&request.id));
            }
            is_kept
        });
        let mut replay = Replay::default();
        self.unwanted.clear();
        if let Some(kept) = &self.initialize {
            if self.is_initialized {
                self.unwanted.insert(kept.id.clone());
            }
            replay.initialize = Some((kept.line.clone(), kept.id.clone()));
            replay.setup.extend(self.opened.clone());
        }
        let initialize = self.initialize.as_ref().map(|kept| kept.id.clone());
        let pending: BTreeSet<String> = self.waiting.iter().map(|request| request.id.to_string()).collect();
        for kept in self.level.iter().chain(self.subscriptions.values()) {
            // One that is not answered yet is among the requests.
            if !pending.contains(&kept.id) {
                self.unwanted.insert(kept.id.clone());
                replay.setup.push(kept.line.clone());
            }
        }
        let requests = self.waiting.iter().filter(|request| Some(request.id.to_string()) != initialize);
        replay.requests.extend(requests.filter_map(|request| request.line.clone()));
        (answers, replay)
    }

    /// There is no other owner: every request is answered.
    pub fn give_up(&mut self) -> Vec<Vec<u8>> {
        self.kept_bytes = 0;
        self.waiting.drain(..).map(|request| unknown(&request.id)).collect()
    }
}

/// The answer to a call of which it is not known whether it took effect.
fn unknown(id: &Value) -> Vec<u8> {
    let message =
        "the process that owned the data ended during the call; whether it took effect is not known";
    let error = json!({
        "code": Code::OutcomeUnknown, "message": message, "details": {"reason": "owner_lost"},
        "hint": "look whether the effect is there; a call with _meta.idempotencyKey is repeated by itself",
    });
    let content = json!([{"type": "text", "text": error.to_string()}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": content, "isError": true}})
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(conversation: &mut Conversation, message: Value) -> bool {
        conversation.note_sent(message.to_string().as_bytes())
    }

    fn heard(conversation: &mut Conversation, message: Value) -> bool {
        conversation.note_received(message.to_string().as_bytes())
    }

    fn methods(lines: &[Vec<u8>]) -> Vec<String> {
        let method = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).unwrap()["method"].to_string();
        lines.iter().map(method).collect()
    }

    fn opened() -> Conversation {
        let mut conversation = Conversation::default();
        assert!(said(&mut conversation, json!({"id": 0, "method": "initialize", "params": {}})));
        assert!(heard(&mut conversation, json!({"id": 0, "result": {}})));
        assert!(!said(&mut conversation, json!({"method": "notifications/initialized"})));
        conversation
    }

    #[test]
    fn a_new_owner_hears_the_handshake_and_what_was_switched_on_and_the_client_no_answer_twice() {
        let mut conversation = opened();
        said(&mut conversation, json!({"id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}));
        heard(&mut conversation, json!({"id": 1, "result": {}}));
        for (id, method, uri) in [
            (2, "resources/subscribe", "a"),
            (3, "resources/subscribe", "b"),
            (4, "resources/unsubscribe", "a"),
        ] {
            said(&mut conversation, json!({"id": id, "method": method, "params": {"uri": uri}}));
            heard(&mut conversation, json!({"id": id, "result": {}}));
        }
        let (answers, replay) = conversation.lose();
        assert!(answers.is_empty() && replay.requests.is_empty());
        assert_eq!(replay.initialize.unwrap().1, "0");
        assert_eq!(
            methods(&replay.setup),
            ["\"notifications/initialized\"", "\"logging/setLevel\"", "\"resources/subscribe\""]
        );
        for id in [0, 1, 3] {
            assert!(!heard(&mut conversation, json!({"id": id, "result": {}})), "{id}");
            assert!(heard(&mut conversation, json!({"id": id, "result": {}})), "only once");
        }
    }

    #[test]
    fn what_is_safe_is_sent_again_and_the_rest_is_answered() {
        let mut conversation = opened();
        said(&mut conversation, json!({"id": "list", "method": "tools/list"}));
        said(&mut conversation, json!({"id": 7, "method": "tools/call", "params": {"name": "pay"}}));
        let keyed = json!({"name": "pay", "_meta": {"idempotencyKey": "k"}});
        said(&mut conversation, json!({"id": 8, "method": "tools/call", "params": keyed}));
        // An answer of the client to a question of the server is no request.
        assert!(!said(&mut conversation, json!({"id": 9, "result": {}})));
        let (answers, replay) = conversation.lose();
        assert_eq!(methods(&replay.requests), ["\"tools/list\"", "\"tools/call\""]);
        let answer: Value = serde_json::from_slice(&answers[0]).unwrap();
        assert_eq!(
            (answers.len(), &answer["id"], &answer["result"]["isError"]),
            (1, &json!(7), &json!(true))
        );
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("OUTCOME_UNKNOWN"));
        assert!(heard(&mut conversation, json!({"id": 8, "result": {}})) && conversation.is_waiting());
        assert_eq!(conversation.give_up().len(), 1);
        assert!(!conversation.is_waiting());
    }

    #[test]
    fn a_request_that_ends_every_owner_is_given_up() {
        let mut conversation = opened();
        said(&mut conversation, json!({"id": 1, "method": "tools/list"}));
        for _ in 0..REPEATS {
            assert_eq!(conversation.lose().1.requests.len(), 1);
        }
        let (answers, replay) = conversation.lose();
        assert_eq!((answers.len(), replay.requests.len()), (1, 0));
        assert!(!conversation.is_waiting());
    }

    #[test]
    fn a_handshake_that_was_not_answered_is_answered_by_the_next_owner() {
        let mut conversation = Conversation::default();
        said(&mut conversation, json!({"id": 0, "method": "initialize", "params": {}}));
        let (_, replay) = conversation.lose();
        assert!(replay.initialize.is_some() && replay.requests.is_empty());
        assert!(heard(&mut conversation, json!({"id": 0, "result": {}})), "the client has not got it yet");
    }
}
