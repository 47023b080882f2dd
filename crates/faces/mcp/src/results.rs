//! Results too long for one answer: kept, and handed out in pages as a resource.

use orchestr8_contract::content::{Content, ResourceContents, ResourceData, ResourceLink};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::{Action, Address, Halt, Reply, Resource};
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_kernel::schema;
use orchestr8_kernel::{Args, Context, Kernel, Principal};
use serde_json::json;

use crate::tables::{self, Owner, ResultRow};

/// The action that reads them.
pub const ACTION: &str = "mcp.result";
const TEMPLATE: &str = "result://{id}";
const SCHEME: &str = "result://";

/// Kept this long: a client that wants the rest asks soon.
const LIFETIME_MS: i64 = 3_600_000;
/// Kept at once, for one tenant; the oldest go first.
const KEPT: i64 = 1000;
const KEPT_BYTES: i64 = 268_435_456;
/// What the answer itself shows of a long result.
const PREVIEW_BYTES: usize = 2048;
/// What one read gives.
const PAGE_BYTES: usize = 65_536;
/// Expired ones deleted with each new one.
const SWEPT: i64 = 100;

impl Owner {
    pub fn of(principal: &Principal) -> Self {
        Self { tenant: principal.tenant.as_str().to_owned(), principal: principal.name.to_string() }
    }
}

/// Keeps a long text and gives what stands in its place: its beginning, and a link to all of it.
pub async fn keep(
    kernel: &Kernel,
    who: &Principal,
    tool: &str,
    text: &str,
    mime_type: &str,
) -> Result<Vec<Content>, Fault> {
    let ports = kernel.ports();
    let (id, now_ms) = (ports.ids.fresh(For::Record).simple().to_string(), ports.clock.now_ms());
    let owner = Owner::of(who);
    let row = ResultRow {
        owner: &owner,
        id: &id,
        mime_type,
        text,
        created_ms: now_ms,
        expires_ms: now_ms + LIFETIME_MS,
    };
    let mut batch = Batch::new();
    batch.then(Statement::new(tables::RESULT_SWEEP, vec![now_ms.into(), SWEPT.into()]));
    batch.then(tables::result_insert(&row));
    batch.then(tables::result_bound(&owner.tenant, KEPT, KEPT_BYTES));
    ports.store.commit(batch).await.map_err(|error| {
        Fault::new(Code::StoreFailed, "the result is too long for one answer and could not be kept")
            .because(error)
    })?;
    let preview = &text[..boundary(text, PREVIEW_BYTES)];
    let uri = format!("{SCHEME}{id}");
    let note = format!(
        "{preview}\n[… {} of {} bytes shown; read {uri}?offset={} for the rest]",
        preview.len(),
        text.len(),
        preview.len()
    );
    let link = ResourceLink {
        uri,
        name: format!("result of {tool}"),
        title: None,
        description: Some("The whole result; read it in pages with ?offset=<bytes>.".into()),
        mime_type: Some(mime_type.to_owned()),
        size: u64::try_from(text.len()).ok(),
        annotations: None,
    };
    Ok(vec![Content::text(note), Content::ResourceLink(link)])
}

/// The resource template `result://{id}`, whose pages are asked for with `?offset=<bytes>`.
pub fn action() -> Result<Action, schema::Error> {
    let resource = Resource { address: Address::Template(TEMPLATE.into()), mime_type: None, size: None };
    let about = "A result that was too long for one answer. Add ?offset=<bytes> to read on from there.";
    Action::resource(ACTION, about, resource, |args, context| async move { read(args, context).await })
}

async fn read(args: Args, context: Context) -> Result<Reply, Halt> {
    let uri = args.text("uri").unwrap_or_default().to_owned();
    let (id, offset) = parse(&uri)?;
    let ports = context.kernel.ports();
    let owner = Owner::of(&context.principal);
    let found = ports.store.query(tables::result_find(&owner, id, ports.clock.now_ms())).await;
    let rows = found
        .map_err(|error| Fault::new(Code::StoreFailed, "the result could not be read").because(error))?;
    let Some(row) = rows.first() else {
        return Err(Fault::new(Code::NotFound, "there is no such result, or it has expired")
            .with("uri", uri)
            .into());
    };
    let broken = |error| Fault::new(Code::StoreCorrupt, "the result could not be read").because(error);
    let (mime_type, text) = (row.text(0).map_err(broken)?, row.text(1).map_err(broken)?);
    if offset > text.len() || !text.is_char_boundary(offset) {
        return Err(Fault::invalid(format!(
            "offset {offset} is not a place in this result of {} bytes",
            text.len()
        ))
        .into());
    }
    let rest = &text[offset..];
    let page = &rest[..boundary(rest, PAGE_BYTES)];
    let mut meta = json!({"orchestr8/offset": offset, "orchestr8/bytes": text.len()});
    if page.len() < rest.len() {
        meta["orchestr8/next"] = format!("{SCHEME}{id}?offset={}", offset + page.len()).into();
    }
    let contents = ResourceContents {
        uri: uri.clone(),
        mime_type: Some(mime_type.to_owned()),
        data: ResourceData::Text(page.to_owned()),
        meta: meta.as_object().cloned(),
    };
    Ok(Output::Resource { contents: vec![contents] }.into())
}

fn parse(uri: &str) -> Result<(&str, usize), Fault> {
    let rest = uri.strip_prefix(SCHEME).unwrap_or(uri);
    let Some((id, query)) = rest.split_once('?') else { return Ok((rest, 0)) };
    let offset = query.strip_prefix("offset=").and_then(|offset| offset.parse().ok());
    let offset =
        offset.ok_or_else(|| Fault::invalid("only ?offset=<bytes> can follow the address of a result"))?;
    Ok((id, offset))
}

/// The last place at or before a length where a character ends.
fn boundary(text: &str, length: usize) -> usize {
    let mut at = length.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
