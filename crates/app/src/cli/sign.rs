//! `orchestr8 sign`: makes the signature of a request by hand, and the command that sends it.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use orchestr8_contract::Code;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use orchestr8_knowledge_face::check_envelope;
use orchestr8_knowledge_face::limits::{BODY_BYTES, SIGNATURE_LIFE_S};
use orchestr8_knowledge_face::security::jws::{self, Claims, Form};
use orchestr8_knowledge_face::security::keys;
use serde_json::json;

use super::reaching::key_file;
use super::words::read_duration;
use super::{Shell, files};
use crate::failure::Failure;
use crate::reach::{problem_lines, read_key};

const SERVER: &str = "http://127.0.0.1:8088";

#[derive(Args)]
pub struct Sign {
    /// The envelope: a file, or - for stdin.
    #[arg(value_name = "FILE", required_unless_present = "request", conflicts_with = "request")]
    envelope: Option<String>,
    /// The secret key, as `orchestr8 keys new --out` wrote it [default: $ORCHESTR8_KEY_FILE].
    #[arg(long, short, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Sign a request without an envelope: its method and path, such as 'GET /documents?prefix=a'.
    #[arg(long, value_name = "REQUEST")]
    request: Option<String>,
    /// Put the envelope inside the signature, instead of beside it.
    #[arg(long, conflicts_with = "request")]
    compact: bool,
    /// Send it over the bus.
    #[arg(long, conflicts_with = "request")]
    publish: bool,
    /// How long the signature holds, 15 minutes at most.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = read_duration)]
    valid: Duration,
    /// Use this nonce [default: a fresh one]. A server takes each nonce of a key once.
    #[arg(long, value_name = "TEXT")]
    nonce: Option<String>,
    /// The server the command is for [default: $ORCHESTR8_SERVER, else http://127.0.0.1:8088].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// What is signed, and where it goes.
struct Wish {
    body: Vec<u8>,
    method: String,
    target: String,
    /// Whether it is signed with its address: without an envelope, and on the bus.
    address: bool,
}

impl Sign {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let Some(file) = key_file(self.key.as_deref(), shell) else {
            return Err(Failure::new(Code::InvalidArgument, "no key is named to sign with").hinting(
                "give --key FILE or set ORCHESTR8_KEY_FILE; orchestr8 keys new --out FILE makes one",
            ));
        };
        let pair = read_key(&file)?;
        let wish = self.wish()?;
        let life_s = i64::try_from(self.valid.as_secs()).unwrap_or(i64::MAX);
        if !(1..=SIGNATURE_LIFE_S).contains(&life_s) {
            return Err(Failure::new(
                Code::InvalidArgument,
                "--valid must be between 1 second and 15 minutes",
            ));
        }
        let nonce = match &self.nonce {
            Some(nonce) => nonce.clone(),
            None => keys::fresh_nonce()?,
        };
        let iat_s = Real::new().now_ms() / 1000;
        let address = wish.address.then_some((wish.method.as_str(), wish.target.as_str()));
        let claims = Claims { iat_s, exp_s: iat_s + life_s, nonce: &nonce, address, key: None };
        let form = if self.compact { Form::Compact } else { Form::Detached };
        let signature = jws::sign(&pair, &wish.body, &claims, form);
        let curl = self.curl(shell, &wish, &signature);
        match (shell.terminal.json, form) {
            (true, Form::Compact) => {
                shell
                    .terminal
                    .value(&json!({"kid": pair.kid, "nonce": nonce, "jws": signature, "curl": curl}));
            }
            (true, Form::Detached) => {
                let headers = json!({"X-JWS-Signature": signature});
                shell
                    .terminal
                    .value(&json!({"kid": pair.kid, "nonce": nonce, "headers": headers, "curl": curl}));
            }
            (false, Form::Compact) => shell.terminal.data(&signature),
            (false, Form::Detached) => shell.terminal.data(&format!("X-JWS-Signature: {signature}")),
        }
        if !shell.terminal.json {
            shell.terminal.note(&format!("send it with:\n  {curl}"));
        }
        Ok(())
    }

    fn wish(&self) -> Result<Wish, Failure> {
        if let Some(request) = &self.request {
            let found = request.split_once(' ').filter(|(method, target)| {
                method.bytes().all(|byte| byte.is_ascii_uppercase())
                    && target.starts_with('/')
                    && !target.contains(' ')
            });
            let (method, target) = found.ok_or_else(|| {
                Failure::new(Code::InvalidArgument, format!("'{request}' is no method and path"))
                    .hinting("write it as 'GET /documents?prefix=a'")
            })?;
            return Ok(Wish {
                body: Vec::new(),
                method: method.to_owned(),
                target: target.to_owned(),
                address: true,
            });
        }
        let name = self.envelope.as_deref().unwrap_or("-");
        let body = read(name)?;
        check_envelope(&body).map_err(|fault| {
            let errors = fault.details.as_ref().and_then(|details| details.get("errors")).cloned();
            let lines = problem_lines(&errors.unwrap_or_default());
            Failure::new(Code::InvalidArgument, format!("{name} is not an envelope"))
                .listing(if lines.is_empty() { vec![fault.message.into_owned()] } else { lines })
        })?;
        let target = if self.publish { "/a2a/publish" } else { "/mcp/actions" };
        Ok(Wish { body, method: "POST".to_owned(), target: target.to_owned(), address: self.publish })
    }

    fn curl(&self, shell: &Shell, wish: &Wish, signature: &str) -> String {
        let named = shell.environment.get("ORCHESTR8_SERVER").filter(|url| !url.is_empty());
        let server = self.server.as_deref().or(named).unwrap_or(SERVER).trim_end_matches('/');
        let url = quoted(&format!("{server}{}", wish.target));
        if self.request.is_some() {
            return format!("curl -sS -X {} {url} -H 'X-JWS-Signature: {signature}'", wish.method);
        }
        let data = match self.envelope.as_deref().unwrap_or("-") {
            _ if self.compact => quoted(signature),
            name => quoted(&format!("@{name}")),
        };
        match self.compact {
            true => format!("curl -sS {url} -H 'content-type: application/jose' --data-binary {data}"),
            false => format!(
                "curl -sS {url} -H 'content-type: application/json' -H 'X-JWS-Signature: {signature}' --data-binary {data}"
            ),
        }
    }
}

fn read(name: &str) -> Result<Vec<u8>, Failure> {
    let limit = BODY_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match name {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        name => std::fs::File::open(name).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    read.map_err(|cause| files::unreadable(name, &cause))?;
    match bytes.len() > BODY_BYTES {
        true => Err(Failure::new(Code::PayloadTooLarge, format!("{name} has more than {BODY_BYTES} bytes"))),
        false => Ok(bytes),
    }
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
