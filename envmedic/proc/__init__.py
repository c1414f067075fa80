"""Running commands. The only module that imports sh or starts a process.

`run` and `ask` are for commands that envmedic itself needs, `Helper` for programs of its own that answer in JSON,
`passthrough` for the user's own command. All of them stand on `child.Child`; `plain`, by sh, is for the rest.
"""

from envmedic.proc.commands import Question, ask, run, without_others
from envmedic.proc.helper import Helper, HelperResult

__all__ = ["Helper", "HelperResult", "Question", "ask", "run", "without_others"]
