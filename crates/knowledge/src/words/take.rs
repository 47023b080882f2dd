//! Documents as the index takes them up: their texts are taken apart into words again. The store's own index knows which
//! passages a word stands in, but not which words stand in a passage.

use std::hash::{DefaultHasher, Hash, Hasher};

use orchestr8_kernel::ports::store::{Error, Row};

use super::index::{Passage, Taken};
use super::postings::Counts;
use crate::text::{Ruler, Term, terms};

/// The documents of these rows (`tables::taken`).
pub fn documents(rows: &[Row]) -> Result<Vec<Taken>, Error> {
    rows.chunk_by(|one, other| one.0.first() == other.0.first()).map(document).collect()
}

fn document(rows: &[Row]) -> Result<Taken, Error> {
    let Some(first) = rows.first() else { return Err(Error::Corrupt("a document has no passage".into())) };
    let (id, title) = (first.text(0)?.to_owned(), first.text(1)?);
    let ruler = Ruler::new(first.text(10)?);
    let mut print = DefaultHasher::new();
    (title, first.text(2)?, first.int(4)?).hash(&mut print);
    let mut passages = Vec::with_capacity(rows.len());
    for row in rows {
        let (number, start, chars, heading) = (row.int(5)?, row.int(6)?, row.int(7)?, row.text(8)?);
        // Passages that were stored before there were prints have none.
        (number, start, chars, heading, row.blob(9).ok()).hash(&mut print);
        let head = terms(&format!("{title}\n{heading}"));
        passages.push(Passage { number, words: words(terms(ruler.piece(start, chars)), head) });
    }
    Ok(Taken { id, print: print.finish(), hidden: first.int(3)? != 0, passages })
}

/// Each word once, with how often it stands where.
fn words(body: Vec<Term>, head: Vec<Term>) -> Vec<(String, Counts)> {
    let mut all = Vec::with_capacity(body.len() + head.len());
    let (in_body, in_head) =
        (Counts { body: 1, ..Counts::default() }, Counts { head: 1, ..Counts::default() });
    for (term, counts) in
        body.into_iter().map(|term| (term, in_body)).chain(head.into_iter().map(|term| (term, in_head)))
    {
        all.push((term.kept, counts));
        all.extend(term.folded.map(|folded| (folded, Counts { fold: 1, ..Counts::default() })));
    }
    all.iter_mut().for_each(|(word, _)| cut(word));
    all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    all.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            let (sum, more) = (&mut kept.1, next.1);
            (sum.body, sum.head, sum.fold) =
                (sum.body + more.body, sum.head + more.head, sum.fold + more.fold);
        }
        same
    });
    all.retain(|(word, _)| !word.is_empty());
    all
}

/// The store's index ends a word at a sign of ASCII that is neither letter nor digit. Some letters hold one once they are
/// spelled out: ⑴ is (1).
fn cut(word: &mut String) {
    let ends = |byte: u8| byte.is_ascii() && !byte.is_ascii_alphanumeric() && byte != b'_';
    if let Some(end) = word.bytes().position(ends) {
        word.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_where_they_stand() {
        let found = words(terms("Đường duong runs run"), terms("Run ⑴ ﷺ"));
        let of = |word: &str| found.iter().find(|(found, _)| found == word).map(|(_, counts)| *counts);
        assert_eq!(of("run"), Some(Counts { body: 2, head: 1, fold: 0 }));
        assert_eq!(of("duong"), Some(Counts { body: 1, head: 0, fold: 1 }));
        assert_eq!(of("đường"), Some(Counts { body: 1, head: 0, fold: 0 }));
        assert_eq!(of("(1)"), None);
        assert_eq!(of("صلى"), Some(Counts { body: 0, head: 1, fold: 0 }), "up to its first space");
        assert!(found.iter().all(|(word, _)| !word.is_empty()));
    }
}
