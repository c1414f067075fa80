"""Import packages with another name than the distribution that installs them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

IMPORTED_AS: Mapping[str, str] = MappingProxyType({
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "IPython": "ipython",
    "Levenshtein": "levenshtein",
    "OpenGL": "pyopengl",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "absl": "absl-py",
    "attr": "attrs",
    "bidi": "python-bidi",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "doctr": "python-doctr",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "ffmpeg": "ffmpeg-python",
    "fitz": "pymupdf",
    "git": "gitpython",
    "grpc": "grpcio",
    "hydra": "hydra-core",
    "imblearn": "imbalanced-learn",
    "imwatermark": "invisible-watermark",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "multipart": "python-multipart",
    "open_clip": "open-clip-torch",
    "openslide": "openslide-python",
    "paddle": "paddlepaddle",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pynvml": "nvidia-ml-py",
    "pywt": "pywavelets",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "skvideo": "sk-video",
    "slugify": "python-slugify",
    "umap": "umap-learn",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
})  # fmt: skip
"""Import package → distribution, by the metadata of the distributions on the package index."""
NAMED_ALIKE = frozenset({
    "SimpleITK", "accelerate", "addict", "aiofiles", "aiohttp", "albucore", "albumentations", "ale_py", "alembic",
    "altair", "anndata", "anthropic", "anyio", "apscheduler", "arrow", "astropy", "attrs", "audiomentations",
    "audioread", "auto_gptq", "av", "babel", "backoff", "bert_score", "bitsandbytes", "blosc", "bokeh", "boto3",
    "botocore", "bottleneck", "cachebox", "cachetools", "catboost", "category_encoders", "cattrs", "certifi",
    "cffi", "chardet", "chex", "chromadb", "click", "clip_interrogator", "cloudpickle", "cn2an", "colorama",
    "contourpy", "ctranslate2", "cycler", "cython", "dacite", "dashscope", "dask", "datasets", "dateparser",
    "decorator", "decord", "deepspeed", "diffusers", "dill", "diskcache", "django", "dm_control", "docx2txt",
    "dominate", "dynaconf", "easydict", "easyocr", "einops", "einx", "ema_pytorch", "environs", "equinox",
    "evaluate", "faker", "fastapi", "faster_whisper", "fastparquet", "fasttext", "filelock", "fiona", "fire",
    "flask", "flax", "fsspec", "ftfy", "funasr", "fuzzywuzzy", "g2p_en", "gcsfs", "gensim", "geopandas", "gradio",
    "greenlet", "gunicorn", "gymnasium", "h11", "h5netcdf", "h5py", "hdbscan", "httpcore", "httptools", "httpx",
    "huggingface_hub", "humanize", "igraph", "imageio", "imageio_ffmpeg", "importlib_metadata",
    "importlib_resources", "inflect", "insightface", "iopath", "ipykernel", "ipython_genutils", "ipywidgets", "jax",
    "jaxlib", "jedi", "jinja2", "jiwer", "joblib", "jsonlines", "jsonschema", "keras", "kiwisolver", "kornia",
    "kubernetes", "langchain", "langchain_community", "langchain_core", "langchain_openai", "langgraph",
    "lazy_loader", "librosa", "lightgbm", "lightning", "llama_index", "llvmlite", "lmdb", "loguru", "lpips", "lxml",
    "lz4", "markdown", "markupsafe", "marshmallow", "matplotlib", "mcp", "mediapipe", "ml_collections", "mlflow",
    "mmengine", "mmh3", "mock", "modelscope", "monai", "moviepy", "mpmath", "msgpack", "mujoco", "multiprocess",
    "narwhals", "natsort", "nbformat", "netCDF4", "networkx", "nibabel", "ninja", "nltk", "noisereduce",
    "num2words", "numba", "numcodecs", "numexpr", "numpy", "nvitop", "ogb", "omegaconf", "onnx", "onnxruntime",
    "onnxslim", "openai", "opencc", "openpyxl", "openvino", "optax", "optimum", "optuna", "orjson", "packaging",
    "paddleocr", "pandas", "paramiko", "parso", "pathos", "patsy", "pdfplumber", "peft", "pendulum", "pettingzoo",
    "phonemizer", "pingouin", "plotly", "plyfile", "polars", "pooch", "portalocker", "prettytable", "psutil",
    "psycopg2", "ptflops", "pudb", "py3nvml", "pyarrow", "pyaudio", "pybullet", "pyclipper", "pycocotools",
    "pydantic", "pydantic_core", "pydantic_settings", "pydicom", "pydub", "pygltflib", "pygments", "pymongo",
    "pymupdf", "pynndescent", "pyparsing", "pypdf", "pypdfium2", "pypinyin", "pyproj", "pyquaternion",
    "pyrealsense2", "pyrender", "pyrr", "pystoi", "pytesseract", "pytest", "pytest_cov", "pytest_mock",
    "pytorch_fid", "pytorch_lightning", "pytz", "pyworld", "ragas", "rapidfuzz", "rasterio", "ray", "rdkit",
    "redis", "regex", "reportlab", "requests", "resampy", "retrying", "rich", "roma", "rouge", "rouge_score",
    "s3fs", "sacrebleu", "sacremoses", "safetensors", "scanpy", "scipy", "seaborn", "sentence_transformers",
    "sentencepiece", "shap", "shapely", "silero_vad", "simplejson", "six", "sounddevice", "soundfile", "spaces",
    "spacy", "speechbrain", "sqlalchemy", "stable_baselines3", "starlette", "statsmodels", "streamlit", "structlog",
    "supervision", "svglib", "sympy", "tabulate", "tblib", "tenacity", "tensorboard", "tensorboardX",
    "tensorflow_datasets", "tensorflow_hub", "tensorflow_probability", "tensorrt", "termcolor", "terminaltables",
    "thop", "tifffile", "tiktoken", "timm", "tokenizers", "toml", "tomli", "tomlkit", "torch_geometric",
    "torch_tb_profiler", "torchcrepe", "torchdata", "torchdiffeq", "torchinfo", "torchmetrics", "torchsde",
    "torchsummary", "tornado", "tqdm", "transformers", "transforms3d", "trimesh", "trio", "tritonclient", "typer",
    "typing_extensions", "tzlocal", "ujson", "ultralytics", "unidecode", "urllib3", "uvicorn", "uvloop", "vocos",
    "wandb", "watchdog", "webdataset", "websockets", "wrapt", "x_transformers", "xarray", "xformers", "xgboost",
    "xlrd", "xxhash", "yacs", "yapf", "zarr", "zhconv", "zhon", "zstandard",
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
