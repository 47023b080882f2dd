//! The documents say what the program does.

use std::path::{Path, PathBuf};

use orchestr8_testing::words;

use crate::program::Place;

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

/// Every `$ orchestr8 …` line of the README whose output stands below it is run, and must say just that.
#[test]
fn the_readme_tells_what_happens() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let place = crate::workflows::alone();
    let mut checked = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for step in block.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            let Some(args) = command.strip_prefix("orchestr8 ") else { continue };
            let said = place.run(&words(args).iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(format!("{}{}", said.out, said.err).trim_end(), expected.trim_end(), "$ {command}");
            checked += 1;
        }
    }
    assert!(checked >= 3, "the README shows {checked} commands");
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
