//! The files the program carries.

/// One file of the built dashboard.
pub(crate) struct File {
    /// As it is asked for, with a slash at the beginning.
    pub path: &'static str,
    pub bytes: &'static [u8],
    /// The same, packed; made by the build for what gets smaller by it.
    pub gzip: Option<&'static [u8]>,
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page that everything else hangs on.
pub(crate) const INDEX: &str = "/index.html";

/// What is shown by a program that was built without Node.
pub(crate) const UNBUILT: &str = include_str!("unbuilt.html");

/// Whether this program carries the dashboard.
pub fn is_built() -> bool {
    find(INDEX).is_some()
}

pub(crate) fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

/// What browsers must be told, because they are told not to guess.
pub(crate) fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type_of_its_own() {
        for file in FILES {
            assert_ne!(media_type(file.path), "application/octet-stream", "{}", file.path);
        }
    }

    #[test]
    fn a_packed_file_is_smaller_than_what_it_packs() {
        for file in FILES {
            assert!(file.gzip.is_none_or(|packed| packed.len() < file.bytes.len()), "{}", file.path);
        }
    }
}
