//! The comparison of the store with what the witnesses remember, before it is used.

use orchestr8_stores::Sqlite;

use super::client::WitnessProblem;
use crate::head::TreeHead;
use crate::recorder::{Error, RecorderSettings};

/// Compares the store with what the witnesses remember. One that cannot be reached, or knows nothing yet, says nothing; where a
/// witness is required, one must answer. Gives those that did not answer.
pub async fn compare_with_witnesses(
    store: &Sqlite,
    settings: &RecorderSettings,
) -> Result<Vec<(String, WitnessProblem)>, Error> {
    let key = settings.key.public();
    let (mut silent, mut answered) = (Vec::new(), false);
    for witness in &settings.witnesses.witnesses {
        let (mut is_heard, client) = (true, witness.client());
        for source in &settings.sources {
            let origin = format!("{}/{}", settings.origin, source.name);
            let asked = witness.heads(&client, &origin, key).await;
            let name = witness.to_string();
            match asked {
                Ok(heads) => {
                    if let Some(head) = heads.first() {
                        agrees(store, source.name, head, &name)?;
                    }
                }
                Err(cause @ WitnessProblem::Forged(_)) => {
                    return Err(Error::Witness { witness: name, cause });
                }
                Err(cause) => {
                    is_heard = false;
                    silent.push((name, cause));
                    break;
                }
            }
        }
        answered |= is_heard;
    }
    match silent.first() {
        Some((witness, cause)) if settings.witnesses.require && !answered => {
            Err(Error::Witness { witness: witness.clone(), cause: cause.clone() })
        }
        Some(_) | None => Ok(silent),
    }
}

/// The log must have grown from the head that a witness remembers.
fn agrees(store: &Sqlite, log: &'static str, head: &TreeHead, witness: &str) -> Result<(), Error> {
    match store.compare_log(log, &head.known())? {
        None => Ok(()),
        Some(difference) => Err(Error::Rewound {
            witness: witness.to_owned(),
            at: orchestr8_kernel::ports::clock::iso(head.at_ms),
            difference,
        }),
    }
}
