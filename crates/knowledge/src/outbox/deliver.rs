//! Deliveries: each is sent until the other side has taken it, with longer and longer waits, and given up after many attempts.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::audit::StateChange;
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::principals::Standing;
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use orchestr8_outbound::delivery::{DeliveryEnd, SignedDelivery};
use orchestr8_secrets::{RecordKind, SecretText};
use serde_json::json;

use super::IN_VAULT;
use super::tables::{self, Which};
use crate::hub::Hub;
use crate::limits::{
    DELIVERIES, DELIVERY_ATTEMPTS, DELIVERY_BASE_MS, DELIVERY_CAP_MS, DELIVERY_KEPT_MS, DELIVERY_TIMEOUT_MS,
};
use crate::record::{optional, read};
use crate::tables::Whose;

/// Why a webhook of a principal without credentials is paused.
const REVOKED: &str = "principal_revoked";

/// One delivery as it is stored.
struct Parcel {
    tenant: String,
    id: String,
    webhook: String,
    event: String,
    body: String,
    attempts: i64,
    url: String,
    secret: Option<String>,
    /// Who added the webhook; none for one of an earlier version.
    author: Option<String>,
}

impl Hub {
    /// Sends what is due and says how many were taken. What fails is due again later.
    pub async fn deliver_due(&self) -> Result<usize, Fault> {
        let rows = self.rows(tables::due(self.now_ms(), DELIVERIES)).await?;
        let parcels = rows.iter().map(parcel).collect::<Result<Vec<_>, _>>()?;
        let (orphaned, parcels): (Vec<_>, Vec<_>) =
            parcels.into_iter().partition(|parcel| self.is_orphaned(parcel));
        if !orphaned.is_empty() {
            self.pause_orphaned(&orphaned).await?;
        }
        let ended = join_all(parcels.iter().map(|parcel| self.send(parcel))).await;
        let (mut batch, mut taken, mut given_up) = (Batch::new(), 0, Vec::new());
        for (parcel, ended) in parcels.iter().zip(ended) {
            let which = Which { tenant: &parcel.tenant, id: &parcel.id, webhook: &parcel.webhook };
            let attempts = parcel.attempts + 1;
            batch.then(match ended {
                DeliveryEnd::Taken => {
                    taken += 1;
                    tables::delivered(which)
                }
                DeliveryEnd::Refused(why) if attempts < DELIVERY_ATTEMPTS => {
                    let due_ms = self.now_ms() + self.wait_ms(attempts);
                    tables::put_off(which, attempts, Some(due_ms), None, &why)
                }
                DeliveryEnd::Refused(why) | DeliveryEnd::Gone(why) => {
                    let word = json!({"tenant": parcel.tenant, "webhook": parcel.webhook, "why": why});
                    self.kernel().log().warn("a delivery was given up", word);
                    let change = StateChange {
                        code: Some(Code::Unavailable),
                        detail: json!({"delivery": parcel.id, "attempts": attempts}),
                        ..StateChange::by_server("webhooks.give_up", &parcel.tenant, Some(&parcel.webhook))
                    };
                    given_up.push(change.link(self.now_ms()));
                    tables::put_off(which, attempts, None, Some(self.now_ms()), &why)
                }
            });
        }
        batch.links.extend(given_up);
        if !batch.is_empty() {
            self.store().commit(batch).await.map_err(read)?;
        }
        Ok(taken)
    }

    /// Whether the credentials of the author of its webhook are gone.
    fn is_orphaned(&self, parcel: &Parcel) -> bool {
        let author = parcel.author.as_deref().zip(Tenant::parse(&parcel.tenant).ok());
        author.is_some_and(|(author, tenant)| self.kernel().standing(&tenant, author) == Standing::Revoked)
    }

    /// Stops the webhooks of principals whose credentials were revoked: no principal answers for what they are told.
    async fn pause_orphaned(&self, orphaned: &[Parcel]) -> Result<(), Fault> {
        let mut webhooks = BTreeMap::new();
        webhooks.extend(orphaned.iter().map(|parcel| ((&parcel.tenant, &parcel.webhook), &parcel.author)));
        let (mut batch, now_ms) = (Batch::new(), self.now_ms());
        for ((tenant, webhook), author) in webhooks {
            let word = json!({"tenant": tenant, "webhook": webhook, "author": author});
            self.kernel()
                .log()
                .warn("a webhook was paused: the credentials of its author were revoked", word);
            let change = StateChange {
                detail: json!({"reason": REVOKED, "author": author}),
                ..StateChange::by_server("webhooks.pause", tenant, Some(webhook))
            };
            batch.link(change.link(now_ms));
            for statement in tables::webhook_pause(Whose { tenant, id: webhook }, REVOKED, now_ms) {
                batch.then(statement);
            }
        }
        self.store().commit(batch).await.map_err(read)
    }

    /// How long until something is due; none if nothing waits.
    pub(crate) async fn due_in_ms(&self) -> Result<Option<u64>, Fault> {
        let row = self.row(tables::next_due()).await?;
        let due_ms = row.map_or(Ok(None), |row| optional(&row, 0)).map_err(read)?;
        Ok(due_ms.map(|due_ms| u64::try_from(due_ms - self.now_ms()).unwrap_or(0)))
    }

    /// Forgets what was given up long ago.
    pub(crate) async fn forget_deliveries(&self) -> Result<(), Fault> {
        let mut batch = Batch::new();
        batch.then(tables::forget(self.now_ms() - DELIVERY_KEPT_MS));
        self.store().commit(batch).await.map_err(read)
    }

    fn wait_ms(&self, attempts: i64) -> i64 {
        let doubled = u32::try_from(attempts - 1).ok().and_then(|n| DELIVERY_BASE_MS.checked_shl(n));
        let ceiling_ms = doubled.unwrap_or(DELIVERY_CAP_MS).min(DELIVERY_CAP_MS);
        let unit = self.kernel().ports().random.unit();
        i64::try_from(delay_ms(Jitter::Full, ceiling_ms, unit)).unwrap_or(i64::MAX)
    }

    async fn send(&self, parcel: &Parcel) -> DeliveryEnd {
        let secret = match self.secret(parcel) {
            Ok(secret) => secret,
            Err(fault) => return DeliveryEnd::Refused(fault.message.into_owned()),
        };
        let delivery = SignedDelivery {
            url: &parcel.url,
            event: &parcel.event,
            id: &parcel.id,
            body: &parcel.body,
            secret: secret.as_ref().map(SecretText::expose),
            timeout: Duration::from_millis(DELIVERY_TIMEOUT_MS),
        };
        delivery.send(self.client(), self.guard(), self.now_ms()).await
    }
}

impl Hub {
    /// What signs a delivery. Nothing goes out unsigned because the vault is locked.
    fn secret(&self, parcel: &Parcel) -> Result<Option<SecretText>, Fault> {
        match parcel.secret.as_deref() {
            None => Ok(None),
            Some(IN_VAULT) => {
                let kept = self
                    .vault()
                    .and_then(|vault| vault.internal(RecordKind::Webhook, &parcel.tenant, &parcel.webhook));
                let missing = || {
                    Fault::new(Code::SecretsUnavailable, "the secret that signs the delivery cannot be read")
                };
                kept.map(Some).ok_or_else(missing)
            }
            Some(clear) => Ok(Some(SecretText::new(clear))),
        }
    }
}

fn parcel(row: &Row) -> Result<Parcel, Fault> {
    let of = || {
        let text = |at| Ok(row.text(at)?.to_owned());
        Ok(Parcel {
            tenant: text(0)?,
            id: text(1)?,
            webhook: text(2)?,
            event: text(3)?,
            body: text(4)?,
            attempts: row.int(5)?,
            url: text(6)?,
            secret: row.optional_text(7)?.map(str::to_owned),
            author: row.optional_text(8)?.map(str::to_owned),
        })
    };
    of().map_err(read)
}
