//! The two orders in which flashbench goes through blocks.

/// One after the other.
pub(super) fn in_order(count: u64) -> Vec<u64> {
    (0..count).collect()
}

/// `O_OFF_RAND`: by a shift register of at least eight bits that starts at zero and skips
/// numbers beyond `count`. Equal counts give the same order, in every pass.
pub(super) fn shuffled(count: u64) -> Vec<u64> {
    let bits = (u64::BITS - count.leading_zeros()).max(8);
    let mut at = 0;
    let next = |at: &mut u64| {
        *at = step(*at, bits);
        *at
    };
    (0..count)
        .map(|_| {
            while next(&mut at) >= count {}
            at
        })
        .collect()
}

/// The register's next state. Zero is put between the seed and its successor, so that all
/// numbers of `bits` bits come up.
fn step(state: u64, bits: u32) -> u64 {
    let seed = 0xace1 & ((1 << bits) - 1);
    if state == seed {
        return 0;
    }
    let state = if state == 0 { seed } else { state };
    let bit = taps(bits).iter().fold(0, |bit, tap| bit ^ state >> tap) & 1;
    state >> 1 | bit << (bits - 1)
}

/// Positions of the bits that are fed back, of polynomials with the longest period (except
/// for 12 bits, whose taps are as they are there).
fn taps(bits: u32) -> &'static [u32] {
    match bits {
        8 => &[0, 2, 3, 4],
        9 => &[0, 4],
        10 => &[0, 3],
        11 => &[0, 2],
        12 => &[0, 1, 2, 8],
        13 => &[0, 1, 2, 5],
        14 => &[0, 1, 2, 12],
        15 => &[0, 1],
        _ => &[0, 2, 3, 5],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orders_are_flashbenchs() {
        // Printed by the register of vm.c, compiled on its own.
        assert_eq!(shuffled(4), [2, 1, 3, 0]);
        assert_eq!(shuffled(7), [6, 5, 2, 1, 3, 4, 0]);
        let sixteen = [8, 12, 6, 10, 15, 11, 5, 2, 1, 14, 7, 3, 9, 4, 13, 0];
        assert_eq!(shuffled(16), sixteen);
        assert_eq!(in_order(3), [0, 1, 2]);
    }

    #[test]
    fn every_block_comes_up_once() {
        for count in (1..600).chain([1024, 2048, 4096]) {
            let mut blocks = shuffled(count);
            blocks.sort_unstable();
            assert_eq!(blocks, in_order(count), "{count}");
        }
    }
}
