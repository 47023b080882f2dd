//! What a provider's refusal means to us: whether to try again, when, and what to change. Keys never show up in it.

use orchestr8_contract::{Code, FailureCategory, Fault};
use orchestr8_kernel::redact::REDACTED;
use orchestr8_kernel::resilience::retry::{RETRY_AFTER_MS, parse_retry_after};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::limits::REFUSAL_CHARS;
use crate::secret::Secret;

/// What a provider says about a failure, in whichever of the usual forms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Words for programs: the type and the code of the error.
    pub words: Vec<String>,
    /// The sentence for people.
    pub message: String,
}

impl Said {
    /// Reads `{"error": {"type", "code", "message"}}`, `{"error": "message"}`, `{"type", "message"}`, or takes the text
    /// as it is.
    pub fn read(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::of(value.get("error").unwrap_or(&value)),
            Err(_) => Self { words: Vec::new(), message: body.trim().to_owned() },
        }
    }

    pub fn of(error: &Value) -> Self {
        let word = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let message = error.as_str().map(str::to_owned).or_else(|| word("message")).unwrap_or_default();
        Self { words: [word("type"), word("code")].into_iter().flatten().collect(), message }
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }

    /// Only one of the providers has a word for it; the others have a sentence, so it is looked for there.
    fn is_too_long(&self) -> bool {
        let message = self.message.to_lowercase();
        self.is("context_length_exceeded")
            || ["prompt is too long", "context length", "context window", "context size", "too many tokens"]
                .iter()
                .any(|sentence| message.contains(sentence))
    }
}

/// The fault for a status that is not 2xx.
pub fn of_status(status: u16, said: &Said, provider: &str, key: Option<&Secret>) -> Fault {
    let overloaded = said.is("overloaded_error");
    let fault = match status {
        _ if overloaded => overload(provider),
        300..=399 => Fault::new(
            Code::Configuration,
            format!(
                "models: {provider} answered with a redirect, which is not followed: correct its base URL"
            ),
        ),
        401 | 403 | 407 => unwelcome(provider),
        402 => used_up(provider),
        404 | 410 => Fault::new(Code::NotFound, format!("{provider} does not know the model or the address")),
        413 => too_long(provider),
        429 if said.is("insufficient_quota") => used_up(provider),
        429 => too_often(provider),
        408 | 409 | 425 | 500..=599 => {
            Fault::new(Code::Unavailable, format!("{provider} failed with the status {status}"))
        }
        _ if said.is_too_long() => too_long(provider),
        _ => Fault::invalid(format!("{provider} refused the request with the status {status}")),
    };
    let fault = fault.with("provider", provider).with("status", status);
    // What is said about a key may repeat it.
    if matches!(status, 401 | 403 | 407) { fault } else { quoting(fault, said, key) }
}

/// The fault for an error that comes in the middle of a stream, where there is no status.
pub fn of_event(said: &Said, provider: &str, key: Option<&Secret>) -> Fault {
    let fault = if said.is("overloaded_error") {
        overload(provider)
    } else if said.is("insufficient_quota") || said.is("billing_error") {
        used_up(provider)
    } else if said.is("rate_limit_error") || said.is("rate_limit_exceeded") {
        too_often(provider)
    } else if said.is("authentication_error") || said.is("permission_error") {
        return unwelcome(provider).with("provider", provider);
    } else if said.is_too_long() || said.is("request_too_large") {
        too_long(provider)
    } else if said.is("invalid_request_error") {
        Fault::invalid(format!("{provider} refused the request"))
    } else {
        Fault::new(Code::Unavailable, format!("{provider} failed while it answered"))
            .with("reason", "stream_broken")
    };
    quoting(fault.with("provider", provider), said, key)
}

/// A stream that is cut or makes no sense.
pub fn broken(why: &'static str) -> Fault {
    Fault::new(Code::Unavailable, format!("the answer of the model broke off: {why}"))
        .in_category(FailureCategory::Network)
        .with("reason", "stream_broken")
}

/// How long the provider wants us to wait: in milliseconds, in seconds or as a date.
pub fn retry_after_ms(headers: &HeaderMap, now_ms: i64) -> Option<u64> {
    let text =
        |header: &reqwest::header::HeaderValue| header.to_str().ok().map(|text| text.trim().to_owned());
    if let Some(ms) = headers.get("retry-after-ms").and_then(text).and_then(|text| text.parse().ok()) {
        return Some(ms);
    }
    parse_retry_after(&headers.get(RETRY_AFTER).and_then(text)?, now_ms)
}

/// Adds the wait that the provider asks for.
pub fn after(fault: Fault, retry_after_ms: Option<u64>) -> Fault {
    match retry_after_ms {
        Some(ms) => fault.with(RETRY_AFTER_MS, ms),
        None => fault,
    }
}

fn quoting(mut fault: Fault, said: &Said, key: Option<&Secret>) -> Fault {
    let mut text: String = said.message.clone();
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        text = text.replace(key.expose(), REDACTED);
    }
    let text: String = text.chars().take(REFUSAL_CHARS).collect();
    if !text.is_empty() {
        fault.message = format!("{}: {text}", fault.message).into();
    }
    fault
}

fn overload(provider: &str) -> Fault {
    Fault::new(Code::Unavailable, format!("{provider} is overloaded")).with("reason", "overloaded")
}

fn too_often(provider: &str) -> Fault {
    Fault::new(Code::ResourceExhausted, format!("{provider} is asked too often"))
        .with("reason", "rate_limited")
}

fn used_up(provider: &str) -> Fault {
    Fault::new(Code::BudgetExceeded, format!("the account at {provider} is used up")).with("reason", "quota")
}

fn unwelcome(provider: &str) -> Fault {
    Fault::new(Code::Unauthenticated, format!("{provider} does not accept the key that is configured for it"))
        .with("reason", "provider_key_refused")
}

fn too_long(provider: &str) -> Fault {
    Fault::invalid(format!("the conversation is too long for this model of {provider}"))
        .with("reason", "context_too_long")
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_kernel::ports::clock::Simulated;
    use orchestr8_kernel::resilience::retry::may_retry;
    use reqwest::header::HeaderValue;

    fn reason(fault: &Fault) -> Option<&str> {
        fault.details.as_ref()?.get("reason")?.as_str()
    }

    #[test]
    fn each_refusal_says_whether_to_try_again() {
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let long = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
        let length = r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        let quota = r#"{"error":{"message":"check your plan","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        let cases = [
            (529, overloaded, Code::Unavailable, Some("overloaded"), true),
            (503, "busy", Code::Unavailable, None, true),
            (429, "{}", Code::ResourceExhausted, Some("rate_limited"), true),
            (429, quota, Code::BudgetExceeded, Some("quota"), false),
            (400, long, Code::InvalidArgument, Some("context_too_long"), false),
            (400, length, Code::InvalidArgument, Some("context_too_long"), false),
            (400, r#"{"error":"bad"}"#, Code::InvalidArgument, None, false),
            (413, "", Code::InvalidArgument, Some("context_too_long"), false),
            (401, "sk-secret is wrong", Code::Unauthenticated, Some("provider_key_refused"), false),
            (404, r#"{"error":{"message":"model 'x' not found"}}"#, Code::NotFound, None, false),
            (302, "", Code::Configuration, None, false),
        ];
        for (status, body, code, why, again) in cases {
            let fault = of_status(status, &Said::read(body), "p", Some(&Secret::new("sk-secret")));
            assert_eq!((fault.code, reason(&fault), may_retry(&fault)), (code, why, again), "{fault}");
            assert!(!fault.message.contains("sk-secret"), "{fault}");
        }
    }

    #[test]
    fn a_key_that_the_provider_repeats_is_struck_out_and_long_texts_are_cut() {
        let said = Said::read(&format!(r#"{{"message":"key sk-1 {}"}}"#, "x".repeat(10_000)));
        let fault = of_status(400, &said, "p", Some(&Secret::new("sk-1")));
        assert!(fault.message.contains(&format!("key {REDACTED}")) && fault.message.len() < 1_200, "{fault}");
    }

    #[test]
    fn errors_within_a_stream_are_told_apart_by_their_type() {
        let event = |kind: &str| of_event(&Said { words: vec![kind.into()], message: "m".into() }, "p", None);
        for (kind, code, why) in [
            ("overloaded_error", Code::Unavailable, "overloaded"),
            ("api_error", Code::Unavailable, "stream_broken"),
            ("rate_limit_error", Code::ResourceExhausted, "rate_limited"),
            ("authentication_error", Code::Unauthenticated, "provider_key_refused"),
            ("request_too_large", Code::InvalidArgument, "context_too_long"),
            ("billing_error", Code::BudgetExceeded, "quota"),
        ] {
            let fault = event(kind);
            assert_eq!((fault.code, reason(&fault)), (code, Some(why)), "{kind}");
        }
        assert_eq!(event("invalid_request_error").code, Code::InvalidArgument);
    }

    #[test]
    fn waits_are_read_in_every_form() {
        let wait = |name: &'static str, text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(text).unwrap());
            retry_after_ms(&headers, Simulated::START_MS)
        };
        assert_eq!(wait("retry-after", "7"), Some(7_000));
        assert_eq!(wait("retry-after-ms", "70"), Some(70));
        assert_eq!(wait("retry-after", "Thu, 01 Jan 2026 00:00:05 GMT"), Some(5_000));
        assert_eq!((wait("retry-after", "soon"), wait("retry-after-ms", "-1")), (None, None));
    }
}
