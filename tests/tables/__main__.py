"""Makes the compatibility tables: ``python -m tests.tables`` (``make data``)."""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from envmedic import compat
from envmedic.errors import EnvmedicError
from envmedic.installers.index import configuration
from envmedic.installers.index.configuration import IndexConfiguration
from envmedic.installers.wheels.remote_metadata import NoRanges
from tests.tables import documents, making, record, wheel
from tests.tables.record import Counted, Record, Spent

TABLES = Path(compat.__file__).with_name("data")


def main(arguments: Sequence[str] | None = None) -> int:
    """Renew the record and write the tables; 0 when nothing is left to ask, 1 with a message otherwise."""
    options = _options().parse_args(arguments)
    found = record.load(options.record)
    try:
        if not options.offline:
            found = _asked(found, options)
        made = making.files(found, documents.load(options.documents))
    except (Spent, EnvmedicError, NoRanges) as error:
        told = (
            f"{options.requests} requests were made; run it again for the rest" if isinstance(error, Spent) else error
        )
        sys.stderr.write(f"make data: {told}\nThe record has what was read so far; the tables are unchanged\n")
        return 1
    for name, content in made.items():
        _write(options.tables / name, content)
    if options.wheel is not None:
        sys.stdout.write(f"{wheel.build(wheel.document(made, options.number), options.wheel)}\n")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.tables", description=__doc__)
    parser.add_argument("--offline", action="store_true", help="ask nothing: the tables from the record as it is")
    parser.add_argument("--index", metavar="URL", help="a mirror of the default index (as pip and uv are set)")
    parser.add_argument(
        "--listing", metavar="NAME=URL", help="record torch's files on another index, which the tables then call NAME"
    )
    parser.add_argument("--wheel", type=Path, metavar="DIR", help="also build the wheel envmedic-data there")
    parser.add_argument("--number", type=int, help="of that wheel, where it is not the first one of its day")
    parser.add_argument("--requests", type=int, default=record.REQUESTS, help="ask at most so often (%(default)s)")
    parser.add_argument("--record", type=Path, default=record.RECORD, help=argparse.SUPPRESS)
    parser.add_argument("--documents", type=Path, default=documents.DOCUMENTS, help=argparse.SUPPRESS)
    parser.add_argument("--tables", type=Path, default=TABLES, help=argparse.SUPPRESS)
    return parser


def _asked(found: Record, options: argparse.Namespace) -> Record:
    """Return the record with the answers; each is written at once, so that a run that ends early has not asked in vain."""
    settings = configuration.read(None)
    with closing(Counted(settings, options.requests)) as session:
        if options.listing:
            name, _, url = options.listing.partition("=")
            rows = record.listed(session, url, "torch", name)
            found = msgspec.structs.replace(
                found, releases=(*(row for row in found.releases if row.index != name), *rows)
            )
            _write(options.record, record.text(found))
        else:
            today = dt.datetime.now(dt.timezone.utc).date().isoformat()
            for renewed in record.renewed(found, session, options.index or _default(settings), today):
                found = renewed
                _write(options.record, record.text(found))
        sys.stdout.write(f"{session.limit - session.left} requests\n")
    return found


def _default(settings: IndexConfiguration) -> str:
    # where nobody has set an index, pip's own constant tells the default one; pip has no public name for it
    own = str(importlib.import_module("pip._internal.models.index").PyPI.simple_url)
    return settings.uv.default_index or settings.pip.index_url or own


def _write(path: Path, content: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(content, encoding="utf-8")
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
