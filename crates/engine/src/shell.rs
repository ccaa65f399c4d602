//! Words as a shell takes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use whichfs_units::shell_word;

/// `word`, which may be no text, quoted where a shell (bash, zsh, ksh) needs it.
pub fn quoted_os(word: &OsStr) -> String {
    let Some(text) = word.to_str() else {
        let bytes = word.as_bytes().iter();
        let escaped: String = bytes.map(|byte| format!("\\x{byte:02x}")).collect();
        return format!("$'{escaped}'");
    };
    shell_word(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_text_is_told_by_its_bytes() {
        assert_eq!(quoted_os(OsStr::new("a b")), "'a b'");
        assert_eq!(quoted_os(OsStr::from_bytes(b"t\xff")), r"$'\x74\xff'");
    }
}
