//! The arguments of an action as a Langroid agent takes them (KNO-8): a ToolMessage on the wire.

use orchestr8_contract::Fault;
use serde_json::{Map, Value};

const REQUEST: &str = "request";
const PURPOSE: &str = "purpose";

/// `{"request": <action>, "purpose": …, …args}`. Arguments of those two names have no place beside them.
pub fn tool_message(
    action: &str,
    purpose: &str,
    args: Map<String, Value>,
) -> Result<Map<String, Value>, Fault> {
    if let Some(name) = [REQUEST, PURPOSE].into_iter().find(|name| args.contains_key(*name)) {
        let message = format!("an argument named {name} cannot be passed on in a ToolMessage");
        return Err(Fault::invalid(message).with("path", format!("/payload/args/{name}")));
    }
    let mut message = Map::with_capacity(args.len() + 2);
    message.insert(REQUEST.into(), action.into());
    message.insert(PURPOSE.into(), purpose.into());
    message.extend(args);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kno_8_arguments_stand_beside_the_request_and_its_purpose() {
        let Value::Object(args) = json!({"query": "q", "top_k": 3}) else { unreachable!() };
        let message = tool_message("knowledge.query_knowledge", "Finds passages.", args).unwrap();
        assert_eq!(
            Value::Object(message),
            json!({"request": "knowledge.query_knowledge", "purpose": "Finds passages.", "query": "q", "top_k": 3})
        );
        let Value::Object(clash) = json!({"request": 1}) else { unreachable!() };
        assert!(tool_message("a", "b", clash).is_err(), "nothing is lost silently");
    }
}
