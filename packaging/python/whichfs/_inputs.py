"""What a caller describes: cards, workloads, needs. All of it is judged by the program."""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from whichfs._errors import Error
from whichfs._files import Files, files, options, toml
from whichfs._program import run
from whichfs._progress import Report
from whichfs._tables import Document, Row


class CardFigures(Document):
    """All figures of a card. Columns: `card`, `figure` (section and key of the profile), `value` in
    `unit`, `uncertainty_percent` and `source`."""

    columns = ("card", "figure", "value", "unit", "uncertainty_percent", "source")

    def rows(self) -> List[Row]:
        """One row a figure."""
        return [{"card": self.document["name"], **one} for one in self.document["figures"]]


class Life(Document):
    """How long a card lives under a load: `years` by the share (0.1, 0.25, 0.75, 0.9) of such cards that
    live at most so long; `write_amplification_card`, flash bytes programmed for each byte written."""

    columns = ("card", "bytes_a_day", "share", "years")

    @property
    def years(self) -> Dict[float, float]:
        """Years by share of cards."""
        return {int(key[1:3]) / 100: value for key, value in self.document["life"].items()}

    @property
    def write_amplification_card(self) -> float:
        """Flash bytes programmed for each byte that the host writes."""
        return float(self.document["write_amplification_card"])

    def rows(self) -> List[Row]:
        """One row a share."""
        head = {"card": self.document["card"], "bytes_a_day": self.document["bytes_a_day"]}
        return [{**head, "share": share, "years": years} for share, years in self.years.items()]


class Card:
    """A modelled card, or a device.

    `Card("a1-32gb")` is a card of the program, `Card("./mycard.toml")` a profile or knowledge file,
    `Card("/dev/sdX")` a device. `Card.known` says what is known of a card, and no more.
    """

    def __init__(self, name: Union[str, "os.PathLike[str]"], text: Optional[str] = None) -> None:
        """`text` is the content of the file `name`, where it is not on disk."""
        self.name = os.fspath(name)
        self.text = text

    @classmethod
    def known(cls, title: str, interface: str, capacity_bytes: int, *, year: Optional[int] = None,
              maker: Optional[str] = None, marks: Sequence[str] = (), logs: Sequence[str] = (),
              sizes: Optional[Mapping[str, int]] = None, observed: Sequence[Mapping[str, Any]] = ()) -> "Card":
        """A card of which only this is known: the prior of all measured cards counts for the rest.

        `interface` is `sd`, `emmc` or `usb`; `marks` are those on the card (`class 10`, `U1`, `A1`,
        `V30`); `logs` are files with the output of flashbench, dd, hdparm, iozone or fio; `sizes` are
        sure ones in bytes (`au_bytes`); `observed` are measured rates with the keys of
        docs/cards.md (`operation`, `order`, `block_bytes`, `bytes_per_s`, `source`, …).
        """
        text = toml({"title": title, "interface": interface, "capacity_bytes": capacity_bytes, "year": year,
                     "maker": maker, "marks": list(marks), "logs": [os.path.abspath(log) for log in logs],
                     "sizes": dict(sizes or {}), "observed": [dict(one) for one in observed]})
        return cls((re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "card") + ".toml", text)

    def __repr__(self) -> str:
        return f"Card({self.name!r})"

    def figures(self, progress: Report = True) -> CardFigures:
        """All figures of its profile; of a card of `known` those of the card in the middle of what it may be."""
        with files() as made:
            answer = run(["card", "show", self.argument(made)], ["card show"], progress=progress)
        return CardFigures(answer.document, answer.notes, answer.status)

    def life(self, bytes_a_day: int, *, block_bytes: int = 4096, order: str = "random",
             span_bytes: Optional[int] = None, seed: Optional[int] = None, progress: Report = True) -> Life:
        """How long it lives if so many bytes reach it in a day, in writes of `block_bytes`.

        `order` is `random` or `sequential`; `span_bytes` is the part of the card, from its beginning,
        that is written: all of it if None. What reaches the card is what applications write, times what the
        filesystem adds (metric `write_amplification_filesystem` of a verdict).
        """
        given = options(per_day=bytes_a_day, block=block_bytes, order=order, span=span_bytes, seed=seed)
        with files() as made:
            answer = run(["card", "life", self.argument(made), *given], ["card life"], progress=progress)
        return Life(answer.document, answer.notes, answer.status)

    def argument(self, made: Files) -> str:
        """The argument that names it; its file is among `made`."""
        return self.name if self.text is None else made.write(self.name, self.text)


@dataclass(frozen=True)
class Workload:
    """A workload.

    `Workload("logger", {"records": 2000})` is one of the program with parameters (`show()` lists them).
    `Workload.fio`, `Workload.command` and `Workload.operations` are your own.
    """

    name: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    # Of own ones: the job file, the command line, or the operations as lines of JSON.
    text: Optional[str] = None

    @classmethod
    def fio(cls, job: str) -> "Workload":
        """The real fio with this job file (its text). For `choose`; metrics are `fio_job`, `fio_job_iops`, ….
        """
        return cls("fio-job", text=job)

    @classmethod
    def command(cls, line: str) -> "Workload":
        """A command line, which /bin/sh runs on the mounted card. For `choose`; the metrics are `command` and
        `command_sync`, in seconds."""
        return cls("command", text=line)

    @classmethod
    def operations(cls, operations: Sequence[Mapping[str, Any]]) -> "Workload":
        """Operations on files, each with the keys of docs/crash.md. For `crash`."""
        return cls("script", text="".join(json.dumps(one) + "\n" for one in operations))

    def show(self) -> Mapping[str, Any]:
        """Its phases, metrics and parameters: the document `workload show`."""
        document: Mapping[str, Any] = run(["workload", "show", self.name], ["workload show"]).document
        return document

    def arguments(self, made: Files, allowed: Mapping[str, str]) -> List[str]:
        """The option that gives its text, of those `allowed` by its name. Its file is among `made`."""
        if self.text is None:
            return []
        if self.name not in allowed:
            raise Error("input", f"a workload '{self.name}' of your own does not go with this call",
                        "here go " + ", ".join(f"'{name}'" for name in allowed))
        option = allowed[self.name]
        return [f"--{option}={self.text if option == 'command' else made.write('job.' + option, self.text)}"]


@dataclass(frozen=True)
class Weight:
    """How much a metric counts.

    `weight` is relative to the other weights; `because` says why. `label` names the metric in words,
    `short` in at most six characters. From the value `enough` on (in the metric's unit) better is no
    better; `enough_because` says why.
    """

    weight: float
    because: str = "the caller weighs it"
    label: Optional[str] = None
    short: Optional[str] = None
    enough: Optional[float] = None
    enough_because: Optional[str] = None

    def table(self, metric: str) -> Dict[str, Any]:
        """Its table in a need file."""
        words = {"label": metric.replace("_", " "), "short": metric[:6]}
        return {**words, **{key: value for key, value in asdict(self).items() if value is not None}}


@dataclass(frozen=True)
class Rule:
    """A rule that a candidate must fulfil, else it is left out before any trial.

    `fact` is a fact of the catalogue of filesystems; `wants` is what it must be, for example
    `{"is": False}`, `{"at_least": 2039}`, `{"not": "none"}` (needs/*.toml have examples). `because` says
    why, `source` where that is written. `unless` is a setting that lifts the rule
    (`power_loss=tolerated`).
    """

    fact: str
    wants: Mapping[str, Any]
    because: str = "the caller wants it"
    source: str = "the caller"
    unless: Optional[str] = None

    def table(self) -> Dict[str, Any]:
        """Its table in a need file."""
        return {"fact": self.fact, **self.wants, "unless": self.unless, "because": self.because,
                "source": self.source}


@dataclass(frozen=True)
class Need:
    """What a filesystem is for: a workload, what counts of its metrics, and rules.

    `weights` gives each metric a number or a `Weight`. `requires` are metrics without which a
    candidate is no candidate. Scores are beside the candidate `baseline`: it has 1. Among candidates that
    trials cannot tell apart, the first of `tie_breakers` (`fsck=yes`) that parts them decides.
    """

    name: str
    workload: Union[str, Workload]
    weights: Mapping[str, Union[float, Weight]]
    title: str = ""
    baseline: Optional[str] = None
    requires: Sequence[str] = ()
    rules: Sequence[Rule] = ()
    tie_breakers: Sequence[str] = ()

    def toml(self) -> str:
        """Its need file, which `whichfs choose --for FILE` takes."""
        weights = {metric: one if isinstance(one, Weight) else Weight(float(one))
                   for metric, one in self.weights.items()}
        return toml({"name": self.name, "title": self.title or self.name, "workload": self._workload().name,
                     "baseline": self.baseline, "requires": tuple(self.requires),
                     "tie_breakers": list(self.tie_breakers), "parameters": dict(self._workload().parameters),
                     "weights": {metric: one.table(metric) for metric, one in weights.items()},
                     "rules": [rule.table() for rule in self.rules]})

    def arguments(self, made: Files) -> Tuple[str, ...]:
        """The options that name it. Its files are among `made`."""
        own = self._workload().arguments(made, {"fio-job": "fio", "command": "command"})
        return (f"--for={made.write('need.toml', self.toml())}", *own)

    def _workload(self) -> Workload:
        return self.workload if isinstance(self.workload, Workload) else Workload(self.workload)
