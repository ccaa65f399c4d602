"""Errors of this package, and what an error of the program becomes."""

from typing import Any, Mapping, Optional, Sequence

REMEDIES = {
    "interrupted": "call it again: it goes on from the finished trials",
    "crashed": "call it again; if it happens again, report it with the message",
}


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


def of_document(document: Mapping[str, Any], given: Sequence[str]) -> Error:
    """The error that the program's document `error` tells.

    `given` are arguments in the words of the caller: one that is not among them and that the program does
    not know is of this package, for another release.
    """
    unknown = document.get("unknown_argument")
    if unknown and not any(one.startswith(unknown) for one in given):
        return version_mismatch(f"the program does not know '{unknown}'", "this package needs a program that does")
    return Error(document["kind"], document["message"], document["remedy"], document["status"])


def of_silence(status: int, lines: Sequence[str]) -> Error:
    """The error that the program ended without a document: it was stopped at once, or it crashed.

    `lines` are those of its standard error; the last of them is told.
    """
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    message = f"the program {how}" + (f" after: {lines[-1]}" if lines else " and said nothing")
    kind = "interrupted" if status == 130 else "crashed"
    return Error(kind, message, REMEDIES[kind], status)
