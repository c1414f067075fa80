"""Validation rules of playbooks that a JSON schema cannot express.

The rules read the located document, not the typed playbook, so that their mistakes are reported together with those
of the schema, whatever else is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier, Specifier

from envmedic import limits
from envmedic.model.playbook import LoadedPlaybook, Playbook, Signature
from envmedic.model.registries.remedies import FORMER_FACTS
from envmedic.model.vocabulary.fact_kind import FactType
from envmedic.model.vocabulary.names import FACTS, PACKAGE_FACTS, PLAYBOOK_CHECKS, fact_kind
from envmedic.playbook.matching.match import scan
from envmedic.playbook.matching.patterns import PatternRefused, compiled, group_names
from envmedic.playbook.schema.conditions import LIST_OPERATORS, OPERATORS, UNARY
from envmedic.playbook.schema.document import Located
from envmedic.playbook.schema.mistakes import Path, PlaybookMistake, suggestion
from envmedic.playbook.schema.template import placeholders, sole_placeholder

_FORMS = ("fact", "all", "any", "not")
_NO_REPAIR = "not-an-env-problem"
_REQUIREMENT_LISTS = {"install": "requirements", "pin": "constraints"}
_LISTS = {**_REQUIREMENT_LISTS, "purge": "distributions", "unset_env": "names"}
"""For each kind of step, the list whose items may be placeholders of list facts."""
_SCALARS = {"replace": ("distribution", "by"), "install": ("index", "variant")}
_WANTED_TYPES: dict[FactType, type] = {"bool": bool, "int": int, "string": str, "version": str, "strings": str}
_TYPE_WORDS = {"bool": "true or false", "int": "a whole number", "string": "text", "version": "a quoted version",
               "strings": "text"}  # fmt: skip


def semantic_mistakes(document: Located, *, shipped_as: str | None) -> Iterator[PlaybookMistake]:
    """Mistakes of meaning. `shipped_as` is the file's stem for a shipped playbook, else None."""
    names = _Names(document)
    yield from _identity(document, shipped_as)
    yield from _signatures(document)
    when = document.child("when")
    if when is not None:
        yield from _condition(when, ("when",), names)
    yield from _placeholders(document, names)
    yield from _steps(document, names, shipped=shipped_as is not None)
    yield from _checks(document)
    yield from _no_fault(document)


class _Names:
    """The names that placeholders and conditions of this playbook may use."""

    def __init__(self, document: Located) -> None:
        patterns = (signature.child("pattern") for _, signature in _items(document, "signatures"))
        self.by_signature = [group_names(_text(pattern) or "") for pattern in patterns]
        self.groups: frozenset[str] = frozenset().union(*self.by_signature)
        variables = document.child("vars")
        self.variables = frozenset(variables.keys) if variables is not None else frozenset()

    def type(self, name: str) -> FactType | None:
        """Return the type of the fact or group `name`; None if it does not exist."""
        kind = fact_kind(name)
        if kind is not None:
            return kind.type
        return "string" if name in self.groups else None


def _items(document: Located, key: str) -> list[tuple[Path, Located]]:
    parent = document.child(key)
    return [((key, index), item) for index, item in enumerate(parent.items)] if parent is not None else []


def _text(located: Located | None) -> str | None:
    return located.plain if located is not None and isinstance(located.plain, str) else None


def _identity(document: Located, shipped_as: str | None) -> Iterator[PlaybookMistake]:
    identifier = document.child("id")
    name = _text(identifier)
    if identifier is not None and name and shipped_as is not None and name != shipped_as:
        yield PlaybookMistake(
            identifier.position, ("id",), f"{name} is not the file's name; a shipped playbook is {name}.yaml"
        )
    if not _items(document, "signatures") and "when" not in document.keys:
        yield PlaybookMistake(
            document.position, (), "neither `signatures` nor `when`: nothing could ever find this playbook"
        )


def _no_fault(document: Located) -> Iterator[PlaybookMistake]:
    """Check a playbook without a fault: it explains a problem outside the environment, and repairs nothing."""
    kind = document.child("fix_kind")
    if kind is None or _text(document.child("fault")) is not None:
        return
    if _text(kind) != _NO_REPAIR:
        message = f"`fault` is missing; only a playbook of fix_kind {_NO_REPAIR} has none"
        yield PlaybookMistake(kind.position, ("fix_kind",), message)
    if "checks" in document.keys:
        yield PlaybookMistake(document.keys["checks"][0], ("checks",), "a playbook without a fault has no `checks`")
    if "when" in document.keys and "signatures" not in document.keys:
        message = "a playbook without a fault has `when` beside `signatures` only: without a text it explains nothing"
        yield PlaybookMistake(document.keys["when"][0], ("when",), message)
    for path, step in _items(document, "steps"):
        if _text(step.child("step")) != "advise":
            yield PlaybookMistake(step.position, path, "a playbook without a fault only has steps of kind advise")


def _signatures(document: Located) -> Iterator[PlaybookMistake]:
    first: dict[str, int] = {}
    for path, signature in _items(document, "signatures"):
        identifier = signature.child("id")
        name = _text(identifier)
        if identifier is not None and name:
            line = first.setdefault(name, identifier.position.line)
            if line != identifier.position.line:
                yield PlaybookMistake(
                    identifier.position, (*path, "id"), f"the id {name} is taken by the one on line {line}"
                )
        pattern = signature.child("pattern")
        if pattern is not None and _text(pattern):
            yield from _pattern(pattern, (*path, "pattern"))
            yield from _sample(signature, path)


def _pattern(located: Located, path: Path) -> Iterator[PlaybookMistake]:
    try:
        program = compiled(_text(located) or "")
    except PatternRefused as refusal:
        yield PlaybookMistake(located.position, path, str(refusal))
        return
    # only the empty text is tried: whether a pattern matches too much else is for the samples of all playbooks
    if program.search(b"") is not None:
        yield PlaybookMistake(located.position, path, "the pattern matches an empty line, so it would match every log")
    # a template could not tell the group from the fact
    clash = sorted(group_names(_text(located) or "") & FACTS.keys())
    if clash:
        yield PlaybookMistake(located.position, path, f"a group may not have the name of a fact: {', '.join(clash)}")


def _sample(signature: Located, path: Path) -> Iterator[PlaybookMistake]:
    pattern, sample = _text(signature.child("pattern")) or "", signature.child("sample")
    text = _text(sample)
    try:
        compiled(pattern)
    except PatternRefused:
        return
    if sample is not None and text and not _matches(pattern, text):
        yield PlaybookMistake(
            sample.position, (*path, "sample"), "the pattern of this signature does not match its sample"
        )


def _matches(pattern: str, sample: str) -> bool:
    """Whether a log with `sample` alone would be recognised."""
    # by the matcher itself, not by the pattern: lines are cleaned and joined before patterns see them
    playbook = Playbook(
        id="sample", fault="torchvision-ops", title="-", explain="-", fix_kind="other", steps=(),
        signatures=(Signature(id="sample", pattern=pattern, sample=sample),),
    )  # fmt: skip
    loaded = LoadedPlaybook(playbook=playbook, path="", sha256="", origin="file")
    return bool(scan(sample.encode().split(b"\n"), [loaded]))


def _condition(here: Located, path: Path, names: _Names) -> Iterator[PlaybookMistake]:
    if not isinstance(here.plain, dict):
        return
    forms = [form for form in _FORMS if form in here.keys]
    if len(forms) != 1:
        found = f"here are {', '.join(forms)}" if forms else "here is none of them"
        yield PlaybookMistake(here.position, path, f"a condition has exactly one of fact, all, any, not; {found}")
    # even with no form or several, what each contains is checked: the author sees all mistakes at once
    for form in ("all", "any"):
        part = here.child(form)
        if part is None:
            continue
        if part.plain == []:
            yield PlaybookMistake(part.position, (*path, form), "must hold at least one condition")
        for index, item in enumerate(part.items):
            yield from _condition(item, (*path, form, index), names)
    negated = here.child("not")
    if negated is not None:
        yield from _condition(negated, (*path, "not"), names)
    yield from _comparison(here, path, names)


def _comparison(here: Located, path: Path, names: _Names) -> Iterator[PlaybookMistake]:
    fact, operator = here.child("fact"), here.child("operator")
    if fact is None:
        for key in ("operator", "value"):
            if key in here.keys:
                yield PlaybookMistake(here.keys[key][0], (*path, key), f"`{key}` goes with `fact`")
        return
    name = _text(fact)
    kind = names.type(name) if name else None
    if name and kind is None:
        hint = _package_hint(name) or suggestion(name, {*FACTS, *names.groups})
        message = _former(name) or f"there is no fact or match group {name}{hint}"
        yield PlaybookMistake(fact.position, (*path, "fact"), message)
    if operator is None:
        yield PlaybookMistake(here.position, path, "the key `operator` is missing beside `fact`")
        return
    word = _text(operator)
    if kind is None or word is None:
        return
    if word not in OPERATORS[kind]:
        allowed = ", ".join(sorted(OPERATORS[kind]))
        yield PlaybookMistake(
            operator.position, (*path, "operator"), f"{name} is of type {kind}, which takes {allowed}"
        )
        return
    yield from _value(here, path, word, kind)


def _former(name: str) -> str:
    """Return the message for a computed fact of version 0.1, which a remedy replaced; empty for any other name."""
    former = FORMER_FACTS.get(name)
    if former is None:
        return ""
    instead = f"in the place of the step that uses it write `step: remedy, name: {former.remedy}`"
    return (
        f"{name} is no fact any more, since it was no observation: {instead}; a condition can ask for {former.observed}"
    )


def _package_hint(name: str) -> str:
    if not name.startswith("package."):
        return ""
    return f"; of a distribution there are {', '.join(kind.name for kind in PACKAGE_FACTS)}, with its normalised name"


def _value(here: Located, path: Path, operator: str, kind: FactType) -> Iterator[PlaybookMistake]:
    value = here.child("value")
    if operator in UNARY:
        if value is not None:
            yield PlaybookMistake(value.position, (*path, "value"), f"{operator} takes no value")
        return
    if value is None:
        yield PlaybookMistake(here.position, path, f"the key `value` is missing: {operator} compares with it")
        return
    if operator in LIST_OPERATORS:
        if not value.items:
            yield PlaybookMistake(value.position, (*path, "value"), f"{operator} takes a list of at least one value")
        for index, item in enumerate(value.items):
            yield from _scalar_value(item, (*path, "value", index), operator, kind)
    elif isinstance(value.plain, list) and kind == "strings" and operator != "contains":
        return  # a list is compared with a list, and the schema checks its items
    else:
        yield from _scalar_value(value, (*path, "value"), operator, kind)


def _scalar_value(value: Located, path: Path, operator: str, kind: FactType) -> Iterator[PlaybookMistake]:
    plain = value.plain
    number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if kind == "version" and number:
        # the schema reports items of a list, in the same words
        if path[-1] == "value":
            yield PlaybookMistake(
                value.position, path, f'YAML reads {value.text} as a number; quote it: "{value.text}"'
            )
    elif type(plain) is not _WANTED_TYPES[kind]:
        if path[-1] == "value":
            yield PlaybookMistake(value.position, path, f"must be {_TYPE_WORDS[kind]}, as the fact is of type {kind}")
    elif operator == "matches":
        yield from _pattern(value, path)
    elif kind == "version" and isinstance(plain, str) and not placeholders(plain):
        yield from _version(value, path, operator, plain)


def _version(value: Located, path: Path, operator: str, text: str) -> Iterator[PlaybookMistake]:
    # Specifier knows no `is` and `in`; their versions have the syntax of `==`
    comparison = operator if operator in {"<", "<=", ">", ">="} else "=="
    try:
        Specifier(f"{comparison}{text}")
    except InvalidSpecifier:
        yield PlaybookMistake(value.position, path, f"{text!r} is not a version that {operator} can compare with")
    else:
        if operator in {"is", "is-not"} and "*" in text:
            yield PlaybookMistake(
                value.position, path, f"{operator} compares with one exact version; use == for {text}"
            )


def _placeholders(document: Located, names: _Names) -> Iterator[PlaybookMistake]:
    """Check the placeholders of all templates: every text but ids, patterns, samples and references."""
    known = names.groups | names.variables | FACTS.keys()
    for path, value in document.walk():
        text = _text(value)
        if text is None or not path or path[-1] in {"pattern", "sample", "id", "fact"} or path[0] == "references":
            continue
        if path[-1] == "value" and _text(document.at(path[:-1]).child("operator")) == "matches":
            continue  # a regular expression has braces of its own
        allowed: Collection[str] = known
        # a signature's texts are filled from its own match; vars are filled before other vars exist
        if path[0] == "signatures" and len(path) > 1 and isinstance(path[1], int):
            allowed = names.by_signature[path[1]] | names.variables | FACTS.keys()
        elif path[0] == "vars":
            allowed = names.groups | FACTS.keys()
        for name in placeholders(text):
            if name not in allowed and fact_kind(name) is None:
                hint = suggestion(name, allowed) or "; literal braces are doubled: {{ }}"
                unknown = f"{{{name}}} is neither a group of the match, a fact nor a var{hint}"
                yield PlaybookMistake(value.position, path, _former(name) or unknown)


def _steps(document: Located, names: _Names, *, shipped: bool) -> Iterator[PlaybookMistake]:
    for path, step in _items(document, "steps"):
        kind = _text(step.child("step"))
        # no plan could show what a command changes, so such a step is never carried out
        if kind == "command" and shipped:
            yield PlaybookMistake(step.position, path, "a shipped playbook has no step of kind command")
        key = _LISTS.get(kind or "", "")
        listed = step.child(key) if key else None
        for index, item in enumerate(listed.items if listed is not None else ()):
            # a list fact replaces a whole item, never a part of one: `torch{companions}` has no meaning
            if sole_placeholder(_text(item) or "") is None:
                yield from _no_list(item, (*path, key, index), names)
            if kind in _REQUIREMENT_LISTS:
                yield from _requirement(item, (*path, key, index))
        for word in _SCALARS.get(kind or "", ()):
            yield from _no_list(step.child(word), (*path, word), names)


def _no_list(here: Located | None, path: Path, names: _Names) -> Iterator[PlaybookMistake]:
    for name in placeholders((_text(here) if here is not None else None) or ""):
        if here is not None and names.type(name) == "strings":
            yield PlaybookMistake(
                here.position, path, f"{name} is a list: it can only be a whole item of a list, as {{{name}}}"
            )


def _requirement(item: Located, path: Path) -> Iterator[PlaybookMistake]:
    text = _text(item)
    if not text or placeholders(text):
        return
    try:
        limits.parsed(text)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        yield PlaybookMistake(item.position, path, f"{text!r} is not a requirement: {reason}")


def _checks(document: Located) -> Iterator[PlaybookMistake]:
    seen: set[str] = set()
    for path, check in _items(document, "checks"):
        name = _text(check)
        if name and name not in PLAYBOOK_CHECKS:
            hint = suggestion(name, PLAYBOOK_CHECKS) or f"; known: {', '.join(PLAYBOOK_CHECKS)}"
            yield PlaybookMistake(check.position, path, f"there is no check {name}{hint}")
        elif name and name in seen:
            yield PlaybookMistake(check.position, path, f"the check {name} is named twice")
        elif name == "facts" and "when" not in document.keys:
            yield PlaybookMistake(
                check.position, path, "the check facts asks whether `when` still holds, and there is none"
            )
        seen.add(name or "")
