"""Secrets are planted wherever an environment, a user and a log may hold some; no command may tell or keep one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import REPAIR, SAMPLES, Done, Shell
from tests.envs.nms_cuda.case import Case
from tests.support.index import serve
from tests.support.venvs import site_packages

LOGIN, TOKEN = "Xq7Login3f9", "Zk2Token8d1"
"""As they are planted: in the place of a password, and of a token."""
CAPITALS = "ZK2TOKEN8D1F9XQ7"
"""The rest of a token of AWS."""
URL = f"https://me:{LOGIN}@index.example.invalid/simple?token={TOKEN}"


def plant(case: Case, user: Shell, room: Path) -> tuple[Shell, Path, set[Path]]:
    """Plant them; returns the user with secret variables, a log, and the files that hold them by right."""
    site, home = site_packages(case.prefix), user.home
    planted = {
        home / ".netrc": f"machine index.example.invalid login me password {LOGIN}\n",
        home / ".config" / "pip" / "pip.conf": f"[global]\nfind-links = {URL}\nproxy = http://me:{LOGIN}@127.0.0.1:9\n",
        home / ".condarc": f"channels:\n  - https://me:{LOGIN}@conda.example.invalid/t/{TOKEN}/main\n",
        home / ".git-credentials": f"https://me:{LOGIN}@git.example.invalid\n",
        case.prefix / "etc" / "conda" / "activate.d" / "a.sh": f"export HF_TOKEN={TOKEN}\nexport PYTHONPATH={URL}\n",
        case.prefix / "conda-state-of-nobody": TOKEN,
    }
    folder = site / "private-1.0.dist-info"
    planted |= {
        folder / "METADATA": f"Metadata-Version: 2.1\nName: private\nVersion: 1.0\nDownload-URL: {URL}\n",
        folder / "direct_url.json": json.dumps(
            {"url": f"git+{URL}", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}}
        ),
        folder / "RECORD": "private-1.0.dist-info/METADATA,,\n",
        folder / "INSTALLER": "pip\n",
    }
    log = room / "failed.log"
    sample = min(SAMPLES.glob("sample_*.log")).read_text(encoding="utf-8")
    error = next(line for line in sample.splitlines() if "torchvision" in line and "Error" in line)
    planted[log] = (
        f"Looking in indexes: {URL}\nHF_TOKEN={TOKEN}\nAuthorization: Bearer {TOKEN}\n{sample}\n"
        f"{error} HF_TOKEN={TOKEN} see {URL} --password={LOGIN}\n"
    )
    for path, text in planted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    variables = {
        "AWS_SECRET_ACCESS_KEY": TOKEN, "HF_TOKEN": TOKEN, "UV_INDEX_PRIVATE_PASSWORD": LOGIN, "PIP_PROXY": f"me:{LOGIN}@127.0.0.1:9",
        "UV_FIND_LINKS": URL, "PIP_EXTRA_INDEX_URL": URL, "CONDA_TOKEN": TOKEN, "HTTPS_PROXY": f"http://me:{LOGIN}@127.0.0.1:9",
        "NO_PROXY": "127.0.0.1", "CUDA_HOME": f"/opt/cuda?token={TOKEN}", "PIP_CONFIG_FILE": "/dev/null", "UV_NO_CONFIG": "1",
    }  # fmt: skip
    return user.having(**variables), log, {path.resolve() for path in planted}


def leaks(text: str | bytes) -> list[str]:
    """The secrets in it, each with what stands around."""
    whole = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return [whole[max(0, at - 120) : at + 40] for word in (LOGIN, TOKEN, CAPITALS) if (at := whole.find(word)) >= 0]


def written(root: Path, own: set[Path]) -> list[str]:
    """Files below `root`, but for its `own`, that hold a secret."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.resolve() not in own)
    names = {path.name for path in own}
    return [f"{path}: {found[0]}" for path in files if path.name not in names and (found := leaks(path.read_bytes()))]


@pytest.mark.long
def test_secrets_are_told_and_kept_nowhere(case: Case, user: Shell, room: Path) -> None:
    holder, log, own = plant(case, user, room)
    target = ("-p", str(case.prefix))
    calm = holder.having(UV_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
    commands: list[tuple[Shell, tuple[str, ...]]] = [
        (holder, ("facts", "--json", *target)),
        (holder, ("facts", *target)),
        (holder, ("diagnose", str(log), "--json", *target)),
        (holder, ("diagnose", str(log), "-v", *target)),
        (holder, ("explain", "nms-cuda")),
        (holder, ("guard", *target, "pip", "install", f"--index-url={URL}", "nothing-of-that-name")),
        (holder, ("guard", "pip", f"--index-url={URL}", *target)),
        (holder, ("plan", "--playbook", "nms-cuda", "--no-gpu", *target)),
        (calm, ("plan", "--playbook", "nms-cuda", "--no-gpu", "--json", "-o", str(room / "plan.json"), *target)),
        (calm, (*REPAIR, "--events", str(room / "events.jsonl"), "--json", *target)),
        (calm, ("history", "--json", *target)),
        (calm, ("lock", "--format", "requirements", "-o", str(room / "lock.txt"), *target)),
        (calm, ("lock", "--json", *target)),
        (calm, ("run", "--report", str(room / "report.json"), *target, "--", "sh", "-c", f"cat {log} >&2; exit 1")),
        (calm, ("undo", "--yes", *target)),
        (calm, ("apply", "--json", "--yes", "--playbook", f"{URL}.yaml", *target)),
    ]
    ended: list[Done] = []
    for who, words in commands:
        done = who.envmedic(*words)
        ended.append(done)
        assert leaks(done.out + ("" if words[0] == "run" else done.err)) == [], (
            words
        )  # a command's own output is its own
    assert ended[9].code == 0, ended[9].told()
    assert ended[14].code == 0, ended[14].told()
    assert written(room, own) == []


SHAPES = (
    f"HF_TOKEN={TOKEN}", f"--token {TOKEN}", f"['--token', '{TOKEN}']", f'{{"accessToken": "{TOKEN}"}}',
    f"password = {TOKEN}", f"passphrase: {TOKEN}", f"pwd={TOKEN}", f"key={TOKEN}9aF3kQ7z", f"PGPASSWORD={TOKEN}",
    f"Authorization: Bearer {TOKEN}{TOKEN}", f"Authorization: Basic {TOKEN}==", f"Cookie: a={TOKEN}; b={TOKEN}",
    f"curl -u me:{TOKEN} https://h/x", f"machine h login me password {TOKEN}", f"https://me:{TOKEN}@h/x",
    f"https://h/t/{TOKEN}/c", f"https://h/x?sig={TOKEN}", f"https://hooks.slack.com/services/T0/B0/{TOKEN}",
    f"postgresql://u:{TOKEN}@h/db", f"me:{TOKEN}@proxy:3128", f"hf_{TOKEN}{TOKEN}", f"ghp_{TOKEN}{TOKEN}",
    f"glpat-{TOKEN}{TOKEN}", f"npm_{TOKEN}{TOKEN}", f"pypi-{TOKEN}{TOKEN}", f"eyJ{TOKEN}.{TOKEN}.{TOKEN}",
    f"ASIA{CAPITALS}", f"-----BEGIN RSA PRIVATE KEY-----{TOKEN}",
)  # fmt: skip
"""Each way in which a line of output may hold a secret."""
VARIABLES = {
    "HF_TOKEN": f"hf_{TOKEN}{TOKEN}", "WANDB_API_KEY": TOKEN, "AWS_SECRET_ACCESS_KEY": TOKEN, "AWS_SESSION_TOKEN": TOKEN,
    "AWS_ACCESS_KEY_ID": f"AKIA{CAPITALS}", "PGPASSWORD": LOGIN, "MYSQL_PWD": LOGIN, "DATABASE_URL": f"postgresql://u:{LOGIN}@h/db",
    "GITHUB_TOKEN": f"ghp_{TOKEN}{TOKEN}", "NETRC_PASSPHRASE": LOGIN, "SENTRY_DSN": f"https://{TOKEN}@h/1",
    "REQUEST_HEADERS": f"Authorization: Bearer {TOKEN}{TOKEN}", "TWINE_PASSWORD": f"pypi-{TOKEN}{TOKEN}",
}  # fmt: skip


def test_secrets_on_the_very_line_of_the_error_are_told_nowhere(user: Shell, room: Path) -> None:
    error = "RuntimeError: operator torchvision::nms does not exist"
    logs = []
    for number, shape in enumerate(SHAPES):
        for name, text in ((f"{number}a", f"{error} {shape}"), (f"{number}b", f"{shape} {error}")):
            (room / name).write_text(f"Traceback (most recent call last):\n{text}\n")
            logs.append(str(room / name))
    for words in (("--json",), ("-v",)):
        done = user.envmedic("diagnose", "--log-only", *logs, *words)
        assert leaks(done.out + done.err) == []
        assert done.out.count("does not exist") >= len(logs) - 4, done.told()


def configured(user: Shell, tool: str, url: str) -> tuple[Shell, Path]:
    """A user whose configuration of `tool` has an index with a login; and the file."""
    pip, uv = user.home / ".config" / "pip" / "pip.conf", user.home / ".config" / "uv" / "uv.toml"
    path, text = {
        "pip": (pip, f"[global]\nindex-url = {url}\n"),
        "uv": (uv, f'[[index]]\nname = "own"\nurl = "{url}"\ndefault = true\n'),
    }[tool]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (user.home / ".condarc").write_text(f"channels: ['https://me:{LOGIN}@h.invalid/t/{TOKEN}/main']\n")
    holder = Shell(
        user.home, {"UV_HTTP_RETRIES": "0", "ENVMEDIC_TORCH_INDEX": "http://127.0.0.1:1/{variant}", **VARIABLES}
    )
    return holder, path


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_repair_from_an_index_with_a_login_keeps_no_secret(case: Case, user: Shell, room: Path, tool: str) -> None:
    log, printed = room / "failed.log", room / "printed"
    printed.write_text("\n".join(SHAPES))
    log.write_text(min(SAMPLES.glob("sample_*.log")).read_text(encoding="utf-8") + printed.read_text())
    hook = site_packages(case.prefix) / "secrets.pth"
    code = (f"import os; os.environ.setdefault({name!r}, {value!r})\n" for name, value in VARIABLES.items())
    hook.write_text("".join(code))
    script = case.prefix / "bin" / "activate.own"
    script.write_text("".join(f"export PYTHONPATH=/opt/lib {shape}\n" for shape in SHAPES[:9]))
    program = ("sh", "-c", f"env; cat {printed}; exec {case.python} -B {case.program}")
    lock = ("lock", "--fetch-hashes", "--allow-incomplete")
    commands: list[tuple[str, ...]] = [
        ("plan", "--no-gpu", "--log", str(log), "-o", str(room / "plan.json")),
        ("apply", "--yes", "--no-gpu", "--events", str(room / "events.jsonl"), "--json", "--reproduce", "--", *program),
        (*lock, "--format", "requirements", "-o", str(room / "lock.txt")),
    ]
    if tool == "pip":
        report = ("run", "--report", str(room / "report.json"), "--", *program)
        read = ("facts",), ("diagnose", str(log)), ("guard", "pip install torch==2.4.1"), report
        commands = [*read, *commands, ("history", "--json"), (*lock, "--json"), ("undo", "--yes")]
    with serve(room / "case" / "index") as server:
        server.credentials = ("me", LOGIN)
        holder, configuration = configured(user, tool, server.url_with_credentials)
        own = {path.resolve() for path in (log, printed, hook, script, configuration, user.home / ".condarc")}
        for command, *rest in commands:
            done = holder.envmedic(command, "-p", str(case.prefix), *rest)
            if command != "run":  # the command's own output is its own
                assert leaks(done.out + done.err) == [], (command, *rest)
            # a lock beside the local project holds it, the one on stdout lies elsewhere
            unwell = command in {"diagnose", "run", "guard"} or (command == "lock" and "--json" in rest)
            assert done.code == unwell, done.told()
        assert any(item.authorization for item in server.seen)
    assert written(room, own) == []
    assert {"plan.json", "events.jsonl", "lock.txt"} <= {path.name for path in room.iterdir()}
    assert (room / "report.json").exists() == (tool == "pip")
    assert len([*(room / "case" / ".envmedic").glob("2*/events.jsonl")]) == 1
