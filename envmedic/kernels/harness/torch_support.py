"""Applicability of checks by the version of torch and the GPU.

The version decides, not the presence of a function: a torch that lacks a function of its version is broken.
"""

from __future__ import annotations

import re

from envmedic_kernels.harness.outcome import NotApplicable


def release(torch):
    """The version of torch as (major, minor)."""
    # by hand: `packaging` may be missing here, and builds have versions such as 2.1.0a0+32f93b1
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def needs(torch, first, what):
    """Raise `NotApplicable` unless torch is of the release `first` or newer."""
    if release(torch) < first:
        raise NotApplicable("torch %s has no %s: it came with %d.%d" % (torch.__version__, what, first[0], first[1]))


def capable(torch, context, first, what):
    """Raise `NotApplicable` unless the device is a GPU of compute capability `first` or newer."""
    if not context.on_gpu:
        raise NotApplicable("%s is for GPUs" % what)
    capability = tuple(torch.cuda.get_device_capability(context.device))
    if capability < first:
        raise NotApplicable("%s needs compute capability %d.%d, this GPU has %d.%d" % (what, *first, *capability))
