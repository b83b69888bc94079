"""The name under which this package is installed, and the other distribution that has a package ``cobre``.

``cobre-python`` (bindings of cobre-rs) installs an import package of the same name. Installed in one
environment, the later of the two overwrites files of the earlier one. Importing this module warns of that,
and fails where ``cobre/__init__.py`` is that of the other one.
"""

from __future__ import annotations

import os
import sys
import warnings

DISTRIBUTION = "cobre-sddp"
OTHER_DISTRIBUTION = "cobre-python"
_REMEDY = (
    f"uninstall both and install one: pip uninstall -y {DISTRIBUTION} {OTHER_DISTRIBUTION} && "
    f"pip install {DISTRIBUTION}; to use both, give each an environment of its own"
)


def install_hint(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def _check_package() -> None:
    directory = os.path.dirname(__file__)  # noqa: PTH120 (importing pathlib would cost more than the check)
    if hasattr(sys.modules["cobre"], "_native"):
        raise ImportError(
            f"{OTHER_DISTRIBUTION} has replaced {directory}/__init__.py of {DISTRIBUTION}; {_REMEDY}"
        )
    if any(name.startswith("_native.") for name in os.listdir(directory)):  # noqa: PTH208
        warnings.warn(
            f"{OTHER_DISTRIBUTION} and {DISTRIBUTION} are both installed in {directory}; {_REMEDY}",
            RuntimeWarning,
            stacklevel=3,
        )


_check_package()
