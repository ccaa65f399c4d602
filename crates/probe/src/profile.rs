//! Findings as a card profile, so that the lab can take the card that was probed.
//!
//! What the probe saw has the source `probe`, with how; what it could not see is composed,
//! and says so. The family follows from the behaviour: a limit of open AUs beyond which AUs
//! are copied is a log block for each, a milder one update blocks, none a page map. What is sure
//! follows as `[knowledge]`, from which the lab infers the cards that trials run on.

mod draft;
mod knowledge;

use crate::findings::{Finding, Findings, Quantity};
use crate::infer::limit_of;
use draft::Draft;
pub use knowledge::RATE_NOISE;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use whichfs_card::Profile;
use whichfs_card::limits::{AU_BYTES, CAPACITY_CUT, COMPOSED_PERCENT, MEASURED_PERCENT};
use whichfs_units::{Bytes, MIB, SECTOR};

/// The AU of a card that does not tell.
const USUAL_AU: u64 = 4 * MIB;

/// One figure of a section.
struct Figure {
    key: &'static str,
    value: u64,
    source: String,
    /// Whether it was measured, beyond doubt.
    sure: bool,
}
/// The figures of a section.
type Section = Vec<Figure>;

impl Findings {
    /// The card as a profile (TOML) that [`Profile::parse`] reads. Where writing tests did not
    /// settle how many AUs can be open, the family and most figures of writing are composed,
    /// and the profile says so and why.
    ///
    /// # Errors
    /// No profile can have what was found, such as a capacity of a few sectors.
    pub fn to_profile(&self) -> Result<String, String> {
        let capacity = self.measured.capacity_bytes / SECTOR * SECTOR;
        let whole = self.profile_of(capacity);
        if whole.is_ok() || capacity <= CAPACITY_CUT {
            return whole;
        }
        self.profile_of(CAPACITY_CUT)
    }

    fn profile_of(&self, capacity: u64) -> Result<String, String> {
        let mut draft = Draft {
            findings: self,
            capacity,
            sections: BTreeMap::new(),
        };
        let family = self.family();
        draft.geometry(family);
        let command = draft.reading();
        draft.writing(family, command);
        let mut text = self.head(family, capacity);
        for (name, figures) in draft.sections.values() {
            let _ = writeln!(text, "\n[{name}]");
            for figure in figures {
                let _ = writeln!(text, "{}", figure.line());
            }
        }
        match Profile::parse("profile", &text) {
            Ok(profile) => {
                let known = self.knowledge(profile.title(), self.interface(), capacity);
                Ok(text + &known.unwrap_or_default())
            }
            Err(error) => Err(format!(
                "the card cannot be a modelled one: {error}; the findings themselves are in --json"
            )),
        }
    }

    /// Comments, title, interface and family of a profile of `capacity` bytes.
    fn head(&self, family: &str, capacity: u64) -> String {
        let mut text = format!(
            "# Made by whichfs probe: seed {}, {} written, {:.1} s on the device.\n",
            self.measured.options.seed,
            Bytes(self.bytes_written),
            self.device_s
        );
        let linear = self.get(Quantity::OpenAusLinear);
        let settled = linear.value.is_some();
        if !settled {
            let why = linear.reason.as_deref().unwrap_or("it was not measured");
            let why = plain(why);
            let _ = writeln!(text, "# The family is composed, not measured: {why}.");
        }
        for note in self.notes.iter().take(5) {
            let _ = writeln!(text, "# {}", plain(note));
        }
        let capacity = capacity as f64 / 1e9;
        let interface = self.interface();
        let _ = writeln!(text, "title = \"Probed card, {capacity:.1} GB\"");
        let _ = writeln!(text, "interface = \"{interface}\"\nfamily = \"{family}\"");
        let composed = !settled || self.value(Quantity::WriteMbS).is_none();
        let percent = if composed {
            COMPOSED_PERCENT
        } else {
            MEASURED_PERCENT
        };
        let _ = writeln!(
            text,
            "composed = {composed}\nuncertainty_percent = {percent}"
        );
        text
    }

    /// The AU, as far as a profile may have it.
    fn au(&self) -> u64 {
        let found = self.whole(Quantity::AuBytes);
        found.filter(|au| AU_BYTES.contains(au)).unwrap_or(USUAL_AU)
    }

    /// What the card is taken to be plugged into: SD cards of the data have no cache.
    fn interface(&self) -> &'static str {
        match self.whole(Quantity::CacheBytes) {
            Some(1..) => "emmc",
            _ => "sd",
        }
    }

    fn whole(&self, quantity: Quantity) -> Option<u64> {
        self.value(quantity).map(crate::findings::Value::whole)
    }

    fn real(&self, quantity: Quantity) -> Option<f64> {
        self.value(quantity).map(crate::findings::Value::real)
    }

    fn family(&self) -> &'static str {
        let linear = self.measured.open_linear.as_ref();
        let folds = linear.is_some_and(|linear| linear.folds == Some(true));
        let limit = limit_of(linear).filter(|_| !folds);
        match (limit, linear.is_some_and(|linear| linear.copies)) {
            (Some(_), true) => "log-block",
            (Some(_), false) => "update-block",
            (None, _) => "page-map",
        }
    }
}

impl Figure {
    /// Its line in the profile. Times and rates say how far they may be off; sizes and counts
    /// are never varied.
    fn line(&self) -> String {
        let Figure {
            key,
            value,
            source,
            sure,
        } = self;
        let varied = key.ends_with("_us") || key.ends_with("_per_s");
        let percent = match varied && !sure {
            true => format!(", uncertainty_percent = {COMPOSED_PERCENT}"),
            false => String::new(),
        };
        format!("{key} = {{ value = {value}, source = \"{source}\"{percent} }}")
    }
}

/// Text that can stand in a comment or a string of TOML.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || c == '"' || c == '\\' {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// The source of a figure that is a finding.
fn seen(finding: &Finding) -> String {
    let text: String = plain(&finding.evidence).chars().take(160).collect();
    format!("probe ({:.2}): {text}", finding.confidence)
}
