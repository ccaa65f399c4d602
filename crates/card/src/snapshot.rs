//! A card's state as bytes, for a cache on disk: versioned and bound to its profile.

use crate::card::{Card, State};
use crate::profile::Profile;
use serde::{Deserialize, Serialize};

/// Raised whenever the meaning of the bytes changes.
const VERSION: u32 = 4;
const MAGIC: [u8; 8] = *b"wfs-card";

#[derive(Serialize, Deserialize)]
struct Head {
    magic: [u8; 8],
    version: u32,
    fingerprint: u64,
}

/// Why bytes are no snapshot of a card of this profile. The remedy is to make it anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot, cut short or damaged.
    #[error("the card snapshot is damaged: {0}")]
    Damaged(String),
    /// Written by another version of the model.
    #[error("the card snapshot has format {found}, this program writes {VERSION}")]
    Version {
        /// Version found.
        found: u32,
    },
    /// Of a card with another profile.
    #[error("the card snapshot was made for another profile")]
    OtherProfile,
}

impl Card {
    /// Its state as bytes; figures ([`Card::stats`]) are not in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let fingerprint = self.fingerprint();
        let head = Head {
            magic: MAGIC,
            version: VERSION,
            fingerprint,
        };
        let encode = |result: postcard::Result<Vec<u8>>| {
            result.unwrap_or_else(|error| unreachable!("plain data in memory: {error}"))
        };
        let body = encode(postcard::to_extend(
            &self.state,
            encode(postcard::to_stdvec(&head)),
        ));
        let sum = checksum(&body);
        [body, sum.to_le_bytes().to_vec()].concat()
    }

    /// The card that [`Card::to_bytes`] wrote: from here on its timings are the same.
    ///
    /// # Errors
    /// Where the bytes are damaged, of another version, or of another profile.
    pub fn from_bytes(profile: &Profile, bytes: &[u8]) -> Result<Card, SnapshotError> {
        let damaged = |why: &dyn ToString| SnapshotError::Damaged(why.to_string());
        let (body, sum) = bytes
            .split_last_chunk::<8>()
            .ok_or_else(|| damaged(&"too short"))?;
        let (head, rest) =
            postcard::take_from_bytes::<Head>(body).map_err(|error| damaged(&error))?;
        if head.magic != MAGIC {
            return Err(damaged(&"no snapshot of a card"));
        }
        if head.version != VERSION {
            return Err(SnapshotError::Version {
                found: head.version,
            });
        }
        if u64::from_le_bytes(*sum) != checksum(body) {
            return Err(damaged(&"the checksum is wrong"));
        }
        if head.fingerprint != profile.fingerprint() {
            return Err(SnapshotError::OtherProfile);
        }
        let state = postcard::from_bytes::<State>(rest).map_err(|error| damaged(&error))?;
        let card = Card::assemble(profile, state);
        card.verify().map_err(|error| damaged(&error))?;
        Ok(card)
    }
}

/// FNV-1a over words: finds the torn and cut files of a crash.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(
        mix(0xcbf2_9ce4_8422_2325, bytes.len() as u64),
        |hash, word| mix(hash.rotate_left(23), word),
    )
}
