"""Facts about NVIDIA's libraries in an environment, and about what CUDA needs of the host."""

from __future__ import annotations

from envmedic.model.vocabulary.fact_kind import FactKind

KINDS: tuple[FactKind, ...] = (
    FactKind(
        name="torch.unmet",
        type="strings",
        doc="exact requirements of torch that what is installed does not meet, such as nvidia-nccl-cu12==2.21.5",
    ),
    FactKind(
        name="torch.missing-libraries",
        type="strings",
        doc="sonames of CUDA libraries that torch's own libraries need and do not find",
    ),
    FactKind(
        name="torch.unresolved-symbols",
        type="int",
        doc="number of symbols that the CUDA libraries which torch loads need of each other and do not find",
        detail="torch.first-unresolved",
    ),
    FactKind(name="torch.first-unresolved", type="string", doc="the first such symbol, with the library that needs it"),
    FactKind(
        name="torch.cuda-wanted",
        type="strings",
        doc="what in the environment is of use only beside a CUDA build of torch, None where nothing says so",
    ),
    FactKind(name="torch.driver-needed", type="version", doc="oldest driver on which torch's CUDA starts"),
    FactKind(
        name="driver.sufficient-for-torch",
        type="bool",
        doc="whether the driver is new enough for the installed torch",
        detail="torch.driver-needed",
    ),
    FactKind(
        name="nvidia.lacking",
        type="strings",
        doc="what torch lacks of NVIDIA's libraries",
    ),
    FactKind(
        name="nvidia.conflict",
        type="strings",
        doc="which of NVIDIA's libraries, cuDNN apart, do not fit torch or each other",
    ),
    FactKind(
        name="cudnn.conflict",
        type="strings",
        doc="why the cuDNN that torch finds is not the one it requires",
    ),
    FactKind(
        name="nvidia.missing",
        type="strings",
        doc="requirements of torch on NVIDIA's wheels of which no version is installed",
    ),
    FactKind(
        name="nvidia.wrong",
        type="strings",
        doc="NVIDIA's wheels, cuDNN apart, in a version that torch does not accept",
    ),
    FactKind(
        name="cudnn.wrong", type="strings", doc="the wheel of cuDNN, if its version is not the one torch requires"
    ),
    FactKind(
        name="cudnn.clobbered",
        type="strings",
        doc="libraries of cuDNN that torch needs and that another wheel has overwritten",
    ),
    FactKind(
        name="nvidia.damaged",
        type="strings",
        doc="libraries of NVIDIA's wheels that are gone or cut short on disk",
    ),
    FactKind(
        name="nvidia.clobbered",
        type="strings",
        doc="libraries, those of cuDNN apart, that torch needs and that another wheel has overwritten",
    ),
    FactKind(
        name="nvidia.majors",
        type="strings",
        doc="NVIDIA's wheels for another major version of CUDA than torch's",
    ),
    FactKind(
        name="nvidia.shadowed",
        type="strings",
        doc="CUDA libraries that torch would take from elsewhere, through LD_LIBRARY_PATH or LD_PRELOAD",
    ),
    FactKind(
        name="nvidia.shadowed-sonames",
        type="string",
        doc="their sonames, separated by spaces, None without any",
        detail="nvidia.shadowed",
    ),
    FactKind(
        name="nvidia.nvrtc-preloaded",
        type="strings",
        doc="libraries of LD_PRELOAD that torch gets in the place of its own run-time compiler (NVRTC)",
    ),
    FactKind(
        name="cudnn.shadowed",
        type="strings",
        doc="parts of cuDNN of another release that LD_LIBRARY_PATH puts before the environment's",
    ),
    FactKind(
        name="nvidia.lacking-elsewhere",
        type="strings",
        doc="CUDA libraries that compiled modules other than torch's need and do not find, with who needs them",
    ),
    FactKind(
        name="nvidia.unseen",
        type="strings",
        doc="programs that look for CUDA's libraries only in LD_LIBRARY_PATH, which lacks the environment's",
    ),
    FactKind(
        name="host.driver-mismatch",
        type="bool",
        doc="whether the driver's libraries are of another version than its kernel module",
        detail="host.driver-libraries",
    ),
    FactKind(name="host.driver-libraries", type="string", doc="versions of the driver's kernel module and libraries"),
    FactKind(name="host.gpus-lost", type="strings", doc="GPUs that the driver knows of and cannot reach"),
    FactKind(
        name="host.fabric",
        type="string",
        doc="state of the fabric that joins the GPUs: none, not started, in progress or completed",
    ),
    FactKind(name="host.gpus-hidden", type="bool", doc="whether CUDA_VISIBLE_DEVICES hides every GPU"),
    FactKind(
        name="host.gpu-unreachable",
        type="bool",
        doc="true where the host has an NVIDIA GPU that no program reaches, and else not observed",
        detail="host.gpu-state",
    ),
    FactKind(
        name="host.container-without-gpu",
        type="bool",
        doc="true in a container without the GPUs of its host, and else not observed",
        detail="host.gpu-state",
    ),
    FactKind(name="host.gpu-state", type="string", doc="what there is of the GPUs that cannot be reached"),
)
