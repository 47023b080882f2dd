//! Sessions in files: listed, loaded, added to a session, exported.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::ports::ids::For;
use orchestr8_kernel::{Args, Context, Halt, Principal, Reply};
use orchestr8_models::Message;
use serde_json::{Value, json};

use super::registry::{begin, blank, folder};
use super::{answer, session};
use crate::files::list::{self, Found};
use crate::files::spot::{self, Roots, Spot};
use crate::files::{Imported, html, jsonl};
use crate::hub::Hub;
use crate::limits;
use crate::record::Body;
use crate::session::{Draft, Session};
use crate::tree::Tree;

/// A session from a file. What the file says stays in the file too.
pub async fn load(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let id: Arc<str> = args.text("sessionId").unwrap_or_default().into();
    let tenant = context.principal.tenant.clone();
    let room = hub.room(&tenant, &id)?;
    let (path, imported) = import(&hub, &context.principal, cwd_of(&hub, &context), &args).await?;
    // The folder it worked in may be one of another machine.
    let cwd = match folder(&hub, &context.principal.tenant, &imported.head.cwd).await {
        Ok(cwd) => cwd,
        Err(_) => cwd_of(&hub, &context).display().to_string(),
    };
    let mut header = blank(&hub, cwd);
    header.owner = Some(context.principal.name.to_string());
    header.parent.clone_from(&imported.head.parent);
    let session = Arc::new(Session::new(tenant, id, imported.head.created_ms, 0, header));
    let mut draft = Draft::new(&session, hub.now_ms());
    add(&hub, &mut draft, path, &imported)?;
    let (header, entries) = draft.into_parts();
    session.install(header);
    Ok(begin(&hub, &context, session, room, entries))
}

/// Goes on with what a file says; what the session said before stays in its tree.
pub async fn switch(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (path, imported) = import(&hub, &context.principal, cwd(&session), &args).await?;
    let mut draft = Draft::new(&session, hub.now_ms());
    add(&hub, &mut draft, path, &imported)?;
    Ok(draft.into_reply(json!({"cancelled": false}), hub.kernel()))
}

/// Writes the whole tree to a session file.
pub async fn export(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let name = format!("{}.jsonl", session.id);
    let output = Output {
        asked: args.text("outputPath").map(str::to_owned),
        preset: spot::home(hub.settings(), &context.principal).join(name),
        endings: &["jsonl", "json"],
    };
    let named = session.clone();
    let content = move || {
        let text = jsonl::write(&named.id, named.created_ms, &header, &tree);
        match u64::try_from(text.len()).unwrap_or(u64::MAX) > limits::FILE_BYTES {
            true => Err(jsonl::too_large()),
            false => Ok(text),
        }
    };
    if is_inline(&args) {
        return answer(json!({"content": apart(content).await?}));
    }
    let path = output.write(&hub, &session, &context.principal, Roots::of_sessions, content).await?;
    let mut draft = Draft::new(&session, hub.now_ms());
    draft.header.file = Some(path.clone());
    Ok(draft.into_reply(json!({"path": path}), hub.kernel()))
}

/// Writes a page for people.
pub async fn export_html(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (header, tree) = Tree::of(&hub, &session).await?;
    let home = spot::home(hub.settings(), &context.principal);
    let output = Output {
        asked: args.text("outputPath").map(str::to_owned),
        preset: home.join("exports").join(format!("{}.html", session.id)),
        endings: &["html"],
    };
    let named = session.clone();
    let content = move || {
        html::page(&html::About { id: &named.id, created_ms: named.created_ms, header: &header, tree: &tree })
    };
    if is_inline(&args) {
        return answer(json!({"content": apart(content).await?}));
    }
    answer(json!({"path": output.write(&hub, &session, &context.principal, Roots::of_pages, content).await?}))
}

/// Whether the answer is to be the export itself: a client on another machine has no use for a path.
fn is_inline(args: &Args) -> bool {
    args.get("inline").and_then(Value::as_bool).unwrap_or(false)
}

/// The files that this session could go on with.
pub async fn list(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let files = find(&hub, &context.principal, cwd(&session)).await?;
    let shown = files.iter().map(|file| {
        let name = file.path.file_name().map(|name| name.to_string_lossy().into_owned());
        json!({"path": file.path, "name": name, "modifiedAt": iso(file.modified_ms)})
    });
    answer(json!({"files": shown.collect::<Vec<_>>()}))
}

/// The sessions of this server, and the files it could load, the newest first.
pub async fn list_stored(hub: Hub, _: Args, context: Context) -> Result<Reply, Halt> {
    let files = find(&hub, &context.principal, cwd_of(&hub, &context)).await?;
    let there: HashSet<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    let home = spot::home(hub.settings(), &context.principal);
    let home = home.canonicalize().unwrap_or(home);
    let mut known = HashSet::new();
    let mut all: Vec<(i64, Value)> = Vec::new();
    for session in hub.visible_to(&context.principal) {
        let mut info = hub.info(&session);
        let file = session.with_header(|header| header.file.clone());
        let path = file.map_or_else(|| home.join(format!("{}.jsonl", session.id)), PathBuf::from);
        (info["sessionFile"], info["sessionPath"]) = (json!(path), json!(path));
        info["fileExists"] = json!(there.contains(&path));
        known.insert(path);
        all.push((session.created_ms, info));
    }
    let others = files.iter().filter(|file| !known.contains(&file.path));
    all.extend(others.map(|file| (file.head.created_ms, stored(file))));
    all.sort_by_key(|(created_ms, _)| std::cmp::Reverse(*created_ms));
    answer(json!({"sessions": all.into_iter().map(|(_, info)| info).collect::<Vec<_>>()}))
}

fn stored(file: &Found) -> Value {
    let id = file.path.file_stem().map(|name| name.to_string_lossy().into_owned());
    json!({"sessionId": id, "sessionFile": file.path, "sessionPath": file.path, "cwd": file.head.cwd, "fileExists": true,
           "createdAt": iso(file.head.created_ms), "thinkingLevel": "off", "isStreaming": false, "messageCount": 0})
}

async fn find(hub: &Hub, principal: &Arc<Principal>, cwd: PathBuf) -> Result<Vec<Found>, Fault> {
    let (hub, principal) = (hub.clone(), principal.clone());
    apart(move || Ok(list::files(&Roots::of_sessions(hub.settings(), &principal, &cwd)))).await
}

async fn import(
    hub: &Hub,
    principal: &Arc<Principal>,
    cwd: PathBuf,
    args: &Args,
) -> Result<(String, Imported), Fault> {
    let (hub, principal) = (hub.clone(), principal.clone());
    let asked = args.text("sessionPath").unwrap_or_default().to_owned();
    apart(move || {
        let spot = Roots::of_sessions(hub.settings(), &principal, &cwd).session_file(&asked)?;
        Ok((shown(&spot), jsonl::read(&spot.read()?)?))
    })
    .await
}

/// Adds what a file says to a session, which goes on from there, with the model that was used last if it is known here.
fn add(hub: &Hub, draft: &mut Draft, path: String, imported: &Imported) -> Result<(), Fault> {
    if draft.header.next + imported.tree.next() > limits::ENTRIES {
        return Err(Fault::new(
            Code::ResourceExhausted,
            format!("the session would have more than {} entries, which is the limit", limits::ENTRIES),
        ));
    }
    draft.graft(&imported.tree, imported.leaf);
    let header = &mut draft.header;
    header.file = Some(path);
    if imported.name.is_some() {
        header.name.clone_from(&imported.name);
    }
    for node in imported.tree.path(imported.leaf).into_iter().filter_map(|place| imported.tree.get(place)) {
        let model = match &node.entry.body {
            Body::ModelChange { provider, model_id } => Some((provider, model_id)),
            Body::Message { message: Message::Assistant(answer) } => Some((&answer.provider, &answer.model)),
            Body::ThinkingLevelChange { thinking_level } => {
                header.thinking = *thinking_level;
                None
            }
            Body::Message { .. } | Body::Compaction { .. } | Body::BranchSummary { .. } => None,
        };
        if let Some((provider, model)) =
            model.filter(|(provider, model)| hub.model_named(provider, model).is_ok())
        {
            (header.provider, header.model) = (provider.clone(), model.clone());
        }
    }
    Ok(())
}

/// Where something is to be written.
pub struct Output {
    /// What the client says.
    pub asked: Option<String>,
    /// Where it goes if the client says nothing: a folder of ours.
    pub preset: PathBuf,
    pub endings: &'static [&'static str],
}

impl Output {
    /// Makes a text and writes it, whole or not at all; gives back where it is.
    pub async fn write(
        self,
        hub: &Hub,
        session: &Session,
        principal: &Arc<Principal>,
        roots: fn(&crate::hub::Settings, &Principal, &Path) -> Roots,
        text: impl FnOnce() -> Result<String, Fault> + Send + 'static,
    ) -> Result<String, Fault> {
        let scratch = format!(".{}.tmp", hub.kernel().ports().ids.fresh(For::Record));
        let (hub, principal, cwd) = (hub.clone(), principal.clone(), cwd(session));
        apart(move || {
            if let (None, Some(folder)) = (&self.asked, self.preset.parent()) {
                spot::make(folder)?;
            }
            let roots = roots(hub.settings(), &principal, &cwd);
            let spot = match &self.asked {
                Some(asked) => roots.output(asked, self.endings)?,
                None => roots.target(&self.preset)?,
            };
            spot.replace(text()?.as_bytes(), &scratch)?;
            Ok(shown(&spot))
        })
        .await
    }
}

fn shown(spot: &Spot) -> String {
    spot.path().display().to_string()
}

fn cwd(session: &Session) -> PathBuf {
    session.with_header(|header| PathBuf::from(&header.cwd))
}

/// Work with files blocks, and a long file takes a while to read: neither belongs where requests are served.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Fault::internal("the work with a file broke off").because(error)))
}

/// Where sessions of the caller's tenant work unless they say where.
fn cwd_of(hub: &Hub, context: &Context) -> PathBuf {
    hub.settings().cwd_of(&context.principal.tenant)
}
