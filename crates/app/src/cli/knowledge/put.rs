//! `orchestr8 knowledge put`: a text becomes a document, or its next revision. The same text twice changes nothing.

use std::io::Read;

use clap::Args;
use http::Method;
use orchestr8_contract::Code;
use orchestr8_knowledge::folder::{self, File};
use orchestr8_knowledge::limits::{BODY_BYTES, METADATA_BYTES};
use orchestr8_knowledge::record::Mime;
use serde_json::{Map, Value, json};

use super::super::Shell;
use super::super::files::unreadable;
use super::super::install::unified;
use super::super::words::text;
use super::Asking;
use super::get::{body, file};
use super::shelf::{ROOT, Shelf, document, fresh_id, is_id, rooted};
use crate::failure::Failure;

#[derive(Args)]
pub struct Put {
    /// The document: its path such as /Handbook/Setup, or its id.
    document: String,
    /// The file with its text; `-` is stdin.
    #[arg(default_value = "-")]
    file: String,
    /// Its title [default: what its front matter says, else the last part of its path].
    #[arg(long)]
    title: Option<String>,
    /// A tag; may be given again. They replace those it has.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// More metadata, as NAME=VALUE; a value may be JSON. May be given again.
    #[arg(long = "meta", value_name = "NAME=VALUE")]
    meta: Vec<String>,
    /// What it is written in [default: text/markdown for what is new].
    #[arg(long, value_name = "TYPE", value_parser = ["text/markdown", "text/plain", "application/json"])]
    mime_type: Option<String>,
    /// Where a document that is named by a new id goes [default: the root].
    #[arg(long, value_name = "DOCUMENT")]
    parent: Option<String>,
    /// Make the documents of its path that are missing.
    #[arg(long, short)]
    parents: bool,
    /// Only if the document is at this revision; 0: only if it is new.
    #[arg(long, short, value_name = "NUMBER")]
    revision: Option<u64>,
    /// Take the text as it is, even if it begins like front matter.
    #[arg(long)]
    raw: bool,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Put {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let wish = self.wish(&read(&self.file)?)?;
        let (answer, word) = self.asking.run(shell, async |shelf| self.put(shell, shelf, wish).await)?;
        if shell.terminal.json {
            shell.terminal.value(&answer);
        } else if !self.dry_run {
            shell.terminal.data(text(&answer, "id"));
            shell.terminal.note(&format!("{word}, revision {}", answer["revision"]));
        }
        Ok(())
    }

    /// What the command line and the text say together.
    fn wish(&self, given: &str) -> Result<Wish, Failure> {
        let file = match self.raw {
            true => None,
            false => Some(folder::read(&self.file, given).map_err(|wrong| {
                Failure::new(Code::InvalidArgument, format!("{}: {wrong}", self.file))
                    .hinting("correct its front matter, or take the text as it is with --raw")
            })?),
        };
        let is_front = file.as_ref().is_some_and(|file| file.body.len() != given.len());
        let mut metadata = match &file {
            Some(file) if is_front => file.metadata.clone(),
            Some(_) | None => Map::new(),
        };
        if !file.as_ref().is_some_and(|file| file.titled && is_front) {
            metadata.remove("title");
        }
        if let Some(title) = &self.title {
            metadata.insert(String::from("title"), title.as_str().into());
        }
        if !self.tags.is_empty() {
            metadata.insert(String::from("tags"), self.tags.clone().into());
        }
        for pair in &self.meta {
            let (name, value) = pair
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| Failure::new(Code::InvalidArgument, format!("'{pair}' is not NAME=VALUE")))?;
            metadata.insert(name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into()));
        }
        let front = |file: &File| is_front.then_some((file.human, file.mime));
        Ok(Wish {
            body: file.as_ref().map_or_else(|| given.to_owned(), |file| file.body.clone()),
            metadata,
            whole: is_front,
            front: file.as_ref().and_then(front),
        })
    }

    async fn put(
        &self,
        shell: &Shell,
        shelf: &Shelf<'_>,
        wish: Wish,
    ) -> Result<(Value, &'static str), Failure> {
        let there = match shelf.find(&self.document).await? {
            Some(id) => shelf.document_if_any(&id).await?,
            None => None,
        };
        let mime = self.mime_type.as_deref().and_then(Mime::parse);
        match (there, self.revision) {
            (None, Some(known)) if known > 0 => {
                Err(Failure::new(Code::NotFound, format!("there is no document {}", self.document))
                    .hinting("without --revision it is made"))
            }
            (None, _) => self.create(shell, shelf, wish, mime).await,
            (Some(old), known) => self.update(shell, shelf, wish, mime, (&old, known)).await,
        }
    }

    async fn create(
        &self,
        shell: &Shell,
        shelf: &Shelf<'_>,
        mut wish: Wish,
        mime: Option<Mime>,
    ) -> Result<(Value, &'static str), Failure> {
        let (id, parent, title) = self.place(shell, shelf).await?;
        if !wish.metadata.contains_key("title") {
            wish.metadata.insert(String::from("title"), title.into());
        }
        let (human, said) = wish.front.unwrap_or((true, Mime::Markdown));
        let mime = mime.unwrap_or(said);
        let args = json!({"document_id": id, "parent_id": parent, "metadata": wish.metadata,
            "content": {"mime_type": mime.as_str(), "body": wish.body}, "is_human_readable": human});
        if self.dry_run {
            shell.terminal.note(&format!("would make {} with {} bytes", self.document, wish.body.len()));
            return Ok((args, "planned"));
        }
        Ok((shelf.post("/documents", &args).await?, "made"))
    }

    /// The id, parent and title of what is new.
    async fn place(&self, shell: &Shell, shelf: &Shelf<'_>) -> Result<(String, String, String), Failure> {
        if is_id(&self.document) {
            let parent = shelf.parent(self.parent.as_deref().unwrap_or(ROOT)).await?;
            return Ok((self.document.to_lowercase(), parent, String::from("untitled")));
        }
        let path = rooted(&self.document);
        let (above, last) = path.rsplit_once('/').unwrap_or(("", &path));
        let parent = match shelf.find(if above.is_empty() { "/" } else { above }).await? {
            Some(parent) => parent,
            None if self.parents => self.make_parents(shell, shelf, above).await?,
            None => {
                return Err(Failure::new(Code::NotFound, format!("there is no document at {above}"))
                    .hinting("give --parents to make it"));
            }
        };
        Ok((fresh_id(), parent, last.replace("%2F", "/")))
    }

    async fn make_parents(&self, shell: &Shell, shelf: &Shelf<'_>, path: &str) -> Result<String, Failure> {
        let (mut parent, mut at) = (ROOT.to_owned(), String::new());
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = format!("{at}/{part}");
            if let Some(found) = shelf.find(&at).await? {
                parent = found;
                continue;
            }
            if self.dry_run {
                shell.terminal.note(&format!("would make {at}"));
                continue;
            }
            let id = fresh_id();
            let args = json!({"document_id": id, "parent_id": parent, "metadata": {"title": part.replace("%2F", "/")},
                "content": {"mime_type": Mime::Markdown.as_str(), "body": ""}});
            shelf.post("/documents", &args).await?;
            shell.terminal.note(&format!("made {at}"));
            parent = id;
        }
        Ok(parent)
    }

    async fn update(
        &self,
        shell: &Shell,
        shelf: &Shelf<'_>,
        wish: Wish,
        mime: Option<Mime>,
        (old, known): (&Value, Option<u64>),
    ) -> Result<(Value, &'static str), Failure> {
        let (mask, patch) = wish.change(old, mime);
        let id = text(old, "id");
        // Without a revision in mind it is the one just seen: nobody's change is overwritten unseen.
        let known = known.map_or_else(|| old["revision"].clone(), Value::from);
        if mask.is_empty() && known == old["revision"] {
            return Ok((json!({"id": id, "revision": old["revision"], "unchanged": true}), "unchanged"));
        }
        let args = json!({"patch": patch, "update_mask": mask, "last_known_revision": known});
        if self.dry_run {
            let diff = unified(&self.document, body(old), &wish.body);
            shell.terminal.data(if body(old) == wish.body { "" } else { &diff });
            shell.terminal.note(&format!("would change {}", mask.join(", ")));
            return Ok((json!({"id": id, "patch": patch, "update_mask": mask}), "planned"));
        }
        Ok((shelf.ask(Method::PATCH, &document(id), Some(&args)).await?, "changed"))
    }
}

/// What a document is to be.
struct Wish {
    body: String,
    metadata: Map<String, Value>,
    /// The metadata are all there are to be; otherwise others stay.
    whole: bool,
    /// What front matter says beside the metadata.
    front: Option<(bool, Mime)>,
}

impl Wish {
    /// What differs from the document: the mask and the patch.
    fn change(&self, old: &Value, mime: Option<Mime>) -> (Vec<String>, Value) {
        let (mut mask, mut patch) = (Vec::new(), json!({}));
        let mut set = |path: &str, value: Value| {
            mask.push(path.to_owned());
            match path.split_once('.') {
                Some((group, name)) => patch[group][name] = value,
                None => patch[path] = value,
            }
        };
        if self.body != body(old) {
            set("content.body", self.body.as_str().into());
        }
        let was = file(old);
        if let Some(mime) = mime.or(self.front.map(|(_, mime)| mime)).filter(|mime| *mime != was.mime) {
            set("content.mime_type", mime.as_str().into());
        }
        if let Some((human, _)) = self.front.filter(|(human, _)| *human != was.human) {
            set("is_human_readable", human.into());
        }
        let mut change = Map::new();
        for (name, value) in &self.metadata {
            if was.metadata.get(name) != Some(value) {
                change.insert(name.clone(), value.clone());
            }
        }
        let gone = was
            .metadata
            .keys()
            .filter(|name| self.whole && *name != "title" && !self.metadata.contains_key(*name));
        change.extend(gone.map(|name| (name.clone(), Value::Null)));
        if !change.is_empty() {
            set("metadata", Value::Object(change));
        }
        (mask, patch)
    }
}

/// A text from a file or from stdin, within what a document takes.
fn read(path: &str) -> Result<String, Failure> {
    let limit = (BODY_BYTES + METADATA_BYTES) as u64 + 1;
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    let named = if path == "-" { "stdin" } else { path };
    read.map_err(|cause| unreadable(named, &cause))?;
    if bytes.len() as u64 == limit {
        let message = format!("{named} is larger than {BODY_BYTES} bytes");
        return Err(Failure::new(Code::InvalidArgument, message).hinting("make several documents of it"));
    }
    String::from_utf8(bytes).map_err(|_| {
        Failure::new(Code::InvalidArgument, format!("{named} is not text in UTF-8"))
            .hinting("save it as UTF-8")
    })
}
