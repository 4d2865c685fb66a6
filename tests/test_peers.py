"""Every difference from other public tools has its causes, and they add up to the other tool's figure.

Their figures are in a golden, so none of them is needed here; where the extra `peers` is installed, they are
asked anew.
"""

from __future__ import annotations

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.peers import compare
from tests.peers.bridges import CAUSES, POINTS, QUANTITIES, bridge, ours
from tests.peers.compare import ASK, BEGIN, DOCUMENT, END, GOLDEN, PACKAGES, found, renewed, shown

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))
WAYS = [
    (peer, quantity, point)
    for peer, figures in RECORDED["theirs"].items()
    for point, of_point in figures.items()
    for quantity in of_point
]
PRINTED = {"ridgepoint": 5e-5}  # of five digits


def test_the_golden_has_every_tool_and_every_point() -> None:
    """Three tools; time of decode and of prefill from each, bytes and largest batch from two at least."""
    assert list(RECORDED["theirs"]) == list(ASK)
    assert set(RECORDED["ours"]) == set(POINTS)
    for figures in RECORDED["theirs"].values():
        assert {POINTS[name].phase for name, of_point in figures.items() if "time" in of_point} == {"decode", "prefill"}
        assert set().union(*figures.values()) <= set(QUANTITIES)
    assert len(WAYS) == 37


@pytest.mark.parametrize("point", POINTS)
def test_our_side_is_what_the_ledger_says_today(point: str) -> None:
    """Stale where the cost model has changed: python -m tests.peers.compare --ours renews it."""
    assert RECORDED["ours"][point] == pytest.approx(ours(point), rel=1e-12)


@pytest.mark.parametrize(("peer", "quantity", "point"), WAYS)
def test_the_causes_add_up_to_their_figure(peer: str, quantity: str, point: str) -> None:
    """To the last digit that the tool gives: nothing is left unexplained."""
    way = bridge(RECORDED, peer, quantity, point)
    theirs = RECORDED["theirs"][peer][point][quantity]
    assert way.end == pytest.approx(theirs, rel=PRINTED.get(peer, 1e-12))
    assert way.ours == RECORDED["ours"][point][quantity]
    assert way.ours + sum(change for _, change in way.changes) == pytest.approx(way.end, rel=1e-12)


def test_every_cause_is_told_and_used_and_in_one_order() -> None:
    """No bridge takes a cause that the document doesn't explain, and none explained is idle."""
    order = list(CAUSES)
    taken = [[cause for cause, _ in bridge(RECORDED, *way).steps] for way in WAYS]
    assert all(causes == sorted(causes, key=order.index) for causes in taken)
    assert {cause for causes in taken for cause in causes} == set(order)


def test_the_document_shows_what_the_golden_holds() -> None:
    """Its tables are those that --write would put there, between one pair of marks."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert text == renewed(text, RECORDED)
    assert RECORDED["command"] in text
    for peer, point in (("servcalc", "64 at 8k"), ("mlsysim", "1,024 at 512")):
        assert shown(RECORDED["theirs"][peer][point]["bytes_moved"], "bytes_moved") in text


def test_changes_are_shown_with_their_sign() -> None:
    """No change is 0; one too small for the digits keeps its sign."""
    assert [shown(value, "time", True) for value in (0.0, 1e-18, 2e-3, -2e-3, -1e-7)] == [
        "0",
        "0",
        "+2.000",
        "\N{MINUS SIGN}2.000",
        "\N{MINUS SIGN}0.000",
    ]
    assert shown(98.765e9, "flops") == "98.765"


def test_the_versions_are_those_of_the_extra(root: Path) -> None:
    """Pinned in pyproject.toml, and the golden was made with them."""
    extra = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert sorted(extra["peers"]) == sorted(f"{name}=={version}" for name, version in RECORDED["versions"].items())
    assert set(RECORDED["versions"]) == {package for packages in PACKAGES.values() for package in packages}


@pytest.mark.skipif(
    not all(find_spec(package) for package in RECORDED["versions"]), reason="the extra `peers` is not installed"
)
def test_the_tools_still_say_so() -> None:
    """Asked anew, where they are installed."""
    assert json.loads(json.dumps(found())) == RECORDED


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1 and the command, no traceback."""

    def missing() -> None:
        raise ImportError("No module named 'servcalc'")

    monkeypatch.setattr(compare, "found", missing)
    monkeypatch.setattr("sys.argv", ["compare"])
    with pytest.raises(SystemExit) as caught:
        compare.main()
    assert caught.value.code == 1
    assert "pip install -e '.[peers]'" in capsys.readouterr().err
