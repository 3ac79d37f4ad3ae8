"""How a rule of the core is broken: by changing a few words of one of its functions.

A mutant names the function and the words, so it shows the rule where it stands. When the code changes, the
words are no longer there and the mutant says so (`StaleMutant`) instead of testing nothing.

Mutants are data: `ROOM.toml` beside this file has those of a room of the package. Each stands in a list, which
is a section of docs/evidence/mutants.md:

    [[log]]
    name, rule      what the right code does, in words
    place           `module:Class.method` below `leaderless.`
    old, new        the words, and what they become
    world           options of the scenarios in which that shows soonest: the name of a [world.NAME] of the
                    file, or a table, which may have one as its `base`
    test            the test that fails by it, where no scenario shows it
    also            more words, of the same place unless they say another, where one rule stood in several
"""

import builtins
import dis
import inspect
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial, reduce
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import leaderless


class StaleMutant(Exception):
    """The code that a mutant changes is not there any more; the text says what to look at."""


class Mutant(NamedTuple):
    """A broken rule: in each place each `old` of the edits becomes its `new`."""

    name: str
    rule: str
    edits: Mapping[str, Sequence[tuple[str, str]]]  # by place
    world: Mapping[str, Any] = MappingProxyType({})
    test: str = ""

    @contextmanager
    def alive(self) -> Iterator[None]:
        """The core is broken inside the block. Raises `StaleMutant`."""
        with ExitStack() as broken:
            for place in self.edits:
                broken.enter_context(self._broken(place))
            yield

    @contextmanager
    def _broken(self, place: str) -> Iterator[None]:
        """One place of it is broken inside the block."""
        module_name, _, path = place.partition(":")
        module = import_module(f"leaderless.{module_name}")
        *outer, name = path.split(".")
        try:
            owner = reduce(getattr, outer, module)
            source = inspect.getsource(_function(inspect.getattr_static(owner, name)))
        except AttributeError as gone:
            raise StaleMutant(f"{self.name}: {gone}; point it to where the rule is now") from None
        code = compile(textwrap.dedent(self._edited(place, source)), "mutant", "exec")
        if unknown := _unknown(code, vars(module)):
            raise StaleMutant(f"{self.name}: {module_name} has no {', '.join(sorted(unknown))}")
        with _replaced(owner, name, _defined(code, name, vars(module))):
            yield

    def _edited(self, place: str, source: str) -> str:
        for old, new in self.edits[place]:
            if source.count(old) != 1:
                raise StaleMutant(
                    f"{self.name}: {place} has {source.count(old)} times, not once: {old!r}; "
                    "break the rule as it is written now"
                )
            source = source.replace(old, new)
        return source


def mutants_of(room: str) -> dict[str, list[Mutant]]:
    """The mutants of a room, by section."""
    kept = tomllib.loads(Path(__file__).with_name(f"{room}.toml").read_text(encoding="utf-8"))
    worlds = kept.pop("world", {})
    return {section: [_mutant(each, worlds) for each in its] for section, its in kept.items()}


def _mutant(kept: Mapping[str, Any], worlds: Mapping[str, Mapping[str, Any]]) -> Mutant:
    edits: dict[str, list[tuple[str, str]]] = {}
    for edit in (kept, *kept.get("also", ())):
        edits.setdefault(edit.get("place", kept["place"]), []).append((edit["old"], edit["new"]))
    world = kept.get("world", {})
    world = {"base": world} if isinstance(world, str) else dict(world)
    world = {**worlds[world.pop("base")], **world} if "base" in world else world
    options = {name: tuple(v) if isinstance(v, list) else v for name, v in world.items()}
    return Mutant(kept["name"], kept["rule"], edits, options, kept.get("test", ""))


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


def _unknown(code: CodeType, names: Mapping[str, Any]) -> set[str]:
    """What it looks up in the module and does not find: such a mutant dies of that, whatever its rule."""
    found = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return (found - names.keys() - vars(builtins).keys()).union(
        *(_unknown(each, names) for each in inner)
    )


def _defined(code: CodeType, name: str, names: dict[str, Any]) -> Any:
    """What the code of a function defines, in the module with these names."""
    made: dict[str, Any] = {}
    exec(code, names, made)
    return made[name]


def _function(original: Any) -> Callable[..., Any]:
    """The plain function of a method or property."""
    getter = getattr(original, "fget", None) or getattr(original, "__func__", None)
    function: Callable[..., Any] = getter or original
    return function
