//! Limits of knowledge, each with its reason. Those an installation may change are in `Settings`.

/// Bytes of one document's text. More belongs into several documents, or into a file.
pub const BODY_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of one document's metadata as JSON.
pub const METADATA_BYTES: usize = 64 * 1024;

/// Characters of a title.
pub const TITLE_CHARS: usize = 512;

/// Tags of one document, and characters of one.
pub const TAGS: usize = 64;
pub const TAG_CHARS: usize = 128;

/// Characters of a reason for deleting.
pub const REASON_CHARS: usize = 1_000;

/// Paths of one update mask, and characters of one.
pub const MASK_PATHS: usize = 100;
pub const MASK_CHARS: usize = 512;

/// Arguments as JSON: a text may double when it is written so.
pub const PAYLOAD_BYTES: usize = 2 * BODY_BYTES + 2 * METADATA_BYTES;

/// Levels below the root; a walk up is never longer.
pub const DEPTH: usize = 64;

/// Bytes of a place among siblings; beyond it the siblings are numbered anew.
pub const PLACE_BYTES: usize = 200;

/// A partial read shows this many characters.
pub const PARTIAL_CHARS: usize = 500;

/// Documents read at once.
pub const MANY: usize = 20;

/// Entries of a page.
pub const PAGE: i64 = 100;
pub const PAGE_MAX: i64 = 500;

/// Revisions of a history's page.
pub const HISTORY: i64 = 100;
pub const HISTORY_MAX: i64 = 1_000;

/// Characters of a query (KNO-8.5), and words of it that are searched for: the rarest.
pub const QUERY_CHARS: usize = 2_048;
pub const QUERY_TERMS: usize = 64;

/// Passages of an answer (KNO-8.5).
pub const TOP_K: usize = 5;
pub const TOP_K_MAX: usize = 20;

/// How long a query may take (KNO-8.5).
pub const LATENCY_MS: u64 = 4_000;
pub const LATENCY_MS_MIN: u64 = 1_000;
pub const LATENCY_MS_MAX: u64 = 10_000;

/// Documents that are looked at more closely before the best are given.
pub const RERANKED: usize = 30;

/// How many of the best a question is moved towards before it is asked again by meaning, and how far: half its own length.
pub const MOVED_TOWARDS: usize = 3;
pub const MOVED_BY: f32 = 0.5;

/// What is less near than this to a question has nothing to do with it, unless it has its words.
pub const LEAST_NEAR: f64 = 0.2;

/// Passages looked at before they are told apart by document; more are looked at when these were not enough.
pub const CANDIDATES: i64 = 100;
pub const CANDIDATES_MAX: i64 = 50_000;

/// Characters of a passage that a chunk aims at, that make one worth ending at a heading, and that it never exceeds.
pub const CHUNK_CHARS: usize = 1_200;
pub const CHUNK_CHARS_MIN: usize = 300;
pub const CHUNK_CHARS_MAX: usize = 1_800;

/// Characters that pieces of one long paragraph have in common, so that a sentence across the cut is found.
pub const OVERLAP_CHARS: usize = 160;

/// Chunks of one document. The largest text makes fewer, unless it consists of nothing but headings.
pub const CHUNKS: usize = 4_000;

/// Characters of a word that count.
pub const WORD_CHARS: usize = 64;

/// Words of a chunk that its length remembers.
pub const WORDS_MAX: i64 = 4_095;

/// Characters of a snippet, and sentences and characters of an extractive answer.
pub const SNIPPET_CHARS: usize = 600;
pub const ANSWER_SENTENCES: usize = 3;
pub const ANSWER_CHARS: usize = 800;

/// A model is not asked when less time than this is left for its answer; and tokens that an answer may have.
pub const WRITING_MS_MIN: u64 = 200;
pub const WRITTEN_TOKENS: usize = 800;

/// Deleted documents are kept so long (KNO-8.3).
pub const PURGE_MS: i64 = 90 * 24 * 3_600_000;

/// Documents whose time has come that are taken at once, and rounds of that in one go.
pub const DUE: i64 = 100;
pub const DUE_ROUNDS: usize = 100;

/// Time limits of actions: a write waits for its turn, then for the store.
pub const WRITE_MS: u64 = 30_000;
pub const READ_MS: u64 = 15_000;

/// How long a call waits for a free slot.
pub const SLOT_WAIT_MS: u64 = 30_000;

/// Webhooks of one tenant, and bytes of an address.
pub const WEBHOOKS: i64 = 20;
pub const URL_BYTES: usize = 2_048;

/// Attempts at a delivery, and the waits between them: about a day in all.
pub const DELIVERY_ATTEMPTS: i64 = 12;
pub const DELIVERY_BASE_MS: u64 = 1_000;
pub const DELIVERY_CAP_MS: u64 = 4 * 3_600_000;
pub const DELIVERY_TIMEOUT_MS: u64 = 10_000;

/// Deliveries taken up at once, and how long those that failed for good are shown.
pub const DELIVERIES: i64 = 16;
pub const DELIVERY_KEPT_MS: i64 = 7 * 24 * 3_600_000;

/// Documents that a check or a rebuild of the index reads at once.
pub const REINDEX_PAGE: i64 = 50;

/// Problems a check lists before it only counts.
pub const PROBLEMS: usize = 100;

/// Documents and passages that an index takes up in one step. A document is never cut, so one of the largest may
/// exceed the passages.
pub const FOLLOW_DOCUMENTS: i64 = 256;
pub const FOLLOW_PASSAGES: usize = 1_024;

/// Tenants that are looked at in one go.
pub const FOLLOW_TENANTS: i64 = 1_000;

/// Texts that a model is given at once, and how long it may take over them.
pub const EMBED_TEXTS: usize = 32;
pub const EMBED_MS: u64 = 120_000;

/// Waits after a failed step, and how often is looked without being told.
pub const FOLLOW_BASE_MS: u64 = 250;
pub const FOLLOW_CAP_MS: u64 = 30_000;
pub const FOLLOW_EVERY_MS: u64 = 60_000;

/// How often is looked whether a model that was not there has come.
pub const MODEL_EVERY_MS: u64 = 1_000;

/// How long a query waits for the vectors of what was just written, and how many changes are worth waiting for: with more to
/// do than that, the wait would be in vain.
pub const CATCH_UP_MS: u64 = 1_000;
pub const CATCH_UP_CHANGES: i64 = 64;

/// Filters whose passages are remembered, and passages of all of them together: 16 MB.
pub const PASSING_FILTERS: usize = 32;
pub const PASSING_NUMBERS: usize = 1_000_000;

/// Filters whose passages are read at once. Those that share a place by chance wait for each other.
pub const PASSING_READING: usize = 32;

/// Memory for vectors in this process; about 2.4 million passages of 384 dimensions.
pub const VECTORS_MB: u64 = 2_048;

/// Memory for words in this process; about a million passages of eighty words. Each passage takes some 250 bytes.
pub const WORDS_MB: u64 = 256;

/// A tenant with fewer passages is searched by words in the store, which takes some milliseconds more. With ten times as many it
/// would be sixty, for a question of twenty words.
pub const WORDS_PASSAGES: i64 = 200;

/// Tenants whose words are in memory, or were refused a moment ago.
pub const WORDS_TENANTS: usize = 1_000;

/// A tenant that nobody asked for so long makes room for another; and one that did not fit is not tried again before.
pub const WORDS_IDLE_MS: u64 = 600_000;

/// How long a query waits for the words of what was just written before it asks the store, which takes about as long.
pub const WORDS_CATCH_UP_MS: u64 = 50;

/// Documents that a check leaves aside because the index is about to take them up; with more, only that is told.
pub const LATE: i64 = 10_000;

/// How long a check or a rebuild of a tenant's indexes may take.
pub const VERIFY_MS: u64 = 600_000;
