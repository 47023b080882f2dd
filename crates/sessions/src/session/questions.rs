//! Questions to the people who follow a session, and their answers.

use std::collections::HashMap;

use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::limits;

/// The questions that wait for an answer.
#[derive(Default)]
pub struct Questions(Mutex<HashMap<String, Open>>);

struct Open {
    method: &'static str,
    answer: oneshot::Sender<Value>,
}

impl Questions {
    /// Waits for the answer to a question, which must not have been asked before.
    pub fn ask(&self, id: &str, method: &'static str) -> Result<oneshot::Receiver<Value>, Fault> {
        let mut open = self.0.lock();
        if open.len() >= limits::QUESTIONS {
            return Err(Fault::new(
                Code::ResourceExhausted,
                format!("{} questions wait for an answer already", limits::QUESTIONS),
            ));
        }
        let (answer, receiver) = oneshot::channel();
        open.insert(id.to_owned(), Open { method, answer });
        Ok(receiver)
    }

    /// The answer of whoever answers first.
    pub fn answer(&self, id: &str, response: Value) -> Result<(), Fault> {
        let mut open = self.0.lock();
        let Some(question) = open.get(id) else {
            return Err(Fault::new(Code::NotFound, format!("No pending UI request with id '{id}'")));
        };
        let given = response["method"].as_str().unwrap_or_default();
        if given != question.method && given != "cancelled" {
            return Err(Fault::invalid(format!(
                "UI request '{id}' expects a '{}' response, got '{given}'",
                question.method
            )));
        }
        if let Some(question) = open.remove(id) {
            // Whoever asked may have given up meanwhile.
            let _ = question.answer.send(response);
        }
        Ok(())
    }

    pub fn withdraw(&self, id: &str) {
        self.0.lock().remove(id);
    }
}
