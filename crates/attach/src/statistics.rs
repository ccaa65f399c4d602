//! What an attached card has done.

use crate::lateness::DeliveryError;
use crate::node::Driver;
use serde::{Deserialize, Serialize};
use whichfs_card::Stats;
use whichfs_units::{Bytes, Nanos, counted};

/// Figures of an attached card; the JSON document that its socket answers with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema, Deserialize)]
pub struct Statistics {
    /// The device's path.
    pub device: String,
    /// Whose device it is: `loop` (on a FUSE file) or `ublk`.
    pub driver: Driver,
    /// The card's name.
    pub card: String,
    /// The process that serves it.
    pub pid: u32,
    /// Bytes of the card.
    pub capacity_bytes: u64,
    /// Speed of its time, as it was asked for.
    pub speed: String,
    /// The largest request in KiB that reaches the card in one piece: the host's, or less
    /// where FUSE or the driver take less.
    pub largest_request_kib: u64,
    /// What the way of a 4 KiB write from the block layer to the card and back takes on this
    /// machine, in nanoseconds: measured when the card was attached, and taken off.
    pub way_ns: u64,
    /// The card's time since it was attached.
    pub card_time: Nanos,
    /// What the card has done; `busy` is in its time.
    pub figures: Stats,
    /// How late completions were delivered. Empty at the speed `max`: nothing is due.
    pub delivery: DeliveryError,
    /// Why contents could not be kept, if so: writes then end with "no space left".
    pub failure: Option<String>,
}

impl Statistics {
    /// What it did, in lines for people.
    pub fn told(&self) -> String {
        let figures = &self.figures;
        let mut text = format!(
            "{}: {}, {} ({} written), {}, {}, busy {} of {}\n",
            self.card,
            counted(figures.reads, "read"),
            counted(figures.writes, "write"),
            Bytes(figures.write_bytes),
            counted(figures.flushes, "flush"),
            counted(figures.discards, "discard"),
            figures.busy,
            self.card_time,
        );
        if self.delivery.count > 0 {
            text.push_str(&format!(
                "delivered late by {} (median), {} (99th percentile), {} (most)\n",
                Nanos(self.delivery.median_ns),
                Nanos(self.delivery.p99_ns),
                Nanos(self.delivery.max_ns),
            ));
        }
        if let Some(failure) = &self.failure {
            text.push_str(&format!("its contents could not be kept: {failure}\n"));
        }
        text
    }
}
