//! Who may call, and the certificate of the server: what of it contradicts itself.

use orchestr8_contract::envelope::Role;
use orchestr8_contract::id::Tenant;
use orchestr8_edge::{Auth, TlsFiles, Token};

use super::{Review, tokens};
use crate::config;

impl Review<'_> {
    pub(super) fn auth(&mut self) -> Auth {
        let tokens = &self.loaded.config.auth.tokens;
        for (index, token) in tokens.iter().enumerate() {
            if let Err(wrong) = Tenant::parse(&token.tenant) {
                self.complain(&format!("auth.tokens[{index}].tenant"), wrong.to_string());
            }
            for (field, what) in tokens::problems(token) {
                self.complain(&format!("auth.tokens[{index}].{field}"), what);
            }
            if Role::ALL.iter().all(|role| token.roles.iter().any(|word| word == role.as_str())) {
                self.complain(
                    &format!("auth.tokens[{index}].roles"),
                    "has planner and executor; who plans must not carry out: give each a token of its own",
                );
            }
            if tokens[..index]
                .iter()
                .any(|other| (&other.tenant, &other.name) == (&token.tenant, &token.name))
            {
                self.complain(
                    &format!("auth.tokens[{index}].name"),
                    format!("is '{}', which another token of the tenant {} has", token.name, token.tenant),
                );
            }
            if tokens[..index].iter().any(|other| other.sha256.eq_ignore_ascii_case(&token.sha256)) {
                self.complain(
                    &format!("auth.tokens[{index}].sha256"),
                    "is there twice; which of the two names would count?",
                );
            }
        }
        let known = |token: &config::Token| Token {
            name: token.name.clone(),
            sha256_hex: token.sha256.clone(),
            roles: token.roles.clone(),
            tenant: token.tenant.clone(),
            reuse_name: token.reuse_name,
        };
        Auth { tokens: tokens.iter().map(known).collect(), stored: None }
    }

    pub(super) fn tls(&mut self) -> Option<TlsFiles> {
        let tls = &self.loaded.config.http.tls;
        match (tls.cert.clone(), tls.key.clone()) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => {
                self.complain("http.tls.key", "is missing; http.tls.cert needs its private key");
                None
            }
            (None, Some(_)) => {
                self.complain("http.tls.cert", "is missing; http.tls.key is of no use without it");
                None
            }
        }
    }
}
