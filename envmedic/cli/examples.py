"""Examples of every command, for its help, the manual page and the reference."""

from __future__ import annotations

Example = tuple[str, str]
"""A command line without the word ``envmedic``, and what it does."""

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "": (
        ("run -- python train.py", "run your program; if it fails, say what is wrong"),
        ("diagnose error.log", "say what is wrong from an error text"),
        ("plan --log error.log", "show what a repair would change"),
        ("apply --log error.log", "repair a copy, prove it, and swap it in"),
        ("undo", "bring the old environment back"),
    ),
    "diagnose": (
        ("diagnose error.log", "find the fault behind an error text, in the active environment"),
        ("diagnose -p .venv", "look at an environment without an error text"),
        ("diagnose --log-only - < error.log", "read the text alone, without any environment"),
        ("diagnose --reproduce -- python train.py", "run the program, and diagnose how it fails"),
    ),
    "run": (
        ("run -- python train.py", "run a program; if it fails, print the diagnosis on stderr"),
        ("run --report why.json -- pytest -x", "write the diagnosis to a file"),
    ),
    "facts": (
        ("facts -n train", "print host, torch family, libraries and owners; import nothing"),
        ("facts --host-only --json > node.json", "describe this machine for `--host node.json` elsewhere"),
        ("facts -p .venv --content --json", "list what is installed, with a digest to compare with other machines"),
    ),
    "envs": (("envs", "list every environment found"), ("envs --json", "print the same as JSON")),
    "plan": (
        ("plan --log error.log", "plan the repair of the fault in an error text"),
        ("plan --playbook nms-cuda -o plan.json", "write a plan to look at and apply later"),
        ("plan --log error.log --host node.json", "plan for another machine"),
        ("plan --log error.log --fetch -o plan.json", "plan for a machine without a network that shares the cache"),
        ("plan --log error.log --for-class -o plan.json", "make one plan for all machines with this environment"),
        ("plan --policy newest", "move to the newest torch that works here, and whatever must follow it"),
    ),
    "apply": (
        ("apply --log error.log", "plan, ask, repair a copy, prove it, and swap it in"),
        ("apply plan.json --yes", "carry out a plan of `envmedic plan -o` without asking"),
        ("apply --yes --no-gpu", "repair what the facts confirm, and accept no proof on a GPU"),
        ("apply --reproduce -- python train.py", "let the failing program decide whether the repair worked"),
        ("apply --log error.log --lock locks/", "also write lock files of the verified environment"),
    ),
    "verify": (
        ("verify", "run the standard checks on every GPU"),
        ("verify --profile quick -n train", "run the quick checks: seconds instead of minutes"),
        ("verify --lock pylock.toml", "check that it still matches the lock"),
        ("verify --baseline before.json", "report what got worse since an earlier `verify --json`"),
    ),
    "pip": (
        ("pip install -U transformers", "install into the active environment; undo goes back"),
        ("pip -p .venv install -r requirements.txt", "install into another one: envmedic's options come first"),
    ),
    "uv": (
        ("uv pip install 'vllm>=0.9'", "install with uv"),
        ("uv sync", "sync a copy of the project's `.venv` with its uv.lock"),
    ),
    "conda": (("conda install -n train numpy=1.26", "install into a conda environment with your own conda"),),
    "snapshot": (
        ("snapshot -m 'before trying vllm'", "keep the present state; `undo` returns to it"),
        (
            "snapshot -p .venv --clone copy",
            "copy every file, for environments whose files you edit in place",
        ),
    ),
    "undo": (("undo", "go back to before the last repair"), ("undo -p .venv --yes", "do not ask")),
    "redo": (("redo", "bring back the repair that was undone"), ("redo -p .venv --yes", "do not ask")),
    "history": (
        ("history", "list every repair, and what is kept of it"),
        ("history -n train --json", "print them as JSON"),
    ),
    "diff": (
        ("diff", "show changes made outside envmedic since the last repair"),
        ("diff found now", "show all changes since envmedic first saw the environment"),
    ),
    "report": (
        ("report -p .venv", "print the last repair as Markdown, for an issue or a chat"),
        ("report -p .venv -o .", "write Markdown, a picture and a page into this directory"),
        ("report -o repair.svg", "write a card to paste"),
    ),
    "recover": (("recover -p .venv", "finish or drop a repair that a kill or a crash interrupted"),),
    "prune": (
        ("prune", "remove all kept generations; there is no undo then"),
        ("prune --keep 1 --yes", "remove all but the nearest one, without asking"),
        ("prune --older-than 30d --max-size 20GB", "remove by age and by size"),
    ),
    "data": (
        ("data status", "show the tables in use and their age"),
        ("data update", "fetch newer tables from your indexes"),
        ("data pin", "keep the present tables until `data pin --off`"),
    ),
    "data status": (("data status", "show which tables are in use, and which files are not"),),
    "data update": (
        ("data update", "fetch the newest envmedic-data from your indexes"),
        ("data update ./envmedic_data-2026.11.25-py3-none-any.whl", "use a wheel that you brought along"),
    ),
    "data pin": (
        ("data pin 2026.11.25", "keep this version, even if a newer one is there"),
        ("data pin --off", "use the newest version again"),
    ),
    "playbooks": (
        ("playbooks list", "list shipped playbooks and your own"),
        ("playbooks show nms-cuda", "print the file of a playbook"),
        ("playbooks validate mine.yaml", "list all mistakes at once"),
        ("playbooks test mine.yaml", "test samples, conditions, and clashes with other playbooks"),
        ("playbooks schema > playbook.json", "write the JSON schema for an editor"),
    ),
    "playbooks list": (("playbooks list", "list shipped playbooks and your own"),),
    "playbooks show": (("playbooks show nms-cuda", "print the file of a playbook"),),
    "playbooks validate": (("playbooks validate mine.yaml", "list every mistake as file:line:column: key: message"),),
    "playbooks test": (
        ("playbooks test mine.yaml", "test its samples and what they share with other playbooks; give advice"),
        ("playbooks test mine.yaml error.log", "also show how it reads your error text"),
    ),
    "playbooks schema": (("playbooks schema > playbook.json", "write the JSON schema for an editor"),),
    "explain": (
        ("explain numpy-abi", "explain a class of fault"),
        ("explain nms-cuda", "explain a playbook: what confirms it, what its repair does"),
    ),
    "check": (
        ("check flash-attn 'torch>=2.7'", "ask whether they would work here together, and what they would change"),
        ("check --host node.json vllm", "ask the same for another machine"),
        ("check -r uv.lock --gpu sm_120 --driver 570", "ask whether this lock would work on that machine"),
    ),
    "guard": (
        ("guard 'pip install -U transformers'", "ask whether it would undo a repair or break something"),
        ("guard -- conda install pytorch=2.4", "ask without quoting the command"),
    ),
    "fleet": (
        ("fleet survey facts/", "group machines by environment, from collected `facts --json`"),
        ("fleet drift facts/ --against n1", "list machines that differ from n1, and how"),
        ("fleet status results/", "show how `apply PLAN --json` ended on each machine"),
    ),
    "fleet survey": (
        ("fleet survey facts/", "group machines, from a file of each"),
        ("fleet survey facts/ --on ansible:hosts.ini -p /opt/env", "print the command that collects these files"),
    ),
    "fleet diagnose": (("fleet diagnose facts/ --log error.log", "say what is wrong in each class of machines"),),
    "fleet drift": (("fleet drift facts/ --against n1", "list machines that differ from n1, and how"),),
    "fleet status": (
        ("fleet status results/ --nodes nodes.txt", "show how the rollout ended on each of these machines"),
    ),
    "fleet plan": (
        (
            "fleet plan facts/ --on ansible:hosts.ini -p /opt/env --log error.log -o repair/",
            "print the command that plans a repair for each class",
        ),
    ),
    "fleet rollout": (
        ("fleet rollout repair/", "print the command that repairs one machine of each class, then a tenth, then all"),
        ("fleet rollout repair/ --retry", "try again where the repair failed"),
        ("fleet rollout repair/ --shared --witnesses 2", "all share one: two of each class prove it, then one swap"),
    ),
    "fleet witness": (
        ("fleet witness -p /shared/env", "on each machine that `apply --witnesses` or `--machines` names"),
        ("fleet witness -p /shared/env --users", "which programs on this machine use it"),
    ),
    "fleet undo": (
        ("fleet undo repair/", "print the command that undoes it everywhere"),
        ("fleet undo repair/ --only class:B", "undo it on the machines of one class"),
    ),
    "create": (
        ("create --lock pylock.toml -p .venv", "make a virtual environment"),
        ("create --lock conda-lock.yml -n train", "make a conda environment"),
    ),
    "lock": (
        ("lock -p .venv -o pylock.toml", "lock exactly what is installed"),
        ("lock -n train --format dockerfile -o Dockerfile", "write a Dockerfile of the same"),
    ),
    "mcp": (("mcp", "serve the client that started it"),),
    "agents": (("agents >> AGENTS.md", "add the lines for agents that read this file"),),
    "notebook": (
        ("notebook", "print the lines for a cell"),
        (
            "notebook >> ~/.ipython/profile_default/startup/envmedic.ipy",
            "load it in every kernel of yours from its next start on",
        ),
    ),
    "completion": (
        (
            "completion bash | install -Dm644 /dev/stdin ~/.local/share/bash-completion/completions/envmedic",
            "complete in bash, from the next shell on",
        ),
        ('completion zsh > "${fpath[1]}/_envmedic"', "complete in zsh"),
        ("completion fish | install -Dm644 /dev/stdin ~/.config/fish/completions/envmedic.fish", "complete in fish"),
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
