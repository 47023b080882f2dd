//! At a terminal: how far it is can be seen, and nothing is deleted without a yes.

use super::{alone, done, know, put};
use crate::talking::terminal::Desk;

#[test]
fn an_import_shows_how_far_it_is() {
    let place = alone();
    for n in 0..30 {
        place.write(&format!("notes/{n}.md"), "text");
    }
    let mut desk = Desk::sit_down(&place, &["knowledge", "import", "notes"]);
    desk.see("importing");
    desk.see("█");
    desk.see("30/30");
    desk.see("30 created");
    assert_eq!(desk.end(), Some(0));
    let piped = know(&place, &["export", "out"]);
    assert_eq!(
        (piped.out.as_str(), piped.err.as_str()),
        ("30 written\n", ""),
        "nothing is drawn where nobody watches"
    );
}

#[test]
fn a_deletion_is_asked_for() {
    let place = alone();
    put(&place, "/A/B", "text");
    for (answer, code, left) in [("n", Some(130), Some(0)), ("y", Some(0), Some(3))] {
        let mut desk = Desk::sit_down(&place, &["knowledge", "rm", "/A"]);
        desk.see("delete /A with 1 document below it. Go on?");
        desk.type_line(answer);
        assert_eq!(desk.end(), code, "{answer}");
        assert_eq!(know(&place, &["get", "/A/B"]).code, left, "{answer}");
    }
    done(&place, &["restore", "A"]);
}
