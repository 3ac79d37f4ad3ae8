"""Immutable values that are made for every message.

To make one costs half as much as a named tuple, and a third of a frozen dataclass, which assigns each field
through `object.__setattr__`. That they are immutable is the type checker's to see, not the interpreter's.
A dataclass with slots that is not frozen is as fast, but each such class costs half a millisecond at every
start of a node.
"""

from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """The class with its annotations as fields, in slots; what stands behind `=` are defaults.

    Two of a class with equal fields are equal, and a `match` finds the fields in their order.
    """
    names = tuple(cls.__annotations__)
    defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
    body = {name: item for name, item in vars(cls).items() if name not in (*names, *_OF_A_CLASS)}
    body |= {"__slots__": names, "__match_args__": names, "__init__": _initialiser(names, defaults)}
    body |= {"__eq__": _equals, "__hash__": _hash, "__repr__": _shown}
    made: type[T] = type(cls.__name__, (), body)
    return made


_OF_A_CLASS = ("__dict__", "__weakref__")


def _initialiser(names: tuple[str, ...], defaults: dict[str, object]) -> object:
    """`def __init__(self, a, b=DEFAULT)`, which assigns each field: only code made for it is as fast."""
    given = (f"{name}=defaults[{name!r}]" if name in defaults else name for name in names)
    assigned = "; ".join(f"self.{name} = {name}" for name in names)
    made: dict[str, object] = {"defaults": defaults}
    exec(f"def __init__(self, {', '.join(given)}): {assigned}", made)
    return made["__init__"]


def _fields(value: Any) -> tuple[object, ...]:
    return tuple(getattr(value, name) for name in value.__slots__)


def _equals(self: object, other: object) -> bool:
    return type(self) is type(other) and _fields(self) == _fields(other)


def _hash(self: object) -> int:
    return hash((type(self), *_fields(self)))


def _shown(self: Any) -> str:
    fields = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({', '.join(fields)})"
