"""Writes byte code of modules; run as ``python -I -S -c`` of this text.

Arguments: a JSON list of paths of modules; the directory that they are below; the directory that tracebacks are to
name in its place; the number of processes. Byte code that is there stays, and what cannot be compiled is left out:
wheels contain templates and tests of old syntax.
"""

import importlib.util
import json
import os
import py_compile
import sys


def compile_all(paths, root, shown):
    """Write the byte code of modules, `shown` in place of `root` in their tracebacks."""
    for path in paths:
        if os.path.exists(importlib.util.cache_from_source(path)):
            continue
        try:
            py_compile.compile(
                path,
                dfile=shown + path[len(root) :],
                doraise=True,
                # not by SOURCE_DATE_EPOCH: Python would read and hash every module at every start
                invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
            )
        except (py_compile.PyCompileError, ValueError):
            continue


def main(listed, root, shown, processes):
    """Compile in several processes; returns the exit status."""
    with open(listed, encoding="utf-8") as file:
        paths = json.load(file)
    workers = []
    for number in range(int(processes)):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                compile_all(paths[number :: int(processes)], root, shown)
                status = 0
            finally:
                os._exit(status)
        workers.append(pid)
    return max(1 if os.waitpid(pid, 0)[1] else 0 for pid in workers)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
