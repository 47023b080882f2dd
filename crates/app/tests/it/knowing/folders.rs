//! Folders of Markdown: in, out, and both ways; the same twice, in the middle, and with files nobody can take.

use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::{alone, done, know, put};
use crate::program::Place;
use crate::workflows::json_of;

fn notes(place: &Place) {
    place.write("notes/guide/setup.md", "# Setup\nfirst\n");
    place.write("notes/guide/deep/x.md", "---\ntitle: X\ntags: a, b\n---\nbody\r\n");
    place.write("notes/readme.md", "hello");
    place.write("notes/picture.png", "no text");
    place.write("notes/.hidden/y.md", "not looked at");
}

#[test]
fn a_folder_goes_in_and_comes_out_as_it_was() {
    let place = alone();
    notes(&place);
    let plan = done(&place, &["import", "notes", "--dry-run"]);
    assert_eq!(
        plan.out,
        "create  guide\ncreate  readme\ncreate  guide/deep\ncreate  guide/setup\ncreate  guide/deep/x\n"
    );
    assert_eq!(done(&place, &["tree"]).out, "", "nothing was done");
    let said = done(&place, &["import", "notes"]);
    assert_eq!(said.out, "5 created\n");
    assert_eq!(said.err, "1 other file was not looked at\n");
    assert_eq!(done(&place, &["import", "notes"]).out, "nothing to do\n", "the same twice changes nothing");
    assert_eq!(
        done(&place, &["tree"]).out,
        "/\n├── guide\n│   ├── deep\n│   │   └── X  [a, b]\n│   └── Setup\n└── readme\n"
    );
    assert_eq!(json_of(&know(&place, &["get", "/guide/deep/X", "--json"]))["content"]["body"], "body\r\n");
    place.write("notes/guide/setup.md", "# Setup\nsecond\n");
    assert_eq!(done(&place, &["import", "notes"]).out, "1 updated\n");
    assert_eq!(done(&place, &["export", "out"]).out, "5 written\n");
    assert_eq!(done(&place, &["export", "out"]).out, "nothing to do\n");
    assert!(place.read("out/guide/Setup.md").ends_with("---\n# Setup\nsecond\n"));
    // Into a tree of another tenant, and out again: the same folder.
    done(&place, &["import", "out", "--tenant", "globex"]);
    done(&place, &["export", "again", "--tenant", "globex"]);
    for file in ["guide.md", "guide/Setup.md", "guide/deep.md", "guide/deep/X.md", "readme.md"] {
        assert_eq!(place.read(&format!("out/{file}")), place.read(&format!("again/{file}")), "{file}");
    }
}

#[test]
fn files_that_cannot_be_taken_are_named_and_the_rest_goes_in() {
    let place = alone();
    notes(&place);
    place.write("notes/id.md", "---\nid: 7\n---\n");
    place.write("notes/open.md", "---\ntitle: x\n");
    place.write("notes/huge.md", &"a".repeat(3 * 1024 * 1024));
    let root = place.path().join("notes");
    std::fs::write(root.join("latin.md"), b"caf\xe9").unwrap();
    std::fs::write(root.join(std::ffi::OsStr::from_bytes(b"n\xff.md")), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.join("link.md")).unwrap();
    std::os::unix::fs::symlink("..", root.join("circle")).unwrap();
    let said = know(&place, &["import", "notes", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let report = json_of(&said);
    assert_eq!(report["done"], json!({"create": 5}));
    let problems: Vec<String> = report["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}: {}", one["path"].as_str().unwrap(), one["what"].as_str().unwrap()))
        .collect();
    let wanted = [
        "circle: it is a link",
        "huge.md: it is larger than",
        "id.md: `id` in its front matter must be a UUID",
        "latin.md: it is not text in UTF-8",
        "link.md: it is a link",
        "n\u{fffd}.md: its name is not UTF-8",
        "open.md: its front matter begins with --- and never ends",
    ];
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    for (found, wanted) in problems.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found}");
    }
    assert!(!done(&place, &["query", "root:x:0"]).out.contains("passwd"));
    // A file that cannot be read is there all the same: it is not overwritten, and its document not deleted.
    done(&place, &["export", "out"]);
    std::fs::write(place.path().join("out/readme.md"), b"\xff").unwrap();
    let said = know(&place, &["sync", "out", "--delete", "--yes"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(std::fs::read(place.path().join("out/readme.md")).unwrap(), b"\xff");
    assert_eq!(done(&place, &["get", "/readme"]).out, "hello\n");
}

#[test]
fn changes_go_both_ways_and_conflicts_stay() {
    let place = alone();
    put(&place, "/A", "one\n");
    put(&place, "/A/B", "two\n");
    assert_eq!(know(&place, &["sync", "nowhere"]).code, Some(3));
    std::fs::create_dir(place.path().join("out")).unwrap();
    assert_eq!(done(&place, &["sync", "out"]).out, "2 written\n");
    assert_eq!(done(&place, &["sync", "out"]).out, "nothing to do\n");
    place.write("out/A/B.md", &place.read("out/A/B.md").replace("two", "two here"));
    place.write("out/new.md", "# New\nhere\n");
    put(&place, "/A", "one there\n");
    let plan = done(&place, &["sync", "out", "--dry-run"]);
    assert_eq!(plan.out, "create  new\nupdate  A/B\nwrite   A.md\n");
    assert_eq!(done(&place, &["sync", "out"]).out, "1 created, 1 updated, 1 written\n");
    assert_eq!(done(&place, &["get", "/A/B"]).out, "two here\n");
    assert!(place.read("out/A.md").ends_with("one there\n"));
    put(&place, "/A", "theirs\n");
    let ours = place.read("out/A.md").replace("one there", "ours");
    place.write("out/A.md", &ours);
    let said = know(&place, &["sync", "out"]);
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.err.contains("conflict: A.md: changed on both sides"), "{}", said.err);
    assert_eq!((place.read("out/A.md"), done(&place, &["get", "/A"]).out), (ours.clone(), "theirs\n".into()));
    done(&place, &["sync", "out", "--prefer", "tree"]);
    assert!(place.read("out/A.md").ends_with("theirs\n"));
    assert_eq!(place.read("out/A.md.mine"), ours, "what lost is kept aside");
    assert_eq!(done(&place, &["sync", "out"]).out, "nothing to do\n");
    // What moves in the tree takes its files along.
    done(&place, &["mv", "/A", "/New"]);
    done(&place, &["sync", "out"]);
    assert!(place.read("out/new/A/B.md").ends_with("two here\n"));
    assert!(!place.path().join("out/A").exists());
    assert_eq!(done(&place, &["sync", "out"]).out, "nothing to do\n");
}

#[test]
fn nothing_is_deleted_without_being_asked_for_and_shown() {
    let place = alone();
    put(&place, "/A", "one\n");
    put(&place, "/B", "two\n");
    done(&place, &["export", "out"]);
    std::fs::remove_file(place.path().join("out/A.md")).unwrap();
    let said = done(&place, &["sync", "out"]);
    assert!(said.err.contains("left alone: A.md: deleted in the folder"), "{}", said.err);
    let asked = know(&place, &["sync", "out", "--delete"]);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.err.contains("delete  A.md: this needs --yes"), "{}", asked.err);
    assert_eq!(done(&place, &["get", "/A"]).out, "one\n");
    assert_eq!(done(&place, &["sync", "out", "--delete", "--yes"]).out, "1 deleted\n");
    assert_eq!(know(&place, &["get", "/A"]).code, Some(3));
    done(&place, &["rm", "/B", "--yes"]);
    assert_eq!(done(&place, &["sync", "out", "--delete", "--yes"]).out, "1 removed\n");
    assert!(!place.path().join("out/B.md").exists());
}

#[test]
fn an_export_overwrites_no_work_of_others() {
    let place = alone();
    put(&place, "/A", "one\n");
    done(&place, &["export", "out"]);
    let ours = place.read("out/A.md").replace("one", "ours");
    place.write("out/A.md", &ours);
    put(&place, "/A", "theirs\n");
    let said = know(&place, &["export", "out"]);
    assert_eq!((said.code, place.read("out/A.md")), (Some(5), ours.clone()), "{said:?}");
    done(&place, &["export", "out", "--force"]);
    assert!(place.read("out/A.md").ends_with("theirs\n"));
    assert_eq!(place.read("out/A.md.mine"), ours);
    let place = alone();
    put(&place, "/A", "one\n");
    place.write("out/A.md", "something else\n");
    assert_eq!(know(&place, &["export", "out"]).code, Some(0), "another document's file is left where it is");
    assert_eq!(place.read("out/A.md"), "something else\n");
    // A link in the way is not gone through.
    std::os::unix::fs::symlink("/tmp", place.path().join("out/Linked")).unwrap();
    put(&place, "/Linked/x", "secret\n");
    let said = know(&place, &["export", "out"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("links are not followed"), "{}", said.err);
}
