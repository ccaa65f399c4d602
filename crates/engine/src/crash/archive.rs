//! Series of cuts on disk: a file for each, so that an interrupted one goes on and any cut of it
//! can be shown again. JSON lines: the specification, then a result for each cut as it came. Runs
//! of the same series at the same time add to the same file.

use super::check::Result;
use super::spec::Spec;
use crate::error::{Error, Outcome};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The file of one series, open for more results.
pub struct SeriesArchive {
    path: PathBuf,
    file: File,
    out: Box<dyn Write>,
}

/// What the bytes of a series go through on their way to its file: nothing, or planted faults.
pub type Through<'t> = &'t dyn Fn(File) -> Box<dyn Write>;

impl SeriesArchive {
    /// Opens the file of `spec` in `directory` with the results that it has, by the number of the
    /// cut; `fresh` begins anew. A line that was cut short by a crash of this machine is dropped.
    ///
    /// # Errors
    /// A file that cannot be made, or that holds another series.
    pub fn open(
        directory: &Path,
        spec: &Spec,
        fresh: bool,
    ) -> Outcome<(SeriesArchive, BTreeMap<u64, Result>)> {
        SeriesArchive::open_through(directory, spec, fresh, &|file| Box::new(file))
    }

    /// As [`SeriesArchive::open`], with what is written going `through` something.
    ///
    /// # Errors
    /// As [`SeriesArchive::open`].
    pub fn open_through(
        directory: &Path,
        spec: &Spec,
        fresh: bool,
        through: Through<'_>,
    ) -> Outcome<(SeriesArchive, BTreeMap<u64, Result>)> {
        fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
        let path = path(directory, &spec.id());
        let begin = || -> std::io::Result<(File, Box<dyn Write>)> {
            let mut options = File::options();
            let file = options.read(true).create(true).append(true).open(&path)?;
            let mut out = through(file.try_clone()?);
            // Another run of the same cuts may begin or add to it now; the caller unlocks it.
            file.lock()?;
            let whole = if fresh { 0 } else { whole_lines(&path)? };
            file.set_len(whole)?;
            if whole == 0 {
                line(&mut out, "", spec)?;
            }
            Ok((file, out))
        };
        let (file, out) = begin().map_err(|e| failed(&path, &e))?;
        let (kept, done) = read_file(&path)?;
        file.unlock().map_err(|e| failed(&path, &e))?;
        if kept != *spec {
            return Err(Error::environment(format!(
                "{} holds another series of the same number; remove it",
                path.display()
            )));
        }
        Ok((SeriesArchive { path, file, out }, done))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, result: &Result) -> Outcome {
        let (file, out) = (&self.file, &mut self.out);
        let mut add = || {
            file.lock()?;
            // A full disk or a killed run may have cut the last line short: what follows does not
            // continue it.
            let gap = ends_in_line(file).map(|whole| if whole { "" } else { "\n" });
            let added = gap.and_then(|gap| line(out, gap, result));
            file.unlock()?;
            added
        };
        add().map_err(|e| failed(&self.path, &e))
    }
}

/// The series of number `id` (or the only one that begins so) with its results.
///
/// # Errors
/// If there is none or several, or it cannot be read.
pub fn read(directory: &Path, id: &str) -> Outcome<(Spec, BTreeMap<u64, Result>)> {
    let known = list(directory)?;
    let found: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|known| known.starts_with(id))
        .collect();
    match found[..] {
        [one] if !id.is_empty() => read_file(&path(directory, one)),
        [] => Err(Error::input(format!(
            "no series {id:?} is kept in {}; crash run prints the number of a series",
            directory.display()
        ))),
        _ => Err(Error::input(format!(
            "{id:?} is short for {} series ({}{}); give more digits",
            found.len(),
            found[..found.len().min(NAMED)].join(", "),
            if found.len() > NAMED { ", …" } else { "" },
        ))),
    }
}

/// The results of the whole number `id`, by the number of the cut; none if nothing of it is kept.
///
/// # Errors
/// Its file cannot be read.
pub fn of(directory: &Path, id: &str) -> Outcome<BTreeMap<u64, Result>> {
    let path = path(directory, id);
    match path.exists() {
        true => Ok(read_file(&path)?.1),
        false => Ok(BTreeMap::new()),
    }
}

/// Series that a message names.
const NAMED: usize = 4;

/// Numbers of all series, sorted, in `directory`.
fn list(directory: &Path) -> Outcome<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(directory, &e)),
    };
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".jsonl").map(str::to_owned)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    Ok(names)
}

fn path(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.jsonl"))
}

/// Adds a line after `gap` by one write.
fn line(out: &mut dyn Write, gap: &str, value: &impl serde::Serialize) -> std::io::Result<()> {
    let text = serde_json::to_string(value)?;
    out.write_all(format!("{gap}{text}\n").as_bytes())
}

/// Whether `file` ends with a whole line.
fn ends_in_line(file: &File) -> std::io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

/// Length of the file at `path` without a last line that was cut short.
fn whole_lines(path: &Path) -> std::io::Result<u64> {
    let text = fs::read(path)?;
    let end = text.iter().rposition(|byte| *byte == b'\n');
    Ok(end.map_or(0, |end| end as u64 + 1))
}

fn read_file(path: &Path) -> Outcome<(Spec, BTreeMap<u64, Result>)> {
    let file = File::open(path).map_err(|e| failed(path, &e))?;
    let mut lines = BufReader::new(file).lines();
    let other = || {
        Error::environment(format!(
            "{} is no series of this version of whichfs: remove it",
            path.display()
        ))
    };
    let first = lines.next().ok_or_else(other)?;
    let spec = first.map_err(|e| failed(path, &e))?;
    let spec = serde_json::from_str(&spec).map_err(|_| other())?;
    let mut results = BTreeMap::new();
    for text in lines {
        let text = text.map_err(|e| failed(path, &e))?;
        // The cut of a line that was cut short is made again.
        if let Ok(result) = serde_json::from_str::<Result>(&text) {
            results.insert(result.cut.number, result);
        }
    }
    Ok((spec, results))
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::environment(format!(
        "{}: {error}; set XDG_DATA_HOME to a directory with room that you may write to",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::crash::fixture::result;
    use crate::crash::fixture::spec;

    #[test]
    fn an_interrupted_series_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (mut archive, done) = SeriesArchive::open(dir.path(), &spec(), false).unwrap();
        assert!(done.is_empty());
        archive.add(&result(3)).unwrap();
        archive.add(&result(1)).unwrap();
        drop(archive);
        // Power of this machine was lost in the midst of a line.
        let path = path(dir.path(), &spec().id());
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], b"{\"cut\":{\"numb"].concat()).unwrap();
        let (mut archive, done) = SeriesArchive::open(dir.path(), &spec(), false).unwrap();
        assert_eq!(done.keys().copied().collect::<Vec<_>>(), [1, 3]);
        archive.add(&result(2)).unwrap();
        let (kept, all) = read(dir.path(), &spec().id()[..5]).unwrap();
        assert_eq!((kept, all.len()), (spec(), 3));
        assert_eq!(all[&3], result(3));
        let (_, done) = SeriesArchive::open(dir.path(), &spec(), true).unwrap();
        assert!(done.is_empty(), "fresh");
    }

    #[test]
    fn two_runs_of_a_series_add_to_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let ends = |fresh| {
            std::thread::scope(|scope| {
                let all = [1, 2, 3, 4].map(|number| {
                    let place = dir.path();
                    scope.spawn(move || {
                        let (mut archive, _) = SeriesArchive::open(place, &spec(), fresh).unwrap();
                        archive.add(&result(number)).unwrap();
                    })
                });
                all.map(|one| one.join().is_ok())
            })
        };
        for _ in 0..50 {
            assert_eq!(ends(false), [true; 4]);
            let (_, results) = read(dir.path(), &spec().id()).unwrap();
            assert_eq!(results.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4]);
            fs::remove_file(path(dir.path(), &spec().id())).unwrap();
        }
        assert_eq!(ends(true), [true; 4]);
        let (kept, _) = read(dir.path(), &spec().id()).unwrap();
        assert_eq!(kept, spec());
    }

    /// A file on a disk that is full from byte `room` on, until somebody makes room.
    struct Full {
        file: File,
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.room == 0 {
                // The caller frees some space when it hears of it.
                self.room = usize::MAX;
                return Err(std::io::Error::from_raw_os_error(28));
            }
            let written = self.file.write(&bytes[..bytes.len().min(self.room)])?;
            self.room -= written;
            Ok(written)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.file.flush()
        }
    }

    #[test]
    fn a_result_after_one_that_a_full_disk_tore_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let length = |value: &dyn Fn() -> String| value().len() + 1;
        let head = length(&|| serde_json::to_string(&spec()).unwrap());
        let room = head + length(&|| serde_json::to_string(&result(1)).unwrap()) + 10;
        let full = |file| Box::new(Full { file, room }) as Box<dyn Write>;
        let opened = SeriesArchive::open_through(dir.path(), &spec(), false, &full);
        let mut archive = opened.unwrap().0;
        archive.add(&result(1)).unwrap();
        archive.add(&result(2)).unwrap_err();
        archive.add(&result(3)).unwrap();
        let (_, kept) = read(dir.path(), &spec().id()).unwrap();
        assert_eq!(kept.into_keys().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn a_series_that_a_full_disk_did_not_let_begin_begins_later() {
        let dir = tempfile::tempdir().unwrap();
        let full = |file| Box::new(Full { file, room: 10 }) as Box<dyn Write>;
        assert!(SeriesArchive::open_through(dir.path(), &spec(), false, &full).is_err());
        let (_, kept) = SeriesArchive::open(dir.path(), &spec(), false).unwrap();
        assert!(kept.is_empty());
        assert_eq!(read(dir.path(), &spec().id()).unwrap().0, spec());
    }

    #[test]
    fn what_is_not_there_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let error = read(dir.path(), "12ab").unwrap_err();
        assert!(error.message.contains("crash run"), "{error}");
        fs::write(path(dir.path(), "12abc"), "junk\n").unwrap();
        let error = read(dir.path(), "12ab").unwrap_err();
        assert!(error.message.contains("remove it"), "{error}");
        fs::write(path(dir.path(), "12abd"), "junk\n").unwrap();
        let error = read(dir.path(), "12ab").unwrap_err();
        assert!(error.message.contains("2 series (12abc, 12abd)"), "{error}");
    }
}
