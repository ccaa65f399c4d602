"""What the calls give: thin wrappers of the program's documents, each a tidy table of its figures."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from whichfs._errors import Error, version_mismatch
from whichfs._program import check
from whichfs._tables import Document, Row, Table, optional


@dataclass(frozen=True)
class Ranked:
    """A candidate in the ranking of a verdict.

    `score` is how good it is beside the baseline (1; more is better) and `interval` holds 90 % of what it may be.
    `p_best` is the probability of being the best; None of a single candidate. `ties_with` are
    candidates whose scores cannot be told from this one's.
    """

    candidate: str
    score: float
    interval: Tuple[float, float]
    p_best: Optional[float]
    ties_with: Tuple[str, ...]
    reasons: Tuple[str, ...]
    seeds: int
    caveats: Tuple[str, ...]


class Results(Table):
    """The tidy table of a run, one row a figure and one a trial that failed: its `results.json`.

    The same table is in `results.csv`, and `whichfs store export FILE.json` writes it of a store. `whichfs manual
    schemas` has the meaning of each column, docs/studies.md, too.
    """

    SCHEMA = 1
    columns = ("card", "kernel", "clock", "candidate", "mount_options", "workload", "metric", "value", "unit",
               "lower_is_better", "seed", "trial", "origin", "fit_error", "failed", "variant", "board", "card_state",
               "mkfs", "partition_offset", "partition_bytes", "parameters", "version", "card_sha256", "kernel_sha256",
               "agent_sha256", "userland_sha256", "schema")

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [{name: row.get(name) for name in self.columns} for row in rows]

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Results":
        """The table of an earlier run: `results.json`, or the directory of `out` that holds it, or one of several runs,
        of which the newest is taken.

        Raises `Error` of kind `input` if the file cannot be read, `version` if another release wrote it.
        """
        file = _in_folder(path, "results.json")
        try:
            rows = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Error("input", f"{file}: {error}", "name the results.json of a run") from error
        for number in {row.get("schema") for row in rows} - {cls.SCHEMA}:
            raise version_mismatch(f"{file} has schema {number}", f"this package reads schema {cls.SCHEMA} of it")
        return cls(rows)

    def rows(self) -> List[Row]:
        """One row a figure; of a trial that failed one row without metric and value."""
        return self._rows

    def to_parquet(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the table as Apache Parquet: numbers, truth values and texts as such, also in columns without any.
        Raises `MissingPackage` without polars."""
        polars = optional("polars", "polars")
        kinds = {"value": polars.Float64, "fit_error": polars.Float64, "lower_is_better": polars.Boolean,
                 **dict.fromkeys(("seed", "partition_offset", "partition_bytes", "schema"), polars.UInt64)}
        columns = {name: [row[name] for row in self._rows] for name in self.columns}
        schema = {name: kinds.get(name, polars.String) for name in self.columns}
        polars.DataFrame(columns, schema=schema).write_parquet(os.fspath(path))


def _in_folder(path: Union[str, "os.PathLike[str]"], name: str) -> Path:
    """The file `name` in the folder `path`, or in the newest run of it; `path` itself if that is a file."""
    if not os.path.isdir(path):
        return Path(path)
    newest = Path(path) / "latest" / name
    return newest if newest.is_file() else Path(path) / name


class Verdict(Document):
    """The answer of `choose`.

    As a table it has every sample of every figure: `card`, `need`, `candidate`, `ranked` (False of a
    candidate that was left out), `metric`, `label`, `unit`, `lower_is_better`, `seed`, `value`, and `trial`, the id.
    `results` has the figures with all that decided their trials, as in the report; None after `load`.
    """

    results: Optional[Results] = None

    columns = ("card", "need", "candidate", "ranked", "metric", "label", "unit", "lower_is_better", "seed",
               "value", "trial")

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Verdict":
        """The verdict of an earlier run: `verdict.json`, or the directory of `out` that holds it.

        Raises `Error` of kind `input` if the file cannot be read, `version` if another release wrote it.
        """
        file = _in_folder(path, "verdict.json")
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Error("input", f"{file}: {error}", "name the verdict.json of a run of choose") from error
        return cls(check(document, ["choose"], file))

    @property
    def card(self) -> str:
        """Name of the card that it holds for."""
        return str(self.document["card"])

    @property
    def candidate(self) -> Optional[str]:
        """The filesystem to use; None if no candidate qualifies. Of several that trials cannot tell
        apart it is the one that the program advises, which need not be the first of the ranking."""
        advice = self.document.get("advice")
        return str(advice["candidate"]) if advice else (self.ranking[0].candidate if self.ranking else None)

    @property
    def because(self) -> Optional[str]:
        """Why this one of several; None if the score alone decides."""
        advice = self.document.get("advice")
        return str(advice["because"]) if advice else None

    @property
    def ranking(self) -> List[Ranked]:
        """The candidates, best score first; empty if none qualifies."""
        return [Ranked(one["candidate"], one["score"], tuple(one["interval"]), one["p_best"],
                       tuple(one["ties_with"]), tuple(one["reasons"]), one["seeds"], tuple(one["caveats"]))
                for one in self.document["ranking"]]

    @property
    def excluded(self) -> Dict[str, str]:
        """Why each candidate that was left out was."""
        return {one["candidate"]: one["why"] for one in self.document["excluded"]}

    @property
    def failed(self) -> List[str]:
        """Candidates of which trials failed; the verdict stands without them."""
        return [one["candidate"] for one in self.document.get("failed", [])]

    @property
    def commands(self) -> List[str]:
        """How to apply it: mkfs, mount and the line of fstab."""
        return list(self.document["commands"])

    @property
    def trials(self) -> List[str]:
        """Ids of the trials behind it."""
        return [one["id"] for one in self.document["trials_of"]]

    def rows(self) -> List[Row]:
        """One row a sample of a figure. A figure without samples has one row without `seed` and `trial`."""
        metrics = {one["metric"]: one for one in self.document["metrics"]}
        ids = {(one["candidate"], one["seed"]): one["id"] for one in self.document["trials_of"]}
        rows: List[Row] = []
        for ranked, place in ((True, "ranking"), (False, "excluded")):
            for one in self.document[place]:
                for metric, figure in one.get("figures", {}).items():
                    known = metrics.get(metric, {})
                    for point in figure["samples"] or [{"seed": None, "value": figure["value"]}]:
                        rows.append({
                            "card": self.card, "need": self.document["needs"], "candidate": one["candidate"],
                            "ranked": ranked, "metric": metric, "label": known.get("label"),
                            "unit": known.get("unit"), "lower_is_better": known.get("lower_is_better"),
                            "seed": point["seed"], "value": point["value"],
                            "trial": ids.get((one["candidate"], point["seed"])),
                        })
        return rows

    def plot(self, ax: Any = None) -> Any:
        """Draws the scores as bars with their intervals, the answer in a colour of its own, and gives the Axes.

        `ax` are the Axes to draw on; new ones if None. Raises `MissingPackage` without matplotlib, and
        `Error` of kind `no` if there is no ranking.
        """
        ranking = self.ranking
        if not ranking:
            raise Error("no", "no candidate qualifies, so there is nothing to draw", "see excluded")
        if ax is None:
            pyplot = optional("matplotlib.pyplot", "plot")
            _, ax = pyplot.subplots(figsize=(7, 1.2 + 0.42 * len(ranking)), layout="constrained")
        ends = [max(one.score, one.interval[1]) for one in ranking]
        places = range(len(ranking))
        ax.barh(places, [one.score for one in ranking], height=0.6, zorder=2,
                color=["#1b7f5c" if one.candidate == self.candidate else "#9db4c0" for one in ranking])
        for at, one in enumerate(ranking):
            ax.plot(one.interval, (at, at), color="#222222", linewidth=1.5, marker="|", zorder=3)
            if one.p_best is not None:
                ax.annotate(f"best: {100 * one.p_best:.0f} %", (ends[at], at), xytext=(6, 0),
                            textcoords="offset points", va="center", fontsize="small")
        baseline = self.document.get("baseline")
        beside = f" ({baseline['candidate']} has 1)" if baseline and baseline["is_scale"] else ""
        if beside:
            ax.axvline(1, color="#555555", linewidth=0.8, linestyle=":", zorder=1)
        ax.set(yticks=list(places), yticklabels=[one.candidate for one in ranking], xlim=(0, 1.2 * max(ends)),
               xlabel=f"score, more is better{beside}; lines: 90 % intervals",
               title=f"{self.document['title']}, on {self.card}")
        ax.title.set_fontsize("medium")
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def __repr__(self) -> str:
        return f"<Verdict: {self.candidate} on {self.card} for {self.document['needs']}, {len(self.trials)} trials>"

    def __str__(self) -> str:
        lines = [f"{self.document['title']}, on {self.card}"]
        if self.candidate is None:
            return "\n".join([*lines, "No candidate qualifies", *(f"{a}: {b}" for a, b in self.excluded.items())])
        lines += [f"Use {self.candidate}" + (f", because {self.because}" if self.because else ""), *self.commands]
        return "\n".join(lines)


class StudyResult(Document):
    """The answer of `study` for a study with trials.

    Columns: `card`, `board`, `workload`, `variant`, `candidate`, `metric`, `unit`,
    `lower_is_better`, `seed`, `value`. `results` has the figures with all that decided their trials.
    """

    results: Optional[Results] = None

    columns = ("card", "board", "workload", "variant", "candidate", "metric", "unit", "lower_is_better", "seed",
               "value")

    @property
    def failed(self) -> List[str]:
        """Trials that failed, and why; the others were made all the same."""
        return list(self.document["failed"])

    def rows(self) -> List[Row]:
        """One row a sample of a figure."""
        rows: List[Row] = []
        for grid in self.document["tables"]:
            for line in grid["lines"]:
                head = {"card": grid["card"], "board": grid["board"], "workload": line.get("load") or grid["load"],
                        "variant": line["variant"]}
                figure = {key: line[key] for key in ("metric", "unit", "lower_is_better")}
                for candidate, ours in zip(grid["candidates"], line["ours"]):
                    for seed, value in ours["values"] if ours else []:
                        rows.append({**head, "candidate": candidate, **figure, "seed": seed, "value": value})
        return rows


class FleetResult(Document):
    """The answer of `study` on several boards or directories at once (`--on` given several times).

    Columns: `place` (a path or an address), and those of `StudyResult`, whose `card` is the unit.
    """

    results: Optional[Results] = None

    columns = ("place", *StudyResult.columns)

    @property
    def places(self) -> Dict[str, StudyResult]:
        """What each place gave, in the order of the command."""
        return {one["place"]: StudyResult(one["run"]) for one in self.document["places"]}

    @property
    def ended(self) -> Dict[str, str]:
        """Why the run at a place ended early; what had finished there is kept."""
        return {one["place"]: one["ended"] for one in self.document["places"] if "ended" in one}

    @property
    def scatter(self) -> "Scatter":
        """How much units differ, apart from repeats."""
        return Scatter(self.document)

    def rows(self) -> List[Row]:
        """One row a sample of a figure."""
        return [{"place": place, **row} for place, result in self.places.items() for row in result.rows()]


class Scatter(Document):
    """The scatter of a `FleetResult`: standard deviations `between` units and `within` one (None without repeats), as
    shares of the `mean` of all `units`, with the unit's mean that is `lowest` and `highest`."""

    columns = ("workload", "variant", "candidate", "metric", "unit", "mean", "between", "within", "units", "lowest",
               "highest")

    def rows(self) -> List[Row]:
        """One row a figure that two units have."""
        rows: List[Row] = []
        for one in self.document["scatter"]:
            means = [unit["mean"] for unit in one["units"]]
            rows.append({"workload": one.get("form") or one["load"],
                         **{key: one[key] for key in ("variant", "candidate", "metric", "unit", "mean", "between")},
                         "within": one.get("within"), "units": len(means), "lowest": min(means),
                         "highest": max(means)})
        return rows


class CrashStudyResult(Document):
    """The answer of `study` for a study with power cuts.

    Columns: `workload`, `faults`, `filesystem`, `mount`, `series`, `figure` (`broken`, `lost`, `fsck`,
    `unfixable`), `count` of `cuts`, and the interval of 95 % of its share, `low` to `high`.
    """

    columns = ("workload", "faults", "filesystem", "mount", "series", "figure", "count", "cuts", "low", "high")

    def rows(self) -> List[Row]:
        """One row a figure of a series."""
        return [
            {"workload": group["workload"], "faults": group["faults"], "filesystem": row["fs"],
             "mount": row["mount"], "series": row["series"], "figure": figure, "cuts": row["cuts"],
             **{key: row[figure][key] for key in ("count", "low", "high")}}
            for group in self.document["groups"] for row in group["rows"]
            for figure in ("broken", "lost", "fsck", "unfixable")
        ]


class CrashResult(Document):
    """The answer of `crash`.

    Columns: `card`, `workload`, `filesystem`, `series`, `figure` (`broken`: a promise was broken; `mounts`,
    `repair`, `lost`, `read_errors`, `harmed`), `count` of `cuts`, and the interval of 95 % of its share, `low`
    to `high`.
    """

    columns = ("card", "workload", "filesystem", "series", "figure", "count", "cuts", "low", "high")

    @property
    def broken(self) -> int:
        """Cuts after which a promise of the system was broken, all filesystems together."""
        return int(self.document["broken"])

    @property
    def conditions(self) -> Dict[str, Dict[str, int]]:
        """How many cuts came to each condition, by filesystem."""
        return {one["fs"]: {name: share["count"] for name, share in one["conditions"].items()}
                for one in self.document["filesystems"]}

    def rows(self) -> List[Row]:
        """One row a figure of a filesystem."""
        return [
            {"card": self.document["card"], "workload": self.document["workload"], "filesystem": one["fs"],
             "series": one["series"], "figure": figure, "count": share["count"], "cuts": share["of"],
             "low": share["low"], "high": share["high"]}
            for one in self.document["filesystems"]
            for figure, share in {"broken": one["broken"], **one["met"]}.items()
        ]

    def cuts(self) -> "Cuts":
        """Every cut, one row each."""
        return Cuts(self.document)


class Cuts(Document):
    """The cuts of a `CrashResult`: `filesystem`, `number`, `request` and `place` of the cut, `at_s` (virtual
    seconds), the `condition` it came to, whether it `broke` a promise, and `mount_s`, the seconds of the
    mount that recovers."""

    columns = ("filesystem", "number", "request", "place", "at_s", "condition", "broke", "mount_s")

    def rows(self) -> List[Row]:
        """One row a cut."""
        return [
            {"filesystem": one["fs"], "number": cut["cut"]["number"], "request": cut["cut"]["request"],
             "place": cut["cut"]["place"], "at_s": cut["cut"]["at"] / 1e9, "condition": cut["condition"],
             "broke": cut["broken"], "mount_s": None if cut["mount"] is None else cut["mount"] / 1e9}
            for one in self.document["filesystems"] for cut in one["cuts"]
        ]


class ProbeResult(Document):
    """The answer of `probe`.

    Columns: `figure` (its name ends with its unit), `value`, `confidence` (0 to 1), `at_least` (True if
    the truth may be more), `evidence`, and `reason`, why there is no value.
    """

    columns = ("figure", "value", "confidence", "at_least", "evidence", "reason")

    def __getitem__(self, figure: str) -> Optional[float]:
        """The value of a figure; None where the card does not tell it. KeyError if there is no such figure."""
        value: Optional[float] = self.document[figure]["value"]
        return value

    def rows(self) -> List[Row]:
        """One row a figure."""
        return [
            {"figure": name, "value": None if one["value"] is None else float(one["value"]),
             "confidence": one["confidence"], "at_least": one.get("at_least", False),
             "evidence": one.get("evidence"), "reason": one.get("reason")}
            for name, one in self.document.items() if isinstance(one, Mapping) and "confidence" in one
        ]


class Trials(Table):
    """Finished trials. `documents` has each whole (`trial show`): identity, phases, figures.

    Columns: `trial` (the id), `card`, `board`, `kernel`, `clock`, `candidate`, `mount_options`, `workload`,
    `seed`, `failed` (why; None if it did not), `metric`, `value`, `unit`, `lower_is_better`.
    """

    IDENTITY = ("card", "board", "kernel", "clock", "candidate", "mount_options", "workload", "seed")
    FIGURE = ("metric", "value", "unit", "lower_is_better")
    columns = ("trial", *IDENTITY, "failed", *FIGURE)

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self.documents = list(documents)

    def __len__(self) -> int:
        return len(self.documents)

    def rows(self) -> List[Row]:
        """One row a figure; of a trial that failed one row without metric."""
        rows: List[Row] = []
        for one in self.documents:
            status = one["outcome"]["status"]
            head = {"trial": one["id"], **{key: one["identity"].get(key) for key in self.IDENTITY},
                    "failed": status.get("reason")}
            figures = [] if status["status"] == "failed" else one["outcome"]["metrics"]
            for figure in figures or [{}]:
                rows.append({**head, **{key: figure.get(key) for key in self.FIGURE}})
        return rows
