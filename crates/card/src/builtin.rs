//! The profiles that ship with the program (`cards/*.toml`).

/// A profile of `cards/` by its name.
macro_rules! card {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../cards/", $name, ".toml")),
        )
    };
}

/// Name → text of every shipped profile, by name.
static BUILTIN: &[(&str, &str)] = &[
    card!("a1-32gb"),
    card!("a2-64gb"),
    card!("a2-cq-64gb"),
    card!("amazon-basics-64gb"),
    card!("armsom-sige5-emmc-64gb"),
    card!("class10-16gb"),
    card!("class4-4gb"),
    card!("class6-8gb"),
    card!("emmc-8gb"),
    card!("emmc51-64gb"),
    card!("extrememory-performance-class6-16gb"),
    card!("kingston-class10-16gb"),
    card!("kingston-class10-u1-16gb"),
    card!("kingston-sa04g-fw3-4gb"),
    card!("kioxia-exceria-g2-128gb"),
    card!("kodak-ultra-performance-64gb"),
    card!("lexar-class10-16gb"),
    card!("lexar-professional-a2-128gb"),
    card!("micron-mtfc4-emmc-4gb"),
    card!("ncard-4gb"),
    card!("ncard-8gb"),
    card!("ncard-unit2-8gb"),
    card!("noname-odroid-4gb"),
    card!("noname-pastebin-32gb"),
    card!("noname-usb-2gb"),
    card!("noobs-class6-8gb"),
    card!("panasonic-class10-16gb"),
    card!("patriot-xporter-xt-boost-16gb"),
    card!("phison-sd4gb-4gb"),
    card!("platinum-class10-64gb"),
    card!("pqi-class10-32gb"),
    card!("raspberry-pi-a2-32gb"),
    card!("raspberry-pi-a2-64gb"),
    card!("raspberry-pi-a2-cq-64gb"),
    card!("samsung-evo-16gb"),
    card!("samsung-evo-plus-32gb"),
    card!("samsung-evo-plus-64gb"),
    card!("samsung-pro-16gb"),
    card!("samsung-pro-endurance-32gb"),
    card!("samsung-pro-plus-128gb"),
    card!("samsung-pro-plus-32gb"),
    card!("sandisk-extreme-16gb"),
    card!("sandisk-extreme-64gb"),
    card!("sandisk-extreme-cq-64gb"),
    card!("sandisk-extreme-pro-128gb"),
    card!("sandisk-extreme-pro-8gb"),
    card!("sandisk-extreme-pro-a1-32gb"),
    card!("sandisk-extreme-u3-a2-64gb"),
    card!("sandisk-high-endurance-64gb"),
    card!("sandisk-mobile-ultra-class10-16gb"),
    card!("sandisk-su04g-4gb"),
    card!("sandisk-su04g-unit2-4gb"),
    card!("sandisk-ultra-16gb"),
    card!("sandisk-ultra-32gb"),
    card!("sandisk-ultra-64gb"),
    card!("sd-nand-csnp4g-512mb"),
    card!("sd4gb-maker-03-4gb"),
    card!("silicongo-spemmc-8gb"),
    card!("sony-class10-16gb"),
    card!("sony-class10-u3-32gb"),
    card!("toshiba-class10-u1-16gb"),
    card!("transcend-usd-8gb"),
    card!("u1-32gb"),
    card!("u3-64gb"),
    card!("usb-32gb"),
    card!("usb2-reader-a1-32gb"),
];

/// The shipped profiles: (name, TOML text), sorted by name.
pub fn builtin() -> &'static [(&'static str, &'static str)] {
    BUILTIN
}
