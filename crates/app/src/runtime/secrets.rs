//! Opens the vault: reads the key of the secrets from where the settings say, and creates it where they say nothing.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Kernel;
use orchestr8_secrets::{KeySource, MasterKey, MemoryKey, SecretVault};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::settings::{KeyLocation, Settings, read_private};

/// How long the command that prints the key may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// A key is 44 characters; more than this is something else.
const KEY_TEXT_BYTES: u64 = 1024;

/// The vault with its actions. `load` it before anything uses a secret.
pub fn register(kernel: &Kernel, settings: &Settings) -> Result<SecretVault, Failure> {
    let keys: Arc<dyn KeySource> = match &settings.secrets.key {
        KeyLocation::Memory => Arc::new(MemoryKey::new()?),
        other => Arc::new(InstallationKey(other.clone())),
    };
    let vault = SecretVault::new(kernel.ports(), keys, settings.secrets.declared.clone());
    vault.mask_also(settings.secrets.confidential.iter().cloned());
    for action in orchestr8_secrets::all(&vault).map_err(super::broken)? {
        super::offer(kernel, action)?;
    }
    Ok(vault)
}

/// The key of this installation.
pub struct InstallationKey(pub KeyLocation);

impl KeySource for InstallationKey {
    fn load(&self) -> Result<Vec<MasterKey>, Fault> {
        match &self.0 {
            KeyLocation::Variable { .. } | KeyLocation::File(_) | KeyLocation::Command(_) => {
                Ok(vec![MasterKey::parse(&key_text("secrets.key", &self.0).map_err(unavailable)?)?])
            }
            KeyLocation::Created(Some(path)) => {
                let there: Vec<PathBuf> =
                    [path.clone(), next(path)].into_iter().filter(|path| path.exists()).collect();
                there.iter().map(|path| read(path)).collect()
            }
            KeyLocation::Created(None) | KeyLocation::Memory => Ok(Vec::new()),
        }
    }

    fn create(&self) -> Result<MasterKey, Fault> {
        let KeyLocation::Created(Some(path)) = &self.0 else {
            return Err(unavailable(String::from(
                "no key of the secrets is configured, and there is no folder to create one in; set secrets.key",
            )));
        };
        let key = MasterKey::generate()?;
        write(path, &key).map_err(|cause| {
            unavailable(format!("{} cannot be created: {cause}; set secrets.key", path.display()))
        })?;
        Ok(key)
    }

    /// A change of keys was cut off after its commit: the new key takes the place of the old one.
    fn confirm(&self, _: &MasterKey) {
        if let KeyLocation::Created(Some(path)) = &self.0 {
            let _ = fs::rename(next(path), path);
        }
    }
}

/// Where the next key stands until the records are encrypted with it.
pub fn next(path: &Path) -> PathBuf {
    path.with_extension("key.new")
}

/// Writes a key for its owner only; durable when it returns.
pub fn write(path: &Path, key: &MasterKey) -> io::Result<()> {
    const OWNER_ONLY: u32 = 0o600;
    const FOLDER: u32 = 0o700;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(FOLDER).create(folder)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)?;
    file.write_all(key.to_text().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::File::open(folder)?.sync_all()
}

fn read(path: &Path) -> Result<MasterKey, Fault> {
    MasterKey::parse(&read_private("secrets.key", path).map_err(|failure| unavailable(failure.message))?)
}

/// The text of a key from where a setting says it is; or why there is none.
pub fn key_text(setting: &str, location: &KeyLocation) -> Result<Zeroizing<String>, String> {
    let text = match location {
        KeyLocation::Variable { name, value } => value
            .as_ref()
            .map(|value| value.expose().to_owned())
            .ok_or_else(|| format!("the environment variable {name} of {setting}.env is not set"))?,
        KeyLocation::File(path) => read_private(setting, path).map_err(|failure| failure.message)?,
        KeyLocation::Command(command) => {
            print(command).map_err(|what| format!("{setting}.command {what}"))?
        }
        KeyLocation::Created(_) | KeyLocation::Memory => return Err(format!("{setting} is not set")),
    };
    Ok(Zeroizing::new(text))
}

/// What the command prints. It gets no input, and it is ended when it takes too long.
pub fn print(command: &[String]) -> Result<String, String> {
    let Some((program, args)) = command.split_first() else { return Err(String::from("is empty")) };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|cause| format!("cannot be started: {cause}"))?;
    let (told, heard) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = String::new();
            let read = stdout.take(KEY_TEXT_BYTES).read_to_string(&mut text);
            let _ = told.send(read.map(|_| text));
        });
    }
    let text = heard.recv_timeout(COMMAND_LIMIT);
    if text.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|cause| format!("cannot be waited for: {cause}"))?;
    match text {
        Ok(Ok(text)) if status.success() => Ok(text),
        Ok(Ok(_)) => Err(format!("ended with {status}")),
        Ok(Err(cause)) => Err(format!("cannot be read: {cause}")),
        Err(_) => Err(format!("took longer than {} s", COMMAND_LIMIT.as_secs())),
    }
}

fn unavailable(what: String) -> Fault {
    Fault::new(Code::SecretsUnavailable, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orchestr8_secrets::SecretText;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_key_is_created_for_its_owner_only_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/orchestr8/secrets.key");
        let source = InstallationKey(KeyLocation::Created(Some(path.clone())));
        assert!(source.load().unwrap().is_empty());
        let key = source.create().unwrap();
        assert_eq!(source.load().unwrap()[0].to_text(), key.to_text());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            source.create().unwrap_err().code,
            Code::SecretsUnavailable,
            "an existing key is never replaced"
        );
        write(&next(&path), &MasterKey::generate().unwrap()).unwrap();
        assert_eq!(source.load().unwrap().len(), 2);
        source.confirm(&key);
        assert_eq!(source.load().unwrap().len(), 1);
    }

    #[test]
    fn a_key_comes_from_a_variable_a_file_or_a_command() {
        let key = MasterKey::generate().unwrap();
        let text = key.to_text();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write(&path, &key).unwrap();
        let variable = |value| KeyLocation::Variable { name: "K".into(), value };
        let command =
            |words: &[&str]| KeyLocation::Command(words.iter().map(|word| (*word).to_owned()).collect());
        for location in [
            variable(Some(SecretText::new(text.as_str()))),
            KeyLocation::File(path.clone()),
            command(&["cat", path.to_str().unwrap()]),
        ] {
            assert_eq!(InstallationKey(location).load().unwrap()[0].to_text(), text);
        }
        for location in [
            variable(None),
            KeyLocation::File("/no/such".into()),
            command(&["false"]),
            command(&["/no/such"]),
            command(&["echo", "short"]),
        ] {
            assert_eq!(InstallationKey(location).load().unwrap_err().code, Code::SecretsUnavailable);
        }
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        assert!(InstallationKey(KeyLocation::File(path)).load().is_err(), "others can read it");
    }
}
