//! What signs the heads of the audit log, and where they are kept. Neither may be in the data directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_contract::canonical::hex;
use orchestr8_outbound::ExtraAuthorities;
use orchestr8_tlog::recorder::WitnessSettings;
use orchestr8_tlog::{Anchor, HeadFile, LogKey, Witness, WitnessToken};
use reqwest::Url;
use sha2::{Digest, Sha256};

use super::Place;
use crate::config::{self, Environment};
use crate::failure::Failure;

/// Where the key comes from.
#[derive(Clone)]
pub enum KeySource {
    /// There is no place for one.
    None,
    /// Made there at the first start.
    File {
        path: PathBuf,
        /// The settings name it: nothing else will do.
        explicit: bool,
    },
    Given(Box<LogKey>),
    /// A program that prints it.
    Command(Vec<String>),
}

#[derive(Clone)]
pub struct AuditSettings {
    pub key: KeySource,
    /// None: there is no place for one, or no data file.
    pub head_file: Option<HeadFile>,
    pub anchors: Vec<Anchor>,
    pub every: Duration,
    pub every_entries: u64,
    pub witnesses: WitnessSettings,
    /// Who may have signed the certificates of witnesses, beside the authorities of the system.
    pub witness_authorities: ExtraAuthorities,
    /// What the origin of every head begins with.
    pub origin: String,
}

const KEY_FILE: &str = "log.key";
const FOLDER: &str = "audit";

impl AuditSettings {
    pub fn new(config: &config::Audit, place: &Place, environment: &Environment) -> Result<Self, Failure> {
        let data = match place {
            Place::Memory => None,
            Place::File { path, .. } => Some(real_path(path)),
        };
        let folder = environment.state_home().map(|home| home.join(FOLDER));
        let key = key(config, folder.as_deref(), environment)?;
        let (mut files, mut anchors) = (Vec::new(), Vec::new());
        for anchor in &config.anchors {
            match anchor.strip_prefix("file:") {
                Some(path) if !path.is_empty() => files.push(PathBuf::from(path)),
                Some(_) | None => anchors.push(elsewhere(anchor)?),
            }
        }
        if files.len() > 1 {
            return Err(wrong("audit.anchors", "names more than one file"));
        }
        let witness_authorities = witness_authorities(config)?;
        let witnesses = witnesses(config, &witness_authorities, environment)?;
        anchors.extend(witnesses.iter().cloned().map(Anchor::Witness));
        let id = data.as_ref().map(|data| id_of(data)).unwrap_or_default();
        let beside = match &key {
            KeySource::File { path, .. } => path.parent().map(Path::to_owned),
            KeySource::None | KeySource::Given(_) | KeySource::Command(_) => folder,
        };
        let file = files.pop().or_else(|| beside.map(|beside| beside.join(format!("{id}.heads"))));
        if let Some(folder) = data.as_ref().and_then(|data| data.parent()) {
            if let KeySource::File { path, .. } = &key {
                outside(folder, path, "audit.keyFile", "the key that signs the audit log")?;
            }
            if let Some(file) = &file {
                outside(folder, file, "audit.anchors", "the file of signed heads")?;
            }
        }
        Ok(Self {
            key,
            head_file: file.filter(|_| data.is_some()).map(HeadFile::new),
            anchors,
            every: Duration::from_secs(config.head_seconds),
            every_entries: config.head_entries,
            witnesses: WitnessSettings { witnesses, require: config.require_witness },
            witness_authorities,
            origin: format!("orchestr8/{id}"),
        })
    }
}

fn key(
    config: &config::Audit,
    folder: Option<&Path>,
    environment: &Environment,
) -> Result<KeySource, Failure> {
    if let Some(variable) = &config.key_env_var {
        let text = environment.get(variable).unwrap_or_default();
        return match LogKey::parse(text) {
            Some(key) => Ok(KeySource::Given(Box::new(key))),
            None => Err(wrong(
                "audit.keyEnvVar",
                &format!("names {variable}, which does not hold a key of a log"),
            )),
        };
    }
    if !config.key_command.is_empty() {
        return Ok(KeySource::Command(config.key_command.clone()));
    }
    let default = || folder.map(|folder| folder.join(KEY_FILE));
    let explicit = config.key_file.is_some();
    Ok(match config.key_file.clone().or_else(default) {
        Some(path) => KeySource::File { path, explicit },
        None => KeySource::None,
    })
}

/// The witnesses, all known by one token.
fn witnesses(
    config: &config::Audit,
    authorities: &ExtraAuthorities,
    environment: &Environment,
) -> Result<Vec<Witness>, Failure> {
    let token = match &config.witness_token_env_var {
        None => None,
        Some(variable) => match environment.get(variable).filter(|token| !token.trim().is_empty()) {
            Some(token) => Some(WitnessToken::new(token)),
            None => {
                return Err(wrong(
                    "audit.witnessTokenEnvVar",
                    &format!("names {variable}, which is not set"),
                ));
            }
        },
    };
    if config.require_witness && config.witnesses.is_empty() {
        return Err(wrong("audit.requireWitness", "needs a witness: set audit.witnesses"));
    }
    config.witnesses.iter().map(|url| witness(url, token.clone(), authorities.clone())).collect()
}

fn witness_authorities(config: &config::Audit) -> Result<ExtraAuthorities, Failure> {
    let Some(path) = &config.witness_ca_file else { return Ok(ExtraAuthorities::default()) };
    let read = std::fs::read(path).map_err(|cause| cause.to_string());
    read.and_then(|pem| ExtraAuthorities::parse(&pem)).map_err(|cause| {
        let path = path.display();
        wrong("audit.witnessCaFile", &format!("names {path}, which cannot be read as certificates: {cause}"))
    })
}

/// A token is sent over TLS, or stays on this machine.
pub fn witness(
    url: &str,
    token: Option<WitnessToken>,
    authorities: ExtraAuthorities,
) -> Result<Witness, Failure> {
    let parsed =
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = parsed else {
        return Err(wrong("audit.witnesses", "takes addresses such as https://witness.example:8088"));
    };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match url.scheme() == "https" || is_local {
        true => Ok(Witness { url, token, authorities }),
        false => Err(wrong("audit.witnesses", "takes http:// for this machine only; use https://")),
    }
}

fn elsewhere(anchor: &str) -> Result<Anchor, Failure> {
    match anchor {
        "syslog" => Ok(Anchor::Syslog(PathBuf::from(Anchor::SYSLOG))),
        url if url.starts_with("http://") || url.starts_with("https://") => Ok(Anchor::Http(url.to_owned())),
        _ => Err(wrong("audit.anchors", "takes file:PATH, syslog, and addresses with http:// or https://")),
    }
}

fn wrong(key: &str, what: &str) -> Failure {
    Failure::new(Code::Configuration, format!("{key} {what}")).hinting("see docs/guide/operations.md#audit")
}

/// Someone who can write the data must not be able to sign it, nor to take signed heads back.
fn outside(folder: &Path, path: &Path, key: &str, what: &str) -> Result<(), Failure> {
    let path = real_path(path);
    match path.starts_with(folder) {
        false => Ok(()),
        true => Err(Failure::new(
            Code::Configuration,
            format!("{what} would be in the data directory: {}", path.display()),
        )
        .hinting(format!("name another place with {key}"))),
    }
}

/// The path in full, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for ancestor in full.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), full.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    full
}

/// Tells data files apart: heads of one are no heads of another.
fn id_of(data: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    hex(&Sha256::digest(data.as_os_str().as_bytes()))[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(keys: &[&str], key_file: Option<&str>, data: &Path) -> Result<AuditSettings, Failure> {
        let config = config::Audit {
            key_file: key_file.map(PathBuf::from),
            key_env_var: None,
            key_command: Vec::new(),
            head_entries: 0,
            witnesses: Vec::new(),
            witness_token_env_var: None,
            witness_ca_file: None,
            require_witness: false,
            anchors: keys.iter().map(|key| (*key).to_owned()).collect(),
            head_seconds: 10,
        };
        let place = Place::File { path: data.join("orchestr8.sqlite3"), explicit: true };
        AuditSettings::new(&config, &place, &Environment::of(&[("HOME", "/nowhere")]))
    }

    #[test]
    fn key_and_heads_are_outside_the_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let ours = settings(&["syslog", "https://log.example/h"], None, &data).unwrap();
        let KeySource::File { path, explicit: false } = &ours.key else { panic!() };
        assert_eq!(path, Path::new("/nowhere/.local/state/orchestr8/audit/log.key"));
        assert_eq!(ours.head_file.unwrap().path().parent(), path.parent());
        assert_eq!(ours.anchors.len(), 2);
        let inside = data.join("log.key");
        std::os::unix::fs::symlink(&data, folder.path().join("link")).unwrap();
        for path in [inside.clone(), folder.path().join("link/log.key"), data.join("a/../b/log.key")] {
            assert!(settings(&[], path.to_str(), &data).is_err(), "{path:?}");
        }
        let file = format!("file:{}", inside.display());
        assert!(settings(&[&file], None, &data).is_err());
        assert!(settings(&["ftp://x"], None, &data).is_err());
        assert!(settings(&["file:/a", "file:/b"], None, &data).is_err());
    }
}
