//! How far it is, on a terminal: one line that is drawn anew.

use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;

use super::super::super::words::cut;
use crate::terminal::{CYAN, DIM, PLAIN, Terminal};

/// Letters of the bar, and how often it is drawn.
const BAR: usize = 30;
const EVERY_US: u64 = 50_000;

pub struct Progress {
    terminal: Terminal,
    word: &'static str,
    done: usize,
    all: usize,
    clock: Real,
    drawn_us: Option<u64>,
    lines: usize,
}

impl Progress {
    pub fn new(terminal: Terminal) -> Self {
        Self { terminal, word: "", done: 0, all: 0, clock: Real::new(), drawn_us: None, lines: 0 }
    }

    pub fn begin(&mut self, word: &'static str, all: usize) {
        (self.word, self.done, self.all, self.drawn_us) = (word, 0, all, None);
    }

    pub fn advance(&mut self, by: usize, what: &str) {
        self.done += by;
        let now_us = self.clock.elapsed_us();
        let is_due = self.drawn_us.is_none_or(|drawn_us| now_us.saturating_sub(drawn_us) >= EVERY_US)
            || self.done == self.all;
        if !self.terminal.is_live() || !is_due {
            return;
        }
        self.drawn_us = Some(now_us);
        let filled = (self.done * BAR).checked_div(self.all).unwrap_or(BAR).min(BAR);
        let room = self.terminal.size().columns.saturating_sub(BAR + 40);
        let line = format!(
            "{:9} {CYAN}{}{PLAIN}{DIM}{}{PLAIN} {}/{} {}",
            self.word,
            "█".repeat(filled),
            "░".repeat(BAR - filled),
            self.done,
            self.all,
            cut(what, room)
        );
        self.terminal.draw(&[line], self.lines);
        self.lines = 1;
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.lines > 0 {
            self.terminal.draw(&[], self.lines);
            self.lines = 0;
        }
    }
}
