#!/usr/bin/python
"""Facts of an environment."""

DOCUMENTATION = r"""
module: facts
short_description: Facts of a Python environment and its machine
description: Starts C(envmedic facts) and hands over what it prints. Changes nothing.
author: The envmedic authors
attributes:
  check_mode: {support: full, description: It changes nothing.}
options:
  prefix: {description: The environment., type: path, required: true}
  content: {description: The small document of what is installed alone., type: bool, default: false}
  results: {description: A directory on the controller that gets the document of each machine., type: path}
  envmedic: {description: The words that start envmedic., type: list, elements: str, default: [envmedic]}
"""
EXAMPLES = r"""
- envmedic.fleet.facts: {prefix: /opt/envs/train, results: "{{ playbook_dir }}/facts"}
"""
RETURN = r"""
document: {description: What envmedic printed., type: dict, returned: success}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.envmedic.fleet.plugins.module_utils.unit import COMMAND, answer, told


def main():
    """Run the module."""
    module = AnsibleModule(
        {
            "prefix": {"type": "path", "required": True},
            "content": {"type": "bool", "default": False},
            "results": {"type": "path"},
            "envmedic": COMMAND,
        },
        supports_check_mode=True,
    )
    words = ["facts", "-p", module.params["prefix"], *(["--content"] if module.params["content"] else [])]
    code, document, out = answer(module, words)
    if code:
        module.fail_json(msg=told(document), rc=code, document=document, stdout=out)
    module.exit_json(changed=False, document=document, stdout=out)


if __name__ == "__main__":
    main()
