"""Predictions against outcomes: where the marks stand, and whose numbers they are."""

import pytest
from matplotlib.text import Text

from helpers import plots
from helpers.earlier import Pair

T4 = "Tesla T4"


def pair(exercise, ratio, origin="measured", device=T4):
    return Pair(exercise, "", ratio, 1.0, "ms", origin, device)


def marks(ax):
    return [line for line in ax.lines if line.get_gid() in ("measured", "simulated")]


def title(ax):
    return ax.get_title(loc="left")


def test_a_mark_stands_at_prediction_over_outcome():
    pairs = [pair("04-4", 2.0), pair("04-6", 0.5), pair("06-2", 1.0)]
    ax = plots.draw_predictions(None, pairs)
    found = {(round(m.get_xdata()[0], 3), m.get_marker()) for m in marks(ax)}
    assert found == {(2.0, ">"), (0.5, "<"), (1.0, "o")}
    assert [t.get_text() for t in ax.get_yticklabels()] == ["04", "06"]
    assert {round(m.get_ydata()[0]) for m in marks(ax)} == {0, 1}


def test_the_furthest_of_a_notebook_is_named_where_it_is_far():
    pairs = [pair("04-4", 1.2), pair("04-6", 8.0), pair("05-2", 1.4)]
    ax = plots.draw_predictions(None, pairs)
    assert [t.get_text() for t in ax.texts if t.get_gid() == "worst"] == ["04-6: ×8 off"]
    headline = next(t.get_text() for t in ax.texts if t.get_gid() == "headline")
    assert headline == "Your predictions: 2 of 3 within ×1.5"


def test_one_far_beyond_the_axis_stands_at_its_edge_and_says_how_far():
    ax = plots.draw_predictions(None, [pair("04-4", 1e6), pair("04-5", 1e-6), pair("04-6", 1.0)])
    low, high = ax.get_xlim()
    assert all(low < m.get_xdata()[0] < high for m in marks(ax))
    assert "×1,000,000 off" in "".join(t.get_text() for t in ax.texts)


def test_simulated_numbers_say_so():
    simulated = pair("04-4", 1.0, "simulated", f"{T4} (simulated)")
    assert title(plots.draw_predictions(None, [simulated])).startswith(
        "Tesla T4 (simulated) · simulated"
    )
    both = plots.draw_predictions(None, [simulated, pair("04-5", 1.0)])
    assert "hollow marks: simulated" in title(both)
    fills = {m.get_gid(): m.get_markerfacecolor() for m in marks(both)}
    assert fills["simulated"] == "#FFFFFF" != fills["measured"]
    assert title(plots.draw_predictions(None, [pair("04-4", 1.0)])).startswith(
        "Tesla T4 · measured"
    )
    counted = pair("09-1", 1.0, "none", f"{T4} (simulated)")
    assert title(plots.draw_predictions(None, [counted])).startswith("no machine · counted")


def test_calculated_marks_among_simulated_ones_say_so():
    simulated = pair("04-4", 1.0, "simulated", f"{T4} (simulated)")
    ax = plots.draw_predictions(None, [simulated, pair("08-3", 1.3, "none")])
    assert "simulated · filled marks: calculated" in title(ax)
    assert "filled" not in title(plots.draw_predictions(None, [simulated]))


def test_equal_predictions_of_a_notebook_do_not_hide_each_other():
    ax = plots.draw_predictions(None, [pair(f"04-{n}", 1.0) for n in range(1, 6)])
    heights = sorted(m.get_ydata()[0] for m in marks(ax))
    assert len(set(heights)) == 5 and max(map(abs, heights)) < 0.5


def test_many_predictions_stay_readable():
    pairs = [pair(f"0{n}-{k}", 1.5**k) for n in range(1, 10) for k in range(1, 7)]
    ax = plots.draw_predictions(None, pairs)
    figure = ax.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    boxes = [t.get_window_extent(renderer) for t in ax.texts if t.get_gid() == "worst"]
    assert len(boxes) == 9
    assert not [1 for i, a in enumerate(boxes) for b in boxes[i + 1 :] if a.overlaps(b)]
    assert all(t.get_fontsize() >= 9 for t in figure.findobj(Text) if t.get_text())


def test_nothing_to_draw_is_refused():
    for pairs in ([], [Pair("04-4", "", "memory", 1.0, "", "measured", T4)]):
        with pytest.raises(ValueError, match="at least one"):
            plots.draw_predictions(None, pairs)
