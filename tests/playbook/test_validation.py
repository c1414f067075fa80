from __future__ import annotations

import re

import pytest

from envmedic.errors import InvalidPlaybook
from envmedic.playbook.schema.loader import SIZE_LIMIT_BYTES, parse
from tests.playbook.helpers import MINIMAL


def mistakes(text: str | bytes, *, shipped_as: str | None = None) -> tuple[str, ...]:
    with pytest.raises(InvalidPlaybook) as caught:
        parse(text if isinstance(text, bytes) else text.encode(), "f.yaml", shipped_as=shipped_as)
    assert caught.value.hint
    return caught.value.details


def with_line(text: str) -> str:
    """The minimal playbook with more of it at the end."""
    return MINIMAL + text


def when(condition: str) -> str:
    return with_line(f"when:\n  {condition}\n")


def test_a_valid_playbook_is_read() -> None:
    playbook = parse(MINIMAL.encode(), "f.yaml")
    assert playbook.id == "mine"
    assert playbook.signatures[0].pattern == r"boom in (?P<part>\w+)"


def test_all_mistakes_come_at_once_in_the_order_of_the_file_with_positions() -> None:
    text = """\
idd: mine
fault: torchvison-ops
title: ""
explain: 3
fix_kind: other
signatures:
  - id: Foo
    pattern: "(?=x)"
    sample: y
    samples: y
  - id: twin
    pattern: a+
    sample: b
  - id: twin
    pattern: a+
    sample: a
when:
  all:
    - fact: torch.versoin
      operator: exists
    - fact: torch.version
      operator: ">="
      value: 2.10
    - any: []
      fact: gpu.count
steps:
  - step: instal
  - step: install
    requirements: [2.10, "not a requirement!"]
    indx: "{nobody}"
  - step: set_env
    variables: {X: 8.60}
checks: [torchvision-nns]
"""
    found = mistakes(text)
    expected = [
        "f.yaml:1:1: idd: unknown key (did you mean id?)",
        "f.yaml:1:1: the key `id` is missing",
        "f.yaml:2:8: fault: 'torchvison-ops' is not one of the values known here (did you mean torchvision-ops?)",
        "f.yaml:3:8: title: must not be empty",
        'f.yaml:4:10: explain: YAML reads 3 as a number; quote it: "3"',
        "f.yaml:7:9: signatures[0].id: 'Foo' is not an identifier",
        "f.yaml:8:14: signatures[0].pattern: RE2 refuses the pattern: invalid perl operator: (?=; look-ahead",
        "f.yaml:10:5: signatures[0].samples: unknown key (did you mean sample?)",
        "f.yaml:13:13: signatures[1].sample: the pattern of this signature does not match its sample",
        "f.yaml:14:9: signatures[2].id: the id twin is taken by the one on line 11",
        "f.yaml:19:13: when.all[0].fact: there is no fact or match group torch.versoin (did you mean torch.version",
        'f.yaml:23:14: when.all[1].value: YAML reads 2.10 as a number; quote it: "2.10"',
        "f.yaml:24:7: when.all[2]: a condition has exactly one of fact, all, any, not; here are fact, any",
        "f.yaml:24:7: when.all[2]: the key `operator` is missing beside `fact`",
        "f.yaml:24:12: when.all[2].any: must hold at least one condition",
        "f.yaml:27:11: steps[0].step: there is no step of kind instal (did you mean install or reinstall?)",
        'f.yaml:29:20: steps[1].requirements[0]: YAML reads 2.10 as a number; quote it: "2.10"',
        "f.yaml:29:26: steps[1].requirements[1]: 'not a requirement!' is not a requirement",
        "f.yaml:30:5: steps[1].indx: unknown key (did you mean index?)",
        "f.yaml:30:11: steps[1].indx: {nobody} is neither a group of the match, a fact nor a var",
        'f.yaml:32:20: steps[2].variables.X: YAML reads 8.60 as a number; quote it: "8.60"',
        "f.yaml:33:10: checks[0]: there is no check torchvision-nns (did you mean torchvision-nms",
    ]
    assert len(found) == len(expected), "\n".join(found)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)


@pytest.mark.parametrize("step", ["3", "[a]", "{stop: x}", "{step: [x]}", "{step: 3}"])
def test_a_step_without_a_usable_kind_is_one_mistake(step: str) -> None:
    found = mistakes(MINIMAL.replace("  - step: advise\n    text: Look at {part}.\n", f"  - {step}\n"))
    assert len(found) == 1
    assert "steps[0]" in found[0]


def test_only_the_mistakes_of_the_chosen_kind_of_step_are_reported() -> None:
    found = mistakes(MINIMAL.replace("    text: Look at {part}.\n", "    txt: x\n"))
    assert [line.partition(": ")[2] for line in found] == [
        "steps[0]: the key `text` is missing",
        "steps[0].txt: unknown key (did you mean text?)",
    ]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"a(?=b)", "look-ahead"),
        (r"a(?!b)", "look-ahead"),
        (r"(?<=a)b", "look-behind"),
        (r"(?<!a)b", "look-behind"),
        (r"(a)\1", "back-references"),
        (r"(?P<x>a)(?P=x)", "back-references"),
        (r"(?>a)b", "atomic groups"),
        (r"a(", "missing )"),
        (r"a{5000}", "invalid repetition size"),
        (r"x*", "matches an empty line"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    text = MINIMAL.replace("boom in (?P<part>\\\\w+)", pattern.replace("\\", "\\\\")).replace("{part}", "it")
    found = mistakes(text)
    assert any(line.startswith("f.yaml:8:14: signatures[0].pattern: ") and reason in line for line in found), found


def test_a_hostile_pattern_is_linear() -> None:
    text = MINIMAL.replace('"boom in (?P<part>\\\\w+)"', "'(x+x+)+y'").replace('"Error: boom in engine"', "xxy")
    assert parse(text.replace("{part}", "it").encode(), "f.yaml").signatures[0].pattern == "(x+x+)+y"


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("{fact: gpu.count, operator: contains, value: 1}", "gpu.count is of type int, which takes"),
        ("{fact: gpu.count, operator: '>', value: 1.5}", "must be a whole number"),
        ("{fact: gpu.count, operator: '>', value: true}", "must be a whole number"),
        ("{fact: torch.cuda-build, operator: is, value: 'yes'}", "must be true or false"),
        ("{fact: torch.version, operator: '>='}", "the key `value` is missing"),
        ("{fact: torch.version, operator: exists, value: '1'}", "exists takes no value"),
        ("{fact: torch.version, operator: '<', value: two}", "'two' is not a version"),
        ("{fact: torch.version, operator: is, value: '2.5.*'}", "compares with one exact version"),
        ("{fact: torch.version, operator: in, value: '2.5'}", "takes a list"),
        ("{fact: torch.version, operator: in, value: [2.10]}", 'quote it: "2.10"'),
        ("{fact: torch.version, operator: in, value: []}", "at least one value"),
        ("{fact: torch.variant, operator: matches, value: '(?=x)'}", "look-ahead"),
        ("{operator: is, value: x}", "has exactly one of"),
        ("{operator: is, all: []}", "`operator` goes with `fact`"),
        ("{not: {fact: torch.versio, operator: exists}}", "did you mean torch.version"),
        ("{fact: prat, operator: is, value: x}", "did you mean part"),
        ("{fact: torch.variant, operator: is, value: '{nobody}'}", "{nobody} is neither"),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused(condition: str, reason: str) -> None:
    found = mistakes(when(condition))
    assert any(line.partition(": ")[2].startswith("when") and reason in line for line in found), found


@pytest.mark.parametrize(
    "condition",
    [
        "{fact: part, operator: is, value: engine}",
        "{fact: torch.variant, operator: is, value: '{torchvision.variant}'}",
        "{fact: torch.variant, operator: matches, value: 'cu\\d{2,3}'}",
        "{fact: torch.version, operator: in, value: ['2.10', '2.11.*']}",
        "{fact: gpu.capabilities, operator: is, value: ['9.0']}",
        "{fact: torchvision.missing-libraries, operator: is, value: []}",
    ],
)
def test_conditions_over_facts_and_groups_are_accepted(condition: str) -> None:
    assert parse(when(condition).encode(), "f.yaml").when is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (with_line("checks: [command]\n"), "there is no check command"),
        (with_line("checks: [matmul, matmul]\n"), "checks[1]: the check matmul is named twice"),
        (with_line("alternatives: ['{nope}']\n"), "literal braces are doubled"),
        (with_line("vars: {v: '{v}'}\n"), "{v} is neither"),
        (MINIMAL.replace("(?P<part>", "(?P<other>"), "{part} is neither"),
        (MINIMAL.replace("signatures:", "sigs:"), "neither `signatures` nor `when`"),
        (MINIMAL.replace('sample: "Error', 'summary: "{tail}"\n    sample: "Error'), "signatures[0].summary: {tail}"),
    ],
)
def test_names_that_mean_nothing_are_refused(text: str, reason: str) -> None:
    assert any(reason in line for line in mistakes(text)), mistakes(text)


@pytest.mark.parametrize(
    "step",
    [
        "step: purge\n    distributions: ['{env.duplicates}', six]",
        "step: install\n    requirements: ['{env.duplicates}']",
        "step: pin\n    constraints: ['{env.duplicates}']",
        "step: unset_env\n    names: ['{env.duplicates}']",
        "step: install\n    requirements: ['torch=={torch.version}']",
    ],
)
def test_a_list_may_be_filled_from_a_fact(step: str) -> None:
    assert len(parse(with_line(f"  - {step}\n").encode(), "f.yaml").steps) == 2


@pytest.mark.parametrize(
    "step",
    [
        "step: purge\n    distributions: ['x-{env.duplicates}']",
        "step: install\n    requirements: ['{env.duplicates}>1']",
        "step: replace\n    distribution: '{env.duplicates}'\n    by: av",
    ],
)
def test_a_list_is_no_part_of_a_name(step: str) -> None:
    found = mistakes(with_line(f"  - {step}\n"))
    assert len(found) == 1
    assert "env.duplicates is a list: it can only be a whole item of a list, as {env.duplicates}" in found[0]


def test_a_shipped_playbook_is_named_after_its_file_and_has_no_commands() -> None:
    text = with_line("  - step: command\n    argv: [ls]\n")
    assert parse(text.encode(), "f.yaml").id == "mine"
    found = mistakes(text, shipped_as="other")
    assert found[0] == "f.yaml:1:5: id: mine is not the file's name; a shipped playbook is mine.yaml"
    assert "f.yaml:13:5: steps[1]: a shipped playbook has no step of kind command" in found


def test_a_refused_value_is_not_judged_a_second_time() -> None:
    assert len(mistakes(MINIMAL.replace("title: A title", "title: &t A title"))) == 1


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    assert mistakes(b"#" * (SIZE_LIMIT_BYTES + 1)) == ("f.yaml:1:1: larger than 200000 bytes, which no playbook is",)


@pytest.mark.parametrize("text", ["- a\n", "just text\n", "3\n"])
def test_a_document_that_is_no_mapping_is_refused(text: str) -> None:
    found = mistakes(text)
    assert any(re.match(r"f\.yaml:1:1: must be a mapping, not", line) for line in found)


def test_facts_of_any_distribution_are_known_by_its_normalised_name() -> None:
    text = MINIMAL + "when: {fact: package.FACT, operator: '<', value: '2'}\n"
    parse(text.replace("FACT", "numpy.version").replace("{part}", "{package.flash-attn.owner}").encode(), "f")
    for wrong in ("NumPy.version", "numpy.colour", "flash_attn.version"):
        (found,) = mistakes(text.replace("FACT", wrong))
        assert f"there is no fact or match group package.{wrong}; of a distribution there are package.<name>" in found


NO_FAULT = MINIMAL.replace("fault: torchvision-ops\n", "").replace("fix_kind: other", "fix_kind: not-an-env-problem")


@pytest.mark.parametrize("text", [NO_FAULT, NO_FAULT.replace("title:", "fault: null\ntitle:")])
def test_a_playbook_may_explain_what_is_no_fault_of_an_environment(text: str) -> None:
    assert parse(text.encode(), "f.yaml").fault is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MINIMAL.replace("fault: torchvision-ops\n", ""), "fix_kind: `fault` is missing; only a playbook of fix_kind"),
        (
            NO_FAULT[: NO_FAULT.index("signatures:")]
            + NO_FAULT[NO_FAULT.index("steps:") :].replace("{part}", "it")
            + "when: {fact: env.kind, operator: exists}\n",
            "when: a playbook without a fault has `when` beside `signatures` only",
        ),
        (NO_FAULT + "checks: [import]\n", "checks: a playbook without a fault has no `checks`"),
        (NO_FAULT + "  - {step: pin, constraints: [numpy]}\n", "only has steps of kind advise"),
    ],
)
def test_a_playbook_without_a_fault_repairs_nothing(text: str, reason: str) -> None:
    (mistake,) = mistakes(text)
    assert reason in mistake
