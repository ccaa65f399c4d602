//! What is known of the card that is laid out for: given, found, or a safe default.

use crate::cards;
use crate::error::{Error, Outcome};
use std::path::Path;
use whichfs_layout::{Medium, Unit};
use whichfs_units::{Bytes, SECTOR};

/// What the user says of a card: its profile, or only its allocation unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardKnowledge {
    /// Name or file of its profile.
    pub card: Option<String>,
    /// Its allocation unit in bytes; need not be a power of two.
    pub au: Option<u64>,
}

/// What the kernel says of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelReport {
    /// `preferred_erase_size`: the allocation unit of an SD card, in bytes.
    pub erase_bytes: Option<u64>,
    /// Whether discard reaches it.
    pub discard: bool,
    /// Its logical sector in bytes; 512 if the kernel says nothing.
    pub sector_bytes: Option<u64>,
}

impl KernelReport {
    /// What the kernel says of the device at `path`; nothing of a file.
    pub fn of(path: &Path) -> KernelReport {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = real.file_name().unwrap_or_default();
        let number = |attribute: &str| {
            let path = Path::new("/sys/class/block").join(name).join(attribute);
            let text = std::fs::read_to_string(path)
                .ok()
                .filter(|_| real.starts_with("/dev"))?;
            text.trim().parse::<u64>().ok()
        };
        KernelReport {
            erase_bytes: number("device/preferred_erase_size").filter(|bytes| *bytes > 0),
            sector_bytes: number("queue/logical_block_size"),
            discard: number("queue/discard_max_bytes").is_none_or(|bytes| bytes > 0),
        }
    }
}

/// What a card of `capacity` is laid out as. `capacity` is the profile's own if it is `None`.
///
/// # Errors
/// The profile cannot be opened, or is of a smaller card; the unit is none.
pub fn of(args: &CardKnowledge, capacity: Option<u64>, told: KernelReport) -> Outcome<Medium> {
    let sector = told.sector_bytes.unwrap_or(SECTOR);
    if let Some(name) = &args.card {
        let card = cards::open(name)?;
        let geometry = cards::geometry(&card.profile);
        let why = format!("the profile {} says so", card.name);
        let capacity = capacity.unwrap_or(card.profile.capacity_bytes());
        let medium = Medium::of_geometry(capacity, &geometry, why)?;
        return Ok(medium.with_sectors(sector));
    }
    let capacity = capacity.ok_or_else(|| {
        Error::input("the size is not known: say it, or name a card with its own")
    })?;
    let unit = match (args.au, told.erase_bytes) {
        (Some(bytes), _) => Unit::new(bytes, "you said so")?,
        (None, Some(bytes)) => found(bytes).unwrap_or_else(|| Unit::safe(capacity)),
        (None, None) => Unit::safe(capacity),
    };
    Ok(Medium::of_unit(capacity, unit, told.discard).with_sectors(sector))
}

/// The unit that the card tells the kernel, if it is one that can be.
fn found(bytes: u64) -> Option<Unit> {
    let why = format!(
        "the card says so (preferred_erase_size in sysfs: {}; an eMMC's may be a guess)",
        Bytes(bytes)
    );
    // Smaller than any card's: a default of the kernel.
    Unit::new(bytes, why)
        .ok()
        .filter(|unit| unit.bytes >= 1 << 20)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn args(card: Option<&str>, au: Option<u64>) -> CardKnowledge {
        CardKnowledge {
            card: card.map(str::to_owned),
            au,
        }
    }

    #[test]
    fn the_unit_is_given_else_found_else_safe() {
        let told = |erase_bytes| KernelReport {
            erase_bytes,
            discard: true,
            sector_bytes: None,
        };
        let of = |args, erase| of(&args, Some(16 << 30), told(erase)).unwrap().unit;
        let given = of(args(None, Some(12 << 20)), Some(8 << 20));
        assert_eq!((given.bytes, given.why.as_str()), (12 << 20, "you said so"));
        let found = of(args(None, None), Some(8 << 20));
        assert!(found.bytes == 8 << 20 && found.why.contains("the card says so"));
        for guess in [None, Some(512), Some(512 << 10), Some(u64::MAX)] {
            assert!(of(args(None, None), guess).why.contains("nothing is known"));
        }
        let card = of(args(Some("kodak-ultra-performance-64gb"), None), None);
        assert!(card.why.contains("kodak"), "{}", card.why);
    }

    #[test]
    fn what_is_not_known_is_asked_for() {
        let error = of(&args(None, None), None, KernelReport::default()).unwrap_err();
        assert!(error.message.contains("the size is not known"), "{error}");
        let error = of(
            &args(None, Some(100_000)),
            Some(1 << 30),
            KernelReport::default(),
        )
        .unwrap_err();
        assert!(error.message.contains("such as 4M or 12M"), "{error}");
        assert!(of(&args(Some("no-such"), None), None, KernelReport::default()).is_err());
    }
}
