"""Jitclasses with a name that is the same in every process.

Numba puts the address of the class into the name of a jitclass's type, and the name into the key of its disk
cache: a cached function that takes such an object never hits in a new process. A name without an address
hits; it has to carry a digest of the class, since Numba only watches the file of the cached function and
would otherwise load code compiled for an older class.

This module is the only one that touches Numba's internals of jitclasses.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.experimental.jitclass.base import ClassBuilder, register_class_type
from numba.extending import intrinsic

_Class = TypeVar("_Class", bound=type)


def stable_jitclass(
    spec: Sequence[tuple[str, Any]], depends_on: Iterable[Any] = ()
) -> Callable[[_Class], _Class]:
    """Decorate a class as a Numba jitclass whose type name is the same in every process.

    The name is ``jitclass.<module>.<Class>.<digest>``, with a digest over the fields, the source of the
    class and the sources of what it depends on.

    Parameters
    ----------
    spec
        Fields as pairs of name and Numba type.
    depends_on
        Whatever else the compiled methods contain: functions (plain or jitted), classes and modules that
        they call or take constants from. A change of one that is missing here is not noticed by functions
        that other packages have cached.

    Returns
    -------
    Callable
        The decorator. With ``NUMBA_DISABLE_JIT`` it returns the class as it is.
    """
    fields = [(name, field_type) for name, field_type in spec]
    dependencies = tuple(depends_on)

    def decorate(cls: _Class) -> _Class:
        if numba.config.DISABLE_JIT:
            return cls
        sources = [_source(base) for base in cls.__mro__ if base is not object]
        sources += [_source(dependency) for dependency in dependencies]
        return _register(cls, fields, sources)  # type: ignore[no-any-return]

    return decorate


def array_struct(tuple_class: type) -> Any:
    """Return a jitclass with the fields of a NamedTuple of arrays; its constructor takes such a tuple.

    A tuple crosses the border from Python and can be part of a cached signature, but nopython code passes it
    by value, and functions that hand on dozens of arrays are slow to compile. The jitclass is passed as one
    pointer. Kernels read the fields of either by the same names.

    Parameters
    ----------
    tuple_class
        A NamedTuple whose fields are annotated with ``float``, ``int``, or ``Annotated[..., numba type]``.
    """
    hints = get_type_hints(tuple_class, include_extras=True)
    fields = [(name, _field_type(name, hint)) for name, hint in hints.items()]
    name = f"{tuple_class.__name__}Struct"
    # A class statement and not a call of type(): Numba looks for what the statement leaves behind.
    source = "\n".join(
        [
            f"class {name}:",
            f"    {f'{tuple_class.__name__} as one pointer in nopython code.'!r}",
            "    def __init__(self, arrays):",
            *(f"        self.{field} = arrays.{field}" for field, _ in fields),
        ]
    )
    namespace: dict[str, Any] = {"__name__": tuple_class.__module__}
    exec(source, namespace)
    cls: type = namespace[name]
    return cls if numba.config.DISABLE_JIT else _register(cls, fields, [source])


class HeldStruct:
    """A struct of a class of :func:`array_struct` in memory of Python's, made without compiling anything.

    It holds its arrays; :func:`struct_at` finds it at ``address`` as long as this object lives.

    Parameters
    ----------
    struct_class
        What :func:`array_struct` returned.
    arrays
        The tuple.

    Raises
    ------
    TypeError
        When a field is not of the type that the struct has for it.
    """

    def __init__(self, struct_class: Any, arrays: Any) -> None:
        self.arrays = arrays
        words: list[int] = []
        for name, field_type in struct_class.class_type.struct.items():
            value = getattr(arrays, name)
            if isinstance(field_type, types.Array):
                found = numba.typeof(value)
                if found != field_type:
                    raise TypeError(f"field {name!r} is {found}, not {field_type}")
                # As Numba lays arrays out: two owners (none), size, item size, data, shape, strides.
                words += [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
            else:
                words.append(
                    int(np.float64(value).view(np.int64)) if field_type is types.float64 else int(value)
                )
        self._memory = np.array(words, np.int64)

    @property
    def address(self) -> int:
        """Where the struct lies."""
        return int(self._memory.ctypes.data)


@intrinsic  # type: ignore[untyped-decorator]
def struct_at(typing_context: Any, struct_class: Any, address: Any) -> Any:
    """Return the struct of a class of :func:`array_struct` at the address of a :class:`HeldStruct`.

    Neither it nor its arrays have an owner that nopython code knows: references are not counted.
    """
    instance_type = struct_class.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        instance = context.make_helper(builder, instance_type)
        instance.meminfo = cgutils.get_null_value(instance.meminfo.type)
        instance.data = builder.inttoptr(arguments[1], instance.data.type)
        return instance._getvalue()

    return instance_type(struct_class, types.intp), generate


def _field_type(name: str, hint: Any) -> Any:
    if hint in (int, float):
        return types.int64 if hint is int else types.float64
    if get_origin(hint) is not Annotated:
        raise TypeError(f"field {name!r} needs a Numba type: annotate it with Annotated[..., type]")
    return get_args(hint)[1]


def _register(cls: type, fields: Sequence[tuple[str, Any]], sources: Sequence[str]) -> Any:
    name = f"jitclass.{cls.__module__}.{cls.__qualname__}.{_digest(fields, sources)}"

    def make_class_type(*arguments: Any) -> Any:
        # Named before Numba interns the type and derives the instance type from it: renaming later
        # would leave both under their old hash, and every call from Python off the fast path.
        class_type = types.ClassType.__new__(types.ClassType)
        class_type.__init__(*arguments)
        class_type.name = name
        return types.ClassType._intern(class_type)

    jitted = register_class_type(cls, fields, make_class_type, ClassBuilder)
    jitted.__module__ = cls.__module__
    return jitted


def _digest(fields: Sequence[tuple[str, Any]], sources: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in [*(f"{name}:{field_type}" for name, field_type in fields), *sources]:
        encoded = part.encode()
        digest.update(f"{len(encoded)}\0".encode())
        digest.update(encoded)
    return digest.hexdigest()[:20]


def _source(item: Any) -> str:
    if isinstance(item, ModuleType):
        file = getattr(item, "__file__", None)
        if file is None:
            raise TypeError(f"{item.__name__} has no source file")
        return Path(file).read_text(encoding="utf-8")
    class_type = getattr(item, "class_type", None)
    if class_type is not None:
        return str(class_type.name)  # another stable jitclass: its name carries its own digest
    return inspect.getsource(getattr(item, "py_func", item))
