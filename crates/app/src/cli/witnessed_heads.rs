//! The heads of this server's logs that its witnesses remember, for commands that verify them.

use orchestr8_contract::Code;
use orchestr8_outbound::Client;
use orchestr8_tlog::{LogPublicKey, TreeHead, Witness, WitnessProblem};

use crate::failure::Failure;
use crate::settings::AuditSettings;
use crate::tables;

/// What the witnesses say.
#[derive(Default)]
pub struct WitnessedHeads {
    pub heads: Vec<TreeHead>,
    /// Those that did not answer, and why.
    pub silent: Vec<String>,
}

/// Asks the witnesses of the settings, or the one that is named, which must answer.
pub fn ask(
    audit: &AuditSettings,
    named: Option<&str>,
    key: &LogPublicKey,
) -> Result<WitnessedHeads, Failure> {
    let known = audit.witnesses.witnesses.first();
    let token = known.and_then(|witness| witness.token.clone());
    let witnesses = match named {
        Some(url) => vec![crate::settings::witness(url, token, audit.witness_authorities.clone())?],
        None => audit.witnesses.witnesses.clone(),
    };
    let mut found = WitnessedHeads::default();
    for witness in &witnesses {
        match crate::runtime::block_on(heads_of(witness, &witness.client(), &audit.origin, key))? {
            Ok(heads) => found.heads.extend(heads),
            Err(cause) if named.is_some() => {
                return Err(Failure::new(Code::Unavailable, format!("the {witness}: {cause}"))
                    .hinting("see that it runs and knows the token"));
            }
            Err(cause) => found.silent.push(format!("not compared with the {witness}: {cause}")),
        }
    }
    Ok(found)
}

/// The heads of all logs. A head that our key did not sign is a failure, whichever witness returned it.
async fn heads_of(
    witness: &Witness,
    client: &Client,
    origin: &str,
    key: &LogPublicKey,
) -> Result<Result<Vec<TreeHead>, WitnessProblem>, Failure> {
    let mut found = Vec::new();
    for source in &tables::LOGS {
        match witness.heads(client, &format!("{origin}/{}", source.name), key).await {
            Ok(heads) => found.extend(heads),
            Err(cause @ WitnessProblem::Forged(_)) => {
                return Err(Failure::new(Code::StoreCorrupt, format!("the {witness}: {cause}"))
                    .hinting("the key of the log was changed, or the witness is not to be trusted"));
            }
            Err(cause) => return Ok(Err(cause)),
        }
    }
    Ok(Ok(found))
}
