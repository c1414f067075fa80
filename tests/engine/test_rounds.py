"""The repair loop: further faults in the same clone, other ways in a fresh one, and what stands when a round fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from envmedic.errors import NetworkError
from envmedic.model.checks import Check
from envmedic.model.events import CheckFinished, Notice, RoundStarted, StageStarted
from envmedic.model.facts import Environment
from envmedic.model.plan import Install, Plan, Purge, Step
from envmedic.model.ports import ApplyOptions, ExtendRequest, PlanExtension
from envmedic.model.record import Left
from envmedic.tree import fingerprint
from tests.engine.test_apply import failure_code, unchanged
from tests.engine.world import SITE, World, artifact, finding, replacement

Extend = Callable[[ExtendRequest], PlanExtension | None]
BOTH = Check(name="both", role="playbook", arguments=("import fam, companion",))
COMPANION = Check(name="companion-imports", role="playbook", arguments=("import companion",))


def install(name: str, version: str = "1.5") -> tuple[Step, ...]:
    return (Install(artifacts=(artifact(name, version),)),)


def another(plan: Plan, *steps: Step, name: str = "plan-2", checks: tuple[Check, ...] | None = None) -> Plan:
    return msgspec.structs.replace(plan, id=name, steps=steps, checks=plan.checks if checks is None else checks)


def extension(plan: Plan, keep: int = 1) -> PlanExtension:
    return PlanExtension(plan=another(plan, *install("companion")), because="companion is missing", keep=keep)


def after_checks(extend: Extend) -> Extend:
    """A loop to which facts say nothing: it looks at checks alone."""
    return lambda request: extend(request) if request.verified else None


def observe(root: Path) -> Environment:
    return msgspec.convert(
        {
            "prefix": str(root),
            "real_prefix": str(root),
            "kind": "venv",
            "interpreter": {"path": f"{root}/bin/python", "starts": True},
            "site_packages": [f"{root}/{SITE}"],
        },
        Environment,
    )


def test_the_loop_goes_on_in_the_same_clone_until_all_checks_pass(world: World) -> None:
    asked: list[str] = []
    requests: list[ExtendRequest] = []
    seen: list[Environment] = []
    plan = world.plan(checks=(BOTH,), extendable=True)

    def extend(request: ExtendRequest) -> PlanExtension:
        requests.append(request)
        seen.append(request.environment())
        return extension(plan)

    def confirm(plan: Plan) -> bool:
        asked.append(plan.id)
        return True

    world.confirm = confirm
    world.extend = after_checks(extend)
    world.observe = observe
    record = world.apply(plan)
    assert record.state == "done"
    assert asked == ["plan-2.0", "plan-2"]
    assert [(item.number, item.plan_id, bool(item.failed), item.because) for item in record.rounds] == [
        (1, "plan-2.0", True, ""),
        (2, "plan-2", False, "companion is missing"),
    ]
    assert [item.id for item in record.extensions] == ["plan-2"]
    assert record.abandoned == ()
    assert [outcome.check for outcome in requests[0].failed] == ["both"]
    assert Path(seen[0].prefix).is_relative_to(world.store)
    assert [event.round for event in world.events if isinstance(event, RoundStarted)] == [2]
    assert {item.name for item in record.after} >= {"fam", "companion"}


def test_the_loop_ends_after_its_rounds_with_what_was_tried(world: World) -> None:
    checks = (Check(name="never", role="playbook", arguments=("import fam, nothing_has_this",)),)
    plan = world.plan(checks=checks, extendable=True)
    world.options = ApplyOptions(max_rounds=3)
    world.extend = after_checks(
        lambda request: PlanExtension(
            plan=another(plan, *install(f"extra_{request.round}")), because="more", keep=len(request.plans)
        )
    )
    before = fingerprint.manifest(world.prefix)
    record = world.apply(plan)
    assert len(record.rounds) == 3
    assert len(record.extensions) == 2
    assert failure_code(record) == "checks-failed"
    assert record.failure is not None
    assert [line.split(":")[0] for line in record.failure.details[-3:]] == ["round 1", "round 2", "round 3"]
    assert unchanged(world, before, record)


def test_a_declined_extension_leaves_the_environment_unchanged(world: World) -> None:
    plan = world.plan(checks=(BOTH,), extendable=True)
    world.confirm = lambda asked: asked.id != "plan-2"
    world.extend = after_checks(lambda _request: extension(plan))
    before = fingerprint.manifest(world.prefix)
    record = world.apply(plan)
    assert failure_code(record) == "declined"
    assert unchanged(world, before, record)


def test_a_plan_that_may_not_be_extended_is_not(world: World) -> None:
    world.extend = lambda _request: pytest.fail("asked for an extension")
    assert failure_code(world.apply(world.plan(checks=(BOTH,)))) == "checks-failed"


def test_another_way_begins_in_a_fresh_clone(world: World) -> None:
    missing = Check(
        name="debris",
        role="playbook",
        arguments=("import fam\ntry: import debris\nexcept ImportError: pass\nelse: 1/0",),
    )
    plan = world.plan(*install("debris"), checks=(missing,), extendable=True)
    way = another(plan, *replacement("2.0"))
    world.extend = after_checks(lambda _request: PlanExtension(plan=way, because="it did not help", keep=0))
    record = world.apply(plan)
    assert record.state == "done"
    assert (record.plan.id, [item.id for item in record.abandoned], record.extensions) == ("plan-2", [plan.id], ())
    assert not (world.site / "debris").exists()
    assert world.version() == "2.0"
    assert [event.stage for event in world.events if isinstance(event, StageStarted)].count("clone") == 2


def test_steps_that_fail_lead_to_another_way(world: World) -> None:
    requests: list[ExtendRequest] = []
    plan = world.plan(*install("fam", "2.0"), extendable=True)  # its directory is there

    def extend(request: ExtendRequest) -> PlanExtension | None:
        requests.append(request)
        way = PlanExtension(plan=another(plan, *replacement("2.0")), because="its steps failed", keep=0)
        return way if request.error is not None else None

    world.extend = extend
    record = world.apply(plan)
    assert record.state == "done"
    assert requests[0].error is not None
    assert requests[0].error.code == "installer"
    assert [bool(item.failed) for item in record.rounds] == [True, False]


def further(world: World, plan: Plan, check: Check = COMPANION, *steps: Step) -> Extend:
    """A loop to which facts show a second fault after the first plan."""
    made = another(plan, *(steps or install("companion")), checks=(check,))
    del world

    def extend(request: ExtendRequest) -> PlanExtension | None:
        return None if len(request.plans) > 1 or request.verified else PlanExtension(plan=made, because="facts", keep=1)

    return extend


def test_what_facts_show_is_repaired_before_everything_is_checked(world: World) -> None:
    everything = Check(name="everything", role="regression", arguments=("pass",))
    plan = world.plan(checks=(*world.plan().checks, everything), extendable=True)
    world.extend = further(world, plan)
    record = world.apply(plan)
    assert record.state == "done"
    ran = [
        (event.phase, event.outcome.check, event.outcome.status)
        for event in world.events
        if isinstance(event, CheckFinished)
    ]
    assert [item for item in ran if item[0] != "smoke"] == [
        ("before", "fam-imports", "fail"),
        ("after", "fam-imports", "pass"),
        ("before", "companion-imports", "fail"),
        ("after", "fam-imports", "pass"),
        ("after", "everything", "pass"),
        ("after", "companion-imports", "pass"),
    ]
    assert {item.check for item in record.smoke} >= {"fam-imports", "companion-imports"}


@pytest.mark.parametrize("steps", [install("unhelpful"), install("fam", "3.0")], ids=["unproven", "steps fail"])
def test_a_further_fault_that_cannot_be_repaired_takes_nothing_away(world: World, steps: tuple[Step, ...]) -> None:
    plan = world.plan(extendable=True)
    world.extend = further(world, plan, COMPANION, *steps)
    record = world.apply(plan)
    assert record.state == "done"
    assert world.version() == "2.0"
    assert not (world.site / "unhelpful").exists()
    assert record.extensions == ()
    assert [item.id for item in record.abandoned] == ["plan-2"]
    assert record.outcome == "repaired"
    assert [item.reported for item in record.left] == [False]
    assert [item.check for item in record.checks_after] == ["fam-imports"]
    world.undo()
    assert world.version() == "1.0"


def test_a_further_plan_that_breaks_something_is_given_up(world: World) -> None:
    bystander = Check(name="bystander", role="regression", arguments=("import other3",))
    plan = world.plan(checks=(*world.plan().checks, bystander), extendable=True)
    harm = (*install("companion"), Purge(leftovers=(f"{SITE}/other3-3.1.dist-info", f"{SITE}/other3")))
    world.extend = further(world, plan, COMPANION, *harm)
    record = world.apply(plan)
    assert record.state == "done"
    assert (world.site / "other3").is_dir()
    assert not (world.site / "companion").exists()
    assert [(item.reported, "bystander" in item.why) for item in record.left] == [(False, True)]


@pytest.mark.parametrize("how", ["declined", "no network"])
def test_without_leave_or_wheels_for_more_the_first_repair_stands(world: World, how: str) -> None:
    plan = world.plan(extendable=True)
    world.extend = further(world, plan)
    if how == "declined":
        world.confirm = lambda asked: asked.id != "plan-2"
    else:
        original = world.installer.fetch

        def fetch(artifacts: object, **options: object) -> None:
            if "companion" in str(artifacts):
                raise NetworkError("the index cannot be reached")
            original(artifacts, **options)  # type: ignore[arg-type]

        world.installer.fetch = fetch  # type: ignore[method-assign]
    record = world.apply(plan)
    assert record.state == "done"
    assert world.version() == "2.0"
    assert record.outcome == "repaired"
    assert [item.reported for item in record.left] == [False]


PROGRAM = Check(
    name="program", role="reproduction", arguments=("import fam, nothing_has_this; assert fam.__version__ > '1'",)
)


def partial(world: World) -> Plan:
    """A plan whose steps end the fault that facts show, and not the failure of the program."""
    return world.plan(checks=(PROGRAM, *world.plan().checks))


def test_a_repair_that_leaves_the_reported_failure_is_none(world: World) -> None:
    before = fingerprint.manifest(world.prefix)
    record = world.apply(partial(world))
    assert failure_code(record) == "partial"
    assert record.outcome == "unchanged"
    assert unchanged(world, before, record)
    assert record.failure is not None
    assert record.failure.details == (
        "Not repaired: program on cpu: fail, ModuleNotFoundError: No module named 'nothing_has_this'",
    )


@pytest.mark.parametrize("how", ["by option", "asked"])
def test_a_part_is_kept_where_the_user_wants_it(world: World, how: str) -> None:
    asked: list[tuple[str, ...]] = []

    def accept(left: tuple[Left, ...]) -> bool:
        asked.append(tuple(item.summary for item in left))
        return True

    world.options = ApplyOptions(keep_partial=how == "by option")
    world.accept_partial = accept
    record = world.apply(partial(world))
    assert (record.state, record.outcome) == ("done", "partial")
    assert [(item.summary, item.reported) for item in record.left] == [("program on cpu", True)]
    assert asked == ([] if how == "by option" else [("program on cpu",)])
    assert world.version() == "2.0"
    world.undo()
    assert world.version() == "1.0"


def test_what_makes_nothing_better_is_no_part(world: World) -> None:
    world.options = ApplyOptions(keep_partial=True)
    record = world.apply(world.plan(checks=(PROGRAM,)))
    assert failure_code(record) == "checks-failed"


def test_what_gets_worse_is_no_part(world: World) -> None:
    world.options = ApplyOptions(keep_partial=True)
    bystander = Check(name="bystander", role="regression", arguments=("import other3",))
    harm = (*replacement("2.0"), Purge(leftovers=(f"{SITE}/other3-3.1.dist-info", f"{SITE}/other3")))
    record = world.apply(world.plan(*harm, checks=(*partial(world).checks, bystander)))
    assert failure_code(record) == "checks-failed"
    assert world.version() == "1.0"


def test_the_part_stands_where_a_further_plan_fails(world: World) -> None:
    world.options = ApplyOptions(keep_partial=True)
    plan = msgspec.structs.replace(partial(world), extendable=True)
    extra = another(plan, *install("unhelpful"))
    world.extend = after_checks(
        lambda request: PlanExtension(plan=extra, because="more", keep=1) if len(request.plans) == 1 else None
    )
    record = world.apply(plan)
    assert (record.state, record.outcome) == ("done", "partial")
    assert world.version() == "2.0"


def test_a_reported_fault_without_plan_and_facts_is_left(world: World) -> None:
    world.options = ApplyOptions(keep_partial=True)
    record = world.apply(world.plan(unanswered=("the text is about another one",)))
    assert (record.outcome, [item.summary for item in record.left]) == ("partial", ["the text is about another one"])


def test_a_reported_fault_without_plan_is_gone_with_its_failure(world: World) -> None:
    program = msgspec.structs.replace(world.plan().checks[0], name="program", role="reproduction")
    record = world.apply(world.plan(unanswered=("the text is about another one",), checks=(program,)))
    assert (record.outcome, record.left) == ("repaired", ())


def test_where_the_first_fault_is_not_there_another_plan_may_be_taken(world: World) -> None:
    present = Check(name="fine", role="playbook", arguments=("pass",))
    plan = world.plan(*install("useless"), checks=(present,), finding=finding(confirmed=None), extendable=True)
    way = another(plan, *replacement("2.0"), checks=world.plan().checks)
    way = msgspec.structs.replace(way, finding=finding(confirmed=True))
    world.extend = lambda request: PlanExtension(plan=way, because="not there", keep=0) if request.error else None
    record = world.apply(plan)
    assert record.state == "done"
    assert record.abandoned == (), "its steps were not taken"
    assert [event.stage for event in world.events if isinstance(event, StageStarted)].count("clone") == 1
    assert not (world.site / "useless").exists()
    assert not [event for event in world.events if isinstance(event, Notice) and event.level == "warning"]


def test_a_plan_whose_fault_facts_still_confirm_is_given_up_before_its_checks(world: World) -> None:
    plan = world.plan(*install("useless"), extendable=True)
    way = another(plan, *replacement("2.0"))

    def extend(request: ExtendRequest) -> PlanExtension | None:
        again = [item.id for item in request.plans] == [plan.id] and not request.verified
        return PlanExtension(plan=way, because="still confirmed", keep=0) if again else None

    world.extend = extend
    record = world.apply(plan)
    assert record.state == "done"
    assert [item.failed for item in record.rounds] == [("still confirmed",), ()]
    assert not (world.site / "useless").exists()
