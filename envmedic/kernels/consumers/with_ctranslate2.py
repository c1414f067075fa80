"""CTranslate2: a small decoder, made here of random weights, gives on a GPU what it gives on the CPU."""

from __future__ import annotations

import math
import os
import random
import tempfile

from envmedic_kernels.consumers import common
from envmedic_kernels.harness.outcome import Disagreement, Result, same, within
from envmedic_kernels.references import reference

TOLERANCE = common.TF32
_NO_SCORES = 1e-3
WIDTH, HEADS, WORDS = 64, 4, 16


def compute(context):
    """Scores of a decoder: finite, the same each time, sums of probabilities of one, and on a GPU those of the CPU."""
    common.needs("ctranslate2")
    common.alone(context)
    import ctranslate2

    if context.on_gpu:
        same("GPUs that CTranslate2 sees", ctranslate2.get_cuda_device_count(), 1)
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="envmedic-model-") as folder:
        for seed in context.seeds():
            place = os.path.join(folder, str(seed))
            os.mkdir(place)
            _model(ctranslate2, seed, place)
            on_cpu = _scores(ctranslate2, place, "cpu")
            for row in on_cpu:
                largest = max(row)
                total = sum(math.exp(item - largest) for item in row)
                same("scores of the decoder are finite", all(math.isfinite(item) for item in row) and total > 0, True)
            if not context.on_gpu:
                again = _scores(ctranslate2, place, "cpu")
                worst = max(worst, _difference("the same decoder twice", again, on_cpu))
                continue
            worst = max(worst, _difference("a decoder on the GPU", _scores(ctranslate2, place, "cuda"), on_cpu))
    return Result("ctranslate2 %s, seed %d" % (ctranslate2.__version__, context.seed), worst, TOLERANCE)


def _difference(what, got, wanted):
    scale = max(abs(item) for row in wanted for item in row)
    if scale < _NO_SCORES:
        raise Disagreement("%s: all scores are zero" % what)
    return within(what, reference.largest_error(got, wanted, scale), TOLERANCE)


def _scores(ctranslate2, place, device):
    import numpy as np

    generator = ctranslate2.Generator(place, device=device, compute_type="float32", intra_threads=2)
    words = [["w%d" % number for number in (1, 2, 3, 5, 8)]]
    found = generator.forward_batch(words)
    if device == "cuda":
        found = found.to_device(ctranslate2.Device.cpu)
    return np.array(found)[0].tolist()


def _model(ctranslate2, seed, place):
    """Write a decoder of one layer with random weights, and its vocabulary."""
    import numpy as np

    numbers = np.random.RandomState(random.Random(seed).randrange(2**31))

    def weights(*shape):
        return (numbers.standard_normal(shape) / math.sqrt(shape[-1])).astype("float32")

    def filled(linear, rows, columns):
        linear.weight, linear.bias = weights(rows, columns), weights(rows)

    def normal(norm):
        norm.gamma, norm.beta = np.ones(WIDTH, "float32"), np.zeros(WIDTH, "float32")

    spec = ctranslate2.specs.TransformerDecoderModelSpec.from_config(
        num_layers=1, num_heads=HEADS, pre_norm=True, no_final_norm=False
    )
    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = weights(WORDS, WIDTH)
    decoder.position_encodings.encodings = weights(32, WIDTH)
    filled(decoder.projection, WORDS, WIDTH)
    normal(decoder.layer_norm)
    layer = decoder.layer[0]
    normal(layer.self_attention.layer_norm)
    filled(layer.self_attention.linear[0], 3 * WIDTH, WIDTH)
    filled(layer.self_attention.linear[1], WIDTH, WIDTH)
    normal(layer.ffn.layer_norm)
    filled(layer.ffn.linear_0, 2 * WIDTH, WIDTH)
    filled(layer.ffn.linear_1, WIDTH, 2 * WIDTH)
    spec.register_vocabulary(["w%d" % number for number in range(WORDS)])
    for special in ("bos_token", "eos_token", "unk_token"):
        setattr(spec.config, special, "w0")
    spec.validate()
    spec.optimize()
    spec.save(place)
