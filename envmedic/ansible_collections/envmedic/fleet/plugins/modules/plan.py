#!/usr/bin/python
"""A plan for a class of machines."""

DOCUMENTATION = r"""
module: plan
short_description: A plan for all machines of a class, made on one of them
description: Starts C(envmedic plan --for-class) and writes the plan on the controller. Changes nothing on the machine.
author: The envmedic authors
attributes:
  check_mode: {support: full, description: The plan is made, and not written.}
options:
  prefix: {description: The environment., type: path, required: true}
  log: {description: A file on the controller with the error text., type: path}
  playbook: {description: The playbook to follow in place of an error text., type: str}
  dest: {description: Where the plan is written on the controller., type: path, required: true}
  find_links: {description: Directories on the machine with wheels., type: list, elements: str, default: []}
  fetch: {description: Fetch what the plan installs into the cache of the machine., type: bool, default: false}
  envmedic: {description: The words that start envmedic., type: list, elements: str, default: [envmedic]}
  log_text: {description: The error text itself; C(log) sets it., type: str}
"""
EXAMPLES = r"""
- envmedic.fleet.plan: {prefix: /opt/envs/train, log: error.log, dest: "{{ playbook_dir }}/A.json"}
"""
RETURN = r"""
document: {description: The plan., type: dict, returned: success}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.envmedic.fleet.plugins.module_utils.unit import COMMAND, LINKS, answer, told, with_links


def main():
    """Run the module."""
    module = AnsibleModule(
        {
            "prefix": {"type": "path", "required": True},
            "log": {"type": "path"},
            "log_text": {"type": "str"},
            "playbook": {"type": "str"},
            "dest": {"type": "path", "required": True},
            "find_links": LINKS,
            "fetch": {"type": "bool", "default": False},
            "envmedic": COMMAND,
        },
        mutually_exclusive=[("log", "playbook"), ("log_text", "playbook")],
        required_one_of=[("log", "log_text", "playbook")],
        supports_check_mode=True,
    )
    own = module.params
    words = ["plan", "-p", own["prefix"], "--for-class", *with_links(module)]
    words += ["--playbook", own["playbook"]] if own["playbook"] else ["--log", "-"]
    words += ["--fetch"] if own["fetch"] else []
    code, document, out = answer(module, words, given=own["log_text"])
    if code or document.get("schema") != "envmedic.plan/1":
        why = told(document) if code else "no plan is needed"
        module.fail_json(msg=why, rc=code, document=document, stdout=out)
    module.exit_json(changed=False, document=document, stdout=out)


if __name__ == "__main__":
    main()
