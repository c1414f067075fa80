"""The genuine errors of the replays, as a GPU's machine printed them: what their text alone tells.

Written by ``python -m tests.gpu.replays --no-repair --samples tests/gpu/samples``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envmedic.api import diagnosis
from envmedic.api.context.settings import Settings
from envmedic.model.events import EventStream
from tests.gpu.replays.faults import REPLAYS
from tests.gpu.replays.replay import Replay

SAMPLES = Path(__file__).with_name("samples")
LESS = {
    "cudnn-cut-off": "",  # a signal, and nothing printed
    "decord-beside-av": "import-order-crash",  # which import it is only the search tells
    "decord-from-source": "import-order-crash",
    "nvrtc-preloaded": "nvrtc-arch",  # the variable that shadows the library is not in the text
    "one-architecture": "no-kernel-image",  # nor whose code it is
    "other-headers": "extension-undefined-symbol",  # nor what the module was built against
}
"""First playbooks of texts that tell less than text and environment together."""


@pytest.mark.parametrize("replay", REPLAYS, ids=lambda replay: replay.name)
def test_the_genuine_error_of_a_replay_is_found_by_its_text(replay: Replay) -> None:
    path = SAMPLES / f"{replay.name}.txt"
    (found,) = diagnosis.diagnose(Settings(stream=EventStream([])), None, [str(path)])
    first = (found.findings[0].playbook or "") if found.findings else ""  # a guess has none
    assert first in ((LESS[replay.name],) if replay.name in LESS else replay.playbooks)


def test_no_sample_is_of_a_replay_that_is_gone() -> None:
    assert {path.stem for path in SAMPLES.iterdir()} == {replay.name for replay in REPLAYS}
