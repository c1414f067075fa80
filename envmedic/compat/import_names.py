"""Import packages with another name than the distribution that installs them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

IMPORTED_AS: Mapping[str, str] = MappingProxyType({
    "PIL": "pillow",
    "OpenSSL": "pyopenssl",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "grpc": "grpcio",
    "hydra": "hydra-core",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "multipart": "python-multipart",
    "pkg_resources": "setuptools",
    "pynvml": "nvidia-ml-py",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "usb": "pyusb",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
})  # fmt: skip
"""Import package → distribution, by the metadata of the distributions on the package index."""
_BY_DISTRIBUTION = {name: module for module, name in IMPORTED_AS.items()}


def module_of(distribution: str) -> str:
    """Return the import package of a distribution that is not installed, guessed from its normalised name."""
    return _BY_DISTRIBUTION.get(distribution) or distribution.replace("-", "_").replace(".", "_")
