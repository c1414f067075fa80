"""Import packages with another name than the distribution that installs them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

IMPORTED_AS: Mapping[str, str] = MappingProxyType({
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "OpenSSL": "pyopenssl",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
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
NAMED_ALIKE = frozenset({
    "accelerate", "aiohttp", "audioread", "certifi", "chardet", "click", "cloudpickle", "colorama", "datasets", "decorator",
    "diffusers", "einops", "evaluate", "filelock", "fsspec", "ftfy", "h5py", "httpx", "imageio", "importlib_metadata",
    "importlib_resources", "ipython_genutils", "jinja2", "joblib", "lazy_loader", "lxml", "markupsafe", "matplotlib",
    "mock", "mpmath", "msgpack", "narwhals", "networkx", "ninja", "nltk", "omegaconf", "packaging", "pandas", "peft",
    "psutil", "pygments", "pytz", "regex", "requests", "resampy", "rich", "safetensors", "scipy", "sentencepiece", "six",
    "soundfile", "sympy", "tabulate", "tenacity", "termcolor", "timm", "toml", "tomli", "tqdm", "typing_extensions",
    "wrapt",
})  # fmt: skip
"""Import packages that the distribution of the same name installs, by the files of the one on the package index.

Of others a distribution of that name may be anybody's.
"""
_BY_DISTRIBUTION = {name: module for module, name in IMPORTED_AS.items()}


def module_of(distribution: str) -> str:
    """Return the import package of a distribution that is not installed, guessed from its normalised name."""
    return _BY_DISTRIBUTION.get(distribution) or distribution.replace("-", "_").replace(".", "_")


_DEAD = (
    "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "mailcap", "msilib", "nis", "nntplib", "pipes",
    "sndhdr", "sunau", "telnetlib", "uu", "xdrlib",
)  # fmt: skip
"""Removed in Python 3.13. Source: PEP 594."""
FORMER_STANDARD: Mapping[str, tuple[int, int]] = MappingProxyType(
    dict.fromkeys(_DEAD, (3, 13)) | dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), (3, 12))
)
"""Modules that were of the standard library, with the first Python without them. Source: What's New In Python 3.12, 3.13."""
BACKPORTS: Mapping[str, str] = MappingProxyType({
    # each is named by its documentation as the continuation of that module
    "asynchat": "pyasynchat",
    "asyncore": "pyasyncore",
    "audioop": "audioop-lts",
    "cgi": "legacy-cgi",
    "cgitb": "legacy-cgi",
    "distutils": "setuptools",
    "imghdr": "standard-imghdr",
    "aifc": "standard-aifc",
    "chunk": "standard-chunk",
    "pipes": "standard-pipes",
    "sndhdr": "standard-sndhdr",
    "sunau": "standard-sunau",
    "telnetlib": "standard-telnetlib",
    "uu": "standard-uu",
    "xdrlib": "standard-xdrlib",
})  # fmt: skip
"""Distributions that bring such a module to newer Pythons. Sources: their pages on PyPI; setuptools' documentation on distutils."""
