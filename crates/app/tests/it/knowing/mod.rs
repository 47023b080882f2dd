//! Knowledge from the command line: documents, the search, folders of Markdown, answers, workflows; with a server and without.

mod answers;
mod documents;
mod folders;
mod interrupted;
mod serving;
mod signed;
mod steps;
mod watched;

use crate::program::{Place, Said};

/// A place that finds no server of this machine.
fn alone() -> Place {
    Place::new().with("ORCHESTR8_HTTP_LISTEN", "127.0.0.1:1")
}

/// Runs `orchestr8 knowledge …`.
fn know(place: &Place, args: &[&str]) -> Said {
    place.run(&[&["knowledge"], args].concat())
}

/// The same, and it must succeed.
fn done(place: &Place, args: &[&str]) -> Said {
    let said = know(place, args);
    assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
    said
}

/// Writes a document, with what is above it, and gives its id.
fn put(place: &Place, path: &str, text: &str) -> String {
    let said = place.run_with(&["knowledge", "put", "--parents", path, "-"], text);
    assert_eq!(said.code, Some(0), "{said:?}");
    said.out.trim().to_owned()
}
