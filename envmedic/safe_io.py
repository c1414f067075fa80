"""Reading files that may have been put there by somebody else: regular ones alone, of a bounded size.

A FIFO in a file's place would let its reader wait for ever, a device or a sparse file would fill the memory, and a
symbolic link would bring what lies elsewhere, such as a key in a home directory, into a report. A link is followed
to a file of the same name only, as package managers make them that share files by links, or inside of its directory.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def read(path: Path, limit: int, *, follow: bool = False) -> bytes:
    """Content of the regular file at `path`, of at most `limit` bytes; with `follow` links may lead anywhere.

    Raises OSError where it cannot be read, is larger, is none, or is a link that is not followed.
    """
    with opened(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise OSError(errno.EFBIG, f"it has {size} bytes", str(path))
        return file.read(limit)


def opened(path: Path, *, follow: bool = False) -> BinaryIO:
    """The regular file at `path`, open for reading. Raises OSError as `read` does, whatever its size."""
    descriptor = _opened(path, follow=follow)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return open(descriptor, "rb")  # noqa: PTH123  # a descriptor, not a path; the caller closes it


def _opened(path: Path, *, follow: bool) -> int:
    try:
        return os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    except ValueError as error:  # a name with NUL
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path)) from error
    except OSError as error:
        if error.errno != errno.ELOOP or follow:
            raise
    return os.open(_led(path), _FLAGS | os.O_NOFOLLOW)


def _led(path: Path) -> str:
    """Where a link leads, if it may be followed."""
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    if name == path.name or folder == os.path.realpath(path.parent):
        return real
    raise OSError(errno.ELOOP, "it is a link to a file of another name, elsewhere", str(path))
