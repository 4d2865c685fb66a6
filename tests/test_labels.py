"""Names beside dots: where there is room, and nowhere else."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.labels import SIZE, Box, Dot, along, beside, width_of

ROOM = Box(0, 0, 600, 300)
COORDINATES = st.tuples(st.floats(0, 600), st.floats(0, 300), st.floats(2, 24))


def test_a_lone_dot_is_named_to_its_right():
    """With a small gap, at its height."""
    (label,) = beside([Dot(100, 100, 5, ["gemm"])], [], ROOM)
    assert label is not None
    assert (label.text, label.x, label.y, label.align) == ("gemm", 109, 100, "left")


def test_at_the_right_edge_the_name_goes_left():
    """It ends before the dot."""
    (label,) = beside([Dot(598, 100, 5, ["gemm"])], [], ROOM)
    assert label is not None
    assert (label.align, label.x) == ("right", 589)


def test_the_next_name_is_taken_where_the_first_has_no_room():
    """A long name gives way to a number; without room for that either, there is none."""
    narrow = Box(0, 90, 60, 110)
    dot = Dot(20, 100, 5, ["a name that is far too long", "7"])
    (label,) = beside([dot], [], narrow)
    assert label is not None
    assert label.text == "7"
    assert beside([dot], [], Box(0, 95, 60, 105)) == [None]
    assert beside([Dot(20, 100, 5, [])], [], ROOM) == [None]


def test_the_first_dots_are_named_first():
    """Of two that want one place, the earlier has it."""
    first, second = beside([Dot(100, 100, 5, ["gemm"]), Dot(112, 100, 5, ["norm"])], [], ROOM)
    assert first is not None
    assert second is not None
    assert (first.align, second.align) == ("right", "left")


@given(st.lists(COORDINATES, max_size=25), st.lists(COORDINATES, max_size=4))
def test_no_name_touches_a_name_a_dot_a_line_or_the_edge(dots, ends):
    """Whatever the data: all rectangles are apart."""
    made = [Dot(x, y, r, [f"{i} some_kernel", f"{i}"]) for i, (x, y, r) in enumerate(dots)]
    lines = [box for (x, y, _), (v, w, _) in itertools.pairwise(ends) for box in along(x, y, v, w)]
    found = [label.box for label in beside(made, lines, ROOM) if label]
    assert not any(a.touches(b) for a, b in itertools.combinations(found, 2))
    assert not any(label.touches(dot.box) for label in found for dot in made)
    assert not any(label.count(lines) for label in found)
    assert all(label.inside(ROOM) for label in found)


def test_a_line_is_covered_without_gaps():
    """No name slips through: neighbours on a slope are at most as far apart as a letter is high."""
    boxes = along(0, 0, 300, 200)
    assert (boxes[0].left, boxes[-1].right) == (-2, 302)
    assert all(b.left - a.right < SIZE / 3 for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize(("text", "least"), [("iiii", 10), ("MMMM", 40), ("核函数", 36), ("flash_fwd_splitkv", 88)])
def test_widths_are_rather_too_wide(text, least):
    """px in Liberation Sans, by its own tables, are never more."""
    assert least <= width_of(text) <= 1.5 * least + 8
