//! `tool_search`: finds tools by words, so that a client need not read a long list.
//!
//! It is listed only when there are more tools than `tools.searchAbove`. It finds what its caller may see in the list, and no
//! more: a tool the caller has no role for, or that a filter hides from it, is not found either. A tool scores for each
//! word of the query: 8 if the word is a word of its name, 4 if the name holds it, 4 and 2 for its title, 2 and 1 for its
//! description, and the best of these counts. Tools with the highest sum come first, equal ones in order of name.

use orchestr8_contract::Output;
use orchestr8_kernel::{Action, Args, Context, Policy, schema};
use serde_json::{Value, json};

pub const NAME: &str = "tool_search";

/// The default of `tools.searchAbove`: about as many tools as models still choose well from.
pub const SEARCH_ABOVE: usize = 40;

/// Tools in one answer, unless the caller says how many.
const FOUND: u64 = 10;

/// Tools in one answer at most; each comes with its schema.
const FOUND_MAX: u64 = 50;

/// Longer queries do not find more.
const QUERY_CHARACTERS: usize = 1_000;

/// Hidden; `listing::changed` shows it when the list is long.
pub fn action() -> Result<Action, schema::Error> {
    let input = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string", "minLength": 1, "maxLength": QUERY_CHARACTERS,
                "description": "Words about what the tool should do."
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX, "default": FOUND}
        },
        "required": ["query"],
        "additionalProperties": false
    });
    let about =
        "Finds tools by words in their names and descriptions, best first, each with its input schema.";
    Ok(Action::tool(NAME, about, input, Policy::quick_read(), |args: Args, context: Context| {
        std::future::ready(Ok(Output::json(search(&args, &context)).into()))
    })?
    .titled("Search tools")
    .hidden())
}

fn search(args: &Args, context: &Context) -> Value {
    let query = words(args.text("query").unwrap_or_default());
    let limit = args.get("limit").and_then(Value::as_u64).unwrap_or(FOUND).min(FOUND_MAX);
    let table = context.kernel.registry().table();
    let mut found: Vec<(u32, &Action)> = table
        .tools_for(&context.principal.tenant)
        .filter(|action| action.name.as_str() != NAME && context.sees(action))
        .map(|action| (score(&query, action), action.as_ref()))
        .filter(|(score, _)| *score > 0)
        .collect();
    // The table is in order of name and the sort is stable.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let total = found.len();
    let shown: Vec<Value> = found
        .into_iter()
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .map(|(_, action)| {
            json!({"name": action.name, "description": action.about.description, "inputSchema": action.input.source})
        })
        .collect();
    json!({"tools": shown, "total": total})
}

fn score(query: &[String], action: &Action) -> u32 {
    let fields = [
        (action.name.as_str(), 8, 4),
        (action.about.title.as_deref().unwrap_or_default(), 4, 2),
        (action.about.description.as_str(), 2, 1),
    ];
    let fields = fields.map(|(text, whole, part)| (words(text), text.to_lowercase(), whole, part));
    let best = |word: &String| {
        let of = |(words, text, whole, part): &(Vec<String>, String, u32, u32)| {
            if words.contains(word) {
                *whole
            } else if text.contains(word.as_str()) {
                *part
            } else {
                0
            }
        };
        fields.iter().map(of).max().unwrap_or(0)
    };
    query.iter().map(best).sum()
}

/// Lower-case words; `sendMessage` and `send_message` are two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("agent.sendMessage"), ["agent", "send", "message"]);
        assert_eq!(words("  snake_case-and HTTP2 "), ["snake", "case", "and", "http2"]);
        assert_eq!(words("…"), [""; 0]);
    }
}
