//! Sessions have owners with shares: the load of one principal or tenant never ends the sessions of another.

use orchestr8_edge::{Auth, Token};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::client::request;
use super::world::{Plan, Session, World};
use crate::http;

fn token(name: &str, tenant: &str) -> Token {
    let sha256_hex = Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect();
    Token { name: name.into(), sha256_hex, roles: vec![], tenant: tenant.into(), reuse_name: false }
}

async fn world(max_sessions: usize, max_sessions_per_principal: usize) -> World {
    let tokens = vec![token("ada", "acme"), token("bob", "acme"), token("eve", "other")];
    let http = http::Settings { max_sessions, max_sessions_per_principal, ..http::Settings::default() };
    World::with(Plan { http, auth: Auth { tokens, stored: None }, ..Plan::default() }).await
}

async fn begin(world: &World, name: &str) -> Session {
    let shown = format!("Bearer {name}");
    world.session_of("2025-11-25", &[("Authorization", &shown)]).await
}

async fn lives(world: &World, name: &str, session: &Session) -> bool {
    let shown = format!("Bearer {name}");
    let headers = [("Authorization", shown.as_str()), session.header()];
    world.client().await.post(&headers, &request(1, "ping", json!({}))).await.head.status == 200
}

#[tokio::test]
async fn a_principal_beyond_its_share_loses_its_own_oldest_session() {
    let world = world(100, 2).await;
    let (ada, bob) = (begin(&world, "ada").await, begin(&world, "bob").await);
    let mut sessions = Vec::new();
    for _ in 0..6 {
        sessions.push(begin(&world, "eve").await);
    }
    assert!(lives(&world, "ada", &ada).await && lives(&world, "bob", &bob).await);
    let mut living = Vec::new();
    for session in &sessions {
        living.push(lives(&world, "eve", session).await);
    }
    assert_eq!(living, [false, false, false, false, true, true]);
}

#[tokio::test]
async fn when_all_places_are_taken_the_tenant_with_the_most_sessions_makes_room() {
    let world = world(4, 4).await;
    let eve = begin(&world, "eve").await;
    let (first, _bob, _ada) =
        (begin(&world, "ada").await, begin(&world, "bob").await, begin(&world, "ada").await);
    // Acme has three of four: one of its own makes room, for itself and for others.
    let _more = begin(&world, "bob").await;
    assert!(lives(&world, "eve", &eve).await && !lives(&world, "ada", &first).await);
    let second = begin(&world, "eve").await;
    assert!(lives(&world, "eve", &eve).await && lives(&world, "eve", &second).await);
    assert_eq!(world.sessions(), 4);
}
