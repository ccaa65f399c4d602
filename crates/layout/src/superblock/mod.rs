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
    /// Figures that tuning decides, by the names of [`Figure`].
    pub figures: BTreeMap<Figure, u64>,
}

/// A figure of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
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

impl Figure {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Figure::BlockBytes => "block size",
            Figure::ClusterBytes => "cluster",
            Figure::Stride => "stride (blocks)",
            Figure::StripeWidth => "stripe width (blocks)",
            Figure::SegmentsPerSection => "segments per section",
            Figure::BlocksPerSegment => "blocks per segment",
            Figure::StripeUnitBytes => "stripe unit",
            Figure::StripeBytes => "stripe width",
            Figure::GroupBytes => "allocation group",
            Figure::ReservedSectors => "reserved sectors",
            Figure::FatBits => "bits of a FAT entry",
            Figure::DataOffset => "begin of the data area",
            Figure::Bytes => "size",
        }
    }

    /// Whether it counts bytes.
    pub const fn is_bytes(self) -> bool {
        matches!(
            self,
            Figure::BlockBytes
                | Figure::ClusterBytes
                | Figure::StripeUnitBytes
                | Figure::StripeBytes
                | Figure::GroupBytes
                | Figure::DataOffset
                | Figure::Bytes
        )
    }
}

impl Superblock {
    fn new<const N: usize>(
        candidate: &'static str,
        label: &[u8],
        figures: [(Figure, u64); N],
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
    pub fn figure(&self, figure: Figure) -> Option<u64> {
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
pub fn expected(recipe: &whichfs_fs::Recipe) -> BTreeMap<Figure, u64> {
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
    let pairs: Vec<(Figure, Option<u64>)> = match recipe.kernel_fs {
        "ext2" | "ext3" | "ext4" => vec![
            (Figure::BlockBytes, flag("-b")),
            (Figure::Stride, option("stride")),
            (Figure::StripeWidth, option("stripe_width")),
        ],
        "f2fs" => vec![(Figure::SegmentsPerSection, flag("-s"))],
        "xfs" => vec![
            (Figure::StripeUnitBytes, option("su")),
            (
                Figure::StripeBytes,
                option("su").zip(option("sw")).map(|(su, sw)| su * sw),
            ),
            (Figure::GroupBytes, option("agsize")),
        ],
        "vfat" => vec![
            (Figure::ReservedSectors, flag("-R")),
            (
                Figure::ClusterBytes,
                flag("-s").map(|sectors| sectors * 512),
            ),
            (Figure::FatBits, flag("-F")),
        ],
        "exfat" | "ntfs3" => vec![(Figure::ClusterBytes, flag("-c"))],
        "nilfs2" => vec![
            (Figure::BlockBytes, flag("-b")),
            (Figure::BlocksPerSegment, flag("-B")),
        ],
        _ => Vec::new(),
    };
    let known = pairs.into_iter();
    known
        .filter_map(|(figure, value)| Some((figure, value?)))
        .collect()
}
