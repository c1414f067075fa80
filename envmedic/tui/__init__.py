"""The terminal UI: thin screens over `api` and its events.

`session` is what it knows, `render` turns values into lines, `effects` is the only part that calls `api`; none of these
knows Textual, apart from the thread workers of `effects`.
"""

from __future__ import annotations
