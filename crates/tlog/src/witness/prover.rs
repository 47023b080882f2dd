//! Consistency proofs for witnesses: that the logs of this server have grown from the sizes that a witness remembers.

use std::collections::BTreeMap;

use orchestr8_contract::canonical::hex;
use orchestr8_stores::Sqlite;
use orchestr8_stores::merkle::LogSource;
use serde_json::{Value, json};

use super::client::WitnessProblem;
use crate::head::TreeHead;
use crate::head_file::HeadLine;
use crate::key::LogPublicKey;

/// The logs of this server, and the key that their heads are signed with.
#[derive(Clone)]
pub struct LogProver {
    pub store: Sqlite,
    pub sources: Vec<LogSource>,
    pub key: LogPublicKey,
}

impl LogProver {
    /// The heads of a line.
    pub(super) fn open(&self, line: &HeadLine) -> Result<Vec<TreeHead>, WitnessProblem> {
        let open = |note: &String| TreeHead::open(note, &self.key);
        let heads: Result<Vec<_>, _> = line.heads.iter().map(open).collect();
        heads.map_err(|cause| WitnessProblem::Forged(cause.to_string()))
    }

    /// The proof of each head whose log the witness remembers smaller.
    pub(super) async fn prove_all(
        &self,
        heads: &[TreeHead],
        remembered: &BTreeMap<String, u64>,
    ) -> Result<Vec<Value>, WitnessProblem> {
        let mut proofs = Vec::new();
        for head in heads {
            match remembered.get(&head.origin) {
                Some(from) if *from < head.size => proofs.push(self.prove(head, *from).await?),
                Some(_) | None => {}
            }
        }
        Ok(proofs)
    }

    async fn prove(&self, head: &TreeHead, from: u64) -> Result<Value, WitnessProblem> {
        let unprovable = || WitnessProblem::Unprovable(head.origin.clone());
        let source = self.sources.iter().find(|source| source.name == head.log()).ok_or_else(unprovable)?;
        let proof = self.store.prove_growth(*source, (from, head.size)).await;
        let hashes = proof.ok().flatten().ok_or_else(unprovable)?;
        let hashes: Vec<String> = hashes.iter().map(|hash| hex(hash)).collect();
        Ok(json!({"origin": head.origin, "from": from, "hashes": hashes}))
    }
}
