"""The first failing command of a build and its first error line, found in the pass that searches signatures.

Builds end in lines that are the same for every reason. What failed is further up, in the words of the tool: this reader
knows the forms in which compilers, linkers, build systems and installers report errors, whatever the error is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from envmedic.playbook.matching.blocks import BLOCK_BYTES, Block
from envmedic.playbook.matching.lines import cleaned, without_escapes
from envmedic.playbook.matching.patterns import any_by_line, compiled

_Kind = Literal["error", "command", "plain", "begun"]

_WORD_FOR_ERROR = r"(?:[Ee]rror|错误|錯誤|Fehler|[Ee]rreur|ошибка|エラー)"
_COMPILERS = (
    r"(?:[\w.+-]*-)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|cc1|cc1plus|nvc\+\+|hipcc|icx|icpx|tcc|lld|ld\.lld)(?:-\d+)?"
)
_CUDA_TOOLS = r"(?:nvcc|ptxas|cicc|nvlink|fatbinary|cudafe\+\+)(?:\.exe)?"

# RE2 syntax, searched anywhere in a line: prefixes of terminals, loggers and Docker come before
_ERRORS: Final = {
    # x.cpp:12:3: fatal error: …, and gfortran's and clang's without a column
    "the compiler": rf"(?:\.\w{{1,5}}|[)+-]|[Mm]akefile\w*):\d+:(?:\d+:)? ?(?:[\w ]{{1,30}} )?[^ -~]{{0,12}}?{_WORD_FOR_ERROR}(?: #\d+)?(?: ?:|[^ -~])",
    # c++: fatal error: Killed signal terminated program cc1plus
    "the compiler driver": rf"(?:^|[\s/]){_COMPILERS}: (?:fatal |internal compiler )?error: |cc1plus: out of memory",
    # x.cu(12): error: …, x.cpp(12): error C2065: …
    "nvcc": rf"\w\(\d+\) ?: (?:fatal |catastrophic )?error ?(?:#\d+(?:-D)?)?:|\b{_CUDA_TOOLS} (?:fatal|error) *:|\bptxas [^\n]{{1,200}}, line \d+; (?:error|fatal) *:",
    "Visual C++": r"(?:^|\s)fatal error (?:C|LNK)\d{4}:|(?:\w\(\d+(?:,\d+)?\) ?: |LINK : |cl : |c1xx ?: |c1 : |\.obj : |\.lib\([\w.]+\) : )[^\n:]{0,40}?(?:fatal |Command line )?(?:[Ee]rror|错误|錯誤|Fehler|erreur)\s[A-Z]{1,4}\d{4}\b|\bMSBUILD : error |\b[Ee]rror[ \t]MSB\d{4}\b",
    "the linker": r"(?:^|[\s/])(?:ld|ld\.\w{2,4}|lld|mold)(?:\.exe)?: (?:error: |fatal error: )?(?:cannot find|unable to find|[^\n]*undefined reference to |final link failed|unrecognized option|找不到|library not found)|\bcollect2: fatal error:",
    "CMake": r"\bCMake Error(?: at [^\n]+\(\w+\):| in [^\n]+:|: )",
    "rustc": r"(?:^|\s)error\[E\d{4}\]: |(?:^|\s)error: (?:linker [`']|failed to run custom build command|package [`'][^`'\n]{1,80}[`'] cannot be built|rustc \d[^\n]{0,80} is not supported)",
    "make": r"\bmake(?:\[\d+\])?: \*\*\* (?:No rule to make target|没有规则)",
}  # fmt: skip
_COMMANDS: Final = {
    "ninja": r"(?:^|\s)(?-i:FAILED): (?:\[code=-?\d+\] )?[^\s(]",
    "make": r"\b(?:g|mingw32-)?make(?:\[\d+\])?: \*\*\* \[[^\n]+(?:Error|错误|Fehler|Erreur|Ошибка|エラー) \d+",
    "setuptools": r"\berror: command ['\"][^'\"\n]{1,300}['\"] (?:failed|terminated)",
    "cargo": r"\berror: could not compile [`']",
    "Docker": r"failed to solve: (?:process |executor failed)|executor failed running \[|returned a non-zero code: \d",
    "subprocess": r"\bCommand '?\[['\"][^\n]+\]'? (?:returned non-zero exit status|died with)",
    "torch": r"\bError (?:building extension|compiling objects for extension)",
    "Visual Studio": r"\bmsbuild(?:\.exe)?['\"]? failed with exit",
    "pip": r"did not run successfully|Command errored out with exit status|Failed building wheel for|Failed to build [`']|[Bb]uild backend (?:returned an error|failed)",
}  # fmt: skip
# Words of any program: they count in builds alone, and only where no tool of a build reported an error itself.
_PLAIN: Final = {
    "Python": r"^\W{0,12}(?:\d+\.\d+ +)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit)(?:: [^\n]{2,}|\s*$)",
    "the build": r"^\W{0,12}(?:\d+\.\d+ +)?(?:error: |ERROR: |fatal: |E: )[^\n]{3,}",
    "the shell": r"(?:^|[\s/])(?:ba|da|z)?sh: (?:(?:line )?\d+: )?[^\s:][^\n:]{0,200}: (?:command )?not found",
}  # fmt: skip
_BEGUN: Final = (
    r"running (?:build_ext|bdist_wheel|egg_info|develop)\b|Building (?:wheel|editable) for|\[\d+ lines of output\]"
    r"|Complete output \(\d+ lines\)|Compiling objects\.\.\.|^\W{0,12}building '[^'\n]{1,80}' extension"
    r"|Emitting ninja build file|did not run successfully|Failed to build [`']|[Bb]uild backend (?:returned|failed)"
)
_FOLLOWS: Final = re.compile(
    r"subprocess-exited-with-error|metadata-generation-failed|legacy-install-failure|failed-wheel-build"
    r"|CalledProcessError|SubprocessError|Error compiling objects|Error building extension|error: command ['\"]"
    r"|Failed (?:building|to build)|Could not build wheels|could not compile|failed to solve|error: subprocess"
    r"|did not run successfully|not a git repository|BackendException|BuildBackendError|exit(?:ed with)? (?:code|status)"
    r"|errored out|aborting due to|DistutilsError$|CMake configuration failed|pip's dependency resolver"
)
"""Plain words that follow on every reason, or on none."""
_CAUGHT = b"During handling of the above exception"
_AFTER_A_TRACEBACK = 400
"""Bytes after an exception in which Python says that another followed while it was handled."""
_SHOWN: Final = 400
_MESSAGE_LINES = 8
"""Lines of a message that CMake indents below its head."""
_QUOTED = 4096
"""Bytes of a line that are read."""
_PROBE = re.compile(
    r"\.(?:pyi?|[jt]s|ya?ml|toml|json):\d+:|async_io|Performing Test|conftest\.c|_configtest|CMakeTmp|/tmp/tmp\w{6,12}/(?:test|a|x)\.c\b|\bOpenCV\([\d.]+"
)
"""Checkers of other languages, errors of programs that name their own source, and trials whose failure a build expects."""

FAILED: Final = "First error of a failed build"
REPORTED: Final = "First error that a build reports"
COMMAND: Final = "First failing command of a build"


class LogLine(NamedTuple):
    """A line of a log."""

    number: int
    text: str
    """Without escapes, prefixes and what follows the first 400 characters."""
    tool: str
    """Who wrote it."""

    @property
    def by_any_program(self) -> bool:
        """Whether any program could have written it, which no tool of a build need have run."""
        return self.tool in _PLAIN


class BuildLog:
    """What a build failed by, from blocks that are shown in order."""

    def __init__(self) -> None:
        self._command: LogLine | None = None
        self._installer: LogLine | None = None
        """What pip says of the command of its own that failed: it runs all others."""
        self._error: LogLine | None = None
        self._before: LogLine | None = None
        """The first error before the command that ninja reports; ninja prints a command before its errors."""
        self._plain: LogLine | None = None
        self._begun = False
        self._read = 0
        """Number of the last line that had a form: blocks repeat lines."""

    @property
    def command(self) -> LogLine | None:
        """The first command that failed."""
        return self._command or self._installer

    @property
    def error(self) -> LogLine | None:
        """The first error line of the failing command, by a tool's own form if there is one."""
        return self._error or self._before or (self._plain if self._begun or self.command else None)

    def see(self, block: Block) -> None:
        """Read the lines of the next block of a log."""
        wanted = self._wanted()
        if not wanted:
            return
        content, last = block.content, len(block.content) if block.end is None else block.end
        # nearly every error of a build says so; to search a megabyte for all forms takes four times as long
        if last > BLOCK_BYTES // 2 and content.find(b"rror", 0, last) < 0:
            return
        if b"\x1b" in content or b"&" in content:
            content = without_escapes(content[:last])
            last = len(content)
        number, start, counted = block.number, 0, 0
        while wanted and (found := _program(wanted).search(content, start, last)) is not None:
            # what a form allows before its words may begin on the line before
            begin = content.rfind(b"\n", 0, max(found.end() - 1, 0)) + 1
            end = content.find(b"\n", found.end(), last)
            start = last if end < 0 else end
            number += content.count(b"\n", counted, begin)
            counted = begin
            if number > self._read:
                self._take(content, begin, start, number)
                self._read = number
            wanted = self._wanted()

    def sentences(self) -> Iterator[tuple[LogLine, str]]:
        """The error and the command, each with a sentence for the signatures; nothing without an error."""
        error = self.error
        if error is None:
            return
        # what any program could have said is a guess
        sure = self.command is not None and error is not self._plain
        yield error, f"{FAILED if sure else REPORTED}, by {error.tool}: {error.text}"
        if self.command is not None and sure:
            yield self.command, f"{COMMAND}, by {self.command.tool}: {self.command.text}"

    def _wanted(self) -> frozenset[_Kind]:
        wanted: set[_Kind] = set()
        if self._error is None:
            wanted.add("error")
            if self._plain is None and self._before is None:
                wanted.add("plain" if self._begun else "begun")
        if self._command is None:
            wanted.add("command")
        return frozenset(wanted)

    def _take(self, content: bytes, begin: int, end: int, number: int) -> None:
        text = cleaned(content[begin : min(end, begin + _QUOTED)])
        tool = _tool(_COMMANDS, text)
        if tool is not None:
            self._begun = True
            line = LogLine(number, text[:_SHOWN], tool)
            if tool == "pip":
                self._installer = self._installer or line
            elif self._command is None:
                self._command = line
                if tool == "ninja":
                    self._before, self._error = self._error, None
            return
        tool = _tool(_ERRORS, text)
        if tool is not None:
            if self._error is None and _PROBE.search(text) is None:
                message = _below(content, end) if tool == "CMake" else ""
                self._error = LogLine(number, (text + message)[:_SHOWN], tool)
            return
        if self._begun and self._plain is None:
            tool = _tool(_PLAIN, text)
            caught = _CAUGHT in content[end : end + _AFTER_A_TRACEBACK]
            if tool is not None and not caught and _FOLLOWS.search(text) is None:
                self._plain = LogLine(number, text[:_SHOWN], tool)
                return
        self._begun = self._begun or re.search(_BEGUN, text) is not None


def _below(content: bytes, end: int) -> str:
    """The message that CMake indents below the head of an error."""
    found: list[str] = []
    for line in content[end + 1 : end + _QUOTED].split(b"\n", _MESSAGE_LINES)[:_MESSAGE_LINES]:
        text = cleaned(line)
        if text.startswith(("Call Stack", "-- ", "CMake")):
            break
        if text:
            found.append(text)
    return "".join(f" {text}" for text in found)


def _tool(forms: dict[str, str], text: str) -> str | None:
    """The tool whose form `text` has."""
    content = text.encode()
    return next((name for name, form in forms.items() if compiled(form).search(content) is not None), None)


@lru_cache(maxsize=16)
def _program(wanted: frozenset[_Kind]) -> Any:
    """One program for all lines that are wanted, over whole blocks."""
    forms = {"error": _ERRORS, "command": _COMMANDS, "plain": _PLAIN, "begun": {"": _BEGUN}}
    return any_by_line(tuple(pattern for kind in sorted(wanted) for pattern in forms[kind].values()))
