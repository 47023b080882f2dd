//! JSON Merge Patch (RFC 7396) within the bounds of an update mask (KNO-8.2).

use orchestr8_contract::Fault;
use serde_json::{Map, Value};

use crate::limits::{MASK_CHARS, MASK_PATHS};

/// Members of a document that an update may name.
const OPEN: [&str; 3] = ["content", "metadata", "is_human_readable"];

/// Changes what the mask names: to what the patch says, or away with it where the patch is silent.
pub fn apply(target: &mut Value, patch: &Value, mask: &[String]) -> Result<(), Fault> {
    check(mask)?;
    for path in mask {
        let names: Vec<&str> = path.split('.').collect();
        match look(patch, &names) {
            Some(value) => set(target, &names, value),
            None => remove(target, &names),
        }
    }
    Ok(())
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(name);
        } else {
            merge(members.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

fn check(mask: &[String]) -> Result<(), Fault> {
    let wrong = |what: String| Err(Fault::invalid(what).with("path", "update_mask"));
    if mask.is_empty() {
        return wrong(String::from(
            "`update_mask` names nothing to change; name members such as `content.body`",
        ));
    }
    if mask.len() > MASK_PATHS {
        return wrong(format!("`update_mask` has more than {MASK_PATHS} paths"));
    }
    for path in mask {
        let first = path.split('.').next().unwrap_or_default();
        let whole = path.split('.').all(|name| !name.is_empty()) && path.chars().count() <= MASK_CHARS;
        if !whole || !OPEN.contains(&first) {
            let shown: String = path.chars().take(100).collect();
            return wrong(format!(
                "`update_mask` names `{shown}`; a path begins with content, metadata or is_human_readable"
            ));
        }
    }
    Ok(())
}

/// What the patch says about a path; a null above it speaks for it, too.
fn look<'a>(patch: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names.iter().try_fold(patch, |value, name| value.get(name))
}

fn set(target: &mut Value, names: &[&str], value: &Value) {
    // Removing makes nothing on the way to what is removed.
    if value.is_null() {
        return remove(target, names);
    }
    let Some((first, rest)) = names.split_first() else { return merge(target, value) };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(members) = target {
        set(members.entry(*first).or_insert(Value::Null), rest, value);
    }
}

fn remove(target: &mut Value, names: &[&str]) {
    let Some((last, above)) = names.split_last() else { return };
    let parent = above.iter().try_fold(target, |value, name| value.get_mut(*name));
    if let Some(Value::Object(members)) = parent {
        members.remove(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn patched(target: Value, patch: Value, mask: &[&str]) -> Value {
        let mut target = target;
        let mask: Vec<String> = mask.iter().map(|path| (*path).to_owned()).collect();
        apply(&mut target, &patch, &mask).unwrap();
        target
    }

    #[test]
    fn only_what_the_mask_names_changes() {
        let before =
            json!({"content": {"body": "a"}, "metadata": {"title": "t", "tags": ["x"], "source": "s"}});
        let patch = json!({"content": {"body": "b"}, "metadata": {"title": "u", "tags": ["y"]}});
        let after = patched(before.clone(), patch.clone(), &["metadata.title"]);
        assert_eq!(
            after,
            json!({"content": {"body": "a"}, "metadata": {"title": "u", "tags": ["x"], "source": "s"}})
        );
        let after = patched(before.clone(), patch.clone(), &["metadata"]);
        assert_eq!(
            after["metadata"],
            json!({"title": "u", "tags": ["y"], "source": "s"}),
            "a merge keeps the rest"
        );
        let after = patched(before, patch, &["metadata.source", "content.body"]);
        assert_eq!(after, json!({"content": {"body": "b"}, "metadata": {"title": "t", "tags": ["x"]}}));
    }

    #[test]
    fn null_removes_and_an_absent_path_removes() {
        let before = json!({"metadata": {"title": "t", "a": {"b": 1, "c": 2}}});
        assert_eq!(
            patched(before.clone(), json!({"metadata": {"a": {"b": null}}}), &["metadata.a.b"])["metadata"]["a"],
            json!({"c": 2})
        );
        assert_eq!(patched(before.clone(), json!({}), &["metadata.a"])["metadata"], json!({"title": "t"}));
        assert_eq!(patched(before, json!({}), &["metadata.x.y"])["metadata"]["title"], "t");
    }

    #[test]
    fn removing_what_is_not_there_makes_nothing() {
        let before = json!({"metadata": {"title": "t"}});
        let patch = json!({"metadata": {"a": {"b": null}}});
        assert_eq!(patched(before.clone(), patch, &["metadata.a.b"]), before);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let list = proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
            let object = proptest::collection::btree_map("[a-c]", inner, 0..4);
            prop_oneof![list, object.prop_map(|members| Value::Object(members.into_iter().collect()))]
        })
    }

    fn any_mask() -> impl Strategy<Value = Vec<String>> {
        let path = ("content|metadata", proptest::collection::vec("[a-c]", 0..3));
        let path = path.prop_map(|(first, rest)| [vec![first], rest].concat().join("."));
        proptest::collection::vec(path, 1..4)
    }

    /// Members that are null, lists apart: a list is one value, whatever is in it.
    fn nulls(value: &Value) -> usize {
        let Value::Object(members) = value else { return usize::from(value.is_null()) };
        members.values().map(nulls).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn an_update_makes_no_nulls_and_made_twice_changes_nothing_more(
            content in any_value(), patch in any_value(), mask in any_mask()
        ) {
            let mut once = json!({"content": content, "metadata": {}});
            let before = nulls(&once);
            let patch = json!({"content": patch, "metadata": patch});
            apply(&mut once, &patch, &mask).unwrap();
            prop_assert!(nulls(&once) <= before);
            let mut twice = once.clone();
            apply(&mut twice, &patch, &mask).unwrap();
            prop_assert_eq!(once, twice);
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (target, patch, wanted) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut found = target;
            merge(&mut found, &patch);
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn a_mask_that_names_nothing_or_something_else_is_refused() {
        for mask in [vec![], vec!["revision"], vec!["metadata..x"], vec![""], vec!["*"]] {
            let mask: Vec<String> = mask.into_iter().map(String::from).collect();
            assert!(apply(&mut json!({}), &json!({}), &mask).is_err(), "{mask:?}");
        }
    }
}
