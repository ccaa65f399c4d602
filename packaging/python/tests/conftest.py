"""What the tests need: the built program and lab (`make test-python` names them), a store of their own, and programs
that behave badly."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import whichfs

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent.parent
# Parts that the real program needs; `make test-python` names them.
PARTS = ("WHICHFS_PROGRAM", "WHICHFS_KERNEL", "WHICHFS_AGENT", "WHICHFS_USERLAND")


@pytest.fixture(scope="session", autouse=True)
def own_directories(tmp_path_factory):
    """Store, cache and import path are those of this session, also for processes that tests start."""
    missing = [part for part in PARTS if not os.environ.get(part)]
    if missing:
        pytest.exit(f"{', '.join(missing)} must name the built parts: run `make test-python`", returncode=3)
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "IPYTHONDIR", "MPLCONFIGDIR"):
        os.environ[name] = str(home / name)
    os.environ.update(PYTHONPATH=str(HERE.parent), MPLBACKEND="agg")
    return home


@pytest.fixture(scope="session")
def logger_need():
    """A need whose trials take half a second each."""
    return whichfs.Need("sensor", whichfs.Workload("logger", {"records": 300}),
                        {"log_append": 3, "mount": whichfs.Weight(1, because="it must be back soon")},
                        title="A sensor", baseline="ext4", requires=["log_append"],
                        rules=[whichfs.Rule("crash_class", {"not": "none"})])


@pytest.fixture(scope="session")
def chosen(logger_need, tmp_path_factory):
    """A verdict of the real program, and the directory of its report."""
    out = tmp_path_factory.mktemp("chosen")
    verdict = whichfs.choose("a1-32gb", logger_need, candidates=["ext4", "f2fs", "vfat"], seeds=2, out=out,
                             progress=False)
    return verdict, out


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Makes WHICHFS_PROGRAM a shell script with this body."""
    def make(body):
        path = tmp_path / "fake"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("WHICHFS_PROGRAM", str(path))
        return path
    return make


def python(code, **environment):
    """A Python that runs `code` in a session of its own, with the package in its path."""
    return subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **environment}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
