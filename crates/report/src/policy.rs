//! The page's content security policy: nothing is loaded, and no script runs but the page's own.

use sha2::{Digest, Sha256};

/// The script of a verdict's page.
pub(crate) const SCRIPT: &str = include_str!("../templates/report.js");

/// A policy that lets `script` run as it stands here, and no other.
pub(crate) fn policy(script: &str) -> String {
    let digest = base64(&Sha256::digest(script.as_bytes()));
    format!("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 63;
            match place <= group.len() {
                true => out.push(char::from(ALPHABET[sextet as usize])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_standard() {
        let check = |plain: &str, coded: &str| assert_eq!(base64(plain.as_bytes()), coded);
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
    }
}
