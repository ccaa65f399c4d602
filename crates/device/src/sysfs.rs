//! What sysfs tells of a block device.

use std::path::{Path, PathBuf};

/// The serial number of a USB device whose directory is `dir`.
fn serial(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("serial")).ok()?;
    let text = text.trim();
    is_plausible(text).then(|| format!("serial {text}"))
}

/// Names of the entries of a directory, in order; none if it is not there.
fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Attributes that tell one disk from others, the best first.
const REGISTERS: [&str; 5] = [
    "device/cid",
    "device/serial",
    "serial",
    "device/wwid",
    "wwid",
];

/// Whether `value` tells a device from others: not empty, not all zeros or all ones.
fn is_plausible(value: &str) -> bool {
    let value = value.strip_prefix("0x").unwrap_or(value);
    !value.is_empty()
        && !value.chars().all(|c| c == '0')
        && !value.chars().all(|c| "fF".contains(c))
}

/// A block device in sysfs.
#[derive(Clone, Debug)]
pub struct Block {
    dir: PathBuf,
    /// Kernel's name, `sda` or `mmcblk0`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
}

impl Block {
    /// The device `number` (`major:minor`), if sysfs knows it.
    pub fn of(sys: &Path, number: &str) -> Option<Block> {
        let dir = std::fs::canonicalize(sys.join("dev/block").join(number)).ok()?;
        Block::at(dir)
    }

    /// The disk that the kernel calls `name`.
    pub fn named(sys: &Path, name: &str) -> Option<Block> {
        Block::at(std::fs::canonicalize(sys.join("block").join(name)).ok()?)
    }

    /// Its path in `/dev`. The kernel writes `!` for a slash.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// What tells this disk from others of its kind, as far as the system knows: the card's
    /// register, or the serial number of the device or of what it is plugged into, else the
    /// file that a loop device shows; then its size. Cards of one size in one reader are not
    /// told apart.
    pub fn identity(&self) -> String {
        let sectors = self.attribute("size").unwrap_or_default();
        format!("{}, {sectors} sectors", self.known())
    }

    /// What a person calls it by: the value alone of what [`Block::identity`] tells it by.
    pub fn id(&self) -> String {
        let known = self.known();
        let value = REGISTERS.iter().find_map(|name| known.strip_prefix(name));
        let value = value.or_else(|| known.strip_prefix("serial"));
        value.map_or(known.clone(), |value| value.trim().to_owned())
    }

    /// What tells it from others: where that is from, and the value.
    fn known(&self) -> String {
        let own = REGISTERS.iter().find_map(|name| {
            let value = self.attribute(name).filter(|value| is_plausible(value))?;
            Some(format!("{name} {value}"))
        });
        let above = || self.dir.ancestors().skip(1).find_map(serial);
        let file = || self.attribute("loop/backing_file");
        let known = own.or_else(above).or_else(file);
        known.unwrap_or_else(|| self.name.clone())
    }

    /// Its size in bytes; 0 without a card in the reader.
    pub fn bytes(&self) -> u64 {
        let sectors = self.attribute("size").and_then(|size| size.parse().ok());
        sectors.unwrap_or(0_u64).saturating_mul(512)
    }

    /// A number that grows with each medium that the kernel sees (Linux 5.15 and newer).
    pub fn sequence(&self) -> Option<String> {
        self.attribute("diskseq")
    }

    /// Whether a person can take it out: a card or stick, a file behind a loop device, or what a
    /// program serves by ublk.
    pub fn is_removable(&self) -> bool {
        let says = |name: &str, value: &str| self.attribute(name).as_deref() == Some(value);
        let usb = self.dir.components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            part.strip_prefix("usb")
                .is_some_and(|bus| bus.parse::<u32>().is_ok())
        });
        let is_loop = self.dir.join("loop/backing_file").exists();
        let is_ublk = self.name.starts_with("ublkb");
        says("removable", "1") || says("device/type", "SD") || usb || is_loop || is_ublk
    }

    /// The eMMC that this is a hardware partition of (`mmcblk0boot0`, `mmcblk0rpmb`, `mmcblk0gp1`).
    pub fn emmc(&self) -> Option<&str> {
        let rest = self.name.strip_prefix("mmcblk")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (disk, part) = self.name.split_at("mmcblk".len() + digits);
        let kinds = ["boot", "rpmb", "gp"];
        kinds
            .iter()
            .any(|kind| part.starts_with(kind))
            .then_some(disk)
    }

    /// Names of the devices that it is made of.
    pub fn slaves(&self) -> Vec<String> {
        names_in(&self.dir.join("slaves"))
    }

    /// The device called `name`: a disk, or a partition of one.
    pub fn any_named(sys: &Path, name: &str) -> Option<Block> {
        Block::named(sys, name).or_else(|| {
            let dir = std::fs::canonicalize(sys.join("class/block").join(name)).ok()?;
            Block::at(dir)
        })
    }

    fn at(dir: PathBuf) -> Option<Block> {
        let name = dir.file_name()?.to_str()?.to_owned();
        let number = std::fs::read_to_string(dir.join("dev")).ok()?;
        Some(Block {
            dir,
            name,
            number: number.trim().to_owned(),
        })
    }

    /// Whether it is a part of a disk.
    pub fn is_partition(&self) -> bool {
        self.dir.join("partition").exists()
    }

    /// The disk that this is a partition of.
    pub fn disk(&self) -> Option<Block> {
        if !self.is_partition() {
            return None;
        }
        Block::at(self.dir.parent()?.to_path_buf())
    }

    /// Devices of the partitions that the kernel knows, sorted by name.
    pub fn partitions(&self) -> Vec<Block> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut found: Vec<Block> = entries
            .map(|entry| entry.path())
            .filter(|path| path.join("partition").exists())
            .filter_map(Block::at)
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Names of the devices made of it.
    pub fn holders(&self) -> Vec<String> {
        names_in(&self.dir.join("holders"))
    }

    /// The nearest directory above it that has the attribute `name`: the USB device that it is
    /// plugged into has `idVendor`.
    pub fn above(&self, name: &str) -> Option<PathBuf> {
        let mut above = self.dir.ancestors().skip(1);
        above
            .find(|dir| dir.join(name).is_file())
            .map(Path::to_owned)
    }

    /// Where the link `name` in its directory leads.
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        std::fs::canonicalize(self.dir.join(name)).ok()
    }

    /// An attribute, without the blanks around it.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.dir.join(name)).ok()?;
        Some(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::machine;
    use std::fs;

    #[test]
    fn a_disk_is_identified_by_its_register_else_by_what_it_is_plugged_into() {
        let (_root, roots) = machine();
        let disk = Block::named(&roots.sys, "sdz").unwrap();
        fs::write(disk.dir.join("size"), "1024\n").unwrap();
        assert_eq!(disk.identity(), "sdz, 1024 sectors");
        fs::write(roots.sys.join("devices/serial"), "READER\n").unwrap();
        assert_eq!(disk.identity(), "serial READER, 1024 sectors");
        fs::create_dir(disk.dir.join("device")).unwrap();
        fs::write(disk.dir.join("device/cid"), "0353\n").unwrap();
        assert_eq!(disk.identity(), "device/cid 0353, 1024 sectors");
        assert_eq!(disk.path(), "/dev/sdz");
    }
}
