"""What a worker of a cluster does: it says whether it makes the same trials as the plan, and runs them.

Scheduler and workers import it, so it needs the packages `whichfs` and `distributed` alone.
"""

import ctypes
import signal
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from distributed import WorkerPlugin

from whichfs._errors import Error
from whichfs._program import PR_SET_PDEATHSIG, program

# The resource of a worker that makes the trials of the plan: how many at once. Other workers have none of it.
RESOURCE = "whichfs"
# Lines of standard error that tell why a trial has no record.
LINES_TOLD = 5
LIBC = ctypes.CDLL(None)


class Fitness(WorkerPlugin):  # type: ignore[misc, unused-ignore]
    """Checks a worker when it joins: it gets trials only if it comes to the id of a trial of the plan."""

    name = RESOURCE

    def __init__(self, line: str, memory_bytes: int) -> None:
        self.line = line
        self.memory_bytes = memory_bytes
        # Why this worker gets no trials; None if it gets some.
        self.why: Optional[str] = None

    async def setup(self, worker: Any) -> None:
        """Gives the worker the resource, as many times as it has threads and memory for trials."""
        self.why = refusal(self.line)
        if self.why is None:
            limit = worker.memory_manager.memory_limit
            fits = limit // self.memory_bytes if limit else worker.state.nthreads
            await worker.set_resources(**{RESOURCE: max(1, min(worker.state.nthreads, fits))})


def refusals(dask_worker: Any) -> Optional[str]:
    """Why this worker gets no trials; None if it gets some, or is not asked yet."""
    plugin = dask_worker.plugins.get(RESOURCE)
    return plugin.why if plugin is not None else None


def refusal(line: str) -> Optional[str]:
    """Why this machine would not make the planned trial in `line` as it was planned; None if it would."""
    try:
        status, output, said = _whichfs(["--check"], line)
    except Error as error:
        return str(error)
    return None if status == 0 and output else said


def run_trial(line: str, options: List[str]) -> Dict[str, Optional[str]]:
    """Runs the planned trial in `line`: its `record`, or `why` there is none."""
    try:
        _, output, said = _whichfs(options, line)
    except Error as error:
        return {"record": None, "why": str(error)}
    return {"record": output, "why": None} if output else {"record": None, "why": said}


def _whichfs(options: List[str], line: str) -> Tuple[int, str, str]:
    """Exit status, standard output and the end of standard error of `whichfs trial run`."""
    path = program()
    try:
        done = subprocess.run([str(path), "trial", "run", *options], input=line, capture_output=True, text=True,
                              errors="replace",
                              # A worker that is killed takes its trial with it.
                              preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    except OSError as error:
        raise Error("environment", f"{path} cannot be started: {error.strerror}", "install whichfs there") from error
    said = "; ".join(done.stderr.strip().splitlines()[-LINES_TOLD:])
    return done.returncode, done.stdout.strip(), said or f"whichfs trial run ended with status {done.returncode}"
