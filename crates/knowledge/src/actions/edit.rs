//! Replaces a text that stands in a document exactly once.

use orchestr8_contract::Fault;
use orchestr8_kernel::{Args, Context, Halt, Reply};

use super::{document_id, known_revision, update};
use crate::hub::{Hub, tenant};
use crate::tables::Whose;
use crate::write::{check_revision, number, patchable};

/// Occurrences are counted up to here.
const COUNTED: usize = 1_000;

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().at_document(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.document(whose).await?;
    check_revision(&old, known_revision(&args))?;
    let body = hub.body(whose, old.content_revision).await?;
    let edited = replace_once(
        &body,
        args.text("old_str").unwrap_or_default(),
        args.text("new_str").unwrap_or_default(),
    )?;
    let (new, edited) = update::changed(&hub, &old, &body, patchable(&old, &edited))?;
    Ok(update::reply(&hub, &context, &old, &new, (&body, &edited), turn))
}

/// The text with its one occurrence replaced. Occurrences that overlap count apart: each could be meant.
pub fn replace_once(body: &str, old: &str, new: &str) -> Result<String, Fault> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = body.get(from..).and_then(|rest| rest.find(old)).filter(|_| found.len() < COUNTED) {
        found.push(from + at);
        from += at + old.chars().next().map_or(1, char::len_utf8);
    }
    match found.as_slice() {
        [] => Err(Fault::invalid("`old_str` does not stand in the document")
            .with("reason", "NOT_FOUND_IN_CONTENT")
            .with("hint", "read the document: it may have changed, and every letter and space counts")),
        [at] => Ok([&body[..*at], new, &body[at + old.len()..]].concat()),
        many => Err(Fault::invalid(format!("`old_str` stands in the document {} times", many.len()))
            .with("reason", "AMBIGUOUS")
            .with("hint", "give more of the text around it, so that it stands there once")
            .with("occurrences", number(many.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_occurrence_is_replaced() {
        assert_eq!(replace_once("a đ b", "đ", "x").unwrap(), "a x b");
        let none = replace_once("abc", "d", "x").unwrap_err();
        assert_eq!(none.details.unwrap()["reason"], "NOT_FOUND_IN_CONTENT");
        let many = replace_once("aaa", "aa", "x").unwrap_err();
        assert_eq!(many.details.unwrap()["occurrences"], 2);
    }
}
