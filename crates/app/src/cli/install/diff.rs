//! A unified diff of a text and the same text with one stretch of lines changed.

/// Lines shown around a change.
const CONTEXT: usize = 3;

pub fn unified(path: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same_start = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let room = old.len().min(new.len()) - same_start;
    let same_end =
        old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(one, other)| one == other).count();
    let first = same_start.saturating_sub(CONTEXT);
    let (old_end, new_end) = (old.len() - same_end, new.len() - same_end);
    let tail = same_end.min(CONTEXT);
    let range = |start: usize, count: usize| match count {
        0 => String::from("0,0"),
        count => format!("{},{count}", start + 1),
    };
    let from = if before.is_empty() { "/dev/null" } else { path };
    let mut text = format!(
        "--- {from}\n+++ {path}\n@@ -{} +{} @@\n",
        range(first, old_end + tail - first),
        range(first, new_end + tail - first)
    );
    let mut add = |mark: char, lines: &[&str]| {
        for line in lines {
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
    };
    add(' ', &old[first..same_start]);
    add('-', &old[same_start..old_end]);
    add('+', &new[same_start..new_end]);
    add(' ', &old[old_end..old_end + tail]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let diff = unified("a", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nnew\n5\n6\n7\n8\n");
        assert_eq!(diff, "--- a\n+++ a\n@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+new\n 5\n 6\n 7\n");
    }

    #[test]
    fn a_new_file_comes_from_nowhere() {
        assert_eq!(unified("a", "", "x\n"), "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n");
        assert_eq!(unified("a", "1\n2\n", "1\n3\n"), "--- a\n+++ a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
    }
}
