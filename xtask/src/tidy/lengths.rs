//! Short files, short functions, and a first line that says what a file is.
use super::File;
use super::source::Source;

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;
const PROGRAMS: [&str; 6] = ["rs", "mjs", "ts", "tsx", "py", "sh"];

pub fn check_file(file: &File) -> Vec<String> {
    let lines = file.text.lines().count();
    if PROGRAMS.contains(&file.extension()) && lines > FILE_LINES {
        return vec![file.complain(1, format!("{lines} lines; a file has at most {FILE_LINES}"))];
    }
    Vec::new()
}

pub fn check_rust(file: &File, source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    if !file.text.starts_with("//! ") {
        complaints
            .push(file.complain(1, "the first line should be a `//!` sentence saying what the file is"));
    }
    for function in functions(&source.code) {
        if function.lines > FUNCTION_LINES {
            let what = format!("fn {} has {} lines; at most {FUNCTION_LINES}", function.name, function.lines);
            complaints.push(file.complain(function.line, what));
        }
    }
    complaints
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        if let Some(end) = end_of_body(&code[at..]) {
            let line = code[..at].matches('\n').count() + 1;
            let lines = code[at..at + end].matches('\n').count() + 1;
            found.push(Function { name, line, lines });
        }
    }
    found
}

/// The position of the brace that closes the body, or none for a declaration without one.
fn end_of_body(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (at, found) in code.char_indices() {
        match found {
            '(' | '[' => round += 1,
            ')' | ']' => round -= 1,
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' => {
                curly -= 1;
                if curly == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::super::source::Source;
    use super::{check_file, check_rust, functions};

    #[test]
    fn a_function_is_measured_from_its_name_to_its_last_brace() {
        let found = functions(
            "trait A { fn b(&self) -> [u8; 4]; }\nfn c()\nwhere\n    D: E,\n{\n    if f { g }\n}\n",
        );
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].line, found[0].lines), ("c", 2, 6));
    }

    #[test]
    fn long_functions_and_missing_first_lines_are_named() {
        let body = "    x();\n".repeat(80);
        let file = File { path: "a.rs".into(), text: format!("fn long() {{\n{body}}}\n") };
        let complaints = check_rust(&file, &Source::read(&file.text));
        assert_eq!(complaints.len(), 2);
        assert_eq!(complaints[1], "a.rs:1: fn long has 82 lines; at most 70");
    }

    #[test]
    fn long_files_are_named_but_documents_may_be_long() {
        let text = "\n".repeat(401);
        assert_eq!(check_file(&File { path: "a.py".into(), text: text.clone() }).len(), 1);
        assert_eq!(check_file(&File { path: "a.md".into(), text }).len(), 0);
    }
}
