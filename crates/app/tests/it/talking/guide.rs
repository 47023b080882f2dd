//! The guide to sessions tells what happens: its commands are run.

use orchestr8_testing::words;

use super::alone;
use crate::workflows::guide::is_like;
use crate::workflows::root;

#[test]
fn the_commands_say_what_the_guide_says() {
    let guide = std::fs::read_to_string(root().join("docs/guide/sessions.md")).unwrap();
    let place = alone();
    let mut checked = 0;
    for block in guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for step in block.split("$ orchestr8 ").skip(1) {
            let (line, expected) = step.split_once('\n').unwrap();
            let args = words(line);
            let said = place.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let text = format!("{}{}", said.err, said.out);
            assert!(is_like(expected.trim(), text.trim()), "$ orchestr8 {line}\n{text}\nis not\n{expected}");
            checked += 1;
        }
    }
    assert!(checked >= 6, "the guide shows {checked} commands");
    let known: Vec<String> =
        orchestr8::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for mention in guide.split("`orchestr8 ").skip(1) {
        let name = mention.split([' ', '`']).next().unwrap();
        assert!(known.iter().any(|known| known == name), "orchestr8 {name}");
    }
}
