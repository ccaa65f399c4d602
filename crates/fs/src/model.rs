//! The words of the catalogue: what is known of the card, what a filesystem is and can do,
//! and the commands that come out.

use crate::left_out::without;
use std::collections::BTreeMap;
use whichfs_units::{Bytes, MIB};

/// What a filesystem is tuned to: the partition and the card under it.
///
/// The partition is taken to begin on an AU boundary, so offsets in the
/// partition and on the card are aligned alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size of the partition in bytes.
    pub partition_bytes: u64,
    /// Flash page in bytes: what one program operation writes.
    pub page_bytes: u64,
    /// Multi-plane write unit in bytes: what the card programs in parallel.
    pub write_unit_bytes: u64,
    /// Allocation unit in bytes: what the card handles and erases as one. Need not be a
    /// power of two (1.5, 3, 6, 12 and 24 MiB exist).
    pub au_bytes: u64,
    /// Whether the bus passes discard to the card.
    pub discard: bool,
    /// Whether the device has a volatile cache that needs flushes (eMMC, A2 cards); a plain
    /// SD card has none as far as the kernel knows.
    pub flush: bool,
}

impl Geometry {
    /// An AU that no card of the market exceeds (SD: at most 64 MiB for SDXC).
    pub const LARGEST_AU_BYTES: u64 = 64 * MIB;

    /// Refuses figures that no tuning can be derived from.
    ///
    /// # Errors
    /// [`Unfit`] if a unit is zero, no multiple of 512 bytes, or larger than an AU may be.
    pub fn check(&self) -> Result<(), Unfit> {
        let units = [
            ("page", self.page_bytes),
            ("write unit", self.write_unit_bytes),
            ("allocation unit", self.au_bytes),
        ];
        for (name, bytes) in units {
            if bytes == 0 || bytes % 512 != 0 || bytes > Self::LARGEST_AU_BYTES {
                return Err(Unfit {
                    reason: format!(
                        "a {name} of {bytes} bytes: expected a multiple of 512 up to {}",
                        Bytes(Self::LARGEST_AU_BYTES)
                    ),
                    source: "SD Physical Layer Simplified Specification, AU_SIZE (at most 64 MiB)",
                });
            }
        }
        Ok(())
    }
}

/// Why every mount has `noatime`.
pub(crate) const WHY_NOATIME: &str =
    "reading a file must not write to the card: access times cost a metadata write each";

/// One tebibyte in bytes.
pub(crate) const TIB: u64 = 1 << 40;

/// Last year of a 64-bit count of seconds, which the kernel keeps as `time64_t`.
pub(crate) const YEAR_OF_64_BITS: u64 = 292_277_026_596;

/// Largest file of the kernel itself, `MAX_LFS_FILESIZE` on 64-bit machines.
pub(crate) const LARGEST_LOFF: u64 = i64::MAX as u64;

/// Source for what neither Windows nor macOS reads.
pub(crate) const NOT_LISTED: &str = "it is neither in Microsoft's File System Functionality \
     Comparison nor among the formats of Apple's Disk Utility guide";

/// Whom the commands are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The lab: identifiers, hash seeds and times are fixed, so that runs are repeatable.
    Lab {
        /// Seed the identifiers are drawn from.
        seed: u64,
    },
    /// A person's card: identifiers are random, as the tools draw them.
    User,
}

/// How a filesystem keeps its structure consistent over a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrashClass {
    /// Metadata go through a journal that is replayed at mount.
    Journaled,
    /// Nothing live is overwritten; a new root is switched to.
    Cow,
    /// Written as a log with checkpoints; recovery rolls forward from the last.
    Log,
    /// Nothing: a power cut can leave any mixture of old and new, and fsck must mend it.
    None,
}

impl CrashClass {
    /// One of `journaled`, `cow`, `log`, `none`.
    pub const fn word(self) -> &'static str {
        match self {
            CrashClass::Journaled => "journaled",
            CrashClass::Cow => "cow",
            CrashClass::Log => "log",
            CrashClass::None => "none",
        }
    }

    /// The class that has this word.
    pub fn from_word(word: &str) -> Option<CrashClass> {
        let all = [Self::Journaled, Self::Cow, Self::Log, Self::None];
        all.into_iter().find(|class| class.word() == word)
    }
}

/// What a filesystem is and can do, as made by our recipe and used by Linux 6.12.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Smallest partition the tools format, in bytes, whatever the tuning.
    pub min_bytes: u64,
    /// Largest file in bytes.
    pub max_file_bytes: u64,
    /// Last year a file can be stamped with (the year-2038 question).
    pub y2038: u64,
    /// Owners, groups and mode bits are stored.
    pub unix_permissions: bool,
    /// Symbolic links are stored.
    pub symlinks: bool,
    /// Hard links are stored.
    pub hard_links: bool,
    /// Extended attributes are stored.
    pub xattrs: bool,
    /// `a` and `A` are two files.
    pub case_sensitive: bool,
    /// Windows reads and writes it without added software.
    pub windows: bool,
    /// macOS reads it without added software.
    pub macos: bool,
    /// Written once as an image, never changed by the system that uses it.
    pub read_only: bool,
    /// File data can be stored compressed.
    pub compression: bool,
    /// Snapshots can be taken.
    pub snapshots: bool,
    /// What holds over a power cut.
    pub crash_class: CrashClass,
    /// After a power cut the kernel mounts it for writing, without a repair before.
    pub mounts_after_cut: bool,
    /// The newest kernels still have it.
    pub in_current_linux: bool,
    /// What it is good for, in a sentence.
    pub good_for: &'static str,
    /// Kernel options of its driver (`CONFIG_…`): those that it needs and those that give it
    /// extended attributes and access control lists; [`Facts::needed_options`] parts them.
    pub kernel_options: &'static [&'static str],
    /// Debian packages with its tools.
    pub packages: &'static [&'static str],
    /// Where each claim comes from: claim, source.
    pub sources: &'static [(&'static str, &'static str)],
}

/// Endings of the options that give a driver POSIX access control lists.
const ACL: &str = "_POSIX_ACL";
/// Ending of the options that give a driver extended attributes.
const XATTR: &str = "_XATTR";

impl Facts {
    /// Kernel options without which it cannot be mounted and used.
    pub fn needed_options(&self) -> impl Iterator<Item = &'static str> {
        let parts = |option: &str| option.ends_with(ACL) || option.ends_with(XATTR);
        let all = self.kernel_options.iter().copied();
        all.filter(move |option| !parts(option))
    }

    /// Kernel options that only its extended attributes need.
    pub fn xattr_options(&self) -> impl Iterator<Item = &'static str> {
        let all = self.kernel_options.iter().copied();
        all.filter(|option| option.ends_with(XATTR))
    }

    /// Kernel options that only POSIX access control lists need.
    pub fn acl_options(&self) -> impl Iterator<Item = &'static str> {
        let all = self.kernel_options.iter().copied();
        all.filter(|option| option.ends_with(ACL))
    }
}

/// Why a filesystem cannot be used on a geometry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// One sentence with what was found and what is needed.
    pub reason: String,
    /// Where that limit comes from.
    pub source: &'static str,
}

// By hand, because thiserror takes a field called `source` for an error.
impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason, self.source)
    }
}

impl std::error::Error for Unfit {}

/// The exact commands that make, mount and check a filesystem.
///
/// In every command the device is the literal [`Recipe::DEVICE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// Commands that make the filesystem, in this order. Empty for read-only filesystems,
    /// which are built by `image` and copied to the device.
    pub mkfs: Vec<Vec<String>>,
    /// Environment the mkfs commands need to be repeatable; empty for [`Purpose::User`].
    pub mkfs_env: BTreeMap<String, String>,
    /// Name of the filesystem in the kernel (`mount -t`).
    pub kernel_fs: &'static str,
    /// Options of the measured mount.
    pub mount_options: String,
    /// Checks without changing anything; exit status 0 means clean. Empty where no checker
    /// exists (nilfs2).
    pub fsck_check: Vec<String>,
    /// Repairs without asking. Empty where nothing can be repaired (nilfs2, images).
    pub fsck_repair: Vec<String>,
    /// What the manual of the repair says to run if it refuses and the filesystem cannot be mounted
    /// either, at the price of data (xfs: a log that cannot be replayed). Empty where there is
    /// no such thing.
    pub fsck_rescue: Vec<String>,
    /// Fourth field of fstab: mount options, comma-separated.
    pub fstab_options: String,
    /// Sixth field of fstab for a filesystem that is not the root (a root that is not 0 takes
    /// 1 instead).
    pub fstab_passno: u8,
    /// Programs the commands use.
    pub tools: Vec<&'static str>,
    /// What was derived from the card, and why: pairs for the report.
    pub tuning: Vec<(String, String)>,
    /// Which arguments of the commands are a choice of ours, in the form of
    /// [`crate::left_out::without`].
    pub(crate) chosen: &'static [&'static str],
    /// How to build the image of a read-only filesystem.
    pub image: Option<ImageBuild>,
    /// A process of the filesystem in user space.
    pub helper: Option<Helper>,
}

impl Recipe {
    /// Stands for the block device in commands.
    pub const DEVICE: &'static str = "{device}";

    /// A command of a recipe, for `device`.
    pub fn on_device(argv: &[String], device: &str) -> Vec<String> {
        argv.iter()
            .map(|word| word.replace(Recipe::DEVICE, device))
            .collect()
    }

    /// The filesystem as its tools and mount(8) make it by themselves: without what is tuned to
    /// the card or chosen by the catalogue. What makes runs repeatable stays.
    #[must_use]
    pub fn untuned(mut self) -> Recipe {
        let builds = self.image.iter_mut().map(|image| &mut image.argv);
        for argv in self.mkfs.iter_mut().chain(builds) {
            *argv = without(argv, self.chosen);
        }
        let kept = self.mount_options.split(',');
        let kept: Vec<&str> = kept.filter(|option| *option != "noatime").collect();
        self.mount_options = kept.join(",");
        self.tuning = Vec::new();
        self
    }
}

/// Builds the image of a read-only filesystem from a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBuild {
    /// Command with [`ImageBuild::TREE`] and [`ImageBuild::IMAGE`] in place of the paths.
    pub argv: Vec<String>,
    /// Environment that makes it repeatable.
    pub env: BTreeMap<String, String>,
}

impl ImageBuild {
    /// Stands for the directory the image is made of.
    pub const TREE: &'static str = "{tree}";
    /// Stands for the image file.
    pub const IMAGE: &'static str = "{image}";
}

/// A process in user space that belongs to a mounted filesystem. Trials run it where they are
/// asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// Command, which goes to the background by itself; [`Recipe::DEVICE`], [`Helper::MOUNT`] and
    /// [`Helper::OPTIONS`] are replaced.
    pub argv: Vec<String>,
    /// Program that must be installed.
    pub tool: &'static str,
    /// Whether it mounts the filesystem itself, by FUSE, in place of the kernel's driver; else it
    /// runs beside it while it is mounted.
    pub mounts: bool,
    /// Command that succeeds when one that runs beside it is there; [`Recipe::DEVICE`] is
    /// replaced. Empty for one that mounts.
    pub ready: &'static [&'static str],
    /// Command that asks one that runs beside it to end, and fails if nobody is there;
    /// [`Recipe::DEVICE`] is replaced. Empty for one that ends with the unmount.
    pub stop: &'static [&'static str],
    /// Whether trials run it.
    pub runs: bool,
}

impl Helper {
    /// Stands for the directory the filesystem is mounted on.
    pub const MOUNT: &'static str = "{mount}";
    /// Stands for the options of the mount.
    pub const OPTIONS: &'static str = "{options}";

    /// The same where trials run it, with further `arguments`.
    pub fn run_with(&mut self, arguments: &[String]) {
        let at = self.argv.len().min(1);
        self.argv.splice(at..at, arguments.iter().cloned());
        self.runs = true;
    }
}

/// A filesystem with its way of tuning it: one entry of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its place in lists: 10, 20 …, so that a new one fits in between.
    pub(crate) rank: u16,
    /// Name in commands and results, for example `ext4-nojournal`.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    pub(crate) facts: Facts,
    pub(crate) build: fn(&Geometry, Purpose) -> Result<Recipe, Unfit>,
}

impl Candidate {
    /// Stands between the name of a candidate and what of it is on a second card.
    pub const SECOND_CARD: char = '+';

    /// What it is and can do.
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The commands for a card.
    ///
    /// # Errors
    /// [`Unfit`] if the geometry is absurd, or the partition too small or too large for this
    /// filesystem with any tuning.
    pub fn recipe(&self, geometry: &Geometry, purpose: Purpose) -> Result<Recipe, Unfit> {
        if geometry.partition_bytes < self.facts.min_bytes {
            return Err(Unfit {
                reason: format!(
                    "the partition has {}, {} needs at least {}",
                    Bytes(geometry.partition_bytes),
                    self.name,
                    Bytes(self.facts.min_bytes)
                ),
                source: self.source_of("minimum size"),
            });
        }
        self.recipe_of_any_size(geometry, purpose)
    }

    /// The commands for a card, also where the catalogue says that the partition is too small:
    /// for finding out whether it is.
    ///
    /// # Errors
    /// [`Unfit`] if the geometry is absurd, or no command can be composed for that size.
    pub fn recipe_of_any_size(
        &self,
        geometry: &Geometry,
        purpose: Purpose,
    ) -> Result<Recipe, Unfit> {
        geometry.check()?;
        (self.build)(geometry, purpose)
    }

    /// The source of a claim, found by a word in it (`Windows`, `last year`); empty if there
    /// is none.
    pub fn source_of(&self, claim: &str) -> &'static str {
        let found = self.facts.sources.iter();
        found
            .filter(|(what, _)| what.contains(claim))
            .map(|(_, source)| *source)
            .next()
            .unwrap_or("")
    }
}
