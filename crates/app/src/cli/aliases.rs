//! Other spellings of commands: `create:agent` is `create agent`.

use std::ffi::OsString;

/// Options before the command that take a value.
const WITH_VALUE: [&str; 2] = ["--config", "--color"];

/// Commands with commands in them.
const GROUPS: &str = "create agents sessions knowledge dlq keys tokens workflows schedule triggers models tools config audit store limits";

/// `create:agent` is `create agent`: some people are used to it. Only the command itself is looked at.
pub fn spaced(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut spaced = Vec::new();
    let mut has_command = false;
    let mut is_value = true;
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        let is_command = !is_value && !has_command && !text.starts_with('-');
        has_command |= is_command;
        is_value = WITH_VALUE.contains(&text);
        match text
            .split_once(':')
            .filter(|(group, _)| is_command && GROUPS.split(' ').any(|known| known == *group))
        {
            Some((group, command)) => spaced.extend([group, command].map(OsString::from)),
            None => spaced.push(arg),
        }
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_stands_for_a_space_in_the_command_only() {
        let given = |line: &str| spaced(line.split(' ').map(OsString::from)).join(" ".as_ref());
        assert_eq!(given("o8 create:agent a:b"), "o8 create agent a:b");
        assert_eq!(given("o8 --json create:workflow x"), "o8 --json create workflow x");
        assert_eq!(given("o8 --config a:b create:agent x"), "o8 --config a:b create agent x");
        assert_eq!(given("o8 run create:agent"), "o8 run create:agent");
        assert_eq!(given("o8 signal e order:paid"), "o8 signal e order:paid");
        assert_eq!(given("o8 nonsense:agent"), "o8 nonsense:agent");
    }
}
