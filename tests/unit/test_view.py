"""A view is a prefix of the log, and says so when it is asked to be anything else."""

import pytest

from leaderless.core.coordination import InvariantBroken
from leaderless.core.headlog.outline import Outline
from leaderless.core.headlog.records import Run, Segment, merge
from leaderless.core.headlog.view import View
from leaderless.core.limits import Limits
from leaderless.core.messages import Entry

LOG = [
    Entry("n0/0", 1, {"k": (0, ["a", "b"])}, {}),
    Entry("n1/0", 1, {"k": (2, ["c"]), "j": (0, ["x"])}, {"k": 1}),
    Entry("n0/0", 2, {"j": (1, ["y"])}, {"k": 0, "j": 0}),
]


def view_of(entries: list[Entry], own: str = "n0/0") -> View:
    view = View([own], Limits())
    view.fold(0, entries)
    return view


def test_what_it_reads_is_a_contiguous_run() -> None:
    view = view_of(LOG)
    assert view.read("k", 1) == [[1, "b"], [2, "c"]]
    assert view.read("k", -5) == [[0, "a"], [1, "b"], [2, "c"]]
    assert view.read("k", 3) == view.read("nobody", 0) == []
    assert (view.end("k"), view.end("j"), view.end("nobody")) == (3, 2, 0)


def test_it_knows_which_batches_are_in_and_where_its_own_are() -> None:
    view = view_of(LOG)
    assert view.contains("n0/0", 2)
    assert view.contains("n0/0", 1)
    assert not view.contains("n0/0", 3)
    assert not view.contains("n2/0", 0)
    assert view.placed["n0/0"] == (2, {"j": 1})


@pytest.mark.parametrize(
    ("slot", "entry", "name"),
    [
        (4, Entry("n1/0", 2, {}, {}), "ViewIsPrefix"),
        (3, Entry("n1/0", 1, {}, {}), "AckedExactlyOnce"),
        (3, Entry("n1/0", 2, {"k": (4, ["z"])}, {}), "OffsetsDense"),
        (3, Entry("n1/0", 2, {"k": (2, ["z"])}, {}), "OffsetsDense"),
    ],
)
def test_what_cannot_be_is_named(slot: int, entry: Entry, name: str) -> None:
    with pytest.raises(InvariantBroken, match=rf"^{name}"):
        view_of(LOG).fold(slot, [entry])


def skipped(view: View, run: Run) -> View:
    """The view after a run that it does not read."""
    outline = Outline(view.slot, view.end, view.placed.keys())
    outline.add(run)
    outline.slot = run.end
    view.skip_to(outline)
    return view


@pytest.mark.parametrize("known", range(4))
def test_an_outline_gives_the_same_view_without_messages(known: int) -> None:
    """Whatever of it was known: ends, commits, writers, and where the own batch is."""
    run = merge([Segment(0, LOG[:2]), Segment(2, LOG[2:])])
    view, whole = skipped(view_of(LOG[:known]), run), view_of(LOG)
    for name in ("slot", "committed", "writers", "placed"):
        assert getattr(view, name) == getattr(whole, name), name
    assert [view.end(key) for key in ("j", "k")] == [whole.end(key) for key in ("j", "k")]
    assert (view.read("k", 0) is None) == (known < 3)


def test_an_outline_that_is_older_changes_nothing() -> None:
    view = skipped(view_of(LOG), merge([Segment(0, LOG[:2])]))
    assert (view.slot, view.read("k", 0)) == (3, [[0, "a"], [1, "b"], [2, "c"]])


def test_a_page_after_its_children_changes_nothing() -> None:
    """A read that was silent is taken up again, when the index has become another one."""
    outline = Outline(0, lambda _: 0, {"n0/0"})
    for run in (merge([Segment(0, LOG[:2])]), merge([Segment(2, LOG[2:])])):
        outline.add(run)
        outline.slot = run.end
    before = (outline.ends.copy(), outline.placed.copy())
    outline.add(merge([Segment(0, LOG)]))
    outline.add(merge([Segment(0, LOG[:2])]))
    assert (outline.ends, outline.placed) == before == ({"k": 3, "j": 2}, {"n0/0": (2, {"j": 1})})


def test_after_an_outline_the_entries_are_not_at_hand() -> None:
    view = skipped(view_of([]), merge([Segment(0, LOG)]))
    assert view.since(2) is None
    assert view.since(3) == []


def test_an_outline_must_continue_the_view() -> None:
    with pytest.raises(InvariantBroken, match=r"^ViewIsPrefix"):
        skipped(view_of(LOG[:1]), merge([Segment(2, LOG[2:])]))
    with pytest.raises(InvariantBroken, match=r"^OffsetsDense"):
        skipped(view_of(LOG[:1]), merge([Segment(1, LOG[2:])]))


def test_what_was_evicted_is_not_read() -> None:
    view = view_of(LOG)
    view.evict(2)
    assert view.read("k", 0) == [[0, "a"], [1, "b"], [2, "c"]]  # a section goes as a whole
    view.evict(3, bytes_max=view.bytes)
    assert view.read("k", 0) is not None
    view.evict(3)
    assert (view.read("k", 2), view.read("k", 3), view.end("k"), view.bytes) == (None, [], 3, 0)
