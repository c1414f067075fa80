#!/usr/bin/python
"""A repair by a plan for a class."""

DOCUMENTATION = r"""
module: apply
short_description: Repair an environment by a plan for its class
description:
  - Starts C(envmedic apply PLAN). The repair is made and proven in a copy, which is swapped in when its checks pass.
  - Where the plan was carried out before, nothing is done.
author: The envmedic authors
attributes:
  check_mode: {support: full, description: Whether it would repair; what keeps it from that fails.}
  diff_mode: {support: full, description: The distributions that change.}
options:
  plan: {description: The plan on the controller., type: path, required: true}
  results: {description: A directory on the controller that gets the answer of each machine., type: path}
  find_links: {description: Directories on the machine with wheels., type: list, elements: str, default: []}
  offline: {description: Ask no network., type: bool, default: true}
  no_gpu: {description: Ask for no proof on GPUs., type: bool, default: false}
  limit_s: {description: Seconds after which it is stopped., type: int, default: 3600}
  witnesses:
    description: Other machines that share the environment, and prove the copy too. C(envmedic fleet witness) runs there.
    type: list
    elements: str
    default: []
  machines:
    description: All others that share it. They are asked which programs use it, by the same command.
    type: list
    elements: str
    default: []
  layout: {description: What the environment becomes. C(symlink) makes it a link to one of its trees., type: str, choices: [symlink]}
  envmedic: {description: The words that start envmedic., type: list, elements: str, default: [envmedic]}
"""
EXAMPLES = r"""
- envmedic.fleet.apply: {plan: "{{ playbook_dir }}/A.json", results: "{{ playbook_dir }}/results"}
"""
RETURN = r"""
outcome:
  description: C(repaired), C(already), C(other-class), C(changed), C(refused), C(failed), or C(unknown) without an answer.
  type: str
  returned: always
document: {description: What envmedic printed., type: dict, returned: with an answer}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.envmedic.fleet.plugins.module_utils.unit import (
    COMMAND,
    LINKS,
    answer,
    packages,
    plan_id,
    told,
    with_links,
)


def main():
    """Run the module."""
    module = AnsibleModule(
        {
            "plan": {"type": "path", "required": True},
            "results": {"type": "path"},
            "find_links": LINKS,
            "offline": {"type": "bool", "default": True},
            "no_gpu": {"type": "bool", "default": False},
            "limit_s": {"type": "int", "default": 3600},
            "witnesses": {"type": "list", "elements": "str", "default": []},
            "machines": {"type": "list", "elements": "str", "default": []},
            "layout": {"type": "str", "choices": ["symlink"]},
            "envmedic": COMMAND,
        },
        supports_check_mode=True,
    )
    own = module.params
    words = ["apply", own["plan"], *with_links(module)]
    words += ["--offline"] if own["offline"] else []
    words += ["--no-gpu"] if own["no_gpu"] else []
    if own["witnesses"] or own["machines"]:
        words += ["--witness-limit", str(max(1, own["limit_s"] // 2))]
    for option in ("witnesses", "machines"):
        words += ["--" + option, ",".join(own[option])] if own[option] else []
    words += ["--layout", own["layout"]] if own["layout"] else []
    wanted = plan_id(module)
    code, document, out = answer(module, [*words, "--dry-run" if module.check_mode else "--yes"], own["limit_s"])
    outcome = document.get("outcome") or ("refused" if code else "unknown")
    if code:
        module.fail_json(msg=told(document), rc=code, outcome=outcome, document=document, stdout=out)
    plan = document.get("plan") or document  # a dry run prints the plan
    if wanted not in {plan.get("class_plan"), plan.get("id")}:
        module.fail_json(msg="the answer is about another plan", outcome="unknown", document=document, stdout=out)
    changes = outcome != "already"
    if changes and not module.check_mode and outcome != "repaired":
        module.fail_json(msg="no known outcome: %s" % outcome, outcome="unknown", document=document, stdout=out)
    diff = packages(plan if changes else {})
    module.exit_json(changed=changes, outcome=outcome, document=document, stdout=out, diff=diff)


if __name__ == "__main__":
    main()
