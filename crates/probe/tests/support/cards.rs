//! Random cards of the families, in the ranges that `flash.md` measures.

use std::fmt::Write as _;
use whichfs_card::{Card, Family, Profile};
use whichfs_curves::Modelled;
use whichfs_units::{KIB, MIB, Rng};

/// A random card.
pub struct Specimen {
    pub profile: Profile,
    pub used: bool,
}

/// A number between two bounds, evenly in its logarithm.
pub fn spread(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit_f64())
}

fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// AU sizes that cards have (SD105, F2A); odd ones are for cards outside of the families.
const AUS_KIB: [u64; 14] = [
    1024, 1536, 2048, 3072, 4096, 4096, 4096, 4096, 6144, 8192, 8192, 12288, 16384, 24576,
];
const UNSEEN_KIB: [u64; 8] = [2560, 3584, 5120, 7168, 9216, 10240, 11264, 13312];

/// What kind of AU a random card shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    Usual,
    Unseen,
}

/// Which mechanisms a random card may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanisms {
    /// AUs, pages, logs, a FAT region at the beginning, a volatile cache.
    Basic,
    /// Also those of [`further`].
    All,
}

/// A card of a family with basic mechanisms.
pub fn specimen(seed: u64, family: Family, sizes: Sizes, giga_max: u64) -> Specimen {
    specimen_with(seed, family, sizes, giga_max, Mechanisms::Basic)
}

/// A card of a family.
pub fn specimen_with(
    seed: u64,
    family: Family,
    sizes: Sizes,
    giga_max: u64,
    mechanisms: Mechanisms,
) -> Specimen {
    let all = mechanisms == Mechanisms::All;
    let mut rng = Rng::named(seed, "specimen");
    let rng = &mut rng;
    let au = KIB
        * match sizes {
            Sizes::Usual => one_of(rng, &AUS_KIB),
            Sizes::Unseen => one_of(rng, &UNSEEN_KIB),
        };
    let giga = one_of(rng, &[1, 2, 4, 4, 8, 16, 32]).min(giga_max);
    let aus = giga * 1_000_000_000 / au;
    let mut page = one_of(rng, &[8, 16, 16, 16, 32]) * KIB;
    if au.is_multiple_of(48 * KIB) && rng.ratio(1, 4) {
        page = 48 * KIB;
    }
    let mut text = String::from("title = \"random\"\ncomposed = true\n");
    let cached = family == Family::PageMap && rng.ratio(1, 4);
    let interface = if cached { "emmc" } else { "sd" };
    let name = Family::NAMES.iter().find(|(_, f)| *f == family).unwrap().0;
    let _ = writeln!(text, "interface = \"{interface}\"\nfamily = \"{name}\"");
    let linear = one_of(rng, &[1, 2, 3, 3, 3, 4, 4, 5, 6, 8, 10]);
    let random = linear.min(1 + rng.below(linear));
    let mut section = "";
    let mut figure = |path: &'static str, value: u64| {
        let (head, key) = path.split_once('.').unwrap();
        if head != section {
            let _ = writeln!(text, "[{head}]");
            section = head;
        }
        let _ = writeln!(text, "{key} = {{ value = {value}, source = \"random\" }}");
    };
    figure("geometry.capacity_bytes", aus * au);
    figure("geometry.page_bytes", page);
    figure("geometry.write_unit_bytes", 2 * page);
    figure("geometry.au_bytes", au);
    figure("geometry.open_aus_linear", linear);
    figure("geometry.open_aus_random", random);
    let spare = if family == Family::PageMap {
        aus / 8 + 16
    } else {
        64
    };
    figure("geometry.spare_aus", spare);
    let first = spread(rng, 150.0, 1200.0);
    figure("bus.command_us", spread(rng, 30.0, 250.0) as u64);
    let bus = if cached {
        spread(rng, 80e6, 180e6)
    } else {
        spread(rng, 12e6, 90e6)
    };
    figure("bus.rate_bytes_per_s", bus as u64);
    figure("read.first_page_us", first as u64);
    figure(
        "read.next_page_us",
        (first * spread(rng, 0.04, 0.4)).max(6.0) as u64,
    );
    let hidden = family == Family::LogBlock && rng.ratio(1, 10);
    let step = (first * spread(rng, 0.048, 0.35)).clamp(20.0, 380.0);
    figure("read.au_step_us", if hidden { 0 } else { step as u64 });
    let rate = spread(rng, 4e6, 40e6);
    figure("write.overhead_us", spread(rng, 300.0, 3000.0) as u64);
    figure("write.rate_bytes_per_s", rate as u64);
    figure("write.coalesce", rng.below(2));
    if family == Family::LogBlock {
        let partial = spread(rng, 500.0, 4000.0) as u64;
        figure("write.partial_us", partial);
        figure("write.partial_full_us", partial);
    }
    figure(
        "copy.rate_bytes_per_s",
        (rate.min(bus) * spread(rng, 0.6, 2.1)) as u64,
    );
    figure("copy.erase_us", spread(rng, 1500.0, 4500.0) as u64);
    figure("discard.supported", u64::from(rng.ratio(4, 5)));
    figure("discard.overhead_us", spread(rng, 200.0, 2000.0) as u64);
    if cached {
        figure(
            "cache.bytes",
            one_of(rng, &[64, 128, 256, 512, 1024, 2048]) * KIB,
        );
        figure("cache.flush_us", spread(rng, 100.0, 900.0) as u64);
        figure("cache.fua_us", 300);
    }
    if family != Family::PageMap {
        let fat = one_of(rng, &[0, 0, 1, 2, 2, 3]);
        // On SanDisk's cards and a Panasonic it is the second AU (2.5).
        let second = Rng::named(seed, "first AU of the region").below(3) / 2;
        let fat_first = if all { second } else { 0 };
        figure("fat.aus", fat);
        figure("fat.first_au", fat_first);
        figure("fat.overhead_us", spread(rng, 500.0, 2000.0) as u64);
        figure(
            "fat.rate_bytes_per_s",
            (rate * spread(rng, 0.4, 0.85)) as u64,
        );
    }
    match family {
        Family::PageMap => {
            figure("page_map.unit_bytes", one_of(rng, &[4, 4, 8]) * KIB);
            figure("page_map.modify_us", spread(rng, 100.0, 400.0) as u64);
        }
        Family::LogBlock => {
            figure("log_block.random_percent", spread(rng, 100.0, 400.0) as u64);
            figure("log_block.log_percent", 100 * (1 + rng.below(3)));
            figure("log_block.gap_bytes", one_of(rng, &[0, 16 * KIB]));
            if rng.ratio(1, 3) {
                figure("log_block.small_write_bytes", one_of(rng, &[8, 16]) * KIB);
                figure("log_block.small_write_us", spread(rng, 4e3, 25e3) as u64);
            }
            let mut rules = Rng::named(seed, "rules of log blocks");
            figure("log_block.first_opened", u64::from(rules.ratio(1, 3)));
            figure("log_block.merge_at_once", u64::from(rules.ratio(1, 2)));
        }
        Family::UpdateBlock => {
            figure("update_block.small_bytes", 8 * KIB);
            figure("update_block.small_us", spread(rng, 1e3, 4e3) as u64);
            figure("update_block.keep_writes", 64);
            figure("update_block.group_bytes", 512 * KIB);
            figure(
                "update_block.group_rate_bytes_per_s",
                spread(rng, 4e6, 10e6) as u64,
            );
        }
    }
    if all {
        let basis = Basis {
            au,
            aus,
            page,
            first,
            rate,
            cached,
        };
        text += &further(seed, family, &basis);
    }
    let profile = Profile::parse("random.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    Specimen {
        profile,
        used: rng.ratio(2, 3),
    }
}

/// What further figures go by: bytes, microseconds, bytes a second.
struct Basis {
    au: u64,
    aus: u64,
    page: u64,
    first: f64,
    rate: f64,
    cached: bool,
}

/// Mechanisms that some cards of a family have (`flash.md` §2): units of several planes (2.3.3),
/// zones of the map (2.4), a USB reader, pSLC caches (2.3.10), AUs beyond which a page map writes
/// twice (P), complete AUs that are copied once more (S).
fn further(seed: u64, family: Family, basis: &Basis) -> String {
    let mut rng = Rng::named(seed, "further figures");
    let rng = &mut rng;
    let Basis {
        au,
        aus,
        page,
        first,
        rate,
        cached,
    } = *basis;
    let mut text = String::new();
    let mut figure = |path: &str, value: u64| {
        let (head, key) = path.split_once('.').unwrap();
        let _ = writeln!(text, "[{head}.{key}]\nvalue = {value}\nsource = \"random\"");
    };
    let planes = one_of(rng, &[1, 2, 2, 4]);
    if planes > 1 && !cached {
        figure("write.program_bytes", planes * page);
    }
    if rng.ratio(1, 3) {
        let mut zones = vec![au * (32 * MIB).div_ceil(au).next_power_of_two()];
        while zones[zones.len() - 1] * 8 <= aus * au {
            zones.push(zones[zones.len() - 1] * 2);
        }
        figure("read.zone_bytes", one_of(rng, &zones));
        let step = (first * spread(rng, 0.06, 0.35)).clamp(20.0, 380.0);
        figure("read.zone_step_us", step as u64);
    }
    if rng.ratio(1, 4) && !cached {
        figure("reader.command_us", spread(rng, 100.0, 400.0) as u64);
        figure(
            "reader.rate_bytes_per_s",
            spread(rng, 20e6, 40e6).max(rate) as u64,
        );
        figure("reader.cut_us", spread(rng, 50.0, 500.0) as u64);
        figure("reader.max_bytes", one_of(rng, &[64, 120, 120]) * KIB);
    }
    match family {
        Family::PageMap if rng.ratio(1, 3) && !cached => {
            figure("slc.bytes", spread(rng, 24e6, 72e6) as u64);
            figure(
                "slc.rate_bytes_per_s",
                (rate * spread(rng, 1.25, 4.0)) as u64,
            );
            figure("slc.overhead_us", spread(rng, 100.0, 300.0) as u64);
            figure("slc.drain_rate_bytes_per_s", spread(rng, 5e6, 20e6) as u64);
        }
        Family::PageMap if rng.ratio(1, 3) && !cached => {
            figure("page_map.streams", 1 + rng.below(6));
        }
        Family::UpdateBlock if rng.ratio(1, 2) => {
            let fold = (rate * spread(rng, 0.6, 2.1)) as u64;
            figure("update_block.fold_rate_bytes_per_s", fold);
        }
        _ => {}
    }
    text
}

impl Specimen {
    /// The card under test.
    pub fn device(&self) -> Modelled {
        let card = if self.used {
            Card::used(&self.profile, 1)
        } else {
            Card::fresh(&self.profile)
        };
        Modelled::new(card, self.profile.capacity_bytes())
    }

    /// The card in use: what is asked of one that copies AUs is asked of AUs with data.
    pub fn in_use(&self) -> Modelled {
        let card = match self.limited() {
            true => Card::used(&self.profile, 1),
            false => return self.device(),
        };
        Modelled::new(card, self.profile.capacity_bytes())
    }

    /// Value of a figure of the profile.
    pub fn figure(&self, path: &str) -> u64 {
        let mut figures = self.profile.figures();
        figures.find(|f| f.path == path).map_or(0, |f| f.value)
    }

    /// AUs that can be written in turns without a copy, in order and at random; zero is any.
    pub fn open_aus(&self) -> (u64, u64) {
        let streams = self.figure("page_map.streams");
        match self.limited() {
            false => (streams, streams),
            true => (
                self.figure("geometry.open_aus_linear"),
                self.figure("geometry.open_aus_random"),
            ),
        }
    }

    /// What is programmed together, in bytes.
    pub fn program_unit(&self) -> u64 {
        let stated = self.figure("write.program_bytes");
        let natural = match self.profile.family() {
            Family::PageMap => "page_map.unit_bytes",
            _ => "geometry.page_bytes",
        };
        if stated > 0 {
            stated
        } else {
            self.figure(natural)
        }
    }

    pub fn limited(&self) -> bool {
        self.profile.family() != Family::PageMap
    }
}

/// AUs of a size that a device of a few gigabytes holds many of.
pub const SMALLEST_AU: u64 = MIB;
