//! Documents as commands reach them: by id or by path, through the routes that people have.

use http::{Method, StatusCode};
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Ids;
use orchestr8_kernel::ports::ids::{For, Random};
use serde_json::{Value, json};

use super::super::words::text;
use crate::failure::Failure;
use crate::reach::{self, Reach, Reply, escape, refusal};

/// The parent of what has no other.
pub const ROOT: &str = "root";

/// Entries asked for at once, and documents read at once: what the server gives at most.
const PAGE: usize = 500;
pub const BATCH: usize = 20;

pub struct Shelf<'r> {
    reach: &'r Reach,
    tenant: Option<String>,
    /// Requests are signed.
    signed: bool,
}

impl<'r> Shelf<'r> {
    pub fn new(reach: &'r Reach, tenant: Option<String>, signed: bool) -> Self {
        Self { reach, tenant, signed }
    }

    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        self.send(method, path, body).await?.accepted()
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply, Failure> {
        let tenant = self.tenant.as_deref().map(|tenant| ("x-tenant-id", tenant));
        let headers: Vec<(&str, &str)> = tenant.into_iter().collect();
        let reply = self.reach.send(method, path, &headers, body).await?;
        match reply.status {
            StatusCode::UNAUTHORIZED => Err(self.unproven(&reply)),
            _ => Ok(reply),
        }
    }

    /// The server does not believe who we are; it says why, and we know how to mend it from here.
    fn unproven(&self, reply: &Reply) -> Failure {
        let hint = match self.signed {
            true => {
                "`orchestr8 keys list` on the server shows whether it knows the key; `orchestr8 keys rotate` replaces one"
            }
            false => {
                "sign with --key FILE or ORCHESTR8_KEY_FILE (`orchestr8 keys new --out FILE` makes one); a token goes into ORCHESTR8_TOKEN"
            }
        };
        Failure { code: Code::Unauthenticated, ..refusal(reply.status, &reply.body) }.hinting(hint)
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// Does what an action of knowledge does.
    pub async fn call(&self, action: &str, args: &Value) -> Result<Value, Failure> {
        let path = document(text(args, "document_id"));
        let (method, path) = match action {
            "knowledge.create_document" => (Method::POST, String::from("/documents")),
            "knowledge.update_document" => (Method::PATCH, path),
            "knowledge.move_document" => (Method::POST, format!("{path}/move")),
            "knowledge.delete_document" => {
                let known = args["last_known_revision"].as_i64().map(|number| number.to_string());
                let path = reach::path(&path, &[("last_known_revision", known)]);
                return self.ask(Method::DELETE, &path, None).await;
            }
            other => return Err(Failure::new(Code::Internal, format!("nobody does {other} from here"))),
        };
        // The id is in the path; beside it there it says the same.
        self.ask(method, &path, Some(args)).await
    }

    /// The id of a document that is named by its id or by its path.
    pub async fn id(&self, named: &str) -> Result<String, Failure> {
        match self.find(named).await? {
            Some(id) if id != ROOT => Ok(id),
            Some(_) => Err(Failure::new(Code::InvalidArgument, "the root is no document")
                .hinting("name a document by its id or its path, such as /Handbook/Setup")),
            None => Err(Failure::new(Code::NotFound, format!("there is no document at {}", rooted(named)))
                .hinting(
                    "`orchestr8 knowledge tree` shows what there is; a slash in a title is written %2F",
                )),
        }
    }

    /// The same for a parent, which may be the root.
    pub async fn parent(&self, named: &str) -> Result<String, Failure> {
        match is_root(named) {
            true => Ok(ROOT.to_owned()),
            false => self.id(named).await,
        }
    }

    /// The id at a path, if there is one. An id is taken for what it is.
    pub async fn find(&self, named: &str) -> Result<Option<String>, Failure> {
        if is_root(named) {
            return Ok(Some(ROOT.to_owned()));
        }
        if is_id(named) {
            return Ok(Some(named.to_lowercase()));
        }
        let path = rooted(named);
        // Paths come in their order, so the path itself comes before all that begin with it.
        let query = [("prefix", Some(path.clone())), ("limit", Some(String::from("20")))];
        let page = self.get(&reach::path("/documents", &query)).await?;
        let found: Vec<&str> = entries(&page)
            .filter(|entry| text(entry, "path") == path)
            .map(|entry| text(entry, "id"))
            .collect();
        match found.as_slice() {
            [] => Ok(None),
            [id] => Ok(Some((*id).to_owned())),
            several => {
                let lines = several.iter().map(|id| (*id).to_owned()).collect();
                Err(Failure::new(Code::IdConflict, format!("{} documents are at {path}", several.len()))
                    .listing(lines)
                    .hinting("name the one you mean by its id"))
            }
        }
    }

    /// A document, all of it.
    pub async fn document(&self, id: &str, revision: Option<u64>) -> Result<Value, Failure> {
        let query =
            [("full", Some(String::from("true"))), ("revision", revision.map(|number| number.to_string()))];
        self.get(&reach::path(&document(id), &query)).await
    }

    /// The document, unless it is not there.
    pub async fn document_if_any(&self, id: &str) -> Result<Option<Value>, Failure> {
        let reply = self.send(Method::GET, &format!("{}?full=true", document(id)), None).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        reply.accepted().map(Some)
    }

    /// Every entry of a list, page after page.
    pub async fn list(&self, query: &[(&str, Option<String>)]) -> Result<Vec<Value>, Failure> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = [("limit", Some(PAGE.to_string())), ("cursor", cursor.clone())];
            let path = reach::path("/documents", &[query, &page].concat());
            let given = self.get(&path).await?;
            all.extend(entries(&given).cloned());
            let next = given["next_cursor"].as_str().map(str::to_owned);
            if next.is_none() || next == cursor {
                return Ok(all);
            }
            cursor = next;
        }
    }

    /// Whole documents, in the order of their ids as given; those that are gone are left out.
    pub async fn many(&self, ids: &[String]) -> Result<Vec<Value>, Failure> {
        let answer = self.post("/documents/batch", &json!({"ids": ids, "full": true})).await?;
        Ok(entries(&answer).cloned().collect())
    }
}

/// The path of a document on the server.
pub fn document(id: &str) -> String {
    format!("/documents/{}", escape(id))
}

fn entries(page: &Value) -> impl Iterator<Item = &Value> {
    page["documents"].as_array().into_iter().flatten()
}

pub fn fresh_id() -> String {
    Random.fresh(For::Record).hyphenated().to_string()
}

fn is_root(named: &str) -> bool {
    named == "/" || named == ROOT
}

/// Whether it is written as ids are; everything else is a path.
pub fn is_id(named: &str) -> bool {
    let parts: Vec<&str> = named.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Paths begin with a slash and do not end with one.
pub fn rooted(named: &str) -> String {
    format!("/{}", named.trim_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_paths() {
        assert!(is_id("8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1b11") && is_id(&fresh_id()));
        for path in ["/a", "Handbook", "8c5f3c1e", "8c5f3c1e-6a0e-4a7e-9d52-0d8a3f6f1bxx", "a-b-c-d-e"] {
            assert!(!is_id(path), "{path}");
        }
        assert_eq!((rooted("a/b/"), rooted("/a")), ("/a/b".into(), "/a".into()));
    }
}
