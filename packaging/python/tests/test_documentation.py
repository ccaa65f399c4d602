"""The notebooks and the examples of docs/python.md run as they stand."""

import os
import re

import nbclient
import nbformat
import pytest

from conftest import SOURCE

NOTEBOOKS = sorted((SOURCE / "docs/notebooks").glob("*.ipynb"))
# A notebook in a repository is text to review: a picture or two, no more.
BYTES_MAX = 120_000


def text(outputs):
    """What the outputs of a cell say, in one string."""
    return "\n".join(str(one.get("text") or one.get("data", {}).get("text/plain")) for one in outputs)


def test_there_are_three_notebooks():
    assert [file.stem for file in NOTEBOOKS] == ["own_workload_and_prior", "which_filesystem", "year_of_wear"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_the_notebook_runs(file, tmp_path, monkeypatch):
    # The kernel draws into the notebook, unless somebody says otherwise.
    monkeypatch.delenv("MPLBACKEND")
    # No trial is known from another notebook, so each shows progress.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    kept = nbformat.read(file, as_version=4)
    nbformat.validate(kept)
    assert file.stat().st_size < BYTES_MAX
    run = nbformat.from_dict(kept)
    nbclient.NotebookClient(run, timeout=300, resources={"metadata": {"path": str(work)}},
                            record_timing=False).execute()
    cells = [cell for cell in run.cells if cell.cell_type == "code"]
    assert any("image/png" in one.get("data", {}) for cell in cells for one in cell.outputs), "it draws"
    # Progress is one output that is renewed: its last line is of the last trial.
    assert re.search(r"\[(\d+)/\1\] .* of virtual time in ", "\n".join(text(cell.outputs) for cell in cells))
    assert list(work.iterdir()) == [], "it leaves nothing behind"
    if os.environ.get("WHICHFS_WRITE_NOTEBOOKS"):
        file.write_text(nbformat.writes(run, indent=1) + "\n")
        return
    # The outputs that the document shows are of these cells: each that says something now has something to show.
    shown = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert [bool(cell.outputs) for cell in shown] == [bool(cell.outputs) for cell in cells]


def test_a_notebook_that_fails_is_found(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import whichfs; whichfs.choose('nope')")])
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="unknown card 'nope'"):
        nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (SOURCE / "docs/python.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), namespace)
    assert "Use " in capsys.readouterr().out
