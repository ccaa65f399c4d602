//! The profiles that ship with the program (`cards/*.toml`).

/// Name → text of every shipped profile, by name.
static BUILTIN: &[(&str, &str)] = &[
    ("a1-32gb", include_str!("../../../cards/a1-32gb.toml")),
    (
        "class10-16gb",
        include_str!("../../../cards/class10-16gb.toml"),
    ),
    ("class4-4gb", include_str!("../../../cards/class4-4gb.toml")),
    ("emmc-8gb", include_str!("../../../cards/emmc-8gb.toml")),
    ("usb-32gb", include_str!("../../../cards/usb-32gb.toml")),
];

/// The shipped profiles: (name, TOML text), sorted by name.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}
