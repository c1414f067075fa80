"""Rewrites what is made from the code: ``python -m tests.docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs.generated import outdated

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Write every file that is not as it should be, and name it."""
    for path, content in outdated(ROOT).items():
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
