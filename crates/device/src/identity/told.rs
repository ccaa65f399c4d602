//! What a card says of itself, in lines for people.

use super::{Bus, Csd, DeviceIdentity, Emmc, PreEol, SdStatus, Used};
use whichfs_units::Bytes;

impl DeviceIdentity {
    /// The device, its bus, its maker and its registers, but for the wear of an eMMC.
    pub fn told(&self) -> Vec<String> {
        let mut lines = vec![
            format!("device   {}, {}", self.device, Bytes(self.bytes)),
            format!("id       {}  (what --destroy asks for)", self.id),
        ];
        lines.extend(bus(&self.bus));
        if let Some(register) = &self.register {
            let maker = register.maker.unwrap_or("a maker that is not known");
            lines.push(format!(
                "made by  {maker} ({:#04x}), brand {}, product {}, in {}",
                register.manufacturer, register.oem, register.name, register.made
            ));
            let revision = register.revision.as_ref();
            lines.extend(revision.map(|all| format!("revision {all} (product, firmware)")));
        }
        lines.extend(self.csd.as_ref().map(csd));
        if let Some(bytes) = self.preferred_erase_bytes {
            lines.push(format!(
                "erase    {} (what the kernel takes it for)",
                Bytes(bytes)
            ));
        }
        lines.extend(self.sd.as_ref().map(sd));
        lines
    }
}

fn bus(bus: &Bus) -> Vec<String> {
    match bus {
        Bus::Sd => vec!["bus      SD".to_owned()],
        Bus::Emmc => vec!["bus      eMMC".to_owned()],
        Bus::Usb {
            vendor,
            product,
            name,
        } => vec![
            format!(
                "bus      USB {vendor}:{product}, {}",
                name.as_deref().unwrap_or("without a name")
            ),
            "         It hides the card: maker, allocation unit, marks and wear cannot be read."
                .to_owned(),
            "         A slot of a board or laptop shows them; `whichfs probe` measures.".to_owned(),
        ],
        Bus::Other => vec![
            "bus      neither SD, eMMC nor USB: it has no description; `whichfs probe` measures"
                .to_owned(),
        ],
    }
}

fn csd(csd: &Csd) -> String {
    let size = csd
        .bytes
        .map_or("not told".to_owned(), |b| Bytes(b).to_string());
    let lock = match (csd.locked_for_good, csd.locked) {
        (true, _) => "write-protected for good",
        (_, true) => "write-protected",
        _ => "not write-protected",
    };
    format!("CSD      capacity {size}; {lock}")
}

fn sd(status: &SdStatus) -> String {
    let au = |bytes: Option<u64>| bytes.map_or("not told".to_owned(), |b| Bytes(b).to_string());
    format!(
        "AU       {}; {} in UHS modes; {}",
        au(status.au_bytes),
        au(status.uhs_au_bytes),
        match status.discard {
            true => "takes discards",
            false => "takes erases only",
        }
    )
}

impl Emmc {
    /// The properties and the wear of an eMMC.
    pub fn told(&self) -> Vec<String> {
        emmc(self)
    }
}

fn emmc(emmc: &Emmc) -> Vec<String> {
    let mut lines = vec![format!(
        "eMMC     {}; reliable write {}; cache {}; command queue {}",
        emmc.standard.unwrap_or("of a standard that is not known"),
        emmc.reliable_write_sectors
            .map_or("not told".to_owned(), |sectors| Bytes(sectors * 512)
                .to_string()),
        emmc.cache_kib
            .map_or("not told (debugfs, root)".to_owned(), |kib| Bytes(
                kib << 10
            )
            .to_string()),
        if emmc.queue { "on" } else { "off" },
    )];
    let used = |used: Option<Used>| match used {
        None => "not told".to_owned(),
        Some(Used {
            least,
            most: Some(most),
        }) => format!("{least} to {most} %"),
        Some(_) => "all of its estimated life".to_owned(),
    };
    lines.push(format!(
        "worn     {} (cells of type A), {} (type B); reserve {}",
        used(emmc.used_a),
        used(emmc.used_b),
        match emmc.reserve {
            None => "not told",
            Some(PreEol::Normal) => "normal",
            Some(PreEol::Warning) => "80 % used up",
            Some(PreEol::Urgent) => "90 % USED UP",
        }
    ));
    lines
}
