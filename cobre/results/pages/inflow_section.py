"""The inflow of a study by the files that ``cobre stochastic`` wrote, where the study is not at hand."""

from __future__ import annotations

import numpy as np

from cobre.results.pages.figures import Choice, Figure, axes, line, numbers
from cobre.results.pages.page import Section
from cobre.results.pages.run_data import RunData

_MOST_CHOICES = 250


def with_stated_inflow(section: Section | None, run: RunData) -> Section | None:
    """Return the section of inflow with mean and deviation of each plant by stage."""
    found = run.results.models.get("inflow_seasonal_stats")
    if found is None:
        return section
    rows = found.to_arrow(["hydro_id", "stage_id", "mean_m3s", "std_m3s"])
    hydro, stage = (rows[name].to_numpy() for name in ("hydro_id", "stage_id"))
    mean, deviation = (rows[name].to_numpy() for name in ("mean_m3s", "std_m3s"))
    ids = np.unique(hydro)
    largest = ids[np.argsort([-mean[hydro == number].mean() for number in ids], kind="stable")]
    choices = []
    for number in largest[:_MOST_CHOICES].tolist():
        at = np.flatnonzero(hydro == number)
        at = at[np.argsort(stage[at], kind="stable")]
        x = [f"stage {one}" for one in stage[at].tolist()]
        choices.append(
            Choice(
                f"plant {number}",
                [{"x": x, "y": numbers(mean[at])}, {"x": x, "y": numbers(deviation[at])}],
            )
        )
    section = section or Section("inflow", "Inflow", "The water that the study counts on.")
    section.parts.append(
        Figure(
            "stated-inflow",
            "Mean and deviation of inflow",
            "Statistics of the inflow model by stage; plants by mean inflow. With the study at hand "
            "(<code>--case CASE</code>) the page also shows how well generated inflow fits.",
            [
                line([], [], "mean", "@blue"),
                line([], [], "standard deviation", "@orange", line={"dash": "dash"}),
            ],
            axes(None, "inflow, m³/s", xaxis={"type": "category", "nticks": 13}),
            400,
            choices,
            group=None,
        )
    )
    return section
