"""The controller's side of the modules: files that go to the machine, and answers that stay on the controller."""

import json
import os

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.common.text.converters import to_bytes, to_text
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class Kept(ActionBase):
    """Runs the module of its name; `plan` is taken to the machine, `results` and `dest` get what it answered."""

    def run(self, tmp=None, task_vars=None):
        """Run it. A machine that cannot be reached has failed: Ansible's limits do not count it otherwise."""
        result = super().run(tmp, task_vars)
        own = dict(self._task.args)
        results, dest = own.get("results"), own.get("dest")
        try:
            self._make_tmp_path()
            if own.get("plan"):
                own["plan"] = self._carried(own["plan"])
            if own.get("log"):
                own["log_text"] = to_text(_read(own.pop("log")))
            found = self._execute_module(module_args=own, task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            found = {"failed": True, "outcome": "unknown", "msg": "it was not reached: %s" % to_text(error)}
        except BaseException as error:  # also the task's own time limit
            self._keep(results, {"msg": "it was cut off: %s" % (to_text(error) or type(error).__name__)}, task_vars)
            raise
        if found.get("unreachable"):
            found = {"failed": True, "outcome": "unknown", "msg": "it was not reached: %s" % found.get("msg")}
        # of an answer that proves nothing, the reason alone is kept
        trusted = found.get("outcome") != "unknown" and isinstance(found.get("document"), dict)
        self._keep(results, found["document"] if trusted else {"msg": found.get("msg") or "no answer"}, task_vars)
        if dest and not found.get("failed") and not self._task.check_mode:
            _write(dest, found["stdout"])
            found["changed"] = True
        found.pop("stdout", None)
        found.pop("stdout_lines", None)
        result.update(found)
        return result

    def cleanup(self, force=False):
        """Remove what was taken to the machine. Ansible would call one that died meanwhile unreachable, and not count it."""
        try:
            super().cleanup(force)
        except AnsibleConnectionFailure as error:
            Display().warning("what was taken to the machine is there still: %s" % to_text(error))

    def _carried(self, path):
        """Take a file of the controller to the machine; the path there."""
        there = self._connection._shell.join_path(self._connection._shell.tmpdir, "plan.json")
        self._transfer_data(there, _read(path))
        self._fixup_perms2((self._connection._shell.tmpdir, there))
        return there

    def _keep(self, folder, document, task_vars):
        """Write the answer of this machine, as a whole or not at all. A check mode answers nothing."""
        if folder and not self._task.check_mode:
            _write(os.path.join(folder, "%s.json" % task_vars["inventory_hostname"]), json.dumps(document))


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise AnsibleError("%s cannot be read: %s" % (path, error.strerror)) from error


def _write(path, text):
    part = os.path.join(os.path.dirname(path), "." + os.path.basename(path))
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(part, "wb") as file:
            file.write(to_bytes(text))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise AnsibleError("%s cannot be written: %s" % (path, error.strerror)) from error
