"""A case as a figure: hidden it tells only its numbers, solved its times and verdict."""

import pytest
from matplotlib.text import Text

from helpers import plots
from helpers.checks.cases import numbered


def bars(ax):
    return [p for p in ax.patches if p.get_width() > 0 and p.get_height() == pytest.approx(0.55)]


def words(ax):
    return " ".join(t.get_text() for t in ax.figure.findobj(Text))


@pytest.mark.parametrize("number", range(1, 11))
def test_hidden_there_is_one_bar_and_no_verdict(number):
    case = numbered(number)
    ax = plots.draw_diagnosis(None, case, number)
    (measured,) = bars(ax)
    assert measured.get_width() == pytest.approx(case.ms)
    assert sum(t.get_gid() == "unknown" for t in ax.texts) == 3
    said = words(ax) + plots.alt_text(ax.figure)
    assert "bound" not in said and "another test" not in said
    for number in (f"{case.tflop:g} TFLOP", f"{case.gb:g} GB", f"{case.launches:,} launches"):
        assert number in said


@pytest.mark.parametrize("number", range(1, 11))
def test_solved_it_shows_the_times_and_the_verdict(number):
    case = numbered(number)
    ax = plots.draw_diagnosis(None, case, number, solved=True)
    widths = [bar.get_width() for bar in bars(ax)]
    parts = case.parts
    assert widths == pytest.approx([case.ms, parts["compute"], parts["memory"], parts["overhead"]])
    word = {"trace": "look at the trace", "again": "time it again"}.get(case.kind, case.kind)
    assert word in next(t.get_text() for t in ax.texts if t.get_gid() == "headline")
    assert max(widths) < ax.get_xlim()[1]
    assert ax.get_title(loc="left").startswith(f"{case.card} · calculated")


@pytest.mark.parametrize("number", range(1, 31))
def test_the_words_of_the_band_stay_inside(number):
    ax = plots.draw_diagnosis(None, numbered(number), number, solved=True)
    ax.figure.draw_without_rendering()
    renderer = ax.figure.canvas.get_renderer()
    (said,) = [t for t in ax.texts if t.get_text().startswith("60 to 110 %")]
    box, frame = said.get_window_extent(renderer), ax.get_window_extent(renderer)
    assert frame.x0 < box.x0 and box.x1 < frame.x1


def test_the_band_is_that_of_the_rule():
    case = numbered(1)
    ax = plots.draw_diagnosis(None, case, 1)
    band = next(p for p in ax.patches if p.get_height() == 1)
    assert band.get_x() == pytest.approx(0.6 * case.ms)
    assert band.get_width() == pytest.approx(0.5 * case.ms)
