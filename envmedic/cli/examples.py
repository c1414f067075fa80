"""Examples of every command, for its help, the manual page and the reference."""

from __future__ import annotations

Example = tuple[str, str]
"""A command line without the word ``envmedic``, and what it does."""

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "": (
        ("run -- python train.py", "your program as it is; when it fails, what is wrong"),
        ("diagnose error.log", "the same for an error text that you have"),
        ("plan --log error.log", "what a repair would do; changes nothing"),
        ("apply --log error.log", "repair a clone, prove it, swap it in"),
        ("undo", "bring the old environment back"),
    ),
    "diagnose": (
        ("diagnose error.log", "the fault behind an error text, in the active environment"),
        ("diagnose -p .venv", "what the facts of an environment show without one"),
        ("diagnose --log-only - < error.log", "the text alone: no environment and no host"),
        ("diagnose --reproduce -- python train.py", "run it, and diagnose how it fails"),
    ),
    "run": (
        ("run -- python train.py", "the diagnosis comes on stderr when the program fails"),
        ("run --report why.json -- pytest -x", "the diagnosis goes into a file"),
    ),
    "facts": (
        ("facts -n train", "host, torch family, libraries, owners; nothing is imported"),
        ("facts --host-only --json > node.json", "a machine for `--host node.json` on another one"),
        ("facts -p .venv --content --json", "what is installed, with a digest to compare with other machines"),
    ),
    "envs": (("envs", "every environment found"), ("envs --json", "the same as a document")),
    "plan": (
        ("plan --log error.log", "the repair of what an error text says"),
        ("plan --playbook nms-cuda -o plan.json", "a plan to look at and apply later"),
        ("plan --log error.log --host node.json", "for a machine that is not this one"),
        ("plan --log error.log --fetch -o plan.json", "for a machine without a network, with the same cache"),
        ("plan --log error.log --for-class -o plan.json", "one plan for all machines with this environment"),
        ("plan --policy newest", "the newest torch that works here, and all that must follow it"),
    ),
    "apply": (
        ("apply --log error.log", "plan, ask, repair a clone, prove it, swap it in"),
        ("apply plan.json --yes", "a plan that was made by `envmedic plan -o`"),
        ("apply --yes --no-gpu", "what the facts confirm; accept that no GPU proves it"),
        ("apply --reproduce -- python train.py", "the program that fails is the check"),
        ("apply --log error.log --lock locks/", "and write lock files of what was verified"),
    ),
    "verify": (
        ("verify", "the checks of the standard profile, on every GPU"),
        ("verify --profile quick -n train", "seconds instead of minutes"),
        ("verify --lock pylock.toml", "is it still what the lock says"),
        ("verify --baseline before.json", "what is worse than in an earlier `verify --json`"),
    ),
    "pip": (
        ("pip install -U transformers", "in the active environment; undo goes back"),
        ("pip -p .venv install -r requirements.txt", "in another one: envmedic's options come first"),
    ),
    "uv": (
        ("uv pip install 'vllm>=0.9'", "the same with uv"),
        ("uv sync", "what uv.lock of the project says, in a clone of its `.venv`"),
    ),
    "conda": (("conda install -n train numpy=1.26", "in a conda environment, by your own conda"),),
    "snapshot": (
        ("snapshot -m 'before trying vllm'", "in the time of a clone; `undo` goes back to it"),
        (
            "snapshot -p .venv --clone copy",
            "shares no file with the environment, for one whose files are edited in place",
        ),
    ),
    "undo": (("undo", "to before the last repair"), ("undo -p .venv --yes", "without being asked")),
    "redo": (("redo", "bring the repair back that was undone"), ("redo -p .venv --yes", "without being asked")),
    "history": (("history", "every repair, and what is kept of it"), ("history -n train --json", "as a document")),
    "diff": (
        ("diff", "what was changed outside envmedic since the last repair"),
        ("diff found now", "all that differs from the environment as it was found"),
    ),
    "report": (
        ("report -p .venv", "the last repair as Markdown, for an issue or a chat"),
        ("report -p .venv -o .", "as Markdown, a picture and a page, into this directory"),
        ("report -o repair.svg", "a card to paste"),
    ),
    "recover": (("recover -p .venv", "finish or drop what a kill or a crash interrupted"),),
    "prune": (
        ("prune", "remove all kept generations; there is no undo then"),
        ("prune --keep 1 --yes", "all but the nearest one, without being asked"),
        ("prune --older-than 30d --max-size 20GB", "by age, and by what they take alone"),
    ),
    "data": (
        ("data status", "the compatibility tables in use, and how old they are"),
        ("data update", "newer ones, from your indexes"),
        ("data pin", "these, until you say otherwise"),
    ),
    "data status": (("data status", "which tables are in use, and which files are not"),),
    "data update": (
        ("data update", "the newest envmedic-data on your indexes"),
        ("data update ./envmedic_data-2026.11.25-py3-none-any.whl", "a wheel that you brought along"),
    ),
    "data pin": (
        ("data pin 2026.11.25", "this version, whichever newer one comes"),
        ("data pin --off", "the newest one again"),
    ),
    "playbooks": (
        ("playbooks list", "those found: shipped and your own"),
        ("playbooks show nms-cuda", "one, as its file has it"),
        ("playbooks validate mine.yaml", "all mistakes at once"),
        ("playbooks test mine.yaml", "samples, conditions, clashes with other playbooks"),
        ("playbooks schema > playbook.json", "the JSON schema, for an editor"),
    ),
    "playbooks list": (("playbooks list", "those found: shipped and your own"),),
    "playbooks show": (("playbooks show nms-cuda", "one, as its file has it"),),
    "playbooks validate": (("playbooks validate mine.yaml", "every mistake as file:line:column: key: message"),),
    "playbooks test": (
        ("playbooks test mine.yaml", "its samples, what they share with other playbooks, and advice"),
        ("playbooks test mine.yaml error.log", "and what an error text of yours is taken for with it"),
    ),
    "playbooks schema": (("playbooks schema > playbook.json", "the JSON schema, for an editor"),),
    "explain": (
        ("explain numpy-abi", "a class of fault in plain words"),
        ("explain nms-cuda", "a playbook: what confirms it, what its repair does"),
    ),
    "check": (
        ("check flash-attn 'torch>=2.7'", "would they work here together, and what would they change"),
        ("check --host node.json vllm", "the same for another machine"),
        ("check -r uv.lock --gpu sm_120 --driver 570", "would this lock work there"),
    ),
    "guard": (
        ("guard 'pip install -U transformers'", "would it undo a repair or break something"),
        ("guard -- conda install pytorch=2.4", "the same without quoting"),
    ),
    "fleet": (
        ("fleet survey facts/", "which machines have the same environment, from collected `facts --json`"),
        ("fleet drift facts/ --against n1", "which machines are not as n1, and in what"),
        ("fleet status results/", "how `apply PLAN --json` ended on each"),
    ),
    "fleet survey": (
        ("fleet survey facts/", "from a file of each machine"),
        ("fleet survey facts/ --on ansible:hosts.ini -p /opt/env", "print the command that collects them"),
    ),
    "fleet diagnose": (("fleet diagnose facts/ --log error.log", "what is wrong in each class of machines"),),
    "fleet drift": (("fleet drift facts/ --against n1", "which machines are not as n1, and in what"),),
    "fleet status": (("fleet status results/ --nodes nodes.txt", "how it ended on each of these machines"),),
    "fleet plan": (
        (
            "fleet plan facts/ --on ansible:hosts.ini -p /opt/env --log error.log -o repair/",
            "print what makes a plan for each class",
        ),
    ),
    "fleet rollout": (
        ("fleet rollout repair/", "print what repairs one machine of each class, a tenth, then all"),
        ("fleet rollout repair/ --retry", "once more where it failed"),
    ),
    "fleet undo": (
        ("fleet undo repair/", "print what takes it back everywhere"),
        ("fleet undo repair/ --only class:B", "on the machines of one class"),
    ),
    "create": (
        ("create --lock pylock.toml -p .venv", "a virtual environment"),
        ("create --lock conda-lock.yml -n train", "a conda environment"),
    ),
    "lock": (
        ("lock -p .venv -o pylock.toml", "what is installed, exactly"),
        ("lock -n train --format dockerfile -o Dockerfile", "an image of it"),
    ),
    "mcp": (("mcp", "what a client of the Model Context Protocol starts"),),
    "agents": (("agents >> AGENTS.md", "for the agents that read this file"),),
    "notebook": (
        ("notebook", "the lines for a cell"),
        (
            "notebook >> ~/.ipython/profile_default/startup/envmedic.ipy",
            "for every kernel of yours, from its next start on",
        ),
    ),
    "completion": (
        (
            "completion bash | install -Dm644 /dev/stdin ~/.local/share/bash-completion/completions/envmedic",
            "for bash, from the next shell on",
        ),
        ('completion zsh > "${fpath[1]}/_envmedic"', "for zsh"),
        ("completion fish | install -Dm644 /dev/stdin ~/.config/fish/completions/envmedic.fish", "for fish"),
    ),
}
"""By the words of the command; the empty text is envmedic itself."""

_WIDEST = 40
"""Columns of the longest command line beside which there is room for its meaning."""


def example_lines(command: str) -> list[str]:
    """The examples of a command as its help shows them: in two columns, or each meaning below where one is long."""
    pairs = [(f"envmedic {line}", meaning) for line, meaning in EXAMPLES.get(command, ())]
    width = max((len(line) for line, _ in pairs), default=0)
    if width <= _WIDEST:
        return [f"  {line:<{width}}  {meaning}" for line, meaning in pairs]
    return [text for line, meaning in pairs for text in (f"  {line}", f"      {meaning}")]
