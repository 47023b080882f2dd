//! Lays defaults, file, environment and flags over each other; the later wins, and every value remembers where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use orchestr8_workflows::agents::secrets::ENV_PREFIX;
use serde_json::{Map, Value};

use super::environment::Environment;
use super::place::{Place, Step};
use super::suggest::suggestion;
use super::table::{OTHER_VARIABLES, PREFIX, SETTINGS, Secrecy, Setting};
use super::trust_class::TrustClass;
use super::walk::walk;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File(PathBuf),
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => out.write_str("default"),
            Origin::File(path) => write!(out, "{}", path.display()),
            Origin::Variable(name) => write!(out, "${name}"),
            Origin::Flag(name) => out.write_str(name),
        }
    }
}

/// One thing that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The full key.
    pub key: String,
    /// What is wrong, to stand after the key.
    pub what: String,
    pub origin: Origin,
}

/// A value in force.
#[derive(Debug, Clone)]
pub struct Entry {
    pub place: Place,
    pub setting: &'static Setting,
    /// Null: unset.
    pub value: Value,
    pub origin: Origin,
}

/// A configuration file, read.
#[derive(Debug, Clone)]
pub struct FileLayer {
    pub path: PathBuf,
    pub document: Value,
    /// Whether all of its settings apply, or only those that do no harm.
    pub is_trusted: bool,
}

/// What was given besides the environment.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The later wins.
    pub files: Vec<FileLayer>,
    /// Key, flag, value.
    pub flags: Vec<(&'static str, &'static str, Value)>,
}

/// The layers as one.
#[derive(Debug, Default)]
pub struct LayeredSettings {
    /// All values in force, in the order of the table.
    pub entries: Vec<Entry>,
    /// What an untrusted file says and what is therefore not in force.
    pub withheld: Vec<Entry>,
}

/// All values in force; or everything that is wrong.
pub fn lay(given: &Given, environment: &Environment) -> Result<LayeredSettings, Vec<Problem>> {
    let mut layers = Layers::default();
    for file in &given.files {
        let origin = Origin::File(file.path.clone());
        let found = walk(&file.document, &origin);
        layers.problems.extend(found.problems);
        for (place, setting, value) in found.values {
            match file.is_trusted || setting.trust() == TrustClass::Free {
                true => layers.put(place, setting, value, origin.clone()),
                false => layers.withhold(Entry { place, setting, value, origin: origin.clone() }),
            }
        }
    }
    layers.environment(environment);
    for (key, flag, value) in &given.flags {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == *key) {
            layers.put(Place::of(setting), setting, value.clone(), Origin::Flag(flag));
        }
    }
    layers.fill();
    if layers.problems.is_empty() { Ok(layers.into_settings()) } else { Err(layers.problems) }
}

/// The whole as one document, unset values left out.
pub fn document(entries: &[Entry]) -> Value {
    let mut root = Value::Object(Map::new());
    for entry in entries.iter().filter(|entry| !entry.value.is_null()) {
        entry.place.insert(&mut root, entry.value.clone());
    }
    root
}

/// A variable that begins like ours and means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    pub name: String,
    /// What was probably meant.
    pub meant: Option<String>,
}

impl fmt::Display for Stranger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the environment variable {} is not a setting", self.name)?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(out, "; did you mean {meant}?"))
    }
}

/// Not an error: container platforms set variables named after services.
pub fn strangers(environment: &Environment) -> Vec<Stranger> {
    let known: Vec<String> =
        SETTINGS.iter().filter_map(Setting::variable).chain(OTHER_VARIABLES.map(String::from)).collect();
    // Secrets carry names of their own.
    let ours = environment.names().filter(|name| name.starts_with(PREFIX) && !name.starts_with(ENV_PREFIX));
    ours.filter(|name| !known.iter().any(|known| known == name))
        .map(|name| {
            let meant = suggestion(name, known.iter().map(String::as_str)).map(str::to_owned);
            Stranger { name: name.to_owned(), meant }
        })
        .collect()
}

#[derive(Default)]
struct Layers {
    values: BTreeMap<Place, (&'static Setting, Value, Origin)>,
    withheld: Vec<Entry>,
    problems: Vec<Problem>,
}

impl Layers {
    fn put(&mut self, place: Place, setting: &'static Setting, value: Value, origin: Origin) {
        self.check(&place, setting, &value, &origin);
        self.values.insert(place, (setting, value, origin));
    }

    /// What is wrong is told, trusted or not.
    fn withhold(&mut self, entry: Entry) {
        self.check(&entry.place, entry.setting, &entry.value, &entry.origin);
        self.withheld.push(entry);
    }

    fn check(&mut self, place: &Place, setting: &Setting, value: &Value, origin: &Origin) {
        if setting.shape.accepts(value) {
            return;
        }
        // A token may stand where its hash belongs: such values are never repeated.
        let shown = match setting.secrecy {
            Secrecy::Open => shorten(value),
            Secrecy::Secret => String::from("its value"),
        };
        let what = format!("{shown} must be {}", setting.shape.allowed());
        self.problems.push(Problem { key: place.to_string(), what, origin: origin.clone() });
    }

    fn environment(&mut self, environment: &Environment) {
        for setting in SETTINGS {
            for name in setting.variables() {
                if environment.is_unreadable(&name) {
                    let what = String::from("its value is not UTF-8");
                    self.problems.push(Problem {
                        key: setting.key.to_owned(),
                        what,
                        origin: Origin::Variable(name),
                    });
                    break;
                }
                if let Some(text) = environment.get(&name) {
                    self.put(Place::of(setting), setting, setting.shape.read(text), Origin::Variable(name));
                    break;
                }
            }
        }
    }

    /// Gives every setting nobody set its default, within each item of a list or object too.
    fn fill(&mut self) {
        for setting in SETTINGS {
            for place in self.places_of(setting) {
                if self.values.contains_key(&place) {
                    continue;
                }
                match setting.preset.value() {
                    Some(value) => {
                        self.values.insert(place, (setting, value, Origin::Default));
                    }
                    None => {
                        let what = format!("is missing; it must be {}", setting.shape.allowed());
                        let origin = self.origin_near(&place);
                        self.problems.push(Problem { key: place.to_string(), what, origin });
                    }
                }
            }
        }
    }

    /// Where the setting stands: once for a plain one, once in each item for one of a list or object.
    fn places_of(&self, setting: &Setting) -> Vec<Place> {
        let segments: Vec<&str> = setting.segments().collect();
        let Some(wild) = segments.iter().position(|segment| matches!(*segment, "[]" | "*")) else {
            return vec![Place::of(setting)];
        };
        let head: Vec<Step> = segments[..wild].iter().map(|name| Step::Name((*name).to_owned())).collect();
        let mut places: Vec<Place> = Vec::new();
        for place in self.values.keys().filter(|place| place.depth() > wild && place.0.starts_with(&head)) {
            let mut steps = place.0[..=wild].to_vec();
            steps.extend(segments[wild + 1..].iter().map(|name| Step::Name((*name).to_owned())));
            if places.last().is_none_or(|last| last.0 != steps) {
                places.push(Place(steps));
            }
        }
        places
    }

    fn origin_near(&self, place: &Place) -> Origin {
        let near = self.values.iter().find(|(other, _)| other.item() == place.item());
        near.map_or(Origin::Default, |(_, (_, _, origin))| origin.clone())
    }

    fn into_settings(mut self) -> LayeredSettings {
        let mut withheld = std::mem::take(&mut self.withheld);
        // What a flag or a variable says instead, or what holds anyway, is not missing.
        withheld.retain(|entry| match self.values.get(&entry.place) {
            Some((_, value, origin)) => {
                *value != entry.value && matches!(origin, Origin::Default | Origin::File(_))
            }
            None => true,
        });
        LayeredSettings { entries: self.into_entries(), withheld }
    }

    fn into_entries(self) -> Vec<Entry> {
        let mut values: Vec<_> = self.values.into_iter().collect();
        values.sort_by_cached_key(|(place, (setting, _, _))| {
            (group(setting), place.item().to_vec(), order(setting))
        });
        values
            .into_iter()
            .map(|(place, (setting, value, origin))| Entry { place, setting, value, origin })
            .collect()
    }
}

fn order(setting: &Setting) -> Option<usize> {
    SETTINGS.iter().position(|other| other.key == setting.key)
}

/// Settings of one list or object stay together, item by item; plain ones keep the order of the table.
fn group(setting: &Setting) -> Option<usize> {
    match setting.key.find(['[', '*']) {
        Some(wild) => SETTINGS.iter().position(|other| other.key.starts_with(&setting.key[..wild])),
        None => order(setting),
    }
}

/// A value short enough for an error message.
fn shorten(value: &Value) -> String {
    const SHOWN_CHARACTERS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
