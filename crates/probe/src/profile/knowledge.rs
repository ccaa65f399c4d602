//! What a probe is sure of, as the section `[knowledge]` of the profile: sizes, and rates with
//! their noise. Filesystems on the posterior of these come nearer to the card than on one profile:
//! `cargo bench -p whichfs-engine --bench probe_loop` tells how near.

use crate::findings::{CONFIDENT, Findings, Quantity};
use std::fmt::Write as _;
use whichfs_card::limits::RATE;
use whichfs_units::{KIB, MIB};

/// Smallest card of which a posterior can be inferred (`whichfs_posterior`).
const CAPACITY_LEAST: u64 = 400 * MIB;
/// Standard deviation of a rate that a probe tells, as a fraction: repeats of one card differ by 4
/// to 14 % (docs/fit.md), and the places that the probe wrote are not those of the sequences that
/// judge a sample.
pub const RATE_NOISE: f64 = 0.1;

/// Rates at random: what they are of, and bytes of a request.
const AT_RANDOM: [(Quantity, &str, u64); 6] = [
    (Quantity::RandomRead4k, "read", 4 * KIB),
    (Quantity::RandomRead16k, "read", 16 * KIB),
    (Quantity::RandomRead64k, "read", 64 * KIB),
    (Quantity::RandomWrite4k, "write", 4 * KIB),
    (Quantity::RandomWrite16k, "write", 16 * KIB),
    (Quantity::RandomWrite64k, "write", 64 * KIB),
];
/// Rates in order, and the size of request at which they were found.
const IN_ORDER: [(Quantity, &str, Quantity); 2] = [
    (Quantity::ReadMbS, "read", Quantity::BestReadBytes),
    (Quantity::WriteMbS, "write", Quantity::BestWriteBytes),
];

impl Findings {
    /// The section of a card of `capacity` bytes called `title`; none if no rate was measured, or
    /// if the card is too small.
    pub(super) fn knowledge(&self, title: &str, interface: &str, capacity: u64) -> Option<String> {
        let mut observed = String::new();
        // Memory behind the device can be faster than any card.
        let of_a_card = |rate: &f64| *rate > 0.0 && *rate <= *RATE.end() as f64;
        for (quantity, operation, bytes) in AT_RANDOM {
            let rate = self.real(quantity).map(|per_s| per_s * bytes as f64);
            let Some(rate) = rate.filter(of_a_card) else {
                continue;
            };
            observed += &observation(quantity, operation, "random", bytes, rate);
        }
        for (quantity, operation, best) in IN_ORDER {
            let rate = self.real(quantity).map(|mb_s| mb_s * 1e6);
            let (Some(rate), Some(bytes)) = (rate.filter(of_a_card), self.whole(best)) else {
                continue;
            };
            observed += &observation(quantity, operation, "sequential", bytes, rate);
        }
        if observed.is_empty() || capacity < CAPACITY_LEAST {
            return None;
        }
        let mut text = format!(
            "\n# Trials run on cards that agree with this (docs/cards.md).\n[knowledge]\n\
             title = {title:?}\ninterface = \"{interface}\"\ncapacity_bytes = {capacity}\n"
        );
        let sizes = [
            (Quantity::PageBytes, "page_bytes"),
            (Quantity::AuBytes, "au_bytes"),
        ];
        let sure = |quantity: Quantity| self.get(quantity).confidence >= CONFIDENT;
        let sizes = sizes.iter().filter(|(quantity, _)| sure(*quantity));
        let sizes = sizes.filter_map(|(quantity, key)| {
            let bytes = self.whole(*quantity)?;
            Some(format!("{key} = {bytes}\n"))
        });
        let sizes: String = sizes.collect();
        if !sizes.is_empty() {
            let _ = write!(text, "\n[knowledge.sizes]\n{sizes}");
        }
        Some(text + &observed)
    }
}

fn observation(
    quantity: Quantity,
    operation: &str,
    order: &str,
    bytes: u64,
    bytes_per_s: f64,
) -> String {
    let name = quantity.name();
    let noise_percent = RATE_NOISE * 100.0;
    format!(
        "\n[[knowledge.observed]]\noperation = \"{operation}\"\norder = \"{order}\"\n\
         block_bytes = {bytes}\nbytes_per_s = {bytes_per_s:.0}\n\
         noise_percent = {noise_percent:.0}\n\
         source = \"probe: {name}\"\n"
    )
}
