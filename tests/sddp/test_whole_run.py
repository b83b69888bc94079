"""Every LP of a training by either engine, solved again by SciPy from the templates and the policy's cuts.

On the way back the cut of a trial point is the mean of its LPs' values, none of which may lie above the
optimum: when the mean is that of the optima, all values are optimal. On the way forward the state that a pass
went on with has to be one that an optimal solution leaves behind, for one of the openings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.paths import EXAMPLES
from builders.studies import cascade_study, dry_and_wet, persistent, with_training
from exogenous_tree import ExogenousTree
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csc_array, vstack

import cobre
import cobre.case
from cobre.case.model import Case, RiskMeasure, UpperBoundOptions
from cobre.lp import StateLayout, build_templates
from cobre.policy import latest_checkpoint, read_checkpoint
from cobre.sddp import TrainingResult, train
from cobre.sddp.plan import CHECKPOINTS
from cobre.stochastic import build_opening_tree
from cobre.templates.four_region import build as four_region

ENGINES = ("own", "highs")
RELATIVE = 1.0e-9
FloatArray = NDArray[np.float64]


@cache
def example(name: str) -> Case:
    return cobre.load_case(EXAMPLES / name)


def neutral(documents: dict[str, Any]) -> Case:
    """A study with the expectation for its measure of risk, so that cuts are means."""
    case = cobre.case.build(documents)
    return replace(case, stages=tuple(replace(stage, risk=RiskMeasure()) for stage in case.stages))


STUDIES = {
    "degenerate": lambda: cascade_study(hydros=5, thermals=6, openings=4, passes=3, iterations=4, seed=3),
    "past inflows": lambda: with_training(
        persistent("penalty", noise=0.9), forward_passes=3, iteration_limit=4
    ),
    "two nodes a stage": lambda: with_training(dry_and_wet(), iteration_limit=4),
    "planes": lambda: with_training(example("head-effect"), iteration_limit=4),
    "generic constraints": lambda: with_training(example("secure-import"), iteration_limit=4),
    "pumps": lambda: with_training(example("pumped-storage"), iteration_limit=4),
    "commitments": lambda: with_training(example("ordered-ahead"), iteration_limit=4),
    "batteries": lambda: with_training(example("battery"), iteration_limit=4),
    "four regions": lambda: with_training(neutral(four_region()), forward_passes=2, iteration_limit=2),
}


@dataclass(frozen=True)
class Run:
    """A training, and where its forward passes went: float64[iteration, stage, pass, n] and their nodes."""

    case: Case
    result: TrainingResult
    states: FloatArray
    nodes: NDArray[np.int64]

    @classmethod
    def of(cls, case: Case, engine: str, output: Path) -> Run:
        kept = replace(case, training=replace(case.training, upper_bound=UpperBoundOptions(enabled=True)))
        result = train(kept, lp_engine=engine, output=output)
        assert result.lp_engine.used == engine
        data = read_checkpoint(latest_checkpoint(output / CHECKPOINTS).path)
        shape = (len(case.stages), result.iterations, case.training.forward_passes)
        states = data.states.values.reshape(*shape, -1).swapaxes(0, 1)
        nodes = data.extra_arrays["visited_state_nodes"].reshape(shape).swapaxes(0, 1)
        return cls(case, result, states, nodes)

    @cached_property
    def templates(self):
        return build_templates(self.case, build_opening_tree(self.case))

    @cached_property
    def matrices(self):
        """The matrix of each node, without cuts."""
        return [
            csc_array((part.matrix_value, part.matrix_row, part.matrix_start), (part.num_rows, part.num_cols))
            for part in self.templates
        ]

    def optimum(
        self, node: int, state: FloatArray, opening: int, iterations: int, left: FloatArray | None = None
    ) -> float:
        """Solve the LP of a node with the cuts of the first ``iterations``; $.

        Parameters
        ----------
        left
            The outgoing state, where that is given.
        """
        template = self.templates[node]
        cuts = self.result.policy.cuts[node]
        chosen = cuts.iteration <= iterations
        slopes = np.zeros((int(chosen.sum()), template.num_cols))
        slopes[:, template.theta_col] = -1.0
        slopes[:, template.state_col] = cuts.slopes[chosen] / template.cost_scale
        dynamic = template.num_dynamic_rows
        matrix, others = self.matrices[node][:dynamic], self.matrices[node][dynamic:]
        lower, upper = template.row_lower[dynamic:], template.row_upper[dynamic:]
        limits = np.column_stack([template.col_lower, template.col_upper])
        if left is not None:
            width = RELATIVE * (1.0 + np.abs(left))
            limits[template.state_col] = np.column_stack([left - width, left + width])
        solution = linprog(
            template.cost,
            A_ub=vstack([others[np.isfinite(upper)], -others[np.isfinite(lower)], csc_array(slopes)]),
            b_ub=np.concatenate(
                [
                    upper[np.isfinite(upper)],
                    -lower[np.isfinite(lower)],
                    -cuts.intercept[chosen] / template.cost_scale,
                ]
            ),
            A_eq=matrix,
            b_eq=template.rhs(opening, state),
            bounds=limits,
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
        )
        assert left is not None or solution.status == 0
        return float(solution.fun) * template.cost_scale if solution.status == 0 else np.inf

    def mean(self, node: int, state: FloatArray, iterations: int) -> float:
        """Return the mean of the optima of a node over its openings."""
        openings = range(self.templates[node].num_openings)
        return float(np.mean([self.optimum(node, state, opening, iterations) for opening in openings]))

    def future(self, node: int, state: FloatArray, iterations: int) -> float:
        """Return the mean of the optima over what follows a node."""
        edges = [edge for edge in self.case.graph.transitions if edge.source == node]
        return sum(edge.probability * self.mean(edge.target, state, iterations) for edge in edges)


@pytest.fixture(scope="module", params=[*product(STUDIES, ENGINES)], ids=" ".join)
def run(request, tmp_path_factory):
    name, engine = request.param
    return Run.of(STUDIES[name](), engine, tmp_path_factory.mktemp("run"))


def test_cuts_touch_the_optimal_values_at_their_trial_points(run):
    made = 0
    for place, cuts in enumerate(run.result.policy.cuts):
        stage = run.case.graph.nodes[place].stage
        for row in range(len(cuts)):
            iteration, forward_pass = int(cuts.iteration[row]), int(cuts.forward_pass[row])
            assert run.nodes[iteration - 1, stage, forward_pass] == place
            state = run.states[iteration - 1, stage, forward_pass]
            value = cuts.intercept[row] + cuts.slopes[row] @ state
            assert value == pytest.approx(run.future(place, state, iteration), rel=RELATIVE, abs=1e-6)
            made += 1
    assert made >= run.result.iterations * (len(run.case.stages) - 1)


def test_lower_bounds_are_the_optimal_values_of_the_first_stage(run):
    initial = StateLayout(run.case).initial
    for record in run.result.history:
        assert record.lower_bound == pytest.approx(run.mean(0, initial, record.iteration), rel=RELATIVE)


def test_passes_go_on_with_what_optimal_solutions_leave(run):
    for iteration, forward_pass in product(range(run.result.iterations), range(run.states.shape[2])):
        state = StateLayout(run.case).initial
        for stage in range(len(run.case.stages)):
            node = int(run.nodes[iteration, stage, forward_pass])
            left = run.states[iteration, stage, forward_pass]
            openings = range(run.templates[node].num_openings)
            least = np.array([run.optimum(node, state, opening, iteration) for opening in openings])
            reached = np.array([run.optimum(node, state, opening, iteration, left) for opening in openings])
            assert (reached <= least + RELATIVE * np.abs(least) + 1e-6).any()
            state = left


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "case",
    [
        cascade_study(hydros=3, blocks=1, passes=4, iterations=6, seed=5),
        with_training(persistent("penalty", noise=0.9), forward_passes=4, iteration_limit=6),
        with_training(persistent("truncation", 1.0, cuts="valid"), forward_passes=4, iteration_limit=6),
    ],
    ids=["degenerate", "past inflows", "truncated inflows"],
)
def test_no_cut_is_above_the_extensive_form_at_any_state(case, engine):
    tree = ExogenousTree(case)
    policy = train(case, lp_engine=engine).policy
    for stage in range(len(case.stages) - 1):
        cuts = policy.cuts[stage]
        for state in tree.sampled_states(stage, 8):
            truth = tree.optimum(stage + 1, state)
            assert (cuts.intercept + cuts.slopes @ state <= truth + RELATIVE * abs(truth)).all()
