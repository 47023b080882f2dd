//! The documents say what the program does.

use std::path::{Path, PathBuf};

use orchestr8_testing::words;

use crate::program::Place;
use crate::workflows::guide::is_like;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_of_errors_is_the_table_of_codes() {
    let page = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    assert_eq!(page, orchestr8::errors_page(), "write it anew: orchestr8 errors --markdown > docs/errors.md");
    assert_eq!(Place::new().run(&["errors", "--markdown"]).out, page);
}

/// The guide's table of settings is the program's own.
#[test]
fn the_guide_lists_every_setting() {
    let guide = std::fs::read_to_string(root().join("docs/guide/configuration.md")).unwrap();
    let table = orchestr8::settings_table();
    assert!(guide.contains(&table), "the table is now (orchestr8 config explain --markdown):\n{table}");
    assert_eq!(Place::new().run(&["config", "explain", "--markdown"]).out, table);
}

/// Every `$ orchestr8 …` line whose output stands below it is run, and must say just that; `…` stands for anything.
fn tells_what_happens(page: &str, at_least: usize) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let place = crate::workflows::alone();
    let mut checked = 0;
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let Some(args) = command.strip_prefix("orchestr8 ") else { continue };
            let said = place.run(&words(args).iter().map(String::as_str).collect::<Vec<_>>());
            let said = format!("{}{}", said.out, said.err);
            assert!(is_like(expected.trim_end(), said.trim_end()), "{page}: $ {command}\n{said}");
            checked += 1;
        }
    }
    assert!(checked >= at_least, "{page} shows {checked} commands");
}

#[test]
fn the_readme_tells_what_happens() {
    tells_what_happens("README.md", 3);
}

#[test]
fn the_quickstart_tells_what_happens() {
    tells_what_happens("docs/guide/quickstart.md", 5);
}

/// The pages show commands that there are: each word after `orchestr8` in a block of commands is one the program knows.
#[test]
fn the_pages_name_commands_that_there_are() {
    let mut pages = vec![root().join("README.md")];
    pages.extend(std::fs::read_dir(root().join("docs/guide")).unwrap().map(|entry| entry.unwrap().path()));
    let place = Place::new();
    let mut known = std::collections::BTreeMap::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text.split("```").skip(1).step_by(2).filter(|block| !block.starts_with("mermaid"));
        for line in blocks.flat_map(str::lines) {
            let line = line.trim_start_matches("$ ");
            let Some(command) =
                line.strip_prefix("orchestr8 ").and_then(|rest| rest.split_whitespace().next())
            else {
                continue;
            };
            if !command.chars().all(|c| c.is_ascii_lowercase() || c == '-') || command.starts_with('-') {
                continue;
            }
            let exists = known
                .entry(command.to_owned())
                .or_insert_with(|| place.run(&[command, "--help"]).code == Some(0));
            assert!(*exists, "{}: {line}", page.display());
        }
    }
    assert!(known.len() > 10, "{known:?}");
}

/// Links between documents lead somewhere.
#[test]
fn links_lead_somewhere() {
    let mut pages: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "examples/README.md"].map(String::from).to_vec();
    for folder in ["docs/guide", "docs/adr"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            pages.push(format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap()));
        }
    }
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("https://") {
                continue;
            }
            let target = root().join(&page).parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{page} links to {link}");
        }
    }
}
