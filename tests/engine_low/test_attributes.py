"""Capabilities, ACLs and user attributes: seen by fingerprints, kept by clones."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import time
import zlib
from pathlib import Path

import pytest

from envmedic.engine.clone.clone import clone
from envmedic.tree import fingerprint
from tests.engine_low.support import as_user, run_code, write

NET_RAW = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
"""``cap_net_raw=ep``, as setcap(8) writes it: VFS_CAP_REVISION_2 of linux/capability.h."""
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", tag, rights, who)
    for tag, rights, who in (
        (0x01, 6, 0xFFFFFFFF),  # the owner
        (0x02, 4, 4242),  # one more user
        (0x04, 4, 0xFFFFFFFF),  # the group
        (0x10, 4, 0xFFFFFFFF),  # the mask
        (0x20, 4, 0xFFFFFFFF),  # others
    )
)
"""An ACL by which user 4242 may read (linux/posix_acl_xattr.h)."""
SET_FLAGS, NO_DUMP, IMMUTABLE = 0x40086602, 0x40, 0x10
VALUES = {"user.origin": b"by hand", "security.capability": NET_RAW, "system.posix_acl_access": ACL}
LINKED = "lib/python3.11/site-packages/package0/__init__.py"


def give(path: Path, name: str) -> None:
    """Set an attribute; skips where this user or the file system cannot."""
    try:
        os.setxattr(path, name, VALUES.get(name, ACL))
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EPERM}:
            raise
        pytest.skip(f"{name} cannot be set here: {error.strerror}")


def set_flags(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SET_FLAGS, struct.pack("l", flags))
    except OSError as error:
        pytest.skip(f"flags cannot be set here: {error.strerror}")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("name", VALUES)
def test_an_attribute_that_comes_changes_or_goes_is_a_change(prefix: Path, name: str) -> None:
    without = fingerprint.fingerprint(prefix)
    give(prefix / LINKED, name)
    with_it = fingerprint.fingerprint(prefix)
    assert fingerprint.compare(without, with_it).names == (LINKED,)
    assert fingerprint.compare(with_it, without).names == (LINKED,)
    assert fingerprint.changes(without, prefix).names == (LINKED,)
    assert not fingerprint.changes(with_it, prefix)
    os.removexattr(prefix / LINKED, name)
    assert fingerprint.changes(with_it, prefix).names == (LINKED,)


def test_another_value_is_a_change_and_ctime_is_none(prefix: Path) -> None:
    give(prefix / "bin", "user.origin")
    before, ctime = fingerprint.fingerprint(prefix), (prefix / "bin").stat().st_ctime_ns
    deadline = time.monotonic() + 5
    while (prefix / "bin").stat().st_ctime_ns == ctime and time.monotonic() < deadline:  # its clock ticks slowly
        (prefix / "bin").chmod((prefix / "bin").stat().st_mode & 0o7777)
    assert not fingerprint.changes(before, prefix)
    assert not fingerprint.compare(before, fingerprint.fingerprint(prefix))
    os.setxattr(prefix / "bin", "user.origin", b"other")
    assert fingerprint.changes(before, prefix).names == ("bin",)


def test_attributes_of_the_root_count(prefix: Path) -> None:
    before = fingerprint.fingerprint(prefix)
    give(prefix, "user.origin")
    assert fingerprint.changes(before, prefix).names == (".",)
    assert fingerprint.compare(before, fingerprint.fingerprint(prefix)).names == (".",)


def test_a_saved_fingerprint_keeps_attributes(prefix: Path, open_tmp: Path) -> None:
    give(prefix / LINKED, "user.origin")
    for odd in ((), ("caf\udce9",)):  # a name that is no UTF-8 takes the slow way
        for name in odd:
            write(prefix / name, "")
        found = fingerprint.fingerprint(prefix)
        assert LINKED in (found.attributes or {})
        found.save(open_tmp / "saved")
        assert fingerprint.Fingerprint.load(open_tmp / "saved") == found
        assert b"by hand" not in (open_tmp / "saved").read_bytes()


@pytest.mark.parametrize("odd", ["plain", "caf\udce9"])
def test_fingerprints_without_attributes_are_read_and_compared_by_the_rest(
    prefix: Path, open_tmp: Path, odd: str
) -> None:
    write(prefix / odd, "")
    saved = open_tmp / "saved"
    fingerprint.fingerprint(prefix).save(saved)
    document = json.loads(zlib.decompress(saved.read_bytes()))
    document.pop("attributes")
    saved.write_text(json.dumps(document), encoding="ascii")
    old = fingerprint.Fingerprint.load(saved)
    give(prefix / LINKED, "user.origin")
    assert not fingerprint.changes(old, prefix)
    now = fingerprint.fingerprint(prefix, twin=old)
    assert not fingerprint.compare(old, now)
    assert not fingerprint.compare(now, old)
    assert LINKED in (now.attributes or {})
    (prefix / LINKED).chmod(0o600)
    assert fingerprint.changes(old, prefix).names == (LINKED,)


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_root_keeps_every_attribute(prefix: Path, open_tmp: Path, mode: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give capabilities")
    for path in (prefix / LINKED, prefix / "bin" / "tool"):
        for name in VALUES:
            give(path, name)
    before = fingerprint.fingerprint(prefix)
    report = clone(prefix, open_tmp / "clone", mode)  # type: ignore[arg-type]
    twin = fingerprint.fingerprint(open_tmp / "clone")
    assert not report.lost
    assert twin.attributes == before.attributes
    assert fingerprint.fingerprint(prefix, twin=twin).attributes == before.attributes


def test_a_clone_gets_no_acl_that_its_original_lacks(prefix: Path, open_tmp: Path) -> None:
    give(open_tmp, "system.posix_acl_default")  # handed on to what is made below
    clone(prefix, open_tmp / "clone", "link")
    assert fingerprint.fingerprint(open_tmp / "clone").attributes == {}
    assert fingerprint.manifest(open_tmp / "clone") == fingerprint.manifest(prefix)


def test_a_user_who_may_not_keep_owner_or_capabilities_is_told_the_files(prefix: Path, open_tmp: Path) -> None:
    wrap = as_user()
    if not wrap.command:
        pytest.skip("only root can make another user's files")
    for path in [prefix, *prefix.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.chown(prefix / "bin" / "tool", 1234, 65534)
    (prefix / "bin" / "tool").chmod(0o4755)
    write(prefix / "bin" / "ping", "")
    os.chown(prefix / "bin" / "ping", 65534, 65534)
    give(prefix / "bin" / "ping", "security.capability")
    open_tmp.chmod(0o777)
    code = """
from envmedic.engine.clone import losses
from envmedic.engine.clone.clone import clone
source, target = map(Path, sys.argv[1:])
result = [dict(losses.foreseen(source, mode, target.parent)) for mode in ("link", "copy")]
result.append(dict(clone(source, target, "link").lost))
"""
    for found in run_code(code, prefix, open_tmp / "clone", wrap=wrap):
        assert found == {"ownership": ["bin/tool"], "capabilities": ["bin/ping"]}
    assert (open_tmp / "clone" / "bin" / "tool").stat().st_mode & 0o7777 == 0o755


def test_flags_of_chattr_are_told(prefix: Path, open_tmp: Path) -> None:
    set_flags(prefix / "bin" / "tool", NO_DUMP)
    report = clone(prefix, open_tmp / "clone", "link")
    assert report.lost == {"flags": ("bin/tool",)}


def test_an_immutable_file_is_copied_and_told(prefix: Path, open_tmp: Path) -> None:
    set_flags(prefix / LINKED, IMMUTABLE)
    try:
        report = clone(prefix, open_tmp / "clone", "link")
    finally:
        set_flags(prefix / LINKED, 0)
    assert report.lost == {"flags": (LINKED,), "links": (LINKED,)}
    (open_tmp / "clone" / LINKED).unlink()
