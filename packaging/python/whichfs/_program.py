"""The program, which this package asks for everything: where it is and how it is started."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Deque, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple

from whichfs._errors import Error, of_document, of_silence, version_mismatch
from whichfs._progress import Progress, Report, reporter

# The documents that this package reads, and the numbers of their schemas that it knows.
SCHEMAS: Mapping[str, Tuple[int, ...]] = {
    "choose": (1,), "study run": (1,), "study run crash": (1,), "study fleet": (1,), "crash run": (1,),
    "trial show": (1,), "probe": (1,), "card list": (1,), "card show": (1,), "card life": (1,), "workload list": (1,),
    "workload show": (1,), "store import": (1,), "error": (1,),
}
# Lines of standard error that are kept for the message of a crash.
LINES_KEPT = 400
# How notes begin (lines after their first begin with two spaces), and errors; other lines are progress.
NOTES = ("note: ", "left out: ")
ERRORS = ("whichfs: ", "error: ")
# prctl(2): the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
REINSTALL = "install the wheel again, on Linux on x86-64, in a directory that is not mounted noexec"


@dataclass(frozen=True)
class Answer:
    """What the program said: its JSON document, exit status, and the notes of standard error."""

    document: Any
    status: int
    notes: Tuple[str, ...]
    command: Tuple[str, ...]


def program() -> Path:
    """Path of the program: the file that WHICHFS_PROGRAM names, else the one in this package, else the
    first `whichfs` in PATH.

    Raises `Error` of kind `environment` if there is none.
    """
    named = os.environ.get("WHICHFS_PROGRAM")
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise Error("environment", f"WHICHFS_PROGRAM names {named}, which is no program",
                        "name the file of the program, or unset WHICHFS_PROGRAM")
        return Path(named)
    if _packaged().is_file():
        return _packaged()
    found = shutil.which("whichfs")
    if found is None:
        raise Error("environment", "the program whichfs is neither in this package nor in PATH",
                    "install the wheel of whichfs, which has the program, or name the program in WHICHFS_PROGRAM")
    return Path(found)


def run(arguments: Sequence[str], documents: Sequence[str], *, progress: Report = False,
        given: Sequence[str] = ()) -> Answer:
    """Runs the program with `arguments`, `given` (options in the words of the caller) and `--json`.

    Gives the answer if its document is one of `documents`. Ctrl-C is passed on: the program keeps what
    is finished, and KeyboardInterrupt is raised when it has ended.
    """
    path = program()
    # Each trial has its line of progress, and notes are whole.
    told = () if {"-q", "--quiet", "-v", "--verbose"} & set(given) else ("--verbose",)
    command = (str(path), *arguments, *given, "--json", *told)
    lines: Deque[str] = deque(maxlen=LINES_KEPT)
    notes: List[str] = []
    with tempfile.TemporaryFile() as output, reporter(progress) as report:
        def hear(line: str) -> None:
            if line.startswith(NOTES):
                notes.append(line)
            elif line.startswith("  ") and notes and lines[-1].startswith((*NOTES, "  ")):
                notes[-1] += " " + line.strip()
            elif not line.startswith((*ERRORS, "  ")):
                report(Progress.of_line(line))
            lines.append(line)

        status = _supervise(command, output, hear)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if not text.strip():
        raise of_silence(status, lines)
    try:
        document = json.loads(text)
    except ValueError:
        raise version_mismatch(f"{path} gave no JSON document", "this package reads JSON") from None
    if isinstance(document, dict) and document.get("document") == "error":
        raise of_document(check(document, ["error"], path), given)
    for one in document if isinstance(document, list) else [document]:
        check(one, documents, path)
    return Answer(document, status, tuple(notes), command)


def check(document: Any, documents: Sequence[str], path: Path) -> Dict[str, Any]:
    """`document`, if it is one of `documents` in a form that this package knows."""
    found: Dict[str, Any] = document if isinstance(document, dict) else {}
    name, number = str(found.get("document")), found.get("schema")
    if name not in documents:
        wanted = " or ".join(f"'{one}'" for one in documents)
        raise version_mismatch(f"{path} gave the document '{name}'", f"this package asked for {wanted}")
    if number not in SCHEMAS[name]:
        known = ", ".join(str(one) for one in SCHEMAS[name])
        raise version_mismatch(f"{path} gave the document '{name}' with schema {number}",
                               f"this package reads schema {known} of it")
    return found


def _supervise(command: Sequence[str], output: Any, hear: Callable[[str], None]) -> int:
    """Runs the command to its end, gives each line of standard error to `hear`, and its exit status."""
    # Notes are wrapped to so many columns: as wide as the program allows.
    environment = {**os.environ, "COLUMNS": "200"}
    try:
        # In a session of its own: a terminal's Ctrl-C would reach it beside ours, and the second ends it at once.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE,
                                   env=environment, encoding="utf-8", errors="replace", start_new_session=True,
                                   # A kernel of Jupyter that is restarted leaves nothing running.
                                   preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
    except OSError as error:
        raise Error("environment", f"{command[0]} cannot be started: {error.strerror}", REINSTALL) from error
    assert process.stderr is not None
    with process:
        try:
            for line in process.stderr:
                hear(line.rstrip("\n"))
            return process.wait()
        except BaseException as stop:
            said = _stop(process)
            if isinstance(stop, KeyboardInterrupt):
                raise KeyboardInterrupt(said) from None
            raise


def _stop(process: "subprocess.Popen[str]") -> str:
    """Asks the program to end, waits until it has, and gives the last line that it said.

    Another Ctrl-C meanwhile is passed on too: the program then ends at once.
    """
    said = ""
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while True:
        try:
            for line in process.stderr:
                said = line.strip() or said
            process.wait()
            return said
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def _packaged() -> Path:
    """The program that comes with the wheel. Its parts lie beside it, where it looks for them first."""
    return Path(__file__).resolve().parent / "lib" / "whichfs"


def main() -> NoReturn:
    """Becomes the program of the wheel, with the arguments of this process.

    Exits with status 3 if the program cannot be started.
    """
    path = _packaged()
    try:
        os.execv(path, ["whichfs", *sys.argv[1:]])
    except OSError as error:
        print(f"whichfs: {path} cannot be started: {error.strerror}: {REINSTALL}", file=sys.stderr)
        sys.exit(3)
