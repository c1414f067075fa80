"""The owner of an environment who attacks whoever repairs it as root: a process that plants links and swaps directories."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOP = """\
import ctypes, glob, os, random, sys, time
store, target = sys.argv[1:3]
tries = 0

def link_in_the_place_of(path):
    os.rename(path, path + ".x")
    os.symlink(target, path)

def attack():
ATTACK

print("begun", flush=True)
while True:
    tries += 1
    if tries % 100 == 1:
        print(tries, flush=True)
    try:
        if attack():
            break
    except OSError:
        pass
    except IndexError:  # nothing to attack yet
        tries -= 1
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
    for directory in glob.glob(store + "/2*/trash/*/aa"):
        if len(os.listdir(directory)) < 40:
            link_in_the_place_of(directory)
            return True
"""
"""A link to a directory with the same names, in the place of one that is being deleted."""
OWN = """\
    for directory in glob.glob(store + "/2*/env/aa"):
        if os.listdir(directory):
            link_in_the_place_of(directory)
            return True
"""
"""A link to a directory with the same names, in the place of one that is being cloned."""
RANDOM = """\
    paths = glob.glob(store + "/*") + glob.glob(store + "/2*/*") + glob.glob(store + "/2*/*/*") + glob.glob(store)
    if tries % 50 == 0:  # seldom: the next command would be refused at once
        paths = [store + "/../env"]
    path = random.choice([path for path in paths if not path.endswith(".swapped")])
    kind = random.randrange(3)
    if kind == 0:
        os.symlink(target + "/key", path + random.choice(["/fingerprint", "/fingerprint-live", "/events.jsonl", "/.journal.json.tmp"]))
        return False
    spare = store + "/../%d.swapped" % tries
    os.symlink(target + random.choice(["", "/env", "/key"]), spare)
    libc = ctypes.CDLL(None)
    for _ in range(kind):  # away and, mostly, back again
        libc.renameat2(-100, path.encode(), -100, spare.encode(), 2)
        time.sleep(random.random() / 1000)
    if kind == 2:
        os.unlink(spare)
"""
"""Any of them, anywhere, thousands of times."""


def becoming(uid: int) -> tuple[str, ...]:
    """The words before a command that run it as this user."""
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


@contextmanager
def started(attack: str, uid: int, python: str, store: Path, target: Path) -> Iterator[list[int]]:
    """Let `uid` attack the store the while, to reach `target`; the list gets the number of tries at the end."""
    words = [*becoming(uid), python, "-I", "-S", "-c", _LOOP.replace("ATTACK", attack), str(store), str(target)]
    tries: list[int] = []
    with tempfile.TemporaryFile("w+") as told, subprocess.Popen(words, stdout=told, cwd="/") as process:
        while not os.fstat(told.fileno()).st_size:
            assert process.poll() is None
            time.sleep(0.01)
        try:
            yield tries
        finally:
            process.kill()
            process.wait()
            told.seek(0)
            tries.append(max([0, *(int(line) for line in told.read().split()[1:])]))


def canaries(target: Path) -> dict[str, tuple[object, ...]]:
    """What an attack could change of root's files."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted((target, *target.rglob("*"))):
        status = path.lstat()
        content = (
            hashlib.sha256(path.read_bytes()).hexdigest()
            if path.is_file()
            else sorted(item.name for item in path.iterdir())
        )
        found[str(path)] = (status.st_ino, status.st_uid, status.st_gid, status.st_mode, content)
    return found
