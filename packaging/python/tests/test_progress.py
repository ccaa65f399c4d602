"""Progress, and what Ctrl-C leaves."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest

import whichfs
from whichfs._progress import Progress

from conftest import python


@pytest.mark.parametrize("line, done, total, left", [
    ("[3/6] xfs, seed 1: 4.94 s of virtual time in 0.4 s (about 2 s to go)", 3, 6, 2.0),
    ("[6/6] f2fs, seed 1: 8.4 s of virtual time in 0.5 s", 6, 6, None),
    ("vfat: 2 of 6 cuts, 0.8 a second, 0 broke a promise, about 5 s to go", 2, 6, 5.0),
    ("ext4: running the workload", None, None, None),
])
def test_a_line_of_progress(line, done, total, left):
    assert Progress.of_line(line) == Progress(line, done, total, left)


LINES = "printf '%s\\n' '[1/2] a' 'note: x is' '  so and so' 'left out: y' '[2/2] b' >&2; echo '[]'"


def test_a_callable_gets_progress_alone(fake):
    fake(LINES.replace("[]", '{"document": "choose", "schema": 1}'))
    heard = []
    verdict = whichfs.choose(progress=heard.append)
    assert [(one.text, one.done, one.total) for one in heard] == [("[1/2] a", 1, 2), ("[2/2] b", 2, 2)]
    assert verdict.notes == ("note: x is so and so", "left out: y")


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self):
        return True


def test_a_terminal_has_one_line_and_a_pipe_all(fake, monkeypatch):
    fake(LINES.replace("[]", '{"document": "choose", "schema": 1}'))
    for stream, wanted in ((Terminal(), "\r\x1b[K[1/2] a\r\x1b[K[2/2] b\r\x1b[K"), (io.StringIO(), "[1/2] a\n[2/2] b\n")):
        monkeypatch.setattr(sys, "stderr", stream)
        whichfs.choose()
        assert stream.getvalue() == wanted
        whichfs.choose(progress=False)
        assert stream.getvalue() == wanted


def test_an_error_of_a_callable_ends_the_program(fake, tmp_path):
    fake(f"trap 'touch {tmp_path}/ended; exit 130' INT; echo '[1/2] a' >&2; while :; do sleep 0.05; done")
    def fail(_):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        whichfs.choose(progress=fail)
    assert (tmp_path / "ended").exists()


CALL = "import whichfs; whichfs.choose()"


def test_ctrl_c_waits_until_the_program_has_ended(fake, tmp_path):
    # The program takes its time to keep what is finished.
    fake(f"trap 'sleep 0.5; touch {tmp_path}/kept; echo \"whichfs: kept\" >&2; exit 130' INT; echo '[1/2] a' >&2; "
         "while :; do sleep 0.05; done")
    process = python(CALL)
    assert process.stderr.readline() == "[1/2] a\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (tmp_path / "kept").exists()
    assert "KeyboardInterrupt: whichfs: kept" in errors


def test_what_the_program_is_started_with(fake):
    fake("cut -d ' ' -f 5 /proc/$$/stat >&2; readlink /proc/self/fd/0 >&2; echo $COLUMNS >&2; "
         "echo '{\"document\": \"choose\", \"schema\": 1}'")
    lines = []
    kept, (end, other) = os.dup(0), os.pipe()
    os.dup2(end, 0)
    try:
        whichfs.choose(progress=lambda one: lines.append(one.text))
    finally:
        os.dup2(kept, 0)
        for one in (kept, end, other):
            os.close(one)
    group, *others = lines
    # A terminal's Ctrl-C would reach the program beside ours, and the second ends it at once.
    assert int(group) != os.getpgrp()
    assert others == ["/dev/null", "200"]


def test_the_program_ends_with_python(fake, tmp_path):
    fake(f"trap 'touch {tmp_path}/ended; exit 130' TERM; echo '[1/2] a' >&2; while :; do sleep 0.05; done")
    process = python(CALL)
    process.stderr.readline()
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 20
    while not (tmp_path / "ended").exists():
        assert time.monotonic() < deadline, "the program runs on"
        time.sleep(0.02)


def test_the_second_ctrl_c_is_passed_on_too(fake, tmp_path):
    fake(f"n=0; trap 'n=$((n + 1)); echo $n > {tmp_path}/signals; [ $n = 2 ] && exit 130' INT; echo '[1/2] a' >&2; "
         "while :; do sleep 0.05; done")
    process = python(CALL)
    process.stderr.readline()
    for count in (1, 2):
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        while not (tmp_path / "signals").exists() or (tmp_path / "signals").read_text().strip() != str(count):
            assert time.monotonic() < deadline, f"signal {count} did not arrive"
            time.sleep(0.02)
    process.communicate(timeout=30)


def test_ctrl_c_loses_no_finished_trial(tmp_path):
    store = str(tmp_path / "store.sqlite")
    call = f"import whichfs; v = whichfs.choose(need='logger', seeds=1, jobs=1, store={store!r}); print(len(v.trials))"
    process = python(call)
    for _ in range(2):
        assert "of virtual time" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode in (1, 130, -signal.SIGINT) and "KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    checked = subprocess.run([whichfs.program(), "store", "check", "--store", store, "--json"], check=True,
                             capture_output=True, text=True)
    assert '"ok": true' in checked.stdout
    said, errors = python(call).communicate(timeout=120)
    assert int(said) > 2 and "reused from the store" in errors
