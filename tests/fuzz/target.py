"""What a target of fuzzing is, and the words of formats that several of them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

Reader = Callable[[bytes], object]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of input."""

    name: str
    reader: Callable[[Path], Reader]
    """Makes the reader; it may write into the directory that it is given, and nowhere else."""
    samples: Callable[[], list[bytes]]
    promised: tuple[type[BaseException], ...] = ()
    """Errors by which the reader says that it cannot read something."""
    words: tuple[bytes, ...] = ()
    reads: tuple[str, ...] = ()
    """Files of this machine that it may read too."""
    free: bool = False
    """Whether it may do more than read its own directory: the whole observation of an environment starts processes."""


JSON = (b"null", b"true", b'"', b"[[[[", b'{"a":', b"\\u0000", b"\\ud800", b"1e400", b"-0", b"[]", b"{}", b'"../../x"')
META = (b"Name: ", b"Version: ", b"Requires-Dist: ", b" (", b")", b"; extra == 'x'", b"Requires-Python: ", b"\n\n", b"UNKNOWN", b"Requires-Dist: x; " + b"(" * 2000,
         b"../../../../etc/passwd,,", b"/etc/passwd,sha256=x,9", b"sha256=", b",,\n", b'"a,b",,1\n', b"\xd9\xa3")  # fmt: skip
SHELL = (
    b"export ",
    b"unset ",
    b"${A:-",
    b"$A$A",
    b"A=$A$A\n",
    b"LD_LIBRARY_PATH=",
    b"f () {\n",
    b"}\n",
    b"function x",
    b"''",
    b"$'",
)
CONDA = (
    b"==> ",
    b" <==",
    b"# update specs: ",
    b"['",
    b"']",
    b"::",
    b"[version='",
    b"=*",
    b"# cmd: ",
    b"-",
    b"+",
    b"^",
    b"|",
)
