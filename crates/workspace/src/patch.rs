//! Unified diffs: read whole before anything is changed, and applied only where every line of context fits.

use orchestr8_contract::Code;

use crate::refusal::Refusal;

/// One change: what must be there, and what is there afterwards. Lines keep their ends.
#[derive(Debug, PartialEq, Eq)]
struct Hunk {
    /// The line the old text begins at, from one; 0 when there is none.
    start: usize,
    old: Vec<String>,
    new: Vec<String>,
    /// The sides that the line taken last is of.
    newest: Option<Side>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
    Both,
}

/// The text after a patch of one file.
pub fn apply(text: &str, patch: &str) -> Result<String, Refusal> {
    let hunks = read(patch)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len() + patch.len());
    let mut at = 0;
    for (number, hunk) in (1..).zip(&hunks) {
        let place = place(&lines, hunk, at).ok_or_else(|| {
            let message = format!("hunk {number} does not fit: the file is not what the patch was made from");
            Refusal::new(Code::PatchApplyFailed, message).with("hunk", number).with("line", hunk.start)
        })?;
        out.extend(lines[at..place].iter().copied());
        out.extend(hunk.new.iter().map(String::as_str));
        at = place + hunk.old.len();
    }
    out.extend(lines[at..].iter().copied());
    Ok(out)
}

/// Where a hunk fits: at the line it names, or else at the only other place after the hunk before it.
fn place(lines: &[&str], hunk: &Hunk, from: usize) -> Option<usize> {
    let fits = |at: usize| {
        at >= from
            && lines
                .get(at..at + hunk.old.len())
                .is_some_and(|found| found.iter().zip(&hunk.old).all(|(a, b)| a == b))
    };
    let named = if hunk.old.is_empty() { hunk.start } else { hunk.start.checked_sub(1)? };
    if fits(named) {
        return Some(named);
    }
    if hunk.old.is_empty() {
        return None;
    }
    let mut others = (from..lines.len()).filter(|at| fits(*at));
    let only = others.next()?;
    others.next().is_none().then_some(only)
}

fn invalid(line: usize, why: &str) -> Refusal {
    Refusal::new(Code::PatchInvalid, format!("line {line} of the patch {why}")).with("line", line)
}

/// The hunks of a patch. Headers before the first hunk are passed over; a second file is refused.
fn read(patch: &str) -> Result<Vec<Hunk>, Refusal> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut left = (0, 0);
    for (number, line) in (1..).zip(patch.split_inclusive('\n')) {
        if left == (0, 0) {
            if let Some(ranges) = line.strip_prefix("@@ ") {
                let (start, old, new) =
                    header(ranges).ok_or_else(|| invalid(number, "is no head of a hunk"))?;
                left = (old, new);
                hunks.push(Hunk { start, old: Vec::new(), new: Vec::new(), newest: None });
            } else if line.starts_with("\\ No newline") {
                without_newline(&mut hunks, number)?;
            } else if !hunks.is_empty() && !line.trim_end().is_empty() {
                return Err(invalid(number, "belongs to no hunk; a patch is of one file"));
            }
            continue;
        }
        let hunk = hunks.last_mut().ok_or_else(|| invalid(number, "belongs to no hunk"))?;
        take(hunk, &mut left, line, number)?;
    }
    match (hunks.is_empty(), left) {
        (true, _) => {
            Err(Refusal::new(Code::PatchInvalid, "the patch has no hunk (@@ -line,count +line,count @@)"))
        }
        (false, (0, 0)) => Ok(hunks),
        (false, _) => Err(Refusal::new(Code::PatchInvalid, "the last hunk has fewer lines than it says")),
    }
}

fn take(hunk: &mut Hunk, left: &mut (usize, usize), line: &str, number: usize) -> Result<(), Refusal> {
    let ended = |line: &str| if line.ends_with('\n') { line.to_owned() } else { format!("{line}\n") };
    let too_many = || invalid(number, "is one more than its hunk says");
    let less = |count: usize| count.checked_sub(1).ok_or_else(too_many);
    match line.as_bytes().first() {
        Some(b'-') => {
            left.0 = less(left.0)?;
            hunk.old.push(ended(&line[1..]));
            hunk.newest = Some(Side::Old);
        }
        Some(b'+') => {
            left.1 = less(left.1)?;
            hunk.new.push(ended(&line[1..]));
            hunk.newest = Some(Side::New);
        }
        // Some editors take the blank away from an empty line.
        Some(b' ' | b'\n') => {
            *left = (less(left.0)?, less(left.1)?);
            let text = ended(line.strip_prefix(' ').unwrap_or(line));
            hunk.old.push(text.clone());
            hunk.new.push(text);
            hunk.newest = Some(Side::Both);
        }
        Some(b'\\') => drop_newline(hunk, number)?,
        _ => return Err(invalid(number, "begins with none of blank, + and -")),
    }
    Ok(())
}

fn without_newline(hunks: &mut [Hunk], number: usize) -> Result<(), Refusal> {
    let hunk = hunks.last_mut().ok_or_else(|| invalid(number, "belongs to no hunk"))?;
    drop_newline(hunk, number)
}

/// The line before has no end, on the sides it is of.
fn drop_newline(hunk: &mut Hunk, number: usize) -> Result<(), Refusal> {
    let cut = |lines: &mut Vec<String>| {
        if let Some(line) = lines.last_mut() {
            line.truncate(line.trim_end_matches('\n').len());
        }
    };
    match hunk.newest {
        None => return Err(invalid(number, "follows no line")),
        Some(Side::Old) => cut(&mut hunk.old),
        Some(Side::New) => cut(&mut hunk.new),
        Some(Side::Both) => {
            cut(&mut hunk.old);
            cut(&mut hunk.new);
        }
    }
    Ok(())
}

/// `-start,count +start,count @@`
fn header(ranges: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = ranges.split_once(" @@")?;
    let (old, new) = ranges.split_once(' ')?;
    let range = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((text.parse().ok()?, 1)),
        }
    };
    let (start, old) = range(old.strip_prefix('-')?)?;
    let (_, new) = range(new.strip_prefix('+')?)?;
    Some((start, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "one\ntwo\nthree\n";

    fn code(text: &str, patch: &str) -> Code {
        apply(text, patch).unwrap_err().code
    }

    #[test]
    fn a_patch_changes_what_it_says() {
        let patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
        assert_eq!(apply(OLD, patch).unwrap(), "one\n2\nthree\n");
        assert_eq!(apply("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(apply(OLD, "@@ -3 +2,0 @@\n-three\n").unwrap(), "one\ntwo\n");
        let moved = format!("zero\n{OLD}");
        assert_eq!(apply(&moved, patch).unwrap(), "zero\none\n2\nthree\n");
    }

    #[test]
    fn the_end_of_the_last_line_is_kept_or_changed_as_it_says() {
        let patch = "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n";
        assert_eq!(apply("a", patch).unwrap(), "b");
        assert_eq!(apply("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n").unwrap(), "b\n");
    }

    #[test]
    fn what_does_not_fit_and_what_is_no_patch_are_told_apart() {
        assert_eq!(code("1\n2\n", "@@ -1,2 +1,1 @@\n one\n-two\n"), Code::PatchApplyFailed);
        assert_eq!(code("x\na\nx\n", "@@ -9 +9 @@\n-x\n+y\n"), Code::PatchApplyFailed, "two places fit");
        for patch in [
            "",
            "hello",
            "@@ nonsense @@\n",
            "@@ -1,2 +1,1 @@\n-one\n",
            "@@ -1 +1 @@\n?one\n",
            "@@ -1 +1 @@\n-one\n+1\n+2\n",
            "@@ -99999999999999999999 +1 @@\n-one\n+1\n",
        ] {
            assert_eq!(code(OLD, patch), Code::PatchInvalid, "{patch:?}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2_000))]

        /// A patch made of whole lines turns the old text into the new one; any other text is refused or applies.
        #[test]
        fn a_patch_that_says_everything_gives_everything(
            old in proptest::collection::vec("[a-c]{0,2}", 0..8), new in proptest::collection::vec("[a-c]{0,2}", 0..8), junk in "[-+@ a1,\\n\\\\]{0,40}",
        ) {
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let signed = |sign: char, lines: &[String]| lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>();
            let start = usize::from(!old.is_empty());
            let head = format!("@@ -{start},{} +1,{} @@\n", old.len(), new.len());
            let patch = format!("{head}{}{}", signed('-', &old), signed('+', &new));
            proptest::prop_assert_eq!(apply(&text(&old), &patch).unwrap(), text(&new));
            let _ = apply(&text(&old), &junk);
            let _ = apply(&text(&old), &format!("{head}{junk}"));
        }
    }
}
