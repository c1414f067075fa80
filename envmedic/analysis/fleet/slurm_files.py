"""Scripts for Slurm: plans made by srun, machines repaired by jobs that depend on the batch before. Pure.

A machine is a job, not a task of an array: tasks of an array get whichever of its nodes are free, and two may get one.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from envmedic.model.answers.rollout import FleetPlan, NodeSettings, SharedEnvironment, Stage
from envmedic.wording import counted

UNIT = "unit.sh"
"""The script of a job."""
HEALTH = "health.sh"
"""The script that Slurm asks about the health of a node."""
SHARED = "shared.sh"
"""The script of the one job of a shared environment."""
_ENDING = (
    "# witnesses end with the repair; one that was refused at once has asked them nothing",
    'for _ in $(seq 60); do kill -0 "$others" 2> /dev/null || break; sleep 1; done',
    'kill "$others" 2> /dev/null',
    "wait",
)
_LOOK_S = 600
_HEALTH = """\
#!/bin/sh
# Written by `envmedic fleet plan`, for HealthCheckProgram of slurm.conf: it answers from a verdict that is kept on the
# node. An old one is made anew in the background, while no job runs there. Remove it to have a new one at once.
set -u
PATH=${{PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}}
export PATH
umask 077
node=${{SLURMD_NODENAME:-$(hostname -s)}}
kept=/var/cache/envmedic/health-{digest}/$node

if [ "${{1-}}" = look ]; then
    exec 9> "$kept.lock"
    flock -n 9 || exit 0
    jobs=$(squeue --noheader --nodelist="$node" --states=running,completing) && [ -z "$jobs" ] || exit 0
    code=0
    said=$(timeout --kill-after=60 {limit_s} {words} 2>&1 < /dev/null 9>&-) || code=$?
    # what has no answer, as a repair that is under way or no envmedic, is no fault of the node
    case $code in 0) word=good ;; 1 | 4 | 5) word=bad ;; *) word=none ;; esac
    [ -e {prefix} ] || word=bad
    reason=$(printf '%s' "$said" | tr -c '[:print:]' '\\n' | sed -n 's/^Verification *//p; /^error: /p' | cut -c-160)
    printf '%s %s\\n' "$word" "${{reason:-exit $code}}" > "$kept.part" && mv -f "$kept.part" "$kept"
    exit
fi

word=none reason= minutes=5
[ -d "${{kept%/*}}" ] || mkdir -p "${{kept%/*}}"
[ ! -e "$kept" ] || read -r word reason < "$kept"
[ "$word" != good ] || minutes=60
if [ -z "$(find "$kept" -mmin "-$minutes" 2> /dev/null)" ]; then
    setsid --fork "$0" look > /dev/null 2>&1 < /dev/null # Slurm ends its own group of processes
fi
# once for each verdict: a node that somebody else drained keeps their reason, and is not resumed
if [ "$word" != none ] && [ -n "$(find "$kept" -newer "$kept.told" 2> /dev/null || echo new)" ]; then
    case $word,$(sinfo --noheader --nodes="$node" --format='%T %E') in
    bad,drain* | bad,down* | bad,) ;;
    bad,*) scontrol update nodename="$node" state=drain reason="envmedic health: $reason" && : > "$kept.told" ;;
    good,drain*' envmedic health:'*) scontrol update nodename="$node" state=resume && : > "$kept.told" ;;
    good,?*) : > "$kept.told" ;;
    esac
fi
[ "$word" != bad ] || {{ echo "envmedic: $reason"; exit 1; }}
"""


def planning(fleet: FleetPlan, folder: str) -> str:
    """Return the script that makes the plan of each class on one of its machines."""
    lines = ["#!/bin/sh", "# Written by `envmedic fleet plan`.", "set -eu", f"cd {shlex.quote(folder)}"]
    for item in fleet.classes:
        words = [*fleet.settings.command, "plan", "-p", fleet.prefix, "--for-class", "--json", "--quiet"]
        words += ["--playbook", fleet.playbook] if fleet.playbook is not None else ["--log", "-"]
        words += [word for link in fleet.settings.find_links for word in ("--find-links", link)]
        source = "/dev/null" if fleet.log is None else fleet.log
        where = ["srun", f"--nodelist={item.maker}", "--nodes=1", "--ntasks=1", f"--input={source}"]
        lines.append(f"{shlex.join([*where, *words])} > .{item.file}")
        lines.append(f"mv .{item.file} {item.file}")
    return "\n".join(lines) + "\n"


def health(fleet: FleetPlan) -> str:
    """Return the script for Slurm's HealthCheckProgram."""
    words = [*fleet.settings.command, "verify", "-p", fleet.prefix, "--profile", "quick", "--quiet"]
    return _HEALTH.format(
        digest=hashlib.sha256(fleet.prefix.encode()).hexdigest()[:8],
        limit_s=_LOOK_S,
        words=shlex.join([*words, *(["--no-gpu"] if fleet.settings.no_gpu else [])]),
        prefix=shlex.quote(fleet.prefix),
    )


def rollout(fleet: FleetPlan, settings: NodeSettings, stages: Sequence[Stage], folder: str) -> dict[str, str]:
    """Return the script that submits the stages, and that of its jobs, by file name."""
    files = {node: item.file for item in fleet.classes for node in item.nodes}
    lines = _submission("fleet rollout", folder, "results", UNIT, drain=settings.drain)
    for stage in stages:
        lines += [f"# {stage.name}: {counted(len(stage.nodes), 'machine')}, of which {stage.allowed} may fail", "jobs="]
        lines += [f"submit {node} {files[node]}" for node in stage.nodes]
        if stage.allowed == 0:
            lines.append('after="afterok$jobs"')
            continue
        # more than one may fail: a job of its own counts, and fails where there are too many
        gate = shlex.join([*settings.command, "fleet", "status", folder, "--stage", stage.name, "--quiet"])
        where = f'--dependency="afterany$jobs" --job-name=envmedic-{stage.name} --output="$PWD/logs/{stage.name}.txt"'
        lines.append(f'after="afterok:$(sbatch --parsable --ntasks=1 {where} --wrap {shlex.quote(gate)})"')
    return {"rollout.sh": "\n".join(lines) + "\n", UNIT: unit(settings, folder)}


def unit(settings: NodeSettings, folder: str) -> str:
    """Return the script of the job that repairs one machine; what it says is kept as a whole, or not at all."""
    drain = [
        'if [ "$code" -ne 0 ]; then scontrol update nodename="$1" state=drain reason="envmedic: exit $code"',
        f"else {_GIVE_BACK}; fi",
    ]
    return _unit(folder, "results", _applying(settings), settings.limit_s, drain if settings.drain else [])


def _applying(settings: NodeSettings) -> list[str]:
    """The words that carry a plan out, which comes after them."""
    words = [*settings.command, "apply", "--yes", "--json", "--quiet", *(["--offline"] if settings.offline else [])]
    words += ["--no-gpu"] if settings.no_gpu else []
    return words + [word for link in settings.find_links for word in ("--find-links", link)]


def shared(fleet: FleetPlan, settings: NodeSettings, who: SharedEnvironment, folder: str) -> dict[str, str]:
    """Return the script that submits the one job of a shared environment, and that job, by file name."""
    others = (*who.witnesses, *who.machines)
    names = ",".join((who.holder, *others))
    options = f"--job-name=envmedic --nodes={len(others) + 1} --ntasks-per-node=1 --exclusive --no-requeue"
    submit = f'sbatch {options} --nodelist={names} --output="$PWD/logs/shared.txt" "$PWD/{SHARED}"'
    witness = [*settings.command, "fleet", "witness", "-p", fleet.prefix, "--limit", str(settings.limit_s)]
    witness += ["--no-gpu"] if settings.no_gpu else []
    step = "srun --overlap --kill-on-bad-exit=0"
    # Slurm's own name of a file has the host, which need not be the node
    answer = shlex.join(["sh", "-c", f'exec {shlex.join(witness)} > "logs/witness-$SLURMD_NODENAME.txt" 2>&1'])
    ask = f"{step} --nodes={len(others)} --ntasks={len(others)} --nodelist={','.join(others)} {answer} &"
    words = [*_applying(settings), *_asking(who, settings), who.file]
    repair = shlex.join(["timeout", "--kill-after=60", str(settings.limit_s), *words])
    result = f"results/{who.holder}.json"
    job = [
        "#!/bin/sh",
        "# The job of an environment that its machines share: one repairs it, the others answer what it asks.",
        f"cd {shlex.quote(folder)} || exit 1",
        *([ask, "others=$!"] if others else []),
        "code=0",
        f"{step} --nodes=1 --ntasks=1 --nodelist={who.holder} {repair} > results/.shared || code=$?",
        f"sync results/.shared && mv -f results/.shared {result}",
        *(_ENDING if others else ()),
        'exit "$code"',
    ]
    head = ["#!/bin/sh", "# Written by `envmedic fleet rollout --shared`. Run it where sbatch is.", "set -eu"]
    lines = [*head, f"cd {shlex.quote(folder)}", "mkdir -p results logs", submit]
    return {"rollout.sh": "\n".join(lines) + "\n", SHARED: "\n".join(job) + "\n"}


def _asking(who: SharedEnvironment, settings: NodeSettings) -> list[str]:
    """The options of a repair that asks other machines."""
    found = ["--witness-limit", str(max(1, settings.limit_s // 2))]
    found += ["--layout", who.layout] if who.layout else []
    found += ["--witnesses", ",".join(who.witnesses)] if who.witnesses else []
    return found + (["--machines", ",".join(who.machines)] if who.machines else [])


def undoing(
    fleet: FleetPlan, settings: NodeSettings, nodes: Sequence[str], folder: str, who: SharedEnvironment | None
) -> dict[str, str]:
    """Return the script that submits an undo for each machine, and that of its jobs, by file name.

    Where machines share the environment, no program on any of them may use it.
    """
    files = {node: item.file for item in fleet.classes for node in item.nodes}
    lines = [*_submission("fleet undo", folder, "undone", "undo-unit.sh", drain=settings.drain), "jobs="]
    if who is not None:
        every = (who.holder, *who.witnesses, *who.machines)
        users = shlex.join([*settings.command, "fleet", "witness", "-p", fleet.prefix, "--users"])
        lines.append(f"srun --nodes={len(every)} --ntasks-per-node=1 --nodelist={','.join(every)} {users}")
    lines += [f"submit {node} {files[node]}" for node in nodes]
    words = [*settings.command, "undo", "--yes", "--json", "--quiet", "--plan"]
    job = _unit(folder, "undone", words, settings.limit_s, [])
    return {"undo.sh": "\n".join(lines) + "\n", "undo-unit.sh": job}


# what envmedic drained itself, and nobody else
_GIVE_BACK = (
    'case $(scontrol show node "$1" 2>/dev/null) in *"Reason=envmedic"*) '
    'scontrol update nodename="$1" state=resume ;; esac'
)


def _submission(verb: str, folder: str, results: str, job: str, *, drain: bool) -> list[str]:
    options = "--parsable --job-name=envmedic --nodes=1 --ntasks=1 --exclusive --no-requeue --kill-on-invalid-dep=yes"
    return [
        "#!/bin/sh",
        f"# Written by `envmedic {verb}`, which writes it anew for what is left to do. Run it where sbatch is.",
        "set -eu",
        f"cd {shlex.quote(folder)}",
        f"mkdir -p {results} logs",
        "after=",
        "submit() { # MACHINE PLAN",
        # no job starts on a machine that is drained, so that one of a --retry would wait for ever
        *([f"    {_GIVE_BACK}"] if drain else []),
        f'    id=$(sbatch {options} --nodelist="$1" ${{after:+--dependency="$after"}} --output="$PWD/logs/$1.txt" \\',
        f'        "$PWD/{job}" "$1" "$2")',
        '    jobs="$jobs:$id"',
        "}",
    ]


def _unit(folder: str, results: str, words: Sequence[str], limit_s: int, then: Sequence[str]) -> str:
    # SIGTERM leaves the environment as it was; what is still there a minute later is ended
    run = f'timeout --kill-after=60 {limit_s} {shlex.join(words)} "$2" > "{results}/.$1" || code=$?'
    return (
        "\n".join([
            "#!/bin/sh",
            "# The job of one machine: MACHINE PLAN",
            f"cd {shlex.quote(folder)} || exit 1",
            "code=0",
            run,
            f'sync "{results}/.$1" && mv -f "{results}/.$1" "{results}/$1.json"',
            *then,
            'exit "$code"',
        ])
        + "\n"
    )  # fmt: skip
