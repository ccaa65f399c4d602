"""Progress of a call: a line that is renewed, in a notebook or on standard error."""

import importlib
import re
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Union


@dataclass(frozen=True)
class Progress:
    """One line of progress. `text` is the line as the program printed it.

    `done` of `total` trials or cuts are finished, and about `seconds_left` seconds are to go, where
    the line says so; else they are None.
    """

    text: str
    done: Optional[int] = None
    total: Optional[int] = None
    seconds_left: Optional[float] = None

    @classmethod
    def of_line(cls, line: str) -> "Progress":
        """What a line of the program's standard error says."""
        count = re.match(r"\[(\d+)/(\d+)\] ", line) or re.search(r"(\d+) of (\d+) cuts", line)
        left = re.search(r"about (\d+) s to go", line)
        return cls(line, int(count.group(1)) if count else None, int(count.group(2)) if count else None,
                   float(left.group(1)) if left else None)


# True shows progress, False does not, a callable gets each line.
Report = Union[bool, Callable[[Progress], None]]


@contextmanager
def reporter(progress: Report) -> Iterator[Callable[[Progress], None]]:
    """The callable that gets each line of progress of one call."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda _: None
    elif _in_notebook():
        yield _Notebook()
    elif sys.stderr.isatty():
        yield _terminal
        sys.stderr.write("\r\x1b[K")
    else:
        yield lambda one: print(one.text, file=sys.stderr)


def _in_notebook() -> bool:
    """Whether a front-end of Jupyter shows what this process displays."""
    if "IPython" not in sys.modules:
        return False
    shell = importlib.import_module("IPython").get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Notebook:
    """One output of a cell, whose text is renewed; none as long as there is no progress."""

    handle: Any = None

    def __call__(self, progress: Progress) -> None:
        data = {"text/plain": progress.text}
        if self.handle is None:
            self.handle = importlib.import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)


def _terminal(progress: Progress) -> None:
    """Renews the last line of the terminal."""
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write("\r\x1b[K" + progress.text[:width])
    sys.stderr.flush()
