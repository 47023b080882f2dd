//! Tokens of every algorithm we take, and what makes each of them worthless.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256};
use ed25519_dalek::{Signer, SigningKey};
use serde_json::json;

use super::*;

const NOW_MS: i64 = 1_767_225_600_000;

/// Somebody who signs, and the key they are known by.
struct Issuer {
    alg: &'static str,
    jwk: Value,
    sign: Sign,
}

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn issuers() -> Vec<Issuer> {
    let ed = SigningKey::from_bytes(&[5; 32]);
    let ed_jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": jose::encode(&ed.verifying_key().to_bytes())});
    let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let point = ec.public_key().as_ref();
    let ec_jwk = json!({"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": jose::encode(&point[1..33]), "y": jose::encode(&point[33..])});
    let rsa = RsaPair::generate(KeySize::Rsa2048).unwrap();
    // DER of two whole numbers: after nine bytes of heads and signs the modulus, and at the end the exponent.
    let der = rsa.public_key().as_ref();
    let (n, e) = (&der[9..265], &der[der.len() - 3..]);
    let rsa_jwk = json!({"kty": "RSA", "kid": "rsa", "n": jose::encode(n), "e": jose::encode(e)});
    vec![
        Issuer { alg: "EdDSA", jwk: ed_jwk, sign: Box::new(move |input| ed.sign(input).to_bytes().to_vec()) },
        Issuer {
            alg: "ES256",
            jwk: ec_jwk,
            sign: Box::new(move |input| ec.sign(&SystemRandom::new(), input).unwrap().as_ref().to_vec()),
        },
        Issuer {
            alg: "RS256",
            jwk: rsa_jwk,
            sign: Box::new(move |input| {
                let mut signature = vec![0; rsa.public_modulus_len()];
                rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), input, &mut signature).unwrap();
                signature
            }),
        },
    ]
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer", "aud": ["other", "orchestr8"], "sub": "svc:a", "tenant_id": "acme",
        "roles": ["editor"], "exp": NOW_MS / 1000 + 60, "nbf": NOW_MS / 1000,
    })
}

impl Issuer {
    fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| jose::encode(value.to_string().as_bytes());
        let input = format!("{}.{}", part(header), part(claims));
        format!("{input}.{}", jose::encode(&(self.sign)(input.as_bytes())))
    }

    fn header(&self) -> Value {
        json!({"alg": self.alg, "kid": self.jwk["kid"], "typ": "JWT"})
    }
}

fn trust(keys: &[&Value]) -> Trust {
    Trust::read(&json!({"keys": keys}).to_string(), "https://issuer", "orchestr8").unwrap()
}

#[test]
fn kno_3_tokens_of_each_algorithm_prove_who_sends_them() {
    let issuers = issuers();
    let trust = trust(&issuers.iter().map(|issuer| &issuer.jwk).collect::<Vec<_>>());
    let proven = Proven {
        sub: "svc:a".into(),
        tenant: "acme".into(),
        roles: orchestr8_contract::RoleSet::named(["editor"]),
        grant: None,
    };
    for issuer in &issuers {
        let good = issuer.token(&issuer.header(), &claims());
        assert_eq!(trust.check(&good, NOW_MS).as_ref(), Ok(&proven), "{}", issuer.alg);
        let mut other = claims();
        other["sub"] = json!("svc:b");
        let swapped = issuer.token(&issuer.header(), &other);
        let forged =
            format!("{}.{}", &swapped[..swapped.rfind('.').unwrap()], &good[good.rfind('.').unwrap() + 1..]);
        assert_eq!(trust.check(&forged, NOW_MS), Err(Refused::Signature), "{}", issuer.alg);
    }
}

#[test]
fn kno_3_one_key_is_good_for_one_algorithm() {
    let issuers = issuers();
    let trust = trust(&issuers.iter().map(|issuer| &issuer.jwk).collect::<Vec<_>>());
    for issuer in &issuers {
        for alg in ["none", "HS256", "RS512", "PS256", "ES384", "", "rs256", "RS256", "ES256", "EdDSA"] {
            let mut header = issuer.header();
            header["alg"] = json!(alg);
            let outcome = trust.check(&issuer.token(&header, &claims()), NOW_MS).map(|_| ());
            assert_eq!(outcome.is_ok(), alg == issuer.alg, "{alg} with a key of {}", issuer.alg);
        }
        let mut header = issuer.header();
        header["kid"] = json!("unknown");
        assert_eq!(trust.check(&issuer.token(&header, &claims()), NOW_MS), Err(Refused::Kid));
        let unsigned = issuer.token(&json!({"alg": "none"}), &claims());
        assert!(trust.check(&format!("{}.", &unsigned[..unsigned.rfind('.').unwrap()]), NOW_MS).is_err());
    }
}

#[test]
fn kno_3_every_claim_counts() {
    let issuers = issuers();
    let trust = trust(&[&issuers[0].jwk]);
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        trust.check(&issuers[0].token(&issuers[0].header(), &claims), NOW_MS).map(|_| ())
    };
    let now_s = NOW_MS / 1000;
    for (name, value, outcome) in [
        ("aud", json!("orchestr8"), Ok(())),
        ("roles", json!("editor viewer"), Ok(())),
        ("nbf", json!(now_s + 60), Ok(())),
        ("exp", json!(now_s - 60), Ok(())),
        ("exp", json!(now_s - 61), Err(Refused::Late)),
        ("exp", Value::Null, Err(Refused::Times)),
        ("exp", json!("never"), Err(Refused::Times)),
        ("nbf", json!(now_s + 61), Err(Refused::Early)),
        ("iat", json!(now_s + 61), Err(Refused::Early)),
        ("iss", json!("https://evil"), Err(Refused::Claims)),
        ("aud", json!(["other"]), Err(Refused::Claims)),
        ("aud", Value::Null, Err(Refused::Claims)),
        ("sub", Value::Null, Err(Refused::Claims)),
        ("tenant_id", json!(7), Err(Refused::Claims)),
        ("roles", json!([1]), Err(Refused::Claims)),
    ] {
        assert_eq!(with(name, value.clone()), outcome, "{name} {value}");
    }
}

#[test]
fn a_key_set_that_would_not_work_is_refused_when_it_is_read() {
    let issuers = issuers();
    let read = |keys: Value| Trust::read(&json!({"keys": keys}).to_string(), "i", "a").is_ok();
    assert!(read(json!([issuers[0].jwk])));
    for wrong in [
        json!([]),
        json!([{"kty": "oct", "k": "AAAA"}]),
        json!([{"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"}]),
        json!([{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]),
        json!([{"kty": "OKP", "crv": "Ed25519", "x": issuers[0].jwk["x"], "alg": "RS256"}]),
        json!([issuers[0].jwk, issuers[0].jwk]),
    ] {
        assert!(!read(wrong.clone()), "{wrong}");
    }
    let text = json!({"keys": [issuers[0].jwk]}).to_string();
    assert!(Trust::read(&text, "", "a").is_err() && Trust::read(&text, "i", "").is_err());
    assert!(Trust::read("{}", "i", "a").is_err());
}
