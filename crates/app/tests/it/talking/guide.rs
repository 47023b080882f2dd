//! The guide to sessions tells what happens: its commands are run.

use super::alone;
use crate::workflows::guide::{check_mentions, run_console};
use crate::workflows::root;

#[test]
fn the_commands_say_what_the_guide_says() {
    let guide = std::fs::read_to_string(root().join("docs/guide/sessions.md")).unwrap();
    let place = alone();
    let checked = run_console(&place, &guide);
    assert!(checked >= 6, "the guide shows {checked} commands");
    check_mentions(&guide);
}
