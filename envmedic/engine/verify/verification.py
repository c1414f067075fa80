"""Running checks in an environment: those of ``kernels/``, the installer's own check and the user's command."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import msgspec

from envmedic.engine.verify import concurrency, kernel_session, programs, user_program
from envmedic.engine.verify.kernel_session import NO_BYTECODE, KernelSession, message_of, plain
from envmedic.engine.verify.verdict import FAILURES, judge, reproduced, verification
from envmedic.engine.verify.waiting import Waiting, longest_first
from envmedic.model.checks import Check, Outcome, Phase, Role, known_check
from envmedic.model.events import CheckFinished, Emit, OutputLine
from envmedic.model.ports import CommandResult, FactsJudge, ProgramJudge, Runner
from envmedic.model.registries.check_kinds import CHECKS
from envmedic.redact import redact_text

__all__ = ["judge", "merged", "reproduced", "run_checks", "verification"]

_ROLES: tuple[Role, ...] = ("informative", "regression", "playbook", "reproduction")
"""Weakest first: each asks for at least what those before it ask for."""
_KEPT_DETAIL = 4000
_NO_KERNELS = ("pip-check", "programs", "facts", "command")
"""Checks that no script in the environment runs."""
_OF_NAMES = frozenset({"import", "import-sequence", "extension-smoke"})
"""Checks whose arguments are names."""
_NOISE = re.compile(
    r"(Using |Checked |Found |Resolved |Audited |warning: |WARNING: |DEPRECATION: |\[notice\]|hint: )"
    r"|No broken requirements found|All installed packages are compatible"
)
"""Lines of ``uv pip check`` and ``pip check`` that name no problem."""
_SHELL_SIGNALS = frozenset(
    {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV}
)


@dataclass
class _Run:
    """One verification while it runs: outcomes by the index of their check."""

    checks: Sequence[Check]
    runner: Runner
    phase: Phase
    emit: Emit
    waiting: Waiting
    outcomes: dict[int, list[Outcome]] = field(default_factory=dict)

    def add(self, index: int, outcome: Outcome) -> None:
        """Keep an outcome and emit it, without secrets that a program printed; a failure with what it speaks for."""
        outcome = msgspec.structs.replace(
            outcome,
            reason=redact_text(outcome.reason),
            detail=redact_text(outcome.detail),
            warnings=tuple(map(redact_text, outcome.warnings)),
        )
        if outcome.status in FAILURES:
            outcome = msgspec.structs.replace(outcome, points_to=CHECKS[self.checks[index].name].points_to)
        self.outcomes.setdefault(index, []).append(outcome)
        self.emit(CheckFinished(phase=self.phase, outcome=outcome))
        self.waiting.heard(outcome)
        self.emit(self.waiting.progress(self.phase))

    def indices(self, *names: str, others: bool = False) -> list[int]:
        return [i for i, check in enumerate(self.checks) if (check.name in names) != others]

    def in_order(self) -> tuple[Outcome, ...]:
        return tuple(outcome for index, check in enumerate(self.checks) for outcome in self._of(index, check))

    def _of(self, index: int, check: Check) -> list[Outcome]:
        """The outcomes of one check, whose units run side by side: imports by their names, others the CPU first."""
        places = {f"import {name}": place for place, name in enumerate(check.arguments)}
        found = self.outcomes.get(index, ())
        return sorted(found, key=lambda outcome: (places.get(outcome.check, 0), outcome.device not in {None, "cpu"}))


def run_checks(
    checks: Sequence[Check],
    runner: Runner,
    phase: Phase,
    emit: Emit,
    *,
    pip_check: Sequence[str] | None = None,
    facts: FactsJudge | None = None,
    judge: ProgramJudge | None = None,
    home: Path | None = None,
    no_gpu: bool = False,
    timeout_s: float | None = None,
    devices: str | None = None,
    earlier: Mapping[str, float] = MappingProxyType({}),
    byte_code: Path | None = None,
) -> tuple[Outcome, ...]:
    """Run every check on every device that it needs, and emit `CheckFinished` for each outcome as it comes.

    `pip_check` is the argv that lists unmet requirements; `facts` judges what is observed, `judge` what a user's
    program of a kept case prints; `home` is the environment of which the runner may have a copy; `no_gpu` leaves GPUs
    alone; `timeout_s` replaces each check's own limit, such a program's apart; `devices` is the value of
    CUDA_VISIBLE_DEVICES for them; `earlier` has the seconds that checks took before, by name; `byte_code` is a folder
    for byte code of modules that have none. Equal checks run once, in the strongest of their roles. A crash, a hang or
    an interpreter that does not start is an outcome. Raises InputError for an unknown check.
    """
    for check in checks:
        known_check(check.name)
    chosen = merged(checks, timeout_s)
    as_begun = longest_first(chosen, earlier)
    run = _Run(chosen, runner, phase, emit, Waiting(as_begun, earlier, concurrency.at_once()))
    emit(run.waiting.progress(phase))
    _run_kernels(run, as_begun, "--no-gpu was given" if no_gpu else "", devices, byte_code)
    for index in run.indices("pip-check"):
        run.add(index, _pip_check(run, run.checks[index], pip_check))
    for index in run.indices("programs"):
        run.add(index, programs.start(run.checks[index], run.runner, home))
    for index in run.indices("facts"):
        _judge_facts(run, index, facts)
    for index in run.indices("command"):
        run.add(index, _command(run, run.checks[index], judge))
    return run.in_order()


def merged(checks: Iterable[Check], timeout_s: float | None = None) -> list[Check]:
    """Equal checks as one, with the strongest role, the longest limit, and GPUs if any of them wants GPUs.

    A name that several imports share is left to the one with the strongest role.
    """
    found: dict[tuple[str, tuple[str, ...]], Check] = {}
    for check in checks:
        known = found.setdefault((check.name, check.arguments), check)
        found[check.name, check.arguments] = msgspec.structs.replace(
            known,
            role=max(known.role, check.role, key=_ROLES.index),
            gpu=known.gpu or check.gpu,
            timeout_s=timeout_s or max(known.timeout_s, check.timeout_s),
        )
    return _each_name_once(list(found.values()))


def _each_name_once(checks: list[Check]) -> list[Check]:
    taken: set[str] = set()
    for index in sorted(range(len(checks)), key=lambda index: -_ROLES.index(checks[index].role)):
        check = checks[index]
        if check.name == "import" and check.arguments:
            names = tuple(dict.fromkeys(name for name in check.arguments if name not in taken))
            taken.update(names)
            checks[index] = msgspec.structs.replace(check, arguments=names)
    return [check for check in checks if check.name != "import" or check.arguments or not taken]


def _run_kernels(
    run: _Run, as_begun: Sequence[Check], no_gpu: str, devices: str | None, byte_code: Path | None
) -> None:
    indices = run.indices(*_NO_KERNELS, others=True)
    nameless = [i for i in indices if run.checks[i].name in _OF_NAMES and not run.checks[i].arguments]
    for index in nameless:
        indices.remove(index)
        run.add(index, _outcome(run.checks[index], "skip", reason="no names were given"))
    if not indices:
        return
    session = KernelSession(run.checks, run.add)

    def on_line(line: str) -> None:
        if not session.hear(line) and line.strip():
            run.emit(OutputLine(source="checks", line=plain(line)))

    chosen = {index: as_begun[index] for index in indices}
    try:
        # in place only the path is new: torch is imported once for all that is looked at there
        how = {"torch_once": run.phase == "smoke", "apart": run.phase == "before"}
        result = kernel_session.start(
            chosen, run.runner, on_line, no_gpu=no_gpu, devices=devices, byte_code=byte_code, **how
        )
    except OSError as error:
        _cut_off(run, indices, "crash", f"{run.runner.python} cannot be started: {error.strerror}", "")
        return
    if not session.ended:
        _report_cut_off(run, indices, result)


def _report_cut_off(run: _Run, indices: Sequence[int], result: CommandResult) -> None:
    """The session itself ended too early: no check of it may count as complete."""
    output = plain(result.stderr + _without_messages(result.stdout))
    reason = f"the checks were cut off: {_ending(result, output)}"
    _cut_off(run, indices, "timeout" if result.timed_out else "crash", reason, output)


def _cut_off(run: _Run, indices: Sequence[int], status: str, reason: str, output: str) -> None:
    for index in indices:
        check = run.checks[index]
        done = {outcome.check for outcome in run.outcomes.get(index, ())}
        names = [f"import {name}" for name in check.arguments] if check.name == "import" else [_title(check)]
        for name in names:
            if name not in done:
                fields = {"reason": reason, "detail": output[-_KEPT_DETAIL:]}
                run.add(index, _outcome(msgspec.structs.replace(check, name=name), status, **fields))


def _title(check: Check) -> str:
    """The check as its outcome is called."""
    names = [part for part in check.arguments if "=" not in part] if check.name == "import-sequence" else []
    return " ".join((check.name, *names))


def _judge_facts(run: _Run, index: int, judge_facts: FactsJudge | None) -> None:
    check = run.checks[index]
    if judge_facts is None:
        run.add(index, _outcome(check, "skip", reason="nothing observes the environment here"))
        return
    for outcome in judge_facts(check, run.runner, run.phase):
        run.add(index, outcome)


def _pip_check(run: _Run, check: Check, argv: Sequence[str] | None) -> Outcome:
    if argv is None:
        return _outcome(check, "skip", reason="there is no installer to ask")
    try:
        result = run.runner(argv, env=NO_BYTECODE, timeout_s=check.timeout_s)
    except OSError as error:
        return _outcome(check, "crash", reason=f"{argv[0]} cannot be started: {error.strerror}")
    if result.returncode == 0:
        return _outcome(check, "pass", seconds=result.seconds)
    output = plain(result.stdout + result.stderr)
    if result.timed_out or result.returncode != 1:
        # an installer that could not ask the interpreter lists nothing, with which a later list could be compared
        failed = _failed(check, result, output)
        return msgspec.structs.replace(failed, status="crash") if failed.status == "fail" else failed
    problems = sorted({line.rstrip() for line in output.splitlines() if line.strip() and not _NOISE.match(line)})
    reason = problems[0] if len(problems) == 1 else f"{len(problems)} unmet requirements"
    return _outcome(check, "fail", reason=reason, detail="\n".join(problems), seconds=result.seconds)


def _command(run: _Run, check: Check, judge: ProgramJudge | None) -> Outcome:
    """Run the user's command.

    One that cannot be started is skipped, and so never passes nor reproduces a fault. That the environment's own
    Python, which starts it, does not is a fault of the environment.
    """
    if check.program is not None and judge is not None:
        try:
            return user_program.run(check, check.program, run.runner, run.phase, run.emit, judge=judge)
        except OSError as error:
            return _outcome(check, "crash", reason=f"{run.runner.python} cannot be started: {error.strerror}")
    named = msgspec.structs.replace(check, name=" ".join(("command", *check.arguments)))
    refused = ""

    def on_line(line: str) -> None:
        nonlocal refused
        message = message_of(line) or {}
        refused = message.get("refused", refused)
        if not message and line:
            run.emit(OutputLine(source="command", line=plain(line)))

    argv = kernel_session.launcher(run.runner, check.arguments)
    try:
        result = run.runner(argv, env=NO_BYTECODE, on_line=on_line, timeout_s=check.timeout_s)
    except OSError as error:
        return _outcome(named, "crash", reason=f"{argv[0]} cannot be started: {error.strerror}")
    if refused:
        return _outcome(named, "skip", reason=refused)
    if result.returncode == 0 and not result.timed_out:
        return _outcome(named, "pass", seconds=result.seconds, program="passed")
    failed = _failed(named, result, plain(result.stdout + result.stderr))
    return msgspec.structs.replace(failed, program="failed")


def _failed(check: Check, result: CommandResult, output: str) -> Outcome:
    """The outcome of a command that did not end well."""
    name = None if result.timed_out else _signal(result.returncode)
    status = "timeout" if result.timed_out else "crash" if name else "fail"
    reason, detail = _ending(result, output), output[-_KEPT_DETAIL:]
    return _outcome(check, status, reason=reason, detail=detail, signal=name, seconds=result.seconds)


def _signal(returncode: int) -> str | None:
    """Name of the signal behind a return code: a negative number, or a shell's 128 + number for the usual crashes."""
    number = -returncode if returncode < 0 else returncode - 128
    if returncode >= 0 and number not in _SHELL_SIGNALS:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _ending(result: CommandResult, output: str) -> str:
    """How a command ended, with the last line that it printed."""
    if result.timed_out:
        how = f"no end within {result.seconds:.0f} s"
    elif name := _signal(result.returncode):
        how = f"ended by {name}"
    else:
        how = f"exit status {result.returncode}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f"{how}: {lines[-1][:500]}" if lines else how


def _without_messages(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if message_of(line) is None)


def _outcome(check: Check, status: str, **fields: object) -> Outcome:
    parts: Mapping[str, object] = {"check": check.name, "status": status, "role": check.role, **fields}
    return msgspec.convert(parts, Outcome)
