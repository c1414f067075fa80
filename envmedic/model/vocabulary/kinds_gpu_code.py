"""Facts on GPU code in torch and its extensions, and on torch's run-time compiler, against the visible GPUs."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="torch.gpu-code-missing",
        type="strings",
        doc="compute capabilities of visible GPUs that neither torch's machine code nor its PTX serves",
        detail="torch.gpu-code",
    ),
    FactKind(name="torch.gpu-code", type="string", doc="the capabilities that torch holds code for, PTX named"),
    FactKind(
        name="torch.nvrtc",
        type="version",
        doc="CUDA release of the run-time compiler (NVRTC) that torch loads, None where it lies nowhere",
    ),
    FactKind(
        name="torch.nvrtc-unknown",
        type="strings",
        doc="compute capabilities of visible GPUs that torch's run-time compiler does not know",
        detail="torch.nvrtc",
    ),
    FactKind(
        name="torch.nvrtc-builtins",
        type="bool",
        doc="whether the compiler's other half lies there under the name that it opens",
        detail="torch.nvrtc",
    ),
    FactKind(
        name="extensions.without-gpu-code",
        type="strings",
        doc="distributions with GPU code that some visible GPU cannot run",
        detail="extensions.gpu-code",
    ),
    FactKind(
        name="extensions.gpu-code",
        type="strings",
        doc="of each of them, a module, the code that it holds and the capabilities that lack it",
    ),
    FactKind(
        name="extensions.gpu-code-rebuildable",
        type="strings",
        doc="distributions without code for a GPU here that can be built again from a source",
    ),
)
