//! KTAP 1, the test output of the Linux kernel, which KernelCI and LAVA read: a result for each
//! case, its figures as diagnostic lines before it.

use crate::junit::{Case, CaseResult};
use std::fmt::Write as _;

/// How the diagnostic line of a figure begins; then come the name of case and figure, the value and
/// the unit.
pub const KTAP_FIGURE: &str = "# figure";

/// `cases` as KTAP.
pub fn ktap(cases: &[Case]) -> String {
    let mut out = format!("KTAP version 1\n1..{}\n", cases.len());
    for (at, case) in cases.iter().enumerate() {
        let name = ktap_name(&format!("{}.{}", case.class, case.name));
        for line in case.output.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let line = match words[..] {
                [figure, value, unit] if value.parse::<f64>().is_ok() => {
                    let unit: String = unit.chars().filter(|c| is_of_unit(*c)).collect();
                    format!("{KTAP_FIGURE} {name}.{} {value} {unit}", ktap_name(figure))
                }
                _ => format!("# {}", remark(line)),
            };
            out += line.trim_end();
            out.push('\n');
        }
        let (word, directive) = match &case.told {
            CaseResult::Passed => ("ok", String::new()),
            CaseResult::Skipped(why) => ("ok", format!(" # SKIP {}", remark(why))),
            CaseResult::Failed(why) => {
                let _ = writeln!(out, "# {}", remark(why));
                ("not ok", String::new())
            }
        };
        let _ = writeln!(out, "{word} {} {name}{directive}", at + 1);
    }
    out
}

/// `name` as one word that no shell and no parser of KTAP understands otherwise.
pub fn ktap_name(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c,
        '.' | '-' | '_' | '+' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// Whether a unit may have `c`: `MB/s`, `%`, `µs`.
fn is_of_unit(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '%' | '.')
}

/// `text` on one line that begins no result of its own.
fn remark(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    whichfs_units::printable(&words.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    fn cases() -> Vec<Case> {
        let case = |name: &str, told, output: &str| Case {
            class: "SD-1.tree".into(),
            name: name.into(),
            seconds: 1.0,
            told,
            output: output.into(),
        };
        vec![
            case(
                "ext4.seed-1",
                CaseResult::Passed,
                "tree_write 12.5 MB/s\nspace 3\n",
            ),
            case(
                "f2fs # x",
                CaseResult::Failed("ENOSPC:\nnot ok 9 y".into()),
                "",
            ),
            case("vfat", CaseResult::Skipped("too small".into()), ""),
        ]
    }

    #[test]
    fn each_case_is_a_result_after_its_figures() {
        let text = ktap(&cases());
        assert_eq!(
            text,
            "KTAP version 1\n1..3\n\
             # figure SD-1.tree.ext4.seed-1.tree_write 12.5 MB/s\n# space 3\n\
             ok 1 SD-1.tree.ext4.seed-1\n\
             # ENOSPC: not ok 9 y\nnot ok 2 SD-1.tree.f2fs___x\n\
             ok 3 SD-1.tree.vfat # SKIP too small\n"
        );
    }

    /// The kernel's own parser, of Debian's source package.
    #[test]
    fn the_parser_of_the_kernel_reads_it() {
        const SOURCE: &str = "/usr/src/linux-source-6.12.tar.xz";
        let dir = tempfile::tempdir().unwrap();
        let files = ["kunit_parser.py", "kunit_printer.py"];
        let files = files.map(|name| format!("linux-source-6.12/tools/testing/kunit/{name}"));
        let mut tar = Command::new("tar");
        tar.args(["-xJf", SOURCE, "--strip-components=4"]);
        let unpacked = tar.args(files).current_dir(&dir).output();
        if !unpacked.is_ok_and(|output| output.status.success()) {
            whichfs_testkit::skip::skip(format!("{SOURCE} is missing (linux-source-6.12)"));
            return;
        }
        let script = "import sys; from kunit_parser import parse_run_tests as run\n\
                      t = run(sys.stdin.read().splitlines())\n\
                      print(t.counts.passed, t.counts.failed, t.counts.skipped, t.counts.errors, \
                      *[s.name for s in t.subtests], file=sys.stderr)";
        let read = |text: &str| {
            let input = dir.path().join("ktap");
            std::fs::write(&input, text).unwrap();
            let mut python = Command::new("python3");
            python.args(["-c", script]).env("PYTHONPATH", dir.path());
            let output = python.stdin(std::fs::File::open(input).unwrap()).output();
            String::from_utf8(output.unwrap().stderr).unwrap()
        };
        let text = ktap(&cases());
        let names = "SD-1.tree.ext4.seed-1 SD-1.tree.f2fs___x SD-1.tree.vfat";
        assert_eq!(read(&text).trim(), format!("1 1 1 0 {names}"));
        // A result that is missing is an error of the parser.
        let torn = text.replace("ok 3 SD-1.tree.vfat # SKIP too small\n", "");
        assert!(!read(&torn).contains("1 1 1 0"), "{}", read(&torn));
    }
}
