//! The index in this process does what every index must.

use orchestr8_knowledge::vectors::Embedded;

use crate::dense;
use crate::letters::DIMENSIONS;

#[tokio::test]
async fn it_does_what_every_index_must() {
    dense::suite(&Embedded::new(DIMENSIONS, 64 << 20), "embedded").await;
}
