"""What a tool is: name, arguments, answer, and the function between them; nothing of the protocol.

A tool's function runs in a process of its own (``place = "process"``), so that what a study takes in time and
memory, and a crash of a library, does not touch the server; those that only read records of jobs run in a
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cobre.errors import CobreError
from cobre.mcp.paths import Root
from cobre.mcp.texts import Hider

ROW_LIMIT = 1_000
ROW_CAP = 10_000
MOST_WAIT_S = 600.0

Place = Annotated[str, Field(max_length=1024)]
"""A path relative to the root."""
Name = Annotated[str, Field(min_length=1, max_length=256)]
Id = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
"""Of an entity, a stage, a scenario or a block; columns of ids have 32 bits."""
Limit = Annotated[
    int, Field(ge=1, le=ROW_CAP, description=f"Most rows; {ROW_LIMIT} unless given, at most {ROW_CAP}.")
]
Wait = Annotated[
    float,
    Field(
        ge=0.0,
        le=MOST_WAIT_S,
        description="Seconds to wait for the end of the job, with notifications of its progress; 0 "
        "returns at once.",
    ),
]


@dataclass(frozen=True)
class Settings:
    """What a server may do.

    Attributes
    ----------
    allow_write
        Whether tools may write: edit, create, export, train, simulate, cancel.
    max_ranks, max_threads
        Most processes of a job, and most threads of all of them together.
    max_minutes
        Longest time of a job; it is then stopped as by a cancellation.
    max_jobs, max_waiting
        Jobs that run at a time, and jobs that may wait.
    workers
        Processes that answer tools at a time.
    """

    root: Root
    allow_write: bool = False
    max_ranks: int = 1
    max_threads: int = 1
    max_minutes: float = 1440.0
    max_jobs: int = 1
    max_waiting: int = 50
    workers: int = 2

    @property
    def hider(self) -> Hider:
        """What takes paths out of texts."""
        return Hider(self.root.path)

    def require_write(self, what: str) -> None:
        """Refuse to write on a server that only reads.

        Raises
        ------
        CobreError
            Kind ``ReadOnly``.
        """
        if not self.allow_write:
            raise CobreError(
                "ReadOnly",
                f"this server only reads: it does not {what}",
                {},
                "start it with 'cobre mcp --allow-write' to allow that",
            )


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    """What a tool returns, and in one sentence for people."""

    model_config = ConfigDict(extra="forbid", ser_json_inf_nan="null", use_attribute_docstrings=True)

    def headline(self) -> str:
        """Return the answer in a sentence or two."""
        raise NotImplementedError


class Issue(BaseModel):
    """A fault, or something odd: what kind, what is wrong, where, and how to fix it."""

    kind: str
    message: str
    context: dict[str, Any] = Field(default_factory=dict)
    suggestion: str | None = None


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes
    ----------
    work
        Called with the settings and the arguments; raises :class:`~cobre.errors.CobreError` for what the
        client can do something about.
    place
        ``process`` or ``thread``.
    writes
        Whether it needs a server that may write; a tool that writes only for some arguments asks for itself.
    destructive
        Whether what it writes may replace what was there.
    follows
        Whether it waits for a job afterwards: its answer is a job, and its arguments have ``wait_s``.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: type[Answer]
    work: Callable[[Settings, Any], Answer]
    place: Literal["process", "thread"] = "process"
    writes: bool = False
    destructive: bool = False
    follows: bool = False
    timeout_s: float = 60.0
    input_schema: dict[str, Any] = field(init=False, repr=False)
    output_schema: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input_schema", self.arguments.model_json_schema())
        object.__setattr__(self, "output_schema", self.answer.model_json_schema(mode="serialization"))
