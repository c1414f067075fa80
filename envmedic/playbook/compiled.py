"""Shipped playbooks compiled beforehand: ``python -m envmedic.playbook.compiled FILE``.

The wheel holds the result, so that the first command of a new user, or in a new container, does not spend five seconds
on validating playbooks that were validated before. The keys are those of the cache: an entry that does not fit the code
or the playbook is never used.
"""

from __future__ import annotations

import sys
from pathlib import Path

from envmedic.model.playbook import Playbook
from envmedic.playbook.matching import derived, forms
from envmedic.playbook.schema import cache, loader


def compile_shipped(file: Path) -> None:
    """Write the compiled shipped playbooks and the literals of their patterns into `file`.

    Raises InvalidPlaybook, and OSError where `file` cannot be written.
    """
    files = [path for path, origin in loader.playbook_files() if origin == "shipped"]
    contents = {path: path.read_bytes() for path in files}
    playbooks: dict[str, Playbook] = {}
    for path, content in contents.items():
        key = cache.cache_key(content, path.stem)
        playbooks[key] = cache.read_playbook(key) or loader.parse(content, str(path), shipped_as=path.stem)
    entries = {key: cache.playbook_entry(key, playbook) for key, playbook in playbooks.items()}
    # in the order in which a diagnosis without playbooks of the user's asks for them
    signatures = [signature.pattern for playbook in playbooks.values() for signature in playbook.signatures]
    for patterns in (signatures, forms.patterns()):
        key_of_literals = derived.cache_key(patterns)
        if key_of_literals is not None:
            entries[key_of_literals] = cache.bytes_entry(
                key_of_literals, derived.encoded(derived.derive_literals(patterns))
            )
    cache.write_prepared(entries, file)


if __name__ == "__main__":
    compile_shipped(Path(sys.argv[1]))
