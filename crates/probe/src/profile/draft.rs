//! The sections of a profile, figure by figure.

use super::{Figure, Section, plain, seen};
use crate::findings::{CONFIDENT, Findings, Quantity};
use crate::stats::median;
use std::collections::BTreeMap;
use whichfs_card::legal_range;
use whichfs_card::limits::{RANDOM_PERCENT, UNIT_BYTES, UNITS_MAX, units, within};
use whichfs_units::{Bytes, KIB, SECTOR};

/// Where a figure is from that no test of the probe looks at.
const UNSEEN: &str = "composed: the probe cannot see it";

/// A profile in the making.
pub(super) struct Draft<'a> {
    pub findings: &'a Findings,
    pub capacity: u64,
    pub sections: BTreeMap<usize, (&'static str, Section)>,
}

/// Sections in the order of a profile.
const ORDER: [&str; 12] = [
    "geometry",
    "bus",
    "read",
    "write",
    "copy",
    "discard",
    "cache",
    "slc",
    "fat",
    "log_block",
    "page_map",
    "update_block",
];

impl Draft<'_> {
    fn put(&mut self, section: &'static str, key: &'static str, value: u64, source: String) {
        self.put_figure(
            section,
            Figure {
                key,
                value,
                source,
                sure: true,
            },
        );
    }

    /// Values beyond what a profile may have, as of a loop device in memory, become the nearest;
    /// the geometry, whose figures must fit each other, has its own rules.
    fn put_figure(&mut self, section: &'static str, mut figure: Figure) {
        if let Some(legal) = legal_range(section, figure.key).filter(|_| section != "geometry") {
            figure.value = within(&legal, figure.value);
        }
        let at = ORDER.iter().position(|name| *name == section);
        let entry = self.sections.entry(at.unwrap_or(ORDER.len()));
        let (_, figures) = entry.or_insert_with(|| (section, Vec::new()));
        figures.push(figure);
    }

    /// A figure that no test looks at.
    fn composed(&mut self, section: &'static str, key: &'static str, value: u64) {
        self.composed_as(section, key, value, UNSEEN.into());
    }

    fn composed_as(
        &mut self,
        section: &'static str,
        key: &'static str,
        value: u64,
        source: String,
    ) {
        self.put_figure(
            section,
            Figure {
                key,
                value,
                source,
                sure: false,
            },
        );
    }

    /// A figure that the test of a quantity would have told, had it had a result.
    fn untold(&mut self, section: &'static str, key: &'static str, of: Quantity, value: u64) {
        let reason = self.findings.get(of).reason.as_deref().unwrap_or_default();
        let source = match plain(reason).chars().take(160).collect::<String>() {
            reason if reason.is_empty() => UNSEEN.to_owned(),
            reason => format!("composed: {reason}"),
        };
        self.composed_as(section, key, value, source);
    }

    /// A finding, or a composed value.
    fn found(&mut self, section: &'static str, key: &'static str, of: Quantity, other: u64) -> u64 {
        let finding = self.findings.get(of).clone();
        let Some(value) = finding.value else {
            self.untold(section, key, of, other);
            return other;
        };
        self.put_figure(
            section,
            Figure {
                key,
                value: value.whole(),
                source: seen(&finding),
                sure: finding.confidence >= CONFIDENT,
            },
        );
        value.whole()
    }

    pub fn geometry(&mut self, family: &str) {
        let stated = self.findings.measured.capacity_bytes;
        let source = match self.capacity < stated / SECTOR * SECTOR {
            true => format!("probe: cut to what a profile may have from {stated} bytes"),
            false => "probe: the device's size".into(),
        };
        let capacity = self.capacity;
        self.put("geometry", "capacity_bytes", capacity, source);
        let au = self.findings.au();
        let page = self.findings.whole(Quantity::PageBytes);
        match page {
            Some(page) if au.is_multiple_of(page) => {
                self.found("geometry", "page_bytes", Quantity::PageBytes, page);
            }
            Some(_) => self.composed("geometry", "page_bytes", divisor(au, 16 * KIB)),
            None => self.untold(
                "geometry",
                "page_bytes",
                Quantity::PageBytes,
                divisor(au, 16 * KIB),
            ),
        }
        let page = page.filter(|page| au.is_multiple_of(*page));
        let page = page.unwrap_or(divisor(au, 16 * KIB));
        let unit = self.findings.whole(Quantity::WriteUnitBytes);
        match unit.filter(|unit| unit.is_multiple_of(page)) {
            Some(unit) => {
                self.found(
                    "geometry",
                    "write_unit_bytes",
                    Quantity::WriteUnitBytes,
                    unit,
                );
            }
            None => self.composed("geometry", "write_unit_bytes", page),
        }
        match self.findings.whole(Quantity::AuBytes) {
            Some(found) if found != au => {
                let found = Bytes(found);
                let source = format!("composed: the probe saw {found}, which no profile may have");
                self.composed_as("geometry", "au_bytes", au, source);
            }
            _ => drop(self.found("geometry", "au_bytes", Quantity::AuBytes, au)),
        }
        let linear = self.found("geometry", "open_aus_linear", Quantity::OpenAusLinear, 8);
        let random = self.found(
            "geometry",
            "open_aus_random",
            Quantity::OpenAusRandom,
            linear,
        );
        let aus = capacity / au;
        let spare = match family {
            "page-map" => self.page_map_spare(),
            _ => (aus / 100).max(linear.max(random) + 4 * random + 8),
        };
        self.composed("geometry", "spare_aus", spare);
    }

    /// Spare AUs of a page map: what is usual.
    fn page_map_spare(&self) -> u64 {
        (self.capacity / self.findings.au() * 7 / 100).max(16)
    }

    /// Bus and reading; returns the time of a command in microseconds.
    pub fn reading(&mut self) -> f64 {
        let measured = &self.findings.measured;
        let small = measured
            .align
            .as_ref()
            .map_or(400.0, |align| align.read_us.median);
        let rises = measured
            .align
            .as_ref()
            .map_or(&[][..], |align| &align.boundaries);
        let rise = |of: Option<u64>| {
            let wanted = rises.iter().find(|b| b.bytes() == of && of.is_some());
            wanted.map(|boundary| boundary.rise.height_us)
        };
        let page = self.findings.whole(Quantity::PageBytes);
        let (next, step) = (rise(page), rise(self.findings.whole(Quantity::AuBytes)));
        let zone = self.findings.whole(Quantity::ZoneBytes);
        let zone_step = rise(zone);
        let rate = self.findings.real(Quantity::ReadMbS).unwrap_or(20.0) * 1e6;
        let page_us = page.map_or(0.0, |page| next.unwrap_or(0.0) / page as f64);
        let wire_us = (1e6 / rate - page_us).max(0.1 * 1e6 / rate);
        let command = (0.2 * small).min(200.0);
        self.composed("bus", "command_us", command as u64);
        let how = |what: &str| format!("probe: {what}");
        let wire = (1e6 / wire_us) as u64;
        match self.findings.real(Quantity::ReadMbS) {
            Some(_) => self.put(
                "bus",
                "rate_bytes_per_s",
                wire,
                how("rate of reading in order, less the time of pages"),
            ),
            None => self.untold("bus", "rate_bytes_per_s", Quantity::ReadMbS, wire),
        }
        let first = (small - command - 1024.0 * wire_us).max(0.0) as u64;
        match measured.align {
            Some(_) => self.put(
                "read",
                "first_page_us",
                first,
                how("a read of 1 KiB, less command"),
            ),
            None => self.composed("read", "first_page_us", first),
        }
        match next {
            Some(next) => self.put(
                "read",
                "next_page_us",
                next.round() as u64,
                how("step at a page"),
            ),
            None => self.composed("read", "next_page_us", 0),
        }
        match step {
            Some(step) => self.put(
                "read",
                "au_step_us",
                step.round() as u64,
                how("step at an AU"),
            ),
            None => self.composed("read", "au_step_us", 0),
        }
        if let (Some(zone), Some(step)) = (zone, zone_step) {
            self.put("read", "zone_bytes", zone, how("step beyond the AU"));
            self.put(
                "read",
                "zone_step_us",
                step.round() as u64,
                how("step beyond the AU"),
            );
        }
        command
    }

    pub fn writing(&mut self, family: &'static str, command: f64) {
        let measured = &self.findings.measured;
        let rate = self
            .findings
            .real(Quantity::WriteMbS)
            .map(|rate| rate * 1e6);
        let used = rate.unwrap_or(8e6);
        let block_us = crate::open_aus::BLOCK as f64 / used * 1e6;
        let turns = measured.open_linear.as_ref();
        let fast: Vec<f64> = turns
            .map_or(&[][..], |open| &open.turns)
            .iter()
            .filter(|turn| !turn.too_many && turn.aus > 1)
            .map(|turn| turn.fast_us)
            .collect();
        let overhead = median(&fast).map(|us| (us - block_us - command).max(0.0));
        let stream = measured.writes.as_ref().and_then(|writes| {
            let rate = median(writes.rates.get(&(4 * KIB))?)?;
            Some(4096.0 / rate * 1e6)
        });
        match overhead {
            Some(us) => self.put(
                "write",
                "overhead_us",
                us as u64,
                "probe: writes of 64 KiB into AUs in turns".into(),
            ),
            None => self.untold("write", "overhead_us", Quantity::OpenAusLinear, 1000),
        }
        match rate {
            Some(_) => {
                let finding = self.findings.get(Quantity::WriteMbS);
                let (source, sure) = (seen(finding), finding.confidence >= CONFIDENT);
                self.put_figure(
                    "write",
                    Figure {
                        key: "rate_bytes_per_s",
                        value: used as u64,
                        source,
                        sure,
                    },
                );
            }
            None => self.untold("write", "rate_bytes_per_s", Quantity::WriteMbS, used as u64),
        }
        if let (Some(stream), Some(overhead)) = (stream, overhead) {
            let joined = stream < 0.5 * (overhead + command + 4096.0 / used * 1e6);
            let source = "probe: writes of 4 KiB in order beside those in turns";
            self.put("write", "coalesce", u64::from(joined), source.into());
        }
        self.copying(used);
        self.discard_and_cache();
        self.slc();
        match family {
            "log-block" => self.log_block(),
            "update-block" => self.update_block(),
            _ => self.page_map(),
        }
        self.fat(family, overhead.unwrap_or(1000.0) + command);
    }

    fn copying(&mut self, rate: f64) {
        let au = self.findings.au();
        let linear = self.findings.measured.open_linear.as_ref();
        match self
            .findings
            .real(Quantity::OverflowUs)
            .filter(|_| linear.is_some_and(|l| l.copies))
        {
            Some(us) => {
                let rate = (au as f64 / us * 1e6) as u64;
                let source = "probe: AU over the time of a write that copies one".into();
                self.put("copy", "rate_bytes_per_s", rate, source);
            }
            None => self.untold(
                "copy",
                "rate_bytes_per_s",
                Quantity::OverflowUs,
                rate as u64,
            ),
        }
        self.composed("copy", "erase_us", 3000);
    }

    fn discard_and_cache(&mut self) {
        let measured = &self.findings.measured;
        let flush = measured.flush.as_ref().filter(|test| test.supported);
        let discard = measured.discard.clone();
        let cached = self.findings.whole(Quantity::CacheBytes).unwrap_or(0);
        match discard {
            Some(test) if test.supported => {
                let source = format!("probe: {} discards succeeded", test.discard_us.count);
                self.put("discard", "supported", 1, source);
                let us = test.discard_us.median as u64;
                self.put(
                    "discard",
                    "overhead_us",
                    us,
                    format!("probe: {}", Bytes(test.bytes)),
                );
            }
            _ => self.untold("discard", "supported", Quantity::DiscardUs, 0),
        }
        if cached > 0 {
            self.found("cache", "bytes", Quantity::CacheBytes, 0);
            let us = flush.map_or(0.0, |flush| flush.idle_us.median) as u64;
            match flush {
                Some(_) => self.put(
                    "cache",
                    "flush_us",
                    us,
                    "probe: a flush with nothing to do".into(),
                ),
                None => self.untold("cache", "flush_us", Quantity::FlushUs, us),
            }
            self.composed("cache", "fua_us", us);
        }
    }

    /// A pSLC cache whose end was seen.
    fn slc(&mut self) {
        let bytes = self.findings.get(Quantity::SlcBytes);
        let rate = self.findings.real(Quantity::SlcWriteMbS);
        let Some((bytes, rate)) = bytes.value.filter(|_| !bytes.at_least).zip(rate) else {
            return;
        };
        let source = "probe: a long stream, before and behind its end";
        self.put("slc", "bytes", bytes.whole(), source.into());
        let rate = (rate * 1e6) as u64;
        self.put("slc", "rate_bytes_per_s", rate, source.into());
    }

    fn log_block(&mut self) {
        let measured = &self.findings.measured;
        let alone =
            |open: &Option<crate::evidence::OpenAuTest>| open.as_ref().map(|o| o.alone_us.median);
        let (linear, random) = (alone(&measured.open_linear), alone(&measured.open_random));
        let small = self.findings.whole(Quantity::SmallWriteBytes).unwrap_or(0);
        let usual = measured
            .small_writes
            .as_ref()
            .and_then(|small| Some(small.get(&(4 * KIB))?.2));
        match linear.zip(random) {
            Some((linear, random)) => {
                let percent = (100.0 * random / linear.max(1.0)) as u64;
                let source = "probe: writes of 64 KiB into one AU at random and in order";
                self.put("log_block", "random_percent", percent, source.into());
            }
            None => self.composed("log_block", "random_percent", *RANDOM_PERCENT.start()),
        }
        if small > 0 {
            self.found(
                "log_block",
                "small_write_bytes",
                Quantity::SmallWriteBytes,
                0,
            );
            match usual {
                Some(us) => self.put(
                    "log_block",
                    "small_write_us",
                    us as u64,
                    "probe: writes of 4 KiB".into(),
                ),
                None => self.composed("log_block", "small_write_us", 0),
            }
        }
    }

    /// A map in units of 4 KiB, or of as many times that as it needs to fit into memory.
    fn page_map(&mut self) {
        let au = self.findings.au();
        let blocks = self.capacity.div_ceil(au) + self.page_map_spare();
        let usual = divisor(au, 4 * KIB);
        let mut unit = usual;
        while units(blocks, au, unit) > UNITS_MAX
            && UNIT_BYTES.contains(&(2 * unit))
            && au.is_multiple_of(2 * unit)
        {
            unit *= 2;
        }
        let source = match unit {
            unit if unit == usual => UNSEEN.to_owned(),
            _ => format!("composed: {UNITS_MAX} units are the most that a profile may have"),
        };
        self.composed_as("page_map", "unit_bytes", unit, source);
        self.composed("page_map", "modify_us", 300);
        let linear = self.findings.measured.open_linear.as_ref();
        if let Some(streams) = linear
            .filter(|linear| linear.folds == Some(true))
            .and_then(|linear| linear.limits.first().copied())
        {
            let source = "probe: AUs in turns that have places of their own";
            self.put("page_map", "streams", u64::from(streams), source.into());
        }
    }

    fn update_block(&mut self) {
        let au = self.findings.au();
        let group = divisor(au, 512 * KIB).max(au.div_ceil(128));
        self.composed("update_block", "group_bytes", group);
        self.composed("update_block", "group_rate_bytes_per_s", 8_000_000);
        self.composed("update_block", "small_us", 1600);
    }

    fn fat(&mut self, family: &str, overhead: f64) {
        let Some(count) = self.findings.whole(Quantity::FatAus).filter(|c| *c > 0) else {
            return;
        };
        if family == "page-map" {
            return;
        }
        self.found("fat", "aus", Quantity::FatAus, count);
        let first = self.findings.whole(Quantity::FatFirstAu).unwrap_or(0);
        self.found("fat", "first_au", Quantity::FatFirstAu, 0);
        let times: Vec<f64> = self
            .findings
            .measured
            .fat
            .as_ref()
            .map_or(Vec::new(), |fat| {
                fat.first_us
                    .iter()
                    .skip(first as usize)
                    .take(count as usize)
                    .map(|c| c.median)
                    .collect()
            });
        let seen = median(&times);
        let us = seen.unwrap_or(10_000.0);
        let overhead = overhead.min(0.5 * us);
        let rate = crate::open_aus::BLOCK as f64 / (us - overhead) * 1e6;
        let rate = rate as u64;
        self.composed_as(
            "fat",
            "overhead_us",
            overhead as u64,
            "composed: as elsewhere".into(),
        );
        match seen {
            Some(_) => self.put(
                "fat",
                "rate_bytes_per_s",
                rate,
                "probe: writes of 64 KiB into them".into(),
            ),
            None => self.composed("fat", "rate_bytes_per_s", rate),
        }
    }
}

/// The largest half, quarter … of `most` that divides `bytes`.
fn divisor(bytes: u64, most: u64) -> u64 {
    let mut size = most;
    while size > SECTOR && !bytes.is_multiple_of(size) {
        size /= 2;
    }
    size
}
