"""The program that comes with this package."""

import os
import sys
from pathlib import Path
from typing import NoReturn


def program() -> Path:
    """Path of the program. Its parts lie beside it, where it looks for them first."""
    return Path(__file__).resolve().parent / "lib" / "whichfs"


def main() -> NoReturn:
    """Becomes the program, with the arguments of this process.

    Exits with status 3 if the program cannot be started.
    """
    path = program()
    try:
        os.execv(path, ["whichfs", *sys.argv[1:]])
    except OSError as error:
        sys.exit(_refused(path, error))


def _refused(path: Path, error: OSError) -> int:
    print(
        f"whichfs: {path} cannot be started: {error.strerror}: install the wheel again, on Linux on "
        "x86-64, in a directory that is not mounted noexec",
        file=sys.stderr,
    )
    return 3
