//! Tools for our own tests from outside: one that takes its time, one that breaks, and a list that shows lost and doubled
//! effects.

use std::time::Duration;

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::{nothing, pause, text};
use crate::tables;

const SLEEP_MS_MAX: u64 = 600_000;

/// Names and values of rows stay short, so that a list stays readable.
const ROW_CHARACTERS: usize = 256;

/// Rows in one answer; `after` gives the next ones.
const ROWS: i64 = 100_000;

pub fn sleep() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let ms = args.get("ms").and_then(Value::as_u64).unwrap_or(0);
        match args.get("stubborn").and_then(Value::as_bool).unwrap_or(false) {
            true => context.kernel.ports().clock.sleep(Duration::from_millis(ms)).await,
            false => pause(&context, ms).await?,
        }
        text(format!("slept {ms}"))
    }
    let input = json!({
        "type": "object",
        "properties": {
            "ms": {"type": "integer", "minimum": 0, "maximum": SLEEP_MS_MAX},
            "stubborn": {"type": "boolean", "description": "Go on waiting when told to stop."}
        },
        "required": ["ms"],
        "additionalProperties": false
    });
    Action::tool("test_sleep", "Waits, and stops waiting when told to.", input, Policy::read(), work)
}

/// A bug on demand: it must be answered INTERNAL, and the server must live.
#[allow(clippy::panic, reason = "panicking is what it is for")]
pub fn panic() -> Result<Action, schema::Error> {
    async fn work(_: Args, _: Context) -> Result<Reply, Halt> {
        panic!("test_panic was called")
    }
    Action::tool("test_panic", "Panics.", nothing(), Policy::read(), work)
}

/// The row is written with the outcome, or not at all.
pub fn append() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let (list, value) = (args.text("list").unwrap_or_default(), args.text("value").unwrap_or_default());
        let mut effects = Batch::new();
        effects.then_one(tables::fixture_append(context.principal.tenant.as_str(), list, value));
        Ok(Reply::new(Output::json(json!({"list": list, "value": value})), effects))
    }
    let word = json!({"type": "string", "minLength": 1, "maxLength": ROW_CHARACTERS});
    let input = json!({
        "type": "object",
        "properties": {"list": word, "value": word},
        "required": ["list", "value"],
        "additionalProperties": false
    });
    Action::tool("test_append", "Appends a value to a stored list.", input, Policy::stored(), work)
}

pub fn list() -> Result<Action, schema::Error> {
    async fn work(args: Args, context: Context) -> Result<Reply, Halt> {
        let list = args.text("list").unwrap_or_default();
        let after = args.get("after").and_then(Value::as_i64).unwrap_or(0);
        let page = tables::fixture_page(context.principal.tenant.as_str(), list, after, ROWS + 1);
        let failed = |error| Fault::new(Code::StoreFailed, "the list could not be read").because(error);
        let rows = context.kernel.ports().store.query(page).await.map_err(failed)?;
        let truncated = i64::try_from(rows.len()).is_ok_and(|rows| rows > ROWS);
        let (mut values, mut last) = (Vec::with_capacity(rows.len()), after);
        for row in rows.iter().take(usize::try_from(ROWS).unwrap_or(usize::MAX)) {
            last = row.int(0).map_err(failed)?;
            values.push(row.text(1).map_err(failed)?);
        }
        let page = json!({"list": list, "values": values, "truncated": truncated, "last": last});
        Ok(Output::json(page).into())
    }
    let input = json!({
        "type": "object",
        "properties": {
            "list": {"type": "string", "minLength": 1, "maxLength": ROW_CHARACTERS},
            "after": {"type": "integer", "minimum": 0, "description": "The `last` of the page before."}
        },
        "required": ["list"],
        "additionalProperties": false
    });
    Action::tool("test_list", "Gives back a stored list, oldest value first.", input, Policy::read(), work)
}
