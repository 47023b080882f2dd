//! Who asks: a token for each role, one of another tenant, a revoked one, two that are out of their scope, and four that claim
//! to be another principal.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::objects::TENANT;
use super::recipe::Recipe;
use super::reference::{ROLES, allows};
use super::wire::{Request, Verdict, Wire, get, post};
use crate::attacks::actors;

/// The audit trail holds so many refusals of one principal in a minute; a token is used for fewer.
const REFUSALS: usize = 40;

/// Tokens of one role, so that each stays below that.
const TOKENS: usize = 14;

pub const RIVAL: &str = "rival";

/// The tokens of the configuration. Each is its own name.
pub fn tokens() -> String {
    let named = |role: &'static str, index: usize| {
        let roles: &[&str] = if role == "plain" { &[] } else { &[role] };
        actors::token(&format!("{role}-{index}"), TENANT, roles)
    };
    let of_roles =
        ROLES.into_iter().chain(["plain"]).flat_map(|role| (0..TOKENS).map(move |index| named(role, index)));
    let ordinary: Vec<&str> = ROLES.into_iter().filter(|role| !is_governed(role)).collect();
    let more = [
        actors::token("owner", TENANT, &["owner"]),
        actors::token("admin", TENANT, &["admin"]),
        actors::token("eve", RIVAL, &ordinary),
        actors::token("root", "local", &["owner", "admin"]),
    ];
    of_roles.chain(more).collect()
}

pub fn is_governed(role: &str) -> bool {
    role == "planner" || role == "executor"
}

/// How a caller is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With one role, or with none.
    Role(&'static str),
    /// Has the same rights, in another tenant.
    Stranger,
    /// An owner whose token was revoked, on connections that were open before.
    Revoked,
    /// An owner whose token is limited to other actions.
    OtherActions,
    /// An owner whose token is limited to another face.
    OtherFace,
    /// A viewer, or a stranger, that claims in headers to be the owner.
    ClaimsByHeader { stranger: bool },
    /// The same in arguments, bodies and metadata.
    ClaimsByMember { stranger: bool },
}

/// What must become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Allowed,
    Refused,
    NotFound,
    Unauthenticated,
    /// It may be served, and must not tell of the tenant under attack.
    NothingOfOthers,
    /// It must not be served: a claim may be refused as such, or as a member that there is not.
    NotServed,
}

pub struct Caller {
    pub kind: Kind,
    pub name: String,
    pub tenant: &'static str,
    pub wire: Wire,
}

/// Headers that proxies set, and that some servers believe.
const HEADERS: &str = "X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1;proto=https\r\nX-Real-IP: 127.0.0.1\r\n\
    X-Forwarded-User: owner\r\nX-Remote-User: owner\r\nRemote-User: owner\r\nX-Auth-Request-User: owner\r\n\
    X-Principal: owner\r\nX-User: owner\r\nX-Roles: owner,admin\r\nX-Role: owner\r\nX-Tenant: acme\r\nX-Tenant-Id: acme\r\n\
    X-Orchestr8-Principal: owner\r\nX-Orchestr8-Tenant: acme\r\nX-On-Behalf-Of: owner\r\nX-Original-URL: /healthz\r\n";

fn claims() -> Value {
    json!({"principal": "owner", "tenant": TENANT, "tenantId": TENANT, "tenant_id": TENANT, "role": "owner",
        "roles": ["owner", "admin"], "by": "owner", "onBehalfOf": "owner", "startedBy": "owner", "from": "owner",
        "sub": "owner", "user": "owner", "callerId": "owner", "author": "owner"})
}

/// The callers that attack.
pub fn attackers(address: SocketAddr) -> Vec<Caller> {
    let mut owner = Wire::new(address, "owner");
    let mut stored = |kind, name: &str, scope: Value| {
        let made = owner.ask(&post("/v1/tokens", json!({"name": name, "roles": ["owner"], "scope": scope})));
        let made: Value = serde_json::from_str(&made.text).unwrap();
        let wire = Wire::new(address, made["token"].as_str().unwrap());
        (
            Caller { kind, name: name.to_owned(), tenant: TENANT, wire },
            made["id"].as_str().unwrap().to_owned(),
        )
    };
    let (mut revoked, id) = stored(Kind::Revoked, "gone", json!([]));
    let (actions, _) = stored(Kind::OtherActions, "other-actions", json!(["nothing.at_all"]));
    let (face, _) = stored(Kind::OtherFace, "other-face", json!(["face:sessions"]));
    // Its connections are open when it is revoked.
    for request in [get("/v1/executions"), Request::Command(json!({"type": "list_sessions"}))] {
        assert_eq!(revoked.wire.ask(&request).verdict, Verdict::Done);
    }
    assert_eq!(owner.ask(&post(format!("/v1/tokens/{id}/revoke"), json!({}))).verdict, Verdict::Done);
    let configured = |kind, name: &str, tenant| {
        let mut wire = Wire::new(address, name);
        match kind {
            Kind::ClaimsByHeader { .. } => wire.headers = HEADERS.to_owned(),
            Kind::ClaimsByMember { .. } => wire.members = Some(claims()),
            Kind::Role(_) | Kind::Stranger | Kind::Revoked | Kind::OtherActions | Kind::OtherFace => {}
        }
        Caller { kind, name: name.to_owned(), tenant, wire }
    };
    let roles = ROLES.into_iter().chain(["plain"]).map(|role| configured(Kind::Role(role), role, TENANT));
    let others = [
        configured(Kind::Stranger, "eve", RIVAL),
        configured(Kind::ClaimsByHeader { stranger: false }, "viewer-0", TENANT),
        configured(Kind::ClaimsByHeader { stranger: true }, "eve", RIVAL),
        configured(Kind::ClaimsByMember { stranger: false }, "viewer-1", TENANT),
        configured(Kind::ClaimsByMember { stranger: true }, "eve", RIVAL),
    ];
    [revoked, actions, face].into_iter().chain(roles).chain(others).collect()
}

impl Caller {
    /// Takes the token of its role that has refusals left in the audit trail.
    pub fn spread(&mut self, refusals: usize) {
        let Kind::Role(role) = self.kind else { return };
        let name = format!("{role}-{}", 2 + refusals / REFUSALS);
        if self.name != name {
            (self.wire, self.name) = (Wire::new(self.wire.address, &name), name);
        }
    }

    pub fn expects(&self, recipe: &Recipe, request: &Request, names_object: bool) -> Expected {
        let action = recipe.action.as_str();
        let governed = super::reference::roles(action).is_some_and(|roles| roles == ["planner", "executor"]);
        let is_open = action == "open";
        let over_mcp = matches!(request, Request::Mcp { .. } | Request::LegacyMcp { .. });
        match self.kind {
            // Attackers do not know the secret, and the name of a caller is not asked.
            Kind::Revoked
            | Kind::OtherActions
            | Kind::Stranger
            | Kind::ClaimsByHeader { .. }
            | Kind::ClaimsByMember { .. }
                if matches!(request, Request::Delivery { .. }) =>
            {
                Expected::Unauthenticated
            }
            Kind::Role(role) if allows(action, role) => Expected::Allowed,
            Kind::Role(role) if governed || (over_mcp && is_governed(role)) => Expected::NotFound,
            Kind::Role(_) => Expected::Refused,
            Kind::Revoked if recipe.by_link => Expected::Allowed,
            Kind::Revoked if recipe.route == "GET /mcp/capabilities" => Expected::Allowed,
            Kind::Revoked if recipe.action == "link" => Expected::Refused,
            // Without credentials there is the link, which does not decide where persons are named.
            Kind::Revoked if recipe.route.ends_with("/v1/approvals/{token}") => Expected::Refused,
            Kind::Revoked => Expected::Unauthenticated,
            Kind::OtherActions | Kind::OtherFace if action == "link" => Expected::Refused,
            Kind::OtherActions if is_open => Expected::Allowed,
            Kind::OtherActions if governed => Expected::NotFound,
            Kind::OtherActions => Expected::Refused,
            Kind::OtherFace if matches!(request, Request::Command(_)) => Expected::Allowed,
            Kind::OtherFace => Expected::Refused,
            Kind::Stranger if governed => Expected::NotFound,
            Kind::Stranger if super::reference::roles(action) == Some(&[]) => Expected::Refused,
            Kind::Stranger if names_object && !recipe.filters => Expected::NotFound,
            Kind::Stranger => Expected::NothingOfOthers,
            Kind::ClaimsByHeader { stranger: false } | Kind::ClaimsByMember { stranger: false }
                if allows(action, "viewer") =>
            {
                Expected::Allowed
            }
            Kind::ClaimsByHeader { stranger: false } if governed => Expected::NotFound,
            Kind::ClaimsByHeader { stranger: false } => Expected::Refused,
            Kind::ClaimsByMember { stranger: false } => Expected::NotServed,
            Kind::ClaimsByHeader { stranger: true } | Kind::ClaimsByMember { stranger: true } => {
                if names_object && !recipe.filters {
                    Expected::NotServed
                } else {
                    Expected::NothingOfOthers
                }
            }
        }
    }
}
