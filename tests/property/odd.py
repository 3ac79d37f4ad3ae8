"""JSON values that nobody expects: the edges of each type, and nestings of these.

Most parts are drawn whole, from a table: to build each took longer than all that nodes and bench do with it.
"""

from typing import Any

from hypothesis import strategies as st

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 1.0, 0.5, 2**63, -(2**63), 2.0**70, "", "1", "x", "é" * 50),
    *([], [0], [[]], [[0, 1]], [[0, 1], [0, 2]], [["r", 0, None]], [[1, {}], 1.5]),
    *({}, {"1": []}, {"x": [[0, 1]]}, {"": [[3, None]]}, {"9": [[-1, 7]]}, {"x": 1}),
    *(2**53, 2**64 - 1, -0.0, 5e-324, "\0", "\n", "\U0001f600", "k", "n0"),
    *({"k": 0}, {"k": [0]}, {"k": [[0, "x"]]}, {"k": [[0, 1], [-1, 1]]}, {"k": None}),
    *({"\ud7ff": {"": {}}}, [[[[]]]], ["k", "j", "k"]),
]
JSON = st.recursive(
    st.sampled_from(ODD)
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abkj"), inner, max_size=3)
    ),
    max_leaves=3,
)
