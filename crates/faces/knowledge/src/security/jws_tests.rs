//! What a signature must be to be believed, and a hundred thousand that must not.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::*;
use crate::security::keys::{self, Owner};

const NOW_MS: i64 = 1_767_225_600_000;
const BODY: &[u8] = br#"{"envelope_version":"2.2"}"#;

fn key() -> (Pair, Record) {
    let owner = Owner { tenant: "acme".into(), principal: "svc:a".into(), roles: vec!["editor".into()] };
    keys::make("k-1", owner, [7; 32], NOW_MS - 1000)
}

fn claims(nonce: &str) -> Claims<'_> {
    Claims { iat_s: NOW_MS / 1000, exp_s: NOW_MS / 1000 + 300, nonce, address: None, key: None }
}

fn open(text: &str, body: Option<&[u8]>, record: &Record, now_ms: i64) -> Result<Opened, Refused> {
    let sealed = match body {
        Some(body) => Sealed::detached(text, body)?,
        None => Sealed::compact(text)?,
    };
    sealed.open(record, now_ms)
}

/// A token with this header, honestly signed.
fn signed(header: &Value, payload: &[u8], pair: &Pair) -> String {
    let input = format!("{}.{}", jose::encode(header.to_string().as_bytes()), jose::encode(payload));
    let signature = SigningKey::from_bytes(&pair.seed).sign(input.as_bytes());
    format!("{input}.{}", jose::encode(&signature.to_bytes()))
}

#[test]
fn kno_3_both_forms_are_believed() {
    let (pair, record) = key();
    let compact = sign(&pair, BODY, &claims("nonce-0001"), Form::Compact);
    assert_eq!(open(&compact, None, &record, NOW_MS).unwrap().payload, BODY);
    assert_eq!(verify(&compact, None, &record, NOW_MS).as_deref(), Ok(BODY));
    let detached = sign(&pair, BODY, &claims("nonce-0001"), Form::Detached);
    let opened = open(&detached, Some(BODY), &record, NOW_MS).unwrap();
    assert_eq!((opened.nonce.as_str(), opened.address), ("nonce-0001", None));
    assert_eq!(open(&detached, Some(b"{}"), &record, NOW_MS).unwrap_err(), Refused::Signature);
    assert_eq!(open(&compact, Some(BODY), &record, NOW_MS).unwrap_err(), Refused::Form);
    assert_eq!(open(&detached, None, &record, NOW_MS).unwrap_err(), Refused::Form);
}

#[test]
fn kno_3_weak_or_strange_headers_are_refused_even_if_the_signature_fits() {
    let (pair, record) = key();
    let good = json!({"alg": "EdDSA", "kid": "k-1", "iat": NOW_MS / 1000, "exp": NOW_MS / 1000 + 60, "nonce": "nonce-0001"});
    let with = |name: &str, value: Value| {
        let mut header = good.clone();
        header[name] = value;
        open(&signed(&header, BODY, &pair), None, &record, NOW_MS).map(|_| ())
    };
    assert_eq!(with("typ", json!("JOSE")), Ok(()));
    assert_eq!(with("alg", json!("Ed25519")), Ok(()));
    for alg in ["none", "None", "HS256", "RS256", "ES256", "eddsa", "ED25519", ""] {
        assert_eq!(with("alg", json!(alg)), Err(Refused::Algorithm), "{alg}");
    }
    assert_eq!(with("alg", json!(["EdDSA"])), Err(Refused::Algorithm));
    for name in ["crit", "b64", "jwk", "jku", "x5u", "x5c", "zip"] {
        assert_eq!(with(name, json!(true)), Err(Refused::Extension), "{name}");
    }
    for kid in [json!("k-2"), json!(""), json!("../k-1"), json!("k-1\u{0}"), json!(7), Value::Null] {
        assert_eq!(with("kid", kid.clone()), Err(Refused::Kid), "{kid}");
    }
    for nonce in [json!("short"), json!("x".repeat(129)), json!("two words"), json!(12_345_678), Value::Null]
    {
        assert_eq!(with("nonce", nonce.clone()), Err(Refused::Nonce), "{nonce}");
    }
    for time in [json!("soon"), json!(1.5), json!(-1), json!(i64::MAX), Value::Null] {
        assert_eq!(with("exp", time.clone()), Err(Refused::Times), "{time}");
        assert_eq!(with("iat", time.clone()), Err(Refused::Times), "{time}");
    }
    assert_eq!(with("iat", json!(NOW_MS / 1000 + 61)), Err(Refused::Early));
    assert_eq!(with("exp", json!(NOW_MS / 1000 + 901)), Err(Refused::LongLived));
    let late = |now_ms| open(&signed(&good, BODY, &pair), None, &record, now_ms).map(|_| ());
    assert_eq!(late(NOW_MS + 120_000), Ok(()), "a minute of grace");
    assert_eq!(late(NOW_MS + 121_000), Err(Refused::Late));
}

#[test]
fn kno_3_old_and_revoked_keys_are_refused() {
    let (pair, record) = key();
    let text = sign(&pair, BODY, &claims("nonce-0001"), Form::Compact);
    let outcome = |record: &Record| open(&text, None, record, NOW_MS).map(|_| ());
    let born = |created_ms| Record { created_ms, ..record.clone() };
    assert_eq!(outcome(&born(NOW_MS - KEY_LIFE_MS)), Ok(()));
    assert_eq!(outcome(&born(NOW_MS - KEY_LIFE_MS - 1)), Err(Refused::Aged));
    assert_eq!(outcome(&Record { revoked_ms: Some(NOW_MS), ..record.clone() }), Err(Refused::Revoked));
    assert_eq!(outcome(&Record { revoked_ms: Some(NOW_MS + 1), ..record.clone() }), Ok(()));
    let (_, other) = keys::make("k-1", record.owner.clone(), [8; 32], NOW_MS);
    assert_eq!(outcome(&other), Err(Refused::Signature));
    let small_order = Record { public: [0; 32], ..record };
    assert!(outcome(&small_order).is_err(), "a key of small order signs nothing");
}

#[test]
fn spellings_of_one_signature_are_one() {
    let (pair, record) = key();
    let text = sign(&pair, BODY, &claims("nonce-0001"), Form::Compact);
    for wrong in [
        format!("{text}="),
        format!("{text}=="),
        format!("{text}."),
        format!(".{text}"),
        format!(" {text}"),
        format!("{text}\n"),
        text.replacen('.', "..", 1),
        text.replace('-', "+"),
        text.to_uppercase(),
        String::new(),
        "..".into(),
    ] {
        if wrong != text {
            assert!(open(&wrong, None, &record, NOW_MS).is_err(), "{wrong}");
        }
    }
    let twice = r#"{"alg":"EdDSA","alg":"EdDSA","kid":"k-1"}"#;
    assert_eq!(
        Sealed::compact(&format!("{}.e30.AA", jose::encode(twice.as_bytes()))).unwrap_err(),
        Refused::Header
    );
}

/// One small change of a text that leaves it a text.
fn mutated(text: &str, random: &mut StdRng) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ {}\":,";
    let mut bytes = text.as_bytes().to_vec();
    let mut letter = || LETTERS[random.random_range(0..LETTERS.len())];
    let (fresh, other) = (letter(), letter());
    if bytes.is_empty() {
        return char::from(fresh).to_string();
    }
    let at = random.random_range(0..bytes.len());
    match random.random_range(0..6) {
        0 => bytes[at] = fresh,
        1 => bytes.insert(at, fresh),
        2 => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        4 => {
            let to = random.random_range(0..bytes.len());
            bytes.swap(at, to);
        }
        _ => {
            let to = random.random_range(0..bytes.len());
            (bytes[at], bytes[to]) = (fresh, other);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A change of the header itself, signed by somebody else or with the old signature.
fn forged(text: &str, random: &mut StdRng, thief: &Pair) -> String {
    let mut parts: Vec<&str> = text.split('.').collect();
    let mut header: Value = serde_json::from_slice(&jose::decode(parts[0]).unwrap()).unwrap();
    let names = ["alg", "kid", "iat", "exp", "nonce", "crit", "b64", "jwk"];
    let name = names[random.random_range(0..names.len())];
    header[name] = match random.random_range(0..5) {
        0 => json!("none"),
        1 => json!("HS256"),
        2 => json!(NOW_MS / 1000 + random.random_range(-1000..1000)),
        3 => json!([format!("nonce-{}", random.random::<u32>())]),
        _ => json!(format!("nonce-{}", random.random::<u32>())),
    };
    if random.random() {
        return signed(&header, BODY, thief);
    }
    let header = jose::encode(header.to_string().as_bytes());
    parts[0] = &header;
    if random.random_range(0..4) == 0 {
        parts[2] = "";
    }
    parts.join(".")
}

#[test]
fn a_hundred_thousand_mutated_signatures_and_none_is_believed() {
    let (pair, record) = key();
    let (thief, _) = keys::make("k-1", record.owner.clone(), [9; 32], NOW_MS);
    let compact = sign(&pair, BODY, &claims("nonce-0001"), Form::Compact);
    let detached = sign(&pair, BODY, &claims("nonce-0001"), Form::Detached);
    let mut random = StdRng::seed_from_u64(20_260_101);
    let (mut tried, mut reached_the_signature) = (0, 0);
    for round in 0.. {
        if tried == 100_000 {
            break;
        }
        let (original, body) = if round % 2 == 0 { (&compact, None) } else { (&detached, Some(BODY)) };
        let text = match round % 4 {
            0 | 1 => mutated(original, &mut random),
            2 => forged(&compact, &mut random, &thief),
            _ => mutated(&mutated(original, &mut random), &mut random),
        };
        if text == *original {
            continue;
        }
        tried += 1;
        match open(&text, body, &record, NOW_MS) {
            Ok(_) => panic!("believed: {text}"),
            Err(Refused::Signature) => reached_the_signature += 1,
            Err(_) => {}
        }
    }
    assert!(reached_the_signature > 10_000, "only {reached_the_signature} came as far as the signature");
}
