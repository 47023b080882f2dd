//! The error body of REST, as a failure of a command: message, what is wrong in particular, hint and exit code.

use http::StatusCode;
use orchestr8_contract::Code;
use serde_json::Value;

use crate::failure::Failure;

/// `{"error":{"code","message","details":{"problems":[{path,message,hint}]}}}` (WF contract, error body).
pub fn refusal(status: StatusCode, body: &Value) -> Failure {
    let error = &body["error"];
    let message =
        error["message"].as_str().map_or_else(|| format!("refused with status {status}"), str::to_owned);
    // The face has fewer words than there are codes; `cause` is the code itself where the word is another.
    let word = |name: &str| error[name].as_str().and_then(code_of);
    let code = word("cause").or_else(|| word("code")).unwrap_or_else(|| code_of_status(status));
    let problems = ["problems", "errors"].map(|name| &error["details"][name]);
    let lines: Vec<String> = problems.iter().flat_map(|list| problem_lines(list)).collect();
    let failure = Failure::new(code, message).listing(lines);
    match error["details"]["hint"].as_str() {
        Some(hint) => failure.hinting(hint),
        None => failure,
    }
}

/// One line for each problem: where, what, and how to mend it.
pub fn problem_lines(problems: &Value) -> Vec<String> {
    let line = |problem: &Value| {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        let (path, message, hint) = (text("path"), text("message"), text("hint"));
        let path = if path.is_empty() { String::from("/") } else { path };
        match hint.is_empty() {
            true => format!("{path}: {message}"),
            false => format!("{path}: {message} ({hint})"),
        }
    };
    problems.as_array().map_or_else(Vec::new, |list| list.iter().map(line).collect())
}

/// Our own code for a word on the wire; the workflows face has some words of its own.
pub fn code_of(word: &str) -> Option<Code> {
    let own = Code::ALL.iter().find(|code| code.as_str() == word).copied();
    own.or(match word {
        "VALIDATION" => Some(Code::InvalidArgument),
        "FORBIDDEN" => Some(Code::Unauthorized),
        "CONFLICT" => Some(Code::IdConflict),
        "SERVICE_UNAVAILABLE" | "RETRYABLE" => Some(Code::Unavailable),
        _ => None,
    })
}

/// For an answer whose code says nothing to us: something between us and the server wrote it.
fn code_of_status(status: StatusCode) -> Code {
    match status.as_u16() {
        401 => Code::Unauthenticated,
        403 => Code::Unauthorized,
        404 => Code::NotFound,
        408 | 504 => Code::Timeout,
        409 | 412 => Code::IdConflict,
        413 => Code::PayloadTooLarge,
        429 => Code::ResourceExhausted,
        400..=499 => Code::InvalidArgument,
        502 | 503 => Code::Unavailable,
        _ => Code::Internal,
    }
}
