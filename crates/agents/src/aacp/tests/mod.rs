//! What the ledger, the envelope and the hub promise, each under its tag.

mod envelope;
mod hub;
mod ledger;
