"""Forms of sentences that tell of a cause in whatever words: what a text is read by where no signature knows its wording.

Each program has its own words, and the causes are few: a library that a loader does not find, a name that another
package lacks, a driver that is too old. A form is what the sentences on one cause have in common. It is a guess, so that
its line is read again only as a sentence that a playbook's signature `form` matches, with a confidence of its own, and
every signature that knows the wording goes before it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from envmedic.playbook.matching.failures import tells_of_failure
from envmedic.playbook.matching.lines import cleaned
from envmedic.playbook.matching.patterns import compiled
from envmedic.playbook.matching.prefilter import Prefilter, prefilter

SAID: Final = "In other words"
"""How the sentences for the signatures begin."""


class Form(NamedTuple):
    """What sentences on one cause have in common."""

    cause: str
    """The cause, as the sentence for the signatures begins."""
    words: str
    """Pattern in RE2's syntax, without regard to case; the group `what` is the library, package or tool."""


# What several forms speak of
_NVIDIA = (
    r"(?:cudart|cublas(?:lt)?|cufftw?|curand|cusolver\w{0,3}|cusparse(?:lt)?|cupti|cufile|nvrtc|nvjitlink|nvtoolsext"
    r"|nccl|nvinfer|nvonnxparser|nvjpeg|nppi?c|cutensor|nvvm|cudss|nvshmem|hipblas|rocblas|miopen|amdhip64|rccl)"
)
_LIBRARY = rf"(?P<what>(?:lib)?(?:{_NVIDIA}|cudnn)[\w-]*(?:\.(?:so|dll|dylib)[\d.]*)?)"
_FILE = r"(?P<what>[\w.+-]+\.(?:so|dll|pyd|dylib)[\d.]*)"
_NOT_LOADED = (
    r"(?:(?:could ?n[o']t|can ?not|can't|unable to|not able to|failed to|failure to|error) (?:be )?(?:load|open|find|locate|dlopen|resolve)\w*"
    r"|not (?:be )?(?:found|loaded|opened|located|installed|available)|no such file|is missing|missing)"
)
_MISSING = r"(?:(?:is |was |are |were |has |have )?(?:not (?:been )?|n[o']t (?:been )?)(?:found|installed|discoverable|available|there|on (?:the )?PATH|set up|built|compiled|loaded|importable)|(?:can ?not|could ?n[o']t|could not|can't) be (?:found|loaded|imported|located|built|used)|missing|no such)"
_DRIVER = r"(?:(?:nvidia|cuda|gpu|graphics|display|video|kernel)[\w -]{0,24})?driver"
_GPU = r"(?:gpus?|cuda(?: devices?)?|devices?|cards?|accelerators?|hip|rocm|xpu)"
_VERSION = r"v?\d+\.\d[\w.+*]*"
_ASKS = (
    r"(?:requires?|needs?|expects?|depends on|must (?:have|be)|only (?:supports?|works? with|compatible with)"
    r"|please (?:install|update|use|upgrade|downgrade)|(?:up|down)grade)\b"
)
_PACKAGE = r"(?P<what>[A-Za-z][\w.-]{1,40})"

# The order matters: a line is told by the first form that it has. Topics, what a line is about, are at the end.
FORMS: Final = (
    # a driver without its half for pictures, which no release of CUDA brings
    Form(
        "the GPU or its driver fails",
        rf"{_DRIVER}[\w .()-]{{0,40}} (?:does ?n[o']t|(?:can ?not|can't)) (?:support|provide|have|offer) (?:\w+ ){{0,2}}(?:vulkan|opengl|egl|glx|directx|rendering)\b",
    ),
    # the driver, before all that speak of versions
    Form(
        "the driver is too old",
        rf"{_DRIVER}[\w .:()'-]{{0,60}}(?:insufficient|too.old|outdated|out of date|out-of-date|older than|lower than|less than|not (?:recent|new) enough|does ?n[o']t support)|"
        r"newer than (?:the )?(?:[\w-]+ )?driver",
    ),
    Form(
        "the driver is too old",
        rf"(?:old|older|outdated|insufficient) (?:version of )?(?:the |your )?{_DRIVER}|"
        rf"(?:update|upgrade)\w* (?:to )?(?:the |your )?(?:latest |newer |newest )?{_DRIVER}s?\b|"
        rf"{_DRIVER} (?:version )?(?:must be|needs to be|should be) (?:at least|updated|upgraded)|"
        rf"requires? (?:a )?(?:newer |minimum )?{_DRIVER}(?: version)?(?: of)?(?: at least| >=?| ≥)? ?[\dnr]",
    ),
    Form(
        "the driver is too old",
        r"unsupported toolchain|forward.compat\w* (?:was attempted|mode|is not)|"
        r"compat\w* (?:libraries|package)[\w ]{0,30}driver",
    ),
    # the machine
    Form(
        "the GPU or its driver fails",
        rf"\bNVRM: .{{0,120}}(?:fail|error|fallen|mismatch|xid|can ?not|unable|not |invalid|conflict|reject|timed? ?out|No NVIDIA|GPU 0000)|"
        r"\bXid (?:errors?|codes?|\(PCI|events?|messages?)|fallen off the bus|RmInitAdapter|"
        rf"(?:uncorrectable|double.bit|volatile) (?:ECC|NVLink)|ECC error|{_GPU} (?:is|was|has been) lost|"
        rf"fabric ?manager.{{0,60}}(?:not |fail|error|inactive|start)|busy or unavailable|"
        rf"nvidia-container-cli: |container toolkit[\w ]{{0,20}}(?:missing|not )|"
        r"could not select device driver|nvidia-smi has failed|"
        rf"/dev/(?:nvidia|kfd|dri)\b.{{0,60}}(?:no such|denied|not found|missing)",
    ),
    Form(
        "the GPU or its driver fails",
        rf"(?:failed|unable|could ?n[o']t|cannot|can't|error|failure)[\w :.'-]{{0,40}}(?:initiali[sz]\w*|communicat\w*|calling|start\w*|query\w*|determine|open\w*|attach|reset|access|talk)[\w :.'-]{{0,40}}(?:nvml|nvidia gpu|nvidia driver|cuda driver|the gpu|{_DRIVER}|device handle|cuda context|gpu at pci|nvidia-smi)",
    ),
    Form(
        "the GPU or its driver fails",
        r"nvml[\w.: ()-]{0,30}(?:error|unknown|fail|not found|not supported|unavailable)|"
        r"cuInit\b.{0,60}(?:fail|error|return)|"
        r"CUDA_ERROR_(?:NOT_INITIALIZED|NO_DEVICE|UNKNOWN|SYSTEM_\w+|OPERATING_SYSTEM|DEVICE_UNAVAILABLE|NOT_PERMITTED|STUB_LIBRARY|COMPAT_\w+)|"
        r"cuda(?: driver| runtime)? initiali[sz]ation error|"
        r"cudaError(?:NotPermitted|System\w+|StubLibrary|InitializationError|ECCUncorrectable|HardwareStackError)|"
        r"(?:nvidia|amdgpu|nouveau)[\w -]{0,20}kernel module.{0,40}(?:not |fail|missing|mismatch|error)|"
        r"dkms.{0,60}(?:fail|error|bad )",
    ),
    # NumPy, before undefined names
    Form(
        "NumPy is of another generation",
        r"numpy[\w .]{0,30}(?:dtype size changed|binary incompat|C.?API|ABI)|"
        r"compiled (?:using|against|with) numpy|module compiled against (?:API|ABI)|_ARRAY_API|"
        r"numpy\.core\.(?:multiarray|_multiarray)\w* (?:failed|cannot)|was removed in the numpy 2|"
        r"numpy['\"]? has no attribute|"
        r"np\.(?:bool|int|float|object|complex|str|float_|unicode_|Inf|NaN|product|cumproduct|in1d|trapz)\b.{0,40}(?:removed|deprecated|attribute)",
    ),
    # linkers, which say of a build what loaders say of a process
    Form(
        "a build fails",
        r"(?:^|[\s/])(?:tcc|ld|ld\.\w{2,4}|lld|mold|link)(?:\.exe)?: (?:fatal )?(?:error: )?undefined (?:symbol|reference)",
    ),
    # loaders
    Form(
        "a symbol is not defined",
        r"undefined symbol|symbol lookup error|symbol not found|unresolved symbol|"
        r"(?:procedure|entry point)[\w ]{0,40}(?:could not be (?:found|located)|not found)|找不到指定的程序|"
        r"no such symbol",
    ),
    Form(
        "a CUDA library is not found",
        rf"{_NOT_LOADED}.{{0,90}}?\b{_LIBRARY}\b|"
        rf"\b(?:lib)?(?:{_NVIDIA}|cudnn)[\w-]*\.(?:so|dll)[\d.]*.{{0,60}}{_NOT_LOADED}|LoadLibrary failed|"
        r"failed to load \S*onnxruntime_providers",
    ),
    Form(
        "cuDNN does not fit",
        r"cudnn.{0,80}(?:mismatch|incompatib|not compatible|built against|compiled (?:with|against)|is newer|older than|outdated|out of date)|"
        r"outdated cudnn|CUDNN_STATUS_(?:VERSION|SUBLIBRARY|NOT_INITIALIZED)",
    ),
    Form(
        "CUDA of the toolkit and of torch differ",
        r"cuda version \W?[\d.]+\W? mismatch|"
        r"(?:detected|installed|system|toolkit|nvcc)[\w ]{0,20}cuda[\w .()]{0,40}(?:mismatch|does not match|differ|different)|"
        r"cuda[\w .()]{0,40}(?:mismatch\w*|does not match|different from|differs from).{0,80}(?:torch|compile)|"
        r"(?:torch|pytorch)[\w .()+]{0,40}(?:compiled|built)[\w ]{0,12}(?:with|for|against) cuda.{0,60}(?:but|while|whereas|mismatch|system|toolkit)",
    ),
    Form(
        "a CUDA library does not fit",
        rf"\b(?P<what>cu[A-Z]{{3,6}}|cuda|nccl|{_NVIDIA})\b (?:library |runtime )?version.{{0,60}}(?:built against|compiled (?:with|against|for)|mismatch|newer|older|incompat)|"
        r"outdated cu[a-z]+ installation|operation cu\w+GetVersion",
    ),
    Form(
        "the C++ library is too old",
        r"(?:GLIBCXX|GLIBC|CXXABI)_\d[\d.]+|"
        r"libstdc\+\+\.so\.6.{0,60}(?:not found|can ?not|version|required|too old)",
    ),
    Form(
        "a compiled file is not whole",
        r"(?:file (?:is )?too short|invalid ELF header|ELF load command|bad magic number|truncated file|not a valid Win32|is not a valid (?:application|library)|zlib\.error|corrupt(?:ed)? (?:wheel|package|install\w*))",
    ),
    Form(
        "a library is not found",
        rf"{_FILE}['\"]?:? (?:cannot open shared|image not found|not found|was not found)|"
        rf"error while loading shared libraries: {_FILE}|\[(?:Win)?Error 12[67]\]|\[(?:Win)?Error 1114\]|DLL load failed|"
        rf"(?:failed|unable|cannot|could not) (?:to )?load (?:[\w.-]+ ){{0,4}}(?:dll|library|libraries)\b|"
        r"error code:? (?:126|1114)\b|library not loaded|"
        rf"(?:ImportError|OSError): (?P<needed>lib[\w.+-]+\.so[\d.]*)\W{{0,2}}$",
    ),
    # code for the GPU
    Form(
        "there is no code for the GPU",
        r"no kernel image|invalid device function|NoBinaryForGpu|missing CO for|"
        r"code object.{0,60}(?:not found|isa|for current)|"
        r"\b(?:sm_|gfx|compute_)\d+\w?\b.{0,80}(?:not (?:compatible|supported|found|available|defined)|unsupported|is ?n[o']t )|"
        r"(?:not (?:compatible|supported|compiled|built|found|available)|unsupported|no (?:code|binary|kernels?|support)|does ?n[o']t (?:support|have)|without)\b.{0,60}\b(?:sm_|gfx|compute_)\d+|"
        r"(?:requires?|needs?|only (?:supports?|works? (?:on|with))|at least|minimum)[\w ]{0,40}(?:compute capability|\bsm_?\d\d|ampere|hopper|ada|turing|blackwell|volta)|"
        r"compute capability.{0,60}(?:too (?:low|old)|not supported|unsupported|less than|lower|required|below)|"
        r"(?:unsupported|unknown|unrecogni[sz]ed|invalid) (?:gpu |cuda |device |target )?(?:arch\w*|compute capability|capability)\b|"
        r"(?:unsupported|invalid)[\w ]{0,20} gpu.architecture|"
        r"not supported (?:on|by) (?:this|your|the current) (?:gpu|device|architecture|card)|"
        r"device kernel image is invalid",
    ),
    # the compiled part of a package; kernels in the plural, since machines and notebooks have one
    Form(
        "a compiled part is not there",
        rf"\b(?:\w+_kernels|\w+_ext|kernels|(?:cuda|c\+\+|custom|native|compiled) (?:extensions?|ops?|operators?|kernels?))\b[\w :'\"]{{0,20}} {_MISSING}|"
        rf"\bextension [\w.'\"`]{{2,60}} {_MISSING}",
    ),
    # builds of one or the other kind
    Form(
        "a build fails",
        r"(?:could ?n[o']t|can ?not|unable to|failed to) (?:find|locate|detect) (?:the |a |any )?cuda"
        r" (?:installation|toolkit|include|headers?|compiler|root|home|sdk)\b|no cuda (?:toolkit|installation)",
    ),
    Form(
        "made for the CPU alone",
        r"(?:not|n't|without|no) (?:compiled|built|enabled|linked)?[\w ]{0,24}\b(?:with |for )?(?:cuda|gpu|cudnn|nccl|rocm|xpu)(?: support| enabled)?\b.{0,30}(?:in this build|support|enabled|compiled)|"
        r"(?:not|n't) (?:compiled|built|linked) (?:with|for) (?:[\w ]{0,20})(?:cuda|gpu|cublas|cudnn|nccl|rocm|hip|opencl)|"
        r"(?:compiled|built) without (?:[\w ]{0,20})(?:cuda|gpu|cublas|cudnn|nccl|rocm|hip)|"
        r"(?:cuda|gpu)[\w ]{0,30}(?:is |was )?not (?:enabled|compiled|built)\b|"
        r"cpu[- ]only (?:build|version|wheel|package|torch|pytorch|jaxlib|tensorflow|variant)|"
        r"(?:gpu|cuda)[- ](?:enabled|accelerated) (?:build|version|jaxlib|package)[\w ]{0,20}(?:not|n't)|"
        r"no (?:gpu|cuda) support",
    ),
    Form(
        "no GPU is used",
        r"fall(?:ing)?[ -]?back to (?:the )?cpu|using (?:the )?cpu(?: instead|\b)|"
        r"only (?:show|see|find|detect|use|list)s? \W?(?:the )?cpu|"
        rf"(?:run|running|execut\w*|default\w*|switch\w*)[\w ]{{0,20}} on (?:the )?cpu\b|"
        rf"(?:no|zero|0) {_GPU}[\w /-]{{0,20}}(?:found|detected|available|visible|present)|"
        rf"(?:cuda|gpu)s?[\w .()]{{0,24}}(?:is |are )?(?:not|n't|un)[ -]?(?:available|detected|found|visible|usable|recogni[sz]ed)|"
        rf"(?:could ?n[o']t|cannot|can't|does ?n[o']t|did ?n[o']t|unable to|not able to) (?:find|detect|see|use|recogni[sz]e|access) (?:\w+ ){{0,2}}(?:gpu|cuda)s?\b",
    ),
    # compilers, that build logs have no command of
    Form(
        "a build fails",
        r"fatal error: [^\n]{1,80}(?:no such file|not found)|"
        rf"nvcc[\w .'\"/-]{{0,30}}(?:fail|is ?n[o']t |{_MISSING})|"
        r"\bsm[ _]?\d+(?:\.\w)?\w? (?:requires?|needs?) (?:at least )?cuda\b|c\+\+ compile error|"
        r"(?:cuda_home|cuda_path|CUDA_TOOLKIT_ROOT_DIR)\b.{0,60}(?:not |invalid|unset|missing|no such)|"
        r"cannot find -l|ninja[\w ]{0,20}(?:is required|not found|missing|fail)|"
        r"(?:microsoft )?visual c\+\+ [\d.]* ?(?:or greater )?is required|"
        r"(?:cl\.exe|vcvars\w*).{0,40}(?:not |fail|missing|no such)|no (?:cuda|c\+\+|c) compiler|"
        r"(?:gcc|g\+\+|clang|cmake|rustc|cargo|make|nvcc|hipcc|msvc|compiler)\b.{0,40}(?:not found|is required|failed|too (?:old|new)|unsupported|not installed)|"
        r"cmake error|fail\w* (?:to )?(?:build|compil)\w*|(?:build|compilation|compiling)[\w ]{0,20} fail|"
        r"unsupported gnu version|(?-i:error: command)",
    ),
    # solvers
    Form(
        "requirements cannot be met",
        r"no (?:matching|compatible|suitable|valid) (?:distribution|version|candidate|wheel|release|package)s?|"
        r"no [\w. -]{1,40} (?:found|available|built) for (?:the |this |your )?(?:\w+ )?(?:version of )?python\b|"
        r"no solution|resolution(?:impossible| ?(?:error|failed|too deep))|"
        r"conflicting (?:dependenc|requirement|package)|"
        r"\bconflicts? (?:occur|arise|when|while|during)\w*[\w '\"`:,-]{0,60}(?:install|requirements)|"
        r"(?:dependenc|requirement|package|specification)\w*[\w ]{0,20} (?:conflict|incompatible|unsatisfi|cannot be (?:satisfied|met|resolved)|could not be (?:satisfied|met|resolved))|"
        r"unsatisfiable|version solving failed|nothing provides|could not find a version|"
        r"(?:could not|can ?not|unable to|fail\w* to) (?:solve|resolve)[\w ]{0,24}(?:environment|dependenc|requirement|package|version|conflict)|"
        r"solver?problem|cannot install [\w.\[\], -]{1,80}(?:[<>=!~]=|because these package)|not a supported wheel|"
        r"does ?n[o']t have a (?:source distribution|wheel)|no wheels?\b.{0,60}(?:found|available|for|with)|"
        r"requires a different python|requires-python.{0,60}(?:not |incompat|conflict|unsatisf)|"
        r"(?:package|version)s? [\w .'\"=<>-]{1,60}(?:do(?:es)? not exist|not available|not found|cannot be found|is not supported on)|"
        r"impossible combination|incompatible with (?:python|this platform|your (?:python|system|platform))|"
        r"not (?:compatible|supported)[\w ]{0,12} (?:with|by|on) (?:this |your )?python|PackagesNotFound",
    ),
    # two runtimes, two copies
    Form(
        "two OpenMP or MKL runtimes",
        r"\bOMP: (?:Error|System error)|"
        r"lib[ig]?omp5?\b.{0,80}(?:already|initiali[sz]ed|conflict|multiple|duplicate|cannot)|KMP_DUPLICATE|"
        r"MKL_THREADING|mkl[ -]service|mkl fatal error|\bmkl_\w+\.(?:so|dll)|"
        r"symbol mkl_",
    ),
    Form(
        "a package is there twice",
        rf"(?:multiple|two|several|both) [\w -]{{0,30}}(?:versions?|copies|installations?|packages?) (?:of [\w-]+ )?(?:are |is |were )?(?:installed|found|detected|present|loaded)|"
        r"already (?:been )?registered|single TORCH_LIBRARY|(?:duplicate|conflicting) install\w*|"
        rf"both {_PACKAGE} and [\w.-]+ (?:are )?installed",
    ),
    # packages among themselves
    Form(
        "a package asks for another release",
        rf"(?P<what>[A-Za-z][\w.-]{{1,40}}) ?(?:version )?(?:[<>=!~]=? ?)?{_VERSION}[\w .,<>=!~'\"()+:-]{{0,60}}\b(?:is required|is not (?:supported|compatible)|not compatible|unsupported|incompatible|is too (?:old|new|low|high)|but (?:found|got|you have|have|is|was|the)|not satisf\w*|conflicts?)",
    ),
    Form(
        "a package asks for another release",
        rf"\b\w{{0,60}}(?:Error|Exception|Conflict)\b.{{0,200}}?{_ASKS}[\w '\"`:-]{{0,40}}?\b{_PACKAGE} ?(?:version |to )?(?:[<>=!~]=? ?v?\d|at least|or (?:newer|later|higher)|{_VERSION})|"
        rf"Error\b.{{0,120}}\b(?:built|compiled) (?:for|with|against|using) (?:(?:the )?(?:py)?torch|cuda|numpy|python)(?: version)? ?{_VERSION}|"
        r"VersionConflict",
    ),
    Form(
        "a package asks for another release",
        r"please (?:pip )?install [^\n]{1,60}\b(?:pip3?|conda|uv pip) install\b",
    ),
    Form(
        "a package perhaps asks for another release",
        rf"{_ASKS}[\w '\"`:-]{{0,40}}?\b{_PACKAGE} ?(?:version |to )?(?:[<>=!~]=? ?v?\d|at least|or (?:newer|later|higher)|{_VERSION})",
    ),
    Form(
        "a package perhaps asks for another release",
        rf"{_VERSION}[\w .,<>=!~'\"()+:-]{{0,60}}\bdoes ?n[o']t (?:match|support|work)|"
        r"not matching (?:version|release)s|"
        rf"(?:version|release)s?[\w .,<>=!~'\"`()+:-]{{0,60}}(?:mismatch|too old|too new|incompatib|not compatible|not supported|does ?n[o']t match)|"
        rf"\b(?:incompatib\w+|not compatible|mismatch\w*)[\w '\".-]{{0,40}}(?:version|release|with {_PACKAGE})|"
        r"minimum (?:required )?version|\bis not (?:a )?(?:new|recent) enough\b|"
        rf"(?:was|were|been|is) (?:built|compiled|made|written) (?:for|with|against|using) (?:a |an )?(?:different |another |older |newer |other )?[\w .'\"+-]{{0,40}}(?:version|torch|cuda|python|{_VERSION})|"
        r"PackageNotFoundError|newer version of|older version of|"
        r"is not installed[.,!]? (?:please|run|try|install)|"
        r"got an unexpected keyword argument|Unexpected keyword argument|missing \d+ required (?:positional|keyword-only) argument"
        r"|takes (?:from |exactly |at most )?\d+ (?:to \d+ )?(?:positional )?arguments? (?:but|\()|(?:has|have) been removed (?:in|from|since)\b"
        r"|Upgrading [\w, -]{3,80} can cause|"
        r"AttributeError: '?(?-i:[A-MO-Z][a-z]+\d*[A-Z])\w*'? object has no attribute",
    ),
    Form(
        "a package lacks what is asked of it",
        r"cannot import name|(?:can ?not|can't|could ?n[o']t|unable to) import ['\"`]?(?-i:[A-Z][a-z]+[A-Z]\w*|[a-z]+_\w+)['\"`]? (?:in|from|of) |module ['\"`]?(?P<what>[A-Za-z_][\w.]*)['\"`]? has no attribute|"
        r"type object ['\"`]?\w+['\"`]? has no attribute|(?:class|namespace|object) ['\"`]?_?OpNamespace|"
        r"No module named ['\"]?\w+\.\w",
    ),
    # crashes
    Form(
        "the process crashed",
        r"segmentation fault|segfault|SIGSEGV|SIGBUS|SIGILL|SIGABRT|SIGFPE|illegal instruction|bus error|"
        r"core dumped|access violation|(?:free|malloc|realloc|munmap_chunk)\(\)|double free|"
        r"corrupted (?:size|double|unsorted|top)|heap corruption|stack smashing|exception_access_violation|"
        r"status_(?:access_violation|illegal)|exit(?:ed)?[\w ]{0,16}code:? (?:-11|-6|-4|-7|13[2459])\b|"
        r"signal (?:11|6|4|7)\b|abnormal(?:ly)? terminat|kernel (?:appears to have |has |keeps )?(?:died|dies|dying)",
    ),
)

TOPICS: Final = (
    Form(
        "it is about the GPU or its driver",
        r"nvidia-smi|\bdkms\b|fabric ?manager|\bnvml\b|nvidia-uvm|/dev/(?:nvidia|kfd|dri)|\bNVRM\b|container[- ]toolkit|\bMIG\b|rocm-smi|amdgpu",
    ),
    Form("it is about cuDNN", r"cudnn"),
    Form(
        "it is about a build",
        r"\b(?:nvcc|ninja|cmake|gcc|g\+\+|clang|hipcc|cl\.exe|cython|rustc|cargo|msvc|setup\.py|pyproject\.toml|bdist_wheel|cuda_home|cuda toolkit|cpp_extension|JIT compil\w+)\b",
    ),
    Form(
        "it is about code for the GPU",
        r"\b(?:sm|compute|gfx)_?\d{2,4}[a-z]?\b|\bptxas\b|compute capability|\bblackwell\b",
    ),
    Form("it is about torchvision's operators", r"torchvision(?:::|\.ops|\._C)"),
    Form("it is about the driver's release", r"\b(?:nvidia|cuda|gpu) driver"),
    Form(
        "it is about a CUDA library",
        rf"\b(?:lib)?{_NVIDIA}[\w-]*\.(?:so|dll)|\b(?:cublas|cusparse|cusolver|nvrtc|cudart)\b",
    ),
    Form(
        "it is about an extension",
        r"\.(?:cpython|abi3|cp3\d+)[\w.-]*\.(?:so|pyd)\b|\bABI\b|\b(?:flash|sage)[-_ ]?attn\b",
    ),
    Form(
        "it is about requirements",
        r"\b(?:mamba|poetry|pixi|uv (?:sync|lock|add|pip)|pip install|conda (?:install|create|env))\b",
    ),
    Form("it is about NCCL", r"\b[NR]CCL\b|\bnccl(?:Unhandled|Internal|System|Remote|Invalid)\w+"),
    Form(
        "it is about packages of certain releases",
        r"\b(?:torch|transformers|triton|xformers|vllm|numpy|protobuf|tensorflow|jax|keras|diffusers)[\w.-]* ?(?:[<>=!~]=|v?\d+\.\d+|version)",
    ),
    # the most general ones, of lines that name nothing that is known better
    Form("it is about a CUDA library", r"\w\.(?:so|dll|dylib)\b|(?:shared|dynamic) (?:link )?librar(?:y|ies)"),
    Form(
        "it is about packages of certain releases",
        r"\bversions? (?:\d|of\b|is\b|installed|conflict|issue|problem)|\d\.\d+(?:\.\d+)? versions?\b|upgrad\w+|downgrad\w+|incompatib\w+"
        r"|\bImportError\b|\bimport (?:error|fail\w+|statements?|problem)|fail\w* (?:to|on|during|at|when) import|cannot import"
        r"|AttributeError: (?:type object )?'?(?-i:[A-MO-Z])\w+'? (?:object )?has no attribute",
    ),
)
"""What lines that tell of a failure are about, where no form tells of a cause: a hint, far from sure."""

_MOST_SENTENCES = 24
_MOST_TOPICS = 3
_QUOTED = 1000
"""Bytes of a line that are read."""
_VARYING = re.compile(r"[0-9a-f]+")


def form_sentences(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, str, str]]:
    """Yield, for numbered `lines`, number, text and sentence of those that have a form: of a flood, the first ones."""
    told: set[str] = set()
    topics: dict[str, tuple[int, str, str]] = {}
    for number, line in lines:
        if len(told) >= _MOST_SENTENCES:
            return
        among = _literals().candidates(line[:_QUOTED])
        if not among:
            continue
        text = cleaned(line[:_QUOTED])
        cause = cause_of(text, among)
        # floods repeat a message with other numbers
        key = f"{cause}{_VARYING.sub('', text)}"
        if cause is not None and key not in told:
            told.add(key)
            yield number, text, f"{SAID}, {cause}: {text}"
        elif cause is None and not told and len(topics) < _MOST_TOPICS and tells_of_failure(line[:_QUOTED]):
            topic = _topic_of(text, among)
            if topic is not None:
                topics.setdefault(topic, (number, text, f"{SAID}, {topic}: {text}"))
    yield from () if told else topics.values()


def _topic_of(text: str, among: Collection[int]) -> str | None:
    """What `text` is about, of the topics among those numbered after the forms."""
    content = text.encode()
    topics = (TOPICS[number - len(FORMS)] for number in sorted(among) if number >= len(FORMS))
    return next((topic.cause for topic in topics if compiled(topic.words).search(content) is not None), None)


def cause_of(text: str, among: Collection[int] = range(len(FORMS))) -> str | None:
    """The cause of which `text` has a form of those numbered `among`, with what it names; None where it has none."""
    content = text.encode()
    for number in sorted(index for index in among if index < len(FORMS)):
        found = compiled(FORMS[number].words).search(content)
        if found is not None:
            named = next((value.decode("utf-8", "replace") for value in found.groups() if value is not None), None)
            return FORMS[number].cause if named is None else f"{FORMS[number].cause}, {named}"
    return None


def patterns() -> tuple[str, ...]:
    """Return the patterns of all forms and topics, as a text is searched for them and as the wheel holds their literals."""
    return tuple(form.words for form in (*FORMS, *TOPICS))


@cache
def _literals() -> Prefilter:
    """The literals that lines of each form contain."""
    return prefilter(patterns())
