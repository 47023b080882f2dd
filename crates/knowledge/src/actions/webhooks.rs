//! The addresses that are told of changes.

use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::store::{Batch, Row};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use orchestr8_secrets::{RecordKind, SecretText};
use serde_json::{Value, json};

use super::named;
use crate::hub::{Hub, tenant};
use crate::limits::WEBHOOKS;
use crate::outbox::tables::NewWebhook;
use crate::outbox::{EVENTS, IN_VAULT, tables};
use crate::reading::missing;
use crate::record::read;
use crate::tables::Whose;
use crate::write::number;

pub async fn add(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, url) = (tenant(&context), args.text("url").unwrap_or_default());
    let parsed = reqwest::Url::parse(url);
    let parsed =
        parsed.map_err(|_| Fault::invalid("`url` is not an absolute address").with("path", "url"))?;
    hub.guard().check_url(&parsed)?;
    let there = hub.rows(tables::webhooks(tenant)).await?;
    if number(there.len()) >= WEBHOOKS {
        return Err(
            Fault::new(Code::ResourceExhausted, format!("a tenant has at most {WEBHOOKS} webhooks")).into()
        );
    }
    let named = args.get("events").and_then(Value::as_array);
    let events: Vec<&str> = match named {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => EVENTS.to_vec(),
    };
    let (id, list) = (hub.fresh().to_string(), format!(",{},", events.join(",")));
    let mut batch = Batch::new();
    let whose = Whose { tenant, id: &id };
    let kept = args.text("secret").map(|_| IN_VAULT);
    let author = &*context.principal.name;
    let webhook = NewWebhook { url, events: &list, secret: kept, author };
    batch.then_one(tables::webhook_insert(whose, &webhook, hub.now_ms(), WEBHOOKS));
    let answer = Output::json(json!({"id": id, "url": url, "events": events}));
    let Some(secret) = args.text("secret") else { return Ok(Reply::new(answer, batch)) };
    let vault = hub.vault().cloned().ok_or_else(|| {
        Fault::new(Code::SecretsUnavailable, "/secret: this server keeps no secrets").with("path", "/secret")
    })?;
    let record = vault.draft(RecordKind::Webhook, tenant, &id, &context.principal.name);
    let value = SecretText::new(secret);
    batch.then_one(vault.seal(&record, &value).await?);
    Ok(Reply::new(answer, batch).then(move || vault.remember(record, value)))
}

pub async fn list(hub: Hub, _: Args, context: Context) -> Result<Reply, Halt> {
    let rows = hub.rows(tables::webhooks(tenant(&context))).await?;
    let webhooks = rows.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    Ok(Output::json(json!({"webhooks": webhooks})).into())
}

pub async fn remove(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), named(&args, "webhook_id")?);
    let there = hub.rows(tables::webhooks(tenant)).await?;
    if !there.iter().any(|row| row.text(0).is_ok_and(|found| found == id)) {
        return Err(missing("webhook", &id).into());
    }
    let mut batch = Batch::new();
    let [webhook, deliveries] = tables::webhook_delete(Whose { tenant, id: &id });
    batch.then_one(webhook).then(deliveries);
    let answer = Output::json(json!({"id": id, "removed": true}));
    let Some(vault) = hub.vault().cloned() else { return Ok(Reply::new(answer, batch)) };
    batch.then(vault.removal(RecordKind::Webhook, tenant, &id));
    let tenant = tenant.to_owned();
    Ok(Reply::new(answer, batch).then(move || vault.forget(RecordKind::Webhook, &tenant, &id)))
}

/// The secret itself is never shown.
fn shown(row: &Row) -> Result<Value, Fault> {
    let value = || {
        let events: Vec<&str> = row.text(2)?.split(',').filter(|event| !event.is_empty()).collect();
        Ok(json!({"id": row.text(0)?, "url": row.text(1)?, "events": events, "created_at": iso(row.int(3)?),
                  "signed": row.int(4)? != 0, "waiting": row.int(5)?, "failed": row.int(6)?, "last_failure": row.optional_text(7)?,
                  "author": row.optional_text(8)?, "paused": row.optional_text(9)?}))
    };
    value().map_err(read)
}
