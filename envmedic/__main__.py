"""``python -m envmedic``: the same program as the ``envmedic`` script."""

from __future__ import annotations

import sys

from envmedic.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
