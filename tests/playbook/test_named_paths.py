"""Owners of the files that a text names."""

from __future__ import annotations

import json

import pytest

from envmedic.playbook.matching.named_paths import PathNotes, named_paths, place
from tests.playbook.test_forms import judged


def read(text: str) -> PathNotes:
    return named_paths(enumerate(text.encode().split(b"\n"), start=1))


def said(text: str) -> list[str]:
    return [sentence for _, _, sentence in read(text).sentences]


def traceback(error: str, *files: str, within: str = "<module>") -> str:
    frames = "".join(f'  File "{file}", line 3, in {within}\n    import it\n' for file in files)
    return f"Traceback (most recent call last):\n{frames}{error}"


VENV = "/opt/venv/lib/python3.11/site-packages"
HOME = "/home/user/.local/lib/python3.11/site-packages"
UNDEFINED = f"ImportError: {VENV}/boxes/_C.abi3.so: undefined symbol: _ZN3c105ErrorC2Ev"


@pytest.mark.parametrize(
    ("path", "owner", "root", "module"),
    [
        (f"{VENV}/torch/__init__.py", "environment", "/opt/venv", "torch"),
        ("/opt/venv/lib64/python3.11/site-packages/torch/_ops.py", "environment", "/opt/venv", "torch"),
        (f"{VENV}/_boxes.cpython-311-x86_64-linux-gnu.so", "environment", "/opt/venv", "_boxes"),
        (f"{HOME}/torch/__init__.py", "user site", "/home/user/.local/lib/python3.11", "torch"),
        ("/home/user/.local/share/pipx/venvs/x/lib/python3.11/site-packages/a.py", "environment", "/home/user/.local/share/pipx/venvs/x", "a"),
        ("/usr/lib/python3/dist-packages/numpy/__init__.py", "system", "/usr/lib/python3", "numpy"),
        ("/usr/local/lib/python3.10/dist-packages/torch/_ops.py", "system", "/usr/local/lib/python3.10", "torch"),
        ("/tmp/pip-build-env-k2lq1x4e/overlay/lib/python3.11/site-packages/torch/_ops.py", "build", "/tmp/pip-build-env-k2lq1x4e", "torch"),
        ("/root/.cache/uv/builds-v0/.tmpI80vQB/lib/python3.11/site-packages/torch/_ops.py", "build", "/root/.cache/uv/builds-v0/.tmpI80vQB", "torch"),
        ("/tmp/pip-install-i23mgr98/boxes_9108ab73/setup.py", "build", "/tmp/pip-install-i23mgr98", ""),
        ("/home/user/.cache/torch_extensions/py311_cu124/boxes/boxes.so", "cache", "/home/user/.cache/torch_extensions", ""),
        ("/tmp/torchinductor_user/ab/cab.py", "cache", "/tmp/torchinductor_user", ""),
        ("/home/user/.triton/cache/a1b2/kernel.so", "cache", "/home/user/.triton/cache", ""),
        ("/usr/local/libtorch/lib/libc10_cuda.so", "libraries", "/usr/local/libtorch", "torch"),
        ("/opt/conda/envs/train/lib/libtorch_cpu.so", "libraries", "/opt/conda/envs/train", "torch"),
        (r"C:\Users\u\AppData\Roaming\Python\Python311\site-packages\torch\_ops.py", "user site", r"C:\Users\u\AppData\Roaming\Python\Python311", "torch"),
        (r"D:\sd\venv\Lib\site-packages\torch\_ops.py", "environment", r"D:\sd\venv", "torch"),
    ],
)  # fmt: skip
def test_the_owner_of_a_file(path: str, owner: str, root: str, module: str) -> None:
    found = place(path)
    assert found is not None
    assert (found.owner, found.root, found.module) == (owner, root, module)


@pytest.mark.parametrize(
    "path", ["/home/user/train.py", "train.py", "/usr/lib/python3.11/ctypes/__init__.py", ".../site-packages/torch/a.py",
             "<frozen importlib._bootstrap>"],
)  # fmt: skip
def test_other_files_have_no_owner(path: str) -> None:
    assert place(path) is None


def test_an_error_with_frames_of_two_owners() -> None:
    sentence = f"Two owners, /opt/venv of boxes, the user site /home/user/.local/lib/python3.11 of torch: {UNDEFINED}"
    text = traceback(UNDEFINED, "train.py", f"{VENV}/boxes/__init__.py", f"{HOME}/torch/__init__.py")
    assert said(text) == [sentence]
    assert read(text).sentences[0][0] == len(text.split("\n"))
    assert said(json.dumps({"error": text})) == [sentence + '"}']
    one = said(traceback(UNDEFINED, "train.py", f"{VENV}/boxes/__init__.py", f"{VENV}/torch/__init__.py"))
    assert one == [f"Two packages, boxes calls torch: {UNDEFINED}"]


def test_two_copies_in_one_chain_and_in_what_pip_lists() -> None:
    text = traceback(UNDEFINED, f"{VENV}/torch/__init__.py", "/usr/lib/python3/dist-packages/torch/_ops.py")
    assert said(text)[0] == f"Two copies of torch, /opt/venv and the system /usr/lib/python3: {UNDEFINED}"
    listed = (
        "Requirement already satisfied: torch==2.4.0 in /usr/local/lib/python3.11/site-packages\n"
        f">>> torch.__file__\n'{HOME}/torch/__init__.py'"
    )
    assert said(listed) == [
        "Two copies of torch, the system /usr/local/lib/python3.11 and the user site /home/user/.local/lib/python3.11"
    ]


WINDOWS_PYTHON = r"AppData\Local\Programs\Python\Python312"


@pytest.mark.parametrize(
    ("one", "other", "copies"),
    [
        (WINDOWS_PYTHON, rf"\{WINDOWS_PYTHON}", False),
        (rf"\{WINDOWS_PYTHON}", rf"C:\Users\user\{WINDOWS_PYTHON}", False),
        (".venv", "/home/user/boxes/.venv", False),
        ("~/miniconda3/envs/boxes", "/home/user/miniconda3/envs/boxes", False),
        ("venv", "/home/user/boxes/.venv", True),
        ("/opt/venv", "/data/opt/venv", True),
        (rf"D:\{WINDOWS_PYTHON}", rf"C:\Users\user\{WINDOWS_PYTHON}", True),
    ],
)
def test_a_path_of_which_the_beginning_was_cut_is_no_second_copy(one: str, other: str, *, copies: bool) -> None:
    site = r"\Lib\site-packages" if "\\" in one else "/lib/python3.11/site-packages"
    files = (f"{root}{site}{site[0]}boxes{site[0]}{file}.py" for root, file in ((one, "__init__"), (other, "lid")))
    sentences = said(traceback("ImportError: fold", *files))
    assert any(sentence.startswith("Two copies of boxes") for sentence in sentences) == copies


def test_chains_that_follow_each_other_are_not_mixed() -> None:
    one, two = (
        traceback("ImportError: a", f"{VENV}/a/__init__.py", within="fold"),
        traceback("ImportError: b", f"{HOME}/b/__init__.py", within="fold"),
    )
    assert said(f"{one}\n{two}") == []


def test_parts_of_a_namespace_and_conda_s_libraries_are_no_copies() -> None:
    text = traceback(
        "ImportError: /opt/conda/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
        "/opt/conda/lib/python3.11/site-packages/torch/__init__.py",
    )
    assert said(text) == []
    parts = traceback("OSError: oops", f"{VENV}/nvidia/a.py", "/opt/more/lib/python3.11/site-packages/nvidia/b.py")
    assert not any(sentence.startswith("Two copies") for sentence in said(parts))


def test_a_source_tree_lacks_what_its_build_makes() -> None:
    error = "ModuleNotFoundError: No module named 'boxes._C'"
    tree = traceback(error, "/home/user/boxes/demo.py", "/home/user/boxes/boxes/__init__.py")
    assert said(tree) == [f"Source tree of boxes in /home/user/boxes without boxes._C: {error}"]
    assert said(traceback(error, f"{VENV}/boxes/__init__.py")) == []
    assert said(traceback("ModuleNotFoundError: No module named 'boxes.demo'", "/home/user/boxes/boxes/a.py")) == []


def test_a_source_tree_asks_another_one() -> None:
    error = "ImportError: cannot import name 'Lid' from 'boxes.parts' ({}/boxes/parts.py)"
    asks = "Two projects, /opt/Crates/crates/pack.py asks boxes in /opt/boxes-source: "
    text = traceback(error.format("/opt/boxes-source"), "/opt/Crates/run.py", "/opt/Crates/crates/pack.py")
    assert [line for line in said(text) if line.startswith("Two projects")] == [asks + text.splitlines()[-1]]
    # the program's own module, an installed one, and one of an installed package
    for tree, file in (("/opt/Crates", "/opt/Crates/run.py"), (VENV, "/opt/run.py"), ("/opt/b", f"{VENV}/crates/a.py")):
        assert not any(line.startswith("Two projects") for line in said(traceback(error.format(tree), file)))


@pytest.mark.parametrize("error", ["KeyError: 'decay'", "AttributeError: 'str' object has no attribute 'keys'"])
def test_an_error_of_values_in_a_program_s_own_file(error: str) -> None:
    assert said(traceback(error, "/home/user/run.py")) == [f"Own code, /home/user/run.py: {error}"]
    inside = [f"Error inside, of boxes: {error}"] if error.startswith("AttributeError") else []
    assert said(traceback(error, "/home/user/run.py", f"{VENV}/boxes/a.py", within="fold")) == inside
    assert said(traceback(f"KeyboardInterrupt\nit shows {error}", "/home/user/run.py")) == []


def test_a_name_that_is_not_there_in_an_installed_package() -> None:
    error = "NameError: name 'lid' is not defined"
    text = traceback(error, "/home/user/run.py", f"{VENV}/boxes/a.py", within="fold")
    assert said(text) == [f"Error inside, of boxes: {error}"]
    assert [(item.fault, item.confidence) for item in judged(text).findings] == [("companion-version", 0.42)]
    # where two packages meet, that is said
    both = traceback(error, f"{VENV}/lids/b.py", f"{VENV}/boxes/a.py", within="fold")
    assert said(both) == [f"Two packages, lids calls boxes: {error}"]


def test_a_warning_after_an_error_is_no_part_of_its_message() -> None:
    warned = "/opt/other/lib/python3.11/site-packages/boxes/a.py:3: FutureWarning: the lid is deprecated"
    error = traceback("RuntimeError: the lid is shut", f"{VENV}/boxes/b.py", within="fold")
    assert said(f"{error}\n{warned}") == said(error) == []


@pytest.mark.parametrize(
    ("error", "files", "within", "told"),
    [
        ("TypeError: 'type' object is not subscriptable", ("run.py", f"{VENV}/boxes/a.py"), "<module>", True),
        # the body of a class is run as its module is imported
        ("NameError: name 'Lid' is not defined", (f"{VENV}/boxes/a.py",), "Crate", True),
        (
            "ValueError: mutable default <class 'boxes.a.Lid'> for field lid is not allowed: use default_factory",
            (f"{VENV}/boxes/a.py", "/usr/lib/python3.11/dataclasses.py"),
            "<module>",
            True,
        ),
        ("TypeError: 'type' object is not subscriptable", (f"{VENV}/boxes/a.py",), "fold", False),
        ("TypeError: 'type' object is not subscriptable", (f"{VENV}/boxes/a.py", "/home/user/run.py"), "<module>", False),
        # what is not found, and libraries, have sentences of their own
        ("ModuleNotFoundError: No module named 'lids'", (f"{VENV}/boxes/a.py",), "<module>", False),
        (UNDEFINED, (f"{VENV}/boxes/a.py",), "<module>", False),
        ("AttributeError: lids", ("/tmp/pip-build-env-x/overlay/lib/python3.11/site-packages/boxes/a.py",), "<module>", False),
    ],
)  # fmt: skip
def test_an_installed_package_that_fails_as_it_is_imported(
    error: str, files: tuple[str, ...], within: str, *, told: bool
) -> None:
    sentences = said(traceback(error, *files, within=within))
    assert (f"Failing import, of boxes: {error}" in sentences) == told


def test_what_a_package_calls_while_it_is_imported() -> None:
    error = "AssertionError: the lid does not fit"
    called = f'  File "{VENV}/lids/a.py", line 9, in fold\n    fit()\n{error}'
    imported = traceback(called, "/home/user/run.py", f"{VENV}/boxes/a.py")
    assert f"Failing import, of boxes: {error}" in said(imported)
    # as a program, below the user's own call, and where the text begins too late to tell
    run = traceback(called, "/usr/lib/python3.11/runpy.py", f"{VENV}/boxes/a.py")
    own = traceback(called, f"{VENV}/boxes/a.py", "/home/user/run.py")
    for text in (run, own, traceback(called, f"{VENV}/boxes/a.py")):
        assert not any(line.startswith("Failing import") for line in said(text))


def test_frames_of_what_cython_compiled_belong_to_no_program() -> None:
    error = "TypeError: lids are no crates"
    compiled = f'  File "lids/shut.py", line 9, in lids.shut.Lid.fit\n  File "lids/wood.py", line 4, in plane\n{error}'
    wrapped = f'  File "lids/shut.pyx", line 9, in init lids.shut\n{error}'
    for text in (compiled, wrapped):
        assert f"Failing import, of boxes: {error}" in said(traceback(text, "/home/user/run.py", f"{VENV}/boxes/a.py"))
    own = f'  File "lids/shut.py", line 9, in fit\n{error}'
    sentences = said(traceback(own, "/home/user/run.py", f"{VENV}/boxes/a.py"))
    assert not any(line.startswith("Failing import") for line in sentences)


def test_the_package_whose_library_torch_cannot_open() -> None:
    error = "OSError: [WinError 127] The specified procedure could not be found"
    site = r"C:\Users\u\env\lib\site-packages"
    opened = f'  File "{site}\\torch\\_ops.py", line 9, in load_library\n    ctypes.CDLL(path)\n{error}'
    text = traceback(opened, rf"{site}\boxes\__init__.py")
    assert f"Library for torch, of boxes: {error}" in said(text)
    assert judged(text).findings[0].signature == "library-for-torch"
    assert not any("boxes" in line for line in said(traceback(opened, r"C:\Users\u\run.py")))


def test_a_package_that_this_python_cannot_parse_fails_as_it_is_imported() -> None:
    text = f'  File "{VENV}/boxes/a.py", line 3\n    match lid:\n          ^\nSyntaxError: invalid syntax'
    assert "Failing import, of boxes: SyntaxError: invalid syntax" in said(text)


def test_an_own_file_named_like_a_module() -> None:
    error = "AttributeError: partially initialized module 'random' has no attribute 'Random'"
    own = traceback(error, "/home/user/random.py", f"{VENV}/torch/__init__.py")
    assert said(own) == [
        f"Own file /home/user/random.py in place of the module random of the standard library: {error}"
    ]
    assert said(traceback(error, "/home/user/train.py", "/usr/lib/python3.11/random.py")) == []


def test_a_torch_of_a_build_environment() -> None:
    error = "RuntimeError: \nThe detected CUDA version (12.4) mismatches the version that was used to compile"
    build = "/tmp/pip-build-env-k2lq1x4e/overlay/lib/python3.11/site-packages"
    (sentence,) = said(traceback(error, f"{build}/setuptools/build_meta.py", f"{build}/torch/utils/cpp_extension.py"))
    assert sentence.startswith("Build environment with its own torch, /tmp/pip-build-env-k2lq1x4e: RuntimeError: ")
    assert "mismatches" in sentence


def test_where_a_text_was_written() -> None:
    text = traceback("ImportError: a", f"{VENV}/a/__init__.py")
    assert read(text).origin.prefixes == ("/opt/venv",)
    windows = read(traceback("ImportError: a", r"D:\sd\venv\Lib\site-packages\a\__init__.py")).origin
    assert (windows.system, windows.path) == ("Windows", r"D:\sd\venv\Lib\site-packages\a\__init__.py")
    assert read(traceback("ImportError: a", "/Users/u/a.py")).origin.system == "macOS"
    assert read(traceback("ImportError: a", "/home/user/a.py") + "\nC:\\Users\\u\\x.txt").origin.system is None
    assert read("see https://example.org/C:/x and file:///C:/y").origin.system is None


@pytest.mark.parametrize(
    ("error", "files", "calls"),
    [
        # Python raises a refused call in the frame of the call
        ("TypeError: Client.__init__() got an unexpected keyword argument 'proxies'", ("openai/_client.py", "openai/_base.py"), [("openai", "")]),
        ("ImportError: cannot import name 'Cache' from 'transformers' (/x/__init__.py)", ("peft/tuner.py",), [("peft", "transformers")]),
        ("AttributeError: module 'numpy' has no attribute 'float_'", ("old/plots.py", "numpy/__init__.py"), [("old", "numpy")]),
        ("ModuleNotFoundError: No module named 'numpy.core.x'", ("old/plots.py",), [("old", "numpy")]),
        ("AttributeError: 'Frame' object has no attribute 'append'", ("old/plots.py", "pandas/frame.py"), [("old", "pandas")]),
        # parts of a package that is not all there, of namespaces, and of the standard library
        ("ImportError: cannot import name 'x' from 'old.plots' (/x.py)", ("caller/a.py", "old/__init__.py"), []),
        ("ImportError: cannot import name 'cloud' from 'google.rpc' (/x.py)", ("old/a.py",), []),
        ("ImportError: cannot import name 'gone' from 'typing' (/x.py)", ("old/a.py",), []),
    ],
)  # fmt: skip
def test_which_package_asks_another_one(error: str, files: tuple[str, ...], calls: list[tuple[str, str]]) -> None:
    found = read(traceback(error, "/home/user/train.py", *(f"{VENV}/{file}" for file in files))).calls
    assert [(caller, asked) for _, caller, asked in found] == calls


def test_the_users_own_call_is_no_packages() -> None:
    assert read(traceback("ImportError: cannot import name 'x' from 'pandas' (/x.py)", "/home/user/a.py")).calls == ()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ((f"{VENV}/pip/_internal/wheel.py", "/usr/lib/python3.11/zipfile.py"), "Installer pip: "),
        ((f"{VENV}/boxes/lids_pb2.py", f"{VENV}/google/protobuf/descriptor.py"), f"Generated code, {VENV}/boxes/lids_pb2.py: "),
    ],
)  # fmt: skip
def test_whose_code_an_error_is_of(files: tuple[str, ...], sentence: str) -> None:
    text = traceback("zipfile.BadZipFile: it is none", *files)
    assert any(found.startswith(sentence) for found in said(text))
    assert not any(
        found.startswith(sentence) for found in said(traceback("zipfile.BadZipFile: it is none", "train.py"))
    )


def test_an_archive_that_no_installer_reads_is_no_fault_of_the_environment() -> None:
    text = traceback("zipfile.BadZipFile: File is not a zip file", "train.py", f"{VENV}/numpy/lib/npyio.py")
    assert judged(text).verdict == "not-an-env-problem"
    assert judged(text.replace("numpy/lib", "pip/_internal")).findings[0].fault == "unsatisfiable"


def test_a_package_that_lacks_what_its_own_module_asks_for_is_not_there_whole() -> None:
    error = "ImportError: cannot import name 'fold' from 'boxes.lids' ({}/boxes/lids.py)"
    assert judged(traceback(error.format(VENV), f"{VENV}/boxes/core.py")).findings[0].fault == "half-installed"
    assert judged(traceback(error.format(VENV), f"{VENV}/crates/core.py")).findings[0].fault == "companion-version"


def test_what_is_built_when_it_is_used_is_told_by_the_build_that_failed() -> None:
    error = f"ImportError: cannot import name 'csrc' from 'splinekit' ({VENV}/splinekit/__init__.py)"
    found = judged(traceback(error, f"{VENV}/splinekit/cuda/_backend.py")).findings
    assert found[0].fault == "extension-build-toolchain"
    assert "half-installed" not in [item.fault for item in found]


def test_who_asks_for_an_attribute_is_not_the_module_that_has_none() -> None:
    error = "AttributeError: module 'numpy' has no attribute 'VisibleDeprecationWarning'"
    numpy = f'  File "{VENV}/numpy/__init__.py", line 414, in __getattr__\n    raise AttributeError'
    text = traceback(f"{numpy}\n{error}", f"{VENV}/boxes/core.py")
    found = judged(text).findings
    assert found[0].fault == "numpy-abi"
    assert "half-installed" not in [item.fault for item in found]
