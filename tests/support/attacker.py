"""The owner of an environment who attacks whoever repairs it as root: a process that plants links and swaps directories."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOP = """\
import ctypes, glob, os, random, sys, time
store, target = sys.argv[1:3]
tries = 0

def link_in_the_place_of(path):
    global tries
    tries += 1
    os.rename(path, path + ".x")
    os.symlink(target, path)

def attack():
%s

print("begun", flush=True)
while True:
    try:
        if attack():
            break
    except OSError:
        pass
    time.sleep(0.0001)
while True:
    time.sleep(60)
"""
PLANT = """\
    for directory in glob.glob(store + "/2*"):
        os.symlink(target + "/key", directory + "/fingerprint-live")
        return True
"""
"""A link in the place of a file that the repair writes at its end."""
EXCHANGE = """\
    for directory in glob.glob(store + "/2*"):
        if '"undoing"' in open(directory + "/journal.json").read():
            link_in_the_place_of(directory)
            return True
"""
"""A link to a directory that has an ``env`` too, in the moment before two trees are exchanged."""
DELETE = """\
    for directory in glob.glob(store + "/2*/trash/*/aaa"):
        if len(os.listdir(directory + "/victim")) < 40:
            link_in_the_place_of(directory)
            return True
"""
"""A link to a directory that has a ``victim`` too, in the place of one that is being deleted."""
OWN = """\
    for directory in glob.glob(store + "/2*/env/aa"):
        if os.path.isdir(directory + "/profile.d"):
            link_in_the_place_of(directory)
            return True
"""
"""A link to a directory that has a ``profile.d`` too, in the place of one that is being cloned."""
RANDOM = """\
    global tries
    paths = glob.glob(store + "/*") + glob.glob(store + "/2*/*") + glob.glob(store + "/2*/*/*") + [store, store + "/../env"]
    path = random.choice([path for path in paths if not path.endswith(".swapped")])
    tries += 1
    kind = random.randrange(3)
    if kind == 0:
        os.symlink(target + "/key", path + random.choice(["/fingerprint", "/fingerprint-live", "/events.jsonl", "/.journal.json.tmp"]))
        return False
    spare = store + "/../%d.swapped" % tries
    os.symlink(target + random.choice(["", "/env", "/victim", "/key"]), spare)
    libc = ctypes.CDLL(None)
    for _ in range(kind):  # away and, mostly, back again
        libc.renameat2(-100, path.encode(), -100, spare.encode(), 2)
        time.sleep(random.random() / 1000)
    if kind == 2:
        os.unlink(spare)
    if tries % 500 == 0:
        print(tries, flush=True)
"""
"""Any of them, anywhere, thousands of times."""


def becoming(uid: int) -> tuple[str, ...]:
    """The words before a command that run it as this user."""
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


@contextmanager
def started(attack: str, uid: int, python: str, store: Path, target: Path) -> Iterator[subprocess.Popen[str]]:
    """Let `uid` attack the store the while, to reach `target`; what it prints are its tries so far."""
    words = [*becoming(uid), python, "-I", "-S", "-c", _LOOP % attack, str(store), str(target)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        try:
            yield process
        finally:
            process.kill()
