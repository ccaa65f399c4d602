"""The wheel: what is installed, and that its types reach a caller."""

import os
import subprocess
import sys

import backend
import pytest

import whichfs
from conftest import HERE


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A directory with the package, installed from a wheel whose program says its own name."""
    root = tmp_path_factory.mktemp("root")
    place = root / "usr/lib/whichfs"
    place.mkdir(parents=True)
    (place / "manifest").write_text("")
    (place / "whichfs").write_text('#!/bin/sh\necho \'[{"document": "card list", "schema": 1, "name": "of the wheel"}]\'\n')
    (place / "whichfs").chmod(0o755)
    (root / "usr/share/man").mkdir(parents=True)
    for name in backend.LICENCES:
        (root / "usr/share/doc/whichfs" / name).mkdir(parents=True)
    wheel_directory, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("installed")
    environment = {**os.environ, "WHICHFS_ROOT": str(root)}
    made = subprocess.run([sys.executable, "-c", f"import backend; print(backend.build_wheel({str(wheel_directory)!r}))"],
                          cwd=HERE.parent, env=environment, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
                    "--target", target, wheel_directory / made], check=True)
    return target


def run(installed, *command):
    """The outcome of a command of Python that sees the installed package."""
    environment = {key: value for key, value in os.environ.items() if key != "WHICHFS_PROGRAM"}
    return subprocess.run([sys.executable, *command], env={**environment, "PYTHONPATH": str(installed)},
                          cwd=installed, capture_output=True, text=True, check=False)


def test_the_installed_package_asks_its_own_program(installed):
    done = run(installed, "-c", "import whichfs; print(whichfs.cards()[0]['name'], whichfs.program())")
    assert done.stdout.strip() == f"of the wheel {installed}/whichfs/lib/whichfs", done.stderr


def test_the_wheel_names_the_extras(installed):
    done = run(installed, "-c", "from importlib.metadata import metadata; m = metadata('whichfs'); "
               "print(m.get_all('Provides-Extra'), len(m.get_all('Requires-Dist')), m.get_payload()[:9])")
    assert done.stdout.strip() == f"{list(backend.EXTRAS)} {sum(map(len, backend.EXTRAS.values()))} # whichfs"


@pytest.mark.parametrize("call, wrong", [
    ("name: str | None = whichfs.choose(need='logger', seeds=2).candidate", None),
    ("whichfs.choose(crad='a1-32gb')", "call-arg"),
    ("number: int = whichfs.choose().candidate", "assignment"),
])
def test_types_reach_the_caller(installed, tmp_path, call, wrong):
    (tmp_path / "caller.py").write_text(f"import whichfs\n{call}\n")
    done = run(installed, "-m", "mypy", "--strict", "--cache-dir", str(installed / "mypy"), str(tmp_path / "caller.py"))
    assert (done.returncode == 0) == (wrong is None) and (wrong is None or f"[{wrong}]" in done.stdout), done.stdout


def test_the_package_is_small():
    """It is a wrapper: what grows beyond this belongs into the program. Dask needs its client and worker in Python."""
    lines = {file.name: len(file.read_text().splitlines()) for file in HERE.parent.glob("whichfs/*.py")}
    cluster = sum(count for name, count in lines.items() if "cluster" in name)
    assert cluster < 430 and sum(lines.values()) - cluster < 1350
