"""Signatures over the lines of a log, as one linear pass in bounded memory.

Blocks of about a megabyte are first searched as a whole for the literals that matches must contain, past
everything that logs put around and into messages. Only where one is found the lines are cleaned and the patterns
run; on lines that say what others said before, apart from numbers and addresses, only as far as these decide.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

from envmedic.model.playbook import LoadedPlaybook, TextMatch
from envmedic.playbook.matching.blocks import Begin, Block, Numbering, blocks, joined
from envmedic.playbook.matching.gate import Gate
from envmedic.playbook.matching.log_stream import LogStream, keep_freed_memory
from envmedic.playbook.matching.repeats import Found, Repeats
from envmedic.playbook.matching.signatures import Signatures
from envmedic.playbook.matching.tally import Tally

_MOST_THREADS = 4
"""More would wait for the reading of the log."""
_SMALL_BYTES = 8192
"""Of logs whose every line is looked at: compiling what finds the suspicious ones takes 20 ms."""
_MANY_LINES = 512
"""Suspicious lines of a block, of which it is then cut up as a whole."""
_SOME_LINES = 32
"""The same after another such block."""


def scan(lines: Iterable[bytes], playbooks: Sequence[LoadedPlaybook]) -> tuple[TextMatch, ...]:
    """Every signature of `playbooks` that matches in `lines`, by line number.

    `lines` is a `Log`, or any iterable of lines with or without their ends. A signature that matches
    again with the same groups is counted, not repeated.
    """
    signatures = Signatures(playbooks)
    if not signatures.entries:
        return ()
    tally = Tally()
    log = lines if isinstance(lines, LogStream) else None
    stream = blocks(joined(lines), Numbering()) if log is None else blocks(log.chunks(), log.numbering())
    for block, found in _searched(stream, signatures):
        for item in found:
            # what is told of is told in its own words, not in those of lines alike
            own = any(map(tally.is_new, item.hits))
            for hit in signatures.hits(block.window(item.begin)) if own else item.hits:
                tally.add(hit, block.place(item.begin), partial(_number, block, item), item.times)
    return tally.matches()


def _number(block: Block, found: Found) -> int:
    return block.number() + found.number


def _searched(stream: Iterator[Block], signatures: Signatures) -> Iterator[tuple[Block, Iterable[Found]]]:
    """Blocks with what is found in them."""
    first = list(islice(stream, 2))
    stream = chain(first, stream)
    small = len(first) == 1 and len(first[0].content) <= _SMALL_BYTES
    gate = None if small else signatures.filter.gate
    repeats = Repeats(signatures)
    if gate is None:
        yield from ((block, repeats.among(block, block.every_line())) for block in stream)
        return
    told = _told(stream, gate) if len(first) > 1 else ((block, _few(gate, block, _MANY_LINES)) for block in first)
    for block, begun in told:
        if begun is None:
            yield block, repeats.throughout(block, gate)
        elif begun:
            yield block, repeats.among(block, block.starting(begun))


def _few(gate: Gate, block: Block, most: int) -> tuple[Begin, ...] | None:
    return gate.few(block.content, most)


def _told(stream: Iterator[Block], gate: Gate) -> Iterator[tuple[Block, tuple[Begin, ...] | None]]:
    """Blocks with what `gate` tells of them. Several are searched while the next one is read."""
    from concurrent.futures import Future, ThreadPoolExecutor  # noqa: PLC0415

    keep_freed_memory()
    count = min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    most = _MANY_LINES
    waiting: deque[tuple[Block, Future[tuple[Begin, ...] | None]]] = deque()
    with ThreadPoolExecutor(count, "envmedic-search") as pool:
        for block in stream:
            waiting.append((block, pool.submit(_few, gate, block, most)))
            if len(waiting) > count:
                before, answer = waiting.popleft()
                begun = answer.result()
                most = _SOME_LINES if begun is None else _MANY_LINES
                yield before, begun
        for before, answer in waiting:
            yield before, answer.result()
