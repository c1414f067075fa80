"""Shipped playbooks compiled beforehand: ``python -m envmedic.playbook.compiled DIRECTORY``.

The wheel holds the result, so that the first command of a new user, or in a new container, does not spend five seconds
on validating playbooks that were validated before. The keys are those of the cache: a file that does not fit the code
or the playbook is never used.
"""

from __future__ import annotations

import sys
from pathlib import Path

from envmedic.playbook.matching import derived, forms
from envmedic.playbook.schema import cache, loader


def compile_shipped(root: Path) -> None:
    """Bring `root` to the compiled shipped playbooks and the literals of their patterns, and nothing else.

    Raises InvalidPlaybook, and OSError where `root` cannot be written.
    """
    files = [path for path, origin in loader.playbook_files() if origin == "shipped"]
    contents = {path: path.read_bytes() for path in files}
    keys = {path: cache.cache_key(content, path.stem) for path, content in contents.items()}
    playbooks = [
        cache.read_playbook(keys[path]) or loader.parse(content, str(path), shipped_as=path.stem)
        for path, content in contents.items()
    ]
    wanted = set()
    for key, playbook in zip(keys.values(), playbooks, strict=True):
        wanted.add(cache.playbook_file(root, key))
        cache.write_playbook(key, playbook, root)
    # in the order in which a diagnosis without playbooks of the user's asks for them
    signatures = [signature.pattern for playbook in playbooks for signature in playbook.signatures]
    for patterns in (signatures, forms.patterns()):
        literals = derived.cache_key(patterns)
        if literals is not None:
            wanted.add(cache.derived_file(root, literals))
            derived.write_literals(literals, derived.derive_literals(patterns), root)
    for file in (path for path in root.rglob("*") if path.is_file() and path not in wanted):
        file.unlink()


if __name__ == "__main__":
    compile_shipped(Path(sys.argv[1]))
