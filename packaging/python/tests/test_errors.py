"""Errors have a kind, a message and a remedy, whoever makes them."""

import json
import sys

import pytest

import whichfs
from conftest import python


def raised(call, *arguments, **named):
    """The error that the call raises; it always has a message and a remedy."""
    with pytest.raises(whichfs.Error) as caught:
        call(*arguments, **named)
    error = caught.value
    assert error.message.strip() and error.remedy.strip()
    assert error.remedy in str(error)
    return error


def test_no_program(monkeypatch):
    monkeypatch.delenv("WHICHFS_PROGRAM")
    monkeypatch.setenv("PATH", "/nonexistent")
    error = raised(whichfs.program)
    assert (error.kind, error.status) == ("environment", None)
    assert "install the wheel" in error.remedy
    monkeypatch.setenv("WHICHFS_PROGRAM", "/nonexistent/whichfs")
    assert "/nonexistent/whichfs" in raised(whichfs.cards).message


def test_a_file_that_is_no_program(fake):
    path = fake("")
    path.write_bytes(b"\0\1\2")
    error = raised(whichfs.cards)
    assert error.kind == "environment" and "Exec format error" in error.message


def failing(status, **fields):
    """The body of a program that fails with this document."""
    document = {"document": "error", "schema": 1, "kind": "input", "message": "m", "remedy": "r", "status": status,
                **fields}
    return f"cat <<'END'\n{json.dumps(document)}\nEND\necho 'whichfs: told' >&2; exit {status}"


@pytest.mark.parametrize("status, kind", [(1, "no"), (2, "input"), (3, "environment"), (4, "trial"),
                                          (130, "interrupted")])
def test_an_error_is_what_its_document_says(fake, status, kind):
    fake(failing(status, kind=kind, message="it is so; do that", remedy="do that"))
    error = raised(whichfs.cards)
    assert (error.kind, error.status, error.message, error.remedy) == (kind, status, "it is so; do that", "do that")


def test_an_error_of_another_version(fake):
    fake(failing(2, schema=2))
    error = raised(whichfs.cards)
    assert error.kind == "version" and "the document 'error' with schema 2" in error.message


def test_a_program_that_is_killed(fake):
    fake("kill -9 $$")
    error = raised(whichfs.cards)
    assert (error.kind, error.status) == ("crashed", -9) and "signal 9" in error.message


@pytest.mark.parametrize("body, kind, message", [
    ("exit 101", "crashed", "the program ended with status 101 and said nothing"),
    ("echo a >&2; echo 'thread panicked' >&2; exit 101", "crashed",
     "the program ended with status 101 after: thread panicked"),
    # The second Ctrl-C ends the program at once.
    ("exit 130", "interrupted", "the program ended with status 130 and said nothing"),
])
def test_a_program_that_ends_without_a_document(fake, body, kind, message):
    fake(body)
    error = raised(whichfs.cards)
    assert (error.kind, error.message) == (kind, message)


def test_an_argument_of_the_caller_is_the_callers_fault(fake):
    fake(failing(2, unknown_argument="--odd"))
    assert raised(whichfs.choose, progress=False).kind == "version"
    assert raised(whichfs.choose, arguments=["--odd=1"], progress=False).kind == "input"


@pytest.mark.parametrize("said, message", [
    ('{"document": "choose", "schema": 2}', "with schema 2; this package reads schema 1"),
    ('{"document": "choose"}', "with schema None"),
    ('{"ranking": []}', "the document 'None'; this package asked for 'choose'"),
    ('{"document": "crash run", "schema": 1}', "the document 'crash run'"),
    ("Use ext4", "no JSON document"),
])
def test_a_program_of_another_version(fake, said, message):
    fake(f"cat <<'END'\n{said}\nEND")
    error = raised(whichfs.choose, progress=False)
    assert error.kind == "version" and message in error.message and "newest wheel" in error.remedy


def test_a_list_is_checked_whole(fake):
    good, bad = ({"document": "card list", "schema": number} for number in (1, 2))
    fake(f"echo '{json.dumps([good, bad])}'")
    assert raised(whichfs.cards).kind == "version"


def test_a_saved_verdict_of_another_version(tmp_path, chosen):
    verdict, out = chosen
    assert whichfs.Verdict.load(out).document == whichfs.Verdict.load(out / "verdict.json").document
    assert whichfs.Verdict.load(out).candidate == verdict.candidate
    (tmp_path / "verdict.json").write_text(json.dumps({**verdict.document, "schema": 9}))
    assert raised(whichfs.Verdict.load, tmp_path).kind == "version"
    assert raised(whichfs.Verdict.load, tmp_path / "other.json").kind == "input"


@pytest.mark.parametrize("name, extra, call", [
    ("pandas", "pandas", lambda verdict: verdict.to_pandas()),
    ("polars", "polars", lambda verdict: verdict.to_polars()),
    ("matplotlib.pyplot", "plot", lambda verdict: verdict.plot()),
])
def test_a_missing_package(monkeypatch, chosen, name, extra, call):
    import backend
    monkeypatch.setitem(sys.modules, name, None)
    error = raised(call, chosen[0])
    assert any(one.startswith(name.split(".")[0]) for one in backend.EXTRAS[extra])
    assert isinstance(error, ImportError) and error.kind == "package"
    assert error.remedy == f"pip install 'whichfs[{extra}]'"


def test_the_package_needs_the_standard_library_alone():
    process = python("import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'matplotlib', 'IPython'])); "
                     "import whichfs; print(len(whichfs.cards()) > 1)")
    said, errors = process.communicate(timeout=60)
    assert said == "True\n", errors


def test_errors_of_the_real_program(monkeypatch, tmp_path):
    error = raised(whichfs.choose, "nope", progress=False)
    assert (error.kind, error.status) == ("input", 2) and "whichfs card list" in error.remedy
    error = raised(whichfs.choose, arguments=["--seads=3"], progress=False)
    assert (error.kind, error.status) == ("input", 2) and "'--seeds'" in error.remedy
    error = raised(whichfs.trials, ["123456"], store=tmp_path / "empty.sqlite")
    assert error.kind == "input"
    monkeypatch.setenv("WHICHFS_KERNEL", "/nonexistent/linux")
    error = raised(whichfs.choose, progress=False)
    assert (error.kind, error.status) == ("environment", 3) and "make kernel" in error.remedy


def test_nobody_qualifies_is_an_answer():
    verdict = whichfs.choose(need="logger", candidates=["ext4"], changes={"read_only": True}, progress=False)
    assert (verdict.candidate, verdict.ranking, verdict.status) == (None, [], 1)
    assert list(verdict.excluded) == ["ext4"] and "No candidate qualifies" in str(verdict)
    assert raised(verdict.plot).kind == "no"
