"""The calls: each runs one command of the program."""

import os
import tempfile
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Union

from whichfs._errors import Error
from whichfs._files import files, options
from whichfs._inputs import Card, Need, Workload
from whichfs._program import run
from whichfs._progress import Report
from whichfs._results import (
    CrashResult,
    CrashStudyResult,
    FleetResult,
    ProbeResult,
    Results,
    StudyResult,
    Trials,
    Verdict,
)

AnyPath = Union[str, "os.PathLike[str]"]


def choose(card: Union[str, Card] = "a1-32gb", need: Union[str, Need] = "rootfs", *,
           workload: Optional[Workload] = None, candidates: Optional[Sequence[str]] = None,
           seeds: Optional[int] = None, first_seed: Optional[int] = None, cuts: Optional[int] = None,
           changes: Optional[Mapping[str, Any]] = None, board: Optional[AnyPath] = None,
           clock: Optional[str] = None, card_state: Optional[str] = None, size_mib: Optional[int] = None,
           tree: Optional[AnyPath] = None, wall_limit_s: Optional[int] = None, jobs: Optional[int] = None,
           fresh: bool = False, store: Optional[AnyPath] = None, out: Optional[AnyPath] = None,
           arguments: Sequence[str] = (), progress: Report = True) -> Verdict:
    """Ranks tuned filesystems for a card and a need. Each trial is kept in the store and not run again.

    `card` and `need` are names of the program, paths of files, or objects. `workload` is a job file
    of fio or a command of yours (`Workload.fio`, `Workload.command`) in place of the need's. `changes` change the
    need: `{"power_loss": "tolerated", "windows": True}`. `out` is a directory for the report
    (HTML, CSV, JSON); none is kept without it. The others, and `arguments`, are the options of
    `whichfs choose` (`whichfs choose --help`). `progress` is True, False or a callable that gets
    each `Progress`.

    Gives a verdict also if no candidate qualifies (its `candidate` is None then). Raises `Error`.
    """
    with files() as made, tempfile.TemporaryDirectory(prefix="whichfs-") as dropped:
        given = [f"--card={_card(card).argument(made)}"]
        if isinstance(need, Need):
            given += need.arguments(made)
        elif workload is None or need != "rootfs":
            given += options(**{"for": need})
        if workload is not None:
            if workload.text is None:
                raise Error("input", f"the workload '{workload.name}' has no weights of its own",
                            "name it in a need: Need(name, workload, weights)")
            given += workload.arguments(made, {"fio-job": "fio", "command": "command"})
        given += [f"--need={key}={_word(value)}" for key, value in (changes or {}).items()]
        given += options(fs=_list(candidates), seeds=seeds, first_seed=first_seed, cuts=cuts, board=board,
                         clock=clock, card_state=card_state, size=_mib(size_mib), tree=tree, wall_limit=wall_limit_s,
                         jobs=jobs, fresh=fresh, store=store, out=out or dropped)
        answer = run(["choose", *given], ["choose"], given=arguments, progress=progress)
        verdict = Verdict(answer.document, answer.notes, answer.status)
        verdict.results = _results(out or dropped)
    return verdict


def study(name: AnyPath, *, quick: bool = False, seeds: Optional[int] = None, cuts: Optional[int] = None,
          budget: Optional[str] = None, only_fs: Optional[Sequence[str]] = None,
          only_card: Optional[Sequence[str]] = None, tree: Optional[AnyPath] = None, jobs: Optional[int] = None,
          fresh: bool = False, out: Optional[AnyPath] = None, cluster: Optional[str] = None,
          workers: Optional[int] = None, arguments: Sequence[str] = (),
          progress: Report = True) -> Union[StudyResult, CrashStudyResult, FleetResult]:
    """Runs a study: a name of the program, or the path of a study file (docs/studies.md).

    What is finished is kept, also if it is interrupted or `budget` (`10m`) ends it: the same call goes on. `quick` is
    the study's smaller form. The others, and `arguments`, are the options of `whichfs study run`.
    With `cluster`, its trials run on other machines first: the address of a Dask scheduler, `ssh:HOST,…` or a batch
    system with `workers` jobs (docs/many-machines.md). A study with power cuts gives a `CrashStudyResult`, one on
    several devices (`arguments=["--on=…", "--on=…"]`) a `FleetResult`. Raises `Error`.
    """
    if cluster is not None:
        if fresh or budget is not None:
            raise Error("input", "cluster takes neither fresh nor budget", "leave them out; trials that are known are "
                        "not run again")
        # Not above: `python -m whichfs.cluster` imports this module first.
        from whichfs.cluster import run_trials
        which = options(quick=quick, seeds=seeds, fs=_list(only_fs), card=_list(only_card), tree=tree)
        run_trials(os.fspath(name), cluster, workers=workers, options=which, progress=progress)
    with tempfile.TemporaryDirectory(prefix="whichfs-") as dropped:
        given = options(quick=quick, seeds=seeds, cuts=cuts, budget=budget, fs=_list(only_fs),
                        card=_list(only_card), tree=tree, jobs=jobs, fresh=fresh, out=out or dropped)
        answer = run(["study", "run", os.fspath(name), *given], ["study run", "study run crash", "study fleet"],
                     given=arguments, progress=progress)
        if answer.document["document"] == "study run crash":
            return CrashStudyResult(answer.document, answer.notes, answer.status)
        kind = FleetResult if answer.document["document"] == "study fleet" else StudyResult
        result = kind(answer.document, answer.notes, answer.status)
        result.results = _results(out or dropped)
    return result


def trials(which: Union[Verdict, Iterable[str]], *, store: Optional[AnyPath] = None) -> Trials:
    """Finished trials from the store: those behind a verdict, or those with these ids (or beginnings of ids).

    `store` is the file of finished trials; the user's own if None. Raises `Error` of kind `input` if the store
    has no such trial.
    """
    ids = which.trials if isinstance(which, Verdict) else [which] if isinstance(which, str) else which
    given = options(store=store)
    return Trials([run(["trial", "show", one, *given], ["trial show"]).document for one in ids])


def crash(filesystems: Union[str, Sequence[str]], card: Union[str, Card] = "a1-32gb", *,
          workload: Union[str, Workload] = "rootfs", cuts: Union[int, str, None] = None,
          faults: Optional[Sequence[str]] = None, mount: Optional[str] = None, size_mib: Optional[int] = None,
          seed: Optional[int] = None, board: Optional[AnyPath] = None, jobs: Optional[int] = None,
          fresh: bool = False, out: Optional[AnyPath] = None, arguments: Sequence[str] = (),
          progress: Report = True) -> CrashResult:
    """Cuts the power of a modelled card at `cuts` (100) instants of a workload, and judges what is left.

    `workload` is a name of the program, or `Workload.operations`. The others, and `arguments`, are the
    options of `whichfs crash run`. Also a broken promise gives a result: see `broken`. Raises `Error`.
    """
    one = workload if isinstance(workload, Workload) else Workload(workload)
    if one.parameters:
        raise Error("input", "crash takes no parameters of a workload", "give size_mib, or Workload.operations")
    with files() as made:
        own = one.arguments(made, {"script": "script"}) or options(workload=one.name)
        given = options(fs=_list(filesystems), cuts=cuts, faults=_list(faults), mount=mount, size=_mib(size_mib),
                        seed=seed, board=board, jobs=jobs, fresh=fresh, out=out)
        answer = run(["crash", "run", f"--card={_card(card).argument(made)}", *own, *given], ["crash run"],
                     given=arguments, progress=progress)
    return CrashResult(answer.document, answer.notes, answer.status)


def probe(card: Union[str, Card] = "a1-32gb", *, write: Optional[str] = None, destroy: Optional[str] = None,
          budget: Optional[str] = None, resume: Optional[AnyPath] = None, save: Optional[AnyPath] = None,
          plot: Optional[AnyPath] = None, seed: Optional[int] = None, arguments: Sequence[str] = (),
          progress: Report = True) -> ProbeResult:
    """Finds out what a card is like: a modelled one, or a device (as root).

    Writes only if `write` is `preserve` (each place gets its data back) or `destroy`. `save` is a file for a
    profile of the card, `plot` one for a drawing of the evidence. The others, and `arguments`, are the
    options of `whichfs probe`. Raises `Error`.
    """
    with files() as made:
        given = options(write=write, destroy=destroy, budget=budget, resume=resume, save=save, plot=plot, seed=seed)
        answer = run(["probe", _card(card).argument(made), *given], ["probe"], given=arguments, progress=progress)
    return ProbeResult(answer.document, answer.notes, answer.status)


def cards() -> List[Mapping[str, Any]]:
    """The cards of the program, each as its line of `whichfs card list`: `name`, `title`, `family`,
    `capacity_bytes`, `write_bytes_per_s`, …"""
    return list(run(["card", "list"], ["card list"]).document)


def workloads() -> List[Mapping[str, Any]]:
    """The workloads of the program: `name`, `title`, `phases`, `takes_tree`."""
    return list(run(["workload", "list"], ["workload list"]).document)


def _results(out: AnyPath) -> Optional[Results]:
    """The table in the folder `out`; None if `arguments` named another."""
    return Results.load(out) if os.path.isfile(os.path.join(out, "results.json")) else None


def _card(card: Union[str, Card]) -> Card:
    return card if isinstance(card, Card) else Card(card)


def _list(names: Union[str, Sequence[str], None]) -> Optional[List[str]]:
    return [names] if isinstance(names, str) else None if names is None else list(names)


def _mib(count: Optional[int]) -> Optional[str]:
    return None if count is None else f"{count}M"


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
