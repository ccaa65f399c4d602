//! Curves of one card, in the form of `shared/data/flashbench.json`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rates in bytes a second by block size in bytes.
pub type Rates = BTreeMap<u64, f64>;

/// One line of flashbench's alignment test, in microseconds: a read that ends at a boundary,
/// one that straddles it, one that begins at it, and `on - (pre + post) / 2`.
pub type Align = [f64; 4];

/// Most bytes of a read of the alignment test; flashbench's default is 16 KiB.
const ALIGN_BLOCK_BYTES_MOST: u64 = 64 << 10;

/// What flashbench measured on one card. Every part may be empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// `flashbench -a`: boundary in bytes → its replicates.
    #[serde(default, rename = "al")]
    pub align: BTreeMap<u64, Vec<Align>>,
    /// `flashbench -O`: number of open AUs → rates, each AU written in order.
    #[serde(default, rename = "lin")]
    pub linear: BTreeMap<u32, Rates>,
    /// `flashbench -O --random`: number of open AUs → rates, each AU written at random.
    #[serde(default, rename = "rnd")]
    pub random: BTreeMap<u32, Rates>,
    /// `flashbench -f`: block size in bytes → runs → rates of the first AUs, in bytes a second.
    #[serde(default)]
    pub fat: BTreeMap<u64, Vec<Vec<f64>>>,
}

impl Curves {
    /// Whether there is no measurement in them.
    pub fn is_empty(&self) -> bool {
        let mut rates = self.linear.values().chain(self.random.values());
        self.align.values().all(Vec::is_empty)
            && rates.all(Rates::is_empty)
            && self.fat.values().flatten().all(Vec::is_empty)
    }

    /// Bytes of each read of `flashbench -a`: half of its least boundary, for it goes down to two
    /// reads. `None` without a table, and where they were more than 64 KiB: nobody reads so much
    /// to find a page, so the end of the table is missing.
    pub fn align_block_bytes(&self) -> Option<u64> {
        let block = self.align.keys().next()? / 2;
        (1..=ALIGN_BLOCK_BYTES_MOST)
            .contains(&block)
            .then_some(block)
    }

    /// Drops entries without a measurement.
    pub fn prune(&mut self) {
        self.align.retain(|_, lines| !lines.is_empty());
        self.linear.retain(|_, rates| !rates.is_empty());
        self.random.retain(|_, rates| !rates.is_empty());
        for runs in self.fat.values_mut() {
            runs.retain(|rates| !rates.is_empty());
        }
        self.fat.retain(|_, runs| !runs.is_empty());
    }
}
