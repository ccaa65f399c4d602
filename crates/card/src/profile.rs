//! A profile: what a modelled card is like, every figure with its source.
//!
//! In TOML a figure is `key = { value = 4194304, source = "WB5 flashbench -O" }` under its
//! section, with `uncertainty_percent = 20` where it differs from the file's. All values are
//! integers whose unit is the end of the key: no floating point decides a result.

mod capacity;
mod draw;
mod parse;
mod shape;

use crate::cells::Cycles;
use crate::contents::ContentLayout;
use crate::families::{Family, FamilyFigures};
use crate::figures::{CardFigures, Figure};
use crate::residual::Residual;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::ops::Deref;

pub use capacity::CapacityError;
pub use parse::ProfileError;

/// What the card is plugged into; it decides how the kernel sees the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// SD or microSD card in a host's slot.
    Sd,
    /// eMMC chip.
    Emmc,
    /// USB stick, or a card in a USB reader.
    Usb,
}

impl Interface {
    /// All interfaces with their names in profiles.
    pub const NAMES: [(&'static str, Interface); 3] = [
        ("sd", Interface::Sd),
        ("emmc", Interface::Emmc),
        ("usb", Interface::Usb),
    ];
}

/// What kind of figures decide how a card behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Fitted to the curves of one card.
    Fitted,
    /// Set by what was measured of one card or model: rates, steps, a few latencies.
    Measured,
    /// Put together from a class's figures or a mechanism's.
    Composed,
}

impl Basis {
    /// One word for lists.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Measured => "measured",
            Basis::Composed => "composed",
        }
    }
}

/// The description of a modelled card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    title: String,
    interface: Interface,
    composed: bool,
    fit_error: Option<String>,
    common: CardFigures,
    own: FamilyFigures,
    residual: Option<Residual>,
}

/// A profile reads as its sections: `profile.geometry.au_bytes.value`. None can be changed, so
/// that figures which fit together stay so.
impl Deref for Profile {
    type Target = CardFigures;

    fn deref(&self) -> &CardFigures {
        &self.common
    }
}

impl Profile {
    /// One line for people: maker, model, class.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Family of the translation layer.
    pub fn family(&self) -> Family {
        self.own.family()
    }

    /// Writes below this many bytes go to an area of their own; zero if the card has none.
    pub fn small_write_bytes(&self) -> u64 {
        self.own.small_write_bytes()
    }

    /// What only the family's own model of the translation layer needs.
    pub(crate) fn own(&self) -> &FamilyFigures {
        &self.own
    }

    /// What the card is plugged into.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// The same flash as the card called `title`, plugged into `interface`.
    #[must_use]
    pub fn as_card(self, title: &str, interface: Interface) -> Profile {
        let title = title.to_owned();
        Profile {
            title,
            interface,
            ..self
        }
    }

    /// Whether it was put together from a class's figures, not fitted to a measured card.
    pub fn composed(&self) -> bool {
        self.composed
    }

    /// How far the modelled card is off what was measured, in words; `None` where nobody says.
    pub fn fit_error(&self) -> Option<&str> {
        self.fit_error.as_deref()
    }

    /// What the family does not explain of the times of writes, where that is known.
    pub fn residual(&self) -> Option<&Residual> {
        self.residual.as_ref()
    }

    /// What kind of figures decide how the card behaves.
    pub fn basis(&self) -> Basis {
        let fitted = |figure: &Figure| {
            let source = figure.source.as_deref().unwrap_or("");
            source.starts_with("fit to ") || source.starts_with("fit: ")
        };
        match self.composed {
            true => Basis::Composed,
            false if self.figures().any(fitted) => Basis::Fitted,
            false => Basis::Measured,
        }
    }

    /// Where the bytes of the card are kept; see [`ContentLayout`].
    pub fn layout(&self) -> ContentLayout {
        ContentLayout {
            capacity_bytes: self.capacity_bytes(),
            real_bytes: self.flash_bytes(),
            vanish: self.geometry.beyond.is_on(),
        }
    }

    /// Program and erase cycles that cards of this kind stand.
    pub fn pe_cycles(&self) -> Cycles {
        let cell = self.wear.cell.value as usize;
        match [
            self.wear.pe_cycles_low.value,
            self.wear.pe_cycles_high.value,
        ] {
            [0, _] | [_, 0] => Cycles::of_cell(cell),
            [low, high] => Cycles::between(low as f64, high as f64),
        }
    }

    /// Whether the card has a volatile cache, so that a flush means something. A plain SD
    /// card has none and the kernel sends it no flush (`flash.md` §2.8).
    pub fn has_cache(&self) -> bool {
        self.cache.bytes.value > 0
    }

    /// Whether the bus passes discard.
    pub fn discard_supported(&self) -> bool {
        self.discard.supported.is_on()
    }

    /// The distinct sources, in the order of the figures.
    pub fn sources(&self) -> Vec<&str> {
        let mut sources = Vec::new();
        for source in self.figures().filter_map(|figure| figure.source.as_deref()) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    /// All figures, in a fixed order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.common.figures().chain(self.own.figures())
    }

    /// Everything that decides how the card behaves, one line each, for hashing: equal
    /// text means equal timings. Titles and sources are not in it.
    pub fn canonical(&self) -> String {
        let mut text = format!(
            "family={:?}\ninterface={:?}\n",
            self.family(),
            self.interface
        );
        for figure in self.figures() {
            let _ = writeln!(text, "{}={}", figure.path, figure.value);
        }
        if let Some(residual) = &self.residual {
            let _ = writeln!(text, "residual.block_bytes={:?}", residual.block_bytes);
            for (name, table) in residual.tables() {
                let _ = writeln!(text, "residual.{name}={table:?}");
            }
        }
        text
    }

    fn figures_mut(&mut self) -> impl Iterator<Item = &mut Figure> {
        self.common.figures_mut().chain(self.own.figures_mut())
    }
}
