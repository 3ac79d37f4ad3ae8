"""Tuples of which one item changes: the parts of a state, which must be hashable."""

from typing import TypeVar

T = TypeVar("T")


def with_item(items: tuple[T, ...], number: int, item: T) -> tuple[T, ...]:
    """The items with another one in place `number`."""
    return (*items[:number], item, *items[number + 1 :])
