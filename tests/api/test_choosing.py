"""The order in which plans are tried: findings, best first, and the ways of each; nothing is undone or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from packaging.requirements import Requirement

from envmedic.api.context.settings import Settings
from envmedic.api.planning.plan_choice import PlanChoices, RepairGoal, repairable, undoes
from envmedic.api.planning.rounds import Loop
from envmedic.errors import ExitCode, HostFault, InputError, NoSolution, NothingToRepair
from envmedic.model.events import Emit, EventStream
from envmedic.model.facts import Environment, Facts, Origin
from envmedic.model.findings import Diagnosis, Evidence, Finding
from envmedic.model.plan import Change, Plan, Purge, Rebuild, SetEnv
from envmedic.model.playbook import (
    AdviseStep,
    Condition,
    InstallStep,
    LoadedPlaybook,
    PurgeStep,
    RebuildStep,
    RemedyStep,
    SetEnvStep,
)
from envmedic.model.ports import ExtendRequest, Resolution, ResolveRequest
from envmedic.model.registries.faults import Fault
from tests.planner.support import Spelling, dist, environment, facts, finding, playbook, usual, wheel


class Answering(Spelling):
    """An installer that has a wheel for every exact pin, which requires nothing; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        del environment, emit
        self.asked.append(request.pins)
        pins = [Requirement(pin) for pin in request.pins]
        return Resolution(
            artifacts=tuple(wheel(pin.name, str(pin.specifier).removeprefix("==") or "1") for pin in pins)
        )


def choices(
    given: Facts, *books: tuple[Finding, LoadedPlaybook], earlier: tuple[Plan, ...] = ()
) -> tuple[PlanChoices, Answering]:
    installer = Answering()
    wanted = RepairGoal(given, tuple(book for _, book in books), tuple(item for item, _ in books), extendable=True)
    return PlanChoices(Settings(stream=EventStream([])), installer, wanted, earlier=earlier), installer


def named(name: str, *steps: object, fix_kind: str = "other") -> tuple[Finding, LoadedPlaybook]:
    """A finding and its playbook, which are called `name`."""
    book = playbook(*steps)  # type: ignore[arg-type]
    inner = msgspec.structs.replace(book.playbook, id=name, title=name, fix_kind=fix_kind)
    found = msgspec.structs.replace(finding(), playbook=name, summary=name, fix_kind=fix_kind)
    return found, msgspec.structs.replace(book, playbook=inner)


def every(made: PlanChoices) -> list[Plan]:
    found = []
    while (plan := made.next()) is not None:
        found.append(plan)
    return found


ADVICE = AdviseStep(text="Ask your administrator")


def test_the_ways_of_a_finding_come_in_order_and_are_resolved_when_they_are_asked_for() -> None:
    made, installer = choices(
        facts(driver="570.124.06", gpus=("12.0",)),
        named("family"),
        named("pillow", InstallStep(requirements=("pillow==9",))),
    )
    first = made.next()
    assert first is not None
    assert len(installer.asked) == 1
    rest = every(made)
    assert [plan.playbook for plan in (first, *rest)].count("family") >= 2
    assert rest[-1].playbook == "pillow"
    second = rest[0]
    tried = [item for item in second.alternatives if "did not prove itself" in item.why_not]
    assert len(tried) == 1
    assert not tried[0].feasible


def test_a_way_that_is_asked_for_comes_first_and_the_others_stay() -> None:
    usual_order = every(choices(facts(driver="570.124.06", gpus=("12.0",)), named("family"))[0])
    asked = usual_order[0].alternatives[1].title
    wanted = choices(facts(driver="570.124.06", gpus=("12.0",)), named("family"))[0].wanted
    made = PlanChoices(Settings(stream=EventStream([])), Answering(), replace(wanted, way=asked))
    first = made.next()
    assert first is not None
    assert first.changes == usual_order[2].changes
    assert asked not in {item.title for item in first.alternatives}
    assert [item.why_not for item in first.alternatives[:2]] == ["another way was asked for"] * 2
    assert len([first, *every(made)]) == len(usual_order)


def test_a_way_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    made, _ = choices(facts(driver="570.124.06", gpus=("12.0",)), named("family"))
    titles = {item.title for item in every(made)[0].alternatives if item.feasible}
    other = PlanChoices(Settings(stream=EventStream([])), Answering(), replace(made.wanted, way="magic"))
    with pytest.raises(InputError, match="no way called 'magic'") as caught:
        other.next()
    assert titles < set(caught.value.details)


def test_a_fault_that_is_not_there_is_left_with_all_its_ways() -> None:
    made, _ = choices(
        facts(driver="570.124.06", gpus=("12.0",)),
        named("family"),
        named("pillow", InstallStep(requirements=("pillow==9",))),
    )
    assert made.next() is not None
    other = made.next(another_fault=True)
    assert other is not None
    assert other.playbook == "pillow"


def test_findings_without_a_plan_are_noted_and_hide_nothing() -> None:
    made, _ = choices(
        facts(),
        named("no-plan", PurgeStep(distributions=("absent",))),
        named("advice", ADVICE),
        named("pillow", InstallStep(requirements=("pillow==9",))),
    )
    plan = made.next()
    assert plan is not None
    assert plan.playbook == "pillow"
    told = [note for note in plan.notes if note.startswith("Not repaired: ")]
    assert told[0].startswith("Not repaired: no-plan: ")
    assert told[1] == "Not repaired: advice: Ask your administrator"


@pytest.mark.parametrize(
    ("fix_kind", "kind", "code"),
    [("other", NothingToRepair, ExitCode.PROBLEM), ("upgrade-driver", HostFault, ExitCode.HOST)],
)
def test_advice_alone_is_an_error_with_the_advice(fix_kind: str, kind: type[Exception], code: ExitCode) -> None:
    made, _ = choices(facts(), named("advice", ADVICE, AdviseStep(text="Or wait"), fix_kind=fix_kind))
    assert made.next() is None
    error = made.errors[0]
    assert isinstance(error, kind)
    assert (error.exit_code, error.hint) == (code, "Ask your administrator\nOr wait")


def earlier(*changes: tuple[str, str | None], steps: Sequence[object] = ()) -> Plan:
    """A plan that was carried out."""
    made, _ = choices(facts(), named("before", ADVICE, InstallStep(requirements=("six==1",))))
    plan = made.next()
    assert plan is not None
    rows = tuple(Change(kind="change", name=name, before="0", after=after) for name, after in changes)
    return msgspec.structs.replace(plan, changes=rows, steps=tuple(steps))


def test_what_was_repaired_before_is_not_undone() -> None:
    before = (earlier(("pillow", "10.4.0")), earlier(("decord", None)))
    env = facts(environment([*usual(), dist("six", "0.9")]))
    made, _ = choices(
        env,
        named("back", InstallStep(requirements=("pillow==9",))),
        named("again", InstallStep(requirements=("decord==0.6",))),
        named("other", InstallStep(requirements=("six==1.0",))),
        earlier=before,
    )
    assert [plan.playbook for plan in every(made)] == ["other"]
    assert "it would undo what was repaired before: pillow 10.4.0" in made.skipped["back"]
    assert "decord was removed" in made.skipped["again"]


def test_variables_that_were_set_before_stay() -> None:
    before = (earlier(steps=(SetEnv(variables={"CUDA_HOME": "/usr/local/cuda-12.4"}),)),)
    same = SetEnvStep(variables={"CUDA_HOME": "/usr/local/cuda-12.4"})
    other = SetEnvStep(variables={"CUDA_HOME": "/usr/local/cuda-11.8"})
    made, _ = choices(facts(), named("other", other), named("same", same), earlier=before)
    assert every(made) == []
    assert "the variable CUDA_HOME" in made.skipped["other"]
    assert made.skipped["same"] == "its steps were taken already"


def test_leftovers_that_are_new_are_no_repetition() -> None:
    done = earlier(("pillow", "9"), steps=(Purge(leftovers=("lib/~illow",)),))
    made, _ = choices(facts(), named("pillow", InstallStep(requirements=("pillow==9",))), earlier=(done,))
    assert every(made) == []
    assert undoes(done, (done,)) == ""


def diagnosed(*found: Finding) -> Diagnosis:
    return Diagnosis(prefix=None, facts=None, verdict="env", findings=found)


def test_a_failed_check_puts_what_it_points_to_first_and_makes_a_faint_text_enough() -> None:
    sure = msgspec.structs.replace(finding(), fault="numpy-abi", playbook="a", confidence=0.9)
    faint = msgspec.structs.replace(finding(), fault="cudnn-mismatch", playbook="b", confidence=0.3)
    assert repairable(diagnosed(sure, faint)) == (sure,)
    assert repairable(diagnosed(sure, faint), {"cudnn-mismatch", "no-kernel-image"}) == (faint, sure)
    assert repairable(diagnosed(sure, faint), {"nvrtc-arch"}) == (sure,)


def test_what_facts_refute_is_not_repaired_whatever_points_to_it() -> None:
    refuted = msgspec.structs.replace(finding(), fault="cudnn-mismatch", confirmed=False)
    nothing = msgspec.structs.replace(finding(), fault="cudnn-mismatch", confidence=0.1, confirmed=None)
    assert repairable(diagnosed(refuted, nothing), {"cudnn-mismatch"}) == ()


def test_the_same_build_is_not_run_again_for_the_copy_that_it_made() -> None:
    item = msgspec.structs.replace(dist("my-ops", "1.0"), origin=Origin(kind="index"))
    given = facts(environment([*usual(), item], variant="cpu"))
    book = named("rebuild", RebuildStep(distribution="my-ops"))
    (first,) = every(choices(given, book)[0])
    (step,) = (one for one in first.steps if isinstance(one, Rebuild))
    older = msgspec.structs.replace(step.distribution, metadata_path="site-packages/my_ops-0.9.dist-info")
    steps = tuple(msgspec.structs.replace(one, distribution=older) if one is step else one for one in first.steps)
    again, _ = choices(given, book, earlier=(msgspec.structs.replace(first, steps=steps),))
    assert every(again) == []
    assert "taken already" in (again.errors[0].cause or "")


def test_facts_tell_the_end_of_the_report_also_after_a_plan_of_a_class_that_could_have_brought_it_about() -> None:
    def of(class_of_fault: Fault, pair: tuple[Finding, LoadedPlaybook]) -> tuple[Finding, LoadedPlaybook]:
        found, book = pair
        when = Condition(fact="host.gpus-hidden", operator="exists")
        inner = msgspec.structs.replace(book.playbook, fault=class_of_fault, when=when, checks=("facts",))
        return (
            msgspec.structs.replace(found, fault=class_of_fault, confirmed=True),
            msgspec.structs.replace(book, playbook=inner),
        )

    cause = of("duplicate-install", named("cause", InstallStep(requirements=("pillow==9",))))
    asked = of("companion-version", named("asked", InstallStep(requirements=("lost==1",))))
    made, installer = choices(facts(), cause, asked)
    wanted = replace(made.wanted, reported=asked[0])
    first, second = every(PlanChoices(Settings(stream=EventStream([])), installer, wanted))
    ends = [check for check in first.checks if check.role == "reproduction"]
    assert [check.arguments for check in ends] == [("asked",)]
    assert first.unanswered == ()
    assert [check for check in second.checks if check.role == "reproduction"] == []


class OnlyEarly(Answering):
    """An index with a pre-release alone after the installed models, and with releases of `others`."""

    def __init__(self, **others: str) -> None:
        super().__init__()
        self.others = others

    def resolve(self, request: ResolveRequest, environment: Environment, emit: Emit) -> Resolution:
        """Choose the pre-release where it is not to count as none."""
        del environment, emit
        names = [Requirement(pin).name for pin in request.pins]
        known = {**self.others, "models": "5.0rc0"}
        if (request.stable and "models" in names) or not known.keys() >= {*names}:
            error = NoSolution(f"No release of {', '.join(names)} fits")
            error.early = ("models==5.0rc0",) if "models" in names else ()
            raise error
        return Resolution(artifacts=tuple(wheel(name, known[name]) for name in names))


@pytest.mark.parametrize(("others", "moved"), [({"hub": "0.9"}, "hub"), ({}, "models")])
def test_a_pre_release_comes_after_every_other_way(others: dict[str, str], moved: str) -> None:
    tools = (dist(name, "1.0", "hub") for name in ("data", "tokens"))
    here = environment([*usual(), *tools, dist("models", "4.56", "hub<1"), dist("hub", "1.0")])
    book = named("hub", RemedyStep(name="unmet-requirement"))
    wanted = RepairGoal(facts(here), (book[1],), (book[0],), extendable=True)
    plan = PlanChoices(Settings(stream=EventStream([])), OnlyEarly(**others), wanted).next()
    assert plan is not None
    assert [change.name for change in plan.changes] == [moved]


def reading(name: str, *lines: int, confirmed: bool | None = None) -> tuple[Finding, LoadedPlaybook]:
    """A finding by these lines of the text, or without any by facts alone, that installs a distribution of its name."""
    found, book = named(name, InstallStep(requirements=(f"{name}==1",)))
    text = tuple(Evidence(kind="text", where=f"log:{line}", what="an error") for line in lines)
    signature = name if lines else None
    return msgspec.structs.replace(found, signature=signature, evidence=text, confirmed=confirmed), book


def test_another_reading_of_a_message_is_no_further_fault_and_comes_where_the_first_one_fails() -> None:
    here = facts(driver="570.124.06", gpus=("12.0",))
    seen = here.environment
    assert seen is not None

    def after(*books: tuple[Finding, LoadedPlaybook], verified: bool) -> str | None:
        made, _ = choices(here, *books)
        first = made.next()
        assert first is not None
        asked = ExtendRequest(plans=(first,), environment=lambda: seen, round=1, verified=verified)
        found = Loop(Settings(stream=EventStream([])), made)(asked)
        return found.plan.playbook if found is not None else None

    one, other, later = reading("one", 7), reading("other", 6, 7), reading("later", 20)
    assert after(one, other, later, verified=False) == "later"
    assert after(one, other, verified=False) is None
    assert after(one, other, verified=True) == "other"


def test_what_facts_refuted_before_a_repair_and_confirm_after_it_is_a_further_fault() -> None:
    here = facts(driver="570.124.06", gpus=("12.0",))
    made, installer = choices(here, reading("one", 7))
    found, book = reading("other", 7, confirmed=False)
    book = msgspec.structs.replace(
        book, playbook=msgspec.structs.replace(book.playbook, when=Condition(fact="torch.version", operator="exists"))
    )
    wanted = replace(made.wanted, playbooks=(*made.wanted.playbooks, book), refuted=(found,))
    made = PlanChoices(Settings(stream=EventStream([])), installer, wanted)
    first = made.next()
    loop = Loop(Settings(stream=EventStream([])), made)
    for seen, expected in ((environment([]), None), (here.environment, "other")):
        assert first is not None
        assert seen is not None
        asked = ExtendRequest(plans=(first,), environment=lambda seen=seen: seen, round=1, verified=False)  # type: ignore[misc]
        extension = loop(asked)
        assert (extension.plan.playbook if extension is not None else None) == expected


def of_class(fault: Fault, found: Finding, book: LoadedPlaybook) -> tuple[Finding, LoadedPlaybook]:
    inner = msgspec.structs.replace(book.playbook, fault=fault)
    return msgspec.structs.replace(found, fault=fault), msgspec.structs.replace(book, playbook=inner)


def test_what_facts_show_besides_is_not_repaired_in_the_place_of_what_was_reported() -> None:
    told, advice = of_class("cpu-only-torch", *reading("told", 7))
    advice = msgspec.structs.replace(advice, playbook=msgspec.structs.replace(advice.playbook, steps=(ADVICE,)))
    shown = of_class("missing-cuda-library", *reading("shown", confirmed=True))
    made, installer = choices(facts(driver="570.124.06", gpus=("12.0",)), (told, advice), shown)
    for importing, plans in ((None, []), ("boxes", ["shown"])):
        wanted = replace(made.wanted, reported=told, importing=importing)
        found = PlanChoices(Settings(stream=EventStream([])), installer, wanted)
        assert [plan.playbook for plan in every(found)] == plans
        assert [item.summary for item in found.errors] == ["told", "shown is not what was reported"][: 2 - len(plans)]
