"""Tools that read policies: what one holds and is worth at a state, and what two differ in."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from cobre.errors import CobreError
from cobre.mcp.case_files import load_case
from cobre.mcp.contract import Answer, Arguments, Limit, Place, Settings, Tool
from cobre.mcp.output_files import checked_directory, policy_place
from cobre.mcp.texts import plain
from cobre.mcp.tools.case import CasePlace

PolicyPlace = Annotated[
    Place,
    Field(
        description="An output directory, its folder policy, or a checkpoint such as OUT/checkpoints/latest."
    ),
]


class InspectPolicyArguments(Arguments):
    """Arguments of ``cobre_inspect_policy``."""

    policy: PolicyPlace
    case: Annotated[
        CasePlace | None, Field(description="The study: what a state leaves out is then as at its start.")
    ] = None
    stage: Annotated[
        int | None,
        Field(
            ge=0,
            le=100_000,
            description="Position of a stage from 0 (of a node, with a policy graph): evaluate there.",
        ),
    ] = None
    storage: Annotated[
        dict[str, float] | None,
        Field(
            description="Storage in hm3 by name of plant at the end of that stage; the others as at the "
            "start."
        ),
    ] = None
    limit: Limit = 1_000


class PolicyNode(Answer):
    """Cuts of a node."""

    id: int
    stage_id: int | None
    start_date: str | None
    cuts: int
    active: int
    future_cost_floor: float | None


class InspectedPolicy(Answer):
    """What a policy holds, and what water is worth at a state."""

    policy: str
    format: str
    kind: str
    digest: str
    iterations: int
    forward_passes: int
    seed: int
    lower_bound: float | None
    lower_bound_kind: str
    components: list[str]
    """What the numbers of a state are."""
    nodes: list[PolicyNode]
    nodes_total: int
    future_cost: float | None
    """At the state that was asked for, $ at the beginning of the next stage."""
    water_value: dict[str, float] | None
    """What another hm3 in each reservoir saves later, $/hm3."""

    def headline(self) -> str:
        """Return its size, and the future cost."""
        cuts = sum(node.cuts for node in self.nodes)
        text = f"{self.policy}: {self.kind} of {self.iterations} iterations, {cuts} cuts"
        if len(self.nodes) < self.nodes_total:
            text += f" in the first {len(self.nodes)} of {self.nodes_total} nodes"
        return text + (f"; future cost {self.future_cost:.6g} $." if self.future_cost is not None else ".")


def inspect_policy(settings: Settings, arguments: InspectPolicyArguments) -> InspectedPolicy:
    """Summarise a policy, and evaluate it where a stage is given."""
    from cobre.policy.loading import load_policy
    from cobre.policy.summary import summarise

    if arguments.storage is not None and arguments.stage is None:
        raise CobreError("InvalidArgument", "storage is for the end of a stage", {}, "give stage, from 0")
    place = policy_place(settings.root, arguments.policy)
    with checked_directory(settings.root, place) as path:
        summary = summarise(path)
        cost = values = None
        if arguments.stage is not None:
            case = None if arguments.case is None else load_case(settings.root, arguments.case)
            policy = load_policy(path, case)
            cost = policy.evaluate(arguments.stage, arguments.storage or {})
            values = policy.water_value(arguments.stage, arguments.storage or {})
    return InspectedPolicy(
        policy=place,
        format=summary.format,
        kind=summary.kind,
        digest=summary.digest,
        iterations=summary.iterations,
        forward_passes=summary.forward_passes,
        seed=summary.seed,
        lower_bound=plain(summary.lower_bound),
        lower_bound_kind=summary.lower_bound_kind,
        components=list(summary.components),
        nodes=[_node(node) for node in summary.nodes[: arguments.limit]],
        nodes_total=len(summary.nodes),
        future_cost=plain(cost),
        water_value=plain(values),
    )


def _node(node: Any) -> PolicyNode:
    date = node.start_date
    return PolicyNode(
        id=node.id,
        stage_id=node.stage_id,
        start_date=None if date is None else date.isoformat(),
        cuts=node.cuts,
        active=node.active,
        future_cost_floor=plain(node.future_cost_floor),
    )


class ComparePolicyArguments(Arguments):
    """Arguments of ``cobre_compare_policies``."""

    a: PolicyPlace
    b: PolicyPlace
    case: Annotated[CasePlace | None, Field(description="Needed where one is of cobre-rs.")] = None
    limit: Limit = 1_000


class PolicyDifference(Answer):
    """One difference: of study, training, state, graph, cuts or bounds."""

    topic: str
    message: str


class ComparedPolicies(Answer):
    """What two policies differ in."""

    a: str
    b: str
    equal: bool
    differences: list[PolicyDifference]
    differences_total: int

    def headline(self) -> str:
        """Return whether they are the same."""
        if self.equal:
            return f"{self.a} and {self.b} are the same, to the last bit of every cut."
        return f"{self.a} and {self.b} differ: {self.differences_total} differences."


def compare_policies(settings: Settings, arguments: ComparePolicyArguments) -> ComparedPolicies:
    """Compare two policies as ``cobre policy compare`` does."""
    from cobre.policy.comparison import policy_differences
    from cobre.policy.loading import load_policy

    root = settings.root
    case = None if arguments.case is None else load_case(root, arguments.case)
    places = [policy_place(root, place) for place in (arguments.a, arguments.b)]
    policies = []
    for place in places:
        with checked_directory(root, place) as path:
            policies.append(load_policy(path, case))
    found = policy_differences(*policies)
    hide = settings.hider.text
    return ComparedPolicies(
        a=places[0],
        b=places[1],
        equal=not found,
        differences=[
            PolicyDifference(topic=row.topic, message=hide(row.message)) for row in found[: arguments.limit]
        ],
        differences_total=len(found),
    )


TOOLS: Final = (
    Tool(
        "cobre_inspect_policy",
        "Inspect a policy",
        "What a stored policy holds: iterations, bounds, state, cuts by stage; with a stage also the "
        "future cost and the water values at a state.",
        InspectPolicyArguments,
        InspectedPolicy,
        inspect_policy,
    ),
    Tool(
        "cobre_compare_policies",
        "Compare policies",
        "Whether two policies are the same, to the last bit of every cut, and what differs.",
        ComparePolicyArguments,
        ComparedPolicies,
        compare_policies,
    ),
)
