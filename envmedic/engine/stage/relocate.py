"""Relocation: replace the staging path by the final path in files that were made in a clone.

Without mount namespaces, installers run at the path of the clone and write it into scripts and a few other text
files. Only those are rewritten. Byte code stays as it is: Python takes the path of a module from where it found it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.clone.directory_entries import is_private_file, is_private_tree
from envmedic.engine.fs.file_copy import Counts, keep_metadata
from envmedic.errors import PreflightError

_LONGEST_SHEBANG = 125
"""Bytes after ``#!`` that every Linux kernel reads: 128 with it and the line's end, before 5.1."""
_WORD = rb"\"(?:[^\"\\]|\\.)*\"|(?:'[^']*'(?:\"'\")?)+|\S+"
_SHELL_FORM = re.compile(
    rb"\A#!/bin/sh\n'''exec' (?P<program>" + _WORD + rb")(?P<rest>(?:[ \t\r\f\v][^\n]*?)?) \"\$0\" \"\$@\"\n' '''\n?",
    re.DOTALL,
)
_DANGEROUS = frozenset(b"'\"\\$`\n")
"""Bytes that need quoting in scripts and settings, each in its own way."""
_MOST_LISTED = 20
_FINDER = "__editable__"
"""Beginning of the modules by which setuptools finds an editable install."""
_NO_HASH = ""


@dataclass(frozen=True)
class Relocation:
    """What was rewritten."""

    rewritten: tuple[str, ...]
    """Paths relative to the root, sorted; RECORD files with their new hashes too."""


def rewrite(clone: Path, staging: Path, final: Path) -> Relocation:
    """Replace `staging` by `final` in the scripts, settings and metadata of `clone`.

    Covers files at the root, ``bin``, ``etc``, ``share/jupyter/kernels``, ``*.pth``, ``*.egg-link``
    and the metadata of distributions, whose RECORD gets the new hashes. Both forms of a script's
    first line are made anew, since the final path may need quoting where the staging path did not.
    Each file becomes a new inode with the old mode and owner. Raises PreflightError, with the files
    in `details`, when the staging path is left in one (nothing is claimed about the clone then),
    and OSError.
    """
    rewritten, left = _replaced(clone, _candidates(clone), _Paths(os.fsencode(staging), os.fsencode(final)))
    if left:
        raise PreflightError(
            "The clone still names the path where it was staged",
            cause=f"{len(left)} of its files hold {staging} in a form that cannot be rewritten safely",
            hint="Use --staging namespace, where the host allows it",
            details=tuple(left[:_MOST_LISTED]),
        )
    return Relocation(tuple(sorted({*rewritten, *update_records(clone, rewritten)})))


def rewrite_former(
    clone: Path, former: Path, present: Path, sources: Mapping[str, str]
) -> tuple[Relocation, list[str]]:
    """Replace the path at which an environment was made by its present one, as `rewrite` does.

    In files of editable installs the directories of `sources` are replaced too. Returns what was rewritten, and files
    that still name the former path because no form of the present one is safe in them. Raises OSError.
    """
    paths = _Paths(os.fsencode(former), os.fsencode(present), whole=True)
    rewritten, left = _replaced(clone, _candidates(clone), paths)
    editable = [path for path in _candidates(clone) if _of_editable(path)]
    for old, new in sources.items():
        more, kept = _replaced(clone, editable, _Paths(os.fsencode(old), os.fsencode(new), whole=True))
        rewritten, left = [*rewritten, *more], [*left, *kept]
    every = sorted({*rewritten, *update_records(clone, rewritten)})
    return Relocation(tuple(every)), sorted(set(left))


def _of_editable(path: str) -> bool:
    return path.endswith((".pth", ".egg-link", "/direct_url.json")) or "/__editable__" in path


def _replaced(clone: Path, candidates: Iterable[str], paths: _Paths) -> tuple[list[str], list[str]]:
    """Replace paths in files; returns the rewritten ones, and those in which that is not safe."""
    rewritten, left = [], []
    for relative in sorted(candidates):
        before = (clone / relative).read_bytes()
        if not paths.named_in(before):
            continue
        after = before if b"\0" in before else paths.replace(before, is_json=relative.endswith(".json"))
        if paths.named_in(after):
            left.append(relative)
        else:
            _write(clone / relative, after)
            rewritten.append(relative)
    return rewritten, left


def with_interpreter(content: bytes, program: Path) -> bytes:
    """Return a script with a first line that names `program`."""
    found = _SHELL_FORM.match(content) or re.match(rb"#![ \t]*\S+(?P<rest>(?:[ \t\r\f\v][^\n]*)?)\n", content)
    rest, body = (found["rest"], content[found.end() :]) if found else (b"", content)
    return _first_lines(os.fsencode(program), rest) + body


def interpreter_of(content: bytes) -> bytes | None:
    """The program that the first line of a script names, in either of its forms; None when it has none."""
    found = _SHELL_FORM.match(content) or re.match(rb"#![ \t]*(?P<program>\S+)", content)
    return _unquoted(found["program"]) if found else None


class _Paths:
    """The staging and the final path, in every form in which text files hold them.

    A `whole` path is no end of a longer one, and no beginning of the final path, which files may name already.
    """

    def __init__(self, staging: bytes, final: bytes, *, whole: bool = False) -> None:
        self._staging = staging
        self._final = final
        self._before, self._after = b"", rb"(?![\w.-])"
        if whole:
            self._before = rb"(?<![\w.~+@-])"
            if final.startswith(staging + b"/"):
                self._after += rb"(?!" + re.escape(final[len(staging) :]) + rb"(?![\w.-]))"
        old, new = os.fsdecode(staging), os.fsdecode(final)
        self._url = (b"file://" + _quote(staging), b"file://" + _quote(final))
        self._json = (_in_json(old), _in_json(new))
        self._old_forms = {staging, _quote(staging), self._json[0], staging.replace(b"'", b"'\"'\"'")}
        self._plain_is_safe = not (_DANGEROUS & (set(final) - set(staging)))
        self._plain_script = re.compile(
            rb"\A#![ \t]*(?P<program>" + re.escape(staging) + rb"/\S+)(?P<rest>(?:[ \t\r\f\v][^\n]*)?)\n"
        )

    def named_in(self, content: bytes) -> bool:
        """Whether the staging path is in `content` in any form."""
        found = (form for form in self._old_forms if form in content)
        return any(not self._before or re.search(self._pattern(form), content) for form in found)

    def _pattern(self, form: bytes) -> bytes:
        return self._before + re.escape(form) + self._after

    def _swap(self, content: bytes, old: bytes, new: bytes) -> bytes:
        """Replace the path `old`, but not a longer path that begins with it, such as ``/env2`` for ``/env``."""
        return re.sub(self._pattern(old), lambda _: new, content)

    def replace(self, content: bytes, *, is_json: bool) -> bytes:
        """Return `content` with the final path wherever that is safe."""
        content = self._swap(self._script(content), *self._url)
        if is_json:
            content = self._swap(content, *self._json)
            return self._swap(content, self._staging, self._json[1])
        if not self._plain_is_safe:
            return content  # `rewrite` then finds the staging path left over and refuses the clone
        quoted = (path.replace(b"'", b"'\"'\"'") for path in (self._staging, self._final))
        return self._swap(self._swap(content, *quoted), self._staging, self._final)

    def _script(self, content: bytes) -> bytes:
        """Make a script's first line anew when it names an interpreter of the clone.

        Two forms exist: the plain one, and for paths that are long or have spaces a shell command
        that Python reads as a string. uv quotes the path in it always, pip only when it must.
        """
        found = _SHELL_FORM.match(content) or self._plain_script.match(content)
        program = _unquoted(found["program"]) if found else b""
        if found is None or not re.match(self._pattern(self._staging) + b"/", program):
            return content
        moved = self._final + program[len(self._staging) :]
        return _first_lines(moved, found["rest"]) + content[found.end() :]


def _quote(path: bytes) -> bytes:
    return urllib.parse.quote(path).encode()


def _in_json(path: str) -> bytes:
    return json.dumps(path)[1:-1].encode()


def _unquoted(word: bytes) -> bytes:
    if word[:1] == b'"':
        return re.sub(rb'\\([\\"$`])', rb"\1", word[1:-1])
    if word[:1] == b"'":
        return word[1:-1].replace(b"'\"'\"'", b"'")
    return word


def _first_lines(program: bytes, rest: bytes) -> bytes:
    # The kernel cuts a longer first line off and takes a blank for the end of the interpreter's path.
    if len(program + rest) <= _LONGEST_SHEBANG and not re.search(rb"\s", program):
        return b"#!" + program + rest + b"\n"
    quoted = b'"' + re.sub(rb'([\\"$`])', rb"\\\1", program) + b'"'
    return b"#!/bin/sh\n'''exec' " + quoted + rest + b' "$0" "$@"\n' + b"' '''\n"


def _candidates(root: Path) -> Iterator[str]:
    """Regular files that may hold paths, relative to `root`; byte code is none of them."""
    pending = [("", False)]
    while pending:
        base, private = pending.pop()
        with os.scandir(root / base) as entries:
            for entry in entries:
                path = base + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        pending.append((path + "/", private or is_private_tree(path)))
                elif entry.is_file(follow_symlinks=False) and (
                    private or not base or is_private_file(entry.name) or entry.name.startswith(_FINDER)
                ):
                    yield path


def update_records(root: Path, rewritten: Sequence[str]) -> Iterator[str]:
    """Give rewritten files their new hash and size in the RECORD that lists them; yields these RECORDs."""
    changed = {os.path.normpath(root / path) for path in rewritten}
    names = {os.fsencode(Path(path).name) for path in rewritten}
    for relative in list(_candidates(root)):
        if not relative.endswith(".dist-info/RECORD"):
            continue
        content = (root / relative).read_bytes()
        if not any(name in content for name in names):
            continue
        site = (root / relative).parent.parent
        try:
            rows = list(csv.reader(io.StringIO(content.decode(errors="surrogateescape"), newline="")))
        except csv.Error:  # what is no table lists nothing, for installers too
            continue
        fresh = [_row(row, site) if _listed(row, site) in changed else row for row in rows]
        if fresh != rows:
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\r\n" if b"\r\n" in content else "\n").writerows(fresh)
            _write(root / relative, text.getvalue().encode(errors="surrogateescape"))
            yield relative


def _listed(row: list[str], site: Path) -> str:
    return os.path.normpath(site / row[0]) if len(row) > 1 and row[1] != _NO_HASH else ""


def _row(row: list[str], site: Path) -> list[str]:
    content = (site / row[0]).read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [row[0], f"sha256={digest}", str(len(content)), *row[3:]]


def _write(path: Path, content: bytes) -> None:
    """Replace a file by a new inode with its mode, owner and attributes, and the present time."""
    fresh = path.with_name(path.name + ".envmedic-new")
    with path.open("rb") as source, fresh.open("xb") as target:
        target.write(content)
        target.flush()
        keep_metadata(source.fileno(), target.fileno(), os.fstat(source.fileno()), Counts(), os.fspath(path))
        os.utime(target.fileno())
    fresh.replace(path)
