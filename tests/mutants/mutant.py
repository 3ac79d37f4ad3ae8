"""How a rule of the core is broken: by changing a few words of one of its functions.

A mutant names the function and the words, so it shows the rule where it stands. When the code changes, the
words are no longer there and the mutant says so (`StaleMutant`) instead of testing nothing.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial, reduce
from importlib import import_module
from pkgutil import walk_packages
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import leaderless


class StaleMutant(Exception):
    """The code that a mutant changes is not there any more; the text says what to look at."""


class Mutant(NamedTuple):
    """A broken rule: `rule` says in words what the right code does.

    In `place` (`module:Class.method` below `leaderless.`) each `old` of the `edits` becomes its `new`. `world`
    are options of the scenarios in which that shows soonest; `test` is the test that fails by it, where no
    scenario shows it. `also`: more places and their edits, where one rule stood in several.
    """

    name: str
    rule: str
    place: str
    edits: tuple[tuple[str, str], ...]
    world: Mapping[str, Any] = MappingProxyType({})
    test: str = ""
    also: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The core is broken inside the block. Raises `StaleMutant`."""
        with ExitStack() as broken:
            for place, edits in ((self.place, self.edits), *self.also):
                broken.enter_context(self._replace(place=place, edits=edits)._broken())
            yield

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """One place of it is broken inside the block."""
        module_name, _, path = self.place.partition(":")
        module = import_module(f"leaderless.{module_name}")
        *outer, name = path.split(".")
        try:
            owner = reduce(getattr, outer, module)
            source = inspect.getsource(_function(inspect.getattr_static(owner, name)))
        except AttributeError as gone:
            raise StaleMutant(f"{self.name}: {gone}; point it to where the rule is now") from None
        with _replaced(owner, name, _compiled(self._edited(source), name, vars(module))):
            yield

    def _edited(self, source: str) -> str:
        for old, new in self.edits:
            if source.count(old) != 1:
                raise StaleMutant(
                    f"{self.name}: {self.place} has {source.count(old)} times, not once: {old!r}; "
                    "break the rule as it is written now"
                )
            source = source.replace(old, new)
        return source


@contextmanager
def _replaced(owner: Any, name: str, new: Any) -> Iterator[None]:
    """`owner.name` is `new` inside the block, also in every module that imported it, under whatever name.

    Raises `StaleMutant` when a table, a class or a default would go on with the right code.
    """
    old = inspect.getattr_static(owner, name)
    if isinstance(owner, ModuleType) and (keepers := [*_keepers(old)]):
        raise StaleMutant(f"{name} is kept by {', '.join(keepers)}, which would not change")
    with ExitStack() as patches:
        patches.enter_context(patch.object(owner, name, new))
        if isinstance(owner, ModuleType):
            for module, its_name in _holders(old):
                patches.enter_context(patch.object(module, its_name, new))
        yield


def _holders(value: Any) -> list[tuple[ModuleType, str]]:
    """The modules with that very object, and what they call it."""
    _import_all()  # one that is imported later would keep the mutant for ever
    return [
        (module, name)
        for module in list(sys.modules.values())
        for name, held in list(vars(module).items())
        if held is value
    ]


def _keepers(value: Any) -> Iterator[str]:
    """What else of the package has that very object, inside of it."""
    _import_all()
    for module in list(sys.modules.values()):
        if module.__name__.partition(".")[0] == leaderless.__name__:
            for name, held in list(vars(module).items()):
                if any(each is value for each in _inside(held)):
                    yield f"{module.__name__}.{name}"


def _inside(held: Any) -> Iterable[Any]:
    """What a table, a class or a function's defaults hold."""
    match held:
        case dict():
            return held.values()
        case list() | tuple() | set() | frozenset():
            return held
        case type():
            return vars(held).values()
        case partial():
            return (held.func, *held.args, *held.keywords.values())
        case FunctionType():
            return (*(held.__defaults__ or ()), *(held.__kwdefaults__ or {}).values())
    return ()


@cache
def _import_all() -> None:
    for found in walk_packages(leaderless.__path__, "leaderless."):
        import_module(found.name)


def _compiled(source: str, name: str, names: dict[str, Any]) -> Any:
    """What the source of a function defines, in the module with these names."""
    made: dict[str, Any] = {}
    exec(compile(textwrap.dedent(source), "mutant", "exec"), names, made)
    return made[name]


def _function(original: Any) -> Callable[..., Any]:
    """The plain function of a method or property."""
    getter = getattr(original, "fget", None) or getattr(original, "__func__", None)
    function: Callable[..., Any] = getter or original
    return function
