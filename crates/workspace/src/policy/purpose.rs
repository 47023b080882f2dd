//! What a file is for. Its path says so; what the executor says about it can only ask for more care.

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Executable,
    Boundary,
    Infrastructure,
    /// Tests: there, giving up at once is how a failure is told.
    Verification,
}

/// Folders that hold nothing but tests.
const FOLDERS: [&str; 8] = ["tests", "test", "__tests__", "spec", "specs", "testdata", "e2e", "testing"];

/// Names of test files before their ending.
const NAMES: [&str; 4] = ["test", "tests", "spec", "conftest"];
const PREFIXES: [&str; 1] = ["test_"];
const SUFFIXES: [&str; 9] =
    ["_test", "_tests", "_spec", ".test", ".tests", ".spec", "-test", "-spec", ".e2e"];

/// As Java names the classes of tests; the case counts, or `latest` would be one.
const CLASSES: [&str; 3] = ["Test", "Tests", "IT"];

impl Purpose {
    pub const ALL: [(&'static str, Purpose); 4] = [
        ("EXECUTABLE", Purpose::Executable),
        ("BOUNDARY", Purpose::Boundary),
        ("INFRASTRUCTURE", Purpose::Infrastructure),
        ("VERIFICATION", Purpose::Verification),
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, purpose)| *purpose)
    }

    /// What the rules go by: tests are what lies where tests lie, unless the caller says that it is something else.
    pub fn in_force(path: &str, claimed: Option<Self>) -> Self {
        match (is_test(path), claimed) {
            (true, None | Some(Self::Verification)) => Self::Verification,
            (true, Some(claimed)) => claimed,
            (false, None | Some(Self::Verification)) => Self::Executable,
            (false, Some(claimed)) => claimed,
        }
    }
}

fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    if folders.split('/').any(|folder| FOLDERS.contains(&folder)) {
        return true;
    }
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    NAMES.contains(&stem)
        || PREFIXES.iter().any(|prefix| stem.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| stem.ends_with(suffix))
        || (matches!(ending, "java" | "kt" | "scala") && CLASSES.iter().any(|class| stem.ends_with(class)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_can_only_narrow_what_the_path_says() {
        let in_force = Purpose::in_force;
        for path in
            ["tests/a.rs", "src/a/tests.rs", "a_test.go", "test_a.py", "src/a.spec.ts", "x/FooTest.java"]
        {
            assert_eq!(in_force(path, None), Purpose::Verification, "{path}");
            assert_eq!(in_force(path, Some(Purpose::Boundary)), Purpose::Boundary, "{path}");
        }
        for path in
            ["src/main.rs", "src/latest.rs", "contest.py", "src/Latest.java", "src/attest.rs", "tests.d/a.rs"]
        {
            assert_eq!(in_force(path, Some(Purpose::Verification)), Purpose::Executable, "{path}");
            assert_eq!(in_force(path, Some(Purpose::Infrastructure)), Purpose::Infrastructure, "{path}");
        }
    }
}
