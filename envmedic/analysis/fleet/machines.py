"""Many machines at a glance: classes, drift and outcomes, from what each of them sent. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from envmedic.analysis.fleet.content import content_differences, lock_differences
from envmedic.analysis.fleet.environment_class import class_differences, class_of
from envmedic.model.answers.content import Content, ContentDifference, EnvironmentClass
from envmedic.model.answers.fleet import (
    Drift,
    FleetClass,
    FleetStatus,
    NodeDrift,
    NodeEnd,
    NodeStatus,
    SilentNode,
    Survey,
)
from envmedic.model.facts import Host, Interpreter
from envmedic.model.lock import Lock
from envmedic.model.record import ErrorDocument

_LETTERS = 26
_ENDS: Mapping[str, NodeEnd] = {
    "repaired": "repaired", "already": "already", "partial": "partial", "changed": "changed", "refused": "refused",
    "failed": "failed", "other-class": "other-class", "unchanged": "failed",
}  # fmt: skip


class SentFacts(msgspec.Struct, frozen=True):
    """The part of a machine's facts that classes are made of."""

    host: Host
    interpreter: Interpreter
    content: Content


class SentPlan(msgspec.Struct, frozen=True):
    """The part of a plan in a record by which it is known."""

    id: str
    class_plan: str = ""


class SentRecord(msgspec.Struct, frozen=True):
    """The part of the record or error document of ``apply --json`` that says how it ended."""

    schema: str = ""
    transaction: str = ""
    state: str = ""
    outcome: str | None = None
    plan: SentPlan | None = None
    failure: ErrorDocument | None = None
    summary: str = ""
    cause: str | None = None


def survey(nodes: Mapping[str, SentFacts], silent: Sequence[SilentNode]) -> Survey:
    """Return the classes of machines, largest first, with what each differs in from the first."""
    groups: dict[EnvironmentClass, list[str]] = {}
    for node in sorted(nodes):
        sent = nodes[node]
        groups.setdefault(class_of(sent.host, sent.interpreter, sent.content), []).append(node)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
    classes: list[FleetClass] = []
    for number, (environment, names) in enumerate(ordered):
        machine: tuple[str, ...] = ()
        content: tuple[ContentDifference, ...] = ()
        if classes:
            first = classes[0]
            alike = msgspec.structs.replace(environment, content=first.environment.content)
            machine = class_differences(first.environment, alike)
            content = content_differences(nodes[first.nodes[0]].content, nodes[names[0]].content)
        classes.append(
            FleetClass(
                name=_letters(number), environment=environment, nodes=tuple(names), machine=machine, content=content
            )
        )
    return Survey(classes=tuple(classes), silent=tuple(silent))


def collecting(engine: str, target: str, prefix: str, folder: str, command: Sequence[str] = ("envmedic",)) -> str:
    """Return the command by which Ansible or Slurm collects the facts of each machine into a file of its own."""
    asked = shlex.join([*command, "facts", "-p", prefix, "--json", "--quiet"])
    if engine == "ansible":
        # https://docs.ansible.com/ansible/latest/cli/ansible.html
        return shlex.join(["ansible", "all", "-i", target, "-m", "command", "-a", asked, "--tree", folder])
    # not srun's own --output with %N, which is the name of the host: that of the node can be another one
    where = shlex.join([f"--nodelist={target}", "--ntasks-per-node=1"])
    return f"srun {where} sh -c {shlex.quote(f'exec {asked} > {shlex.quote(folder)}/$SLURMD_NODENAME.json')}"


def _letters(number: int) -> str:
    """``A`` to ``Z``, then ``AA``, as columns of a table are named."""
    rest, place = divmod(number, _LETTERS)
    return (_letters(rest - 1) if rest else "") + chr(ord("A") + place)


def drift(against: str, wanted: Content | Lock, nodes: Mapping[str, Content], silent: Sequence[SilentNode]) -> Drift:
    """Return which machines have another content than `wanted`, and in what; a lock tells of distributions alone."""
    known: dict[str, tuple[ContentDifference, ...]] = {}  # of a thousand machines, few differ in ways of their own
    for found in nodes.values():
        if found.digest not in known:
            judge = lock_differences(wanted, found) if isinstance(wanted, Lock) else content_differences(wanted, found)
            known[found.digest] = judge
    by_node = {node: known[nodes[node].digest] for node in sorted(nodes)}
    return Drift(
        against=against,
        same=tuple(node for node, differences in by_node.items() if not differences),
        drifted=tuple(NodeDrift(node=node, differences=found) for node, found in by_node.items() if found),
        silent=tuple(silent),
    )


def status(nodes: Mapping[str, SentRecord], silent: Sequence[SilentNode], *, plan: str | None = None) -> FleetStatus:
    """Return how a plan ended on each machine; one without a document is ``unknown``, as is one about another plan."""
    found = [_ended(node, sent, plan) for node, sent in nodes.items()]
    found += [NodeStatus(node=item.node, outcome="unknown", reason=item.why) for item in silent]
    found.sort(key=lambda item: item.node)
    return FleetStatus(counts=counted(found), nodes=tuple(found))


def counted(nodes: Iterable[NodeStatus]) -> dict[str, int]:
    """Return the number of machines by outcome."""
    return dict(sorted(Counter(item.outcome for item in nodes).items()))


def _ended(node: str, sent: SentRecord, wanted: str | None) -> NodeStatus:
    plan = (sent.plan.class_plan or sent.plan.id) if sent.plan is not None else ""
    if wanted is not None and plan and plan != wanted:
        return NodeStatus(node=node, outcome="unknown", plan=plan, reason="its document is about another plan")
    return NodeStatus(
        node=node,
        outcome=_ENDS.get(sent.outcome or "", "refused" if sent.summary else "unknown"),
        plan=plan,
        transaction=sent.transaction,
        reason=reason(sent),
    )


def reason(sent: SentRecord) -> str:
    """Return what kept a machine from being done, in words."""
    failure = sent.failure
    return failure.summary if failure is not None else ": ".join(filter(None, (sent.summary, sent.cause)))


def differences(wanted: EnvironmentClass, found: EnvironmentClass | None) -> tuple[str, ...]:
    """Return in what a plan is for another class of environments, in words."""
    return ("It is for one environment alone",) if found is None else class_differences(wanted, found)
