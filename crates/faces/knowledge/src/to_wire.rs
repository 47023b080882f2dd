//! The words of this face for every error: one code of ours becomes one word and one status (KNO-4, Appendix A).

use http::StatusCode;
use orchestr8_contract::{Code, Kind};

macro_rules! words {
    ($($variant:ident $wire:literal $status:literal;)*) => {
        /// Every error word of the envelope, and the two of once-only edits.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Word { $($variant,)* }

        impl Word {
            pub const ALL: &'static [Word] = &[$(Word::$variant,)*];

            pub fn as_str(self) -> &'static str { match self { $(Word::$variant => $wire,)* } }
            pub fn status(self) -> StatusCode {
                let number: u16 = match self { $(Word::$variant => $status,)* };
                // 440 is no registered status, and a status all the same.
                StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    };
}

words! {
    InvalidArgument "INVALID_ARGUMENT" 400;
    Unauthorized "UNAUTHORIZED" 401;
    Forbidden "FORBIDDEN" 403;
    NotFound "NOT_FOUND" 404;
    Unprocessable "UNPROCESSABLE_ENTITY" 422;
    Conflict "CONFLICT" 409;
    RateLimit "RATE_LIMIT_EXCEEDED" 429;
    Expired "EXPIRED" 440;
    Unavailable "UNAVAILABLE" 503;
    Internal "INTERNAL" 500;
    NotFoundInContent "NOT_FOUND_IN_CONTENT" 404;
    Ambiguous "AMBIGUOUS" 409;
}

/// Whose failure it is decides between two words for what is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// The envelope, the address or a header.
    Envelope,
    /// The arguments, which only the action understands.
    Action,
}

/// The word for a code. What is too large is the envelope's fault: the arguments themselves may be fine.
pub(crate) fn word(code: Code, within: Within) -> Word {
    match (code.kind(), within) {
        (Kind::Invalid, Within::Envelope) => Word::InvalidArgument,
        (Kind::Invalid, Within::Action) => Word::Unprocessable,
        (Kind::NotFound, _) => Word::NotFound,
        (Kind::Unauthenticated, _) => Word::Unauthorized,
        (Kind::Forbidden, _) => Word::Forbidden,
        (Kind::Conflict | Kind::Dependency | Kind::State | Kind::Unknown | Kind::Cancelled, _) => {
            Word::Conflict
        }
        (Kind::Exhausted, _) if code == Code::PayloadTooLarge => Word::InvalidArgument,
        (Kind::Exhausted, _) => Word::RateLimit,
        (Kind::Timeout | Kind::Unavailable, _) => Word::Unavailable,
        (Kind::Internal, _) => Word::Internal,
    }
}

/// How long to wait before trying again, in seconds, where that may help.
pub(crate) fn retry_after(word: Word) -> Option<&'static str> {
    match word {
        Word::RateLimit => Some("1"),
        Word::Unavailable => Some("5"),
        Word::InvalidArgument
        | Word::Unauthorized
        | Word::Forbidden
        | Word::NotFound
        | Word::Unprocessable
        | Word::Conflict
        | Word::Expired
        | Word::Internal
        | Word::NotFoundInContent
        | Word::Ambiguous => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kno_4_the_table_of_codes_and_statuses() {
        let table = [
            ("INVALID_ARGUMENT", 400),
            ("UNAUTHORIZED", 401),
            ("FORBIDDEN", 403),
            ("NOT_FOUND", 404),
            ("UNPROCESSABLE_ENTITY", 422),
            ("CONFLICT", 409),
            ("RATE_LIMIT_EXCEEDED", 429),
            ("EXPIRED", 440),
            ("UNAVAILABLE", 503),
            ("INTERNAL", 500),
        ];
        for ((code, status), word) in table.iter().zip(Word::ALL) {
            assert_eq!((word.as_str(), word.status().as_u16()), (*code, *status));
        }
    }

    #[test]
    fn every_code_of_ours_has_a_word_that_fits_its_kind() {
        for code in Code::ALL {
            for within in [Within::Envelope, Within::Action] {
                let status = word(*code, within).status();
                let ours = matches!(code.kind(), Kind::Internal | Kind::Unavailable | Kind::Timeout);
                assert_eq!(status.is_server_error(), ours, "{code} is {status}");
            }
        }
        let of = |code| word(code, Within::Action).as_str();
        assert_eq!(of(Code::VersionMismatch), "CONFLICT");
        assert_eq!(of(Code::KeyConflict), "CONFLICT");
        assert_eq!(of(Code::Unauthorized), "FORBIDDEN");
        assert_eq!(of(Code::Unauthenticated), "UNAUTHORIZED");
        assert_eq!(of(Code::InvalidArgument), "UNPROCESSABLE_ENTITY");
        assert_eq!(of(Code::PayloadTooLarge), "INVALID_ARGUMENT");
    }
}
