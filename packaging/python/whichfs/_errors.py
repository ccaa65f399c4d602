"""Errors of this package, and what an error of the program becomes."""

import re
from typing import List, Optional, Sequence, Tuple

KINDS = {1: "no", 2: "input", 3: "environment", 4: "trial", 130: "interrupted"}
REMEDIES = {
    "no": "look at the message: nothing failed, but the answer is no",
    "input": "correct the argument that the message names",
    "environment": "run `whichfs doctor`, which lists missing parts and their remedies",
    "trial": "look at the reason of the trial; the same call goes on from the finished ones",
    "interrupted": "call it again: it goes on from the finished trials",
    "crashed": "call it again; if it happens again, report it with the message",
}
# Where the remedy begins in a message of the program, the likeliest mark first.
MARKS = (r"; ", r": (?=run `)", r"\. (?=There are)")


class Error(Exception):
    """Something that did not work.

    `kind` is the class of reason: `no` (the answer to the question is no), `input` (an argument or
    a file is wrong), `environment` (this machine lacks something), `trial` (a trial failed),
    `interrupted`, `crashed` (the program ended in a way that it never should), `version` (program
    and package do not fit) or `package` (an optional Python package is missing).
    `message` says what was found, `remedy` what to do.
    `status` is the exit status of the program; None if the error is not the program's.
    """

    def __init__(self, kind: str, message: str, remedy: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.remedy = remedy
        self.status = status

    def __str__(self) -> str:
        if self.remedy in self.message:
            return self.message
        return f"{self.message}\nremedy: {self.remedy}"


class MissingPackage(Error, ImportError):
    """An optional Python package is not installed. `remedy` is the pip command that installs it."""

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(
            "package", f"the Python package {name} is not installed", f"pip install 'whichfs[{extra}]'"
        )


def version_mismatch(found: str, wanted: str) -> Error:
    """The error that program and package do not fit."""
    return Error("version", f"{found}; {wanted}", "use program and package of one release: install "
                 "the newest wheel of whichfs, and unset WHICHFS_PROGRAM if it names another program")


def of_program(status: int, lines: Sequence[str], given: Sequence[str]) -> Error:
    """The error that the program ended with.

    The program prints errors as text: the last line that begins with `whichfs: ` or, where it did not
    understand its arguments, with `error: `. `given` are arguments in the words of the caller: one
    that is not among them and not understood is of this package, for another release.
    """
    message, usage = _message(lines)
    unknown = re.match(r"(?:unexpected argument|unrecognized subcommand) '([^'=]+)", message)
    if usage and unknown and not any(one.startswith(unknown.group(1)) for one in given):
        return version_mismatch(f"the program does not know '{unknown.group(1)}'",
                                "this package needs a program that does")
    kind = KINDS.get(status, "crashed")
    if not message:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        message = f"the program {how}" + (f" after: {lines[-1]}" if lines else " and said nothing")
    return Error(kind, message, _remedy(kind, message), status)


def _message(lines: Sequence[str]) -> Tuple[str, bool]:
    """The message among the lines of standard error, and whether it is about the arguments."""
    for at in range(len(lines) - 1, -1, -1):
        for mark in ("whichfs: ", "error: "):
            if lines[at].startswith(mark):
                message: List[str] = [lines[at][len(mark):]]
                for line in lines[at + 1:]:
                    if not line.startswith("  "):
                        break
                    message.append(line.strip())
                return "\n".join(message), mark == "error: "
    return "", False


def _remedy(kind: str, message: str) -> str:
    """The part of the message that says what to do; else what helps with errors of this kind."""
    for mark in MARKS:
        parts = re.split(mark, message)
        if len(parts) > 1 and parts[-1].strip():
            return parts[-1].strip()
    return REMEDIES[kind]
