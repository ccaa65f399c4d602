//! Whole logs: what is read from them, what is refused, and that nothing is silently wrong.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use whichfs_curves::{Curves, Rates};
use whichfs_logs::{
    Form, LogOptions, LogReading, Operation, Order, Problem, align_text, fat_text, flashbench_text,
    json_text, open_au_text, read, read_with,
};

const SCRIPT: &str = include_str!("logs/script.txt");
const SHELL: &str = include_str!("logs/shell.txt");
const IOZONE: &str = include_str!("logs/iozone.txt");
const FIO: &str = include_str!("logs/fio.json");
const CURVES: &str = include_str!("logs/curves.json");
const ALIGN: &str = include_str!("logs/align.csv");

fn reading(name: &str, text: impl AsRef<[u8]>) -> LogReading {
    read_with(name, text, &LogOptions::default()).unwrap()
}

fn problem(text: &str) -> (Problem, Option<usize>) {
    let error = read("card.log", text).unwrap_err();
    assert!(error.to_string().starts_with("card.log"), "{error}");
    assert!(
        !error.expected.is_empty() && !error.remedy.is_empty(),
        "{error:?}"
    );
    (error.problem, error.line)
}

#[test]
fn a_script_over_all_tests_becomes_one_run() {
    let reading = reading("results/script.txt", SCRIPT);
    assert_eq!((reading.form, reading.runs.len()), (Form::Session, 1));
    let run = &reading.runs[0];
    assert_eq!(run.name, "script");
    assert_eq!(run.erase_bytes, Some(4 << 20));
    assert_eq!(run.card.capacity_bytes, Some(3_965_190_144));
    assert_eq!(
        run.card.cid.as_deref(),
        Some("744a60555344202010000000010000f6")
    );
    assert_eq!(run.card.product.as_deref(), Some("USD"));
    let curves = &run.curves;
    assert_eq!(curves.align.len(), 7);
    assert_eq!(curves.align[&(4 << 20)].len(), 2);
    assert_eq!(curves.align[&4096], [[1480.0, 1460.0, 1460.0, -8.994]]);
    assert_eq!(curves.align[&16384][0][3], -157.994);
    assert_eq!(curves.align[&(2 << 20)][0][0], 1000.0);
    assert_eq!(curves.fat[&(2 << 20)], [[2.61e6, 3e6, 3.56e6]]);
    assert_eq!(curves.linear.keys().collect::<Vec<_>>(), [&1, &4]);
    assert_eq!(curves.linear[&1][&(2 << 20)], 3.58e6);
    assert_eq!(curves.random[&2][&(1 << 20)], 345e3);
    let rates: Vec<(Operation, Option<u64>)> = run
        .rates
        .iter()
        .map(|rate| (rate.operation, rate.block_bytes))
        .collect();
    let (read, write) = (Operation::Read, Operation::Write);
    let mib = 1 << 20;
    assert_eq!(
        rates,
        [
            (read, Some(4 * mib)),
            (read, Some(4 * mib)),
            (write, Some(65536)),
            (read, Some(2 * mib)),
        ]
    );
    assert!((run.rates[0].bytes_per_s - 41_943_040.0 / 2.5).abs() < 1.0);
}

/// Directions of the rates in a transcript.
fn directions(text: &str) -> Vec<Operation> {
    let runs = reading("log", text).runs;
    let rates = runs.iter().flat_map(|run| &run.rates);
    rates.map(|rate| rate.operation).collect()
}

#[test]
fn a_loop_over_several_lines_repeats_what_is_in_it() {
    let (read, write) = (Operation::Read, Operation::Write);
    let out = "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s\n";
    let (to, from) = (
        "dd if=/dev/zero of=test bs=1M",
        "dd if=test of=/dev/null bs=1M",
    );
    let thrice = out.repeat(3);
    for begin in [
        "$ for i in 1 2 3; do\n",
        "root@pi:~# for i in 1 2 3\n> do\n",
        "pi@pi:~ $ while sleep 1;do\n> echo a run\n",
        "for i in 1 2 3; do\nfor j in 4 5; do echo $j; done\n",
    ] {
        let text = format!("{begin}  {to}\ndone\n{thrice}");
        assert_eq!(directions(&text), [write; 3], "{text}");
        // Two in turns, and what comes behind is not of the loop.
        let text = format!("{begin}> {to}\n> {from}\n> done\n{out}{thrice}$ {from}\n{out}{out}");
        assert_eq!(
            directions(&text),
            [write, read, write, read, read],
            "{text}"
        );
        // After a failure nobody knows whose turn it is.
        let text = format!("{begin}> {to}\n> {from}\n> done\n{out}dd: no space left\n{thrice}");
        assert_eq!(directions(&text), [write], "{text}");
    }
    for no_loop in [
        "for the card I do this\n",
        "for i in 1 2; do ls; done\n",
        "do\n",
    ] {
        let text = format!("{no_loop}$ {to}\n{thrice}");
        assert_eq!(directions(&text), [write], "{text}");
    }
}

#[test]
fn what_a_script_left_undone_is_listed() {
    let reading = reading("script.txt", SCRIPT);
    let why = |text: &str| {
        let found = reading
            .skipped
            .iter()
            .find(|remark| remark.why.contains(text));
        found
            .unwrap_or_else(|| panic!("{text}: {:?}", reading.skipped))
            .lines
    };
    assert_eq!(why("a section without figures"), (46, 46));
    assert_eq!(why("a dd that failed"), (28, 28));
    assert_eq!(why("interrupted"), (57, 57));
    assert_eq!(why("not a line of"), (6, 9));
    let mended: Vec<(usize, usize)> = reading.mended.iter().map(|remark| remark.lines).collect();
    assert_eq!(mended, [(38, 40), (55, 55)]);
}

#[test]
fn commands_of_a_shell_tell_the_open_aus() {
    let reading = reading("shell.txt", SHELL);
    let run = &reading.runs[0];
    assert_eq!(run.curves.linear[&2][&(256 << 10)], 6.27e6);
    assert_eq!(run.curves.random[&3][&(256 << 10)], 912e3);
    assert_eq!(run.curves.fat[&(2 << 20)], [[14.8e6, 1e6]]);
    assert_eq!(
        run.curves.align[&(4 << 20)],
        [[741.0, 1080.0, 788.0, 317.0]]
    );
    assert_eq!(run.card.device.as_deref(), Some("/dev/mmcblk0"));
    assert_eq!(
        run.rates.len(),
        1,
        "dd's progress is no result: {:?}",
        run.rates
    );
    assert!(run.rates[0].direct);
    assert_eq!(run.rates[0].block_bytes, Some(1 << 20));
}

#[test]
fn encodings_and_line_ends_do_not_matter() {
    let expected = reading("x", SCRIPT).runs;
    let dos = SCRIPT.replace('\n', "\r\n");
    assert_eq!(reading("x", &dos).runs, expected);
    let mark = format!("\u{feff}{SCRIPT}");
    assert_eq!(reading("x", &mark).runs, expected);
    let ascii: String = SCRIPT
        .chars()
        .filter(|c| c.is_ascii() || *c == 'µ')
        .collect();
    let latin: Vec<u8> = ascii.chars().map(|c| c as u8).collect();
    assert_eq!(reading("x", &latin).runs[0].curves, expected[0].curves);
    let quoted: String = SCRIPT.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(reading("x", &quoted).runs[0].curves, expected[0].curves);
}

#[test]
fn iozone_fio_csv_and_json_are_known_by_their_content() {
    let iozone = reading("log", IOZONE);
    assert_eq!(iozone.runs[0].rates.len(), 12);
    let random = &iozone.runs[0].rates[4];
    assert_eq!(
        (random.operation, random.order),
        (Operation::Read, Order::Random)
    );
    assert_eq!((random.block_bytes, random.direct), (Some(4096), true));
    assert_eq!(random.bytes_per_s, 9959.0 * 1024.0);
    let fio = reading("log", FIO);
    assert_eq!((fio.form, fio.runs[0].rates.len()), (Form::Fio, 1));
    let rate = &fio.runs[0].rates[0];
    assert_eq!(
        (rate.operation, rate.order),
        (Operation::Write, Order::Random)
    );
    assert_eq!((rate.block_bytes, rate.direct), (Some(4096), true));
    assert!(rate.latency.unwrap().p99_us.unwrap() > rate.latency.unwrap().median_us.unwrap());
    let csv = reading("log", ALIGN);
    assert_eq!((csv.form, csv.runs[0].curves.align.len()), (Form::Csv, 3));
    let json = reading("log", CURVES);
    assert_eq!((json.form, json.runs.len()), (Form::Json, 2));
    assert_eq!(json.runs[0].curves.random[&2][&(4 << 20)], 4.48e6);
}

#[test]
fn a_run_is_chosen_by_name() {
    let choose = |name: &str| {
        let options = LogOptions {
            run: Some(name.to_owned()),
        };
        read_with("card.log", CURVES, &options)
    };
    assert_eq!(choose("b").unwrap().runs.len(), 1);
    let error = choose("c").unwrap_err();
    assert_eq!(error.problem, Problem::NoSuchRun);
    assert!(error.to_string().contains("`a`, `b`"), "{error}");
}

#[test]
fn a_log_of_two_cards_is_refused_unless_a_run_is_chosen() {
    let other = SCRIPT.replace("744a6055", "035344aa");
    let both = format!("{SCRIPT}{other}");
    let lines = SCRIPT.lines().count();
    assert_eq!(problem(&both), (Problem::MixedCards, Some(lines + 1)));
    let options = LogOptions {
        run: Some("card#2".to_owned()),
    };
    let chosen = read_with("card.log", &both, &options).unwrap();
    assert_eq!(chosen.runs.len(), 1);
    assert!(
        chosen.runs[0]
            .card
            .cid
            .as_deref()
            .unwrap()
            .starts_with("035344aa")
    );
    let same = format!("{SCRIPT}{SCRIPT}");
    assert_eq!(
        reading("card.log", &same).runs.len(),
        2,
        "one card, measured twice"
    );
}

#[test]
fn other_devices_and_erase_sizes_are_other_runs() {
    let devices = SHELL.replace("-rO -e4194304 -b 262144 /dev/mmcblk0", "-rO /dev/sdb");
    assert_eq!(problem(&devices).0, Problem::MixedCards);
    let erase = SHELL
        .replace("-e4194304", "-e8388608")
        .replace("4MiB    7.75", "8MiB    7.75");
    let error = read("card.log", &erase).unwrap_err();
    assert_eq!(error.problem, Problem::MixedCards);
    assert!(
        error.to_string().contains("erase size 4194304 and 8388608"),
        "{error}"
    );
}

#[test]
fn registers_of_another_card_are_left_out() {
    let reader = SCRIPT.replace("3965190144 bytes", "7902068736 bytes");
    let reading = reading("card.log", &reader);
    assert_eq!(reading.runs[0].card.cid, None);
    assert_eq!(reading.runs[0].card.capacity_bytes, Some(7_902_068_736));
    assert!(
        reading
            .mended
            .iter()
            .any(|remark| remark.why.contains("CID left out"))
    );
}

#[test]
fn bad_logs_are_refused_with_the_line() {
    let line = |text: &str| SCRIPT.lines().position(|line| line.contains(text)).unwrap() + 1;
    let at = line("AU=4, linear");
    let changed = |from: &str, to: &str| problem(&SCRIPT.replace(from, to));
    let duplicate = changed("AU=4, linear", "AU=1, linear");
    assert_eq!(duplicate, (Problem::Duplicate, Some(at + 1)));
    let zero = changed("9.36K/s", "0B/s");
    assert_eq!(zero, (Problem::Absurd, Some(at + 2)));
    let huge = changed("9.36K/s", "936000G/s");
    assert_eq!(huge, (Problem::Absurd, Some(at + 2)));
    let unit = changed("9.36K/s", "9.36kB/s");
    assert_eq!(unit, (Problem::MixedUnits, Some(at + 2)));
    let ragged = changed("453K/s   514K/s", "453K/s");
    assert_eq!(ragged, (Problem::Malformed, Some(line("1MiB    452K/s"))));
    let align = line("align 4096");
    assert_eq!(
        changed("diff -8994ns", "diff 8.99ms"),
        (Problem::MixedUnits, Some(align))
    );
    assert_eq!(
        changed("diff -8994ns", ""),
        (Problem::Malformed, Some(align))
    );
    assert_eq!(
        changed(
            "pre 1.48ms\ton 1.46ms\tpost 1.46ms",
            "pre 0ns\ton 1ns\tpost 1ns"
        )
        .0,
        Problem::Absurd
    );
    let bare = "4MiB    3.95M/s \n2MiB    3.58M/s \n";
    assert_eq!(problem(bare), (Problem::NoContext, Some(1)));
    let told = format!("# flashbench -O --open-au-nr=5 --random /dev/sdb\n{bare}");
    let told = reading("card.log", &told);
    assert_eq!(told.runs[0].curves.random[&5].len(), 2);
}

#[test]
fn results_of_other_programs_that_cannot_be_used_cost_no_curve() {
    for bad in [
        "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s",
        "$ dd if=$A of=$B\n41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s",
        "$ dd if=/dev/zero of=x\n41943040 bytes (42 MB) copied, 10.4858 s, 4.0 kB/s",
        " Timing buffered disk reads:  92 MB in\n",
    ] {
        let found = reading("card.log", format!("{bad}\n{SCRIPT}"));
        assert_eq!(
            found.runs[0].curves,
            reading("card.log", SCRIPT).runs[0].curves
        );
        let remark = found
            .skipped
            .iter()
            .find(|remark| remark.why.contains("unusable"));
        assert!(remark.is_some(), "{bad}: {:?}", found.skipped);
        assert_eq!(problem(bad).0, Problem::Empty, "{bad}");
    }
}

#[test]
fn a_dd_without_its_command_has_not_the_direction_of_the_last() {
    let done = "41943040 bytes (42 MB) copied, 10.4858 s, 4.0 MB/s";
    let log = format!(
        "$ dd if=/dev/zero of=test bs=1M oflag=direct\n{done}\n\
         $ sudo sh -c 'dd if=test of=/dev/null bs=4M'\n{done}\n\
         $ ./read-it-again\n{done}\n"
    );
    let found = reading("card.log", &log);
    let rates: Vec<_> = found.runs[0]
        .rates
        .iter()
        .map(|r| (r.operation, r.direct))
        .collect();
    assert_eq!(rates, [(Operation::Write, true), (Operation::Read, false)]);
    assert_eq!(found.skipped.last().unwrap().lines.0, 6);
}

#[test]
fn a_log_of_more_runs_than_there_are_is_refused() {
    let card = |n: usize| {
        format!(
            "cid: 744a60555344202010{n:06x}010000f6\nalign 4096 pre 1ms on 1ms post 1ms diff 0ns\n"
        )
    };
    let log: String = (0..1002).map(card).collect();
    assert_eq!(problem(&log).0, Problem::TooLarge);
}

#[test]
fn foreign_and_empty_files_are_told_apart() {
    assert_eq!(problem("").0, Problem::Foreign);
    assert_eq!(
        problem("\nDear all,\nmy card is slow.\n"),
        (Problem::Foreign, Some(2))
    );
    assert_eq!(
        problem("======= AU=1, linear access =======\n").0,
        Problem::Empty
    );
    assert_eq!(problem("{}").0, Problem::Empty);
    assert_eq!(problem("{\"a\": {\"b\": 1}}").0, Problem::Empty);
    assert_eq!(problem("{\"a\": {\"lin\": {\"1\": {}}}}").0, Problem::Empty);
    assert_eq!(
        problem("{\"a\": {\"fat\": {\"4096\": []}}}").0,
        Problem::Empty
    );
    let elf: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert_eq!(read("elf", &elf).unwrap_err().problem, Problem::Foreign);
}

/// Every figure of a reading, with what it is of.
fn figures(reading: &LogReading) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for run in &reading.runs {
        let curves = &run.curves;
        for (boundary, lines) in &curves.align {
            all.extend(
                lines
                    .iter()
                    .enumerate()
                    .map(|(i, us)| format!("al {boundary} {i} {us:?}")),
            );
        }
        for (what, tests) in [("lin", &curves.linear), ("rnd", &curves.random)] {
            for (aus, rates) in tests {
                all.extend(rates.iter().map(|point| format!("{what} {aus} {point:?}")));
            }
        }
        for (block, runs) in &curves.fat {
            all.extend(
                runs.iter()
                    .enumerate()
                    .map(|(i, rates)| format!("fat {block} {i} {rates:?}")),
            );
        }
        all.extend(run.rates.iter().map(|rate| format!("{rate:?}")));
    }
    all
}

#[test]
fn a_log_cut_anywhere_never_gives_a_figure_that_it_does_not_hold() {
    for (name, log) in [
        ("script", SCRIPT),
        ("shell", SHELL),
        ("iozone", IOZONE),
        ("fio", FIO),
        ("curves", CURVES),
        ("align", ALIGN),
    ] {
        let whole = figures(&reading(name, log));
        let (mut refused, mut read_in_part) = (0, 0);
        for end in 0..log.len() {
            match read_with(name, &log.as_bytes()[..end], &LogOptions::default()) {
                Ok(part) if name == "align" && !part.mended.is_empty() => {}
                Ok(part) => {
                    let extra: Vec<String> = figures(&part).difference(&whole).cloned().collect();
                    assert!(extra.is_empty(), "{name} cut at {end}: {extra:?}");
                    read_in_part += 1;
                }
                Err(error) => refused += usize::from(error.problem == Problem::Truncated),
            }
        }
        assert!(refused > 20, "{name}: {refused} cuts seen as such");
        let json = matches!(name, "fio" | "curves");
        // Without its last line end, a JSON document is whole.
        assert_eq!(read_in_part > 1, !json, "{name}: {read_in_part} parts read");
    }
}

/// Erase sizes, not only powers of two.
fn erase() -> impl Strategy<Value = u64> {
    let half_mib = prop::sample::select(vec![2_u64, 3, 4, 6, 8, 12, 24, 48]);
    half_mib.prop_map(|n| n << 19)
}

fn rate() -> impl Strategy<Value = f64> {
    // From 100 B/s to 400 MB/s, evenly on a logarithmic scale.
    (2.0..8.6_f64).prop_map(|exponent| 10_f64.powf(exponent).floor())
}

fn rates(erase: u64) -> impl Strategy<Value = Rates> {
    prop::collection::vec(rate(), 1..11).prop_map(move |rates| {
        let blocks = (0..rates.len() as u32).map(|i| erase >> i);
        blocks.zip(rates).collect()
    })
}

fn align_line() -> impl Strategy<Value = [f64; 4]> {
    let us = || (1.0..7.0_f64).prop_map(|exponent| 10_f64.powf(exponent).round());
    (us(), us(), us()).prop_map(|(pre, on, post)| [pre, on, post, on - (pre + post) / 2.0])
}

/// Tables of one card; those that were interrupted lack their smaller boundaries.
fn align_tables() -> impl Strategy<Value = Vec<Vec<[f64; 4]>>> {
    let slower = || prop::collection::vec(1.0..1.4_f64, 1..4);
    prop::collection::vec((align_line(), slower()), 0..12).prop_map(|mut lines| {
        let mut counts: Vec<usize> = lines.iter().map(|(_, slower)| slower.len()).collect();
        counts.sort_unstable();
        for ((_, slower), count) in lines.iter_mut().zip(counts) {
            slower.resize(count, 1.2);
        }
        let line = |[pre, on, post, _]: [f64; 4], slower: f64| {
            let [pre, on, post] = [pre, on, post].map(|us| (us * slower).round());
            [pre, on, post, on - (pre + post) / 2.0]
        };
        let tables = lines.into_iter();
        let repeated = |(at, slower): ([f64; 4], Vec<f64>)| {
            slower.into_iter().map(|slower| line(at, slower)).collect()
        };
        tables.map(repeated).collect()
    })
}

fn curves() -> impl Strategy<Value = Curves> {
    erase().prop_flat_map(|erase| {
        let align = align_tables();
        let tests = || prop::collection::btree_map(1..9_u32, rates(erase), 0..4);
        let fat =
            (1..9_usize, 0..4_usize, 1..9_usize).prop_flat_map(|(aus, replicates, blocks)| {
                let row = prop::collection::vec(rate(), aus);
                let runs = prop::collection::vec(row, replicates);
                prop::collection::vec(runs, blocks)
            });
        (align, tests(), tests(), fat).prop_map(move |(align, linear, random, fat)| Curves {
            align: (11..).map(|i| 1 << i).zip(align).collect(),
            linear,
            random,
            fat: (0..)
                .map(|i| erase >> i)
                .zip(fat)
                .filter(|(_, runs)| !runs.is_empty())
                .collect(),
        })
    })
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.0051 * a.abs() + 0.002
}

fn assert_near(before: &Curves, after: &Curves) -> Result<(), TestCaseError> {
    for (a, b) in [
        (&before.linear, &after.linear),
        (&before.random, &after.random),
    ] {
        let points = |tests: &BTreeMap<u32, Rates>| -> Vec<(u32, u64, f64)> {
            let all = tests.iter();
            all.flat_map(|(&aus, rates)| rates.iter().map(move |(&b, &r)| (aus, b, r)))
                .collect()
        };
        let (a, b) = (points(a), points(b));
        prop_assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(&b) {
            prop_assert!(
                a.0 == b.0 && a.1 == b.1 && near(a.2, b.2),
                "{:?} {:?}",
                a,
                b
            );
        }
    }
    prop_assert!(before.align.keys().eq(after.align.keys()));
    prop_assert!(before.fat.keys().eq(after.fat.keys()));
    let lines = |curves: &Curves| curves.align.values().flatten().copied().collect::<Vec<_>>();
    for (a, b) in lines(before).iter().zip(&lines(after)) {
        prop_assert!((0..3).all(|i| near(a[i], b[i])), "{:?} {:?}", a, b);
        // From -1 ms on, digits of the difference are cut off, and what restores them has
        // three digits itself.
        let slack = if a[3] <= -1000.0 {
            0.006 * (a[1] + (a[0] + a[2]) / 2.0)
        } else {
            0.0
        };
        let restored = (a[3] - b[3]).abs() <= slack;
        prop_assert!(near(a[3], b[3]) || restored, "{:?} {:?}", a, b);
    }
    let fat = |curves: &Curves| {
        curves
            .fat
            .values()
            .flatten()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
    };
    let (a, b) = (fat(before), fat(after));
    prop_assert_eq!(a.len(), b.len());
    prop_assert!(a.iter().zip(&b).all(|(&a, &b)| near(a, b)));
    Ok(())
}

proptest! {
    #[test]
    fn flashbenchs_form_is_read_back_in_three_digits(curves in curves()) {
        prop_assume!(curves != Curves::default());
        let text = flashbench_text(&curves);
        let runs = match read("card", &text) {
            Ok(runs) => runs,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        prop_assert_eq!(runs.len(), 1);
        assert_near(&curves, &runs[0].curves)?;
        // The commands above each test are all that is added to the program's own output.
        let bare = text.split_inclusive('\n').filter(|line| !line.starts_with('$'));
        let bare: String = bare.collect();
        let mut parts = align_text(&curves) + &fat_text(&curves);
        for rates in curves.linear.values().chain(curves.random.values()) {
            parts += &open_au_text(rates);
        }
        prop_assert_eq!(bare, parts);
    }

    #[test]
    fn the_json_form_is_read_back_exactly(curves in curves(), name in "[^\\\\\"]{1,12}") {
        prop_assume!(curves != Curves::default());
        prop_assume!(!["al", "lin", "rnd", "fat"].contains(&name.as_str()));
        let runs = read("card", json_text(&name, &curves)).unwrap();
        prop_assert_eq!(&runs[0].name, &name);
        prop_assert_eq!(&runs[0].curves, &curves);
    }
}
