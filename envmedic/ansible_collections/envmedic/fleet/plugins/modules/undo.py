#!/usr/bin/python
"""A repair by a plan for a class, taken back."""

DOCUMENTATION = r"""
module: undo
short_description: Take the repair of a plan for a class back
description:
  - Starts C(envmedic undo --plan), which brings the environment back as it was, byte for byte.
  - Where that was done before, nothing is.
author: The envmedic authors
attributes:
  check_mode: {support: full, description: Whether it would undo; what keeps it from that fails.}
  diff_mode: {support: full, description: The distributions that change.}
options:
  plan: {description: The plan on the controller., type: path, required: true}
  results: {description: A directory on the controller that gets the answer of each machine., type: path}
  limit_s: {description: Seconds after which it is stopped., type: int, default: 3600}
  envmedic: {description: The words that start envmedic., type: list, elements: str, default: [envmedic]}
"""
EXAMPLES = r"""
- envmedic.fleet.undo: {plan: "{{ playbook_dir }}/A.json", results: "{{ playbook_dir }}/undone"}
"""
RETURN = r"""
document: {description: What envmedic printed., type: dict, returned: with an answer}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.envmedic.fleet.plugins.module_utils.unit import COMMAND, answer, packages, plan_id, told


def main():
    """Run the module."""
    module = AnsibleModule(
        {
            "plan": {"type": "path", "required": True},
            "results": {"type": "path"},
            "limit_s": {"type": "int", "default": 3600},
            "envmedic": COMMAND,
        },
        supports_check_mode=True,
    )
    wanted = plan_id(module)
    words = ["undo", "--plan", module.params["plan"], "--dry-run" if module.check_mode else "--yes"]
    code, document, out = answer(module, words, module.params["limit_s"])
    if code:
        module.fail_json(msg=told(document), rc=code, document=document, stdout=out)
    plan = document.get("plan") or {}
    if plan.get("class_plan") != wanted or (document.get("state") != "undone" and not module.check_mode):
        module.fail_json(msg="the answer is about another repair", document=document, stdout=out)
    changes = document.get("outcome") != "already"
    diff = packages(plan if changes else {}, back=True)
    module.exit_json(changed=changes, document=document, stdout=out, diff=diff)


if __name__ == "__main__":
    main()
