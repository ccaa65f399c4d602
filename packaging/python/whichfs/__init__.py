"""Which filesystem, tuned how, for an SD card, eMMC or USB stick.

    >>> import whichfs
    >>> verdict = whichfs.choose(card="a1-32gb", need="logger")
    >>> verdict.candidate, verdict.commands
    >>> verdict.to_pandas()

The package asks the program `whichfs`, which comes with it, and wraps the JSON documents that it
prints. docs/python.md has examples, errors and notebooks.
"""

from whichfs._calls import cards, choose, crash, probe, study, trials, workloads
from whichfs._errors import Error, MissingPackage
from whichfs._inputs import Card, CardFigures, Life, Need, Rule, Weight, Workload
from whichfs._program import program
from whichfs._progress import Progress
from whichfs._results import (
    CrashResult,
    CrashStudyResult,
    Cuts,
    FleetResult,
    ProbeResult,
    Ranked,
    Results,
    Scatter,
    StudyResult,
    Trials,
    Verdict,
)

__all__ = [
    "Card", "CardFigures", "CrashResult", "CrashStudyResult", "Cuts", "Error", "FleetResult", "Life", "MissingPackage",
    "Need", "ProbeResult", "Progress", "Ranked", "Results", "Rule", "Scatter", "StudyResult", "Trials", "Verdict",
    "Weight", "Workload", "cards", "choose", "crash", "probe", "program", "study", "trials", "workloads",
]

# Tracebacks name them as callers do.
for _error in (Error, MissingPackage):
    _error.__module__ = "whichfs"
