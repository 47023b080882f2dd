//! Just enough of Rust's grammar to tell code from strings and comments.

/// A source file with its comments and strings blanked out, line for line.
pub struct Source {
    pub code: String,
    /// Every string literal with the line it starts on.
    pub strings: Vec<(usize, String)>,
}

impl Source {
    pub fn read(text: &str) -> Source {
        let mut reader =
            Reader { rest: text.chars().collect(), at: 0, line: 1, code: String::new(), strings: vec![] };
        while reader.at < reader.rest.len() {
            reader.step();
        }
        Source { code: reader.code, strings: reader.strings }
    }
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    line: usize,
    code: String,
    strings: Vec<(usize, String)>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> char {
        self.rest.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Moves past one character, keeping it in the code or leaving a blank of the same shape.
    fn take(&mut self, keep: bool) -> char {
        let found = self.peek(0);
        self.at += 1;
        if found == '\n' {
            self.line += 1;
        }
        self.code.push(if keep || found == '\n' { found } else { ' ' });
        found
    }

    fn step(&mut self) {
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => {
                while self.at < self.rest.len() && self.peek(0) != '\n' {
                    self.take(false);
                }
            }
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('r', '"' | '#') if !self.in_word() && self.raw_hashes(1).is_some() => self.raw_string(1),
            ('b' | 'c', 'r') if !self.in_word() && self.raw_hashes(2).is_some() => self.raw_string(2),
            ('\'', _) => self.quote(),
            _ => {
                self.take(true);
            }
        }
    }

    fn in_word(&self) -> bool {
        self.at > 0 && (self.rest[self.at - 1].is_alphanumeric() || self.rest[self.at - 1] == '_')
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.rest.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.take(false);
                    continue;
                }
            }
            self.take(false);
            self.take(false);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        let (line, mut text) = (self.line, String::new());
        self.take(false);
        while self.at < self.rest.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                text.push(self.take(false));
            }
            text.push(self.take(false));
        }
        self.take(false);
        self.strings.push((line, text));
    }

    /// The number of hashes of a raw string whose `r` is `prefix` characters back from here.
    fn raw_hashes(&self, prefix: usize) -> Option<usize> {
        let hashes = (0..).take_while(|ahead| self.peek(prefix + ahead) == '#').count();
        (self.peek(prefix + hashes) == '"').then_some(hashes)
    }

    fn raw_string(&mut self, prefix: usize) {
        let hashes = self.raw_hashes(prefix).unwrap_or(0);
        let (line, mut text) = (self.line, String::new());
        for _ in 0..=prefix + hashes {
            self.take(false);
        }
        while self.at < self.rest.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == '#') {
                break;
            }
            text.push(self.take(false));
        }
        for _ in 0..=hashes {
            self.take(false);
        }
        self.strings.push((line, text));
    }

    /// A character literal is blanked; a lifetime is only a tick.
    fn quote(&mut self) {
        let is_char = self.peek(1) == '\\' || self.peek(2) == '\'';
        self.take(true);
        if !is_char {
            return;
        }
        while self.at < self.rest.len() && self.peek(0) != '\'' {
            if self.peek(0) == '\\' {
                self.take(false);
            }
            self.take(false);
        }
        self.take(true);
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    fn code(text: &str) -> String {
        Source::read(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_strings_disappear() {
        assert_eq!(code("let a = \"fn b() {\"; // fn c()\n/* fn /* d */ e */ let f;"), "let a = ; let f;");
    }

    #[test]
    fn raw_strings_and_escapes_end_where_they_should() {
        assert_eq!(code(r###"a(r#"x " y"#); b("\""); c(br"z\"); d"###), "a( ); b( ); c( ); d");
        let strings = Source::read("x(\n\"one\",\nr#\"two\"#)").strings;
        assert_eq!(strings, [(2, "one".to_owned()), (3, "two".to_owned())]);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(code("fn a<'a>(b: &'a str) -> char { '{' }"), "fn a<'a>(b: &'a str) -> char { ' ' }");
        assert_eq!(code(r"x('\'', '\u{41}') { }"), "x(' ', ' ') { }");
    }

    #[test]
    fn lines_stay_in_place() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n";
        assert_eq!(Source::read(text).code.lines().count(), text.lines().count());
    }
}
