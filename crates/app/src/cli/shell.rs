//! What every command works with: the terminal, the environment and the configuration.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use orchestr8_contract::Code;
use orchestr8_stores::sqlite::Look;

use crate::config::{Entry, Environment, Flags, Loaded};
use crate::failure::Failure;
use crate::settings::{Mode, Place, Settings};
use crate::terminal::{BOLD, PLAIN, Terminal};

/// What a command works with.
pub struct Shell {
    pub terminal: Terminal,
    pub environment: Environment,
    pub config: Option<PathBuf>,
    /// Whether it was said that settings are left out: once is enough.
    told: AtomicBool,
}

/// What a command does when the configuration of its folder is not trusted and settings are therefore left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenUntrusted {
    /// It looks at something: it goes on without them.
    GoOn,
    /// It acts for others, or lets models act: it does not go on without those that restrict them.
    KeepProtection,
    /// It serves everybody: it does not go on without any.
    Refuse,
}

impl Shell {
    pub fn new(terminal: Terminal, environment: Environment, config: Option<PathBuf>) -> Self {
        Self { terminal, environment, config, told: AtomicBool::new(false) }
    }

    pub fn load(&self, flags: Flags) -> Result<Loaded, Failure> {
        let loaded = crate::config::load(self.config.as_deref(), flags, &self.environment)?;
        if let Some((text, hint)) = loaded.notice().filter(|_| !self.told.swap(true, Ordering::Relaxed)) {
            self.terminal.warn(&text);
            self.terminal.note(&format!("{BOLD}hint:{PLAIN} {hint}"));
        }
        Ok(loaded)
    }

    /// The same without notes and warnings.
    pub fn quiet(&self) -> Self {
        let terminal = Terminal { quiet: true, ..self.terminal };
        let (environment, config) = (self.environment.clone(), self.config.clone());
        Self { terminal, environment, config, told: AtomicBool::new(true) }
    }

    /// What the configuration means for this command.
    pub fn settings(&self, flags: Flags, mode: Mode) -> Result<Settings, Failure> {
        Settings::new(self.load(flags)?, mode, &self.environment)
    }

    /// The same for a command that may not do without settings that are left out.
    pub fn settings_for(
        &self,
        command: &str,
        flags: Flags,
        mode: Mode,
        when: WhenUntrusted,
    ) -> Result<Settings, Failure> {
        let loaded = crate::config::load(self.config.as_deref(), flags.clone(), &self.environment)?;
        match when {
            WhenUntrusted::GoOn => {}
            WhenUntrusted::KeepProtection => loaded.require(command, Entry::is_protective)?,
            WhenUntrusted::Refuse => loaded.require(command, |_| true)?,
        }
        self.settings(flags, mode)
    }

    /// The same for a command whose stderr is a log: there it is said that settings are left out.
    pub fn settings_logged(&self, command: &str, flags: Flags, mode: Mode) -> Result<Settings, Failure> {
        let loaded = crate::config::load(self.config.as_deref(), flags, &self.environment)?;
        loaded.require(command, Entry::is_protective)?;
        let notice = loaded.notice().map(|(text, hint)| format!("{text}; hint: {hint}"));
        let mut settings = Settings::new(loaded, mode, &self.environment)?;
        settings.warnings.extend(notice);
        Ok(settings)
    }
}

/// The data file of this installation, to look at while a server may use it.
pub fn look(shell: &Shell, data_dir: Option<PathBuf>) -> Result<(PathBuf, Look), Failure> {
    let mode = Mode { data_dir, ..Mode::default() };
    let store = shell.settings(Flags::new(), mode)?.store;
    let path = match &store.place {
        Place::File { path, .. } => path.clone(),
        Place::Memory => return Err(Failure::new(Code::NotFound, "there is no data file")),
    };
    if !path.exists() {
        return Err(Failure::new(Code::NotFound, format!("there is no data file at {}", path.display()))
            .hinting("it is made when orchestr8 first runs; name its folder with --data-dir"));
    }
    let look = crate::runtime::store::look(&store, &path)?;
    Ok((path, look))
}
