//! The header comment of a plan, and the hash of everything but it.

use orchestr8_contract::envelope::Role;

use crate::root::sha256;

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Draft,
    Approved,
    Rejected,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "DRAFT",
            Status::Approved => "APPROVED",
            Status::Rejected => "REJECTED",
        }
    }
}

/// What the header comment says. It shows what the server decided; nothing is believed because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub hash: String,
    pub role: Role,
    pub status: Status,
}

impl Head {
    /// None unless all three are there.
    pub fn read(text: &str) -> Option<Self> {
        let (comment, _) = text.trim_start().strip_prefix(OPEN)?.split_once(CLOSE)?;
        let field = |name: &str| {
            comment.lines().find_map(|line| Some(line.trim().strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let role = field("ROLE")?;
        let status = match field("STATUS")? {
            "APPROVED" => Status::Approved,
            "REJECTED" => Status::Rejected,
            _ => Status::Draft,
        };
        Some(Self {
            hash: field("PLAN_HASH")?.to_owned(),
            role: Role::ALL.into_iter().find(|known| known.wire() == role)?,
            status,
        })
    }
}

/// The text without its header comment.
pub fn body(text: &str) -> &str {
    let trimmed = text.trim_start();
    match trimmed.strip_prefix(OPEN).and_then(|rest| rest.split_once(CLOSE)) {
        Some((_, rest)) => rest,
        None => text,
    }
}

/// The SHA-256 of the text without its header comment: each line without blanks at its end, no empty lines before the
/// first and after the last, lines joined by a line feed.
pub fn hash_of(text: &str) -> String {
    let lines: Vec<&str> = body(text).lines().map(str::trim_end).collect();
    sha256(lines.join("\n").trim_matches('\n').as_bytes())
}

pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The text with this header instead of the one it may have.
pub fn with_head(text: &str, head: &Head) -> String {
    let (hash, role, status) = (&head.hash, head.role.wire(), head.status.as_str());
    let body = body(text).trim_matches('\n').trim_end();
    format!("{OPEN}\nPLAN_HASH: {hash}\nROLE: {role}\nSTATUS: {status}\n{CLOSE}\n{body}\n")
}
