//! The profile of a fitted card: figures, sources, how well each is determined.

use crate::fat::{FatRegion, region};
use crate::points::{ComparedPoint, Errors, Point, PointOrder, curve_name};
use crate::reads::{self, Known, Reads};
use crate::replay::Replay;
use crate::residual::{Remains, Smoothness, residual};
use crate::search::{Candidate, How};
use crate::shape::{Free, Shape, Unit};
use crate::sheet::{self, Head, Note, Sheet};
use crate::solve::{SCALE, Solution};
use crate::{FitError, FitOptions};
use std::collections::BTreeMap;
use whichfs_card::limits::{CAPACITY_CUT, COMPOSED_PERCENT, RATE, within};
use whichfs_card::{Profile, Residual};
use whichfs_curves::Curves;
use whichfs_curves::flashbench::OpenAuTests;
use whichfs_units::{Bytes, SECTOR};

/// Capacity where none is known: a card sold as 4 GB, as most of the data.
const CAPACITY: u64 = 3_980_394_496;
/// SD high speed less framing, in bytes a second; faster cards get what they need.
const BUS_RATE: u64 = 23_000_000;

/// Source of figures that no point decides alone, where the points decide small writes.
const GOES_WITH_SMALL_WRITES: &str =
    "as cards of the data have it with such log_block.small_write_bytes";

/// How well a time or rate of the profile is determined.
struct Determined {
    /// How far it may be off, in percent, as a factor up or down (one standard deviation).
    uncertainty_percent: u64,
    /// Share of the knowledge that is from the points; the rest is the prior. 0 to 1.
    informed: f64,
    /// In a word or two.
    word: &'static str,
}

/// What was written.
pub(crate) struct Written {
    pub toml: String,
    pub profile: Profile,
}

impl Written {
    /// The same with its errors over the fitted points, where there are any: of the card, and of
    /// its family alone, which is the lesser part of it if it `breaks`.
    pub fn with_error(
        self,
        errors: [Option<Errors>; 2],
        breaks: bool,
    ) -> Result<Written, FitError> {
        let [Some(of), Some(alone)] = errors else {
            return Ok(self);
        };
        let (before, after) = self.toml.split_once("\n[").unwrap_or((&self.toml, ""));
        let pair = |of: Errors| format!("{:.1} / {:.1} %", 100.0 * of.median, 100.0 * of.p90);
        let family = match self.profile.residual() {
            Some(_) if breaks => format!("; mostly residual, its family alone by {}", pair(alone)),
            Some(_) => format!("; its family alone by {}", pair(alone)),
            None => String::new(),
        };
        let toml = format!(
            "{}\nfit_error = \"{} of {} fitted points{family}\"\n\n[{after}",
            before.trim_end(),
            pair(of),
            of.points
        );
        self.read(toml)
    }

    /// The same with `residual`, if there is one.
    pub fn with_residual(self, residual: Option<Residual>) -> Result<Written, FitError> {
        let Some(residual) = residual else {
            return Ok(self);
        };
        let toml = format!("{}\n{}", self.toml, sheet::residual(&residual));
        self.read(toml)
    }

    fn read(self, toml: String) -> Result<Written, FitError> {
        let profile = Profile::parse(self.profile.title(), &toml)
            .map_err(|error| FitError::NoCard(error.to_string()))?;
        Ok(Written { toml, profile })
    }
}

/// What a profile is written from.
pub(crate) struct Basis<'a> {
    /// Curves from which reads and the FAT region may be taken, if the fit may see them.
    pub curves: Option<&'a Curves>,
    /// The points that were fitted.
    pub points: &'a [Point],
    /// Whether the points tell family and sizes.
    pub told: bool,
    /// What of the log could not be used.
    pub left_out: &'a [String],
    pub options: &'a FitOptions,
}

/// The capacity of the card, and its source.
pub(crate) fn capacity(options: &FitOptions, replay: &Replay) -> Result<(u64, String), FitError> {
    let least = replay.least_capacity();
    match options.capacity_bytes {
        Some(bytes) if bytes < least => Err(FitError::TooSmall {
            bytes,
            least,
            erase_bytes: replay.erase_bytes,
        }),
        Some(bytes) => Ok((bytes / SECTOR * SECTOR, "as stated".to_owned())),
        None => Ok((
            CAPACITY.max(least),
            "unknown: a card sold as 4 GB".to_owned(),
        )),
    }
}

impl Basis<'_> {
    /// The residual of what the family alone leaves of the points, at all sizes that
    /// `flashbench -O` writes with `erase_bytes`; none where nothing is left.
    pub fn residual(&self, of_family: &[ComparedPoint], erase_bytes: u64) -> Option<Residual> {
        let remains = Remains::of(of_family);
        let source = format!(
            "what the family leaves of {} points of {}",
            self.points.len(),
            self.source()
        );
        residual(&remains, &Smoothness::OF_DATA, &sizes(erase_bytes), source)
    }

    /// Writes the profile of `best` with a capacity and its source, or a lesser one where no
    /// profile may have it.
    pub fn profile(
        &self,
        best: &Candidate,
        (capacity, source): (u64, String),
    ) -> Result<Written, FitError> {
        let written = self.profile_of(best, capacity, source);
        if written.is_ok() || capacity <= CAPACITY_CUT {
            return written;
        }
        let source = format!("cut to what a profile may have from {capacity} bytes as stated");
        self.profile_of(best, CAPACITY_CUT, source)
    }

    fn profile_of(
        &self,
        best: &Candidate,
        capacity: u64,
        of_capacity: String,
    ) -> Result<Written, FitError> {
        let mut sheet = best.shape.sheet(&best.free, &best.solution.theta, capacity);
        let mut notes = self.notes(best);
        notes.insert("geometry.capacity_bytes", Note::plain(of_capacity));
        let write_rate = figure(&sheet, "write.rate_bytes_per_s");
        let bus_rate = BUS_RATE
            .max((write_rate as u64).saturating_mul(2))
            .min(*RATE.end());
        sheet.values.insert("bus.rate_bytes_per_s", bus_rate);
        let align = self.curves.and_then(|curves| {
            let page = figure(&sheet, "geometry.page_bytes") as u64;
            reads::reads(curves, page, figure(&sheet, "geometry.au_bytes") as u64)
        });
        if let Some(found) = align {
            self.put_reads(&mut sheet, &mut notes, found);
        }
        self.put_read_rates(&mut sheet, &mut notes, align.is_some());
        if let Some(found) = self.curves.and_then(|curves| region(&curves.fat)) {
            self.put_fat(&mut sheet, &mut notes, found);
        }
        self.finish(&sheet, &notes)
    }

    fn finish(
        &self,
        sheet: &Sheet,
        notes: &BTreeMap<&'static str, Note>,
    ) -> Result<Written, FitError> {
        let title = match self.options.title.trim() {
            "" => "fitted card",
            title => title,
        };
        let head = Head {
            title,
            interface: "sd",
            composed: !self.told,
            comments: self.comments(sheet),
        };
        let toml = sheet.toml(&head, |path| notes.get(path).cloned().unwrap_or_default());
        let profile =
            Profile::parse(title, &toml).map_err(|error| FitError::NoCard(error.to_string()))?;
        Ok(Written { toml, profile })
    }

    /// The lines above the profile.
    fn comments(&self, sheet: &Sheet) -> Vec<String> {
        let (count, from) = (self.points.len(), self.source());
        let family = sheet.family.name();
        let mut lines = vec![match self.told {
            true => format!("Fitted to {count} points of {from}: family {family}."),
            false => format!(
                "Fitted to {count} points of {from}. They tell neither family nor sizes: {family} \
                 and the rest are composed."
            ),
        }];
        let au = figure(sheet, "geometry.au_bytes") as u64;
        let said = self.options.erase_bytes.or(self.options.sizes().au_bytes);
        if said.is_none() && unpublished(au) {
            lines.push(format!(
                "The AU is inferred: {} is the largest block, with which flashbench -O begins; \
                 published logs have {}.",
                Bytes(au),
                Bytes(OpenAuTests::PUBLISHED.erase_bytes)
            ));
        }
        lines.extend(
            self.left_out
                .iter()
                .map(|what| format!("Left out: {what}.")),
        );
        lines
    }

    fn source(&self) -> &str {
        match self.options.source.as_str() {
            "" => "flashbench -O",
            source => source,
        }
    }
}

/// Sizes of requests of which a residual tells: 4 KiB and more, up to the erase size.
fn sizes(erase_bytes: u64) -> Vec<u64> {
    const LEAST: u64 = 4 << 10;
    let halved = std::iter::successors(Some(erase_bytes), |bytes| Some(bytes / 2));
    let mut sizes: Vec<u64> = halved.take_while(|bytes| *bytes >= LEAST).collect();
    sizes.reverse();
    sizes
}

/// Whether AUs have another size than those of the published logs.
fn unpublished(au_bytes: u64) -> bool {
    au_bytes != OpenAuTests::PUBLISHED.erase_bytes
}

/// Source of a number of open AUs where up to `most` no step of time showed.
fn no_step(open_aus: u64, most: u32) -> String {
    match open_aus < u64::from(most) {
        true => format!("fit: no step up to {most} AUs; no more than in order"),
        false => format!("fit: no step up to {most} AUs"),
    }
}

/// A figure of the sheet, zero if it has none.
fn figure(sheet: &Sheet, path: &str) -> f64 {
    sheet.values.get(path).copied().unwrap_or(0) as f64
}

/// How well each free figure is known.
fn determined(free: &[Free], solution: &Solution) -> Vec<Determined> {
    let worse = (solution.typical_error / SCALE).max(1.0);
    free.iter()
        .enumerate()
        .map(|(j, free)| {
            let (spread, informed) = (solution.spread[j], solution.informed[j]);
            // What is of the points scales with how well they are met; the prior does not.
            let spread = (spread * worse).min(free.prior.sigma.max(spread));
            let percent = (spread.exp_m1() * 100.0).round().clamp(1.0, 900.0) as u64;
            let word = match informed {
                ..0.3 => "not determined",
                0.3..0.7 => "weakly determined",
                _ if percent > 30 => "weakly determined",
                _ if percent > 10 => "determined",
                _ => "well determined",
            };
            Determined {
                uncertainty_percent: percent,
                informed,
                word,
            }
        })
        .collect()
}

impl Basis<'_> {
    /// Sources of all figures of the shape.
    fn notes(&self, best: &Candidate) -> BTreeMap<&'static str, Note> {
        let (points, from) = (self.points.len(), self.source());
        let mut notes = BTreeMap::new();
        for path in best.shape.fixed.keys() {
            let note = match best.decided.get(path) {
                Some(How::Tried) => Note::plain(format!(
                    "fit: of the values tried, fits {points} points of {from} best"
                )),
                Some(How::Step) => Note::plain(format!(
                    "fit: where the times of {from} step up with the number of AUs"
                )),
                Some(How::NoStep(most)) => Note::plain(no_step(best.shape.value(path), *most)),
                Some(How::Plain) => Note::plain(format!(
                    "fit: nothing in the {points} points of {from} speaks for another value"
                )),
                None if self.told => {
                    Note::composed(path, "usual value: the write curves do not tell")
                }
                None => Note::composed(path, "composed: usual value; the log does not tell"),
            };
            notes.insert(*path, note);
        }
        if best.decided.contains_key("log_block.small_write_bytes") {
            let tried = |path: &&str| best.decided.contains_key(path);
            for path in Shape::WITH_SMALL_WRITES.iter().filter(|path| !tried(path)) {
                notes.insert(path, Note::composed(path, GOES_WITH_SMALL_WRITES));
            }
        }
        if let Some(note) = self.note_opened(best) {
            notes.insert("log_block.first_opened", note);
        }
        self.note_sizes(&mut notes, best);
        let spare = "composed: flash comes in powers of two, and a reserve";
        notes.insert("geometry.spare_aus", Note::plain(spare.to_owned()));
        let bus = "composed: SD high speed 25 MB/s less framing, flash.md 2.7 GB, or what \
                   writing takes";
        notes.insert(
            "bus.rate_bytes_per_s",
            Note::composed("bus.rate_bytes_per_s", bus),
        );
        let known = determined(&best.free, &best.solution);
        self.note_free(&mut notes, &best.free, &known);
        notes
    }

    /// Sources of sizes that reads or flashbench's options tell.
    fn note_sizes(&self, notes: &mut BTreeMap<&'static str, Note>, best: &Candidate) {
        let (from, told) = (self.source(), self.options.sizes());
        let [page, unit, au] = [
            "geometry.page_bytes",
            "geometry.write_unit_bytes",
            "geometry.au_bytes",
        ];
        let is = |path: &str, told: Option<u64>| told == Some(best.shape.value(path));
        let read = || Note::plain(format!("flashbench -a of {from}: reads step up there"));
        if is(page, told.page_bytes) {
            notes.insert(page, read());
        }
        match best.decided.get("write.program_bytes") {
            Some(_) => {
                let source = "as write.program_bytes, which the points decide".to_owned();
                notes.insert(unit, Note::plain(source));
            }
            None if is(unit, told.write_unit_bytes) => {
                notes.insert(unit, read());
                notes.insert("write.program_bytes", read());
            }
            None => {}
        }
        let of_au = match (told.au_bytes, self.options.erase_bytes) {
            (Some(of_reads), _) if is(au, Some(of_reads)) => read(),
            (Some(of_reads), _) if best.shape.value(au) == 3 * of_reads => Note::plain(format!(
                "fit to {from}: three times the {} at which reads step up, which powers of two do \
                 not tell from it; writes fit better",
                Bytes(of_reads)
            )),
            (Some(of_reads), _) => Note::plain(format!(
                "--erasesize of {from}: with the {} that reads tell, writes fit worse",
                Bytes(of_reads)
            )),
            (None, Some(_)) => Note::plain(format!(
                "--erasesize of {from}: its write curves do not tell"
            )),
            (None, None) if unpublished(best.shape.value(au)) => Note::plain(format!(
                "inferred: the largest block of {from}, which nobody calls an AU"
            )),
            (None, None) => return,
        };
        notes.insert(au, of_au);
    }

    /// Source of the order in which AUs are closed, if that is the order of opening.
    fn note_opened(&self, best: &Candidate) -> Option<Note> {
        if best.shape.value("log_block.first_opened") == 0 {
            return None;
        }
        let (points, from) = (self.points.len(), self.source());
        let before = |(random, aus, count): (bool, u32, u8)| {
            let order = PointOrder::FLASHBENCH[usize::from(random)];
            format!("{count} before {}", curve_name(order, aus))
        };
        let opened: Vec<String> = best.replay.opened.told().map(before).collect();
        Some(Note::plain(format!(
            "fit: of the values tried, fits {points} points of {from} best, if of the AUs of a \
             test so many had been opened before: {}",
            opened.join("; ")
        )))
    }

    /// Sources of fitted times and rates.
    fn note_free(
        &self,
        notes: &mut BTreeMap<&'static str, Note>,
        free: &[Free],
        determined: &[Determined],
    ) {
        let (points, from) = (self.points.len(), self.source());
        for (free, known) in free.iter().zip(determined) {
            let source = match known.informed {
                ..0.3 if self.told => format!("{}: prior of {}", known.word, free.why),
                ..0.3 => format!("composed: {}, prior of {}", known.word, free.why),
                _ => format!("fit to {points} points of {from}: {}", known.word),
            };
            let percent = known.uncertainty_percent;
            let note = Note {
                source,
                uncertainty_percent: Some(match known.informed {
                    ..0.3 if free.unit != Unit::Percent => percent.max(COMPOSED_PERCENT),
                    _ => percent,
                }),
            };
            notes.insert(free.path, note);
        }
    }

    /// Figures of `flashbench -a`. Its reads tell what a first page takes if they are no longer
    /// than a page.
    fn put_reads(&self, sheet: &mut Sheet, notes: &mut BTreeMap<&'static str, Note>, found: Reads) {
        let page = figure(sheet, "geometry.page_bytes");
        let within_page = found.block_bytes.map(|bytes| bytes as f64);
        let first = within_page.filter(|bytes| *bytes <= page).map(|bytes| {
            let transfer_us = bytes / figure(sheet, "bus.rate_bytes_per_s") * 1e6;
            found.within_us - figure(sheet, "bus.command_us") - transfer_us
        });
        let values = [
            ("read.first_page_us", first),
            ("read.next_page_us", Some(found.page_us)),
            ("read.au_step_us", Some(found.au_us)),
        ];
        for (path, us) in values {
            let Some(us) = us else { continue };
            sheet.values.insert(path, us.round().max(0.0) as u64);
            let source = format!("median of flashbench -a of {}", self.source());
            notes.insert(path, Note::plain(source));
        }
    }

    /// Figures of rates of reads.
    fn put_read_rates(
        &self,
        sheet: &mut Sheet,
        notes: &mut BTreeMap<&'static str, Note>,
        pages_known: bool,
    ) {
        let pages = ["read.first_page_us", "read.next_page_us"].map(|path| figure(sheet, path));
        let known = Known {
            command_us: figure(sheet, "bus.command_us"),
            page_bytes: figure(sheet, "geometry.page_bytes") as u64,
            pages_us: pages_known.then_some(pages),
        };
        let Some((free, solution)) = reads::of_rates(self.points, &known) else {
            return;
        };
        self.note_free(notes, &free, &determined(&free, &solution));
        for (free, theta) in free.iter().zip(&solution.theta) {
            sheet.values.insert(free.path, free.unit.integer(*theta));
        }
        // Writes go over the same bus.
        let bus = "bus.rate_bytes_per_s";
        let [read, written] = [bus, "write.rate_bytes_per_s"].map(|path| figure(sheet, path));
        if read < written {
            sheet.values.insert(bus, written as u64);
            let source = format!("composed: what writing takes; reads tell {read} bytes a second");
            notes.insert(bus, Note::composed(bus, &source));
        }
    }

    fn put_fat(
        &self,
        sheet: &mut Sheet,
        notes: &mut BTreeMap<&'static str, Note>,
        found: FatRegion,
    ) {
        let values = [
            ("fat.first_au", found.first_au),
            ("fat.aus", found.aus),
            ("fat.overhead_us", found.overhead_us.round() as u64),
            ("fat.rate_bytes_per_s", within(&RATE, found.rate as u64)),
            ("fat.sub_page_us", found.sub_page_us.round() as u64),
        ];
        for (path, value) in values {
            sheet.values.insert(path, value);
            let source = format!(
                "flashbench -f of {}: AUs unlike those behind",
                self.source()
            );
            notes.insert(path, Note::plain(source));
        }
    }
}
