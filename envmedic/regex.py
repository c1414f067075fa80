"""Regular expressions that are compiled by their first use: a command needs few of those that its modules have.

Compiling takes a tenth of a millisecond and more; a diagnosis would spend a tenth of its time on those that nothing asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def compile_late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """A pattern as of `re.compile`, which raises what is wrong with it when it is first used."""

else:

    class compile_late:  # noqa: N801  # it stands for a function: the object is the pattern
        """A pattern as of `re.compile`, which raises what is wrong with it when it is first used."""

        def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
            self._stated = (pattern, flags)

        def __getattr__(self, name: str) -> Any:
            """What patterns have; compiled by the first that is asked for."""
            if name.startswith("__"):  # of protocols such as copying, which must not see the pattern's
                raise AttributeError(name)
            found = getattr(re.compile(*self._stated), name)
            self.__dict__[name] = found  # the next use is that of an attribute
            return found
