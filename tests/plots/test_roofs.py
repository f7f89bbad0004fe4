"""Own roofs beside the datasheet, and the rate of a soak."""

import math

import pytest

from helpers import plots

ROWS = {
    "copy": {"datasheet": 320e9, "published": 239.2e9, "yours": 240e9},
    "matmul fp16": {"datasheet": 65e12, "published": None, "yours": 40e12},
}
UNITS = {"copy": "B/s", "matmul fp16": "FLOP/s"}


def said(ax):
    return plots.alt_text(ax.figure)


def words(ax):
    return [t.get_text() for t in ax.texts]


def test_each_bar_is_a_share_of_the_datasheet():
    ax = plots.draw_achieved(None, ROWS, UNITS, "measured", "Tesla T4")
    bars = [p for p in ax.patches if math.isfinite(p.get_width())]
    assert min(p.get_height() for p in bars) > 0.5
    widths = sorted(round(p.get_width(), 3) for p in bars)
    assert widths == [0.615, 0.748, 0.75, 1.0, 1.0]
    assert "240 GB/s, 75 %" in words(ax) and "40 TFLOP/s, 62 %" in words(ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "datasheet",
        "published",
        "yours",
    ]
    assert "matmul fp16, datasheet: 65 TFLOP/s" in said(ax)


def test_without_a_datasheet_the_row_says_so():
    rows = {"copy": {"datasheet": None, "published": None, "yours": 20e9}}
    ax = plots.draw_achieved(None, rows, {"copy": "B/s"}, "measured", "a CPU")
    assert "20 GB/s" in words(ax)
    assert "share of the largest" in ax.get_xlabel()
    assert any("no datasheet" in t.get_text() for t in ax.get_yticklabels())


def test_a_rate_above_the_datasheet_stays_inside_the_axes():
    rows = {"copy": {"datasheet": 100e9, "published": None, "yours": 170e9}}
    ax = plots.draw_achieved(None, rows, {"copy": "B/s"}, "measured", "a card")
    assert ax.get_xlim()[1] > 1.7


@pytest.mark.parametrize("rows", [{}, {"copy": {"datasheet": None, "yours": None}}])
def test_nothing_to_draw_is_refused(rows):
    with pytest.raises(ValueError, match="at least one quantity"):
        plots.draw_achieved(None, rows, UNITS, "measured", "a card")


def test_a_soak_shows_rate_and_clock():
    ax = plots.draw_soak(
        None, [0.05, 0.1, 0.15], [42e12, 30e12, 24e12], [1.59e9, None, 0.9e9], "measured",
        "Tesla T4", levels={"datasheet": 65e12},
    )  # fmt: skip
    rate, clock = ax.figure.axes
    assert rate is ax
    assert list(rate.lines[0].get_ydata()) == [42.0, 30.0, 24.0]
    assert list(clock.lines[0].get_ydata()) == [1590.0, 900.0]
    assert "from 1,590 to 900 MHz" in said(ax) and "datasheet: 65 TFLOP/s" in said(ax)
    assert rate.get_ylim()[0] == 0


def test_a_soak_without_a_clock_has_one_panel_and_says_why():
    ax = plots.draw_soak(None, [0.1], [42e12], [None], "measured", "Tesla T4")
    assert len(ax.figure.axes) == 1 and "no clock to read" in said(ax)
    ax = plots.draw_soak(None, [0.1], [42e12], [None], "simulated", "Tesla T4", note="a model")
    assert "a model" in said(ax) and "no clock" not in said(ax)


@pytest.mark.parametrize(
    "series", [([], [], []), ([0.1], [1.0, 2.0], [None]), ([0.1], [1.0], [])]
)  # fmt: skip
def test_windows_that_do_not_fit_together_are_refused(series):
    with pytest.raises(ValueError, match="needs windows"):
        plots.draw_soak(None, *series, "measured", "a card")
