"""Runs envmedic on a machine, with the Python that Ansible found there, and reads the document that it prints."""

import json
import signal
import subprocess

GRACE_S = 60
"""SIGTERM leaves the environment as it was; what is still there after this many seconds is killed."""
COMMAND = {"type": "list", "elements": "str", "default": ["envmedic"]}
LINKS = {"type": "list", "elements": "str", "default": []}


def answer(module, words, limit_s=None, given=None):
    """Run envmedic and return its exit code, its document, and what it printed. Ends the module where there is none."""
    argv = [*module.params["envmedic"], *words, "--json", "--quiet"]
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True
        )
    except OSError as error:
        module.fail_json(msg="%s cannot be started: %s" % (argv[0], error.strerror), outcome="unknown")
    late = False
    try:
        out, err = process.communicate(given, timeout=limit_s)
    except subprocess.TimeoutExpired:
        late = True
        process.send_signal(signal.SIGTERM)
        try:
            out, err = process.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    try:
        document = json.loads(out)
    except ValueError:
        document = None
    if late and (document is None or process.returncode != 0):
        module.fail_json(
            msg="it was stopped after %d seconds" % limit_s, outcome="unknown", stdout=out, stderr=err[-4000:]
        )
    if not isinstance(document, dict):
        told = err.strip().splitlines()[-1:] or ["nothing"]
        why = "exit %d without a document: %s" % (process.returncode, told[0])
        module.fail_json(msg=why, rc=process.returncode, outcome="unknown", stdout=out, stderr=err[-4000:])
    return process.returncode, document, out


def told(document):
    """Why something was not done, in words."""
    failure = document.get("failure") or document
    return ": ".join(text for text in (failure.get("summary"), failure.get("cause")) if text) or "no reason is told"


def with_links(module):
    """Options for directories of wheels."""
    return [word for link in module.params["find_links"] for word in ("--find-links", link)]


def plan_id(module):
    """The id in the plan file. Ends the module where it cannot be read."""
    try:
        with open(module.params["plan"]) as file:
            return json.load(file)["id"]
    except (OSError, ValueError, KeyError) as error:
        module.fail_json(msg="the plan cannot be read: %s" % error, outcome="unknown")


def packages(plan, back=False):
    """The distributions that a plan changes, as a diff of Ansible."""
    sides = ("after", "before") if back else ("before", "after")
    names = [
        "".join("%s %s\n" % (item["name"], item[side]) for item in plan.get("changes") or [] if item.get(side))
        for side in sides
    ]
    return {"before": names[0], "after": names[1], "before_header": "distributions", "after_header": "distributions"}
