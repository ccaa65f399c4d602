//! Eight bits of what was written flip, each in a write of equal chance: what is written often, as
//! a journal, is hit often.

use crate::fault::{Acts, AfterCut, Effect, FaultEvidence, FaultFacts, Model};
use whichfs_blockdev::Logged;
use whichfs_card::{Contents, ContentsError, RequestKind};
use whichfs_units::{Rng, SECTOR};

/// Bits that rot.
const BITS: usize = 8;

pub(super) const FAULT: Model = Model {
    number: 13,
    facts: FaultFacts {
        name: "bit-rot",
        meaning: "eight written bits flip",
        acts: Acts::WithoutCut,
        evidence: FaultEvidence::Published,
        source: "SSDs: Zheng et al., FAST'13, bit corruption",
    },
    excludes: &[],
    effect: Effect::Contents(flip_bits),
};

fn flip_bits(
    contents: &mut Contents,
    cut: &AfterCut<'_>,
    rng: &mut Rng,
) -> Result<(), ContentsError> {
    let writes: Vec<&Logged> = cut
        .seen
        .iter()
        .filter(|r| r.op == RequestKind::Write)
        .collect();
    for _ in 0..BITS.min(writes.len()) {
        let request = writes[rng.below(writes.len() as u64) as usize];
        let offset = request.offset + rng.below(request.bytes / SECTOR) * SECTOR;
        let mut sector = [0; SECTOR as usize];
        contents.read(offset, &mut sector)?;
        sector[rng.below(SECTOR) as usize] ^= 1 << rng.below(8);
        contents.write(offset, &sector)?;
    }
    Ok(())
}
