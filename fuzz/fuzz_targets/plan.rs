//! Any text as a plan: everything that is wrong with it has a code and a line; one that is fit keeps its hash under its header, and
//! allows nothing outside its workspace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use orchestr8_contract::envelope::Role;
use orchestr8_workspace::plan::{Head, Pattern, Status, hash_of, is_phase_id, lint, parse, with_head};

fuzz_target!(|text: &str| {
    let (findings, plan) = (lint(text), parse(text));
    for finding in &findings {
        assert!(finding.code.starts_with("PLAN_") && finding.line >= 1 && !finding.message.is_empty());
    }
    // Whatever is wrong with a plan, its hash is that of its text, with a header or without.
    let head = Head { hash: hash_of(text), role: Role::Planner, status: Status::Approved };
    if findings.is_empty() {
        assert!(plan.phases.iter().all(|phase| is_phase_id(&phase.id)));
        assert!(plan.paths.iter().all(|(_, path)| Pattern::parse(path).is_ok()));
        let kept = with_head(text, &head);
        assert_eq!(hash_of(&kept), head.hash);
        assert_eq!(Head::read(&kept), Some(head));
    }
});
