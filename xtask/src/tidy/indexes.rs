//! Folders with an index: each page has a line in it.
use super::File;

const INDEX: &str = "README.md";
const FOLDERS: [&str; 3] = ["docs/guide/", "docs/adr/", "conformance/promises/"];
/// What README links to.
const FROM_README: [&str; 4] =
    ["docs/guide/README.md", "docs/adr/README.md", "docs/glossary.md", "conformance/promises/README.md"];

pub fn check(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for folder in FOLDERS {
        let path = format!("{folder}{INDEX}");
        let Some(index) = files.iter().find(|file| file.path == path) else {
            complaints.push(format!("{path}:1: the index of {folder} is missing"));
            continue;
        };
        for file in files {
            let page = file.path.strip_prefix(folder).filter(|page| page.ends_with(".md") && *page != INDEX);
            let lines = page.map(|page| lines_about(index, page));
            if lines.is_some_and(|lines| lines == 0) {
                complaints.push(file.complain(
                    1,
                    format!("it has no line in {path}: link it there and say what it is about"),
                ));
            }
        }
    }
    let linked = |target: &str| {
        files.iter().any(|file| file.path == INDEX && file.text.contains(&format!("]({target})")))
    };
    let missing = FROM_README.iter().filter(|target| !linked(target));
    complaints.extend(missing.map(|target| format!("{INDEX}:1: it does not link to {target}")));
    complaints
}

/// How many lines of the index link to a page and say something beside the link.
fn lines_about(index: &File, page: &str) -> usize {
    let link = format!("]({page})");
    let says_more =
        |line: &&str| line.split_once(&link).is_some_and(|(_, rest)| rest.chars().any(char::is_alphabetic));
    index.text.lines().filter(says_more).count()
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::check;

    fn complaints(index: &str) -> Vec<String> {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        check(&[
            file("docs/guide/README.md", index),
            file("docs/guide/tools.md", "# Tools\n"),
            file("docs/adr/README.md", ""),
            file("conformance/promises/README.md", ""),
            file(
                "README.md",
                "[a](docs/guide/README.md) [b](docs/adr/README.md) [c](docs/glossary.md) [d](conformance/promises/README.md)",
            ),
        ])
    }

    #[test]
    fn a_page_that_its_index_describes_is_accepted() {
        assert_eq!(complaints("| [Tools](tools.md) | how they are called |\n"), Vec::<String>::new());
    }

    #[test]
    fn a_page_without_a_line_or_a_description_is_named() {
        for index in ["", "| [Tools](tools.md) | |\n"] {
            let found = complaints(index);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].starts_with("docs/guide/tools.md:1: it has no line in docs/guide/README.md"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_missing_index_and_a_missing_link_are_named() {
        assert_eq!(check(&[]).len(), 7);
    }
}
