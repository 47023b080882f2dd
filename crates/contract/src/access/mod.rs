//! Role-based access control: the roles, sets of them, and the table of actions and the roles that may run them.

mod table;

pub use table::{ACCESS, FOREIGN_TOOLS, OPERATIONS, roles_for};

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A role that a token, a key or the person at this machine has. Roles add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessRole {
    /// Reads.
    Viewer,
    /// Reads, calls tools, sends messages, adds documents (KNO-6).
    Agent,
    /// Starts, cancels, retries and pauses executions; calls tools.
    Operator,
    /// Changes definitions, schedules and documents.
    Editor,
    /// Decides approvals.
    Approver,
    /// Takes tasks of worker queues.
    Worker,
    /// Manages servers, tokens, secrets and nodes; reads the audit trail. Not the data of tenants.
    Admin,
    /// Does everything with the data of a tenant.
    Owner,
    /// Plans changes of a governed workspace (ERR-5).
    Planner,
    /// Carries out plans in a governed workspace (ERR-5).
    Executor,
}

impl AccessRole {
    pub const ALL: [AccessRole; 10] = [
        AccessRole::Viewer,
        AccessRole::Agent,
        AccessRole::Operator,
        AccessRole::Editor,
        AccessRole::Approver,
        AccessRole::Worker,
        AccessRole::Admin,
        AccessRole::Owner,
        AccessRole::Planner,
        AccessRole::Executor,
    ];

    /// Names of earlier versions that stay valid (KNO-3).
    pub const ALIASES: [(&'static str, AccessRole); 2] =
        [("cursor", AccessRole::Agent), ("codex", AccessRole::Editor)];

    pub fn as_str(self) -> &'static str {
        match self {
            AccessRole::Viewer => "viewer",
            AccessRole::Agent => "agent",
            AccessRole::Operator => "operator",
            AccessRole::Editor => "editor",
            AccessRole::Approver => "approver",
            AccessRole::Worker => "worker",
            AccessRole::Admin => "admin",
            AccessRole::Owner => "owner",
            AccessRole::Planner => "planner",
            AccessRole::Executor => "executor",
        }
    }

    /// The role with this name or alias.
    pub fn parse(name: &str) -> Option<Self> {
        let alias = Self::ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, role)| *role);
        alias.or_else(|| Self::ALL.into_iter().find(|role| role.as_str() == name))
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The role and those it includes. An owner is not an admin: the rows of administration name both, and the token mode of
    /// the admin tools asks for the admin alone.
    const fn closure(self) -> u16 {
        const VIEWER: u16 = AccessRole::Viewer.bit();
        match self {
            AccessRole::Agent | AccessRole::Operator | AccessRole::Editor | AccessRole::Approver => {
                self.bit() | VIEWER
            }
            AccessRole::Viewer
            | AccessRole::Worker
            | AccessRole::Admin
            | AccessRole::Planner
            | AccessRole::Executor => self.bit(),
            AccessRole::Owner => {
                AccessRole::Owner.bit()
                    | VIEWER
                    | AccessRole::Agent.bit()
                    | AccessRole::Operator.bit()
                    | AccessRole::Editor.bit()
                    | AccessRole::Approver.bit()
                    | AccessRole::Worker.bit()
            }
        }
    }
}

/// A set of roles that contains every role that one of its members includes, so that the intersection of two sets holds the
/// rights that both have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RoleSet(u16);

impl RoleSet {
    pub const NONE: RoleSet = RoleSet(0);

    pub const fn of(roles: &[AccessRole]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < roles.len() {
            bits |= roles[index].closure();
            index += 1;
        }
        Self(bits)
    }

    /// The roles with these names or aliases. Other names grant nothing.
    pub fn named<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        names
            .into_iter()
            .filter_map(|name| AccessRole::parse(name.as_ref()))
            .fold(Self::NONE, |set, role| set.with(role))
    }

    #[must_use]
    pub const fn with(self, role: AccessRole) -> Self {
        Self(self.0 | role.closure())
    }

    pub const fn has(self, role: AccessRole) -> bool {
        self.0 & role.bit() != 0
    }

    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Whether every role of the other set is in this one.
    pub const fn contains(self, other: RoleSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights that one of the sets has.
    #[must_use]
    pub const fn union(self, other: RoleSet) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights that both sets have.
    #[must_use]
    pub const fn intersection(self, other: RoleSet) -> Self {
        Self(self.0 & other.0)
    }

    /// The roles, without those that another one of the set includes.
    pub fn roles(self) -> impl Iterator<Item = AccessRole> {
        AccessRole::ALL.into_iter().filter(move |role| {
            let is_included =
                |other: AccessRole| other != *role && self.has(other) && other.closure() & role.bit() != 0;
            self.has(*role) && !AccessRole::ALL.into_iter().any(is_included)
        })
    }

    /// The names of `roles`.
    pub fn names(self) -> Vec<String> {
        self.roles().map(|role| role.as_str().to_owned()).collect()
    }
}

impl Serialize for RoleSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.roles().map(AccessRole::as_str))
    }
}

impl<'de> Deserialize<'de> for RoleSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(deserializer).map(Self::named)
    }
}

impl fmt::Debug for RoleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.roles().map(AccessRole::as_str)).finish()
    }
}

/// The roles that may run an action: any one of them is enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AllowedRoles(u16);

impl AllowedRoles {
    /// Every role, and a caller without one.
    pub const ANYONE: AllowedRoles = AllowedRoles(u16::MAX);

    pub const fn any_of(roles: &[AccessRole]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < roles.len() {
            bits |= roles[index].bit();
            index += 1;
        }
        Self(bits)
    }

    pub const fn admit(self, roles: RoleSet) -> bool {
        self.0 == u16::MAX || self.0 & roles.0 != 0
    }

    pub fn names(self) -> Vec<&'static str> {
        AccessRole::ALL.into_iter().filter(|role| self.0 & role.bit() != 0).map(AccessRole::as_str).collect()
    }

    /// Every role that is enough, also those that include one of `names`.
    pub fn sufficient(self) -> impl Iterator<Item = AccessRole> {
        AccessRole::ALL.into_iter().filter(move |role| self.admit(RoleSet::of(&[*role])))
    }
}

impl fmt::Debug for AllowedRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_parsed_and_others_grant_nothing() {
        for role in AccessRole::ALL {
            assert_eq!(AccessRole::parse(role.as_str()), Some(role));
        }
        assert_eq!(AccessRole::parse("cursor"), Some(AccessRole::Agent));
        assert_eq!(AccessRole::parse("codex"), Some(AccessRole::Editor));
        for name in ["Owner", "", "owner ", "king"] {
            assert_eq!(AccessRole::parse(name), None);
            assert!(RoleSet::named([name]).is_empty());
        }
    }

    #[test]
    fn a_set_lists_only_the_roles_that_were_granted() {
        assert_eq!(RoleSet::named(["owner"]).names(), ["owner"]);
        assert_eq!(RoleSet::named(["viewer", "editor"]).names(), ["editor"]);
        assert_eq!(RoleSet::named(["admin", "owner"]).names(), ["admin", "owner"]);
        assert_eq!(format!("{:?}", RoleSet::named(["worker"])), r#"{"worker"}"#);
    }

    #[test]
    fn an_intersection_holds_what_both_may() {
        let of = |names: &[&str]| RoleSet::named(names);
        assert_eq!(of(&["owner"]).intersection(of(&["editor"])), of(&["editor"]));
        assert_eq!(of(&["operator"]).intersection(of(&["editor"])), of(&["viewer"]));
        assert_eq!(of(&["worker"]).intersection(of(&["viewer"])), RoleSet::NONE);
        assert_eq!(of(&["owner"]).intersection(of(&["admin"])), RoleSet::NONE);
    }

    /// Property over all pairs of sets: an intersection never admits to a row that one of the two does not admit to.
    #[test]
    fn rights_never_grow_by_intersection() {
        let sets: Vec<RoleSet> = (0u16..1 << AccessRole::ALL.len())
            .map(|bits| AccessRole::ALL.into_iter().filter(|role| bits & role.bit() != 0).collect::<Vec<_>>())
            .map(|roles| RoleSet::of(&roles))
            .collect();
        for a in sets.iter().step_by(7) {
            for b in &sets {
                let both = a.intersection(*b);
                for (action, allowed) in ACCESS {
                    let grows = allowed.admit(both) && !(allowed.admit(*a) && allowed.admit(*b));
                    assert!(!grows, "{action}: {a:?} and {b:?}");
                }
            }
        }
    }
}
