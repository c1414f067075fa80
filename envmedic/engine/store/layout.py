"""The store of transactions: ``<parent>/.envmedic``, beside the environments that they repair.

One store serves every environment of a parent directory::

    .envmedic/.gitignore, CACHEDIR.TAG
    .envmedic/locks/<name>.lock           one per environment, never deleted
    .envmedic/<txid>/prefix               the environment it belongs to, readable without the journal
    .envmedic/<txid>/journal.json         the state, see `journal`
    .envmedic/<txid>/plan.json, record.json, events.jsonl
    .envmedic/<txid>/fingerprint          of the original, taken right after cloning
    .envmedic/<txid>/fingerprint-live     of the repaired tree, taken after the exchange
    .envmedic/<txid>/witness              what other machines that share the environment are asked, and answered
    .envmedic/<txid>/carried.json         what an undo copies into `env`, while it does
    .envmedic/<txid>/project              of each edited file of the project the content that is not in place
    .envmedic/<txid>/project.json         which files those are
    .envmedic/<txid>/env                  the clone before the exchange, the old tree after it; or a link to that one
    .envmedic/<txid>/displaced            the old tree in the middle of a swap by renames, or a link to it
    .envmedic/<txid>/link                 the link that takes the environment's place, right before it does
    .envmedic-trees/<name>/<txid>         a tree of an environment that is a link, see `linked_prefix`
    .envmedic/<txid>/trash                what is being deleted
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from envmedic.engine.fs import scratch, trash
from envmedic.engine.fs.durable import make_directory, write_whole
from envmedic.engine.fs.exchange import sync_directory
from envmedic.errors import RECOVERABLE, STORAGE_HINTS, InternalError, PreflightError
from envmedic.linked_prefix import STORE, TREES, linked_tree, live_tree, real_prefix
from envmedic.owner import require_own

_TRANSACTION = re.compile(r"[0-9]{8}T[0-9]{12}Z-[0-9a-f]{6}")
_NEW = ".new-"
_LONGEST_NAME = 200
_CACHEDIR_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Trees kept by envmedic for undo. `envmedic prune` removes them; do not delete by hand while it runs.\n"
)


@dataclass(frozen=True)
class TransactionDirectory:
    """The files of one transaction."""

    path: Path

    @property
    def transaction(self) -> str:
        """The transaction's id."""
        return self.path.name

    @property
    def prefix(self) -> Path:
        """The name of the environment, so that a damaged journal blocks this environment only."""
        return self.path / "prefix"

    @property
    def journal(self) -> Path:
        """The state, see `journal.Journal`."""
        return self.path / "journal.json"

    @property
    def plan(self) -> Path:
        """The plan as it was confirmed."""
        return self.path / "plan.json"

    @property
    def record(self) -> Path:
        """The record, see `model.record`."""
        return self.path / "record.json"

    @property
    def events(self) -> Path:
        """Every event, one JSON object per line."""
        return self.path / "events.jsonl"

    @property
    def fingerprint(self) -> Path:
        """The fingerprint of the original environment."""
        return self.path / "fingerprint"

    @property
    def live_fingerprint(self) -> Path:
        """The fingerprint of the repaired environment."""
        return self.path / "fingerprint-live"

    @property
    def carried(self) -> Path:
        """The list of the files that an undo carries over, as long as it is under way, see `carry_over`."""
        return self.path / "carried.json"

    @property
    def witness(self) -> Path:
        """Questions to other machines and their answers, see `engine.witness`; only where they are asked."""
        return self.path / "witness"

    @property
    def project(self) -> Path:
        """Of each file of the project that the repair edits, the content that is not in place, see `project_files`."""
        return self.path / "project"

    @property
    def project_edit(self) -> Path:
        """The list of those files; without it none is edited."""
        return self.path / "project.json"

    @property
    def tree(self) -> Path:
        """The tree that is not at the prefix."""
        return self.tree_of(self.tree_place)

    @property
    def tree_place(self) -> Path:
        """Where that tree lies, or a link to it."""
        return self.path / "env"

    @property
    def displaced(self) -> Path:
        """The tree that was at the prefix, in the middle of a swap by renames; or a link to it."""
        return self.path / "displaced"

    @property
    def link(self) -> Path:
        """The link that takes the place of the one at the prefix, or of the environment that becomes one."""
        return self.path / "link"

    def tree_of(self, place: Path) -> Path:
        """The tree that is at `place`, or to which a link there leads; it leads into the directory of trees beside the store.

        Of what the link says only the names count, so that nothing outside is ever taken for a tree.
        """
        try:
            *_, name, tree = place.readlink().parts
        except (OSError, ValueError):
            return place
        if ".." in {name, tree}:
            return place
        return self.path.parent.parent / TREES / name / tree

    def link_to(self, tree: Path) -> str:
        """What a link in this directory says that leads to `tree`."""
        return f"../../{TREES}/{tree.parent.name}/{tree.name}"

    def discard_tree(self) -> None:
        """Move the tree that is not at the prefix into the trash, in one step, and remove the link to it. Raises OSError."""
        tree = self.tree
        if os.path.lexists(tree):
            if linked_tree(self.path.parent.parent / tree.parent.name) == tree:
                raise InternalError(f"{tree}, which is to be removed, is live", environment=RECOVERABLE)
            trash.discard(tree, self.trash)
        self.forget_gone()

    def forget_gone(self) -> None:
        """Remove the link to a tree that is in the trash. Raises OSError."""
        if self.tree_place.is_symlink() and not os.path.lexists(self.tree):
            self.tree_place.unlink()

    @property
    def trash(self) -> Path:
        """Trees that are being deleted; a crash may leave parts of them."""
        return self.path / "trash"


@dataclass(frozen=True)
class Store:
    """The store as seen from one environment. `prefix` is its real path, see `linked_prefix`; it need not exist."""

    prefix: Path

    @classmethod
    def of(cls, prefix: Path) -> Store:
        """The store of the environment at `prefix`, which may be reached through symbolic links.

        Raises PreflightError if this process is root, and another user could exchange the environment.
        """
        require_own(prefix)
        return cls(real_prefix(prefix))

    @property
    def live(self) -> Path:
        """The directory of the tree at the prefix."""
        return live_tree(self.prefix)

    @property
    def root(self) -> Path:
        """The directory of the store."""
        return self.prefix.parent / STORE

    @property
    def lock(self) -> Path:
        """The lock file of this environment."""
        return self.root / "locks" / f"{self._key}.lock"

    @property
    def _key(self) -> str:
        """The name of the environment, or a digest if a suffix would exceed the 255 bytes of a file name."""
        name = os.fsencode(self.prefix.name)
        return self.prefix.name if len(name) <= _LONGEST_NAME else _digest(name)

    @property
    def _new(self) -> str:
        """Start of the names of unfinished transaction directories of this environment."""
        return f"{_NEW}{_digest(os.fsencode(self.prefix.name))[:16]}-"

    def prepare(self) -> None:
        """Create the store if needed. Raises PreflightError if another user owns it or it is not writable."""
        try:
            if not self.root.is_dir():
                make_directory(self.root)
            self._check_owner(self.root)
            if not self.lock.parent.is_dir():
                make_directory(self.lock.parent)
            self._check_owner(self.lock.parent)
            for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _CACHEDIR_TAG)):
                if not (self.root / name).exists():
                    write_whole(self.root / name, text.encode(), synced=False)
        except OSError as error:
            raise self.refused(error) from error

    def refused(self, error: OSError) -> PreflightError:
        """The error for a write in the store that the system refused."""
        hint = STORAGE_HINTS.get(error.errno or 0, "") if error.errno not in {errno.EACCES, errno.EPERM} else ""
        return PreflightError(
            f"{self.root} cannot be written",
            cause=f"{error.strerror}: {error.filename}" if error.filename else error.strerror,
            hint=hint or f"Make {self.root.parent} writable for the owner of the environment",
        )

    def _check_owner(self, directory: Path) -> None:
        status = directory.lstat()
        # Any other owner could exchange a tree in the store after its verification and before the exchange.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in {0, os.geteuid()}:
            raise PreflightError(
                f"{directory} is not a directory of this user",
                cause=f"It belongs to uid {status.st_uid}, who could change what a repair puts in place",
                hint="Ask its owner to run envmedic, or to remove it after `envmedic prune`",
            )

    @property
    def closed(self) -> bool:
        """Whether the store belongs to another user and is not readable for this one."""
        return self.root.is_dir() and not os.access(self.root, os.R_OK | os.X_OK, effective_ids=True)

    def _listed(self) -> tuple[Path, ...]:
        """The entries of the store; () without a store. Raises PreflightError if the store is closed to this user."""
        if not self.root.is_dir():
            return ()
        try:
            return tuple(self.root.iterdir())
        except PermissionError as error:
            raise PreflightError(
                f"{self.root} cannot be read",
                cause=f"It belongs to uid {self.root.stat().st_uid}, who repaired an environment there",
                hint="Ask them to do it, or make an environment of your own: `envmedic lock`, then `envmedic create`",
            ) from error

    def transactions(self) -> tuple[TransactionDirectory, ...]:
        """The transactions of this environment, oldest first, including those that name no environment.

        Raises PreflightError if the store is closed to this user.
        """
        paths = sorted(path for path in self._listed() if _TRANSACTION.fullmatch(path.name))
        return tuple(item for item in map(TransactionDirectory, paths) if self._claims(item))

    def _claims(self, directory: TransactionDirectory) -> bool:
        try:
            name = directory.prefix.read_text(encoding="utf-8", errors="surrogateescape")
        except FileNotFoundError:
            return True  # damaged: rather block every environment here than let one miss its own transaction
        return name == self.prefix.name

    def create(self, files: dict[str, bytes], *, transaction: str) -> TransactionDirectory:
        """Create the directory of a transaction with `files`, durably and in one rename. Raises OSError."""
        fresh = self.root / f"{self._new}{transaction}"
        make_directory(fresh)
        for name, content in {"prefix": os.fsencode(self.prefix.name), **files}.items():
            write_whole(fresh / name, content)
        sync_directory(fresh)
        directory = TransactionDirectory(self.root / transaction)
        fresh.rename(directory.path)
        sync_directory(self.root)
        return directory

    def unfinished(self) -> tuple[Path, ...]:
        """Directories that a crash in `create` or in a probe left behind; safe to delete."""
        listed = self._listed()
        if not self.root.is_dir():
            return ()
        in_store, at_prefix = scratch.names(self.prefix)
        return (
            *(path for path in listed if path.name.startswith(self._new)),
            *scratch.left_over(self.root, in_store),
            *scratch.left_over(self.root.parent, at_prefix),
        )

    def sweep(self) -> None:
        """Remove the `unfinished` directories. The caller holds the lock."""
        for path in self.unfinished():
            shutil.rmtree(path)


def _digest(name: bytes) -> str:
    return hashlib.sha256(name).hexdigest()


def new_transaction_id(now_ns: int | None = None) -> str:
    """A fresh id that sorts by its time, to the microsecond: ``YYYYMMDDTHHMMSSffffffZ-xxxxxx``, UTC."""
    seconds, rest = divmod(time.time_ns() if now_ns is None else now_ns, 1_000_000_000)
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}{rest // 1000:06d}Z-{os.urandom(3).hex()}"
