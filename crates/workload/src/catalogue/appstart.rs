//! Workload `appstart`: a program that loads many small files starts cold. It stands for what
//! interpreters, desktop programs and plug-in hosts do: look for each of many modules in a
//! search path, open it, read it, and go on with what that one needs.
//!
//! The program is the real perl; its modules are generated, so that the same is loaded on every
//! machine. What it computes is user space, which is free in the lab: the figure is what the
//! filesystem, the kernel and the card take.

use crate::phase::{Phase, Programs};
use crate::program::Program;
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use std::collections::BTreeMap;
use whichfs_trial::WorkloadSpec;
use whichfs_units::KIB;

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(190, &AppStart)];

/// The cold start of a program that loads many small files.
pub struct AppStart;

/// The phase that makes the modules.
const INSTALL: &str = "appstart_install";

/// The phase in which the program starts.
const START: &str = "appstart";

const PARAMETERS: [Parameter; 2] = [
    Parameter {
        name: "modules",
        default: 600,
        unit: "files",
        meaning: "modules, each a file in one of 16 directories; each loads up to four others",
        min: 1,
        max: 50_000,
    },
    Parameter {
        name: "module_bytes",
        default: 6 * KIB,
        unit: "B",
        meaning: "mean size of a module; they have half of it to one and a half",
        min: 256,
        max: 256 * KIB,
    },
];

const PHASES: [PhaseDef; 2] = [
    PhaseDef {
        name: INSTALL,
        meaning: "write the modules, then sync (s)",
        cold: false,
        writes: true,
        space_after: true,
        metrics: &[MetricDef {
            metric: INSTALL,
            rule: Rule::Seconds,
        }],
    },
    PhaseDef {
        name: START,
        meaning: "perl loads the first module, and by it all others, cold (s)",
        cold: true,
        writes: false,
        space_after: false,
        metrics: &[MetricDef {
            metric: START,
            rule: Rule::Seconds,
        }],
    },
];

/// Makes the modules. Its arguments: how many, mean bytes, seed. The generator is a linear
/// congruence of 31 bits: the same numbers with every perl.
pub(crate) const MAKE: &str = r#"
use strict;
my ($modules, $bytes, $state) = @ARGV;
$state = ($state + 1) % 2147483648;
sub below { $state = ($state * 1103515245 + 12345) % 2147483648; int($state / 8) % $_[0] }
sub name { sprintf "App::D%02d::M%05d", $_[0] % 16, $_[0] }
mkdir "lib"; mkdir "lib/App";
mkdir sprintf("lib/App/D%02d", $_) for 0 .. 15;
for my $at (0 .. $modules - 1) {
    my $text = "package " . name($at) . ";\nuse strict;\n";
    for my $child (4 * $at + 1 .. 4 * $at + 4) {
        $text .= "use " . name($child) . ";\n" if $child < $modules;
    }
    my $size = int($bytes / 2) + below($bytes);
    my $number = 0;
    while (length($text) + 100 < $size) {
        $text .= sprintf "sub f%d { my (\$a, \$b) = \@_; return \$a * %d + \$b - %d; }\n",
            $number++, below(100000), below(100000);
    }
    $text .= "our \$loaded = 1;\n1;\n";
    (my $path = "lib/" . name($at) . ".pm") =~ s{::}{/}g;
    open(my $file, ">", $path) or die "$path: $!\n";
    print $file $text or die "$path: $!\n";
    close($file) or die "$path: $!\n";
}
system("sync", "-f", ".") == 0 or die "sync failed\n";
"#;

/// Checks that all modules were loaded: how many is the argument.
pub(crate) const LOAD: &str = r#"
use lib "lib";
use App::D00::M00000;
my $loaded = grep { m{^App/} } keys %INC;
$loaded == $ARGV[0] or die "$loaded of $ARGV[0] modules were loaded\n";
"#;

/// The seed as [`MAKE`] takes it: perl keeps exact integers of 53 bits; the generator has 31.
pub(crate) fn perl_seed(seed: u64) -> String {
    (seed % (1 << 31)).to_string()
}

impl Workload for AppStart {
    fn name(&self) -> &'static str {
        "appstart"
    }

    fn title(&self) -> &'static str {
        "cold start of a program that loads many small files (perl and its modules)"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }
}

impl Programs for AppStart {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Result<Program, WorkloadError> {
        let value = |name| parameter(self, spec, name).to_string();
        let seed = perl_seed(seed);
        let modules = value("modules");
        let (script, arguments) = match phase {
            INSTALL => (MAKE, vec![modules, value("module_bytes"), seed]),
            START => (LOAD, vec![modules]),
            other => return Err(unknown_phase(self, other)),
        };
        let mut argv = vec!["/usr/bin/perl".to_owned(), "-".to_owned()];
        argv.extend(arguments);
        Ok(Program {
            argv,
            // perl's hashes are in random order otherwise.
            env: BTreeMap::from([("PERL_HASH_SEED".to_owned(), "0".to_owned())]),
            stdin: script.to_owned(),
            told: false,
            files: Vec::new(),
            package: "perl-base",
        })
    }

    fn writes(&self, _phase: &str, spec: &WorkloadSpec) -> Option<u64> {
        let value = |name| parameter(self, spec, name);
        // Modules have between half and one and a half of that, and end in a block of their own.
        Some(value("modules").saturating_mul(value("module_bytes") + 4 * KIB))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    fn spec(modules: u64) -> WorkloadSpec {
        WorkloadSpec {
            name: "appstart".into(),
            parameters: BTreeMap::from([("modules".to_owned(), modules)]),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    /// Runs `phase` of a specification with 30 modules in `dir`; whether it ended well.
    fn perl(phase: &str, seed: u64, dir: &Path) -> bool {
        let program = AppStart.program(phase, &spec(30), seed).unwrap();
        let mut child = Command::new(&program.argv[0])
            .args(&program.argv[1..])
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(program.stdin.as_bytes()).unwrap();
        drop(stdin);
        child.wait().unwrap().success()
    }

    #[test]
    fn what_is_installed_can_be_loaded_and_is_the_same_again() {
        let base = std::env::temp_dir().join(format!("whichfs-appstart-{}", std::process::id()));
        let [one, two] = ["one", "two"].map(|name| base.join(name));
        for dir in [&one, &two] {
            std::fs::create_dir_all(dir).unwrap();
            assert!(perl(INSTALL, 7, dir));
            assert!(perl(START, 7, dir));
        }
        let last = "lib/App/D13/M00029.pm";
        let [first, second] = [&one, &two].map(|dir| std::fs::read(dir.join(last)).unwrap());
        assert_eq!(first, second);
        assert!((2_900..9_300).contains(&first.len()), "{}", first.len());
        std::fs::remove_file(one.join(last)).unwrap();
        assert!(!perl(START, 7, &one), "a module is missing");
        std::fs::remove_dir_all(base).unwrap();
    }
}
