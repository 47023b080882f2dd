//! The actions of named secrets: set, list, rotate, delete. None of them answers with a value.

use std::str::FromStr;

use orchestr8_contract::{Code, Fault, Kind, Output};
use orchestr8_kernel::action::{self, Cost, Slotting};
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use crate::binding::SecretBinding;
use crate::destination::Destination;
use crate::limits::{
    BINDING_CHARACTERS, BINDINGS, NAME_CHARACTERS, SECRETS, VALUE_MAX_BYTES, VALUE_MIN_CHARACTERS,
};
use crate::record::{RecordKind, SecretRecord};
use crate::tables;
use crate::value::SecretText;
use crate::vault::SecretVault;

/// The argument that holds a value; the hash of arguments in the audit trail leaves it out.
const VALUE: &str = "value";

/// Every action of this crate.
pub fn all(vault: &SecretVault) -> Result<Vec<Action>, schema::Error> {
    let name = json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS});
    // Checked by `value_of`: what is wrong with a value would be told with the value.
    let value = json!({"description": "A text of 8 bytes to 64 KiB."});
    let names = json!({"type": "array", "maxItems": BINDINGS,
        "items": {"type": "string", "minLength": 1, "maxLength": BINDING_CHARACTERS}});
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    Ok(vec![
        unlisted(
            "secrets.set",
            "Creates a named secret, or replaces its value and bindings.",
            object(
                json!({"name": name, VALUE: value, "workflows": names, "agents": names, "to": names}),
                &["name", VALUE, "to"],
            ),
            changing(),
            vault,
            set,
        )?,
        unlisted(
            "secrets.rotate",
            "Replaces the value of a named secret; its bindings stay.",
            object(json!({"name": name, VALUE: value}), &["name", VALUE]),
            changing(),
            vault,
            rotate,
        )?,
        unlisted(
            "secrets.list",
            "Lists the named secrets of the tenant with their bindings, without values.",
            object(json!({}), &[]),
            Policy { slotting: Slotting::Free, ..Policy::read() },
            vault,
            list,
        )?,
        unlisted(
            "secrets.delete",
            "Deletes a named secret.",
            object(json!({"name": name}), &["name"]),
            changing(),
            vault,
            delete,
        )?,
    ])
}

fn changing() -> Policy {
    const REFUSALS: &[Kind] =
        &[Kind::Invalid, Kind::NotFound, Kind::Forbidden, Kind::Exhausted, Kind::Unavailable, Kind::Conflict];
    Policy {
        slotting: Slotting::Free,
        cost: Cost::Work,
        refusals: REFUSALS,
        secret_args: &[VALUE],
        ..Policy::stored()
    }
}

fn unlisted<F, R>(
    name: &str,
    about: &str,
    input: Value,
    policy: Policy,
    vault: &SecretVault,
    run: F,
) -> Result<Action, schema::Error>
where
    F: Fn(SecretVault, Args, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Halt>> + Send + 'static,
{
    let vault = vault.clone();
    Action::unlisted(
        name,
        about,
        input,
        policy,
        action::work(move |args, context| run(vault.clone(), args, context)),
    )
}

async fn set(vault: SecretVault, args: Args, context: Context) -> Result<Reply, Halt> {
    let name = name_of(&args)?;
    let binding = binding(&args)?;
    vault.load().await?;
    let tenant = context.principal.tenant.as_str();
    let before = changeable(&vault, tenant, name)?;
    if before.is_none() && i64::try_from(vault.count()).unwrap_or(i64::MAX) >= SECRETS {
        return Err(Fault::new(
            Code::ResourceExhausted,
            format!("there are {SECRETS} secrets; delete one first"),
        )
        .into());
    }
    let draft = vault.draft(RecordKind::Named, tenant, name, &context.principal.name);
    keep(&vault, SecretRecord { binding, ..draft }, value_of(&args)?).await
}

async fn rotate(vault: SecretVault, args: Args, context: Context) -> Result<Reply, Halt> {
    let name = name_of(&args)?;
    vault.load().await?;
    let tenant = context.principal.tenant.as_str();
    let before = changeable(&vault, tenant, name)?.ok_or_else(|| unknown(name))?;
    let draft = vault.draft(RecordKind::Named, tenant, name, &context.principal.name);
    keep(&vault, SecretRecord { binding: before.binding, ..draft }, value_of(&args)?).await
}

async fn keep(vault: &SecretVault, record: SecretRecord, value: SecretText) -> Result<Reply, Halt> {
    let mut effects = Batch::new();
    effects.then_one(vault.seal(&record, &value).await?);
    let (vault, shown) = (vault.clone(), record.shown());
    Ok(Reply::new(Output::json(shown), effects).then(move || vault.remember(record, value)))
}

async fn list(vault: SecretVault, _: Args, context: Context) -> Result<Reply, Halt> {
    vault.load().await?;
    let shown: Vec<Value> =
        vault.list(context.principal.tenant.as_str()).iter().map(SecretRecord::shown).collect();
    let locked = vault.locked().map(|fault| fault.message.into_owned());
    Ok(Output::json(json!({"secrets": shown, "locked": locked})).into())
}

async fn delete(vault: SecretVault, args: Args, context: Context) -> Result<Reply, Halt> {
    let name = name_of(&args)?.to_owned();
    vault.load().await?;
    let tenant = context.principal.tenant.as_str().to_owned();
    changeable(&vault, &tenant, &name)?.ok_or_else(|| unknown(&name))?;
    let mut effects = Batch::new();
    effects.then_one(tables::record_delete(&tenant, RecordKind::Named.as_str(), &name));
    let answer = Output::json(json!({"name": name, "deleted": true}));
    Ok(Reply::new(answer, effects).then(move || vault.forget(RecordKind::Named, &tenant, &name)))
}

/// The secret as it is; one that the settings declare is changed there.
fn changeable(vault: &SecretVault, tenant: &str, name: &str) -> Result<Option<SecretRecord>, Fault> {
    let before = vault.record(tenant, name);
    match &before {
        Some(record) if record.declared => Err(Fault::new(
            Code::StateConflict,
            format!("the settings declare the secret {name}; change secrets.named.{name} there"),
        )),
        Some(_) | None => Ok(before),
    }
}

fn unknown(name: &str) -> Fault {
    Fault::new(Code::NotFound, format!("there is no secret named '{name}'")).with("name", name)
}

/// The name as expressions can write it.
fn name_of(args: &Args) -> Result<&str, Fault> {
    let name = args.text("name").unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(Fault::invalid("/name: a name is made of A-Z a-z 0-9 _ -").with("path", "/name"));
    }
    Ok(name)
}

/// The value itself never stands in a message.
fn value_of(args: &Args) -> Result<SecretText, Fault> {
    let value = args.text(VALUE).unwrap_or_default();
    let is_short = value.chars().take(VALUE_MIN_CHARACTERS).count() < VALUE_MIN_CHARACTERS;
    if is_short || value.len() > VALUE_MAX_BYTES || value.contains('\0') {
        let what = format!(
            "/{VALUE}: a value has at least {VALUE_MIN_CHARACTERS} characters and at most {VALUE_MAX_BYTES} bytes; a shorter one could not be masked"
        );
        return Err(Fault::invalid(what).with("path", format!("/{VALUE}")));
    }
    Ok(SecretText::new(value))
}

fn binding(args: &Args) -> Result<SecretBinding, Fault> {
    let texts = |name: &str| -> Vec<String> {
        let list = args.get(name).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let mut to = Vec::new();
    for (index, text) in texts("to").iter().enumerate() {
        let destination = Destination::from_str(text).map_err(|wrong| {
            Fault::invalid(format!("/to/{index}: {wrong}")).with("path", format!("/to/{index}"))
        })?;
        to.push(destination);
    }
    let binding = SecretBinding { workflows: texts("workflows"), agents: texts("agents"), to };
    binding.check()?;
    Ok(binding)
}
