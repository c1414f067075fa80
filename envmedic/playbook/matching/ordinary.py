"""Typical lines of ordinary logs: atoms that occur in them are too frequent for the prefilter."""

from __future__ import annotations

from typing import Final

from envmedic.playbook.matching.lines import squeezed_literal

_LINES = r"""
Traceback (most recent call last): File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1,
in _call_impl return self._call_impl(*args, **kwargs) in <module> in __init__ in forward in wrapper in main import
site-packages/torch/__init__.py dist-packages/torch/cuda/__init__.py torch/utils/data/dataloader.py torch/_ops.py
site-packages/torchvision/ops transformers/models/llama/modeling_llama.py torch/utils/cpp_extension.py importlib
UserWarning: FutureWarning: warnings.warn( DeprecationWarning: ERROR: WARNING: INFO: DEBUG: error: warning: note: failed
Collecting torch Downloading torch-2.5.1-cp311-cp311-manylinux1_x86_64.whl Installing collected packages: Successfully
installed Requirement already satisfied: numpy>=1.21 in ./lib/python3.11/site-packages (from torch) Using cached
Building wheels for collected packages: Building wheel for extension (setup.py): started finished with status 'done'
Preparing metadata (pyproject.toml) Getting requirements to build wheel running build_ext running build_py creating
build/lib.linux-x86_64-cpython-311 building 'extension' extension copying -> writing adding
x86_64-linux-gnu-gcc -pthread -B /opt/conda/compiler_compat -Wl,--sysroot=/ -Wall -DNDEBUG -g -fwrapv -O2 -fPIC
-I/opt/venv/lib/python3.11/site-packages/torch/include -I/usr/local/cuda/include -I/usr/include/python3.11 -c src/ops.cpp
-o build/temp.linux-x86_64-cpython-311/csrc/kernel.o /usr/local/cuda/bin/nvcc --expt-relaxed-constexpr -std=c++17
-gencode=arch=compute_80,code=sm_80 --compiler-options '-fPIC' -DTORCH_EXTENSION_NAME=_C -D_GLIBCXX_USE_CXX11_ABI=0
ptxas info : Used 32 registers, 0 bytes spill stores compiling entry function
g++ -shared -L/usr/local/cuda/lib64 -lcudart -lc10 -ltorch -ltorch_cpu -ltorch_python include/ATen/core/Tensor.h
Epoch iteration step loss accuracy learning rate lr grad_norm eta time data memory max mem samples/sec tokens throughput
Loading checkpoint shards: model.safetensors config.json tokenizer_config.json Loaded weights from checkpoint saving to
Using device: cuda CUDA available: True CUDA version: GPU 0: NVIDIA GeForce RTX driver version: device count cudnn version
NCCL INFO Bootstrap : Using eth0 NCCL INFO Channel 00/02 : Init COMPLETE comm rank nranks busId via P2P/IPC
Starting server on http://0.0.0.0:8000 GET /health HTTP/1.1 200 OK request completed prompt_tokens Avg generation
INFO engine.py: Initializing an LLM engine with config: model= dtype=torch.bfloat16 tensor_parallel_size=1 Capturing
cudagraphs process pid worker running stopped restarting update setup install requires package version
libcudart.so libcublas.so libcudnn.so libnvrtc.so libstdc++.so numpy scipy triton xformers nvidia-cublas-cu12
nvidia-cuda-nvrtc-cu12 nvidia-cudnn-cu12 nvidia-nccl-cu12 torchaudio pytorch conda activate environment python -m pip
{"timestamp": "", "level": "info", "severity": "INFO", "logger": "uvicorn.access", "message": "", "msg": "", "stream":
"stderr", "log": "", "time": "", "name": "root", "levelname": "INFO", "levelno": 20, "pathname": "", "filename": "app.py",
"lineno": 1, "funcName": "main", "module": "app", "process": 1, "processName": "MainProcess", "thread": 1, "threadName":
"MainThread", "exc_info": null, "source": "stdout", "output": "", "hostname": "", "pod": "", "container": "", "namespace":
"", "kubernetes": {"labels": {}}, "trace_id": "", "span_id": "", "request_id": "", "status": 200, "method": "GET", "path":
"", "duration": 1, "client": "", "user_agent": "", "event": "", "caller": "", "ts": 1, "target": "", "fields": {}, "host":
"", "object": "", "model": "", "type": "", "value": "", "values": [], "system": "", "exception": "", "environment": ""}
"""
ORDINARY: Final = squeezed_literal(_LINES.encode())
"""The lines, squeezed. An atom in this text occurs in most logs."""
