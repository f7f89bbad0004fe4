"""Figures of notebook 03: shares, intensity against rows, a layer on the roofline."""

from types import SimpleNamespace

import pytest

from helpers import devices, plots, roofline
from helpers.plots import intensity

T4 = devices.get("t4")
ROOFS = [roofline.datasheet(T4), roofline.sustained(T4)]


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_intensity_of_a_layer():
    assert plots.linear_intensity(1, 4096, 4096, 2) == pytest.approx(1, rel=1e-3)
    assert plots.linear_intensity(4096, 4096, 4096, 2) == pytest.approx(4096 / 3)
    assert plots.linear_intensity(64, 512, 256, 2) == pytest.approx(
        2 * plots.linear_intensity(64, 512, 256, 4)
    )
    assert plots.linear_intensity(7, 11, 13, 2) == pytest.approx(1 / (1 / 7 + 1 / 11 + 1 / 13))


def test_shares_are_two_bars_with_their_numbers():
    shares = {"products": (0.998, 0.61), "rest": (0.002, 0.39)}
    ax = plots.draw_shares(None, shares, device="a card", origin="measured", more="published")
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == pytest.approx([99.8, 61, 0.2, 39])
    hatches = {bar.get_hatch() for bar in ax.patches}
    assert len(hatches) == 2, "apart without colour as well"
    assert {"99.8 %", "61.0 %", "0.20 %", "39.0 %"} <= set(texts(ax))
    said = plots.alt_text(ax.figure)
    assert "rest: 0.20 % of the FLOPs, 39.0 % of the time" in said and "published" in said
    assert all(t.get_fontsize() >= 9 for t in ax.texts)


@pytest.mark.parametrize("shares", [{}, {"a": (1.2, 0.1)}, {"a": (float("nan"), 0.1)}])
def test_shares_must_be_shares(shares):
    with pytest.raises(ValueError, match="between 0 and 1"):
        plots.draw_shares(None, shares, device="a card", origin="measured")


def test_intensity_against_rows_with_its_ridges():
    rows = [2**k for k in range(13)]
    ax = plots.draw_intensity(None, rows, [1024, 8192], ROOFS)
    curves = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    assert curves["width 8,192"][6] == pytest.approx(plots.linear_intensity(64, 8192, 8192, 2))
    assert max(curves["width 1,024"]) < 512
    assert {"ridge, paper 203", "ridge, published 175"} <= set(texts(ax))
    assert "calculated" in ax.get_title(loc="left") and "fp16" in ax.get_title(loc="left")
    assert "ridge, paper: 203" in plots.alt_text(ax.figure)


def test_two_ridges_in_one_place_get_one_label():
    own = SimpleNamespace(label="simulated ceiling", device="T4 (simulated)", origin="simulated",
                          bandwidth=ROOFS[1].bandwidth * 1.01, rates=ROOFS[1].rates)  # fmt: skip
    ax = plots.draw_intensity(None, [1, 64, 4096], [1024], [*ROOFS, own])
    labels = [t for t in texts(ax) if t.startswith("ridge")]
    assert labels == ["ridge, paper 203", "ridge, yours 173"]


def test_the_words_stay_off_the_curves_where_the_ridge_is_low():
    cpu = SimpleNamespace(label="measured ceiling", device="a CPU", origin="measured",
                          bandwidth=2e10, rates={"fp32": 6e10})  # fmt: skip
    rows = [2**k for k in range(13)]
    for roofs, dtype, side in ([cpu], "fp32", "right"), (ROOFS, "fp16", "left"):
        ax = plots.draw_intensity(None, rows, [1024, 8192], roofs, dtype)
        words = [t for t in ax.texts if "-bound" in t.get_text()]
        assert [t.get_ha() for t in words] == [side] * 2
    with pytest.raises(ValueError, match="fp16"):
        plots.draw_intensity(None, rows, [1024], [cpu])


def marks(ax):
    return {line.get_gid(): line for line in ax.lines if str(line.get_gid()).startswith("point")}


@pytest.mark.parametrize(
    ("batch", "leaning"),
    [
        (1, "leaning to memory"),
        (32, "leaning to memory"),
        (64, "near the ridge"),
        (256, "near the ridge"),
        (1024, "leaning to compute"),
    ],
)
def test_a_layer_stands_under_the_last_roof(batch, leaning):
    ax = plots.draw_roofline_explorer(None, ROOFS, batch, 8192)
    (mark,) = marks(ax).values()
    x, y = plots.linear_intensity(batch, 8192, 8192, 2), ROOFS[1].rates["fp16"]
    assert mark.get_xdata()[0] == pytest.approx(x)
    assert mark.get_ydata()[0] == pytest.approx(min(y, x * ROOFS[1].bandwidth))
    assert leaning in plots.alt_text(ax.figure)
    assert f"{batch:,} row{'s' * (batch > 1)}, 8,192 wide" in plots.alt_text(ax.figure)
    (trail,) = [line for line in ax.lines if line.get_gid() == "trail"]
    assert len(trail.get_xdata()) == len(intensity.TRAIL)


def test_own_points_and_the_time_of_a_call():
    own = plots.Point("yours, 1", 1.0, 2.3e11, "simulated")
    ax = plots.draw_roofline_explorer(None, ROOFS, 1, 8192, "fp16", [own])
    assert set(marks(ax)) == {"point 1 row", "point yours, 1"}
    # 134 MB at 239 GB/s
    assert "561 µs per call" in ax.get_xlabel() and "1 FLOP/B" in ax.get_xlabel()


def test_a_roof_without_that_rate_is_left_out():
    bare = SimpleNamespace(label="measured ceiling", device="T4", bandwidth=1e11, rates={},
                           vector_rate=None, origin="measured")  # fmt: skip
    ax = plots.draw_roofline_explorer(None, [ROOFS[0], bare], 64, 1024, "fp32")
    assert "datasheet peak of T4" in plots.alt_text(ax.figure)
    for roofs, dtype, said in ([bare], "fp16", "fp16"), (ROOFS, "fp8", "fp8"):
        with pytest.raises(ValueError, match=said):
            plots.draw_roofline_explorer(None, roofs, 1, 64, dtype)
    for batch, width in (0, 64), (64, 0):
        with pytest.raises(ValueError, match="at least one"):
            plots.draw_roofline_explorer(None, ROOFS, batch, width)


def test_a_point_above_every_roof_stays_in_view():
    fast = plots.Point("from the cache", 1.0, 1e15)
    ax = plots.draw_roofline(None, ROOFS, [fast])
    assert ax.get_ylim()[1] > 1e15
    assert plots.draw_roofline(None, ROOFS).get_ylim()[1] == pytest.approx(2.5 * 65e12)
