//! The execution that a command names: its id, the beginning of its id, or `last`.

use orchestr8_contract::Code;
use serde_json::Value;

use super::words::text;
use crate::failure::Failure;
use crate::reach::{self, Reach};

/// The newest execution of the tenant.
const LAST: &str = "last";

/// What every id begins with; it may be left out.
const PREFIX: &str = "exec-";

/// The length of an id after that.
const ID_CHARACTERS: usize = 36;

/// Executions that are named where several are meant.
const SHOWN: usize = 10;

/// The id of the execution that is meant. An id that is given in full is not looked up.
pub async fn resolve(reach: &Reach, given: &str) -> Result<String, Failure> {
    let rest = given.strip_prefix(PREFIX).unwrap_or(given);
    let is_id = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if given != LAST && (rest.len() >= ID_CHARACTERS || !is_id(rest)) {
        return Ok(given.to_owned());
    }
    let query = [("id", Some(given.to_owned())), ("limit", Some((SHOWN + 1).to_string()))];
    let page = reach.get(&reach::path("/v1/executions", &query)).await?;
    let found: Vec<&str> = page["executions"].as_array().map_or_else(Vec::new, |list| ids(list));
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] if given == LAST => Err(Failure::new(Code::NotFound, "there is no execution yet")
            .hinting("start one with orchestr8 run WORKFLOW")),
        [] => {
            Err(Failure::new(Code::NotFound, format!("there is no execution whose id begins with '{given}'"))
                .hinting("orchestr8 list shows the newest"))
        }
        several => Err(ambiguous(given, several)),
    }
}

fn ids(list: &[Value]) -> Vec<&str> {
    list.iter().map(|execution| text(execution, "executionId")).collect()
}

fn ambiguous(given: &str, found: &[&str]) -> Failure {
    let mut lines: Vec<String> = found.iter().take(SHOWN).map(|id| (*id).to_owned()).collect();
    if found.len() > SHOWN {
        lines.push(String::from("and others"));
    }
    Failure::new(Code::InvalidArgument, format!("several executions have an id that begins with '{given}'"))
        .listing(lines)
        .hinting("give more of the id")
}
