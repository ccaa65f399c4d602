//! Whether verdicts that claim to be sure are right, and whether stopping early costs anything.
//!
//! `data/trials.tsv` and `data/trials-small.tsv` hold real trials of the lab: every candidate of
//! the pairs of `data/pairs.txt`, each with six seeds. A seed draws the names, sizes and order of
//! the workload, and the card's own parameters within what its profile is sure of: another seed
//! is another, perturbed card. A verdict is made as `whichfs choose` makes it, of some of the
//! seeds; it is right if the candidate that it names is the best on a seed that it has not seen,
//! alone.
//!
//! Pairs of `data/seen.txt` were there when the constants of the verdict were chosen; what is
//! demanded holds for the others alone as well.
//!
//! Most pairs have a clear winner. So that sure verdicts are also tried where the contest is
//! close, worlds are made of these trials: the distances between candidates shrunk, and each
//! trial moved by what a real trial of that pair was off its candidate's mean, in all metrics and
//! candidates of one seed alike, so that what belongs together in reality stays together.
//!
//! `setup/verdicts` runs such trials anew, as many as wanted, and these tests on them.
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trials::{Line, MOST, Pair, SEEDS, listed, pairs, text_of, with_runs};
use whichfs_decide::Verdict;
use whichfs_units::Rng;

/// A verdict that claims this much is sure.
const SURE: f64 = 0.9;

/// Most seeds of a verdict that is tried on an unseen one.
const LEAVING_ONE: u64 = SEEDS as u64 - 1;

/// About so many of the committed pairs are judged by every turn of their seeds, which takes a
/// third of a second each; with `WHICHFS_SOAK` set all are, and of one's own runs always.
const TURNED: usize = 110;

/// Where the classes of claims begin.
const CLASSES: [f64; 7] = [0.0, 0.5, 0.6, 0.7, 0.8, SURE, 0.99];

fn winner(verdict: &Verdict) -> (&str, f64) {
    let first = &verdict.ranking[0];
    (&first.candidate, first.p_best.unwrap_or(1.0))
}

/// Verdicts, how sure they were in sum, and how many of them were right.
#[derive(Clone, Copy, Default)]
struct Claims {
    made: u32,
    claimed: f64,
    right: u32,
}

impl Claims {
    fn hear(&mut self, claimed: f64, right: bool) {
        self.made += 1;
        self.claimed += claimed;
        self.right += u32::from(right);
    }

    fn share(&self) -> f64 {
        f64::from(self.right) / f64::from(self.made.max(1))
    }
}

/// Claims by class.
#[derive(Default)]
struct Table([Claims; CLASSES.len()]);

impl Table {
    fn hear(&mut self, claimed: f64, right: bool) {
        let class = CLASSES.iter().rposition(|least| claimed >= *least);
        self.0[class.unwrap()].hear(claimed, right);
    }

    fn sure(&self) -> Claims {
        let sum = |mut sum: Claims, class: &Claims| {
            sum.made += class.made;
            sum.claimed += class.claimed;
            sum.right += class.right;
            sum
        };
        let sure = CLASSES
            .iter()
            .zip(&self.0)
            .filter(|(least, _)| **least >= SURE);
        sure.map(|(_, class)| class).fold(Claims::default(), sum)
    }

    fn print(&self, what: &str) {
        println!("{what}: claimed at least, mean claim, judged, right");
        for (least, class) in CLASSES
            .iter()
            .zip(&self.0)
            .filter(|(_, class)| class.made > 0)
        {
            let (mean, share) = (class.claimed / f64::from(class.made), class.share());
            println!("  {least:.2}  {mean:.3}  {:6}  {share:.3}", class.made);
        }
    }
}

#[test]
fn the_pairs_are_listed_and_not_all_were_seen_before() {
    let all: BTreeSet<_> = listed(include_str!("../../data/pairs.txt")).collect();
    let pairs = pairs();
    let done: BTreeSet<_> = (pairs.iter())
        .map(|pair| (pair.card.as_str(), pair.need.name.as_str()))
        .collect();
    assert_eq!(done.len(), pairs.len(), "one is there twice");
    assert!(done.is_subset(&all));
    let mut needs: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, need) in &done {
        *needs.entry(need).or_default() += 1;
    }
    let cards: BTreeSet<_> = done.iter().map(|(card, _)| card).collect();
    let seen = pairs.iter().filter(|pair| pair.seen).count();
    println!(
        "{} of {} pairs, {seen} of them seen before; {} cards; {needs:?}",
        done.len(),
        all.len(),
        cards.len()
    );
    assert!(pairs.len() > seen);
}

#[test]
#[ignore = "writes the runs of WHICHFS_RUNS and those committed to the file WHICHFS_TRIALS"]
fn write_the_trials() {
    let of = |name| std::env::var_os(name).unwrap();
    let pairs = with_runs(Path::new(&of("WHICHFS_RUNS")));
    std::fs::write(of("WHICHFS_TRIALS"), text_of(&pairs)).unwrap();
}

#[test]
fn sure_verdicts_hold_on_unseen_seeds_of_real_trials() {
    let (mut all, mut unseen_pairs) = (Table::default(), Table::default());
    let is_set = |name| std::env::var_os(name).is_some();
    let all_of_them = is_set("WHICHFS_SOAK") || is_set("WHICHFS_RUNS");
    let pairs = pairs();
    let step = match all_of_them {
        true => 1,
        false => pairs.len().div_ceil(TURNED),
    };
    for pair in pairs.iter().step_by(step) {
        let real = |line: &Line, _: usize, seed: u64| line.values[seed as usize];
        let alone = |seed| winner(&pair.on_all(seed..seed + 1, &real)).0.to_owned();
        let best: Vec<String> = (0..SEEDS as u64).map(alone).collect();
        for turn in 0..SEEDS as u64 {
            let turned = |seed: u64| (seed + turn) as usize % SEEDS;
            let value = |line: &Line, _: usize, seed: u64| line.values[turned(seed)];
            let (verdict, trials) = pair.chosen(LEAVING_ONE, &value);
            let (name, claimed) = winner(&verdict);
            let used = trials.iter().map(|(_, seed)| seed + 1).max().unwrap();
            for unseen in used..SEEDS as u64 {
                let best = &best[turned(unseen)];
                all.hear(claimed, best == name);
                if !pair.seen {
                    unseen_pairs.hear(claimed, best == name);
                }
                if claimed >= SURE && best != name {
                    let pair = pair.name();
                    println!("  wrong: {pair}: {name} at {claimed}, {best} on a new seed");
                }
            }
        }
    }
    all.print("real trials, all pairs");
    unseen_pairs.print("real trials, pairs not seen before");
    assert!(all.sure().made >= 200, "{}", all.sure().made);
    for sure in [all.sure(), unseen_pairs.sure()] {
        let share = sure.share() * 100.0;
        println!("sure: {}, right on an unseen seed: {share:.1} %", sure.made);
        assert!(sure.share() >= SURE, "{share:.1} % of {}", sure.made);
    }
}

/// A world near to a real pair: levels of its lines, and what each seed moves them by.
struct World<'a> {
    pair: &'a Pair,
    level: Vec<f64>,
    /// For each line what each of its trials is off its mean, in logarithms.
    off: Vec<Vec<f64>>,
    /// Which real seed stands behind a seed of this world.
    behind: Vec<usize>,
}

impl<'a> World<'a> {
    fn draw(pair: &'a Pair, rng: &mut Rng) -> World<'a> {
        let logs = |line: &Line| {
            line.values
                .iter()
                .map(|value| value.ln())
                .collect::<Vec<_>>()
        };
        let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
        let level: Vec<f64> = pair.lines.iter().map(|line| mean(&logs(line))).collect();
        // The means of six trials scatter less than trials do; this makes up for it.
        let lost = (SEEDS as f64 / (SEEDS as f64 - 1.0)).sqrt();
        let off = pair
            .lines
            .iter()
            .zip(&level)
            .map(|(line, level)| logs(line).iter().map(|log| (log - level) * lost).collect());
        let off = off.collect();
        // From as far apart as they are down to a tenth of it.
        let near = 0.1_f64.powf(rng.unit_f64());
        let mut middle: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (line, level) in pair.lines.iter().zip(&level) {
            middle.entry(&line.metric).or_default().push(*level);
        }
        let shrunk = pair.lines.iter().zip(&level).map(|(line, level)| {
            let middle = mean(&middle[line.metric.as_str()]);
            middle + (level - middle) * near
        });
        World {
            level: shrunk.collect(),
            pair,
            off,
            behind: (0..64).map(|_| rng.below(SEEDS as u64) as usize).collect(),
        }
    }

    fn value(&self, at: usize, seed: u64) -> f64 {
        (self.level[at] + self.off[at][self.behind[seed as usize]]).exp()
    }
}

#[test]
fn sure_verdicts_hold_where_the_contest_is_close() {
    let pairs = pairs();
    let mut rng = Rng::named(7, "worlds");
    let mut table = Table::default();
    while table.sure().made < 200 {
        let pair = &pairs[rng.below(pairs.len() as u64) as usize];
        let world = World::draw(pair, &mut rng);
        let value = |_: &Line, at: usize, seed: u64| world.value(at, seed);
        let (verdict, _) = world.pair.chosen(MOST, &value);
        let (name, claimed) = winner(&verdict);
        let truth = pair.on_all(MOST..MOST + 1, &value);
        table.hear(claimed, winner(&truth).0 == name);
    }
    table.print("close contests");
    let share = table.sure().share();
    println!(
        "of {} sure ones {:.1} % right",
        table.sure().made,
        share * 100.0
    );
    assert!(share >= SURE, "{share}");
}

/// What stopping early found of the pairs of one kind, and what it cost.
#[derive(Clone, Copy, Default)]
struct Stopped {
    pairs: u32,
    right: u32,
    spent: usize,
    full: usize,
}

impl Stopped {
    fn add(&mut self, other: Stopped) {
        self.pairs += other.pairs;
        self.right += other.right;
        self.spent += other.spent;
        self.full += other.full;
    }

    fn print(&self, what: &str) {
        let Stopped {
            pairs,
            right,
            spent,
            full,
        } = self;
        let share = f64::from(*right) / f64::from(*pairs) * 100.0;
        let part = *spent as f64 / *full as f64 * 100.0;
        println!(
            "{what}: {right} of {pairs} ({share:.1} %), {spent} of {full} trials ({part:.1} %)"
        );
    }

    fn check(&self) {
        assert!(
            f64::from(self.right) >= 0.96 * f64::from(self.pairs),
            "{}",
            self.right
        );
        assert!(
            5 * self.spent <= 2 * self.full,
            "{} of {}",
            self.spent,
            self.full
        );
    }
}

/// Stops one early; says by how much the best of all trials is better, if it is another.
fn stopped_early(pair: &Pair) -> Stopped {
    let value = |line: &Line, _: usize, seed: u64| line.values[seed as usize];
    let (early, spent) = pair.chosen(MOST, &value);
    let exhaustive = pair.on_all(0..SEEDS as u64, &value);
    let (name, claimed) = winner(&early);
    let best = &exhaustive.ranking[0];
    let own = exhaustive.ranking.iter().find(|one| one.candidate == name);
    let own = own.unwrap();
    // An exact tie: the same score to its four digits.
    let right = own.score == best.score;
    if !right {
        let regret = (best.score / own.score - 1.0) * 100.0;
        let (pair, best) = (pair.name(), &best.candidate);
        println!("  miss: {pair}: {name} at {claimed}, best {best}, regret {regret:.2} %");
    }
    Stopped {
        pairs: 1,
        right: u32::from(right),
        spent: spent.len(),
        full: pair.candidates().len() * SEEDS,
    }
}

#[test]
fn stopping_early_finds_the_winner_of_all_trials_with_two_fifths_of_them() {
    let (mut all, mut new) = (Stopped::default(), Stopped::default());
    let mut needs: BTreeMap<String, Stopped> = BTreeMap::new();
    for pair in &pairs() {
        let found = stopped_early(pair);
        all.add(found);
        needs.entry(pair.need.name.clone()).or_default().add(found);
        if !pair.seen {
            new.add(found);
        }
    }
    needs.iter().for_each(|(need, found)| found.print(need));
    all.print("all pairs");
    new.print("pairs not seen before");
    all.check();
    new.check();
}
