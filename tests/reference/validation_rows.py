"""The rows of ``docs/validation.md``: numbers of others, their sources, and how ours are found."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from builders.guide_cases import EXAMPLES as GUIDE_CASES
from builders.guide_cases import write as write_guide_case
from builders.inflow_variations import DIFFERENCES, PUBLISHED, estimated, given
from builders.known_inflows import follow, with_inflows
from builders.paths import EXAMPLES
from builders.published_cases import fast_hydro_thermal, hydro_valley, reservoir_year, three_weeks
from builders.random_case import write_random_case
from builders.realisations import drawn_openings
from builders.shared_cases import reference_bound, shared_cases, shared_system
from make_validation import ABOVE, BELOW, DIFFERS, Row, Section
from oracle import optimum

import cobre
import cobre.case
import cobre.sddp

PEER = "cobre-rs 0.18.0"
LP = "extensive form, HiGHS"
LAG_CASES = ("d16-par1-lag-shift", "d19-multi-hydro-par", "d26-estimated-par2")
RANDOM_SEEDS = (0, 9, 21, 33)


def trained(path: Path, work: Path, iterations: int | None = None) -> cobre.TrainingResult:
    output = tempfile.mkdtemp(dir=work)  # cases may ask for exports, which go to the output directory
    return cobre.sddp.train(cobre.case.load(path), iterations=iterations, output=output)


def best(path: Path) -> float:
    """Optimum over the whole tree, of what the package drew."""
    return optimum(path, drawn_openings(cobre.case.load(path)))


def names_of_public_cases() -> list[str]:
    return sorted(json.loads((shared_cases() / "reference.json").read_text(encoding="utf-8")))


def public_cases(work: Path, _: bool) -> Iterator[Row]:
    for name in names_of_public_cases():
        result = trained(shared_cases() / name, work)
        what = f"lower bound, {len(result.history)} iterations"
        yield Row(name, what, PEER, reference_bound(name), result.lower_bound)
        if name == "1dtoy":
            yield Row(name, "lower bound", LP, best(shared_cases() / name), result.lower_bound, BELOW, 1e-3)
        elif name in LAG_CASES:
            known = with_inflows(shared_cases() / name, work / name, follow(shared_cases() / name))
            yield Row(name, "optimum", f"{LP}, known inflows", optimum(known), result.lower_bound)
        else:
            yield Row(name, "optimum", LP, best(shared_cases() / name), result.lower_bound)


def national_system(work: Path, fast: bool) -> Iterator[Row]:
    for name, known in (("net-rain", 2_623_620.278858949), ("not-yet-built", 4_086_111.111111111)):
        path = shared_system(name)
        bound = trained(path, work).lower_bound
        yield Row(name, "optimum", "by hand", known, bound)
        yield Row(name, "optimum", LP, best(path), bound)
        if name == "net-rain":
            yield Row(name, "optimum", PEER, known, bound)
        else:
            note = "minimum outflow is charged to a plant that is not built"
            yield Row(name, "lower bound", PEER, 77_086_111.1, bound, DIFFERS, note=note)
    yield from truncated(work)
    name = "brazil-2018-14-stages"
    result = trained(shared_system(name), work)
    note = "minimum outflow is charged to plants that are not built"
    what = f"lower bound, {len(result.history)} iterations"
    yield Row(name, what, PEER, 9_750_112_563.0, result.lower_bound, DIFFERS, note=note)
    yield Row(name, what, f"{LP} (once)", 3_563_238_822.6, result.lower_bound, BELOW, 3e-6)
    cost = min(record.upper_bound for record in result.history)
    yield Row(name, "cost of the best pass", f"{LP} (once)", 3_563_238_822.6, cost, ABOVE, 1e-5)
    if not fast:
        yield from whole_horizon(work)


def whole_horizon(work: Path) -> Iterator[Row]:
    name = "brazil-2018"
    result = trained(shared_system(name), work)
    note = "future costs are bounded by 0 there"
    what = "lower bound, 1 iteration, 120 stages"
    yield Row(name, what, PEER, 1.935e9, result.lower_bound, DIFFERS, note=note, slow=True)
    source = f"{PEER}, equal service dates"
    note = (
        "two passes without a policy: which of several optimal decisions is taken matters; not traced further"
    )
    what = "mean cost of its 2 passes"
    yield Row(name, what, source, 9.07e11, result.upper_bound, DIFFERS, note=note, slow=True)


def truncated(work: Path) -> Iterator[Row]:
    """Tangent cuts give an estimate above the optimum; valid ones a bound."""
    name = "truncated-par"
    path = shared_system(name)
    tangent = trained(path, work)
    assert tangent.lower_bound_kind == "estimate"
    source = "exact evaluation over 256 paths"
    note = "reported as estimate here, as lower bound there"
    yield Row(name, "value of tangent cuts", PEER, 22_092_434.78, tangent.lower_bound, note=note)
    yield Row(name, "cost of the policy of tangent cuts", source, 19_309_996.52, tangent.upper_bound)
    editor = cobre.case.load(path).edit()
    editor["config.json"]["modeling"]["inflow_non_negativity"]["truncation_cuts"] = "valid"
    valid = cobre.sddp.train(editor.build(), output=work / "output" / "valid")
    assert valid.lower_bound_kind == "bound"
    note = "below the cost of a policy, as a bound must"
    yield Row(name, "bound of valid cuts", source, 19_309_996.52, valid.lower_bound, BELOW, 0.25, note=note)


def published(_: Path, fast: bool) -> Iterator[Row]:
    def bound(files: dict[str, Any]) -> float:
        return cobre.train(cobre.case.build(files)).lower_bound

    def row(case: str, what: str, theirs: float, ours: float, **expected: Any) -> Row:
        return Row(case, what, source, theirs, ours, **({"tolerance": 1e-8} | expected))

    source = "SDDP.jl, An introduction"
    yield row("three weeks", "optimum", 25_000.0 / 3.0, bound(three_weeks()))
    for weight, tail, theirs, digits in (
        (0.5, 0.5, 11_458.3333, "λ 1/2, β 1/2"),
        (0.5, 1.0 / 3.0, 13_750.0, "λ 1/2, β 1/3"),
        (1.0, 1.0 / 3.0, 17_500.0, "the worst case"),
    ):
        ours = bound(three_weeks(risk_measure={"cvar": {"alpha": tail, "lambda": weight}}))
        yield row("three weeks, risk", digits, theirs, ours)
    source = "SDDP.jl, deterministic to stochastic"
    yield row("52-week reservoir", "optimum, known inflow", 682.91, bound(reservoir_year(random=False)))
    if not fast:
        ours = bound(reservoir_year(random=True))
        what = "lower bound, ten inflows"
        yield row("52-week reservoir", what, 285.157951, ours, expected=BELOW, tolerance=0.01, slow=True)
    source = "FAST toolbox, hydro-thermal"
    yield row("two stages", "optimum", 10.0, bound(fast_hydro_thermal()))
    source = "SDDP.jl, Hydro valleys"
    yield row("hydro valley", "profit without rain", 835.0, -bound(hydro_valley(False)))
    yield row("hydro valley", "profit with rain", 2515.0 / 3.0, -bound(hydro_valley(True)))


def stated_by_hand(name: str) -> float | None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    scope: dict[str, object] = {}
    exec(blocks, scope)
    derived = scope.get("optimum")
    return float(derived) if isinstance(derived, Fraction) else None


def examples(work: Path, _: bool) -> Iterator[Row]:
    for name in sorted(path.parent.name for path in EXAMPLES.glob("*/config.json")):
        bound = trained(EXAMPLES / name, work).lower_bound
        by_hand = None if name == "random-inflow" else stated_by_hand(name)
        if by_hand is not None:
            yield Row(f"examples/{name}", "optimum", "derived by hand in its README", by_hand, bound)
        yield Row(f"examples/{name}", "optimum", LP, best(EXAMPLES / name), bound)


def guide(work: Path, _: bool) -> Iterator[Row]:
    for name, (files, stated) in GUIDE_CASES.items():
        bound = trained(write_guide_case(work / name, files), work).lower_bound
        # Stated in whole $.
        yield Row(name, "optimum", "stated in case-format.md", stated, bound, tolerance=0.501 / abs(stated))


def random_systems(work: Path, _: bool) -> Iterator[Row]:
    for seed in RANDOM_SEEDS:
        path = write_random_case(work / str(seed), seed)
        yield Row(
            f"random system {seed}",
            "optimum",
            LP,
            best(path),
            trained(path, work).lower_bound,
            tolerance=1e-7,
        )


NAMES_OF_VARIATIONS = {
    "with_another_january": "d19, statistics of January before the study",
    "without_pre_study_stages": "d26, no pre-study stages",
    "without_named_state": "d26, `inflow_lags` not given",
    "with_scenarios": "d19, external scenarios",
    "with_residuals_of_the_history": "d26, `historical_residuals`",
}


def inflow_models(work: Path, _: bool) -> Iterator[Row]:
    what = "lower bound, 5 iterations"
    for order in ("pacf", "pacf_annual"):
        ours = trained(estimated(work / order, order), work).lower_bound
        yield Row(f"d26, `{order}`", what, PEER, PUBLISHED[order], ours)
    yield Row(
        "d19, 3 openings", what, PEER, PUBLISHED["given"], trained(given(work / "given"), work).lower_bound
    )
    for make, theirs, _ours in DIFFERENCES:
        ours = trained(make(work / make.__name__), work).lower_bound
        yield Row(
            NAMES_OF_VARIATIONS[make.__name__], what, PEER, theirs, ours, DIFFERS, note="see differences.md"
        )


Edit = Callable[[Any], None]


def _set(collection: str, number: int, **values: Any) -> Edit:
    return lambda file: file[collection][number].update(values)


def _floor(file: Any) -> None:
    file["hydros"][0]["reservoir"]["min_storage_hm3"] = 190.0


def _later(file: Any) -> None:
    file["hydros"][0]["entry_stage_id"] = 1
    file["hydros"][0]["outflow"]["min_outflow_m3s"] = 10.0


HYDROS = "system/hydros.json"
EDITS: tuple[tuple[str, str, str, Edit, float, str], ...] = (
    (
        "d15-non-controllable-source",
        "`curtailment_cost` 100",
        "system/non_controllable_sources.json",
        _set("non_controllable_sources", 0, curtailment_cost=100.0),
        -3_431_000.0,
        "future costs are bounded by 0 there",
    ),
    (
        "d04-transmission",
        "`losses_percent` 10",
        "system/lines.json",
        _set("lines", 0, losses_percent=10.0),
        8_011_330.11,
        "losses are ignored there",
    ),
    (
        "d02-single-hydro",
        "minimum storage 190 hm³",
        HYDROS,
        _floor,
        4_015_000.0,
        "storage is raised to the minimum there",
    ),
    ("d02-single-hydro", "`entry_stage_id` 1", HYDROS, _later, 77_086_111.1, "the plant is not built yet"),
)


def edits(work: Path, _: bool) -> Iterator[Row]:
    for name, change, file, edit, theirs, note in EDITS:
        path = Path(shutil.copytree(shared_cases() / name, work / change / name))
        content = json.loads((path / file).read_text(encoding="utf-8"))
        edit(content)
        (path / file).write_text(json.dumps(content), encoding="utf-8")
        bound = trained(path, work).lower_bound
        label = f"{name.split('-')[0]}, {change}"
        yield Row(label, "lower bound", PEER, theirs, bound, DIFFERS, note=note)
        yield Row(label, "optimum", LP, best(path), bound)


SECTIONS = (
    Section(
        "Brazil and the cases it taught",
        "The Brazilian interconnected system (152 hydro plants, 132 thermal plants), monthly operation\n"
        "programme of January 2018, from the deck published in the MIT-licensed repository PySDDP; and 14\n"
        "stages of it, deterministic. Each small case isolates one feature. *(once)*: not by this command.",
        national_system,
        shared=True,
    ),
    Section(
        "Public cases of cobre-rs",
        "Example cases of cobre-rs (Apache-2.0); its lower bounds come from its published wheel 0.18.0 on\n"
        "one thread. The extensive form is one LP over the whole scenario tree, written apart from the\n"
        "package (`tests/oracle`).",
        public_cases,
        shared=True,
    ),
    Section(
        "Inflow models, against cobre-rs",
        "Public cases with few stages, three openings and estimated or given autoregressive models\n"
        "(`tests/builders/inflow_variations.py`).",
        inflow_models,
        shared=True,
    ),
    Section(
        "Where cobre-rs differs",
        "A public case with one change; more in `differences.md`.",
        edits,
        shared=True,
    ),
    Section(
        "Published optima",
        "Problems in the documentation of [SDDP.jl](https://sddp.dev) and of the FAST toolbox (L. Cambier),\n"
        "as cases (`tests/builders/published_cases.py`); `tests/reference/test_published.py` solves them by\n"
        "formulations of their own too.",
        published,
    ),
    Section("Examples", "The cases in `examples/`.", examples),
    Section("Examples of the guide", "Those of `case-format.md`, one for each feature of the format.", guide),
    Section(
        "Random systems",
        "Random cascades, lines and thermal plants (`tests/builders/random_case.py`).",
        random_systems,
    ),
)
