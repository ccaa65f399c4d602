"""Tidy tables: one row a figure."""

import importlib
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Tuple

from whichfs._errors import MissingPackage

if TYPE_CHECKING:
    import pandas
    import polars

Row = Dict[str, Any]


def optional(name: str, extra: str) -> Any:
    """The module `name`; `MissingPackage` with the pip command if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackage(name.split(".")[0], extra) from None


class Table:
    """Something with rows of figures."""

    # The columns, in order.
    columns: Tuple[str, ...] = ()

    def rows(self) -> List[Row]:
        """The rows, each with all columns; None where a row has no value."""
        raise NotImplementedError

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas frame. Raises `MissingPackage` without pandas."""
        frame: "pandas.DataFrame" = optional("pandas", "pandas").DataFrame(self.rows(), columns=list(self.columns))
        return frame

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a polars frame. Raises `MissingPackage` without polars."""
        rows = self.rows()
        frame: "polars.DataFrame" = optional("polars", "polars").DataFrame(
            {name: [row[name] for row in rows] for name in self.columns}, strict=False)
        return frame


class Document(Table):
    """A JSON document of the program.

    `document` is the document itself (`whichfs manual schemas` has the meaning of each field), `notes`
    are remarks that the program made beside it, `status` is its exit status.
    """

    def __init__(self, document: Mapping[str, Any], notes: Tuple[str, ...] = (), status: int = 0) -> None:
        self.document = document
        self.notes = notes
        self.status = status
