//! The few JSON-RPC messages a load client needs, and a cheap look at the answers.
use serde_json::{Value, json};

/// The two generations of the protocol: with a handshake, and without.
#[derive(Clone, Copy, PartialEq)]
pub enum Era {
    Legacy,
    Modern,
}

pub const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// The method of the first request of a connection.
pub fn opening_method(era: Era) -> &'static str {
    match era {
        Era::Legacy => "initialize",
        Era::Modern => "server/discover",
    }
}

pub fn opening(era: Era) -> String {
    let client = json!({"name": "load", "version": "0.1.0"});
    let params = match era {
        Era::Legacy => json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}),
        Era::Modern => json!({"_meta": meta()}),
    };
    json!({"jsonrpc": "2.0", "id": 0, "method": opening_method(era), "params": params}).to_string()
}

/// A call of the echo tool, made once and numbered as often as needed: the client must not be the slow part.
pub struct Call {
    after_id: String,
}

impl Call {
    pub fn new(era: Era) -> Call {
        let mut params = json!({"name": "echo", "arguments": {"message": "hello"}});
        if era == Era::Modern {
            params["_meta"] = meta();
        }
        Call { after_id: format!(r#","method":"tools/call","params":{params}}}"#) }
    }

    pub fn numbered(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id}{}"#, self.after_id)
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "0.1.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// The id an answer is for. Parsing every answer in full would cost more than making some of them.
pub fn answered(answer: &str) -> Result<u64, String> {
    let wrong = |what: &str| Err(format!("{what}: {}", answer.trim()));
    if answer.contains(r#""isError":true"#) || answer.contains(r#""error":"#) {
        return wrong("an error");
    }
    if !answer.contains(r#""result":"#) || !answer.contains("hello") {
        return wrong("not an echo");
    }
    let Some((_, rest)) = answer.split_once(r#""id":"#) else { return wrong("no id") };
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().or_else(|_| wrong("no numeric id"))
}

#[cfg(test)]
mod tests {
    use super::{Call, Era, answered};
    use serde_json::Value;

    #[test]
    fn an_echo_is_recognised_by_its_id() {
        let answer = r#"{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"hello"}]}}"#;
        assert_eq!(answered(answer), Ok(17));
    }

    #[test]
    fn everything_else_is_an_error() {
        assert!(answered(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"hello"}}"#).is_err());
        assert!(answered(r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":"hello"}}"#).is_err());
        assert!(answered(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_err());
    }

    #[test]
    fn only_modern_calls_carry_their_metadata() {
        let modern: Value = serde_json::from_str(&Call::new(Era::Modern).numbered(7)).unwrap();
        assert_eq!(modern["id"], 7);
        assert_eq!(modern["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        let legacy: Value = serde_json::from_str(&Call::new(Era::Legacy).numbered(8)).unwrap();
        assert_eq!(legacy["params"].get("_meta"), None);
    }
}
