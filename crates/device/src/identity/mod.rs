//! What a card says of itself: who made it, when, its allocation unit, its speed marks, its wear.
//!
//! Read from sysfs (Linux, `drivers/mmc/core/{sd,mmc}.c`), nothing is opened. Whoever makes a card
//! can write anything there; what cannot be is told as a doubt and not as a value. A USB reader
//! hides all of it.

mod csd;
mod emmc;
mod sd_status;
mod told;

pub use csd::Csd;
pub use emmc::{Emmc, PreEol, Used};
pub use sd_status::{MarkedMinimum, SdStatus};

use crate::error::HereError;
use crate::guard::{TargetKind, kind_of};
use crate::roots::Roots;
use crate::sysfs::Block;
use emmc::number;
use serde::Serialize;
use std::path::Path;

/// Makers by their number: `data/makers.tsv`.
const MAKERS: &str = include_str!("../../data/makers.tsv");

/// What the card is behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Bus {
    /// An SD card in a host controller of this machine.
    Sd,
    /// An eMMC in a host controller of this machine.
    Emmc,
    /// A reader or stick on USB, with what it says of itself, not of the card.
    Usb {
        /// Number of its vendor: `0bda`.
        vendor: String,
        /// Number of the product.
        product: String,
        /// Its name, where it has one.
        name: Option<String>,
    },
    /// Something else: a loop device, a disk.
    Other,
}

/// The card's CID register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Register {
    /// All of it, in hexadecimal digits.
    pub cid: String,
    /// Number of the manufacturer.
    pub manufacturer: u64,
    /// Its name, if the number is known.
    pub maker: Option<&'static str>,
    /// Number of the brand; two letters on an SD card.
    pub oem: String,
    /// Name of the product.
    pub name: String,
    /// Number of the specimen.
    pub serial: String,
    /// Month and year of manufacture, `MM/YYYY`.
    pub made: String,
    /// Revision of the product and of its firmware, as the kernel writes them: `0x8 0x0`.
    pub revision: Option<String>,
}

/// What is known of a card without measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DeviceIdentity {
    /// The kernel's name: `mmcblk0`.
    pub device: String,
    /// What `--destroy` asks for.
    pub id: String,
    /// Size in bytes.
    pub bytes: u64,
    /// What it is behind.
    pub bus: Bus,
    /// Its register; none behind a reader.
    pub register: Option<Register>,
    /// What its CSD register says; none behind a reader.
    pub csd: Option<Csd>,
    /// Bytes that the kernel takes for the allocation unit or erase group.
    pub preferred_erase_bytes: Option<u64>,
    /// Of an SD card.
    pub sd: Option<SdStatus>,
    /// Wear and abilities of an eMMC; none of other cards.
    pub emmc: Option<Emmc>,
    /// What it says of itself that cannot be.
    pub doubts: Vec<String>,
}

/// What the disk `path` says of itself. `year` is this year: nothing was made after it.
///
/// # Errors
/// If it is no disk.
pub fn identify(path: &Path, year: u32, roots: &Roots) -> Result<DeviceIdentity, HereError> {
    let shown = || path.display().to_string();
    let TargetKind::Disk { number, .. } = kind_of(path, roots)? else {
        return Err(HereError::NoCard { path: shown() });
    };
    let block = Block::of(&roots.sys, &number).ok_or_else(|| HereError::Missing {
        path: shown(),
        reason: format!("the system no longer knows block device {number}"),
    })?;
    Ok(told(&block, year, roots))
}

fn told(block: &Block, year: u32, roots: &Roots) -> DeviceIdentity {
    let attribute = |name: &str| block.attribute(&format!("device/{name}"));
    let mut doubts = Vec::new();
    let bus = bus(block);
    let mmc = matches!(bus, Bus::Sd | Bus::Emmc);
    let register = mmc
        .then(|| register(&attribute, year, &mut doubts))
        .flatten();
    let csd = attribute("csd").filter(|_| mmc).and_then(|text| {
        match Csd::decode(&text, bus == Bus::Sd, block.bytes()) {
            Ok((csd, more)) => {
                doubts.extend(more);
                Some(csd)
            }
            Err(why) => {
                doubts.push(format!("CSD register: {why}"));
                None
            }
        }
    });
    let sd = match (&bus, attribute("ssr")) {
        (Bus::Sd, Some(text)) => match SdStatus::decode(&text) {
            Ok((status, more)) => {
                doubts.extend(more);
                Some(status)
            }
            Err(why) => {
                doubts.push(format!("SD Status register: {why}"));
                None
            }
        },
        _ => None,
    };
    let emmc = (bus == Bus::Emmc).then(|| {
        let (mut emmc, more) = Emmc::of(&attribute);
        doubts.extend(more);
        emmc.cache_kib = ext_csd(block, roots).and_then(|text| emmc::cache_kib(&text));
        emmc
    });
    let erase = attribute("preferred_erase_size").and_then(|text| number(&text));
    DeviceIdentity {
        device: block.name.clone(),
        id: block.id(),
        bytes: block.bytes(),
        register,
        csd,
        preferred_erase_bytes: erase.filter(|bytes| mmc && *bytes > 0),
        sd,
        emmc,
        bus,
        doubts,
    }
}

fn bus(block: &Block) -> Bus {
    match block.attribute("device/type").as_deref() {
        Some("SD") => return Bus::Sd,
        Some("MMC") => return Bus::Emmc,
        _ => {}
    }
    match block.above("idVendor") {
        Some(dir) => {
            let read = |name: &str| {
                let text = std::fs::read_to_string(dir.join(name)).ok()?;
                Some(text.trim().to_owned())
            };
            let names = [read("manufacturer"), read("product")];
            let name = names.into_iter().flatten().collect::<Vec<_>>().join(" ");
            Bus::Usb {
                vendor: read("idVendor").unwrap_or_default(),
                product: read("idProduct").unwrap_or_default(),
                name: (!name.is_empty()).then_some(name),
            }
        }
        None => Bus::Other,
    }
}

fn register(
    attribute: &dyn Fn(&str) -> Option<String>,
    year: u32,
    doubts: &mut Vec<String>,
) -> Option<Register> {
    let cid = attribute("cid")?;
    let first = cid.chars().next()?;
    if cid.chars().all(|letter| letter == first) {
        doubts.push(format!("CID register: all of its digits are {first}"));
        return None;
    }
    let text = |name: &str| attribute(name).unwrap_or_default();
    let value = |name: &str| number(&text(name)).unwrap_or(0);
    let manufacturer = value("manfid");
    if manufacturer == 0 || manufacturer == 0xff {
        doubts.push(format!("manufacturer {manufacturer:#04x} is nobody's"));
    }
    let serial = value("serial");
    if serial == 0 || serial == u64::from(u32::MAX) {
        doubts.push(format!(
            "serial number {serial:#010x}: it has none of its own"
        ));
    }
    let name = text("name");
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        doubts.push(format!("product name {name:?} is none"));
    }
    let made = text("date");
    doubts.extend(doubt_of_date(&made, year));
    Some(Register {
        cid,
        manufacturer,
        maker: maker(manufacturer),
        oem: letters(value("oemid")),
        name,
        serial: text("serial"),
        made,
        revision: revision(attribute),
    })
}

/// The product's revision (`hwrev` of an SD card, `prv` of an eMMC) and that of its firmware.
fn revision(attribute: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let product = attribute("prv").or_else(|| attribute("hwrev"));
    let all: Vec<String> = product.into_iter().chain(attribute("fwrev")).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Why a card cannot be from `date` (`MM/YYYY`). SD cards are made since 2000.
fn doubt_of_date(date: &str, this_year: u32) -> Option<String> {
    let parsed = date
        .split_once('/')
        .and_then(|(month, year)| Some((month.parse::<u32>().ok()?, year.parse::<u32>().ok()?)));
    match parsed {
        Some((1..=12, year)) if (2000..=this_year).contains(&year) => None,
        _ => Some(format!("date of manufacture {date:?} cannot be")),
    }
}

/// The brand as two letters, where it is two letters.
fn letters(oem: u64) -> String {
    let bytes = [(oem >> 8) as u8, oem as u8];
    match bytes.iter().all(u8::is_ascii_graphic) && oem >> 16 == 0 {
        true => bytes.iter().map(|byte| char::from(*byte)).collect(),
        false => format!("{oem:#06x}"),
    }
}

fn maker(manufacturer: u64) -> Option<&'static str> {
    let lines = MAKERS.lines().filter(|line| !line.starts_with('#'));
    let mut fields = lines.map(|line| line.split('\t'));
    fields.find_map(|mut line| {
        let code = number(line.next()?)?;
        (code == manufacturer).then(|| line.next()).flatten()
    })
}

/// The text of the EXT_CSD register in debugfs: `mmc0/mmc0:0001/ext_csd`.
fn ext_csd(block: &Block, roots: &Roots) -> Option<String> {
    let card = block.directory("device")?;
    let card = card.file_name()?.to_str()?;
    let host = card.split_once(':')?.0;
    let debug = roots.sys.join("kernel/debug").join(host).join(card);
    std::fs::read_to_string(debug.join("ext_csd")).ok()
}

#[cfg(test)]
mod tests;
