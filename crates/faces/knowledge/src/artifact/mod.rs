//! Large content beside the envelope (KNO-5): named by address and hash, fetched, checked, and put in its place.

mod fetch;
mod links;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::ledger::store_fault;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub(crate) use fetch::Fetcher;
pub(crate) use links::{Link, Links, To, Wrong};

use crate::face::Face;
use crate::failure::Failure;
use crate::tables;

/// What content may be (KNO-8.1).
pub(crate) const MIME_TYPES: [&str; 3] = ["text/markdown", "text/plain", "application/json"];

const URI: &str = "artifact_uri";
const HASH: &str = "artifact_hash";

/// Content that came another way than inside the envelope.
pub(crate) struct Body {
    pub mime_type: String,
    pub bytes: Vec<u8>,
}

/// Where the arguments of an action name an artifact.
pub(crate) struct Named {
    uri: String,
    /// 64 hexadecimal digits in lower case.
    hash: String,
    /// It belongs into the patch of an update.
    in_patch: bool,
}

/// Takes the artifact out of the arguments, if they name one. The hash stays until the content is there: with it, and
/// without the address, a repeat is recognised whatever address it names.
pub(crate) fn take(args: &mut Map<String, Value>) -> Result<Option<Named>, Failure> {
    let in_patch = args.contains_key("patch");
    let mut found = None;
    let places: [&[&str]; 3] = [&[], &["content"], &["patch", "content"]];
    for place in places {
        let Some(members) = at(args, place) else { continue };
        let Some(uri) = members.remove(URI) else { continue };
        let (uri, hash) = (uri.as_str().map(str::to_owned), members.get(HASH).and_then(Value::as_str));
        let (Some(uri), Some(hash)) = (uri, hash.and_then(digits)) else {
            return Err(wrong(
                "artifact_uri goes with artifact_hash, the SHA-256 of the content in hexadecimal",
            ));
        };
        if members.contains_key("body") || found.is_some() {
            return Err(wrong("the content is given twice: in the envelope and as an artifact"));
        }
        found = Some(Named { uri, hash, in_patch });
    }
    Ok(found)
}

/// Puts the content where the action looks for it.
pub(crate) fn put(args: &mut Map<String, Value>, named: &Named, body: Body) -> Result<(), Failure> {
    let text = String::from_utf8(body.bytes).map_err(|_| wrong("the artifact is no text in UTF-8"))?;
    let places: [&[&str]; 3] = [&[], &["content"], &["patch", "content"]];
    for place in places {
        if let Some(members) = at(args, place) {
            members.remove(HASH);
        }
    }
    let parent = match (named.in_patch, args.get_mut("patch")) {
        (true, Some(Value::Object(patch))) => patch,
        (true, Some(_) | None) | (false, _) => args,
    };
    let content = parent.entry("content").or_insert_with(|| Value::Object(Map::new()));
    let Some(content) = content.as_object_mut() else { return Err(wrong("content must be an object")) };
    content.entry("mime_type").or_insert_with(|| body.mime_type.into());
    content.insert("body".into(), text.into());
    Ok(())
}

/// Gets an artifact from wherever it is, and believes nothing but its hash.
pub(crate) async fn get(face: &Face, tenant: &str, named: &Named) -> Result<Body, Failure> {
    let body = match face.links.open(&named.uri, face.now_ms()).await? {
        Some(Ok(link)) if link.tenant == tenant => stored(face, &link).await?,
        Some(Ok(_)) => return Err(Failure::not_found("there is no such artifact")),
        Some(Err(Wrong::Late)) => return Err(Failure::expired("the link to the artifact has expired")),
        Some(Err(Wrong::Signature)) | None => face.fetcher.fetch(&named.uri).await?,
    };
    check_type(&body.mime_type)?;
    let found = hash(&body.bytes);
    if found != named.hash {
        let fault = Fault::invalid("the artifact is not what its hash says");
        return Err(Failure::of_action(fault.with("expected", named.hash.as_str()).with("actual", found)));
    }
    Ok(body)
}

/// What was uploaded and is still there.
pub(crate) async fn stored(face: &Face, link: &Link) -> Result<Body, Failure> {
    let found = tables::artifact_find(&link.tenant, &link.name, face.now_ms());
    let rows = face.kernel.ports().store.query(found).await.map_err(store_fault)?;
    let Some(row) = rows.first() else { return Err(Failure::not_found("there is no such artifact")) };
    let mime_type = row.text(0).map_err(store_fault)?.to_owned();
    Ok(Body { mime_type, bytes: row.blob(1).map_err(store_fault)?.to_vec() })
}

pub(crate) fn check_type(mime_type: &str) -> Result<(), Failure> {
    match MIME_TYPES.contains(&mime_type) {
        true => Ok(()),
        false => Err(Failure::of_action(
            Fault::invalid(format!("content of this type is not taken; taken: {}", MIME_TYPES.join(", ")))
                .with("mime_type", mime_type),
        )),
    }
}

/// The media type without its parameters, in lower case.
pub(crate) fn media(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    orchestr8_contract::canonical::hex(&Sha256::digest(bytes))
}

pub(crate) fn too_large(limit_bytes: usize) -> Failure {
    let message = format!("the artifact is larger than {limit_bytes} bytes");
    Fault::new(Code::PayloadTooLarge, message).with("max_artifact_bytes", limit_bytes).into()
}

fn wrong(message: &'static str) -> Failure {
    Failure::of_action(Fault::invalid(message))
}

fn digits(text: &str) -> Option<String> {
    let text = text.strip_prefix("sha256:").unwrap_or(text);
    let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_ascii_lowercase())
}

fn at<'a>(args: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut place = args;
    for name in path {
        place = place.get_mut(*name)?.as_object_mut()?;
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(args: Value) -> Result<Value, &'static str> {
        let Value::Object(mut args) = args else { unreachable!() };
        let named = take(&mut args).map_err(|failure| failure.word())?;
        let Some(named) = named else { return Ok(Value::Object(args)) };
        assert!(!Value::Object(args.clone()).to_string().contains(URI), "the address is no part of the wish");
        let body = Body { mime_type: "text/plain".into(), bytes: b"hello".to_vec() };
        put(&mut args, &named, body).map_err(|failure| failure.word())?;
        Ok(Value::Object(args))
    }

    #[test]
    fn kno_5_an_artifact_takes_the_place_of_the_body() {
        let hash = hash(b"hello");
        let content = json!({"mime_type": "text/plain", "body": "hello"});
        for args in [
            json!({"document_id": "d", "artifact_uri": "u", "artifact_hash": hash}),
            json!({"document_id": "d", "content": {"artifact_uri": "u", "artifact_hash": format!("sha256:{hash}")}}),
        ] {
            assert_eq!(filled(args), Ok(json!({"document_id": "d", "content": content})));
        }
        let update = json!({"patch": {"content": {"mime_type": "text/markdown", "artifact_uri": "u", "artifact_hash": hash}}});
        assert_eq!(
            filled(update),
            Ok(json!({"patch": {"content": {"mime_type": "text/markdown", "body": "hello"}}}))
        );
        let inline = json!({"content": content});
        assert_eq!(filled(inline.clone()), Ok(inline));
    }

    #[test]
    fn an_artifact_without_its_hash_or_beside_a_body_is_refused() {
        let hash = hash(b"hello");
        for args in [
            json!({"artifact_uri": "u"}),
            json!({"artifact_uri": 7, "artifact_hash": hash}),
            json!({"artifact_uri": "u", "artifact_hash": "abc"}),
            json!({"content": {"body": "x", "artifact_uri": "u", "artifact_hash": hash}}),
        ] {
            assert_eq!(filled(args.clone()), Err("UNPROCESSABLE_ENTITY"), "{args}");
        }
    }
}
