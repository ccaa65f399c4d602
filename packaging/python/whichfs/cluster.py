"""The trials of a study on many machines, by Dask distributed.

    python -m whichfs.cluster STUDY --cluster WHERE [--workers N] [options of `whichfs study plan`]

Each trial that the store lacks is a task with its id as key. A worker that dies costs only the trials that it ran. A
worker whose build makes other trials gets none. Records are imported into the store as they come, so after any end
the same command goes on from there. docs/many-machines.md has set-ups and limits.
"""

import argparse
import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, TextIO

from whichfs._errors import Error, MissingPackage
from whichfs._program import ERRORS, program, run
from whichfs._progress import Progress, Report, reporter
from whichfs._tables import optional

# Batch systems, and their classes in dask_jobqueue.
BATCH = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster",
         "htcondor": "HTCondorCluster", "oar": "OARCluster", "moab": "MoabCluster"}
# Trials that are given to the scheduler beyond those that run: it keeps each in memory.
WINDOW = 1000
# Records are imported when there are so many, or so many seconds after the last time.
IMPORT_RECORDS, IMPORT_SECONDS = 200, 2.0
# A trial that a machine cannot run (no room, no memory) is given to so many machines.
ATTEMPTS = 3
# Memory of a worker beside its trials: Python with Dask.
PYTHON_BYTES = 300 << 20
# How often it is looked whether a trial has ended, and whether a worker is left.
POLL_SECONDS, LOOK_SECONDS = 0.02, 5.0
STATUS = {"no": 1, "input": 2, "environment": 3, "package": 3, "version": 3, "trial": 4, "interrupted": 130}


def run_trials(study: str, where: str, *, workers: Optional[int] = None, wait_s: float = 120,
               options: Sequence[str] = (), trial_options: Sequence[str] = (), progress: Report = True) -> int:
    """Runs the trials of `study` that the store lacks at `where`, and puts their records into the store.

    `where` is the address of a Dask scheduler (`tcp://HOST:8786`), `ssh:HOST,…`, `local:N`, or a batch system: `slurm`,
    `pbs`, `sge`, `lsf`, `htcondor`, `oar`, `moab`. `workers` is how many jobs a batch system gets; `wait_s` how long
    at least one worker is waited for. `options` are those of `whichfs study plan`, `trial_options` those of
    `whichfs trial run`. Gives how many trials ran. Raises `Error`; what was imported before stays.
    """
    distributed = optional("distributed", "cluster")
    trouble = _Trouble()
    with tempfile.TemporaryDirectory(prefix="whichfs-") as directory, reporter(progress) as report:
        plan = os.path.join(directory, "plan.jsonl")
        _plan(study, options, plan)
        with open(plan, encoding="utf-8") as lines:
            needs = [json.loads(line)["needs"]["memory_bytes"] for line in lines]
        if not needs:
            return 0
        with open(plan, encoding="utf-8") as lines, _cluster(where, workers, max(needs)) as address:
            with _client(distributed, address, where) as client:
                tasks = _Tasks(client, distributed, os.path.join(directory, "records.jsonl"), len(needs), wait_s,
                               trouble, report)
                tasks.trial_options = list(trial_options)
                try:
                    tasks.admit(plan, max(needs))
                    tasks.work(lines)
                except (OSError, asyncio.TimeoutError, asyncio.CancelledError) as error:
                    raise Error("environment", f"the scheduler at {where} is gone ({error or type(error).__name__}); "
                                f"{tasks.imported + len(tasks.records)} finished trials are kept",
                                "start it again and repeat the command: it goes on from there") from error
                finally:
                    tasks.store()
        if tasks.failed:
            one, why = next(iter(tasks.failed.items()))
            raise Error("environment", f"{len(tasks.failed)} of {len(needs)} trials could not be run on any worker; "
                        f"{one}: {why}", "repair the workers and repeat the command: it goes on from the others")
        return tasks.imported


def _plan(study: str, options: Sequence[str], path: str) -> None:
    """Writes the trials that the store lacks into the file at `path`, a line each."""
    command = [str(program()), "study", "plan", study, *options, "--only-missing"]
    with open(path, "w", encoding="utf-8") as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)
    said = done.stderr.strip()
    if done.returncode != 0:
        kinds = {status: kind for kind, status in STATUS.items() if kind != "package" and kind != "version"}
        lines = said.splitlines() or [f"it ended with status {done.returncode}"]
        # Errors of the program, and of its arguments, have these words before them; usage follows the latter.
        told = [line for line in lines if line.startswith(ERRORS)]
        message = (told or lines)[-1].partition(": ")[2] or lines[-1]
        raise Error(kinds.get(done.returncode, "crashed"), f"the study cannot be planned: {message}",
                    "correct the study or the option that the message names", done.returncode)


@contextmanager
def _cluster(where: str, workers: Optional[int], memory_bytes: int) -> Iterator[Any]:
    """What a client connects to; jobs and processes that this starts end with it."""
    kind, _, rest = where.partition(":")
    started: Any
    if kind in BATCH:
        system = getattr(optional("dask_jobqueue", "cluster"), BATCH[kind])
        submit = system.job_cls.submit_command.split()[0]
        if shutil.which(submit) is None:
            raise Error("environment", f"--cluster {kind}: this machine has no {submit}",
                        f"run it on a machine that submits jobs to {kind}")
        memory = f"{-(-(memory_bytes + PYTHON_BYTES) // (1 << 20))}MiB"
        try:
            started = system(cores=1, processes=1, memory=memory)
            started.scale(jobs=workers or 1)
        except (OSError, RuntimeError, ValueError) as error:
            raise Error("environment", f"--cluster {kind}: {error}", "submit a job by hand first, and set queue, "
                        "project and interface in ~/.config/dask/jobqueue.yaml") from error
    elif kind == "ssh":
        hosts = [host for host in rest.split(",") if host]
        if not hosts:
            raise Error("input", "--cluster ssh: without a host", "name them: ssh:HOST,HOST (the first one has the "
                        "scheduler)")
        try:
            started = optional("distributed", "cluster").SSHCluster([hosts[0], *hosts])
        except (OSError, RuntimeError, ImportError) as error:
            raise Error("environment", f"--cluster {where}: {error}", "log in to each host by ssh without a question "
                        "first; there must be the same Python packages (pip install asyncssh here)") from error
    elif kind == "local":
        if not rest.isdigit() or int(rest) == 0:
            raise Error("input", f"--cluster {where}: no number of processes", "name it: local:2")
        started = optional("distributed", "cluster").LocalCluster(n_workers=int(rest), threads_per_worker=1,
                                                                  dashboard_address=None,
                                                                  silence_logs=logging.CRITICAL)
    else:
        yield where
        return
    with started:
        yield started


@contextmanager
def _client(distributed: Any, address: Any, where: str) -> Iterator[Any]:
    """A client of the scheduler at `address`."""
    try:
        client = distributed.Client(address, timeout="5s", set_as_default=False)
    except (OSError, ValueError, TypeError, asyncio.TimeoutError) as error:
        raise Error("environment", f"there is no scheduler at {where}: {error}", "start one (`dask scheduler`) and "
                    "workers (`dask worker ADDRESS --nthreads 1`), and name its address: tcp://HOST:8786") from error
    try:
        yield client
    finally:
        client.close(timeout=2)


class _Trouble(logging.Handler):
    """Keeps what Dask logs off the screen, and the last error of it: a batch system's refusal is told nowhere else."""

    text = ""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        for name in ("distributed", "tornado.application", "asyncio"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        """Takes a record of the log."""
        error = record.exc_info[1] if record.exc_info else None
        self.text = " ".join(str(error or record.getMessage()).split())


class _Tasks:
    """The trials of a plan as tasks of a client."""

    def __init__(self, client: Any, distributed: Any, path: str, total: int, wait_s: float,
                 trouble: _Trouble, report: Any) -> None:
        self.client = client
        self.distributed = distributed
        self.path = path
        self.total = total
        self.wait_s = wait_s
        self.trouble = trouble
        self.report = report
        self.trial_options: List[str] = []
        self.records: List[str] = []
        self.imported = 0
        # Labels of trials that no worker could run, with the reason.
        self.failed: Dict[str, str] = {}
        self.begun = time.monotonic()
        self.stored = self.begun

    def admit(self, plan: str, memory_bytes: int) -> None:
        """Waits until a worker makes the trials of `plan`; those that do not are told."""
        worker = optional("whichfs._cluster_worker", "cluster")
        with open(plan, encoding="utf-8") as lines:
            self.client.register_plugin(worker.Fitness(lines.readline(), memory_bytes))
        told: Set[str] = set()
        until = time.monotonic() + self.wait_s
        while True:
            said = self.client.run(worker.refusals, on_error="return")
            for address, why in said.items():
                if why is not None and address not in told:
                    told.add(address)
                    self.report(Progress(f"worker {address} gets no trials: {why}"))
            fit = self.fit()
            if fit:
                self.report(Progress(f"{self.total} trials on {len(fit)} workers"))
                return
            if time.monotonic() >= until:
                why = next((str(why) for why in said.values() if why is not None), "none has joined")
                remedy = "install the same package of whichfs on workers and here"
                if not said:
                    why = self.trouble.text or why
                    remedy = "start workers, or see why jobs do not start; --wait SECONDS waits longer"
                raise Error("environment", f"no worker can run the trials ({len(said)} have joined): {why}", remedy)
            time.sleep(0.2)

    def fit(self) -> List[str]:
        """Addresses of the workers that make the trials of the plan."""
        try:
            info = self.client.scheduler_info(n_workers=-1)
        except TypeError:
            info = self.client.scheduler_info()
        return [address for address, one in info["workers"].items() if one.get("resources", {}).get("whichfs")]

    def work(self, lines: TextIO) -> None:
        """Runs the planned trials in `lines`, a window of them at a time."""
        ended = self.distributed.as_completed(loop=self.client.loop)
        under_way = 0
        tasks: Dict[str, Dict[str, Any]] = {}

        def give(task: Dict[str, Any]) -> None:
            worker = optional("whichfs._cluster_worker", "cluster")
            own = self.fit() if task["not_on"] else []
            others = [address for address in own if address not in task["not_on"]]
            key = task["id"] + f"-{len(task['not_on'])}" * bool(task["not_on"])
            tasks[key] = task
            # Equal keys are one task: what another client of this scheduler runs already is not run again.
            ended.add(self.client.submit(worker.run_trial, task["line"], self.trial_options, key=key,
                                         resources={"whichfs": 1}, workers=others or None))

        def give_next() -> bool:
            line = lines.readline()
            if line:
                planned = json.loads(line)
                give({"id": planned["id"], "label": planned["label"], "line": line, "not_on": []})
            return bool(line)

        while under_way < WINDOW and give_next():
            under_way += 1
        while under_way:
            self.wait(ended)
            future = next(ended)
            task = tasks.pop(future.key)
            if future.status in ("cancelled", "lost"):
                raise asyncio.CancelledError("it lost the trials that it had")
            try:
                answer = future.result()
            except (self.distributed.scheduler.KilledWorker, ImportError) as error:
                answer = {"record": None, "why": str(error)}
            record = answer["record"]
            if record:
                self.records.append(record)
                self.tell(task["label"])
            elif len(task["not_on"]) + 1 < ATTEMPTS:
                who = self.client.who_has([future])
                task["not_on"] = [*task["not_on"], *(address for all in who.values() for address in all)] or [""]
                give(task)
                continue
            else:
                self.failed[task["label"]] = str(answer["why"])
            under_way -= 1
            del future
            if len(self.records) >= IMPORT_RECORDS or time.monotonic() - self.stored > IMPORT_SECONDS:
                self.store()
            under_way += give_next()

    def wait(self, ended: Any) -> None:
        """Waits until a task has ended, and meanwhile looks whether any worker is left for the others."""
        seen = time.monotonic()
        while not ended.has_ready():
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            if self.records and now - self.stored > IMPORT_SECONDS:
                self.store()
            if now - seen > min(LOOK_SECONDS, self.wait_s):
                if self.fit():
                    seen = now
                elif now - seen > self.wait_s:
                    raise Error("environment", f"no worker is left, for {self.wait_s:.0f} s; "
                                f"{self.imported + len(self.records)} finished trials are kept",
                                "start workers again and repeat the command: it goes on from there")

    def tell(self, label: str) -> None:
        """Reports that a trial has ended."""
        done = self.imported + len(self.records)
        left = (time.monotonic() - self.begun) / done * (self.total - done)
        about = f" (about {left:.0f} s to go)" if done < self.total else ""
        self.report(Progress.of_line(f"[{done}/{self.total}] {label}{about}"))

    def store(self) -> None:
        """Puts the records that have come into the store."""
        self.stored = time.monotonic()
        if not self.records:
            return
        with open(self.path, "w", encoding="utf-8") as out:
            out.writelines(record + "\n" for record in self.records)
        document = run(["store", "import", self.path], ["store import"]).document
        if document["refused"]:
            raise Error("environment", f"{document['refused']} records of workers are refused: "
                        f"{document['refusals'][0]['why']}", "repair the worker and repeat the command")
        self.imported += len(self.records)
        self.records.clear()


def main(words: Optional[Sequence[str]] = None) -> int:
    """Runs the command; gives its exit status, as `whichfs --help` lists them."""
    parser = argparse.ArgumentParser(
        prog="python -m whichfs.cluster", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run the trials of a study that the store lacks on many machines, and import their records.",
        epilog="""examples:
  python -m whichfs.cluster pandora --quick --cluster tcp://head:8786
  python -m whichfs.cluster pandora --quick --cluster slurm --workers 20
  python -m whichfs.cluster ./mine.toml --cluster ssh:head,node1,node2
  python -m whichfs.cluster pandora --cluster local:2      processes of this machine
  whichfs study run pandora --quick                        then shows the result""")
    parser.add_argument("study", metavar="STUDY", help="name of a study, or its file")
    parser.add_argument("--cluster", metavar="WHERE", required=True,
                        help="address of a Dask scheduler, ssh:HOST,…, local:N, or a batch system: " + ", ".join(BATCH))
    parser.add_argument("--workers", metavar="N", type=int, help="jobs of a batch system (1)")
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=120,
                        help="how long at least one worker is waited for (120)")
    parser.add_argument("--wall-limit", metavar="SECONDS", help="wall time after which a trial is stopped")
    given, options = parser.parse_known_args(words)
    limit = [f"--wall-limit={given.wall_limit}"] if given.wall_limit else []
    try:
        ran = run_trials(given.study, given.cluster, workers=given.workers, wait_s=given.wait, options=options,
                         trial_options=limit)
    except KeyboardInterrupt:
        print("whichfs: interrupted; finished trials are kept: the same command goes on from there", file=sys.stderr)
        return STATUS["interrupted"]
    except (Error, MissingPackage) as error:
        print(f"whichfs: {error}", file=sys.stderr)
        return STATUS.get(error.kind, 3)
    print(f"{ran} trials imported", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
