//! The environment of the process, taken once. The only place that reads it; everything else gets values passed down.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Environment variables and the working directory as they were at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// Names whose value is not UTF-8: a setting given so cannot be read, and that must be said.
    unreadable: Vec<String>,
    pub working_directory: PathBuf,
    /// This very program, to start it again for other purposes.
    pub program: Option<PathBuf>,
}

impl Environment {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
    pub fn of_process() -> Self {
        let mut environment = Self {
            working_directory: std::env::current_dir().unwrap_or_default(),
            program: std::env::current_exe().ok(),
            ..Self::default()
        };
        for (name, value) in std::env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => {
                    environment.variables.insert(name, value);
                }
                Err(_) => environment.unreadable.push(name),
            }
        }
        environment
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// A variable that names a place; an empty one counts as absent, as the XDG rules have it.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    pub fn is_unreadable(&self, name: &str) -> bool {
        self.unreadable.iter().any(|found| found == name)
    }

    /// All variables whose value is text.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str)
    }

    /// Where a user's settings live: `$XDG_CONFIG_HOME/orchestr8`, else `~/.config/orchestr8`.
    pub fn config_home(&self) -> Option<PathBuf> {
        self.home("XDG_CONFIG_HOME", ".config")
    }

    /// Where what must outlive the data lives: `$XDG_STATE_HOME/orchestr8`, else `~/.local/state/orchestr8`.
    pub fn state_home(&self) -> Option<PathBuf> {
        self.home("XDG_STATE_HOME", ".local/state")
    }

    /// Where a user's data lives: `$XDG_DATA_HOME/orchestr8`, else `~/.local/share/orchestr8`.
    pub fn data_home(&self) -> Option<PathBuf> {
        self.home("XDG_DATA_HOME", ".local/share")
    }

    fn home(&self, variable: &str, under_home: &str) -> Option<PathBuf> {
        let given = self.path(variable).filter(|path| path.is_absolute());
        let base = given.or_else(|| Some(self.path("HOME")?.join(under_home)))?;
        Some(base.join("orchestr8"))
    }

    #[cfg(test)]
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { variables, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_follow_xdg_and_fall_back_to_home() {
        let environment = Environment::of(&[("HOME", "/home/ada")]);
        assert_eq!(environment.data_home(), Some(PathBuf::from("/home/ada/.local/share/orchestr8")));
        assert_eq!(environment.config_home(), Some(PathBuf::from("/home/ada/.config/orchestr8")));
        let environment = Environment::of(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data")]);
        assert_eq!(environment.data_home(), Some(PathBuf::from("/data/orchestr8")));
        let relative = Environment::of(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "data")]);
        assert_eq!(
            relative.data_home(),
            Some(PathBuf::from("/home/ada/.local/share/orchestr8")),
            "relative is invalid"
        );
        assert_eq!(Environment::of(&[("XDG_DATA_HOME", "")]).data_home(), None);
    }
}
