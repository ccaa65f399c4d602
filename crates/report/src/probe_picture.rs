//! What a probe measured, as SVG: extra time across boundaries, rates by request size, and what a
//! write costs by the number of AUs in use.

use crate::svg::{Axis, Dots, Panel, Picture, Series};
use whichfs_probe::{Findings, OpenAuTest, ProbeEvidence, Quantity, Streams, median};
use whichfs_units::Bytes;

/// The evidence of `findings` as SVG.
pub fn probe_svg(findings: &Findings) -> String {
    let measured = &findings.measured;
    let panels = [boundaries(findings), rates(measured), open_aus(measured)];
    let picture = Picture {
        title: "What the probe measured",
        alternative: "What the probe measured",
        rows: panels
            .into_iter()
            .flatten()
            .map(|panel| vec![panel])
            .collect(),
        plane: [660.0, 150.0],
        key: Vec::new(),
    };
    picture.draw()
}

fn boundaries(findings: &Findings) -> Option<Panel> {
    let levels = &findings.measured.align.as_ref()?.levels;
    let marks = [
        (Quantity::PageBytes, "page"),
        (Quantity::WriteUnitBytes, "write unit"),
        (Quantity::AuBytes, "AU"),
        (Quantity::ZoneBytes, "zone"),
    ];
    let marks = marks.into_iter().filter_map(|(quantity, name)| {
        let bytes = findings.value(quantity)?.whole();
        let level = 1 << bytes.trailing_zeros();
        let at = levels.iter().position(|one| one.bytes == level)?;
        Some((at as f64, format!("{name} {}", Bytes(bytes))))
    });
    let points = levels.iter().enumerate();
    let points = points.map(|(at, one)| [at as f64, one.extra_us.median, one.extra_us.error]);
    let ends = levels
        .iter()
        .map(|one| one.extra_us.median + one.extra_us.error);
    Some(Panel {
        title: "Extra time of a read across odd multiples of (µs)".to_owned(),
        x: Axis::named(levels.iter().map(|one| Bytes(one.bytes).to_string())),
        y: Axis::linear(ends),
        series: vec![series(0, "median and error", points.collect())],
        marks: marks.collect(),
        broken: false,
    })
}

fn rates(measured: &ProbeEvidence) -> Option<Panel> {
    let tests = [("read", &measured.reads), ("write", &measured.writes)];
    let tests = || {
        tests
            .iter()
            .filter_map(|(name, test)| Some((*name, test.as_ref()?)))
    };
    let sizes: Vec<u64> = tests()
        .map(|(_, streams)| streams.rates.keys().copied().collect::<Vec<_>>())
        .max_by_key(Vec::len)?;
    let rate = |streams: &Streams, size| Some(median(streams.rates.get(size)?)? / 1e6);
    let all = tests().flat_map(|(_, streams)| sizes.iter().filter_map(move |s| rate(streams, s)));
    let y = Axis::decades(all, power_of_ten);
    let lines = (0..).zip(tests()).map(|(colour, (name, streams))| {
        let points = sizes.iter().enumerate();
        let points = points.filter_map(|(at, size)| Some([at as f64, rate(streams, size)?, 0.0]));
        series(colour, name, points.collect())
    });
    Some(Panel {
        title: "Rate in order by request size (MB/s)".to_owned(),
        x: Axis::named(sizes.iter().map(|size| Bytes(*size).to_string())),
        y,
        series: lines.collect(),
        marks: Vec::new(),
        broken: false,
    })
}

fn open_aus(measured: &ProbeEvidence) -> Option<Panel> {
    let tests = [
        ("in order", &measured.open_linear),
        ("at random", &measured.open_random),
    ];
    let tests: Vec<(&str, &OpenAuTest)> = tests
        .into_iter()
        .filter_map(|(name, test)| Some((name, test.as_ref()?)))
        .filter(|(_, test)| !test.turns.is_empty())
        .collect();
    let turns = tests.iter().flat_map(|(_, test)| &test.turns);
    let mut counts: Vec<u32> = turns.map(|turn| turn.aus).collect();
    counts.sort_unstable();
    counts.dedup();
    let lines: Vec<Series> = (0..)
        .zip(&tests)
        .map(|(colour, (name, test))| {
            let points = counts.iter().enumerate();
            let points =
                points.filter_map(|(at, aus)| Some([at as f64, write_ms(test, *aus)?, 0.0]));
            series(colour, name, points.collect())
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    let times = lines.iter().flat_map(|line| &line.points);
    let y = Axis::decades(times.map(|point| point[1]), power_of_ten);
    Some(Panel {
        title: "Time of a write of 64 KiB by AUs in use (ms)".to_owned(),
        x: Axis::named(counts.iter().map(ToString::to_string)),
        y,
        series: lines,
        marks: Vec::new(),
        broken: false,
    })
}

/// Milliseconds of a write with so many AUs in use: the slow ones' where they are too many.
fn write_ms(test: &OpenAuTest, aus: u32) -> Option<f64> {
    let turns = test.turns.iter().filter(|turn| turn.aus == aus);
    let times: Vec<f64> = turns
        .map(|turn| match turn.too_many {
            true => turn.slow_us,
            false => turn.fast_us,
        })
        .collect();
    Some(median(&times)? / 1e3)
}

fn series(colour: usize, name: &str, points: Vec<[f64; 3]>) -> Series {
    Series {
        name: name.to_owned(),
        colour,
        joined: true,
        dots: Dots::Filled,
        points,
    }
}

fn power_of_ten(power: i32) -> String {
    10_f64.powi(power).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::boundaries_text;
    use whichfs_card::{Card, Profile, builtin};
    use whichfs_curves::Modelled;
    use whichfs_probe::{ProbeOptions, Silent, Writing, probe};

    #[test]
    fn the_evidence_is_drawn() {
        let mut all = builtin().iter();
        let (_, text) = all.find(|(name, _)| *name == "class10-16gb").unwrap();
        let profile = Profile::parse("class10-16gb.toml", text).unwrap();
        let mut device = Modelled::new(Card::used(&profile, 1), profile.capacity_bytes());
        let options = ProbeOptions {
            seed: 11,
            writing: Writing::Destroy,
            ..ProbeOptions::default()
        };
        let found = probe(&mut device, &options, &mut Silent);
        let picture = probe_svg(&found);
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
        assert_eq!(picture.matches("<polyline").count(), 5);
        assert!(picture.contains("AU 4 MiB") && !picture.contains("NaN"));
        for ascii in [true, false] {
            let text = boundaries_text(&found, ascii);
            let narrow = text.lines().all(|line| line.chars().count() <= 80);
            assert!(narrow, "{text}");
            let named = text.contains("AU 4 MiB") && text.contains("page 16 KiB");
            assert!(named, "{text}");
            assert_eq!(text.replace('µ', "u").is_ascii(), ascii);
        }
        assert!(probe_svg(&whichfs_probe::infer(&ProbeEvidence::default())).contains("nothing"));
    }
}
