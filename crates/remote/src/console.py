"""Runs a command on the board of a labgrid place by its serial console, as ssh would.

Arguments: PLACE bytes|lines COMMAND. With `bytes`, standard input is read to its end and sent as
base64; with `lines`, each line is sent as it comes. Labgrid logs in: by the ShellDriver that the
file in LG_ENV has for the place, else as root without a password. The console must have a shell
with job control: Ctrl-C ends what an earlier connection left.
Exit status: that of the command, 255 if the console fails. What a failed command said goes to
standard error.
"""
import base64
import os
import select
import shlex
import sys
import time
import uuid

from labgrid import Environment, Target
from labgrid.driver import SerialDriver, ShellDriver
from labgrid.remote.client import find_role_by_place
from labgrid.resource import RemotePlace
from pexpect import TIMEOUT

CHUNK = 2048
LOGIN_SECONDS = 60
START_SECONDS = 30


def target_of(place):
    """The labgrid target of the place, with its serial port and a shell on it."""
    if file := os.environ.get("LG_ENV"):
        environment = Environment(file)
        if role := find_role_by_place(environment.config.get_targets(), place):
            return environment.get_target(role)
    target = Target(place)
    RemotePlace(target, name=place)
    SerialDriver(target, None)
    ShellDriver(target, None, prompt=r"[#$] $", login_prompt="login: ", username="root",
                login_timeout=LOGIN_SECONDS)
    return target


def log_in(target):
    """The console, with a shell that waits for a command."""
    shell = target.get_driver("ShellDriver", activate=False)
    target.activate(shell.console)
    shell.console.write(b"\x03\n")
    target.activate(shell)
    return shell.console


def received(console):
    """What has come; waits a little for more. Without pexpect, which takes bytes one by one."""
    try:
        return console.read(size=CHUNK, timeout=0.05)
    except TIMEOUT:
        return b""


def start(console, feed, command):
    """Starts the command; the mark before its end status, and what came after its begin."""
    mark = uuid.uuid4().hex
    sent = base64.encodebytes(sys.stdin.buffer.read()) if feed == "bytes" else b""
    feeding = f"head -c {len(sent)} | base64 -d | " if feed == "bytes" else ""
    # The mark is put together there, because the console may echo the line.
    console.sendline(f"stty raw -echo isig; dmesg -n 1 2>/dev/null; m={mark[:9]}; m=${{m}}{mark[9:]}; "
                     f"echo begin-$m; {feeding}sh -c {shlex.quote(command)}; s=$?; "
                     "stty sane; echo $m-$s")
    begin, came, until = f"begin-{mark}".encode(), b"", time.monotonic() + START_SECONDS
    while begin not in came or b"\n" not in came.split(begin)[1]:
        came += received(console)
        if time.monotonic() > until:
            raise TIMEOUT("the shell does not start the command")
    for at in range(0, len(sent), CHUNK):
        console.write(sent[at:at + CHUNK])
    return mark.encode(), came.split(begin)[1].split(b"\n", 1)[1]


def follow(console, mark, came, forwards):
    """Passes lines on until the command or standard input ends; the status and the last lines."""
    said = []
    while True:
        *lines, came = came.split(b"\n")
        for line in lines:
            # What ends without a newline is before the mark.
            own, ended, status = line.partition(mark + b"-")
            said = [*said[-20:], own + b"\n"]
            sys.stdout.buffer.write(own if ended else said[-1])
            sys.stdout.buffer.flush()
            if ended:
                return int(status), said
        if forwards and select.select([0], [], [], 0)[0]:
            data = os.read(0, CHUNK)
            if not data:
                console.write(b"\x03\nstty sane\n")
                return 0, said
            console.write(data)
        came += received(console)


def main(place, feed, command):
    console = log_in(target_of(place))
    mark, came = start(console, feed, command)
    status, said = follow(console, mark, came, feed == "lines")
    if status:
        sys.stderr.buffer.write(b"".join(said))
    return status


try:
    sys.exit(main(*sys.argv[1:]))
except BrokenPipeError:
    sys.exit(0)
except Exception as error:  # labgrid has no class of its errors
    print(f"{type(error).__name__}: {error}".replace("\n", " ")[:400], file=sys.stderr)
    sys.exit(255)
