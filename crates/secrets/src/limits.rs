//! Limits of named secrets, each with its reason.

/// Secrets of one installation: all of them are held in memory, for masking.
pub const SECRETS: i64 = 10_000;

/// Values that are still masked after they were replaced or deleted, until the process ends.
pub const RETIRED: usize = 1_000;

/// A shorter value cannot be masked reliably: it would match ordinary text, and it could be guessed by looking at what is masked.
pub const VALUE_MIN_CHARACTERS: usize = 8;

/// Certificates and service account files fit; a row of the store stays small.
pub const VALUE_MAX_BYTES: usize = 64 * 1024;

pub const NAME_CHARACTERS: usize = 128;

/// Workflows, agents and destinations of one secret.
pub const BINDINGS: usize = 32;

/// A workflow id, an agent id or a destination.
pub const BINDING_CHARACTERS: usize = 512;
