//! What ext2, ext3 and ext4 share: one mke2fs command.
//!
//! Two traps shape it. Images under 512 MiB get 1 KiB blocks unless told otherwise, and stride
//! counts blocks: `-b 4096` is always there. A later `-E` replaces an earlier one: there is
//! exactly one.

use crate::arguments::{gcd, join, lab_env, lab_only, uuid, words};
use crate::model::{Geometry, Purpose, Recipe, Unfit};
use whichfs_units::Bytes;

/// Block size of every ext filesystem we make, in bytes.
pub(crate) const BLOCK: u64 = 4096;
/// Blocks of a block group: what one 4 KiB bitmap block describes.
const GROUP_BLOCKS: u64 = 8 * BLOCK;

/// What tells one member of the family from another.
pub(crate) struct Variant {
    /// Type for `mke2fs -t`.
    pub mke2fs_type: &'static str,
    /// Features for `-O`; none if empty.
    pub features: &'static str,
    /// Name in the kernel.
    pub kernel_fs: &'static str,
    /// Comma-separated, as in fstab.
    pub mount_options: &'static str,
}

/// Stride and stripe width in blocks: the write unit and the AU.
///
/// mke2fs wants whole strides in a stripe, so the stride is what divides both.
pub(crate) fn stripe(geometry: &Geometry) -> (u64, u64) {
    let stripe = (geometry.au_bytes / BLOCK).max(1);
    let unit = (geometry.write_unit_bytes / BLOCK).max(1);
    (gcd(unit, stripe), stripe)
}

/// The commands of a member of the family.
pub(crate) fn recipe(
    variant: &Variant,
    geometry: &Geometry,
    purpose: Purpose,
) -> Result<Recipe, Unfit> {
    let (stride, stripe_width) = stripe(geometry);
    let discard = if geometry.discard {
        "discard"
    } else {
        "nodiscard"
    };
    let mut extended = format!(
        "stride={stride},stripe_width={stripe_width},\
         lazy_itable_init=0,lazy_journal_init=0,{discard}"
    );
    // The hash seed orders directories, so it is drawn before the UUID and from the same stream.
    for hash_seed in lab_only(purpose, uuid) {
        extended.push_str(&format!(",hash_seed={hash_seed}"));
    }
    let identity = lab_only(purpose, |rng| {
        let _hash_seed = uuid(rng);
        format!("-U {}", uuid(rng))
    });
    let features = match variant.features {
        "" => Vec::new(),
        features => words(&format!("-O {features}")),
    };
    let mkfs = join([
        words("mke2fs"),
        // Without -F a person at a terminal is asked before a filesystem is overwritten.
        lab_only(purpose, |_| "-F".to_owned()),
        words(&format!("-q -t {} -b {BLOCK} -I 256", variant.mke2fs_type)),
        features,
        words(&format!("-E {extended}")),
        identity,
        words(Recipe::DEVICE),
    ]);
    Ok(Recipe {
        mkfs: vec![mkfs],
        mkfs_env: lab_env(purpose, &["E2FSPROGS_FAKE_TIME"]),
        kernel_fs: variant.kernel_fs,
        mount_options: variant.mount_options.to_owned(),
        fsck_check: words("e2fsck -f -n {device}"),
        fsck_repair: words("e2fsck -f -y {device}"),
        fsck_rescue: Vec::new(),
        fstab_options: variant.mount_options.to_owned(),
        fstab_passno: 2,
        tools: vec!["mke2fs", "e2fsck"],
        tuning: tuning(geometry, stride, stripe_width),
        chosen: &["-b *", "-I *", "stride=*", "stripe_width=*"],
        ..Recipe::default()
    })
}

fn tuning(geometry: &Geometry, stride: u64, stripe_width: u64) -> Vec<(String, String)> {
    let mut tuning = vec![
        (
            format!("stripe_width={stripe_width} blocks of 4 KiB"),
            format!(
                "the allocator starts large files on allocation units of {}",
                Bytes(geometry.au_bytes)
            ),
        ),
        (
            format!("stride={stride} blocks of 4 KiB"),
            format!(
                "bitmaps and tables are spread by what the card programs at once, {}",
                Bytes(geometry.write_unit_bytes)
            ),
        ),
        (
            "lazy_itable_init=0,lazy_journal_init=0".to_owned(),
            "mkfs writes all tables, so nothing is zeroed behind the first mount".to_owned(),
        ),
        ("noatime".to_owned(), crate::model::WHY_NOATIME.to_owned()),
    ];
    if !GROUP_BLOCKS.is_multiple_of(stripe_width) {
        tuning.push((
            "groups are not whole allocation units".to_owned(),
            format!(
                "a block group has {}, no multiple of {}: files at a group's edge share an \
                 allocation unit with the next group",
                Bytes(GROUP_BLOCKS * BLOCK),
                Bytes(geometry.au_bytes)
            ),
        ));
    }
    tuning
}
