//! The statements over webhooks and what is to be delivered to them.

use orchestr8_kernel::ports::store::Statement;

use super::News;
use crate::tables::Whose;

/// One delivery for every webhook of the tenant that wants to know.
pub fn delivery_insert(news: &News<'_>) -> Statement {
    Statement::new(
        "INSERT INTO knowledge_delivery (tenant, id, webhook, event, body, attempts, due_ms)
         SELECT ?1, ?2, id, ?3, ?4, 0, ?5 FROM knowledge_webhook
         WHERE tenant = ?1 AND paused IS NULL AND events LIKE '%,' || ?3 || ',%'",
        vec![
            news.tenant.into(),
            news.id.to_string().into(),
            news.event().into(),
            news.body().into(),
            news.document.updated_ms.into(),
        ],
    )
}

/// A webhook as it is added.
pub struct NewWebhook<'a> {
    pub url: &'a str,
    /// Between commas.
    pub events: &'a str,
    pub secret: Option<&'a str>,
    /// On whose behalf it is told of changes.
    pub author: &'a str,
}

/// Changes one row, or there are too many, or it exists.
pub fn webhook_insert(whose: Whose<'_>, webhook: &NewWebhook<'_>, now_ms: i64, max: i64) -> Statement {
    let NewWebhook { url, events, secret, author } = *webhook;
    Statement::new(
        "INSERT INTO knowledge_webhook (tenant, id, url, events, secret, created_ms, author)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?8 WHERE (SELECT COUNT(*) FROM knowledge_webhook WHERE tenant = ?1) < ?7
         ON CONFLICT DO NOTHING",
        whose.and([url.into(), events.into(), secret.into(), now_ms.into(), max.into(), author.into()]),
    )
}

/// Stops it, and gives up what waits for it; the first changes no row if it is stopped already.
pub fn webhook_pause(whose: Whose<'_>, reason: &str, now_ms: i64) -> [Statement; 2] {
    [
        Statement::new(
            "UPDATE knowledge_webhook SET paused = ?3 WHERE tenant = ?1 AND id = ?2 AND paused IS NULL",
            whose.and([reason.into()]),
        ),
        Statement::new(
            "UPDATE knowledge_delivery SET due_ms = NULL, failed_ms = ?4, why = ?3
             WHERE tenant = ?1 AND webhook = ?2 AND due_ms IS NOT NULL",
            whose.and([reason.into(), now_ms.into()]),
        ),
    ]
}

/// The webhook and what waits for it; the first must change one row.
pub fn webhook_delete(whose: Whose<'_>) -> [Statement; 2] {
    [
        "DELETE FROM knowledge_webhook WHERE tenant = ?1 AND id = ?2",
        "DELETE FROM knowledge_delivery WHERE tenant = ?1 AND webhook = ?2",
    ]
    .map(|sql| Statement::new(sql, whose.cells()))
}

/// Columns: id, url, events, created_ms, whether it has a secret, waiting deliveries, failed deliveries, why the last failed,
/// author, why it is paused.
pub fn webhooks(tenant: &str) -> Statement {
    Statement::new(
        "SELECT hook.id, hook.url, hook.events, hook.created_ms, CASE WHEN hook.secret IS NULL THEN 0 ELSE 1 END,
            (SELECT COUNT(*) FROM knowledge_delivery d WHERE d.tenant = ?1 AND d.webhook = hook.id AND d.due_ms IS NOT NULL),
            (SELECT COUNT(*) FROM knowledge_delivery d WHERE d.tenant = ?1 AND d.webhook = hook.id AND d.failed_ms IS NOT NULL),
            (SELECT d.why FROM knowledge_delivery d WHERE d.tenant = ?1 AND d.webhook = hook.id AND d.why IS NOT NULL
               ORDER BY d.failed_ms DESC, d.id DESC LIMIT 1), hook.author, hook.paused
         FROM knowledge_webhook hook WHERE hook.tenant = ?1 ORDER BY hook.created_ms, hook.id",
        vec![tenant.into()],
    )
}

/// What is due, oldest first. Columns: tenant, id, webhook, event, body, attempts, url, secret, author.
pub fn due(now_ms: i64, limit: i64) -> Statement {
    Statement::new(
        "SELECT d.tenant, d.id, d.webhook, d.event, d.body, d.attempts, hook.url, hook.secret, hook.author
         FROM knowledge_delivery d JOIN knowledge_webhook hook ON hook.tenant = d.tenant AND hook.id = d.webhook
         WHERE d.due_ms IS NOT NULL AND d.due_ms <= ?1 ORDER BY d.due_ms, d.tenant, d.id, d.webhook LIMIT ?2",
        vec![now_ms.into(), limit.into()],
    )
}

/// When the next is due. Columns: due_ms.
pub fn next_due() -> Statement {
    Statement::new("SELECT MIN(due_ms) FROM knowledge_delivery WHERE due_ms IS NOT NULL", vec![])
}

/// Which delivery.
#[derive(Clone, Copy)]
pub struct Which<'a> {
    pub tenant: &'a str,
    pub id: &'a str,
    pub webhook: &'a str,
}

pub fn delivered(which: Which<'_>) -> Statement {
    Statement::new(
        "DELETE FROM knowledge_delivery WHERE tenant = ?1 AND id = ?2 AND webhook = ?3",
        vec![which.tenant.into(), which.id.into(), which.webhook.into()],
    )
}

/// Tried in vain: to be tried again, or given up.
pub fn put_off(
    which: Which<'_>,
    attempts: i64,
    due_ms: Option<i64>,
    failed_ms: Option<i64>,
    why: &str,
) -> Statement {
    Statement::new(
        "UPDATE knowledge_delivery SET attempts = ?4, due_ms = ?5, failed_ms = ?6, why = ?7
         WHERE tenant = ?1 AND id = ?2 AND webhook = ?3",
        vec![
            which.tenant.into(),
            which.id.into(),
            which.webhook.into(),
            attempts.into(),
            due_ms.into(),
            failed_ms.into(),
            why.into(),
        ],
    )
}

/// Forgets what was given up long ago.
pub fn forget(before_ms: i64) -> Statement {
    Statement::new(
        "DELETE FROM knowledge_delivery WHERE failed_ms IS NOT NULL AND failed_ms < ?1",
        vec![before_ms.into()],
    )
}
