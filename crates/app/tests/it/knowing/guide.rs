//! The guide to knowledge tells what happens: its commands are run.

use super::alone;
use crate::workflows::guide::{check_mentions, run_console};
use crate::workflows::root;

#[test]
fn the_commands_say_what_the_guide_says() {
    let guide = std::fs::read_to_string(root().join("docs/guide/knowledge.md")).unwrap();
    let place = alone();
    place.write("setup.md", "# Setup\nRestart the service with `systemctl restart orchestr8`.\n");
    place.write("notes/faq/backup.md", "---\ntags: [ops]\n---\n# Backups\nRestore one every month.\n");
    let checked = run_console(&place, &guide);
    assert!(checked >= 12, "the guide shows {checked} commands");
    check_mentions(&guide);
}
