"""The sources that a kernel is stamped with hold everything that is compiled into it."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from numba.core.dispatcher import Dispatcher

from cobre.comm.local import LocalKernel
from cobre.comm.mpi.communicator import MpiKernel
from cobre.comm.shm.kernel import ShmKernel
from cobre.comm.tcp.kernel import TcpKernel
from cobre.native import function_over, stamp
from cobre.sddp.entry import iterate

CACHED_KERNEL_MODULES = sorted(
    ".".join(("cobre", *file.relative_to(stamp.PACKAGE_DIRECTORY).with_suffix("").parts))
    for file in stamp.PACKAGE_DIRECTORY.rglob("*.py")
    if re.search(r"[(,] ?cache=True", file.read_text()) and file.name != "__init__.py"
)


def reachable_files(function: FunctionType) -> set[Path]:
    """Files of the package that define what a function refers to, followed through compiled callees."""
    files: set[Path] = set()
    pending = [function]
    seen = set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        file = Path(inspect.getfile(current)).resolve()
        if not file.is_relative_to(stamp.PACKAGE_DIRECTORY):
            continue
        files.add(file)
        for name in names_of(current.__code__):
            value = current.__globals__.get(name)
            if isinstance(value, ModuleType):
                continue
            if isinstance(value, Dispatcher):
                pending.append(value.py_func)
            elif hasattr(value, "class_type"):
                pending.extend(value.class_type.methods.values())
    return files


def names_of(code) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= names_of(constant)
    return names


@pytest.mark.parametrize("name", CACHED_KERNEL_MODULES)
def test_every_compiled_callee_is_among_the_sources(name):
    module = importlib.import_module(name)
    sources = stamp.kernel_sources(Path(module.__file__).resolve())
    kernels = [value for value in vars(module).values() if isinstance(value, Dispatcher)]
    for kernel in kernels:
        if kernel.py_func.__module__ == name:
            assert reachable_files(kernel.py_func) <= sources


@pytest.mark.parametrize("kernel", [LocalKernel, ShmKernel, TcpKernel, MpiKernel])
def test_every_callee_of_a_generic_function_is_among_its_sources_or_those_of_the_class(kernel):
    sources = stamp.kernel_sources(Path(inspect.getfile(iterate)).resolve())
    sources |= stamp.kernel_sources(Path(sys.modules[kernel.__module__].__file__).resolve())
    assert reachable_files(function_over(iterate, kernel).py_func) <= sources


def test_command_line_and_readers_are_no_part_of_the_iteration():
    package = stamp.PACKAGE_DIRECTORY
    sources = stamp.kernel_sources(package / "sddp" / "entry.py")
    assert package / "sddp" / "kernel" / "iteration.py" in sources
    assert package / "lp" / "engine.py" in sources
    rooms = {path.relative_to(package).parts[0] for path in sources}
    assert rooms <= {"native", "comm", "rules", "lp", "sddp", "stochastic"}
    assert package / "rules" / "risk" / "entropic.py" in sources  # found, not imported by name


def test_digest_depends_on_names_and_contents(tmp_path):
    file = tmp_path / "a.py"
    file.write_text("x")
    first = stamp.digest_of_files({"a.py": file})
    renamed = stamp.digest_of_files({"b.py": file})
    file.write_text("y")
    assert len({first, renamed, stamp.digest_of_files({"b.py": file})}) == 3
