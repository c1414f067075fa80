"""A rollout over a small real fleet, as an admin does it, with a machine killed in the middle: ``make fleet-demo``.

The machines are private mount namespaces with a copy of one small broken environment each, at the same path; Ansible
reaches them by its `local` connection. Every line that is shown is run as it stands; a result other than the expected
one ends the demo with exit 1.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time

from tests.demo import say
from tests.fleet import real

ROOM = real.ROOT / ".demo" / "fleet"
DIED = "n2"
NODES = 6


class DemoError(Exception):
    """Something came out otherwise than expected."""


def main() -> int:
    """Build, then run the story."""
    flags = real.unshare_flags()
    if real.ansible() is None or flags is None:
        say(
            "Ansible or private mount namespaces are missing: `make fleet-demo` installs the one, the other is the machine's"
        )
        return 1
    shutil.rmtree(ROOM, ignore_errors=True)
    ROOM.mkdir(parents=True)
    started = time.monotonic()
    say(
        f"{NODES} machines with the same small broken environment are built in .demo/fleet/; n{NODES} has a file that the others lack"
    )
    fleet = real.build(ROOM, NODES, flags)
    (ROOM / "nodes" / f"n{NODES}" / "env" / "stray").write_text("mine")
    try:
        story(fleet)
    except DemoError as error:
        say(f"The demo failed: {error}")
        return 1
    say(f"Done in {time.monotonic() - started:.0f} s. The fleet stays in .demo/fleet/ to try more.")
    return 0


def story(fleet: real.RealFleet) -> None:
    """What an admin does, and what must come out of it."""
    log = str(real.LOG.relative_to(real.ROOT))
    prefix = str(fleet.case.prefix)
    say("The facts of every machine, by Ansible:")
    shell(
        fleet, f"{real.collection()} ansible all -i {fleet.hosts} -m envmedic.fleet.facts -a '{fleet.facts_words()}' -o"
    )
    say("Which machines have the same environment, and what is wrong in each class?")
    envmedic(fleet, "survey", "facts", expect="2 classes")
    envmedic(fleet, "diagnose", "facts", "--log", str(real.ROOT / log), expect="torchvision-ops", code=1)
    say("A plan for each class, made on one of its machines:")
    where = ["--on", f"ansible:{fleet.hosts}", "-p", prefix, "--log", str(real.LOG), "-o", str(fleet.place)]
    engine(fleet, "plan", "facts", *where, "--envmedic", fleet.on_node, "--no-gpu", "--online")
    say("The order: a canary of each class, then batches:")
    words = (str(fleet.place), "--batches", "2,100%")
    envmedic(fleet, "rollout", *words, expect="canary")
    say(f"{DIED} dies in the middle of its repair, so the last batch is not touched:")
    killer = threading.Thread(target=fleet.kill_in_repair, args=(DIED,))
    killer.start()
    engine(fleet, "rollout", *words, code=2)
    killer.join()
    envmedic(fleet, "status", str(fleet.place), expect=f"unknown     {DIED}", code=1)
    say("It is back. The rollout goes on with it and what was left; machines that are done are not touched:")
    engine(fleet, "rollout", str(fleet.place))
    envmedic(fleet, "status", str(fleet.place), expect=f"{NODES} repaired")
    if not all(fleet.works(node) for node in fleet.nodes):
        raise DemoError("a program does not work")
    say("And back again, everywhere:")
    engine(fleet, "undo", str(fleet.place))
    envmedic(fleet, "status", str(fleet.place), expect=f"{NODES} undone", code=1)


def envmedic(fleet: real.RealFleet, *words: str, expect: str, code: int = 0) -> None:
    """Show and run a command of envmedic on the controller."""
    shown("envmedic fleet " + " ".join(words))
    done = fleet.envmedic("fleet", *words)
    sys.stdout.write(done.stdout + done.stderr)
    if done.returncode != code or expect not in done.stdout:
        raise DemoError(f"exit {done.returncode}, expected {code} and {expect!r}")


def engine(fleet: real.RealFleet, *words: str, code: int = 0) -> None:
    """Have envmedic write what the engine runs, and run the line that it prints."""
    done = fleet.envmedic("fleet", *words, "--json")
    if done.returncode != 0:
        raise DemoError(done.stdout + done.stderr)
    shell(fleet, json.loads(done.stdout)["command"], code=code)


def shell(fleet: real.RealFleet, line: str, *, code: int = 0) -> None:
    """Show and run a line of the admin's shell."""
    shown(line)
    done = fleet.run(line)
    sys.stdout.write("".join(f"{row[:160]}\n" for row in done.stdout.splitlines() if row.strip()))
    if done.returncode != code:
        raise DemoError(f"exit {done.returncode}, expected {code}\n{done.stderr}")


def shown(line: str) -> None:
    """A line as it is typed, with paths relative to the checkout."""
    sys.stdout.write(f"\n$ {line.replace(f'{real.ROOT}/', '')}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
