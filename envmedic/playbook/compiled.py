"""Shipped playbooks compiled beforehand: ``python -m envmedic.playbook.compiled FILE``.

The wheel holds the result, so that the first command of a new user, or in a new container, does not spend five seconds
on validating playbooks that were validated before. The keys are those of the cache: an entry that does not fit the code
or the playbook is never used.
"""

from __future__ import annotations

import sys
from pathlib import Path

from envmedic.playbook.schema import cache, loader


def compile_shipped(file: Path) -> None:
    """Write the compiled shipped playbooks into `file`. Raises InvalidPlaybook, and OSError where it cannot be written."""
    entries = {}
    for path, origin in loader.playbook_files():
        if origin == "shipped":
            content = path.read_bytes()
            key = cache.cache_key(content, path.stem)
            playbook = cache.read_playbook(key) or loader.parse(content, str(path), shipped_as=path.stem)
            entries[key] = cache.playbook_entry(key, playbook)
    cache.write_prepared(entries, file)


if __name__ == "__main__":
    compile_shipped(Path(sys.argv[1]))
