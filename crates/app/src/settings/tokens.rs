//! Checks of the tokens in the configuration.

use orchestr8_contract::AccessRole;
use orchestr8_kernel::submission::RESERVED_NAMES;

use crate::config;

/// What is wrong with a token, each with the field it is about.
pub fn problems(token: &config::Token) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    if RESERVED_NAMES.contains(&token.name.as_str()) || token.name.starts_with("svc:") {
        found.push((
            "name",
            format!("is '{}', which the server uses itself; choose another name", token.name),
        ));
    }
    for name in token.roles.iter().filter(|name| AccessRole::parse(name).is_none()) {
        let known = AccessRole::ALL.map(AccessRole::as_str);
        found.push((
            "roles",
            match config::suggestion(name, known.into_iter()) {
                Some(meant) => format!("names the role '{name}'; did you mean '{meant}'?"),
                None => format!("names the role '{name}'; there are {}", known.join(", ")),
            },
        ));
    }
    found
}
