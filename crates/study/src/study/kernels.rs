//! Kernels of a study: each of its variants is run on each of them.

use super::keys::own_name;
use super::{StudyWorkload, Variant};
use toml::Spanned;
use whichfs_decide::{FileError, Position};

/// The versions that a study names, each once; empty for the lab's own.
pub(super) fn kernels(at: &Position, given: &[Spanned<String>]) -> Result<Vec<String>, FileError> {
    let mut found: Vec<String> = Vec::new();
    for version in given {
        if !is_version(version.get_ref()) {
            let what = format!("'{}'", version.get_ref());
            let legal = "versions of which the lab has a kernel, like [\"6.12\", \"6.1\"], \
                         or with other options, like \"6.12-squashfs-4k\" (kernel/options)";
            return Err(at.error(version, "kernel", what, legal));
        }
        let others: Vec<&str> = found.iter().map(String::as_str).collect();
        found.push(own_name(at, "kernel", version, &others)?);
    }
    Ok(found)
}

/// Two whole numbers with a point between: `6.1`; with other options of the build, a hyphen and
/// their name: `6.12-squashfs-4k`.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let (series, options) = text.split_once('-').unwrap_or((text, "none"));
    let named = !options.is_empty() && options.bytes().all(letter);
    named
        && series
            .split_once('.')
            .is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Each of `variants` on each of `kernels`, which stands in its name; `loads` that are run with
/// some variants only are run with those on each kernel.
pub(super) fn on_each(
    kernels: &[String],
    variants: Vec<Variant>,
    loads: &mut [StudyWorkload],
) -> Vec<Variant> {
    if kernels.is_empty() {
        return variants;
    }
    for load in loads {
        let mounts = std::mem::take(&mut load.only_variants);
        let named = |mount: &String| {
            let mount = mount.clone();
            kernels.iter().map(move |kernel| on(&mount, kernel))
        };
        load.only_variants = mounts.iter().flat_map(named).collect();
    }
    let each = |variant: &Variant| {
        let variant = variant.clone();
        kernels.iter().map(move |kernel| Variant {
            name: on(&variant.name, kernel),
            kernel: Some(kernel.clone()),
            ..variant.clone()
        })
    };
    variants.iter().flat_map(each).collect()
}

/// The name of the variant `name` on `kernel`.
fn on(name: &str, kernel: &str) -> String {
    match name.is_empty() {
        true => kernel.to_owned(),
        false => format!("{name}, {kernel}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers_and_maybe_a_name_of_options() {
        for good in ["6.12", "6.1", "10.0", "6.12-squashfs-4k"] {
            assert!(is_version(good), "{good}");
        }
        for bad in [
            "6", "6.", ".1", "6.1.5", "6.1-", "6.1-RC", "", "../6.1", "6.1-../x",
        ] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
