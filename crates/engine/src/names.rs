//! Unknown names: what may have been meant.

/// Most names that a message lists.
const LISTED_MAX: usize = 24;

/// "unknown KIND 'NAME'", with the nearest of `names`.
pub fn unknown(kind: &str, name: &str, names: &[&str]) -> String {
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), *known))
        .filter(|(distance, known)| *distance <= known.len().max(3) / 2 || known.contains(name))
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.into_iter().take(3).map(|(_, known)| known).collect();
    let meant = match near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    };
    let listed = match names.len() {
        0..=LISTED_MAX => names.join(", "),
        many => format!(
            "{}, … ({many} in all: whichfs {kind} list)",
            names[..LISTED_MAX].join(", ")
        ),
    };
    let end = if meant.is_empty() { "." } else { "" };
    format!("unknown {kind} '{name}'{meant}{end} There are: {listed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_and_far_ones_listed() {
        let names = ["a1-32gb", "class4-4gb", "emmc-8gb"];
        let text = unknown("card", "a1-32g", &names);
        assert!(text.contains("did you mean a1-32gb?"), "{text}");
        let text = unknown("card", "zzzzzzzzzzz", &names);
        assert!(
            !text.contains("mean") && text.contains("emmc-8gb"),
            "{text}"
        );
    }
}
