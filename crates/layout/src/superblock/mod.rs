//! What filesystem lies at an offset, and the figures in its superblock that tuning decides.

mod formats;

use crate::ReadAt;
use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes that hold every superblock: the last, of Btrfs, lies at 64 KiB.
const HEAD: usize = 72 * 1024;

/// A filesystem as its superblock tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Superblock {
    /// The catalogue's name of what it most likely is.
    pub candidate: &'static str,
    /// Label; empty without one.
    pub label: String,
    /// Figures that tuning decides, by the names of [`SuperblockFigure`].
    pub figures: BTreeMap<SuperblockFigure, u64>,
}

/// A number that a superblock holds about how its filesystem was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SuperblockFigure {
    /// Unit in which the filesystem allocates, where it is called a block.
    BlockBytes,
    /// Unit in which the filesystem allocates, where it is called a cluster.
    ClusterBytes,
    /// ext: blocks of a stride.
    Stride,
    /// ext: blocks of a stripe.
    StripeWidth,
    /// F2FS: segments of a section.
    SegmentsPerSection,
    /// NILFS2: blocks of a segment.
    BlocksPerSegment,
    /// XFS: stripe unit in bytes.
    StripeUnitBytes,
    /// XFS: stripe width in bytes.
    StripeBytes,
    /// XFS: bytes of an allocation group.
    GroupBytes,
    /// FAT: sectors before the first table.
    ReservedSectors,
    /// FAT: bits of an entry.
    FatBits,
    /// Where data begin, in bytes from the begin of the partition.
    DataOffset,
    /// Bytes that the filesystem covers.
    Bytes,
}

impl SuperblockFigure {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            SuperblockFigure::BlockBytes => "block size",
            SuperblockFigure::ClusterBytes => "cluster",
            SuperblockFigure::Stride => "stride (blocks)",
            SuperblockFigure::StripeWidth => "stripe width (blocks)",
            SuperblockFigure::SegmentsPerSection => "segments per section",
            SuperblockFigure::BlocksPerSegment => "blocks per segment",
            SuperblockFigure::StripeUnitBytes => "stripe unit",
            SuperblockFigure::StripeBytes => "stripe width",
            SuperblockFigure::GroupBytes => "allocation group",
            SuperblockFigure::ReservedSectors => "reserved sectors",
            SuperblockFigure::FatBits => "bits of a FAT entry",
            SuperblockFigure::DataOffset => "begin of the data area",
            SuperblockFigure::Bytes => "size",
        }
    }

    /// Whether it counts bytes.
    pub const fn is_bytes(self) -> bool {
        matches!(
            self,
            SuperblockFigure::BlockBytes
                | SuperblockFigure::ClusterBytes
                | SuperblockFigure::StripeUnitBytes
                | SuperblockFigure::StripeBytes
                | SuperblockFigure::GroupBytes
                | SuperblockFigure::DataOffset
                | SuperblockFigure::Bytes
        )
    }
}

impl Superblock {
    fn new<const N: usize>(
        candidate: &'static str,
        label: &[u8],
        figures: [(SuperblockFigure, u64); N],
    ) -> Superblock {
        let end = label
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(label.len());
        Superblock {
            candidate,
            label: String::from_utf8_lossy(&label[..end]).trim_end().to_owned(),
            figures: BTreeMap::from(figures),
        }
    }

    /// A figure; `None` if this filesystem has none such.
    pub fn figure(&self, figure: SuperblockFigure) -> Option<u64> {
        self.figures.get(&figure).copied()
    }
}

/// The filesystem that begins at `offset`; `None` if none is known.
///
/// # Errors
/// What cannot be read.
pub fn read(read: &mut ReadAt, offset: u64) -> Result<Option<Superblock>, String> {
    let mut head = read(offset, HEAD)?;
    // A short image is looked at as if zeros followed.
    head.resize(HEAD, 0);
    Ok(formats::ALL.iter().find_map(|format| format(&head)))
}

/// The figures that the mkfs commands of `recipe` ask for: what a superblock that they made has.
pub fn expected(recipe: &whichfs_fs::Recipe) -> BTreeMap<SuperblockFigure, u64> {
    let Some(argv) = recipe.mkfs.first() else {
        return BTreeMap::new();
    };
    let flag = |name: &str| {
        let at = argv.iter().position(|word| word == name)?;
        argv.get(at + 1)?.parse::<u64>().ok()
    };
    let option = |key: &str| {
        let mut options = argv.iter().flat_map(|word| word.split(','));
        let value = options.find_map(|option| option.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|value| value.parse::<u64>().ok())
    };
    let pairs: Vec<(SuperblockFigure, Option<u64>)> = match recipe.kernel_fs {
        "ext2" | "ext3" | "ext4" => vec![
            (SuperblockFigure::BlockBytes, flag("-b")),
            (SuperblockFigure::Stride, option("stride")),
            (SuperblockFigure::StripeWidth, option("stripe_width")),
        ],
        "f2fs" => vec![(SuperblockFigure::SegmentsPerSection, flag("-s"))],
        "xfs" => vec![
            (SuperblockFigure::StripeUnitBytes, option("su")),
            (
                SuperblockFigure::StripeBytes,
                option("su").zip(option("sw")).map(|(su, sw)| su * sw),
            ),
            (SuperblockFigure::GroupBytes, option("agsize")),
        ],
        "vfat" => vec![
            (SuperblockFigure::ReservedSectors, flag("-R")),
            (
                SuperblockFigure::ClusterBytes,
                flag("-s").map(|sectors| sectors * 512),
            ),
            (SuperblockFigure::FatBits, flag("-F")),
        ],
        "exfat" | "ntfs3" => vec![(SuperblockFigure::ClusterBytes, flag("-c"))],
        "nilfs2" => vec![
            (SuperblockFigure::BlockBytes, flag("-b")),
            (SuperblockFigure::BlocksPerSegment, flag("-B")),
        ],
        _ => Vec::new(),
    };
    let known = pairs.into_iter();
    known
        .filter_map(|(figure, value)| Some((figure, value?)))
        .collect()
}
