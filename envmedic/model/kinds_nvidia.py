"""Facts about NVIDIA's libraries in an environment, and about what CUDA needs of the host."""

from __future__ import annotations

from envmedic.model.fact_kind import FactKind

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
        name="nvidia.missing",
        type="strings",
        doc="requirements of torch on NVIDIA's wheels of which no version is installed",
    ),
    FactKind(
        name="nvidia.wrong",
        type="strings",
        doc="NVIDIA's wheels, cuDNN apart, in a version that torch does not accept",
    ),
    FactKind(name="cudnn.wrong", type="strings", doc="the wheel of cuDNN, if its version is not the one torch requires"),
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
        name="nvidia.shadowed-by-activation",
        type="bool",
        doc="whether an activation script of the environment is what shadows them",
        detail="nvidia.shadowed",
    ),
    FactKind(
        name="nvidia.purge",
        type="strings",
        doc="NVIDIA's wheels to be removed so that torch finds exactly the libraries that it requires",
    ),
    FactKind(
        name="nvidia.repair",
        type="strings",
        doc="requirements to be installed so that torch finds exactly the libraries that it requires",
    ),
    FactKind(name="host.nvidia-gpus", type="int", doc="number of NVIDIA GPUs on the PCI bus, driver or not"),
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
        doc="state of the fabric that joins the GPUs: none, running, completed, or what is wrong with it",
    ),
    FactKind(name="host.gpus-hidden", type="bool", doc="whether CUDA_VISIBLE_DEVICES hides every GPU"),
    FactKind(
        name="host.gpu-nodes",
        type="strings",
        doc="device files of the driver in /dev that are not there although its kernel module is loaded",
    ),
)
