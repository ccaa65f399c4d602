//! A command without some of its arguments, which are a choice and no need.

/// `argv` without some of its arguments. Each of `patterns` is `key=*`, one of the options
/// between commas; or words that follow each other, of which `*` stands for any end.
pub(crate) fn without(argv: &[String], patterns: &[&str]) -> Vec<String> {
    let mut left = argv.to_vec();
    for pattern in patterns {
        match pattern.strip_suffix("=*") {
            Some(key) => drop_option(&mut left, key),
            None => drop_words(&mut left, pattern),
        }
    }
    left
}

/// Takes `key=…` out of lists with commas.
fn drop_option(argv: &mut [String], key: &str) {
    for word in argv {
        let is = |option: &&str| option.split_once('=').is_none_or(|(name, _)| name != key);
        let kept: Vec<&str> = word.split(',').filter(is).collect();
        *word = kept.join(",");
    }
}

/// Takes the words of `pattern` out where they follow each other for the first time.
fn drop_words(argv: &mut Vec<String>, pattern: &str) {
    let pattern: Vec<&str> = pattern.split(' ').collect();
    let is = |window: &[String]| {
        let mut pairs = window.iter().zip(&pattern);
        pairs.all(|(word, wanted)| match wanted.strip_suffix('*') {
            Some(begin) => word.starts_with(begin),
            None => word == wanted,
        })
    };
    if let Some(at) = argv.windows(pattern.len()).position(is) {
        argv.drain(at..at + pattern.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_left_out_by_option_key_and_words() {
        let argv = "mke2fs -b 4096 -E stride=2,nodiscard -O ^x {device}"
            .split(' ')
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let left = |patterns| without(&argv, patterns).join(" ");
        assert_eq!(
            left(&["-b *"]),
            "mke2fs -E stride=2,nodiscard -O ^x {device}"
        );
        assert_eq!(
            left(&["stride=*"]),
            "mke2fs -b 4096 -E nodiscard -O ^x {device}"
        );
        assert_eq!(left(&["-O ^y", "-q"]), argv.join(" "));
        assert_eq!(left(&["-E str*"]), "mke2fs -b 4096 -O ^x {device}");
    }
}
