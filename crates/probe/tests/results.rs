//! What the documentation says of the probe is what the kept results of the soak test say.
#![allow(clippy::unwrap_used)]

const RESULTS: &str = include_str!("soak-2026-11-22.txt");
const LIMITS: &str = include_str!("../../../docs/limits.md");

/// The percentage that ends each line of `name`: families and other cards in turns.
fn shares(name: &str) -> (Vec<f64>, Vec<f64>) {
    let rows = RESULTS.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.first() == Some(&name)).then(|| words[words.len() - 3].parse().unwrap())
    });
    let rows: Vec<f64> = rows.collect();
    let pairs = rows.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    pairs.unzip()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn limits_state_the_results() {
    let (families, others) = shares("all");
    let (_, others_au) = shares("au_bytes");
    let wrong = RESULTS.lines().filter_map(|line| {
        let percent = line.strip_suffix(" %) wrong though sure")?;
        percent.rsplit('(').next()?.parse::<f64>().ok()
    });
    let wrong: Vec<f64> = wrong.collect();
    assert_eq!((families.len(), others.len(), wrong.len()), (6, 6, 6));
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min).floor();
    let most = wrong.iter().copied().fold(0.0, f64::max).ceil();
    let stated = format!(
        "right on {} of 100 values of random modelled cards of its three families, on {} of 100 \
         of cards outside of them (the AU on {:.0} of 10), and wrong though sure on at most {most} \
         in 100 of all",
        least(&families),
        least(&others),
        mean(&others_au) / 10.0
    );
    let limits = LIMITS.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(limits.contains(&stated), "{stated}");
}
