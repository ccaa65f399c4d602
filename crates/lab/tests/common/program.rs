//! First programs that do one thing wrong: static ELF programs of a few instructions, so
//! that no compiler is needed. User Mode Linux, and therefore the lab, is x86-64 only.

use std::io::Write;
use whichfs_lab::Agent;

/// `exit(0)`: the kernel panics when its first program ends.
pub const EXIT: &[u8] = &[
    0xb8, 60, 0, 0, 0, // mov eax, exit
    0x31, 0xff, // xor edi, edi
    0x0f, 0x05, // syscall
];

/// A jump to itself.
pub const SPIN: &[u8] = &[0xeb, 0xfe];

/// `pause()` for ever: no timer, no request.
pub const PAUSE: &[u8] = &[
    0xb8, 34, 0, 0, 0, // mov eax, pause
    0x0f, 0x05, // syscall
    0xeb, 0xf7, // back
];

/// `reboot(POWER_OFF)` before anything was done.
pub const POWER_OFF: &[u8] = &[
    0xb8, 169, 0, 0, 0, // mov eax, reboot
    0xbf, 0xad, 0xde, 0xe1, 0xfe, // mov edi, magic
    0xbe, 0x69, 0x19, 0x12, 0x28, // mov esi, magic2
    0xba, 0xdc, 0xfe, 0x21, 0x43, // mov edx, power off
    0x0f, 0x05, // syscall
    0xeb, 0xfe, // not reached
];

/// Sleeps 1000 s, again and again.
pub const DOZE: &[u8] = &[
    0x6a, 0x00, // push 0: nanoseconds
    0x68, 0xe8, 0x03, 0x00, 0x00, // push 1000: seconds
    0x48, 0x89, 0xe7, // mov rdi, rsp
    0x31, 0xf6, // xor esi, esi
    0xb8, 35, 0, 0, 0, // mov eax, nanosleep
    0x0f, 0x05, // syscall
    0x58, 0x58, // pop rax; pop rax
    0xeb, 0xe9, // back
];

/// `write(1, program, 200)` for ever.
pub const FLOOD: &[u8] = &[
    0xbf, 1, 0, 0, 0, // mov edi, 1
    0xbe, 0x00, 0x00, 0x40, 0x00, // mov esi, 0x400000: the program itself
    0xba, 200, 0, 0, 0, // mov edx, 200
    0xb8, 1, 0, 0, 0, // mov eax, write
    0x0f, 0x05, // syscall
    0xeb, 0xe8, // back
];

/// An agent that consists of `code`.
pub fn agent_of(code: &[u8]) -> Agent {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    const BYTES: u64 = 4096;
    let mut elf = Vec::new();
    elf.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    for half in [2_u16, 62] {
        elf.extend_from_slice(&half.to_le_bytes()); // executable, x86-64
    }
    elf.extend_from_slice(&1_u32.to_le_bytes());
    for word in [BASE + HEADERS, 64, 0] {
        elf.extend_from_slice(&word.to_le_bytes()); // entry, program headers, no sections
    }
    elf.extend_from_slice(&0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 64, 0, 0] {
        elf.extend_from_slice(&half.to_le_bytes());
    }
    for word in [1_u32, 5] {
        elf.extend_from_slice(&word.to_le_bytes()); // PT_LOAD, readable and executable
    }
    for word in [0, BASE, BASE, BYTES, BYTES, 0x1000] {
        elf.extend_from_slice(&word.to_le_bytes());
    }
    elf.extend_from_slice(code);
    elf.resize(BYTES as usize, b' ');
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&elf).unwrap();
    Agent::open(file.path()).unwrap()
}
