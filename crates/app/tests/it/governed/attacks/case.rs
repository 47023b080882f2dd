//! The cases of a family of attacks, as they stand in its file.

/// One attack.
pub struct Case {
    pub name: String,
    pub settings: Vec<(String, String)>,
    pub steps: Vec<Step>,
}

/// What one side does, and what must come back.
pub struct Step {
    /// Its line in the file.
    pub line: usize,
    pub actor: String,
    pub act: String,
    pub expected: Option<String>,
}

/// Reads a file. Panics at a line that cannot be read.
pub fn read(name: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |why: &str| -> ! { panic!("{name}, line {number}: {why}: {line}") };
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix("= ") {
            assert!(cases.iter().all(|case| case.name != title), "{name}, line {number}: twice: {title}");
            cases.push(Case { name: title.to_owned(), settings: Vec::new(), steps: Vec::new() });
            continue;
        }
        let Some(case) = cases.last_mut() else { wrong("a case begins with `= name`") };
        if let Some(setting) = line.strip_prefix("% ") {
            let (word, value) = setting.split_once(' ').unwrap_or_else(|| wrong("a setting needs a value"));
            case.settings.push((word.to_owned(), value.to_owned()));
        } else if let Some(expected) = line.strip_prefix("  ") {
            match case.steps.last_mut() {
                Some(step) if step.expected.is_none() => step.expected = Some(expected.trim().to_owned()),
                Some(_) | None => wrong("nothing is there that it could come back of"),
            }
        } else {
            let (actor, act) = line.split_once(": ").unwrap_or_else(|| wrong("who does it?"));
            let (actor, act) = (actor.to_owned(), act.trim().to_owned());
            case.steps.push(Step { line: number, actor, act, expected: None });
        }
    }
    for case in &cases {
        assert!(
            case.steps.iter().any(|step| step.expected.is_some()),
            "{name}: {} expects nothing",
            case.name
        );
    }
    cases
}

impl Case {
    /// The values of a setting, in their order.
    pub fn all<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a str> {
        self.settings.iter().filter(move |(name, _)| name == word).map(|(_, value)| value.as_str())
    }

    pub fn is_on(&self, transport: &str) -> bool {
        self.all("on").all(|only| only == transport)
    }
}
