//! The limits of API tokens, each with its reason.

/// Tokens of one tenant that are not revoked: one for each program and person, with room.
pub const TOKENS_PER_TENANT: i64 = 1_000;

/// The longest name: it becomes the name of a principal, which logs and lists show.
pub const NAME_CHARS: usize = 64;

/// How long the old secret of a rotated token works unless something else is said: long enough to roll it out.
pub const GRACE_MS: i64 = 24 * 60 * 60 * 1000;

/// The longest grace: a secret that still works after a month was not rotated.
pub const GRACE_LIMIT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Roles of one token.
pub const ROLES_PER_TOKEN: usize = 16;

/// Tokens on a page of the list.
pub const PAGE: i64 = 200;

/// How often the last use of tokens is written down. Requests only note it in memory.
pub const LAST_USED_EVERY_MS: u64 = 60_000;
