//! What a seed decides: a definition, how its work ends, and what happens to it meanwhile.

pub type Unit = (usize, Option<u32>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loop {
    No,
    /// Items, and how many run at once.
    Each(u32, usize),
    While(u32),
}

#[derive(Debug)]
pub struct Step {
    /// A child, and whether it has something to undo.
    pub child: Option<bool>,
    pub repeats: Loop,
    pub dependencies: Vec<usize>,
    pub has_undo: bool,
    pub tolerated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    Completes,
    Fails,
    /// It may have happened.
    Unknown,
}

/// What the seed decides, the same for every caller.
#[derive(Debug, Clone, Copy)]
pub struct Script(pub u64);

impl Script {
    /// A number below `count` for a question (SplitMix64).
    pub fn lot(self, question: &str, (step, part): Unit, count: u64) -> u64 {
        let bytes = question.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let place = step as u64 * 1009 + part.map_or(0, |part| u64::from(part) + 1);
        let state =
            self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bytes.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ place;
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }

    pub fn how(self, unit: Unit, is_child: bool) -> How {
        match self.lot("how", unit, 12) {
            0 => How::Fails,
            1 | 2 if !is_child => How::Unknown,
            _ => How::Completes,
        }
    }

    /// How it ends when it is told to stop.
    pub fn stops(self, unit: Unit) -> bool {
        self.lot("stops", unit, 2) == 0
    }

    pub fn is_undone(self, unit: Unit) -> bool {
        self.lot("undo", unit, 5) > 0
    }

    pub fn turn_of(self, question: &str, among: u64) -> u64 {
        self.lot(question, (0, None), among)
    }

    /// The turn in which it is cancelled, if it is.
    pub fn cancel(self) -> Option<u64> {
        (self.turn_of("cancels", 3) == 0).then(|| self.turn_of("cancel", 6))
    }

    pub fn cancels_by_force(self) -> bool {
        self.turn_of("force", 4) == 0
    }

    /// Whether the grace ends before what runs does.
    pub fn grace_ends(self) -> bool {
        self.turn_of("grace", 3) == 0
    }

    /// The undo at which the rollback is stopped by force.
    pub fn stop_rollback(self) -> Option<u64> {
        (self.turn_of("stops rollback", 8) == 0).then(|| self.turn_of("at", 4))
    }

    pub fn pick(self, turn: u64, running: usize) -> usize {
        usize::try_from(self.lot("pick", (usize::try_from(turn).unwrap(), None), running as u64)).unwrap()
    }

    pub fn steps(self) -> Vec<Step> {
        let count = 1 + self.turn_of("steps", 6);
        let step = |place: usize| {
            let lot = |question: &str, count| self.lot(question, (place, None), count);
            let repeats = match lot("loop", 5) {
                0 => Loop::Each(
                    u32::try_from(lot("items", 5)).unwrap(),
                    1 + usize::try_from(lot("at once", 3)).unwrap(),
                ),
                1 => Loop::While(u32::try_from(lot("rounds", 4)).unwrap()),
                _ => Loop::No,
            };
            let before = |one: &usize| self.lot("after", (place, u32::try_from(*one).ok()), 3) == 0;
            Step {
                child: (lot("child", 5) == 0).then(|| lot("undoable", 3) > 0),
                repeats,
                dependencies: (0..place).filter(before).collect(),
                has_undo: lot("has undo", 3) > 0,
                tolerated: lot("tolerated", 5) == 0,
            }
        };
        (0..usize::try_from(count).unwrap()).map(step).collect()
    }

    pub fn on(self) -> Vec<&'static str> {
        match self.turn_of("on", 4) {
            0 => vec![],
            1 => vec!["cancelled"],
            2 => vec!["failed", "cancelled"],
            _ => vec!["failed"],
        }
    }
}
