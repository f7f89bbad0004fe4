"""Figures of notebook 06: right values in the right places, on every card and setting."""

import itertools

import matplotlib
import pytest

from helpers import devices, inference, plots, roofline
from helpers.explore import BATCH_DEVICES
from helpers.explore.batch import CONTEXTS
from helpers.plots import style

matplotlib.use("Agg")
LLAMA = inference.model()
SETTINGS = [
    *itertools.product((128, 1024, 8192), ("fp16", "int4"), BATCH_DEVICES),
    (256, "int8", "rtx_3090"),
]


def texts(fig):
    """Every text that is really drawn, with its box in pixels."""
    seen, draw = {}, matplotlib.text.Text.draw

    def record(self, renderer):
        if self.get_text().strip() and self.get_visible():
            seen[self] = matplotlib.text.Text.get_window_extent(self, renderer)
        return draw(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.text.Text, "draw", record)
        fig.canvas.draw()
    return list(seen.items())


def assert_readable(fig):
    found = texts(fig)
    for (a, first), (b, second) in itertools.combinations(found, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert wide <= 1 or high <= 1, f"{a.get_text()!r} covers {b.get_text()!r}"
    for text, box in found:
        assert text.get_fontsize() >= 9, text.get_text()
        inside = box.x0 >= 0 and box.x1 <= fig.bbox.width and box.y0 >= 0
        assert inside and box.y1 <= fig.bbox.height, f"{text.get_text()!r} is cut off"


SLOWLY = [
    s if i % 4 == 0 else pytest.param(*s, marks=pytest.mark.slow) for i, s in enumerate(SETTINGS)
]


@pytest.mark.parametrize(("context", "weights", "key"), SLOWLY)
def test_every_setting_is_readable(context, weights, key):
    top, bottom = plots.draw_batch(context, weights, key)
    assert_readable(top.figure)
    for ax in (top, bottom):
        assert ax.get_title(loc="left").startswith(f"{devices.get(key).name} · calculated")
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert "log scale" in ax.get_xlabel() and "log scale" in ax.get_ylabel()
    assert devices.get(key).name in plots.alt_text(top.figure)


def lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_the_curves_are_those_of_the_inference_arithmetic():
    top, bottom = plots.draw_batch(1024, "fp16", "a100_80_sxm")
    roof = roofline.datasheet(devices.get("a100_80_sxm"))
    whole = lines(top)["the whole step, its cache included"]
    batches, times = whole.get_data()
    assert batches[0] == 1 and batches[-1] == 111  # what fits, exactly
    for batch, time in zip(batches, times, strict=True):
        step = inference.decode(LLAMA, roof, int(batch), 1024)
        assert time == pytest.approx(step.seconds * 1e3)
    rates = lines(bottom)["the whole step, its cache included"].get_ydata()
    assert rates[-1] == pytest.approx(111 / times[-1] * 1e3)
    free = lines(bottom)["if every row were free"].get_ydata()
    assert free[-1] / free[0] == 111


def test_the_weights_are_flat_to_the_knee_and_double_with_the_batch_after():
    top, _ = plots.draw_batch(128, "fp16", "h200")
    alone = dict(zip(*lines(top)["the weights alone"].get_data(), strict=True))
    assert alone[1] == alone[128] and alone[1024] == pytest.approx(2 * alone[512])
    (knee,) = [line.get_xdata()[0] for line in top.lines if line.get_gid() == "knee"]
    assert knee == pytest.approx(206, abs=1) and alone[knee] == pytest.approx(alone[1])


def test_shorter_weights_are_a_shorter_trip_and_an_earlier_knee():
    knees = {}
    for weights in ("fp16", "int8", "int4"):
        top, _ = plots.draw_batch(128, weights, "h200")
        (knees[weights],) = [x.get_xdata()[0] for x in top.lines if x.get_gid() == "knee"]
    assert knees["fp16"] == pytest.approx(2 * knees["int8"]) == pytest.approx(4 * knees["int4"])


def test_memory_ends_in_a_wall_not_in_a_slope():
    top, bottom = plots.draw_batch(1024, "fp16", "t4")
    for ax in (top, bottom):
        assert any(patch.get_gid() == "full" and patch.get_hatch() for patch in ax.patches)
        assert "out of memory" in [t.get_text() for t in ax.texts]
    assert max(lines(top)["the whole step, its cache included"].get_xdata()) == 2
    roomy, _ = plots.draw_batch(128, "fp16", "h200")
    assert not [patch for patch in roomy.patches if patch.get_gid() == "full"]


def test_where_nothing_fits_the_figure_says_so():
    top, bottom = plots.draw_batch(8192, "fp16", "t4")
    headline = [t.get_text() for t in top.texts if t.get_gid() == "headline"]
    assert headline == ["Not even one sequence fits"]
    assert len(lines(top)["the whole step, its cache included"].get_xdata()) == 0
    assert list(bottom.get_yticks()) == []


def test_the_budget_is_part_of_the_title():
    top, _ = plots.draw_batch(1024, "fp16", "a100_80_sxm", use=0.5)
    assert "50% of 80 GB used" in top.get_title(loc="left").replace("\n", " ")
    assert max(lines(top)["the whole step, its cache included"].get_xdata()) == 49


def test_series_differ_in_more_than_colour():
    top, _ = plots.draw_batch(1024, "fp16", "l4")
    for attribute in ("get_color", "get_marker", "get_linestyle"):
        assert len({getattr(line, attribute)() for line in lines(top).values()}) == 2


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ValueError, match="Unknown weights 'fp8'"):
        plots.draw_batch(1024, "fp8", "t4")
    with pytest.raises(devices.UnknownDevice, match="L99"):
        plots.draw_batch(1024, "fp16", "L99")
    with pytest.raises(inference.InferenceError, match="at least 1"):
        plots.draw_batch(0, "fp16", "t4")


def test_the_primer_shows_one_prefill_and_two_steps():
    ax = plots.draw_decode_primer()
    assert_readable(ax.figure)
    entries = [patch.get_gid() for patch in ax.patches if patch.get_gid() in ("read", "written")]
    # prefill writes 4; the first step reads 4 and writes 1; the second reads 5 and writes 1
    assert (entries.count("read"), entries.count("written")) == (9, 6)
    said = plots.alt_text(ax.figure)
    assert "reads every earlier entry" in said and "any GPU · calculated" in said


def test_a_narrow_log_axis_has_more_than_one_label():
    """One labelled tick on less than two decades could not be read."""
    common = dict(origin="calculated", device="any GPU", xlabel="x", ylabel="y", logy=True)
    near = plots.draw_sweep(None, [1, 2, 3], {"a": [1.7e-3, 2e-3, 9.8e-3]}, **common)
    far = plots.draw_sweep(None, [1, 2, 3], {"a": [1e-5, 1e-3, 9.8e-1]}, **common)
    for ax, least, most in ((near, 2, 6), (far, 4, 8)):
        low, high = ax.get_ylim()
        shown = [tick for tick in ax.get_yticks() if low <= tick <= high]
        assert least <= len(shown) <= most
    assert style.number(near.get_yticks()[1]) != style.number(near.get_yticks()[2])


def test_contexts_are_those_of_the_explorer():
    assert list(CONTEXTS) == sorted(CONTEXTS) and len(CONTEXTS) == 7


def test_the_knee_is_named_in_whole_rows():
    """The ridge point is in FLOP per byte; what the figure marks is a batch."""
    top, bottom = plots.draw_batch(128, "int4", "h200")
    for ax in (top, bottom):
        said = [t.get_text() for t in ax.texts if "rows" in t.get_text()]
        assert said == ["knee: 52 rows"]
