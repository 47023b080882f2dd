//! The one list of what programs of the sandbox must not see or change on this host: the server's own places, credentials of
//! the user, and files that start programs.

use std::path::{Path, PathBuf};

use orchestr8_process::sandbox::PrivatePlaces;

use super::{Place, programs};
use crate::config::{self, Environment};

/// Credentials, by their path in a home and in a working directory: these names hold nothing else.
const CREDENTIALS: [&str; 60] = [
    // Keys, and stores of passwords.
    ".age",
    ".authinfo",
    ".authinfo.gpg",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/age",
    ".config/keepassxc",
    ".config/op",
    ".config/sops",
    ".gnupg",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".netrc",
    ".password-store",
    ".pki",
    ".ssh",
    "_netrc",
    // Clouds and clusters.
    ".aliyun",
    ".aws",
    ".azure",
    ".boto",
    ".config/doctl",
    ".config/fly",
    ".config/gcloud",
    ".config/hcloud",
    ".config/heroku",
    ".config/rclone",
    ".config/scw",
    ".consul-token",
    ".fly",
    ".kube",
    ".nomad-token",
    ".oci",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    // Code and packages.
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/hub",
    ".config/tea",
    ".docker/config.json",
    ".gem/credentials",
    ".git-credentials",
    ".pypirc",
    // Databases.
    ".config/mysql",
    ".my.cnf",
    ".mylogin.cnf",
    ".pgpass",
    // Agents and models.
    ".cache/huggingface/token",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/github-copilot",
    ".cursor/mcp.json",
    ".gemini",
    ".huggingface/token",
];

/// Secrets of a home that have other meanings in a project, or none.
const SECRETS_AT_HOME: [&str; 34] = [
    // Registries: a project has such a file too, mostly without a token.
    ".bundle/config",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/pip/pip.conf",
    ".config/pypoetry/auth.toml",
    ".docker",
    ".gradle/gradle.properties",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".pip/pip.conf",
    ".terraform.d",
    ".yarnrc.yml",
    // Browsers and mail, which are logged in.
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".mozilla",
    ".thunderbird",
    ".config/Slack",
    ".config/discord",
    ".local/share/evolution",
    // What was typed.
    ".bash_history",
    ".lesshst",
    ".local/share/fish/fish_history",
    ".mysql_history",
    ".node_repl_history",
    ".psql_history",
    ".python_history",
    ".rediscli_history",
    ".sqlite_history",
    ".zsh_history",
];

/// Folders of a home from which sessions of the user start programs: configurations of shells, editors and desktops, and what
/// the search path finds.
const STARTUP_AT_HOME: [&str; 16] = [
    ".bashrc.d",
    ".cargo/bin",
    ".config",
    ".emacs.d",
    ".local/bin",
    ".local/share/applications",
    ".local/share/systemd",
    ".oh-my-zsh",
    ".profile.d",
    ".rustup",
    ".ssh",
    ".vim",
    ".vscode",
    ".vscode-server",
    ".zsh",
    "bin",
];

pub fn private_places(config: &config::Config, place: &Place, environment: &Environment) -> PrivatePlaces {
    let homes: Vec<PathBuf> =
        environment.path("HOME").into_iter().filter(|home| home.is_absolute()).collect();
    let in_homes = |names: &[&str]| -> Vec<PathBuf> {
        homes.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
    };
    let mut hidden = in_homes(&CREDENTIALS);
    hidden.extend(in_homes(&SECRETS_AT_HOME));
    hidden.extend(sessions_folder(config, place, environment));
    let (folders, files) = own_places(config, place, environment);
    hidden.extend(files);
    PrivatePlaces {
        protected: folders,
        hidden,
        hidden_names: CREDENTIALS.map(PathBuf::from).into(),
        startup: in_homes(&STARTUP_AT_HOME),
        homes,
    }
}

/// The server's folders, and the files of the server that stand among files of others.
fn own_places(
    config: &config::Config,
    place: &Place,
    environment: &Environment,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let homes = [environment.state_home(), environment.config_home(), environment.data_home()];
    let mut folders: Vec<PathBuf> = homes.into_iter().flatten().collect();
    let (mut files, data) = (Vec::new(), programs::data_paths(config, place));
    match config.store.path.is_some() && data.len() > 1 {
        true => files.extend(data),
        false => folders.extend(data),
    }
    let keys = [&config.secrets.key.file, &config.audit.key_file, &config.http.tls.key];
    files.extend(keys.into_iter().flatten().cloned());
    files.extend(config.secrets.named.values().filter_map(|secret| secret.file.clone()));
    let heads = config.audit.anchors.iter().filter_map(|anchor| anchor.strip_prefix("file:"));
    files.extend(heads.map(PathBuf::from));
    // Signed heads lie beside a key that was named.
    if let Some(folder) = config.audit.key_file.as_deref().and_then(Path::parent)
        && let Ok(entries) = folder.read_dir()
    {
        let found = entries.flatten().map(|entry| entry.path());
        files.extend(found.filter(|path| path.extension().is_some_and(|ending| ending == "heads")));
    }
    let absolute = |paths: Vec<PathBuf>| -> Vec<PathBuf> {
        paths.into_iter().map(|path| environment.working_directory.join(path)).collect()
    };
    (absolute(folders), absolute(files))
}

/// The configuration in force, unless it is that of the start folder, which programs can read and not change.
pub fn named_configuration(file: Option<&Path>, environment: &Environment) -> Option<PathBuf> {
    let start = &environment.working_directory;
    let path = start.join(file?);
    let is_of_folder = ["orchestr8.json", "orchestr8.toml"].into_iter().any(|name| path == start.join(name));
    (!is_of_folder).then_some(path)
}

/// What other sessions said.
fn sessions_folder(config: &config::Config, place: &Place, environment: &Environment) -> Option<PathBuf> {
    let beside = match place {
        Place::File { path, .. } => path.parent().map(|folder| folder.join("sessions")),
        Place::Memory => None,
    };
    let folder = config.sessions.folder.clone().or(beside)?;
    Some(environment.working_directory.join(folder))
}
