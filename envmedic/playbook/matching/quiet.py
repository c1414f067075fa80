"""Texts that tell of no failure at all, by their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envmedic.model.playbook import TextMatch

_FAILURE = re.compile(
    rb"(?i)error|exception|(?<!de)fault|\b(?:traceback|fatal|fail|abort|kill|terminat|can ?not|can't|could ?n[o']t|unable"
    rb"|missing|no module|not (?:found|available|compiled|supported|compatible|installed|permitted)|undefined|invalid|illegal"
    rb"|panic|(?:core )?dumped|mismatch|incompat|unsupported|denied|refused|time[ds]? ?out|exit (?:code|status)|out of|lost"
    rb"|corrupt|broken|signal|does ?n[o']t|does not|will not|must|nan\b)"
    rb"|fehler|nicht |erreur|introuvable|impossible|\berro\b|falh|fallo|[\xd0-\xd3\xd8-\xdb\xe3-\xed][\x80-\xbf]"
)
"""Words of failures, and letters of scripts in which none of them is written."""
_MOST = 5_000
"""Lines of a text that is judged; a longer one counts as telling of a failure."""


class Watch:
    """The numbers of the lines that may tell of a failure, taken while another reads them."""

    def __init__(self) -> None:
        self._telling: set[int] = set()
        self._count = 0

    def over(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield `lines`, which are watched on their way."""
        for number, line in enumerate(lines, start=1):
            self._count = number
            if number <= _MOST and _FAILURE.search(line) is not None:
                self._telling.add(number)
            yield line

    def quiet(self, matches: Iterable[TextMatch]) -> bool:
        """Whether no line tells of a failure, except in warnings among `matches`, after which programs go on."""
        warned = {match.line_number for match in matches if match.passing}
        return 0 < self._count <= _MOST and self._telling <= warned
