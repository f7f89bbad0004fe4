"""The pictures of notebook 02: lanes, flow chart, three bars and the public case."""

import itertools
import re

import pytest

from helpers import plots
from helpers.devices import all_devices, get
from helpers.plots import bottlenecks, flow, lanes
from helpers.roofline import EXPLAINS, datasheet


def bars(ax):
    return {p.get_gid(): p.get_width() for p in ax.patches if p.get_gid()}


@pytest.mark.parametrize("device", [d.key for d in all_devices()])
@pytest.mark.parametrize(
    ("flops", "moved", "kernels", "bucket"),
    [(1e13, 1e6, 1, "compute"), (1e6, 1e11, 1, "memory"), (1e6, 1e4, 10_000, "overhead")],
)
def test_the_longest_bar_names_the_bucket_on_every_card(device, flops, moved, kernels, bucket):
    ax = plots.draw_buckets(None, flops, moved, kernels, device=get(device))
    lengths = bars(ax)
    assert max(lengths, key=lengths.get) == bucket
    assert f"{bucket}-bound" in plots.alt_text(ax.figure).lower()
    assert get(device).name in ax.get_title(loc="left")


def test_the_bars_are_flops_over_rate_bytes_over_bandwidth_and_kernels_times_cost():
    roof = datasheet(get("a100_80_sxm"))
    ax = plots.draw_buckets(None, 137.4e9, 100.7e6, 3, roof, host_per_op=1e-5)
    lengths = bars(ax)
    assert lengths["compute"] == pytest.approx(137.4e9 / 312e12 * 1e6)  # in us
    assert lengths["memory"] == pytest.approx(100.7e6 / 2.039e12 * 1e6)
    assert lengths["overhead"] == pytest.approx(30)


def test_two_bars_of_nearly_one_length_are_no_clear_verdict():
    roof = datasheet(get("t4"))
    tie = plots.draw_buckets(None, roof.rates["fp16"], roof.bandwidth * 0.9, 1, roof)
    clear = plots.draw_buckets(None, roof.rates["fp16"], roof.bandwidth * 0.5, 1, roof)
    assert "but close" in plots.alt_text(tie.figure)
    assert "but close" not in plots.alt_text(clear.figure)


@pytest.mark.parametrize("bucket", ["compute", "memory", "overhead"])
def test_no_word_of_the_bars_is_cut_at_the_edge(bucket):
    roof = datasheet(get("a100_80_sxm"))
    share = dict.fromkeys(("compute", "memory", "overhead"), 0.9) | {bucket: 1.0}
    flops, moved = share["compute"] * roof.rates["fp16"], share["memory"] * roof.bandwidth
    kernels = round(share["overhead"] * 1e5)
    ax = plots.draw_buckets(None, flops, moved, kernels, roof, host_per_op=1e-5)
    fig = ax.figure
    fig.draw_without_rendering()
    assert "but close" in plots.alt_text(fig)
    for text in [*ax.texts, ax.title, ax._left_title]:
        assert text.get_window_extent().x1 <= fig.bbox.width, text.get_text()


def test_without_an_own_cost_the_host_pays_the_published_one():
    ax = plots.draw_buckets(None, 1e6, 1e4, 100, device=get("t4"))
    assert bars(ax)["overhead"] == pytest.approx(3.2)  # ms


def test_the_public_case_shows_what_the_facts_say():
    ax = plots.draw_public_case()
    said = plots.alt_text(ax.figure)
    for part in ("39.2 ms", "9.3 to 9.5 ms", "6.5 ms", "6.1 to 12.3 ms", "13.2 GB", "1,226"):
        assert part in said, part
    assert "A100" in said and "published" in said


def test_the_flow_chart_asks_three_questions_and_ends_without_a_bucket():
    ax = plots.draw_flow_chart(share=EXPLAINS)
    texts = [t.get_text() for t in ax.texts]
    assert sum("60 %" in t for t in texts) == 3
    assert texts.count("yes") == 3 and texts.count("no") == 3
    places = [texts.index(leaf[0]) for leaf in flow.LEAVES]
    assert places == sorted(places)
    assert flow.LAST[0] in texts
    for bucket in ("overhead", "compute", "memory", "another test"):
        assert bucket in plots.alt_text(ax.figure)


def test_no_text_of_the_flow_chart_leaves_its_box():
    ax = plots.draw_flow_chart()
    ax.figure.draw_without_rendering()
    right = {False: flow.LEFT + flow.WIDE, True: flow.LEAF + flow.LEAF_WIDE}
    for text in ax.texts:
        if text.get_text() in ("", "yes", "no") or text.get_gid() == "headline":
            continue
        box = text.get_window_extent().transformed(ax.transData.inverted())
        assert box.x1 < right[text.get_position()[0] > flow.LEAF], text.get_text()


def kernels(ax):
    boxes = [c for c in ax.collections if c.get_gid() == "kernel"]
    return sorted((b.get_datalim(ax.transData).x0, b.get_datalim(ax.transData).x1) for b in boxes)


def idle(ax):
    spans = kernels(ax)
    gaps = sum(max(0.0, b[0] - a[1]) for a, b in itertools.pairwise(spans))
    return gaps / (spans[-1][1] - spans[0][0])


def test_only_the_overhead_bound_picture_is_mostly_gaps():
    for panels in (plots.draw_lanes(), plots.draw_unlabelled_lanes(0)):
        shares = dict(zip(lanes.KINDS, map(idle, panels), strict=True))
        assert shares["overhead"] > 0.5
        assert max(shares["compute"], shares["memory"]) < 0.1
        for ax in panels:
            assert kernels(ax)[-1][1] <= ax.get_xlim()[1], "a kernel is cut off"


@pytest.mark.parametrize("series", range(6))
def test_the_unlabelled_pictures_stand_in_the_order_of_their_series(series):
    panels = plots.draw_unlabelled_lanes(series)
    said = plots.alt_text(panels[0].figure)
    assert not re.search("bound|overhead|compute-|memory-", said), "the words give it away"
    assert "calculated" in said
    for ax, kind in zip(panels, lanes.ORDERS[series], strict=True):
        words = ax._in_words
        assert (idle(ax) > 0.5) == (kind == "overhead")
        if kind != "overhead":
            assert ("units compute 100%" in words) == (kind == "compute")
            assert ("memory moves 100%" in words) == (kind == "memory")


def test_a_late_launch_has_its_gap_and_no_kernel_starts_before_its_launch_ends():
    for ax in plots.draw_unlabelled_lanes(0):
        queue = next(c for c in ax.collections if c.get_gid() != "kernel")
        ends = sorted(path.get_extents().x1 for path in queue.get_paths())
        starts = [a for a, _ in kernels(ax)]
        assert len(ends) == len(starts)
        assert all(e <= s + 1e-9 for e, s in zip(ends, starts, strict=True))
        gaps = [s for (_, e), (s, _) in itertools.pairwise(kernels(ax)) if s > e + 1e-9]
        assert all(any(abs(e - s) < 1e-9 for e in ends) for s in gaps), "a gap without a reason"


def test_an_unknown_series_is_refused():
    with pytest.raises(ValueError, match="6 series"):
        plots.draw_unlabelled_lanes(6)


def test_the_fourth_picture_waits_for_a_copy():
    (ax,) = plots.draw_lanes(["copies"])
    assert idle(ax) > 0.5 and "CPU waits" in ax.get_xlabel()
    assert "dashed" in ax.get_xlabel(), "dots are the look of the units"
    assert "none of the three" in plots.alt_text(ax.figure)


def test_every_text_is_large_enough_and_no_figure_is_wider_than_the_page():
    figures = [
        plots.draw_lanes()[0].figure,
        plots.draw_unlabelled_lanes()[0].figure,
        plots.draw_flow_chart().figure,
        plots.draw_public_case().figure,
        plots.draw_buckets(None, 1e10, 1e9, 10, device=get("a100_80_sxm")).figure,
    ]
    for fig in figures:
        assert fig.get_size_inches()[0] == plots.style.WIDTH
        sizes = [t.get_fontsize() for ax in fig.axes for t in ax.texts if t.get_text()]
        assert min(sizes) >= 9
        assert plots.png(fig).startswith(b"\x89PNG")


def test_the_bars_are_the_times_of_equal_kernels():
    roof = datasheet(get("t4"))
    times = bottlenecks.bucket_times(1e12, 1e9, 10, roof, "fp16", 1e-5)
    assert times.program == times.kernels == times.compute == times.compute_bound
    assert times.memory_bound == 0 and times.host == pytest.approx(1e-4)
