//! Curves of one card, in the form of `shared/data/flashbench.json`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rates in bytes a second by block size in bytes.
pub type Rates = BTreeMap<u64, f64>;

/// One line of flashbench's alignment test, in microseconds: a read that ends at a boundary,
/// one that straddles it, one that begins at it, and `on - (pre + post) / 2`.
pub type Align = [f64; 4];

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
