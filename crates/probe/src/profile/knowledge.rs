//! What a probe is sure of, as the section `[knowledge]` of the profile: sizes, and rates with
//! their noise. Filesystems on the posterior of these come nearer to the card than on one profile:
//! `cargo bench -p whichfs-engine --bench probe_loop` tells how near.

use crate::findings::{CONFIDENT, Findings, Quantity};
use crate::infer_streams::going_on;
use crate::open_aus::AUS_MAX;
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
/// Confidence of a count of open AUs from which on it is kept. One that is right three times of
/// four, and else seldom off by much, says more than none: cards have from one to no limit.
const LIKELY: f64 = 0.75;
/// Requests of streams of writes: of a journal, of small files, of large ones.
const STREAMS: [u64; 3] = [4 * KIB, 16 * KIB, 512 * KIB];

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
            observed += &observation(&quantity.name(), operation, "random", bytes, rate);
        }
        let read = self.real(Quantity::ReadMbS).map(|mb_s| mb_s * 1e6);
        if let (Some(rate), Some(bytes)) =
            (read.filter(of_a_card), self.whole(Quantity::BestReadBytes))
        {
            let name = Quantity::ReadMbS.name();
            observed += &observation(&name, "read", "sequential", bytes, rate);
        }
        let streams = going_on(&self.measured);
        for bytes in STREAMS {
            let rate = streams.get(&bytes).copied();
            if let Some(rate) = rate.filter(of_a_card) {
                let name = "writing in order";
                observed += &observation(name, "write", "sequential", bytes, rate);
            }
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
        let sizes: String = sizes.chain(self.open_aus()).collect();
        if !sizes.is_empty() {
            let _ = write!(text, "\n[knowledge.sizes]\n{sizes}");
        }
        Some(text + &observed)
    }

    /// Lines that say how many AUs can be open, if that is likely: it matters where a filesystem
    /// writes a few files at once.
    fn open_aus(&self) -> Option<String> {
        let sure = |quantity: Quantity| {
            let finding = Some(self.get(quantity)).filter(|found| found.confidence >= LIKELY)?;
            Some((finding.value?.whole(), finding.at_least))
        };
        let (linear, no_limit) = sure(Quantity::OpenAusLinear)?;
        if no_limit {
            let beyond = linear + 1;
            return Some(format!("open_aus = {beyond}\nopen_aus_tried = {linear}\n"));
        }
        let random = sure(Quantity::OpenAusRandom).filter(|(random, no_limit)| {
            // What scatters above the count in order is that count.
            !no_limit && *random <= linear
        });
        let random = random.map(|(random, _)| format!("open_aus_random = {random}\n"));
        let random = random.unwrap_or_default();
        Some(format!(
            "open_aus = {linear}\n{random}open_aus_tried = {AUS_MAX}\n"
        ))
    }
}

fn observation(name: &str, operation: &str, order: &str, bytes: u64, bytes_per_s: f64) -> String {
    let noise_percent = RATE_NOISE * 100.0;
    format!(
        "\n[[knowledge.observed]]\noperation = \"{operation}\"\norder = \"{order}\"\n\
         block_bytes = {bytes}\nbytes_per_s = {bytes_per_s:.0}\n\
         noise_percent = {noise_percent:.0}\n\
         source = \"probe: {name}\"\n"
    )
}
