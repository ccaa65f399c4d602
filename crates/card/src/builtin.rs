//! The profiles that ship with the program (`cards/*.toml`).

/// Name → text of every shipped profile, by name.
static BUILTIN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/cards.rs"));

/// The shipped profiles: (name, TOML text), sorted by name.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}
