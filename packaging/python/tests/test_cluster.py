"""Trials on a cluster: a real scheduler and real workers, each a process of its own, some of which are killed."""

import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

import whichfs
from whichfs import cluster
from whichfs._files import toml

# Trials that take a fraction of a second each.
STUDY = {"name": "far", "kind": "performance", "title": "Far", "source": "a test", "method": "As it is.",
         "cards": ["class4-4gb"], "boards": ["generic-1ghz"], "seeds": 8, "candidates": ["ext2", "vfat"],
         "workloads": [{"name": "tree", "workload": "rootfs", "parameters": {"bytes": 12_582_912, "files": 200}}]}
TRIALS = 16
SEED = int(os.environ.get("WHICHFS_CLUSTER_SEED", "1"))


class Site:
    """A scheduler and workers on this machine, a study, and stores."""

    def __init__(self, home):
        self.home = home
        self.processes = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.study = home / "far.toml"
        self.study.write_text(toml(STUDY))

    def start(self, *words, **environment):
        """Starts a Python process in a session of its own."""
        log = open(self.home / f"log-{len(self.processes)}", "w")
        process = subprocess.Popen([sys.executable, "-m", *words], env={**os.environ, **environment}, stdout=log,
                                   stderr=log, start_new_session=True)
        self.processes.append(process)
        return process

    def scheduler(self):
        host, port = self.address[len("tcp://"):].split(":")
        process = self.start("distributed.cli.dask_scheduler", "--host", host, "--port", port, "--no-dashboard")
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
                return process
            except OSError:
                assert process.poll() is None and time.monotonic() < until
                time.sleep(0.05)

    def worker(self, program=None):
        environment = {"WHICHFS_PROGRAM": str(program)} if program else {}
        return self.start("distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny",
                          "--no-dashboard", "--death-timeout", "20", "--local-directory", str(self.home / "dask"),
                          **environment)

    def command(self, data, *words):
        """The command that runs the study's trials here, as a process."""
        environment = {**os.environ, "XDG_DATA_HOME": str(self.home / data)}
        return subprocess.Popen([sys.executable, "-m", "whichfs.cluster", str(self.study), "--cluster", self.address,
                                 *words], env=environment, stderr=subprocess.PIPE, text=True)

    def program(self, name, body):
        """A program that stands for whichfs on a worker."""
        path = self.home / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def site(tmp_path):
    """A site without processes; those that a test starts end with it."""
    made = Site(tmp_path)
    yield made
    made.end()


def kept(home, data):
    """Id and record of each trial in a store; none if there is no store."""
    path = home / data / "whichfs/store.sqlite"
    if not path.exists():
        return []
    with sqlite3.connect(path) as store:
        return store.execute("select id, json from trial order by id").fetchall()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The records of the same study, run on one machine without a cluster."""
    home = tmp_path_factory.mktemp("local")
    (home / "far.toml").write_text(toml(STUDY))
    subprocess.run([whichfs.program(), "study", "run", "./far.toml", "--json"], cwd=home, check=True,
                   env={**os.environ, "XDG_DATA_HOME": str(home / "data")}, capture_output=True)
    found = kept(home, "data")
    assert len(found) == TRIALS
    return found


def until_trials(process, count):
    """Reads what the command says until so many trials have ended; the lines."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(f"[{count}/"):
            break
    return lines


def test_what_is_killed_costs_nothing_but_time(site, local):
    chance = random.Random(SEED)
    site.scheduler()
    workers = [site.worker(), site.worker()]
    first = site.command("data")
    first_kill, second_kill = sorted(chance.sample(range(1, 9), 2))
    said = until_trials(first, first_kill)
    victim = chance.choice(workers)
    os.killpg(victim.pid, signal.SIGKILL)
    site.worker()
    said += until_trials(first, second_kill)
    os.killpg(site.processes[0].pid, signal.SIGKILL)
    said += first.stderr.readlines()
    assert first.wait() == 3, said
    assert "is gone" in "".join(said) and "goes on from there" in "".join(said), said
    before = kept(site.home, "data")
    assert second_kill <= len(before) < TRIALS, f"seed {SEED}: finished trials are kept: {said}"
    assert set(before) <= set(local)

    site.end()
    site.scheduler()
    site.worker(), site.worker()
    second = site.command("data")
    said = second.stderr.read()
    assert second.wait() == 0, said
    assert f"[1/{TRIALS - len(before)}]" in said, "those that were kept do not run again"
    assert kept(site.home, "data") == local, f"seed {SEED}: nothing lost, nothing doubled, the same bytes"


def test_workers_that_are_all_gone_are_not_waited_for_without_end(site):
    site.scheduler()
    worker = site.worker()
    command = site.command("data", "--wait", "3")
    until_trials(command, 2)
    os.killpg(worker.pid, signal.SIGKILL)
    said = command.stderr.read()
    assert command.wait() == 3 and "no worker is left, for 3 s; " in said, said
    assert 2 <= len(kept(site.home, "data")) < TRIALS


def test_a_worker_of_another_build_gets_no_trials(site, local):
    agent = site.home / "agent"
    shutil.copy(os.environ["WHICHFS_AGENT"], agent)
    with open(agent, "ab") as file:
        file.write(b"another build")
    other = site.program("other", f"WHICHFS_AGENT={agent} exec {whichfs.program()} \"$@\"")
    site.scheduler()
    site.worker(other)
    refused = site.command("data", "--wait", "4")
    said = refused.stderr.read()
    assert refused.wait() == 3, said
    assert "the build of the agent differs" in said and "the same package" in said, said
    assert kept(site.home, "data") == []
    site.worker()
    command = site.command("data")
    said = command.stderr.read()
    assert command.wait() == 0, said
    assert "gets no trials" in said and f"{TRIALS} trials on 1 workers" in said, said
    assert kept(site.home, "data") == local


def test_a_worker_that_has_no_room_costs_no_trial(site, local):
    full = site.program("full", 'case "$*" in *--check*) exec ' + str(whichfs.program()) + ' "$@";; esac\n'
                                'echo "whichfs: no space left on device; free some" >&2; exit 3')
    site.scheduler()
    bad = site.worker(full)
    command = site.command("none", "--seeds", "1")
    said = command.stderr.read()
    assert command.wait() == 3, said
    assert "2 of 2 trials could not be run" in said and "no space left on device" in said, said
    site.worker()
    time.sleep(1)
    command = site.command("data")
    said = command.stderr.read()
    assert command.wait() == 0, said
    assert kept(site.home, "data") == local
    assert bad.poll() is None


def test_a_study_of_the_program_runs_on_a_cluster(site, local):
    site.scheduler()
    site.worker(), site.worker()
    environment = {**os.environ, "XDG_DATA_HOME": str(site.home / "data"), "WHICHFS_PYTHON": sys.executable}
    run = subprocess.run([whichfs.program(), "study", "run", str(site.study), "--cluster", site.address, "--json",
                          "--out", str(site.home / "out")], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(rf'"reused": {TRIALS}\b', run.stdout), "the program finds them in its store"
    assert kept(site.home, "data") == local


@pytest.mark.parametrize("where, kind, told", [
    ("tcp://127.0.0.1:9", "environment", "no scheduler at tcp://127.0.0.1:9"),
    ("nonsense", "environment", "no scheduler at nonsense"),
    ("ssh:", "input", "without a host"),
    ("local:many", "input", "no number of processes"),
    ("pbs", "environment", "no qsub"),
])
def test_a_cluster_that_is_not_there(site, where, kind, told, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(site.home / "data"))
    with pytest.raises(whichfs.Error) as caught:
        cluster.run_trials(str(site.study), where, options=["--seeds=1"], progress=False)
    assert caught.value.kind == kind and told in caught.value.message, caught.value
    assert caught.value.remedy


def test_without_dask_the_extra_is_named(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(whichfs.MissingPackage) as caught:
        cluster.run_trials(str(site.study), "local:1", progress=False)
    assert "whichfs[cluster]" in caught.value.remedy


def test_a_study_that_cannot_be_planned(site):
    for words, told in [(["--fs", "zfs"], "far has ext2, vfat"), (["--nonsense"], "--nonsense")]:
        command = site.command("data", *words)
        said = command.stderr.read()
        assert command.wait() == 2 and told in said, said
