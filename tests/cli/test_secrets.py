"""Secrets are planted wherever an environment, a user and a log may hold some; no command may tell or keep one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.support import REPAIR, SAMPLES, Done, Shell
from tests.envs.nms_cuda.case import Case
from tests.support.venvs import site_packages

LOGIN, TOKEN = "Xq7Login3f9", "Zk2Token8d1"
"""As they are planted: in the place of a password, and of a token."""
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
    return [whole[max(0, at - 120) : at + 40] for word in (LOGIN, TOKEN) if (at := whole.find(word)) >= 0]


def written(root: Path, own: set[Path]) -> list[str]:
    """Files below `root`, but for its `own`, that hold a secret."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.resolve() not in own)
    names = {path.name for path in own}
    return [f"{path}: {found[0]}" for path in files if path.name not in names and (found := leaks(path.read_bytes()))]


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
