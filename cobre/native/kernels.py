"""How kernels are compiled that other kernels call.

A cached kernel holds the code of everything it calls. Numba compiles each callee on its own first: it runs
all of LLVM's passes over it, callees included, and makes machine code of it. In a chain of ten functions the
last one goes through this ten times, and none of the machine code but the caller's is ever run. Callees that
only kernels call therefore stop before: they are linked into the caller, which is optimised as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_Function = TypeVar("_Function", bound=Callable[..., Any])


def inner_kernel(function: _Function) -> _Function:
    """Compile a function that only other kernels call, never Python.

    Releases the GIL like its callers. It gets no wrapper for calls from Python, which for arguments made of
    many arrays costs more to compile than the function itself, no machine code and no cache file of its own:
    it becomes part of the cached kernels that call it.
    """
    compiled: _Function = njit(
        nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_InnerCompiler
    )(function)
    return compiled


def engine_kernel(function: _Function) -> _Function:
    """Compile a function that only kernels call, like ``inner_kernel``, that neither raises nor allocates.

    Divisions by 0 give what IEEE 754 says. Without a memory manager no reference counts are kept: a kernel
    borrows its arrays, and one that would allocate does not compile.
    """
    compiled: _Function = njit(
        nogil=True,
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        pipeline_class=_InnerCompiler,
    )(function)
    return compiled


class _InnerCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, into a library that is only linked into others."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class _LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into the callers' libraries and has no machine code of its own."""

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment(self._codegen)

    def _optimize_final_module(self) -> None:
        # What Numba runs before its full optimisation, so that reference counts are pruned across calls.
        passes, builder = self._codegen._module_pass_manager(
            loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address: nothing but the callers' code holds this function."""
        return 0


class _WithoutEnvironment:
    """A code generator that leaves a function's environment alone: linked code has none of its own."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing: the environment holds Python objects, which code without the GIL never uses."""
