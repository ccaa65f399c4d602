//! How a system call of a [`crate::batch`] enters this machine's kernel: 32-bit processors have
//! other calls for 64-bit sizes, and hand those over in two registers.

#[cfg(target_pointer_width = "64")]
pub use wide::*;
#[cfg(target_pointer_width = "64")]
mod wide {
    /// What the calls below tell of a file.
    pub type Stat = libc::stat;
    /// Attributes of an open file.
    pub const FSTAT: i64 = libc::SYS_fstat;
    /// Attributes of a path.
    pub const FSTATAT: i64 = libc::SYS_newfstatat;
    /// Advice: file, offset, length, which.
    pub const FADVISE: i64 = libc::SYS_fadvise64;
    /// Every open file may be large.
    pub const LARGE: i64 = 0;

    /// The registers of call `number` with `arguments`.
    pub fn registers(_number: i64, arguments: [i64; 6]) -> [libc::c_long; 6] {
        arguments
    }
}

#[cfg(target_arch = "arm")]
pub use narrow::*;
#[cfg(any(target_arch = "arm", test))]
#[cfg_attr(not(target_arch = "arm"), allow(dead_code, unused_imports))]
mod narrow {
    #[cfg(target_arch = "arm")]
    mod calls {
        pub type Stat = libc::stat64;
        pub const FSTAT: i64 = libc::SYS_fstat64 as i64;
        pub const FSTATAT: i64 = libc::SYS_fstatat64 as i64;
        pub const FADVISE: i64 = libc::SYS_arm_fadvise64_64 as i64;
        pub const LARGE: i64 = libc::O_LARGEFILE as i64;
        pub const OF_OFFSETS: [i64; 2] = [libc::SYS_pread64 as i64, libc::SYS_pwrite64 as i64];
    }
    /// The same numbers where the layout is tested only.
    #[cfg(not(target_arch = "arm"))]
    mod calls {
        pub const FADVISE: i64 = 270;
        pub const OF_OFFSETS: [i64; 2] = [180, 181];
    }
    pub use calls::*;

    /// The registers of call `number` with `arguments`: a 64-bit value lies in an even one and the
    /// next, and advice comes before its range (Documentation of the ABI in syscall(2)).
    pub fn registers(number: i64, arguments: [i64; 6]) -> [i32; 6] {
        let [a, b, c, d, e, f] = arguments;
        let (low, high) = (|value: i64| value as i32, |value: i64| (value >> 32) as i32);
        if number == FADVISE {
            return [low(a), low(d), low(b), high(b), low(c), high(c)];
        }
        if OF_OFFSETS.contains(&number) {
            return [low(a), low(b), low(c), 0, low(d), high(d)];
        }
        [a, b, c, d, e, f].map(low)
    }
}

#[cfg(test)]
mod tests {
    use super::narrow;

    #[test]
    fn an_offset_of_64_bits_takes_two_registers_of_32() {
        let offset = 5 + (7 << 32);
        let written = narrow::registers(181, [3, 0xf000_0000, 9, offset, 0, 0]);
        assert_eq!(written, [3, 0xf000_0000_u32 as i32, 9, 0, 5, 7]);
        let advised = narrow::registers(narrow::FADVISE, [3, offset, 1 << 33, 4, 0, 0]);
        assert_eq!(advised, [3, 4, 5, 7, 0, 2]);
        assert_eq!(narrow::registers(3, [1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
    }
}
