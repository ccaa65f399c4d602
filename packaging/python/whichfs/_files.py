"""Files that a call gives to the program, and the arguments that name them."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Mapping


class Files:
    """A directory that lives as long as a call."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, text: str) -> str:
        """Writes a file and gives its path."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)


@contextmanager
def files() -> Iterator[Files]:
    """The files of one call, which are removed after it."""
    with tempfile.TemporaryDirectory(prefix="whichfs-") as directory:
        yield Files(Path(directory))


def options(**named: Any) -> List[str]:
    """Options of the program: `fs=["ext4", "xfs"]` is `--fs=ext4,xfs`, True a flag, None nothing."""
    found: List[str] = []
    for name, value in named.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            found.append(option)
        elif value is not None and value is not False:
            plural = isinstance(value, (list, tuple))
            found.append(f"{option}={','.join(map(str, value)) if plural else value}")
    return found


def toml(table: Mapping[str, Any]) -> str:
    """`table` as TOML. None, empty lists and empty tables are left out; an empty tuple is written."""
    return "\n".join(_table(table, ())) + "\n"


def _table(table: Mapping[str, Any], path: "tuple[str, ...]") -> Iterator[str]:
    kept = {key: value for key, value in table.items() if value is not None and value != []}
    for key, value in kept.items():
        if not _is_table(value) and not _is_tables(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in kept.items():
        name = ".".join(map(_key, (*path, key)))
        if _is_table(value):
            # A table of tables needs no head of its own.
            if not all(map(_is_table, value.values())):
                yield f"\n[{name}]"
            yield from _table(value, (*path, key))
        elif _is_tables(value):
            for one in value:
                yield f"\n[[{name}]]"
                yield from _table(one, (*path, key))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    plain = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if plain else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # Strings of JSON are strings of TOML, but for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
