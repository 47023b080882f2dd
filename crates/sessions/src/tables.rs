//! The tables of sessions and every statement over them. The only SQL of this crate.

use std::fmt::Write;

use orchestr8_kernel::ports::store::{Cell, Statement};

/// Applied in order, once, by the store.
pub const MIGRATIONS: &[(&str, &str)] = &[
    (
        "sessions-1",
        "CREATE TABLE session (
        tenant TEXT NOT NULL, id TEXT NOT NULL, created_ms INTEGER NOT NULL, seq INTEGER NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (tenant, id)) STRICT, WITHOUT ROWID;
     CREATE TABLE session_entry (
        tenant TEXT NOT NULL, session TEXT NOT NULL, place INTEGER NOT NULL, label TEXT, record TEXT NOT NULL,
        PRIMARY KEY (tenant, session, place)) STRICT, WITHOUT ROWID;
     CREATE TABLE session_event (
        tenant TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (tenant, session, seq)) STRICT, WITHOUT ROWID;
     CREATE TABLE session_queue (
        tenant TEXT NOT NULL, session TEXT NOT NULL, place INTEGER NOT NULL, record TEXT NOT NULL,
        PRIMARY KEY (tenant, session, place)) STRICT, WITHOUT ROWID;",
    ),
    // The history of commands, without a look at everything else the journal holds.
    (
        "sessions-2",
        "CREATE INDEX journal_session ON journal (tenant, at_ms) WHERE action >= 'session.' AND action < 'session/';",
    ),
];

/// Whose session it is.
#[derive(Clone, Copy)]
pub struct Whose<'a> {
    pub tenant: &'a str,
    pub session: &'a str,
}

impl Whose<'_> {
    fn cells(&self) -> Vec<Cell> {
        vec![self.tenant.into(), self.session.into()]
    }

    fn and(&self, more: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
        let mut cells = self.cells();
        cells.extend(more);
        cells
    }
}

fn number(count: u64) -> Cell {
    Cell::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Changes one row, or there is such a session already.
pub fn session_insert(whose: Whose<'_>, created_ms: i64, record: String) -> Statement {
    Statement::new(
        "INSERT INTO session (tenant, id, created_ms, seq, record) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT DO NOTHING",
        whose.and([created_ms.into(), record.into()]),
    )
}

/// Changes one row, or the session is gone.
pub fn session_update(whose: Whose<'_>, record: String) -> Statement {
    Statement::new("UPDATE session SET record = ?3 WHERE tenant = ?1 AND id = ?2", whose.and([record.into()]))
}

/// Reserves event numbers up to this one.
pub fn session_reserve(whose: Whose<'_>, seq: u64) -> Statement {
    Statement::new(
        "UPDATE session SET seq = ?3 WHERE tenant = ?1 AND id = ?2 AND seq < ?3",
        whose.and([number(seq)]),
    )
}

/// Every session after one, in order. Columns: tenant, id, created_ms, seq, record.
pub fn sessions_after(after: Whose<'_>, limit: i64) -> Statement {
    Statement::new(
        "SELECT tenant, id, created_ms, seq, record FROM session
         WHERE (tenant, id) > (?1, ?2) ORDER BY tenant, id LIMIT ?3",
        after.and([limit.into()]),
    )
}

/// Everything of a session; the first must change one row.
pub fn session_delete(whose: Whose<'_>) -> [Statement; 4] {
    [
        "DELETE FROM session WHERE tenant = ?1 AND id = ?2",
        "DELETE FROM session_entry WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM session_event WHERE tenant = ?1 AND session = ?2",
        "DELETE FROM session_queue WHERE tenant = ?1 AND session = ?2",
    ]
    .map(|sql| Statement::new(sql, whose.cells()))
}

/// One entry to be put into its tree.
pub struct Placed {
    pub place: u64,
    pub label: Option<String>,
    pub record: String,
}

/// Changes as many rows as there are entries, or a place is taken.
pub fn entries_insert(whose: Whose<'_>, entries: Vec<Placed>) -> Statement {
    let mut sql = String::from("INSERT INTO session_entry (tenant, session, place, label, record) VALUES");
    let mut cells = whose.cells();
    for entry in entries {
        let (comma, next) = (if cells.len() > 2 { "," } else { "" }, cells.len() + 1);
        // Writing to a text cannot fail.
        let _ = write!(sql, "{comma} (?1, ?2, ?{next}, ?{}, ?{})", next + 1, next + 2);
        cells.extend([number(entry.place), entry.label.into(), entry.record.into()]);
    }
    sql.push_str(" ON CONFLICT DO NOTHING");
    Statement { sql: sql.into(), cells }
}

pub fn entry_label(whose: Whose<'_>, place: u64, label: Option<&str>) -> Statement {
    Statement::new(
        "UPDATE session_entry SET label = ?4 WHERE tenant = ?1 AND session = ?2 AND place = ?3",
        whose.and([number(place), label.into()]),
    )
}

/// Columns: place, label, record.
pub fn entries_from(whose: Whose<'_>, from: u64, limit: i64) -> Statement {
    Statement::new(
        "SELECT place, label, record FROM session_entry
         WHERE tenant = ?1 AND session = ?2 AND place >= ?3 ORDER BY place LIMIT ?4",
        whose.and([number(from), limit.into()]),
    )
}

pub fn event_insert(whose: Whose<'_>, seq: u64, record: String) -> Statement {
    Statement::new(
        "INSERT INTO session_event (tenant, session, seq, record) VALUES (?1, ?2, ?3, ?4)",
        whose.and([number(seq), record.into()]),
    )
}

/// The events after a number and up to another. Columns: seq, record.
pub fn events_between(whose: Whose<'_>, after: u64, upto: u64, limit: i64) -> Statement {
    Statement::new(
        "SELECT seq, record FROM session_event
         WHERE tenant = ?1 AND session = ?2 AND seq > ?3 AND seq <= ?4 ORDER BY seq LIMIT ?5",
        whose.and([number(after), number(upto), limit.into()]),
    )
}

/// Forgets all but the newest of a session's events.
pub fn events_trim(whose: Whose<'_>, kept: u64) -> Statement {
    Statement::new(
        "DELETE FROM session_event WHERE tenant = ?1 AND session = ?2 AND seq <=
            (SELECT seq FROM session_event WHERE tenant = ?1 AND session = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
        whose.and([number(kept)]),
    )
}

pub fn queue_insert(whose: Whose<'_>, place: u64, record: String) -> Statement {
    Statement::new(
        "INSERT INTO session_queue (tenant, session, place, record) VALUES (?1, ?2, ?3, ?4)",
        whose.and([number(place), record.into()]),
    )
}

/// Changes one row, or it was taken before.
pub fn queue_remove(whose: Whose<'_>, place: u64) -> Statement {
    Statement::new(
        "DELETE FROM session_queue WHERE tenant = ?1 AND session = ?2 AND place = ?3",
        whose.and([number(place)]),
    )
}

/// Everything that waits, of every session. Columns: tenant, session, place, record.
pub fn queue_all() -> Statement {
    Statement::new(
        "SELECT tenant, session, place, record FROM session_queue ORDER BY tenant, session, place",
        vec![],
    )
}

/// What a history is asked for.
pub struct Asked<'a> {
    pub tenant: &'a str,
    pub lanes: Option<[&'a str; 2]>,
    pub id: Option<&'a str>,
    pub from_ms: i64,
    pub to_ms: i64,
    pub limit: i64,
}

/// The newest commands of a tenant first. Columns: at_ms, run, action, entry, lane, id, data.
pub fn history(asked: &Asked<'_>) -> Statement {
    // Said so that the index over all commands is of no use: by lane or by id there are fewer to look at.
    let commands = format!("{JOURNAL} AND substr(action, 1, 8) = 'session.'");
    let of_lane =
        |lane: &str| format!("SELECT * FROM ({commands} AND lane = {lane} ORDER BY seq DESC LIMIT ?4)");
    let sql = match (asked.id, asked.lanes) {
        (Some(_), _) => {
            format!("{commands} AND id = ?5 AND (?6 IS NULL OR lane IN (?6, ?7)) ORDER BY seq DESC LIMIT ?4")
        }
        (None, Some(_)) => {
            format!("{} UNION ALL {} ORDER BY seq DESC LIMIT ?4", of_lane("?6"), of_lane("?7"))
        }
        (None, None) => {
            format!(
                "{JOURNAL} AND action >= 'session.' AND action < 'session/' ORDER BY at_ms DESC, seq DESC LIMIT ?4"
            )
        }
    };
    let [lane, side] = asked.lanes.map_or([None, None], |lanes| lanes.map(Some));
    let mut cells = vec![asked.tenant.into(), asked.from_ms.into(), asked.to_ms.into(), asked.limit.into()];
    if asked.id.is_some() || lane.is_some() {
        cells.extend([asked.id.into(), lane.into(), side.into()]);
    }
    Statement { sql: sql.into(), cells }
}

const JOURNAL: &str = "SELECT at_ms, run, action, entry, lane, id, data, seq FROM journal
    WHERE tenant = ?1 AND at_ms >= ?2 AND at_ms <= ?3";
