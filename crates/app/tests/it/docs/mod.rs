//! The documents say what the program does.

mod reader;
mod stages;

use reader::{Meaning, Reader, blocks, is_command};
use stages::*;

use crate::program::Place;
use crate::workflows::root;

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

/// Does what a page says; it shows at least so many commands.
fn check(page: &str, at_least: usize, prepare: fn(&mut Reader), meanings: &'static [Meaning]) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut reader = Reader::new(meanings);
    prepare(&mut reader);
    let commands = reader.read(&text);
    assert!(commands >= at_least, "{page} shows {commands} commands");
}

/// One test for each page with commands, and the list of them.
macro_rules! pages {
    ($($name:ident: $page:literal, $at_least:literal, $prepare:expr, $meanings:expr;)*) => {
        /// The pages whose commands are run.
        const RUN: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $name() {
                check($page, $at_least, $prepare, $meanings);
            }
        )*
    };
}

pages! {
    readme: "README.md", 14, nothing, AS_WRITTEN;
    examples: "examples/README.md", 2, nothing, AS_WRITTEN;
    new_project: "crates/app/templates/README.md", 8, a_new_project, AN_EXECUTION;
    agents: "docs/guide/agents.md", 2, nothing, AS_WRITTEN;
    api: "docs/guide/api.md", 11, nothing, AN_EXECUTION;
    clients: "docs/guide/clients.md", 4, nothing, AS_WRITTEN;
    configuration: "docs/guide/configuration.md", 4, nothing, AS_WRITTEN;
    errors: "docs/guide/errors.md", 5, nothing, AS_WRITTEN;
    governance: "docs/guide/governance.md", 4, a_governed_folder, AS_WRITTEN;
    http: "docs/guide/http.md", 2, nothing, AS_WRITTEN;
    knowledge: "docs/guide/knowledge.md", 12, some_notes, AS_WRITTEN;
    knowledge_api: "docs/guide/knowledge-api.md", 12, an_envelope, LETTERS_AND_A_KEY;
    messages: "docs/guide/messages.md", 8, nothing, AS_WRITTEN;
    models: "docs/guide/models.md", 1, nothing, AS_WRITTEN;
    operations: "docs/guide/operations.md", 6, some_work, A_HEAD;
    other_servers: "docs/guide/other-servers.md", 4, another_server, AS_WRITTEN;
    quickstart: "docs/guide/quickstart.md", 6, nothing, AS_WRITTEN;
    secrets: "docs/guide/secrets.md", 5, nothing, AS_WRITTEN;
    security: "docs/guide/security.md", 4, nothing, AS_WRITTEN;
    sessions: "docs/guide/sessions.md", 6, nothing, AS_WRITTEN;
    tools: "docs/guide/tools.md", 6, nothing, AS_WRITTEN;
    workflows: "docs/guide/workflows.md", 25, a_broken_workflow, AN_EXECUTION;
}

/// Commands that a page mentions between its blocks are there too, with their subcommands and flags.
#[test]
fn every_command_the_pages_mention_exists() {
    let mut seen = 0;
    for page in all_pages() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        for mention in text.split("`orchestr8 ").skip(1).map(|rest| rest.split('`').next().unwrap()) {
            let mut command = &orchestr8::command();
            for word in mention.split_whitespace().take_while(|word| *word != "--") {
                let flag = word.split('=').next().unwrap();
                if let Some(sub) = command.find_subcommand(word) {
                    command = sub;
                } else if let Some(name) = flag.strip_prefix("--") {
                    let has = |command: &clap::Command| {
                        command.get_arguments().any(|arg| arg.get_long() == Some(name)) || name == "help"
                    };
                    assert!(
                        has(command) || has(&orchestr8::command()),
                        "{page}: orchestr8 {mention}: no {word}"
                    );
                } else {
                    let takes_words = command.get_positionals().next().is_some();
                    let is_alternatives = word.contains('|') || word.contains('…');
                    let is_value =
                        takes_words || is_alternatives || word.chars().any(|c| !c.is_ascii_lowercase());
                    assert!(
                        is_value
                            || command
                                .get_arguments()
                                .any(|arg| arg.get_num_args().is_none_or(|n| n.takes_values())),
                        "{page}: orchestr8 {mention}: no {word}"
                    );
                }
            }
            assert_ne!(command.get_name(), orchestr8::command().get_name(), "{page}: orchestr8 {mention}");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

/// No page with commands is left out, so a new one cannot be.
#[test]
fn every_page_with_commands_is_run() {
    for page in all_pages() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let shows = blocks(&text).any(|(mark, block)| match mark {
            "console" => true,
            "" | "sh" => block.lines().any(|line| is_command(line) && !line.starts_with("cargo ")),
            _ => {
                assert!(
                    !mark.starts_with("sh") && mark != "bash",
                    "{page}: commands are marked sh or console"
                );
                false
            }
        });
        assert!(!shows || RUN.contains(&page.as_str()), "{page} shows commands that no test runs");
    }
}

/// The commands that build and measure are not run from inside of what they run, but they are there.
#[test]
fn the_commands_that_build_are_there() {
    let known = std::fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    let mut seen = 0;
    for page in all_pages() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        for line in blocks(&text).flat_map(|(_, block)| block.lines()) {
            let Some(args) = line.strip_prefix("cargo xtask ") else { continue };
            for word in
                args.split('#').next().unwrap().split_whitespace().take_while(|word| !word.starts_with('-'))
            {
                assert!(known.contains(&format!("\"{word}\"")) || known.contains(word), "{page}: {line}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

fn all_pages() -> Vec<String> {
    let mut pages: Vec<String> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "examples/README.md",
        "crates/app/templates/README.md",
    ]
    .map(String::from)
    .to_vec();
    for folder in ["docs", "docs/guide", "docs/adr"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages
}

/// Links between documents lead somewhere.
#[test]
fn links_lead_somewhere() {
    for page in all_pages() {
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
