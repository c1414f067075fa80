"""Extended attributes of files, as far as they are an environment's own: a user's, capabilities and POSIX ACLs.

Labels of security modules (``security.selinux``) and attributes of file systems are the machine's business.
"""

from __future__ import annotations

import errno
import hashlib
import os

CAPABILITY = "security.capability"
_ACLS = frozenset({"system.posix_acl_access", "system.posix_acl_default"})
UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENODATA})
_UNREADABLE = frozenset({errno.EACCES, errno.EPERM})
_DIGITS = 16


def is_own(name: str) -> bool:
    """Whether the attribute `name` belongs to an environment."""
    return name.startswith("user.") or name == CAPABILITY or name in _ACLS


def supported(root: str | os.PathLike[str]) -> bool:
    """Whether the file system of `root` has extended attributes. Raises OSError."""
    try:
        os.listxattr(root)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        raise
    return True


def described(path: str | os.PathLike[str], names: list[str]) -> str:
    """Those of the attributes `names` of `path` that are an environment's own, each with a digest of its value.

    The value stays unsaid: it may be long, or a secret. An attribute that this user may not read counts by its
    name. Raises OSError.
    """
    return " ".join(f"{name}={_digest(path, name)}" for name in sorted(names) if is_own(name))


def _digest(path: str | os.PathLike[str], name: str) -> str:
    try:
        value = os.getxattr(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno in _UNREADABLE or error.errno in _GONE:
            return ""
        raise
    return hashlib.sha256(value).hexdigest()[:_DIGITS]


def has_capabilities(path: str | os.PathLike[str]) -> bool:
    """Whether the file at `path` gives capabilities to what runs it (capabilities(7)). Raises OSError."""
    try:
        return bool(os.getxattr(path, CAPABILITY, follow_symlinks=False))
    except OSError as error:
        if error.errno in _GONE or error.errno in UNSUPPORTED:
            return False
        raise
