"""Small complete cases to start from; ``cobre init`` writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cobre.templates import cascade, four_region, synthetic, toy, weekly
from cobre.templates.parts import Files
from cobre.templates.synthetic_options import SIZES, SyntheticOptions

_README = """# {title}

{about}

## Run it

```
cobre validate .
cobre run . --output output
cobre report output
```

`cobre run` trains a policy and simulates it, `cobre report` makes a page of both.

{numbers}

## Change it

Each JSON file may be edited by hand; `cobre validate .` lists everything that does not fit, with what to do
about it. Parquet files are tables, easily read and written with pandas, polars or pyarrow. `cobre schema
schemas` writes the keys, columns and units of every file into the directory `schemas`.
"""


@dataclass(frozen=True)
class Template:
    """A case to start from.

    Attributes
    ----------
    name
        As ``cobre init --template`` takes it.
    summary
        One line.
    about, numbers
        Paragraphs of the README: what the case is, and what training it gives.
    build
        Returns JSON objects and tables by their path in the case directory.
    """

    name: str
    title: str
    summary: str
    about: str
    numbers: str
    build: Callable[[], Files]

    def readme(self) -> str:
        """Return the text of the README.md beside the case."""
        return _README.format(title=self.title, about=self.about.strip(), numbers=self.numbers.strip())


def synthetic_template(options: SyntheticOptions) -> Template:
    """Return the template of a synthetic system of the sizes asked for."""
    return Template(
        "synthetic",
        synthetic.TITLE,
        synthetic.SUMMARY,
        synthetic.about(options),
        synthetic.numbers(options),
        lambda: synthetic.build(options),
    )


TEMPLATES = {
    name: Template(name, module.TITLE, module.SUMMARY, module.ABOUT, module.NUMBERS, module.build)
    for name, module in (
        ("toy", toy),
        ("cascade", cascade),
        ("four-region", four_region),
        ("weekly", weekly),
    )
} | {"synthetic": synthetic_template(SIZES["small"])}
"""Every template by name; the synthetic one in its default size."""
