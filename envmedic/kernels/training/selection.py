"""Embeddings, sorting, the largest, scattering, adding by index, cumulative sums and masks.

What is used of torch under test: ``torch.nn.functional.embedding``, ``torch.sort``, ``topk``, ``cumsum``, ``gather``,
``scatter``, ``argmax``, ``nonzero``, ``unique``, ``where``, ``histc``; of a tensor ``scatter_add_``, ``index_add_``, ``index_select``. What is wanted
is made by Python's own ``sorted`` and loops, or by adding one row after the other in fp64.
"""

from __future__ import annotations

from envmedic_kernels.training.agreement import Part, check_of, sent_back

WORDS, WIDTH, TAKEN = 300, 40, 900
LONG = 20011
UNITS = {"fp64": 256.0, "fp32": 64.0, "fp16": 24.0, "bf16": 24.0}


def _embedding(inputs):
    units = UNITS[inputs.kind]
    table, te = inputs.pair(WORDS, WIDTH)
    words = inputs.whole(WORDS, TAKEN)
    result = inputs.torch.nn.functional.embedding(words.to(table.device), table)
    wanted = inputs.torch.stack([te[word] for word in words.tolist()])
    sent_back(result, wanted, inputs.exact(TAKEN, WIDTH))
    yield Part("embedding", result, wanted, 0)
    yield Part("embedding, gradient", table.grad, te.grad, units)


def _order(inputs):
    """Sorted numbers and their places. Equal numbers may come in any order, so the places are followed."""
    torch = inputs.torch
    for shape in ((5, 700), (1, LONG)):
        exact = inputs.exact(*shape)
        x = inputs.placed(exact)
        wanted = torch.tensor([sorted(row) for row in exact.tolist()], dtype=torch.float64)
        for down in (False, True):
            values, places = torch.sort(x, dim=1, descending=down)
            ordered = wanted.flip(1) if down else wanted
            name = "sort of %d%s" % (shape[1], ", descending" if down else "")
            yield Part(name, values, ordered, 0)
            yield Part(name + ", by the places", torch.gather(x, 1, places), ordered, 0)
            every = torch.tensor([list(range(shape[1]))] * shape[0], dtype=torch.int64)
            yield Part(name + ", places", torch.sort(places, dim=1)[0], every, 0)
        count = 9
        values, places = torch.topk(x, count, dim=1)
        largest = wanted.flip(1)[:, :count]
        yield Part("topk of %d" % shape[1], values, largest, 0)
        yield Part("topk of %d, by the places" % shape[1], torch.gather(x, 1, places), largest, 0)
        best = torch.argmax(x, dim=1, keepdim=True)
        yield Part("argmax of %d" % shape[1], torch.gather(x, 1, best), largest[:, :1], 0)


def _scattered(inputs):
    torch, units = inputs.torch, UNITS[inputs.kind]
    rows, exact = inputs.whole(WORDS, TAKEN), inputs.exact(TAKEN, WIDTH)
    start = inputs.exact(WORDS, WIDTH)
    wanted, scale = start.clone(), start.abs()
    for row, numbers in zip(rows.tolist(), exact):
        wanted[row] += numbers
        scale[row] += numbers.abs()
    there, index = inputs.placed(exact), rows.to(inputs.context.device)
    got = inputs.placed(start).index_add_(0, index, there)
    yield Part("index_add", got, wanted, units, scale)
    got = inputs.placed(start).scatter_add_(0, index.reshape(-1, 1).expand(TAKEN, WIDTH), there)
    yield Part("scatter_add", got, wanted, units, scale)
    got = inputs.placed(start).index_put_((index,), there, accumulate=True)
    yield Part("index_put", got, wanted, units, scale)
    # distinct places: among equal ones torch leaves open which is written
    order = sorted(range(WORDS), key=inputs.whole(1 << 40, WORDS).tolist().__getitem__)
    places = torch.tensor(order, dtype=torch.int64)
    wanted = start.clone()
    for place, numbers in zip(order, exact):
        wanted[place] = numbers
    index = places.reshape(-1, 1).expand(WORDS, WIDTH).to(inputs.context.device)
    yield Part("scatter", torch.scatter(inputs.placed(start), 0, index, there[:WORDS]), wanted, 0)
    got = inputs.placed(start).index_select(0, places.to(inputs.context.device))
    yield Part("index_select", got, torch.stack([start[place] for place in order]), 0)


def _masked(inputs):
    torch = inputs.torch
    exact, other = inputs.exact(61, 83), inputs.exact(61, 83)
    x = inputs.placed(exact)
    lists = [[a if a > 0 else b for a, b in zip(*rows)] for rows in zip(exact.tolist(), other.tolist())]
    got = torch.where(x > 0, x, inputs.placed(other))
    yield Part("where", got, torch.tensor(lists, dtype=torch.float64), 0)
    places = [[i, j] for i, row in enumerate(exact.tolist()) for j, value in enumerate(row) if value > 0]
    yield Part("nonzero", torch.nonzero(x > 0), torch.tensor(places, dtype=torch.int64), 0)
    numbers = inputs.whole(50, 4000)
    distinct = torch.tensor(sorted(set(numbers.tolist())), dtype=torch.int64)
    yield Part("unique", torch.unique(numbers.to(inputs.context.device)), distinct, 0)


def _cumulative(inputs):
    """Sums up to each element, relative to the sum of the magnitudes so far."""
    torch, units = inputs.torch, UNITS[inputs.kind]
    # all of one sign and small, so that 16 bits hold the sums
    exact = inputs.exact(3, 5000, size=0.5).abs()
    running, lists = [0.0] * 3, []
    for row, numbers in enumerate(exact.tolist()):
        sums = []
        for number in numbers:
            running[row] += number
            sums.append(running[row])
        lists.append(sums)
    wanted = torch.tensor(lists, dtype=torch.float64)
    kind = inputs.kind
    more = {} if kind in ("fp64", "fp32") else {"dtype": torch.float32}
    got = torch.cumsum(inputs.placed(exact), 1, **more)
    yield Part("cumsum", got, wanted, units, wanted + 1e-30, kind="fp32" if more else None)
    got = inputs.placed(exact).sum(1)
    yield Part("sum", got, wanted[:, -1], units)


def parts(inputs):
    """Every result of the check."""
    for results in (_embedding, _order, _scattered, _masked, _cumulative):
        yield from results(inputs)


check = check_of(parts)
