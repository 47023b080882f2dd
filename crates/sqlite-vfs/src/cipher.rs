//! The codec that encrypts: AES-256-GCM-SIV with a random nonce for each block.
//!
//! A busy store seals more than 2^32 pages in weeks, where random nonces of plain GCM would begin to repeat, and a repeated
//! nonce there gives the key of the tag away. GCM-SIV derives keys for each nonce: the bound is 2^48 blocks and more, and two
//! blocks under one nonce would only show whether they are equal.

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};

use crate::codec::{self, BlockAddress, PageCodec};
use crate::layout::{HEADER_SLOT_BYTES, LOG_HEADER_BYTES, PAGE_BYTES, RESERVED_BYTES};

pub(crate) const TAG_BYTES: usize = 16;

/// Random bytes that name a sealed file.
pub(crate) type FileId = [u8; 16];

/// Where the ciphertext of a page ends and its tag begins; the nonce and four zero bytes follow.
const PAGE_TEXT: usize = PAGE_BYTES - RESERVED_BYTES;
const PAGE_NONCE: usize = PAGE_TEXT + TAG_BYTES;
const PAGE_REST: usize = PAGE_NONCE + NONCE_LEN;

/// Encrypts and authenticates blocks with the data key of one file.
pub struct AeadCodec {
    key: RandomizedNonceKey,
    file_id: FileId,
}

impl AeadCodec {
    pub(crate) fn new(data_key: &[u8], file_id: FileId) -> Result<Self, codec::Error> {
        let key = RandomizedNonceKey::new(&AES_256_GCM_SIV, data_key).map_err(|_| codec::Error::Failed)?;
        Ok(Self { key, file_id })
    }

    /// The associated data: which file, which kind of block, which place.
    fn context(&self, at: BlockAddress) -> [u8; 41] {
        let (kind, number, header) = match at {
            BlockAddress::Page(page) => (1, page, [0; 16]),
            BlockAddress::LogHeader => (2, 0, [0; 16]),
            BlockAddress::FrameHeader(frame) => (3, frame, [0; 16]),
            BlockAddress::FramePage { frame, header } => (4, frame, header),
        };
        let mut context = [0; 41];
        context[..16].copy_from_slice(&self.file_id);
        context[16] = kind;
        context[17..25].copy_from_slice(&number.to_be_bytes());
        context[25..].copy_from_slice(&header);
        context
    }
}

impl PageCodec for AeadCodec {
    fn seal_page(&self, at: BlockAddress, page: &mut [u8; PAGE_BYTES]) -> Result<(), codec::Error> {
        let (text, reserved) = page.split_at_mut(PAGE_TEXT);
        if reserved.iter().any(|byte| *byte != 0) {
            return Err(codec::Error::ReservedInUse);
        }
        let (nonce, tag) = self
            .key
            .seal_in_place_separate_tag(Aad::from(self.context(at)), text)
            .map_err(|_| codec::Error::Failed)?;
        reserved[..TAG_BYTES].copy_from_slice(tag.as_ref());
        reserved[TAG_BYTES..TAG_BYTES + NONCE_LEN].copy_from_slice(nonce.as_ref());
        Ok(())
    }

    fn open_page(&self, at: BlockAddress, page: &mut [u8; PAGE_BYTES]) -> Result<(), codec::Error> {
        if page[PAGE_REST..].iter().any(|byte| *byte != 0) {
            return Err(codec::Error::NotAuthentic);
        }
        let nonce = nonce(&page[PAGE_NONCE..PAGE_REST])?;
        self.key
            .open_in_place(nonce, Aad::from(self.context(at)), &mut page[..PAGE_NONCE])
            .map_err(|_| codec::Error::NotAuthentic)?;
        page[PAGE_TEXT..].fill(0);
        Ok(())
    }

    fn seal_header(
        &self,
        at: BlockAddress,
        header: &[u8],
        slot: &mut [u8; HEADER_SLOT_BYTES],
    ) -> Result<(), codec::Error> {
        let length = header.len();
        if length > LOG_HEADER_BYTES {
            return Err(codec::Error::Failed);
        }
        slot.fill(0);
        slot[..length].copy_from_slice(header);
        let (nonce, tag) = self
            .key
            .seal_in_place_separate_tag(Aad::from(self.context(at)), &mut slot[..length])
            .map_err(|_| codec::Error::Failed)?;
        slot[length..length + TAG_BYTES].copy_from_slice(tag.as_ref());
        slot[length + TAG_BYTES..length + TAG_BYTES + NONCE_LEN].copy_from_slice(nonce.as_ref());
        Ok(())
    }

    fn open_header(
        &self,
        at: BlockAddress,
        slot: &[u8; HEADER_SLOT_BYTES],
        header: &mut [u8],
    ) -> Result<(), codec::Error> {
        let length = header.len();
        let end = length + TAG_BYTES + NONCE_LEN;
        if length > LOG_HEADER_BYTES || slot[end..].iter().any(|byte| *byte != 0) {
            return Err(codec::Error::NotAuthentic);
        }
        let mut sealed = *slot;
        let nonce = nonce(&slot[length + TAG_BYTES..end])?;
        let opened = self
            .key
            .open_in_place(nonce, Aad::from(self.context(at)), &mut sealed[..length + TAG_BYTES])
            .map_err(|_| codec::Error::NotAuthentic)?;
        header.copy_from_slice(opened);
        Ok(())
    }
}

fn nonce(bytes: &[u8]) -> Result<Nonce, codec::Error> {
    Nonce::try_assume_unique_for_key(bytes).map_err(|_| codec::Error::NotAuthentic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codec(file: u8) -> AeadCodec {
        AeadCodec::new(&[7; 32], [file; 16]).unwrap()
    }

    fn page(seed: u8) -> Box<[u8; PAGE_BYTES]> {
        let mut page = Box::new([0; PAGE_BYTES]);
        for (at, byte) in page[..PAGE_TEXT].iter_mut().enumerate() {
            *byte = seed.wrapping_add(at.to_le_bytes()[0]);
        }
        page
    }

    fn addresses() -> [BlockAddress; 6] {
        [
            BlockAddress::Page(0),
            BlockAddress::Page(1),
            BlockAddress::LogHeader,
            BlockAddress::FrameHeader(1),
            BlockAddress::FramePage { frame: 1, header: [0; 16] },
            BlockAddress::FramePage { frame: 1, header: [1; 16] },
        ]
    }

    #[test]
    fn a_page_opens_only_in_its_place_and_in_its_file() {
        for at in addresses() {
            let mut sealed = page(3);
            codec(1).seal_page(at, &mut sealed).unwrap();
            for other in addresses() {
                let opened = codec(1).open_page(other, &mut sealed.clone());
                assert_eq!(opened.is_ok(), at == other, "{at:?} at {other:?}");
            }
            assert_eq!(codec(2).open_page(at, &mut sealed.clone()), Err(codec::Error::NotAuthentic));
            let stranger = AeadCodec::new(&[8; 32], [1; 16]).unwrap();
            assert_eq!(stranger.open_page(at, &mut sealed), Err(codec::Error::NotAuthentic));
        }
    }

    #[test]
    fn a_page_whose_reserved_bytes_are_in_use_is_not_written() {
        for at in PAGE_TEXT..PAGE_BYTES {
            let mut used = page(1);
            used[at] = 1;
            assert_eq!(
                codec(1).seal_page(BlockAddress::Page(0), &mut used),
                Err(codec::Error::ReservedInUse)
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn every_flipped_bit_of_a_page_is_found(seed: u8, at in 0..PAGE_BYTES, bit in 0_u8..8) {
            let mut sealed = page(seed);
            codec(1).seal_page(BlockAddress::Page(9), &mut sealed).unwrap();
            let mut again = page(seed);
            codec(1).seal_page(BlockAddress::Page(9), &mut again).unwrap();
            prop_assert!(sealed != again, "two nonces");
            let mut opened = sealed.clone();
            codec(1).open_page(BlockAddress::Page(9), &mut opened).unwrap();
            prop_assert_eq!(opened, page(seed));
            sealed[at] ^= 1 << bit;
            prop_assert_eq!(codec(1).open_page(BlockAddress::Page(9), &mut sealed), Err(codec::Error::NotAuthentic));
        }

        #[test]
        fn every_flipped_bit_of_a_header_is_found(header in prop::array::uniform24(0_u8..), at in 0..HEADER_SLOT_BYTES, bit in 0_u8..8) {
            let mut slot = [0; HEADER_SLOT_BYTES];
            let place = BlockAddress::FrameHeader(4);
            codec(1).seal_header(place, &header, &mut slot).unwrap();
            let mut opened = [0; 24];
            codec(1).open_header(place, &slot, &mut opened).unwrap();
            prop_assert_eq!(opened, header);
            slot[at] ^= 1 << bit;
            prop_assert!(codec(1).open_header(place, &slot, &mut opened).is_err());
        }
    }
}
