"""Where the C library of HiGHS is: what ``COBRE_HIGHS_LIB`` names, else highsbox, highspy, conda's."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from cobre.errors import CobreError

LIBRARY_VARIABLE = "COBRE_HIGHS_LIB"
_FUNCTION = "Highs_run"


def open_library() -> ctypes.CDLL:
    """Return the library, loaded.

    Raises
    ------
    CobreError
        Kind ``SolverLibrary`` when the file that the variable names is none, ``SolverFailure`` when no
        installed package has one; with the reason for each file that was tried.
    """
    explicit = os.environ.get(LIBRARY_VARIABLE)
    if explicit:
        library, reasons = _first_usable([Path(explicit)])
        if library is None:
            (reason,) = reasons.values()
            raise CobreError(
                "SolverLibrary",
                f"the environment variable {LIBRARY_VARIABLE} names no HiGHS library: {reason}",
                {"setting": LIBRARY_VARIABLE, "value": explicit},
                f"set {LIBRARY_VARIABLE} to a libhighs shared library, or unset it to use the installed one",
            )
        return library
    library, reasons = _first_usable(_installed())
    if library is None:
        raise CobreError(
            "SolverFailure",
            "no HiGHS library with a C API was found" + "".join(f"; {reason}" for reason in reasons.values()),
            {"tried": list(reasons)},
            f"install the package 'highsbox' (conda: highs), or set {LIBRARY_VARIABLE} to a libhighs library",
        )
    return library


def _first_usable(paths: Iterable[Path]) -> tuple[ctypes.CDLL | None, dict[str, str]]:
    """Load the first file that is a HiGHS library; of those before it return why they are not."""
    reasons: dict[str, str] = {}
    for path in paths:
        if not path.is_file():
            reasons[str(path)] = f"{path} is no file"
            continue
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            reasons[str(path)] = f"{path} cannot be loaded ({error})"
            continue
        if hasattr(library, _FUNCTION):
            return library, reasons
        reasons[str(path)] = f"{path} has no function {_FUNCTION}"
    return None, reasons


def _installed() -> list[Path]:
    names = {"win32": "bin/highs.dll", "darwin": "lib/libhighs.dylib"}
    found: list[Path] = []
    # find_spec instead of import: importing highspy alone costs a tenth of a second.
    box = importlib.util.find_spec("highsbox")
    if box is not None and box.origin is not None:
        found.append(Path(box.origin).parent / "highs_dist" / names.get(sys.platform, "lib/libhighs.so"))
    spy = importlib.util.find_spec("highspy")
    if spy is not None and spy.origin is not None:
        folder = Path(spy.origin).parent
        for pattern in ("libhighs.so*", "libhighs*.dylib", "_core*.so"):
            found.extend(sorted(folder.glob(pattern)))
    # The package highs of conda has the library beside Python's.
    shared = Path(sys.prefix) / names.get(sys.platform, "lib/libhighs.so")
    return [*found, shared] if shared.is_file() else found
