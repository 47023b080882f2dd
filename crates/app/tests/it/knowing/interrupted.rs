//! An import that somebody stops goes on where it was.

use rustix::process::Signal;

use super::{alone, done, know};
use crate::program::signal;
use crate::workflows::{Going, json_of};

const FILES: usize = 1500;

#[test]
fn an_import_that_was_stopped_does_the_rest() {
    let place = alone();
    for n in 0..FILES {
        place.write(&format!("notes/{}/{n}.md", n % 20), &format!("# Note {n}\nabout number {n}"));
    }
    let going = Going::start(&place, &["knowledge", "import", "notes", "--json"]);
    // As soon as something is there it is stopped.
    while !place.data_file().exists() {
        std::thread::yield_now();
    }
    signal(&going.child, Signal::INT);
    let said = going.end();
    // Ctrl-C before the first document ends it at once, as any program.
    if said.code == Some(130) && !said.out.is_empty() {
        assert_eq!(json_of(&said)["finished"], false);
    }
    let rest = know(&place, &["import", "notes", "--json"]);
    assert_eq!(rest.code, Some(0), "{rest:?}");
    assert_eq!(done(&place, &["import", "notes"]).out, "nothing to do\n");
    let listed = json_of(&know(&place, &["tree", "--json"]));
    let count: usize = listed["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| 1 + one["children"].as_array().unwrap().len())
        .sum();
    assert_eq!(count, FILES + 20);
}
