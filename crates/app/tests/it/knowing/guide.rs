//! The guide to knowledge tells what happens: its commands are run.

use orchestr8_testing::words;

use super::alone;
use crate::workflows::guide::is_like;
use crate::workflows::root;

#[test]
fn the_commands_say_what_the_guide_says() {
    let guide = std::fs::read_to_string(root().join("docs/guide/knowledge.md")).unwrap();
    let place = alone();
    place.write("setup.md", "# Setup\nRestart the service with `systemctl restart orchestr8`.\n");
    place.write("notes/faq/backup.md", "---\ntags: [ops]\n---\n# Backups\nRestore one every month.\n");
    let mut checked = 0;
    for block in guide.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for step in block.split("$ orchestr8 ").skip(1) {
            let (line, expected) = step.split_once('\n').unwrap();
            let args = words(line);
            let said = place.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let both = |one: &str, other: &str| {
                format!("{}\n{}", one.trim_end(), other.trim_end()).trim().to_owned()
            };
            let texts = [both(&said.out, &said.err), both(&said.err, &said.out)];
            let is_so = texts.iter().any(|text| is_like(expected.trim(), text));
            assert!(is_so, "$ orchestr8 {line}\n{}\nis not\n{expected}", texts[0]);
            checked += 1;
        }
    }
    assert!(checked >= 12, "the guide shows {checked} commands");
    let known: Vec<String> =
        orchestr8::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for mention in guide.split("`orchestr8 ").skip(1) {
        let name = mention.split([' ', '`']).next().unwrap();
        assert!(known.iter().any(|known| known == name), "orchestr8 {name}");
    }
}
