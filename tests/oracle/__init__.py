"""An extensive form of the whole case format, written apart from the package.

The raw files are read with ``json`` and ``pyarrow``; the LP over the scenario tree has the decisions of every
node as columns of its own and refers to the decisions of earlier nodes directly (there is no state, no cut,
no template). Nothing of the package is imported, so that a fault can't hide behind itself. Input is trusted:
the cases of the tests are valid.
"""

from oracle.openings import Opening
from oracle.tree import Cut, costs_by_kind, optimum

__all__ = ["Cut", "Opening", "costs_by_kind", "optimum"]
