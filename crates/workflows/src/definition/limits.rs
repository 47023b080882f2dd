//! The limits of definitions, each with its reason; those that the engine keeps too are in `crate::limits`.

pub use crate::limits::*;

/// An id of a workflow or step: it is part of keys and addresses.
pub const ID_CHARACTERS: usize = 128;

/// A name, version, pattern or other short text of a definition.
pub const NAME_CHARACTERS: usize = 256;

/// A description: it is shown in lists.
pub const DESCRIPTION_CHARACTERS: usize = 10_000;

/// Tags, names and rules in one list of a definition.
pub const NAMES: usize = 1000;

/// Triggers that a definition names for notifications.
pub const NOTIFY: usize = 10;

/// Branches of one `switch`.
pub const CASES: usize = 100;

/// Attempts of one step; more is a loop, and there is `while` for that.
pub const ATTEMPTS: u32 = 100;

/// The longest time a definition may give: ten years. Beyond it a mistake of units is more likely than a wish.
pub const DURATION_MS: u64 = 10 * 366 * 86_400_000;

/// Validated definitions kept in memory, by the size of their text, which becomes up to fifty times as large when it is read.
pub const DEFINITIONS_BYTES: usize = 4_194_304;
