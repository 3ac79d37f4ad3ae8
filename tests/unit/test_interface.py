"""What the user of the package sees: its public names, their docstrings, `help`, and the page made of them."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

import leaderless
from docs.interface import MODULES, PAGE, page

LIKE = re.compile(r"^See `[\w.]+`|are those of `\w+`")  # the docstring of another has the arguments


def public() -> Iterator[tuple[str, object]]:
    """Each public name, and each public member of a class."""
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for member, held in vars(value).items():
                    if not member.startswith("_") and (
                        inspect.isroutine(held) or isinstance(held, property)
                    ):
                        yield f"{module.__name__}.{name}.{member}", held


PUBLIC = dict(public())
CALLED = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


def test_the_page_is_what_the_docstrings_say() -> None:
    assert PAGE.read_text() == page(), "run `.venv/bin/python -m docs.interface`"


@pytest.mark.parametrize(
    "name", [name for name, value in PUBLIC.items() if not isinstance(value, str)]
)
def test_every_public_name_says_what_it_is(name: str) -> None:
    text = PUBLIC[name].__doc__ or ""
    assert text
    assert not text.startswith(f"{name.rpartition('.')[2]}(")  # as a named tuple without one has


@pytest.mark.parametrize("name", CALLED)
def test_every_argument_is_named_by_the_docstring(name: str) -> None:
    called: Callable[..., object] = CALLED[name]
    text = inspect.getdoc(called) or ""
    names = {*inspect.signature(called).parameters} - {"self"}
    assert LIKE.search(text) or names <= {*re.findall(r"\w+", text)}


def test_help_shows_each_public_name_in_a_line() -> None:
    text = pydoc.plain(pydoc.render_doc(leaderless))
    named = re.findall(r"^ {8}(\w[\w.]+)  +\S", text, flags=re.MULTILINE)
    assert {*named} == {*leaderless.__all__, *MODULES[1:]}
    assert all(f"class {name}(" in text or f" {name}(" in text for name in leaderless.__all__)
    assert {*leaderless.__all__} <= {*dir(leaderless)}


def test_the_package_alone_imports_nothing() -> None:
    code = "import sys; before = {*sys.modules}; import leaderless; print({*sys.modules} - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = ast.literal_eval(done.stdout)
    assert {name for name in found if name.split(".")[0] not in sys.stdlib_module_names} == {
        "leaderless"
    }
