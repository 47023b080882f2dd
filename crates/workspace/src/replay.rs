//! What the trail says was written, compared with itself and with what is there.

use std::collections::BTreeMap;

use orchestr8_contract::chain::Verified;
use serde_json::{Value, json};

use crate::limits;
use crate::refusal::Refusal;
use crate::root::{Inside, Root};
use crate::trail::{self, Change, Lines, Record, Sealed, prove};

/// Paths that are kept in mind at once.
const PATHS: usize = 100_000;

/// Which entries are looked at.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub plan_hash: Option<String>,
    pub phase_id: Option<String>,
    pub tool: Option<String>,
    pub seq_start: Option<i64>,
    pub seq_end: Option<i64>,
}

impl Filter {
    pub fn takes(&self, seq: i64, record: &Record) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
        };
        is(&self.plan_hash, record.plan_hash.as_deref())
            && is(&self.phase_id, record.phase_id.as_deref())
            && is(&self.tool, Some(&record.tool_name))
            && self.seq_start.is_none_or(|start| seq >= start)
            && self.seq_end.is_none_or(|end| seq <= end)
    }
}

/// Something that does not fit.
#[derive(Debug, Clone)]
pub struct Finding {
    pub seq: Option<i64>,
    pub path: Option<String>,
    pub what: String,
}

impl Finding {
    pub fn shown(&self) -> Value {
        json!({"seq": self.seq, "path": self.path, "message": self.what})
    }
}

/// What came of going through a trail.
#[derive(Debug, Default)]
pub struct Replayed {
    pub entries: usize,
    pub failures: BTreeMap<&'static str, u64>,
    pub writes: usize,
    /// The newest write of each path, among the entries that were looked at.
    pub files: BTreeMap<String, (i64, Change)>,
    /// The newest write of each path, among all entries.
    pub all_files: BTreeMap<String, (i64, Change)>,
    pub findings: Vec<Finding>,
    pub verified: Option<Verified>,
    /// The first entry of the trail that is not the one that the server wrote.
    pub tampered: Option<i64>,
    has_end: bool,
}

/// Goes through a trail: proves it whole and that it leads to the end that the server knows, and that each write began with what
/// the write before it left.
pub fn replay(root: &Root, filter: &Filter, end: &Sealed) -> Result<Replayed, Refusal> {
    let mut replayed = Replayed { has_end: end.seq == 0, ..Replayed::default() };
    let mut lines = Lines::of(root).map_err(|error| error.refusal())?;
    let proof = prove(&mut lines, |entry| {
        replayed.has_end |= entry.seq == end.seq && entry.entry_hash == end.hash.as_bytes();
        match serde_json::from_slice::<Record>(entry.body) {
            Ok(record) => replayed.take(entry.seq, record, filter),
            Err(_) => replayed.find(Some(entry.seq), None, "the entry does not say what an entry says"),
        }
    });
    match proof {
        Ok(verified) if replayed.has_end => replayed.verified = Some(verified),
        Ok(_) => replayed.tamper(end.seq, "the entry is not the one that this server wrote"),
        Err(trail::Error::Broken { seq, what } | trail::Error::Tampered { seq, what }) => {
            replayed.tamper(seq, &what);
        }
        Err(error @ (trail::Error::Locked | trail::Error::Io(_) | trail::Error::Closed)) => {
            return Err(error.refusal());
        }
    }
    Ok(replayed)
}

impl Replayed {
    fn take(&mut self, seq: i64, record: Record, filter: &Filter) {
        let takes = filter.takes(seq, &record);
        if takes {
            self.entries += 1;
            if let Some(code) = record.error_code {
                *self.failures.entry(code.as_str()).or_default() += 1;
            }
        }
        if record.write_stage().is_some() {
            return;
        }
        let Some(change) = record.change else { return };
        if let Some((_, last)) = self.all_files.get(&change.path)
            && change.before.as_deref() != Some(last.after.as_str())
        {
            self.find(
                Some(seq),
                Some(&change.path),
                "the file had been changed by something that is not in the trail",
            );
        }
        if takes {
            self.writes += 1;
            if self.files.len() < PATHS {
                self.files.insert(change.path.clone(), (seq, change.clone()));
            }
        }
        if self.all_files.len() < PATHS {
            self.all_files.insert(change.path.clone(), (seq, change));
        }
    }

    fn tamper(&mut self, seq: i64, what: &str) {
        self.tampered = Some(seq);
        self.find(Some(seq), None, format!("TAMPERED: {what}"));
    }

    /// What it comes to, in one word.
    pub fn verdict(&self) -> &'static str {
        match (self.tampered, self.findings.is_empty()) {
            (Some(_), _) => "TAMPERED",
            (None, true) => "CONSISTENT",
            (None, false) => "DIVERGED",
        }
    }

    pub fn find(&mut self, seq: Option<i64>, path: Option<&str>, what: impl Into<String>) {
        if self.findings.len() < limits::FINDINGS {
            self.findings.push(Finding { seq, path: path.map(str::to_owned), what: what.into() });
        }
    }

    /// Compares what was written last with what is there.
    pub fn compare(&mut self, root: &Root) {
        let files: Vec<(String, i64, String)> = self
            .all_files
            .iter()
            .filter(|(path, _)| self.files.contains_key(*path))
            .map(|(path, (seq, change))| (path.clone(), *seq, change.after.clone()))
            .collect();
        for (path, seq, after) in files {
            match root.look(&Inside::own(path.clone())) {
                Ok(Some(found)) if found.hash() == after => {}
                Ok(Some(_)) => self.find(Some(seq), Some(&path), "the file is not what was written last"),
                Ok(None) => self.find(Some(seq), Some(&path), "the file is gone"),
                Err(refusal) => self.find(Some(seq), Some(&path), refusal.message),
            }
        }
    }
}
