"""Resources: what can be read by an address, each an answer of a tool, or a part of one.

    cobre://root                             cases and outputs below the root
    cobre://jobs, cobre://jobs/{job}         jobs
    cobre://schemas/{file}                   schema of a file of the case format
    cobre://case/{dir}/summary               a case in numbers
    cobre://case/{dir}/config                its config.json
    cobre://case/{dir}/entities/{type}       its system/TYPE.json
    cobre://case/{dir}/scenarios/{id}        a table of its scenarios/
    cobre://output/{dir}/convergence         bounds of a training
    cobre://output/{dir}/results/{type}      the first rows of a table
    cobre://output/{dir}/policy/summary      a policy

Directories keep their slashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

Request = tuple[str, dict[str, Any], "str | None"]
"""Name of a tool, its arguments, and the part of its answer (``None`` = all)."""


@dataclass(frozen=True)
class Template:
    """A family of resources.

    Attributes
    ----------
    template
        Of the address, by RFC 6570.
    request
        Given the variables, which tool answers.
    """

    template: str
    name: str
    description: str
    request: Callable[[dict[str, str]], Request]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What addresses look like."""
        parts = re.split(r"\{(\+?)(\w+)\}", self.template)
        found = re.escape(parts[0])
        for plus, name, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            found += f"(?P<{name}>{'.+?' if plus else '[^/]+'}){re.escape(rest)}"
        return re.compile(found + r"\Z", re.DOTALL)


FIXED: Final = {
    "cobre://root": ("root", "Cases and outputs below the root."),
    "cobre://jobs": ("jobs", "All jobs, the latest first."),
    "cobre://schemas": ("schemas", "Files of the case format."),
}
"""Name and description by address."""

_FIXED_REQUESTS: Final[dict[str, Request]] = {
    "cobre://root": ("cobre_list", {}, None),
    "cobre://jobs": ("cobre_jobs", {}, None),
    "cobre://schemas": ("cobre_get_config_schema", {}, "files"),
}


def _scenario_file(name: str) -> str:
    return f"scenarios/{name}" if name.endswith((".json", ".parquet")) else f"scenarios/{name}.parquet"


TEMPLATES: Final = (
    Template(
        "cobre://jobs/{job}", "job", "A job: status, progress, result.",
        lambda found: ("cobre_job_status", {"job": found["job"]}, None),
    ),
    Template(
        "cobre://schemas/{+file}", "schema", "What a file of the case format may hold.",
        lambda found: ("cobre_get_config_schema", {"file": found["file"]}, "schema"),
    ),
    Template(
        "cobre://case/{+dir}/summary", "case", "Entities, stages, uncertainty and models of a case.",
        lambda found: ("cobre_inspect_case", {"case": found["dir"]}, None),
    ),
    Template(
        "cobre://case/{+dir}/config", "case config", "config.json of a case.",
        lambda found: ("cobre_inspect_case", {"case": found["dir"], "file": "config.json"}, "document"),
    ),
    Template(
        "cobre://case/{+dir}/entities/{type}", "case entities", "Entities of a type: buses, lines, "
        "thermals, hydros, ...",
        lambda found: (
            "cobre_inspect_case", {"case": found["dir"], "file": f"system/{found['type']}.json"}, "document",
        ),
    ),
    Template(
        "cobre://case/{+dir}/scenarios/{id}", "case scenarios", "A table of scenarios/, such as "
        "inflow_seasonal_stats.",
        lambda found: (
            "cobre_inspect_case", {"case": found["dir"], "file": _scenario_file(found["id"])}, None,
        ),
    ),
    Template(
        "cobre://output/{+dir}/convergence", "convergence", "Bounds of a training by iteration, and its "
        "verdict.",
        lambda found: ("cobre_query_convergence", {"output": found["dir"]}, None),
    ),
    Template(
        "cobre://output/{+dir}/results/{type}", "results", "The first rows of a table of results.",
        lambda found: ("cobre_query_results", {"output": found["dir"], "table": found["type"]}, None),
    ),
    Template(
        "cobre://output/{+dir}/policy/summary", "policy", "What a trained policy holds.",
        lambda found: ("cobre_inspect_policy", {"policy": found["dir"]}, None),
    ),
)  # fmt: skip


def request_of(uri: str) -> Request | None:
    """Return which tool answers an address; ``None`` where there is no such resource.

    >>> request_of("cobre://case/plans/four%20regions/entities/hydros")
    ('cobre_inspect_case', {'case': 'plans/four regions', 'file': 'system/hydros.json'}, 'document')
    """
    if uri in _FIXED_REQUESTS:
        return _FIXED_REQUESTS[uri]
    for template in TEMPLATES:
        match = template.pattern.match(uri)
        if match is not None:
            return template.request({name: unquote(value) for name, value in match.groupdict().items()})
    return None
