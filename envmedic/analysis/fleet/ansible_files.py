"""Playbooks for Ansible: plans made, rolled out and undone by the collection ``envmedic.fleet``. Pure.

Every text from outside is written as JSON, which YAML reads as it is.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from envmedic.analysis.fleet.stages import CANARY
from envmedic.model.answers.rollout import FleetPlan, NodeSettings, SharedEnvironment, Stage

_HERE = "{{ playbook_dir }}"


def command(collections: str, inventory: str, playbook: str) -> str:
    """Return the command that runs a playbook; `collections` is where envmedic keeps its collection."""
    # https://docs.ansible.com/ansible/latest/reference_appendices/config.html#collections-paths
    path = f"{collections}:${{ANSIBLE_COLLECTIONS_PATH:-$HOME/.ansible/collections:/usr/share/ansible/collections}}"
    quoted = path if shlex.quote(collections) == collections else json.dumps(path)
    return f"ANSIBLE_COLLECTIONS_PATH={quoted} {shlex.join(['ansible-playbook', '-i', inventory, playbook])}"


def planning(fleet: FleetPlan) -> str:
    """Return the playbook that makes the plan of each class on one of its machines."""
    makers = [item.maker for item in fleet.classes]
    files = {item.maker: item.file for item in fleet.classes}
    task = [
        ("prefix", fleet.prefix),
        ("envmedic", list(fleet.settings.command)),
        ("dest", f"{_HERE}/{_of_host(files)}"),
    ]
    if fleet.playbook is not None:
        task.append(("playbook", fleet.playbook))
    if fleet.log is not None:
        task.append(("log", f"{_HERE}/{fleet.log}"))
    if fleet.settings.find_links:
        task.append(("find_links", list(fleet.settings.find_links)))
    lines = [*_head("fleet plan"), *_play("a plan for each class, made on one of its machines", makers, {})]
    return _text([*lines, *_variables(files), *_task("Make the plan", "plan", task)])


def rollout(fleet: FleetPlan, settings: NodeSettings, stages: Sequence[Stage], totals: Mapping[str, int]) -> str:
    """Return the playbook that repairs the machines of these stages; `totals` has the size of each as a whole.

    Stages that are whole and may fail alike are batches of one play, since there Ansible counts as envmedic does. One
    that was cut off is a play of its own, with the failures that are left to it.
    """
    files = {node: item.file for item in fleet.classes for node in item.nodes}
    lines = _head("fleet rollout")
    for group in _plays(stages, totals):
        nodes = [node for stage in group for node in stage.nodes]
        keys: dict[str, object] = {"max_fail_percentage": _percentage(group)}
        if group[0].name == CANARY:
            keys = {"any_errors_fatal": True, "max_fail_percentage": 0}
        elif len(group) > 1:
            keys["serial"] = [len(stage.nodes) for stage in group]
        own = {node: files[node] for node in nodes}
        name = "canaries" if group[0].name == CANARY else f"batch {' '.join(stage.name for stage in group)}"
        task = [("plan", f"{_HERE}/{_of_host(own)}"), ("results", f"{_HERE}/results"), *_options(settings)]
        lines += [*_play(name, nodes, keys), *_variables(own), *_task("Repair", "apply", task)]
    return _text(lines)


def shared(fleet: FleetPlan, settings: NodeSettings, who: SharedEnvironment) -> str:
    """Return the playbook that repairs an environment which its machines share: one repairs it, the others answer."""
    others = [*who.witnesses, *who.machines]
    words = [*settings.command, "fleet", "witness", "-p", fleet.prefix, "--machine", "{{ inventory_hostname }}"]
    words += ["--limit", str(settings.limit_s), *(["--no-gpu"] if settings.no_gpu else [])]
    task = [("plan", f"{_HERE}/{who.file}"), ("results", f"{_HERE}/results"), *_options(settings)]
    task += [("witnesses", list(who.witnesses)), ("machines", list(who.machines))]
    task += [("layout", who.layout)] if who.layout else []
    holder = f"inventory_hostname == {_json(who.holder)}"
    lines = [
        *_head("fleet rollout --shared"),
        *_play("one repair, proven on several machines", [who.holder, *others], {}),
        *_command("Answer what the repair asks", words, f"not ansible_check_mode and not ({holder})"),
        f"      async: {settings.limit_s}",
        "      poll: 0",
        "      register: envmedic_witness",
        *_task("Repair", "apply", task)[1:],
        f"      when: {_json(holder)}",
        # its answer is in the record of the repair; one that was refused at once has asked nobody
        '    - name: "See that they have ended"',
        "      ansible.builtin.async_status:",
        '        jid: "{{ envmedic_witness.ansible_job_id }}"',
        "      register: envmedic_ended",
        "      until: envmedic_ended is finished",
        "      retries: 30",
        "      delay: 1",
        "      failed_when: false",
        "      changed_when: false",
        '      when: "envmedic_witness.ansible_job_id is defined"',
    ]
    return _text(lines)


def _command(name: str, words: Sequence[str], when: str) -> list[str]:
    lines = [
        "  tasks:",
        f"    - name: {_json(name)}",
        "      ansible.builtin.command:",
        f"        argv: {_json(list(words))}",
    ]
    return [*lines, f"      when: {_json(when)}", "      changed_when: false"]


def undoing(fleet: FleetPlan, settings: NodeSettings, nodes: Sequence[str], who: SharedEnvironment | None) -> str:
    """Return the playbook that takes the repairs of these machines back.

    Where machines share the environment, no program on any of them may use it.
    """
    files = {node: item.file for item in fleet.classes for node in item.nodes if node in nodes}
    task: list[tuple[str, object]] = [("plan", f"{_HERE}/{_of_host(files)}"), ("results", f"{_HERE}/undone")]
    task += [("envmedic", list(settings.command)), ("limit_s", settings.limit_s)]
    lines = _head("fleet undo")
    if who is not None:
        words = [*settings.command, "fleet", "witness", "-p", fleet.prefix, "--users"]
        every = [who.holder, *who.witnesses, *who.machines]
        lines += _play("programs that use it", every, {"any_errors_fatal": True, "max_fail_percentage": 0})
        lines += _command("Ask for programs that use the environment", words, "not ansible_check_mode")
    lines += [*_play("undo", nodes, {"max_fail_percentage": 100}), *_variables(files)]
    return _text([*lines, *_task("Undo", "undo", task)])


def _plays(stages: Sequence[Stage], totals: Mapping[str, int]) -> Iterator[list[Stage]]:
    group: list[Stage] = []
    for stage in stages:
        whole = stage.name != CANARY and len(stage.nodes) == totals[stage.name]
        alike = _percentage([*group, stage]) is not None
        if group and not (whole and alike):
            yield group
            group = []
        if whole:
            group.append(stage)
        else:
            yield [stage]
    if group:
        yield group


def _percentage(group: Sequence[Stage]) -> float | None:
    """A percentage that lets exactly so many of each stage fail as may; None where there is none.

    Ansible stops where the failed part of a batch is larger than it.
    """
    least = max(100.0 * stage.allowed / len(stage.nodes) for stage in group)
    most = min(100.0 * (stage.allowed + 1) / len(stage.nodes) for stage in group)
    if least == 0:
        return 0
    return round((least + most) / 2, 6) if least < most else None


def _options(settings: NodeSettings) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = [("envmedic", list(settings.command)), ("limit_s", settings.limit_s)]
    if settings.find_links:
        found.append(("find_links", list(settings.find_links)))
    return [*found, ("offline", settings.offline), ("no_gpu", settings.no_gpu)]


def _of_host(files: Mapping[str, str]) -> str:
    """The file of a machine's class: its name where all have one class, else looked up."""
    names = set(files.values())
    return names.pop() if len(names) == 1 else "{{ envmedic_files[inventory_hostname] }}"


def _head(verb: str) -> list[str]:
    return [f"# Written by `envmedic {verb}`, which writes it anew for what is left to do.", "---"]


def _play(name: str, nodes: Sequence[str], keys: Mapping[str, object]) -> list[str]:
    lines = [f"- name: {_json(name)}", f"  hosts: {_json(list(nodes))}", "  gather_facts: false"]
    return [*lines, "  strategy: ansible.builtin.linear", *(f"  {key}: {_json(value)}" for key, value in keys.items())]


def _variables(files: Mapping[str, str]) -> list[str]:
    if len(set(files.values())) == 1:
        return []
    return ["  vars:", f"    envmedic_files: {_json(dict(files))}"]


def _task(name: str, module: str, values: Sequence[tuple[str, object]]) -> list[str]:
    lines = ["  tasks:", f"    - name: {_json(name)}", f"      envmedic.fleet.{module}:"]
    return lines + [f"        {key}: {_json(value)}" for key, value in values]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"
