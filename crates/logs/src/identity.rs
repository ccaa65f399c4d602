//! What a log says about the card: lines of sysfs and of fdisk.

/// A card as far as a log names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedIdentity {
    /// Card identification register, 32 hexadecimal digits.
    pub cid: Option<String>,
    /// Manufacturer as sysfs prints it, for example `0x000003`.
    pub manufacturer: Option<String>,
    /// Product name.
    pub product: Option<String>,
    /// Month and year of manufacture.
    pub date: Option<String>,
    /// Size of the device that was tested, in bytes.
    pub capacity_bytes: Option<u64>,
    /// The device's path on the machine that tested it.
    pub device: Option<String>,
}

/// What one line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Registers of the card in the reader; the size is the CSD's.
    Card(LoggedIdentity),
    /// The device under test.
    Device(String),
    /// Size of a device, from fdisk.
    Size { device: String, bytes: u64 },
}

/// What `text` tells about a card.
pub(super) fn told(text: &str) -> Option<Told> {
    let lower = text.to_ascii_lowercase();
    if lower.contains("cid")
        && let Some(card) = card(text)
    {
        return Some(Told::Card(card));
    }
    if lower.contains("device:") {
        let at = lower.find("device:")? + "device:".len();
        let path = text.get(at..)?.split_whitespace().next()?;
        return path
            .starts_with("/dev/")
            .then(|| Told::Device(path.to_owned()));
    }
    size(text)
}

/// `man:0x000003 oem:0x5344 name:SU04G … cid:0353… csd:400e…`.
fn card(text: &str) -> Option<LoggedIdentity> {
    let mut card = LoggedIdentity::default();
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once([':', '=']) else {
            continue;
        };
        let value = Some(value.to_owned()).filter(|value| !value.is_empty());
        match key.to_ascii_lowercase().as_str() {
            "man" | "manfid" => card.manufacturer = value,
            "name" => card.product = value,
            "date" => card.date = value,
            "cid" => card.cid = value.and_then(|cid| register(&cid)),
            "csd" => {
                let csd = value.and_then(|csd| register(&csd));
                card.capacity_bytes = csd.and_then(|csd| csd_capacity(&csd));
            }
            _ => {}
        }
    }
    // `cid: 0353…` has a blank in between.
    if card.cid.is_none() {
        card.cid = text.split_whitespace().find_map(register);
    }
    card.cid.is_some().then_some(card)
}

/// A register of 128 bits in hexadecimal, lower case.
fn register(text: &str) -> Option<String> {
    let text = text.strip_prefix("0x").unwrap_or(text);
    let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    hex.then(|| text.to_ascii_lowercase())
}

/// Capacity in the card-specific data register (SD Physical Layer Simplified Specification
/// 4.10, 5.3.2 and 5.3.3), in bytes.
fn csd_capacity(csd: &str) -> Option<u64> {
    let value = u128::from_str_radix(csd, 16).ok()?;
    let bits = |high: u32, low: u32| ((value >> low) & ((1 << (high - low + 1)) - 1)) as u64;
    match bits(127, 126) {
        0 => {
            let blocks = (bits(73, 62) + 1) << (bits(49, 47) + 2);
            Some(blocks << bits(83, 80))
        }
        1 => Some((bits(69, 48) + 1) * (512 << 10)),
        _ => None,
    }
}

/// `Disk /dev/sda: 482 MiB, 505413632 bytes, 987136 sectors`, in any language.
fn size(text: &str) -> Option<Told> {
    let mut words = text.split_whitespace();
    words.next()?;
    let device = words.next()?.strip_suffix(':')?;
    if !device.starts_with("/dev/") {
        return None;
    }
    let digits = |word: &str| word.trim_end_matches(',').parse::<u64>().ok();
    let bytes = words.filter_map(digits).find(|&bytes| bytes >= 1_000_000)?;
    let device = device.to_owned();
    Some(Told::Size { device, bytes })
}

impl LoggedIdentity {
    /// Why `self` and `other` cannot be the same card; none where they may be.
    pub(super) fn contradicts(&self, other: &LoggedIdentity) -> Option<String> {
        fn differ<T: PartialEq + std::fmt::Display>(
            what: &str,
            a: &Option<T>,
            b: &Option<T>,
        ) -> Option<String> {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            (a != b).then(|| format!("{what} {a} and {b}"))
        }
        differ("CID", &self.cid, &other.cid)
            .or_else(|| differ("capacity", &self.capacity_bytes, &other.capacity_bytes))
            .or_else(|| {
                // The same card may have gone from one reader to another.
                let known = self.cid.is_some() && self.cid == other.cid;
                differ("device", &self.device, &other.device).filter(|_| !known)
            })
    }

    /// Leaves out registers that are of another card than the device that was tested.
    pub(super) fn without_registers(&self) -> LoggedIdentity {
        LoggedIdentity {
            capacity_bytes: self.capacity_bytes,
            device: self.device.clone(),
            ..LoggedIdentity::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn registers_are_read_as_sysfs_prints_them() {
        let line = "man:0x000012 oem:0x3456 name:SD hwrev:0x0 fwrev:0x1 date:01/2020 \
                    cid:123456534400000000000000010001A1 csd:400e00325b5900001d8a7f800a404000";
        let Some(Told::Card(card)) = told(line) else {
            panic!("no card in {line}");
        };
        assert_eq!(
            card.cid.as_deref(),
            Some("123456534400000000000000010001a1")
        );
        assert_eq!(card.product.as_deref(), Some("SD"));
        assert_eq!(card.capacity_bytes, Some(7563 * 512 * 1024));
        assert_eq!(told("man: oem: name: date: cid: csd:"), None);
        assert_eq!(told("cat: cid: No such file or directory"), None);
    }

    #[test]
    fn a_small_card_has_the_old_register() {
        // C_SIZE 3751, C_SIZE_MULT 7, READ_BL_LEN 10: (3751 + 1) * 512 * 1024.
        let csd = (10_u128 << 80) | (3751 << 62) | (7 << 47);
        assert_eq!(
            csd_capacity(&format!("{csd:032x}")),
            Some(3752 * 512 * 1024)
        );
        assert_eq!(csd_capacity(&format!("{:032x}", 3_u128 << 126)), None);
    }

    #[test]
    fn fdisk_tells_the_size_in_any_language() {
        for line in [
            "Disk /dev/sda: 482 MiB, 505413632 bytes, 987136 sectors",
            "Диск /dev/sda: 505 МБ, 505413632 байт",
        ] {
            let expected = Told::Size {
                device: "/dev/sda".to_owned(),
                bytes: 505_413_632,
            };
            assert_eq!(told(line), Some(expected));
        }
        assert_eq!(
            told("/dev/sda1         237 987135  986899 481.9M  6 FAT16"),
            None
        );
        assert_eq!(
            told("============== Device: /dev/mmcblk0 ===== "),
            Some(Told::Device("/dev/mmcblk0".to_owned()))
        );
    }
}
