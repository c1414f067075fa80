"""Modes of a transaction: how the clone is made, where steps run in it, how it takes the environment's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from envmedic.model.registries.registry import complete

CloneMode = Literal["reflink", "link", "copy"]
StagingMode = Literal["namespace", "relocate"]
ExchangeMethod = Literal["exchange", "two-renames", "link"]
Layout = Literal["symlink"]
AllowName = Literal["base", "frozen", "external", "in-use", "ownership", "capabilities", "pinned"]
"""Protections that a user can lift."""

_HERE: Final = "in envmedic/model/registries/modes.py"
# in the order of trial: the first mode that works is taken
CLONE_MODES: Mapping[CloneMode, str] = complete(
    get_args(CloneMode),
    {
        "reflink": "shared blocks: it takes next to no space",
        "link": "hard links, with real copies of what is changed in place",
        "copy": "a full copy",
    },
    stated=f"`CloneMode` {_HERE}",
    add=f"what it is to `CLONE_MODES` {_HERE}, and to `probe_modes` a way to try it",
)
"""Description of each mode; the first that works is taken."""
STAGING_MODES: Mapping[StagingMode, str] = complete(
    get_args(StagingMode),
    {
        "namespace": "steps and checks see the copy at the environment's own path",
        "relocate": "steps and checks run beside it, and paths are rewritten",
    },
    stated=f"`StagingMode` {_HERE}",
    add=f"what it is to `STAGING_MODES` {_HERE}",
)
"""Description of each mode."""
LAYOUTS: Mapping[Layout, str] = complete(
    get_args(Layout),
    {"symlink": "a symbolic link to one of its trees, which later exchanges replace in one step"},
    stated=f"`Layout` {_HERE}",
    add=f"what it is to `LAYOUTS` {_HERE}, and to `_choose_exchange` how it is made",
)
"""Description of what an environment is turned into, where that is asked for."""
# `renameat2` with RENAME_EXCHANGE where the file system has it; some network file systems do not.
EXCHANGE_METHODS: Mapping[ExchangeMethod, str] = complete(
    get_args(ExchangeMethod),
    {
        "exchange": "in one step",
        "two-renames": "by two renames: for a moment the path does not exist",
        "link": "by a symbolic link that leads to the one tree, then to the other",
    },
    stated=f"`ExchangeMethod` {_HERE}",
    add=f"what it is to `EXCHANGE_METHODS` {_HERE}",
)
"""Description of each method."""
# The sentences name the risk, not the check: the user reads them before lifting the protection.
PROTECTIONS: Mapping[AllowName, str] = complete(
    get_args(AllowName),
    {
        "base": "It holds the tools that make and manage other environments: if they break, all of these suffer.",
        "frozen": "Somebody froze it on purpose; other users and programs may rely on it as it is.",
        "external": "The tool that manages it does not know of the repair, and may undo it or mix it with its own.",
        "in-use": "Programs that run from it may mix old and new files until they are started again.",
        "ownership": "Files of others become yours in the repaired environment, without their set-user-ID bits.",
        "capabilities": "Programs lose their capabilities (setcap) in the repair.",
        "pinned": "The tool that reads the pin will ask for the pinned version again, until you change the pin.",
    },
    stated=f"`AllowName` {_HERE}",
    add=f"what is risked without it to `PROTECTIONS` {_HERE}",
)
"""What is risked where a protection is lifted."""
