//! The attacks of `conformance/workspace/attacks`, played on the real program over stdio and over HTTP.

mod case;
mod heard;
mod outside;
mod world;

use case::Case;
use world::{Link, World};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/workspace/attacks");

/// One test for each family and transport, so that they run side by side.
macro_rules! families {
    ($($family:ident: $file:literal),+ $(,)?) => {
        $(mod $family {
            #[test]
            fn over_stdio() {
                super::play($file, super::Link::Stdio);
            }

            #[test]
            fn over_http() {
                super::play($file, super::Link::Http);
            }
        })+

        /// A file without a line here would never be played.
        #[test]
        fn every_family_is_played() {
            let mut files: Vec<String> = std::fs::read_dir(FOLDER).unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name.ends_with(".cases"))
                .collect();
            files.sort();
            let mut played = vec![$($file),+];
            played.sort_unstable();
            assert_eq!(files, played);
        }
    };
}

families! {
    approvals: "approvals.cases",
    gates: "gates.cases",
    locks: "locks.cases",
    phases: "phases.cases",
    plans: "plans.cases",
    policies: "policies.cases",
    processes: "processes.cases",
    roles: "roles.cases",
    roots: "roots.cases",
    trail: "trail.cases",
}

/// Plays all cases of a family; panics with all that do not hold. `O8_CASE=words` plays only those with the words in their name.
fn play(file: &str, link: Link) {
    let text = std::fs::read_to_string(format!("{FOLDER}/{file}")).unwrap();
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment which cases are wanted")]
    let only = std::env::var("O8_CASE").unwrap_or_default();
    let cases = case::read(file, &text);
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_on(link.as_str()) && case.name.contains(&only)) {
        wrong.extend(play_case(file, case, link).err());
    }
    assert!(wrong.is_empty(), "{} cases over {}:\n{}", wrong.len(), link.as_str(), wrong.join("\n"));
}

fn play_case(file: &str, case: &Case, link: Link) -> Result<(), String> {
    let mut world = World::of(case, link);
    for step in &case.steps {
        let at = |what: String| format!("{file}, line {}: {}: {what}", step.line, case.name);
        let act = world.named(&step.act);
        let heard = world.act(&step.actor, &act);
        match (heard, &step.expected) {
            (None, None) => {}
            (Some(heard), Some(expected)) => {
                let expected = world.named(expected);
                match heard.fits(&expected) {
                    Ok(true) => {}
                    Ok(false) => {
                        let (word, code, value) = (&heard.word, &heard.code, &heard.value);
                        return Err(at(format!("\n  expected {expected}\n  heard    {word} {code} {value}")));
                    }
                    Err(why) => return Err(at(why)),
                }
            }
            (Some(_), None) => return Err(at(String::from("it does not say what must come back"))),
            (None, Some(_)) => return Err(at(String::from("nothing comes back of it"))),
        }
    }
    Ok(())
}
