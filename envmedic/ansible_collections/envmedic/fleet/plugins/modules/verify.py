#!/usr/bin/python
"""Checks of an environment."""

DOCUMENTATION = r"""
module: verify
short_description: Run the checks on an environment as it is
description: Starts C(envmedic verify), and fails where a check does. Changes nothing.
author: The envmedic authors
attributes:
  check_mode: {support: full, description: It changes nothing.}
options:
  prefix: {description: The environment., type: path, required: true}
  profile: {description: How much is checked., type: str, choices: [quick, standard, full]}
  no_gpu: {description: Ask for no proof on GPUs., type: bool, default: false}
  limit_s: {description: Seconds after which it is stopped., type: int, default: 3600}
  envmedic: {description: The words that start envmedic., type: list, elements: str, default: [envmedic]}
"""
EXAMPLES = r"""
- envmedic.fleet.verify: {prefix: /opt/envs/train, profile: quick}
"""
RETURN = r"""
document: {description: What envmedic printed., type: dict, returned: with an answer}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.envmedic.fleet.plugins.module_utils.unit import COMMAND, answer, told


def main():
    """Run the module."""
    module = AnsibleModule(
        {
            "prefix": {"type": "path", "required": True},
            "profile": {"type": "str", "choices": ["quick", "standard", "full"]},
            "no_gpu": {"type": "bool", "default": False},
            "limit_s": {"type": "int", "default": 3600},
            "envmedic": COMMAND,
        },
        supports_check_mode=True,
    )
    own = module.params
    words = ["verify", "-p", own["prefix"], *(["--no-gpu"] if own["no_gpu"] else [])]
    words += ["--profile", own["profile"]] if own["profile"] else []
    code, document, out = answer(module, words, own["limit_s"])
    if code:
        why = told(document) if document.get("schema") == "envmedic.error/1" else "a check failed"
        module.fail_json(msg=why, rc=code, document=document, stdout=out)
    module.exit_json(changed=False, document=document, stdout=out)


if __name__ == "__main__":
    main()
