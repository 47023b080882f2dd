//! What the tools of other servers are called here.

use orchestr8_contract::canonical;
use orchestr8_contract::id::ActionName;
use serde_json::Value;

/// Digits of a hash that tell cut names apart.
const HASH_DIGITS: usize = 8;

/// Names for these tools, in their order. The same tools get the same names, whatever order they come in; names that would
/// be equal are numbered.
pub fn names(prefix: &str, tools: &[&str], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.sort_by_key(|index| tools[*index]);
    let mut names = vec![String::new(); tools.len()];
    for index in order {
        let whole = fit(&format!("{prefix}.{}", tools[index]));
        let numbered = |number: usize| match number {
            1 => whole.clone(),
            number => fit(&format!("{whole}_{number}")),
        };
        let is_free = |name: &String| !names.contains(name) && !is_taken(name);
        // So many numbers cannot all be taken by fewer names.
        let name = (1..).map(numbered).find(is_free);
        names[index] = name.unwrap_or_default();
    }
    names
}

/// The text as an action name: other characters become `_`, and what is too long is cut and marked with its hash.
fn fit(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = text.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if name.len() <= ActionName::LIMIT {
        return name;
    }
    let hash = canonical::sha256_hex(&Value::from(text));
    format!("{}_{}", &name[..ActionName::LIMIT - HASH_DIGITS - 1], &hash[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_to_fit() {
        assert_eq!(
            names("git hub", &["read/file", "größe"], |_| false),
            ["git_hub.read_file", "git_hub.gr__e"]
        );
        let (long, longer) = ("x".repeat(200), "x".repeat(201));
        let cut = names("s", &[&long, &longer], |_| false);
        assert!(cut.iter().all(|name| ActionName::parse(name).is_ok() && name.len() == ActionName::LIMIT));
        assert_ne!(cut[0], cut[1]);
    }

    #[test]
    fn equal_names_are_numbered_the_same_way_in_any_order() {
        assert_eq!(names("s", &["a b", "a_b", "a/b"], |_| false), ["s.a_b", "s.a_b_3", "s.a_b_2"]);
        assert_eq!(names("s", &["a/b", "a b", "a_b"], |_| false), ["s.a_b_2", "s.a_b", "s.a_b_3"]);
        assert_eq!(names("s", &["list"], |name| name == "s.list"), ["s.list_2"]);
    }
}
