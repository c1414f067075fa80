"""Launcher of the user's own command: ``python -I -S -c <this text> DIRECTORY PYTHON CHANGES COMMAND…``.

The command is looked up in the PATH of the environment and runs in DIRECTORY, with the variables that CHANGES, a JSON
object, sets and (null) unsets. PYTHON itself runs a script in its own
directory, whose first line may name another copy of the environment. If the command cannot be started, a marked line
says so, which keeps it from being taken for a failure of the command.
"""

import json
import os
import shutil
import sys


def refuse(reason):
    """Print why the command was not started, and exit."""
    # 127 is what shells return for a missing command; the line begins with a line end, as output may be unfinished
    print("\n@envmedic " + json.dumps({"refused": reason}), flush=True)
    sys.exit(127)


def interpreted(program, python):
    """Whether `program` is a Python script of the environment of `python`."""
    # Scripts elsewhere in PATH keep their own interpreter, as in the user's shell.
    if os.path.dirname(program) != os.path.dirname(python):
        return False
    with open(program, "rb") as stream:
        head = stream.read(300)
    return head.startswith(b"#!") and b"python" in head


def main(directory, python, changes, *command):
    """Replace this process by the command."""
    for name, value in json.loads(changes).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        os.chdir(directory)
    except OSError as error:
        refuse("cannot enter %s: %s" % (directory, error.strerror))
    program = shutil.which(command[0])
    if program is None:
        refuse("there is no program %s" % command[0])
    argv = list(command)
    if interpreted(program, python):
        program, argv = python, [python, program, *argv[1:]]
    try:
        os.execv(program, argv)
    except OSError as error:
        refuse("%s cannot be started: %s" % (program, error.strerror))


if __name__ == "__main__":
    main(*sys.argv[1:])
