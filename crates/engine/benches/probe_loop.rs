//! What a probe loses: filesystems on a modelled card beside the same on cards that agree with what
//! a probe of this card knows.
//!
//! `cargo bench -p whichfs-engine --bench probe_loop -- CARDS [PROGRAM]` (40 cards). Every other
//! card, as long as there are any, is a member of the population (fits of measured cards, and cards
//! that agree with measured rates), left out of the prior of its own inference; the rest are drawn
//! from the prior of which nothing is known but the size. Nothing but the probe stands between the
//! two.
//!
//! The probe runs on the model. With PROGRAM, a whichfs, it runs as its users run it: `card attach`
//! makes each card a block device of this machine, in real time, one after the other (root).

mod trials;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use trials::{Failure, Figures};
use whichfs_card::{Card, Interface, Profile};
use whichfs_curves::Modelled;
use whichfs_engine::workload_run::WorkloadRun;
use whichfs_posterior::{InferenceOptions, Knowledge, Population, infer};
use whichfs_probe::{ProbeOptions, Silent, Writing, probe};

const FILESYSTEMS: [&str; 4] = ["ext4", "f2fs", "btrfs", "xfs"];
const METRICS: [&str; 6] = [
    "tree_write",
    "tree_read",
    "rewrite",
    "random_update",
    "random_update_p99",
    "delete",
];
/// Seeds, each with a sample of its own, whose geometric mean a figure of the probed card is.
const SEEDS: u64 = 3;
/// Cards of a posterior, from which these are taken: fewer than the command draws, in a sixth of
/// the time.
const DRAWN: usize = 160;
/// Sizes of the cards that are drawn, in decimal gigabytes.
const SIZES_GB: [u64; 5] = [4, 8, 16, 32, 64];
/// The table of all cards so far is printed after each so many of them.
const TABLE_EVERY: usize = 20;
/// Goals of the loop: the median and the 90th percentile of ratios, and the regret.
const GOALS: [f64; 3] = [1.10, 1.5, 1.05];

/// A card and what its probe made of it.
struct Pair {
    name: String,
    family: &'static str,
    card: Figures,
    probed: Figures,
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let count = words.iter().find_map(|word| word.parse().ok());
    let program = words.iter().map(PathBuf::from).find(|path| path.is_file());
    let population = Population::shipped()?;
    let cards = cards(&population, count.unwrap_or(40))?;
    let (next, pairs) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let begin = Instant::now();
    let workers = match program {
        Some(_) => 1,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, card)) = cards.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let found = pair(&population, name, card, program.as_deref());
                    let mut pairs = pairs.lock().unwrap_or_else(PoisonError::into_inner);
                    match found {
                        Ok(pair) => pairs.push(pair),
                        Err(error) => println!("{name}: left out: {error}"),
                    }
                    told_so_far(&pairs, cards.len(), begin.elapsed());
                    // A run that is ended early has told what it found.
                    if pairs.len() % TABLE_EVERY == 0 && pairs.len() < cards.len() {
                        tell(&pairs);
                    }
                }
            });
        }
    });
    tell(&pairs.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// `count` cards: every second a member of the population, each physical card once before any
/// comes again; the others drawn from the prior.
fn cards(population: &Population, count: usize) -> Result<Vec<(String, Profile)>, Failure> {
    let mut members: Vec<_> = population.members.iter().enumerate().collect();
    let turn = |at: usize| {
        let earlier = &population.members[..at];
        let card = &population.members[at].card;
        earlier.iter().filter(|other| other.card == *card).count()
    };
    members.sort_by_key(|(at, _)| (turn(*at), *at));
    let mut drawn = Vec::new();
    for gb in SIZES_GB {
        let bytes = gb * 1_000_000_000 / (4 << 20) * (4 << 20);
        let nothing = Knowledge::of("drawn", Interface::Sd, bytes);
        let options = InferenceOptions {
            samples: count.div_ceil(SIZES_GB.len()).max(4),
            ..InferenceOptions::default()
        };
        drawn.push(infer(population, &nothing, &options)?.samples().to_vec());
    }
    let of_prior = |at: usize| {
        let of_size = &drawn[at % SIZES_GB.len()];
        of_size[at / SIZES_GB.len() % of_size.len()].clone()
    };
    // One by one until the members end.
    let drawn_before = |at: usize| at - at.div_ceil(2).min(members.len());
    let cards = (0..count).map(|at| match members.get(at / 2) {
        Some((_, member)) if at % 2 == 0 => (member.id.clone(), member.profile.clone()),
        _ => {
            let before = drawn_before(at);
            (format!("drawn {before}"), of_prior(before))
        }
    });
    Ok(cards.collect())
}

/// `card`, and what is inferred from a probe of it, from `population` without itself.
fn pair(
    population: &Population,
    name: &str,
    card: &Profile,
    program: Option<&Path>,
) -> Result<Pair, Failure> {
    let text = match program {
        Some(program) => probed_in_real_time(program, card)?,
        None => {
            let mut device = Modelled::new(Card::used(card, 1), card.capacity_bytes());
            let options = ProbeOptions {
                seed: 1,
                writing: Writing::Preserve,
                ..ProbeOptions::default()
            };
            probe(&mut device, &options, &mut Silent).to_profile()?
        }
    };
    let profile = Profile::parse(name, &text)?;
    let knowledge = Knowledge::within(name, &text)?.ok_or("the probe knows no rate")?;
    let member = population.members.iter().find(|member| member.id == name);
    let others = member.map_or_else(|| population.clone(), |own| population.without(&own.card));
    let options = InferenceOptions {
        samples: DRAWN,
        ..InferenceOptions::default()
    };
    let found = infer(&others, &knowledge, &options)?.completed_by(&profile)?;
    let mut probed = Figures::new();
    for seed in 1..=SEEDS {
        for (key, (value, more)) in figures(found.sample(seed))? {
            let mean = probed.entry(key).or_insert((1.0, more));
            mean.0 *= value.max(f64::MIN_POSITIVE).powf(1.0 / SEEDS as f64);
        }
    }
    Ok(Pair {
        name: name.to_owned(),
        family: card.family().name(),
        card: figures(card)?,
        probed,
    })
}

/// The profile that `program` saves when it probes `card`, which it attaches to this machine.
fn probed_in_real_time(program: &Path, card: &Profile) -> Result<String, Failure> {
    let directory = tempfile::tempdir()?;
    let (file, saved) = (
        directory.path().join("card.toml"),
        directory.path().join("probed.toml"),
    );
    let mut text = format!(
        "title = 'of the loop'\ninterface = {}\nfamily = '{}'\ncomposed = false\n",
        serde_json::to_string(&card.interface())?,
        card.family().name()
    );
    for figure in card.figures() {
        text += &format!(
            "{} = {{ value = {}, source = 'the loop', uncertainty_percent = 0 }}\n",
            figure.path, figure.value
        );
    }
    std::fs::write(&file, text)?;
    let run = format!(
        "'{}' probe \"$WHICHFS_DEVICE\" --write --quiet --save '{}'",
        program.display(),
        saved.display()
    );
    let output = Command::new(program)
        .args(["card", "attach"])
        .arg(&file)
        .args(["--run", &run])
        .output()?;
    std::fs::read_to_string(saved)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// The six figures of each filesystem on `card`.
fn figures(card: &Profile) -> Result<Figures, Failure> {
    let small = BTreeMap::from([("bytes".to_owned(), 24 << 20), ("files".to_owned(), 600)]);
    let work = WorkloadRun::named("rootfs", &small)?;
    let mut all = trials::figures(card, &work, &FILESYSTEMS)?;
    all.retain(|(_, metric), _| METRICS.contains(&metric.as_str()));
    Ok(all)
}

/// All figures of a card.
fn keys() -> impl Iterator<Item = (&'static str, String)> {
    let of_one = |fs: &&'static str| METRICS.map(|metric| (*fs, metric.to_owned()));
    FILESYSTEMS.iter().flat_map(of_one)
}

/// How many times the larger of two figures is the smaller.
fn apart(pair: &Pair, key: &(&'static str, String)) -> Option<f64> {
    let (a, b) = (pair.card.get(key)?.0, pair.probed.get(key)?.0);
    (a > 0.0 && b > 0.0).then(|| (a / b).max(b / a))
}

/// Prints the pair that came last, and when all are done at the speed of those that are.
fn told_so_far(pairs: &[Pair], count: usize, past: Duration) {
    let Some(last) = pairs.last() else { return };
    let [median, _, worst] = quantiles(keys().filter_map(|key| apart(last, &key)).collect());
    let left = past.as_secs_f64() / pairs.len() as f64 * count.saturating_sub(pairs.len()) as f64;
    println!(
        "{} of {count}, about {:.0} min left: {}: {median:.2} times apart, at most {worst:.2}; \
         choice {:.2} times from the best",
        pairs.len(),
        left / 60.0,
        last.name,
        regret(last).unwrap_or(f64::NAN),
    );
}

/// How good `filesystem` is by all figures: their product, rates up and times down.
fn score(of: &Figures, filesystem: &str) -> f64 {
    let own = of.iter().filter(|((name, _), _)| *name == filesystem);
    let logs = own.map(|(_, (value, more))| if *more { value.ln() } else { -value.ln() });
    (logs.sum::<f64>() / METRICS.len() as f64).exp()
}

fn best(of: &Figures) -> Option<&'static str> {
    let scored = FILESYSTEMS.iter().map(|name| (score(of, name), *name));
    scored
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// How many times better the best filesystem of the card is than the best of the probed one.
fn regret(pair: &Pair) -> Option<f64> {
    let (best, chosen) = (best(&pair.card)?, best(&pair.probed)?);
    Some(score(&pair.card, best) / score(&pair.card, chosen))
}

/// The quantiles 0.5, 0.9 and 1.
fn quantiles(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    let at = |part: f64| all.get(((all.len().max(1) - 1) as f64 * part).round() as usize);
    [0.5, 0.9, 1.0].map(|part| at(part).copied().unwrap_or(f64::NAN))
}

fn tell(pairs: &[Pair]) {
    println!(
        "{} cards; times apart: median, 90th percentile, worst",
        pairs.len()
    );
    let row = |what: &str, all: Vec<f64>| {
        let [median, ninety, worst] = quantiles(all);
        println!("{what:>20} {median:6.2} {ninety:6.2} {worst:8.2}");
    };
    for metric in METRICS {
        let all = pairs.iter().flat_map(|pair| {
            let of_metric = keys().filter(|key| key.1 == metric);
            of_metric
                .filter_map(|key| apart(pair, &key))
                .collect::<Vec<f64>>()
        });
        row(metric, all.collect());
    }
    let mut families: Vec<&str> = pairs.iter().map(|pair| pair.family).collect();
    families.sort_unstable();
    families.dedup();
    for family in families {
        let of_family = pairs.iter().filter(|pair| pair.family == family);
        let all = of_family.flat_map(|pair| keys().filter_map(|key| apart(pair, &key)));
        row(family, all.collect());
    }
    let all = pairs
        .iter()
        .flat_map(|pair| keys().filter_map(|key| apart(pair, &key)));
    row("all", all.collect());
    let mut regrets: Vec<(f64, &str)> = Vec::new();
    for pair in pairs {
        regrets.extend(regret(pair).map(|regret| (regret, &*pair.name)));
    }
    regrets.sort_by(|a, b| b.0.total_cmp(&a.0));
    let few = regrets
        .iter()
        .filter(|(regret, _)| *regret <= GOALS[2])
        .count();
    println!(
        "the winner is at most {:.2} times from the best on {few} of {} cards; goals: {:.2} in the \
         median, {:.1} in the 90th percentile, 95 of 100 cards",
        GOALS[2],
        regrets.len(),
        GOALS[0],
        GOALS[1]
    );
    for (regret, name) in regrets
        .iter()
        .take(5)
        .filter(|(regret, _)| *regret > GOALS[2])
    {
        println!("  {name}: {regret:.2}");
    }
}
