"""The stage map, the explorer's figure and the ladder: right values, honest words, readable."""

from types import SimpleNamespace

import pytest
from matplotlib.text import Text

from helpers import devices, inference, plots, roofline
from helpers.plots import Stage, stages
from helpers.plots.stages import BATCHES, STAGES, draw_ladder, draw_stage_explorer, draw_stage_map

T4 = roofline.datasheet(devices.get("t4"))
PLACES = [
    Stage("prefill", 1186),
    Stage("prefill: attention", 910),
    Stage("decode", 1.0),
    Stage("decode: attention", 1.0),
    Stage("norms", 0.19),
    Stage("small, eager", 0.99, 6e9),
]


def named(ax, start):
    return [line for line in ax.lines if str(line.get_gid()).startswith(start)]


def texts(ax):
    return [t.get_text() for t in ax.findobj(Text)]


def test_a_stage_without_a_rate_stands_hollow_on_the_roof():
    ax = draw_stage_map(None, T4, PLACES, origin="calculated")
    spots = {line.get_gid()[6:]: line for line in named(ax, "stage ")}
    assert spots["decode"].get_ydata()[0] == pytest.approx(320e9)
    assert spots["prefill"].get_ydata()[0] == pytest.approx(65e12)
    assert spots["prefill"].get_markerfacecolor() == "#FFFFFF"
    assert spots["small, eager"].get_markerfacecolor() != "#FFFFFF"
    assert len({line.get_marker() for line in spots.values()}) == len(PLACES)


def test_a_run_stage_says_how_far_below_the_roof_it_is():
    ax = draw_stage_map(None, T4, PLACES, origin="simulated", device="Tesla T4 (simulated)")
    (gap,) = named(ax, "gap")
    assert list(gap.get_ydata()) == pytest.approx([0.99 * 320e9, 6e9])
    assert "small, eager, ÷53" in texts(ax)
    said = plots.alt_text(ax.figure)
    assert "small, eager: 0.99 FLOP/B, memory side, 53 times below the roof" in said
    assert "prefill: 1,186 FLOP/B, compute side" in said and "Tesla T4 (simulated)" in said


def test_stages_in_one_place_share_a_label():
    ax = draw_stage_map(None, T4, PLACES, origin="calculated")
    shared = [t for t in texts(ax) if "\n" in t and ":" in t]
    assert sorted(shared) == ["decode\ndecode: attention", "prefill: attention\nprefill"]


@pytest.mark.parametrize("stage", [Stage("x", 0), Stage("x", 1, 0), Stage("x", float("nan"))])
def test_a_log_axis_needs_values_above_zero(stage):
    with pytest.raises(ValueError, match="above zero"):
        draw_stage_map(None, T4, [stage], origin="calculated")


def test_an_empty_map_is_refused():
    with pytest.raises(ValueError, match="at least one stage"):
        draw_stage_map(None, T4, [], origin="calculated")


def test_the_parts_are_those_of_the_inference_room():
    llama = inference.model()
    assert stages.stage_part("decode", 8, 512, T4) == inference.decode(llama, T4, 8, 512)
    assert stages.stage_part("prefill", 2, 512, T4) == inference.prefill(llama, T4, 512, 2)
    cache = stages.stage_part("attention in decode", 8, 512, T4)
    assert cache.intensity == pytest.approx(1.0) and cache.bound == "memory"
    weights = stages.stage_part("weights in decode", 512, 128, T4)
    assert weights.bound == "compute"
    with pytest.raises(ValueError, match="Unknown stage"):
        stages.stage_part("sampling", 1, 1, T4)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("batch", "context"), [(1, 128), (512, 32768)])
@pytest.mark.parametrize("key", ["t4", "h100_sxm"])
def test_every_setting_of_the_explorer_draws(stage, batch, context, key):
    ax = draw_stage_explorer(None, stage, batch, context, key)
    said = plots.alt_text(ax.figure)
    assert f"batch {batch}" in said and "calculated" in said
    assert ("does not fit" in said) == (batch == 512 and context == 32768)
    (spot,) = named(ax, "stage ")
    left, right = ax.get_xlim()
    low, high = ax.get_ylim()
    assert left < spot.get_xdata()[0] < right and low < spot.get_ydata()[0] < high


def test_a_step_of_two_bounds_says_so():
    said = plots.alt_text(draw_stage_explorer(None, "decode", 512, 128, "a100").figure)
    assert "two bounds" in said and "weights compute-bound, attention memory-bound" in said
    said = plots.alt_text(draw_stage_explorer(None, "decode", 1, 128, "a100").figure)
    assert "memory-bound" in said and "two bounds" not in said and "on the roof" in said


def test_rings_stop_where_the_card_is_full():
    (small,) = named(draw_stage_explorer(None, "decode", 1, 1024, "t4"), "batches")
    (large,) = named(draw_stage_explorer(None, "decode", 1, 1024, "h100"), "batches")
    assert len(small.get_xdata()) == 2 and 2 < len(large.get_xdata()) < len(BATCHES)


def test_the_roof_goes_on_over_the_last_ring():
    for key in ("t4", "h100_sxm"):
        ax = draw_stage_explorer(None, "prefill", 1, 128, key)
        (rings,) = named(ax, "batches")
        roof = next(line for line in ax.lines if len(line.get_xdata()) == 3)
        assert max(rings.get_xdata()) < max(roof.get_xdata()) == pytest.approx(ax.get_xlim()[1])


def test_fits_is_said_by_the_same_rule_as_everywhere():
    room = inference.largest_batch(inference.model(), devices.get("t4").memory, 128)
    assert 16 <= room < 32
    fits = plots.alt_text(draw_stage_explorer(None, "decode", 16, 128, "t4").figure)
    full = plots.alt_text(draw_stage_explorer(None, "decode", 32, 128, "t4").figure)
    assert ", fits" in fits and "does not fit" in full


def test_a_rung_without_bytes_is_not_split():
    ax = draw_ladder()
    bars = [bar for bar in ax.patches if bar.get_y() > 3.5 and bar.get_width() > 0]
    assert [bar.get_width() for bar in bars] == [pytest.approx(1e3 / 244.7)]
    told = [t.get_text() for t in ax.get_legend().get_texts()]
    assert told == ["reading the weights once", "everything else", "not told apart"]


def test_the_ladder_is_the_published_one_and_hides_its_reasons():
    rungs = stages.ladder()
    assert [r.tokens for r in rungs] == [25.5, 107.0, 157.4, 202.1, 244.7]
    # the README's bandwidth over its rate is near what a step must read: fp16 13.2 GB, int8 half
    llama = inference.model()
    assert rungs[0].bytes == pytest.approx(llama.step_weights, rel=0.02)
    assert rungs[2].bytes == pytest.approx(llama.step_weights / 2, rel=0.05)
    said = plots.alt_text(draw_ladder().figure)
    assert said.count("removed: ?") == 4
    for word in ("launches", "bytes of", "trips"):
        assert word not in said
    assert "330 W" in said and "4.20 times faster" in said


def test_the_ladder_shows_what_the_learner_answered():
    ax = draw_ladder(None, {"compile": "launches", "int8": ..., "int4": None})
    steps = [t.get_text() for t in ax.texts if str(t.get_gid()).startswith("step ")]
    assert [s.split("removed: ")[1] for s in steps] == ["launches", "?", "?", "?"]


def test_no_text_is_small_and_none_is_cut():
    figures = [
        draw_stage_map(None, T4, PLACES, origin="calculated"),
        draw_stage_explorer(None, "decode", 512, 128, "a100"),
        draw_ladder(None, dict.fromkeys(("compile", "int8", "int4", "speculative"), "arithmetic")),
    ]
    for ax in figures:
        ax.figure.draw_without_rendering()
        frame = ax.figure.bbox
        for text in [*ax.texts, ax.title, ax._left_title, *ax.get_yticklabels()]:
            if text.get_text() and frame.y0 <= text.get_window_extent().y0 <= frame.y1:
                assert text.get_fontsize() >= 9
                box = text.get_window_extent()
                assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1, text.get_text()


def test_a_roof_without_the_rate_is_named():
    bare = SimpleNamespace(label="x", device="T4", bandwidth=1e9, rates={})
    with pytest.raises(roofline.RooflineError, match="no fp16 rate"):
        draw_stage_map(None, bare, PLACES, origin="calculated")
