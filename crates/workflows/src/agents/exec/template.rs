//! What the settings allow `@orchestr8/exec` to start: a program, its arguments with typed holes, and who may fill them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use orchestr8_contract::access::AccessRole;
use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::Principal;
use orchestr8_process::sandbox::FileIdentity;
use serde_json::Value;

use super::super::members::Members;
use super::hole::{ArgumentHole, ArgumentTemplate};
use super::variables;

/// A template as it is written in the settings.
#[derive(Debug, Clone, Default)]
pub struct ExecTemplateSource {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The type of each hole: `text`, `integer`, `number`, `boolean`, `enum:a|b` or `pattern:<regular expression>`.
    pub holes: BTreeMap<String, String>,
    /// The variables that a step may set.
    pub variables: Vec<String>,
    /// The variables that every run has.
    pub env: BTreeMap<String, String>,
    /// Where it works. None: an empty temporary folder.
    pub directory: Option<PathBuf>,
    pub timeout_ms: Option<u64>,
    /// Who may use it, beside the owner; all who may run workflows, if it names no role.
    pub roles: Vec<String>,
}

/// A template that was checked, with the very file of its program.
#[derive(Debug, Clone)]
pub struct ExecTemplate {
    name: String,
    /// As it is written, and as it was resolved when the server started.
    written: PathBuf,
    program: PathBuf,
    identity: FileIdentity,
    args: Vec<ArgumentTemplate>,
    holes: BTreeMap<String, ArgumentHole>,
    variables: BTreeSet<String>,
    env: BTreeMap<String, String>,
    pub directory: Option<PathBuf>,
    pub timeout_ms: Option<u64>,
    roles: Vec<AccessRole>,
}

/// What a step asks for, checked against its template.
#[derive(Debug)]
pub struct ExecInvocation {
    pub program: PathBuf,
    pub identity: FileIdentity,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

impl ExecTemplate {
    /// Checks what is written. The text says which member is wrong and why.
    pub fn new(name: &str, source: ExecTemplateSource) -> Result<Self, String> {
        let (program, identity) = pin(&source.program).map_err(|why| format!("program: {why}"))?;
        let mut holes = BTreeMap::new();
        for (hole, kind) in &source.holes {
            holes.insert(
                hole.clone(),
                ArgumentHole::parse(kind).map_err(|why| format!("holes.{hole}: {why}"))?,
            );
        }
        let args: Vec<ArgumentTemplate> =
            source.args.iter().map(|arg| ArgumentTemplate::parse(arg)).collect();
        let used: BTreeSet<&str> = args.iter().flat_map(ArgumentTemplate::holes).collect();
        if let Some(hole) = used.iter().find(|hole| !holes.contains_key(**hole)) {
            return Err(format!("args: there is no hole named {{{hole}}}; describe it in holes"));
        }
        if let Some(hole) = holes.keys().find(|hole| !used.contains(hole.as_str())) {
            return Err(format!("holes.{hole}: no argument has it"));
        }
        for variable in &source.variables {
            variables::check(variable).map_err(|why| format!("variables: {variable} {why}"))?;
        }
        if source.directory.as_ref().is_some_and(|directory| !directory.is_absolute()) {
            return Err(String::from("directory: must be an absolute path"));
        }
        let role = |name: &String| {
            AccessRole::parse(name).ok_or_else(|| format!("roles: there is no role named '{name}'"))
        };
        Ok(Self {
            name: name.to_owned(),
            written: source.program,
            program,
            identity,
            args,
            holes,
            variables: source.variables.into_iter().collect(),
            env: source.env,
            directory: source.directory,
            timeout_ms: source.timeout_ms,
            roles: source.roles.iter().map(role).collect::<Result<_, _>>()?,
        })
    }

    /// Whether this principal may use it. The owner may use everything.
    pub fn permit(&self, principal: &Principal) -> Result<(), Fault> {
        let is_permitted = self.roles.is_empty() || principal.has(AccessRole::Owner);
        if is_permitted || self.roles.iter().any(|role| principal.has(*role)) {
            return Ok(());
        }
        let roles: Vec<&str> = self.roles.iter().map(|role| role.as_str()).collect();
        let text = format!("the template '{}' is for the roles {}", self.name, roles.join(", "));
        Err(Fault::new(Code::Unauthorized, text).with("roles", roles))
    }

    /// Puts the values of a step into the holes. What the template does not name is refused.
    pub fn fill(
        &self,
        members: &Members<'_>,
        base: &BTreeMap<String, String>,
    ) -> Result<ExecInvocation, Fault> {
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        for (hole, value) in members.entries("values")? {
            let Some(kind) = self.holes.get(hole) else {
                return Err(self.unknown("values", hole, self.holes.keys()));
            };
            values.insert(hole, kind.read(hole, value)?);
        }
        if let Some(missing) = self.holes.keys().find(|hole| !values.contains_key(hole.as_str())) {
            let text = format!("`values.{missing}` is missing; the template '{}' needs it", self.name);
            return Err(Fault::invalid(text).with("path", "values"));
        }
        let args = self.args.iter().map(|arg| arg.fill(&values, &self.holes)).collect::<Result<_, _>>()?;
        let mut env = base.clone();
        for (name, value) in members.entries("env")? {
            if !self.variables.contains(name) {
                return Err(self.unknown("env", name, self.variables.iter()));
            }
            env.insert(name.to_owned(), variables::value(name, value)?);
        }
        env.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        self.check_program()?;
        Ok(ExecInvocation { program: self.program.clone(), identity: self.identity, args, env })
    }

    /// The same file as when the server started. The sandbox looks again, when nothing can change any more.
    fn check_program(&self) -> Result<(), Fault> {
        match pin(&self.written) {
            Ok(found) if found == (self.program.clone(), self.identity) => Ok(()),
            Ok(_) | Err(_) => Err(Fault::new(
                Code::Unauthorized,
                format!(
                    "the program of the template '{}' is not the file it was when the server started; restart the server to accept it",
                    self.name
                ),
            )),
        }
    }

    fn unknown<'a>(&self, member: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Fault {
        let known: Vec<&str> = known.map(String::as_str).collect();
        let known = if known.is_empty() { String::from("none") } else { known.join(", ") };
        let shown: String = name.chars().take(64).collect();
        let text = format!("the template '{}' has no `{member}.{shown}`; it has: {known}", self.name);
        Fault::invalid(text).with("path", member)
    }
}

/// The real path of a program and which file it is.
fn pin(path: &Path) -> Result<(PathBuf, FileIdentity), String> {
    use std::os::unix::fs::PermissionsExt;
    const BY_OTHERS: u32 = 0o002;
    const EXECUTABLE: u32 = 0o111;
    if !path.is_absolute() {
        return Err(String::from("must be an absolute path"));
    }
    let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let metadata = real.metadata().map_err(|error| format!("{}: {error}", real.display()))?;
    let mode = metadata.permissions().mode();
    if !metadata.is_file() || mode & EXECUTABLE == 0 {
        return Err(format!("{} is not a program", real.display()));
    }
    if mode & BY_OTHERS != 0 {
        return Err(format!("{} can be written by every user; chmod o-w it", real.display()));
    }
    Ok((real, FileIdentity::of(&metadata)))
}

/// A value of the name a step gives, without what no program can be given.
pub(super) fn plain(path: &str, value: &Value) -> Result<String, Fault> {
    use super::super::members::wrong;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(wrong(path, "a text", value)),
    };
    if text.contains('\0') || text.len() > crate::limits::PROGRAM_ARGUMENT_BYTES {
        return Err(
            Fault::invalid(format!("`{path}` is a text that no program can be given")).with("path", path)
        );
    }
    Ok(text)
}
