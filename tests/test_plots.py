"""The figures: right values in the right places, readable, and honest about their origin."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from functools import cache, partial
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.style import context as style_context
from matplotlib.text import Text
from PIL import Image

from helpers import plots
from helpers.devices import all_devices, get, slots
from helpers.explore import FUSION_DEVICES
from helpers.plots import Bars, Event, Point, style
from helpers.plots.fusion import FUNCTIONS

matplotlib.use("Agg")
T4 = "Tesla T4 (simulated)"


def roof(label, bandwidth, rate, vector, origin="published"):
    return SimpleNamespace(
        label=label, device=T4, bandwidth=bandwidth, rates={"fp16": rate}, vector_rate=vector,
        origin=origin,
    )  # fmt: skip


ROOFS = [
    roof("datasheet peak", 320e9, 65e12, 4.05e12),
    roof("published sustained", 239.2e9, 41.9e12, 2.1e12),
    roof("simulated ceiling", 235e9, 24e12, 2.0e12, "simulated"),
]
POINTS = [
    Point("cos ×1", 0.25, 5.0e10, "simulated"),
    Point("cos ×3 eager", 0.25, 4.8e10, "simulated"),
    Point("cos ×3 fused", 0.75, 1.5e11, "simulated"),
    Point("cos ×3 fused", 0.75, 2.5e11, "predicted"),
    Point("matmul 256", 85, 9e12, "simulated"),
    Point("matmul 4096", 1365, 23e12, "simulated"),
]
LENGTHS = [1, 2, 4, 8, 16, 32, 64, 128]
CURVES = {
    "eager": [2.2e-3 * n for n in LENGTHS],
    "fused multiply": [max(4.4e-3, n * 4.4e-3 / 60) for n in LENGTHS],
    "fused cos": [max(2.2e-3, n * 1e-3) for n in LENGTHS],
}


def launches(count, host, kernel):
    """A host that queues ``count`` kernels one after another, and a GPU that runs them."""
    events, cpu, gpu = [], 0.0, 0.0
    for _ in range(count):
        events.append(Event("CPU", "relu", cpu, cpu + host))
        cpu += host
        gpu = max(cpu, gpu) + kernel
        events.append(Event("GPU", "relu", gpu - kernel, gpu))
    return events


def book(memory, compute, host, left):
    rows = [("memory", memory), ("compute", compute), ("host", host)]
    return SimpleNamespace(rows=rows, left_over_s=left)


BOOKS = {"eager": book(13.2e-3, 0.4e-3, 13.6e-3, 12e-3), "compiled": book(6.5e-3, 0, 0, 2.9e-3)}


def roofline():
    return plots.draw_roofline(None, ROOFS, POINTS, "fp16")


def bars(prediction=5.1e-3, title="cos, once"):
    four = Bars(prediction, 1.68e-3, 2.24e-3, 2.21e-3)
    return plots.draw_bars(None, four, title, "simulated", T4)


def sweep():
    return plots.draw_sweep(
        None, LENGTHS, CURVES, origin="simulated", device=T4, xlabel="operations",
        ylabel="time per call", logx=True, logy=True, knee=60, flat=(1, 60),
    )  # fmt: skip


def cache_sweep():
    x = [2**k for k in range(18, 29)]
    y = [900e9 if size < 4e6 else 240e9 for size in x]
    band = ([0.9 * v for v in y], [1.1 * v for v in y])
    return plots.draw_sweep(
        None, x, {"implied bandwidth": y}, origin="simulated", device=T4, xlabel="bytes moved",
        xunit="B", ylabel="implied bandwidth", yunit="B/s", logx=True, knee=4e6,
        knee_label="L2 size", levels={"datasheet": 320e9, "sustained": 240e9},
        spread={"implied bandwidth": band},
    )  # fmt: skip


def ledger():
    return plots.draw_ledger(None, BOOKS, "simulated", "NVIDIA A100-SXM4-80GB (simulated)")


FIGURES = {
    "roofline": roofline,
    "one roof": lambda: plots.draw_roofline(None, ROOFS[:1], [], "fp16", origin="simulated"),
    "bars": bars,
    "bars, cut": lambda: bars(2.2),
    "bars, tiny guess": lambda: bars(1e-6),
    "bars, nothing known": lambda: plots.draw_bars(
        None, Bars(None, None, None, 2e-3), "cos", "measured", "NVIDIA L40S"
    ),
    "sweep": sweep,
    "sweep, cache": cache_sweep,
    "sweep, linear": lambda: plots.draw_sweep(
        None,
        LENGTHS,
        CURVES,
        origin="replayed",
        device="Tesla T4",
        xlabel="operations",
        ylabel="time",
        knee=10,
    ),
    "timeline, gaps": lambda: plots.draw_timeline(None, launches(6, 32e-6, 9e-6), "simulated", T4),
    "timeline, full": lambda: plots.draw_timeline(None, launches(6, 32e-6, 9e-5), "simulated", T4),
    "timeline, long": lambda: plots.draw_timeline(
        None, launches(1226, 32e-6, 5e-6), "simulated", "NVIDIA A100-SXM4-80GB (simulated)"
    ),
    "trips": lambda: plots.draw_trips(None, 3, False, elements=2**27),
    "trips, fused": lambda: plots.draw_trips(None, 8, True, device=T4, origin="simulated"),
    "trips, both": lambda: plots.draw_trips_pair(8)[0],
    "ledger": ledger,
    "ledger, model too slow": lambda: plots.draw_ledger(
        None, book(2.5e-3, 0, 0, -0.2e-3), "replayed", "Tesla T4"
    ),
    "fusion": lambda: plots.draw_fusion_explorer(None, 3, "multiply", "fp16", "t4"),
    "fusion, never free": lambda: plots.draw_fusion_explorer(None, 3, "gelu", "fp16", "h200"),
    "fusion, never ends": lambda: plots.draw_fusion_explorer(None, 64, "multiply", "fp32", "t4"),
    **{
        f"fusion, {function} {dtype} {key}": partial(
            plots.draw_fusion_explorer, None, 3, function, dtype, key
        )
        for function in FUNCTIONS
        for dtype in ("fp16", "fp32")
        for key in FUSION_DEVICES
    },
}


@pytest.fixture(scope="module")
def drawn():
    """Every figure once."""
    return {name: make() for name, make in FIGURES.items()}


@cache
def texts(fig):
    """Every text that is really drawn (ticks beyond the limits are not), with its box in pixels."""
    seen, draw = {}, Text.draw

    def record(self, renderer):
        if self.get_text().strip() and self.get_visible():
            seen[self] = Text.get_window_extent(self, renderer)
        return draw(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", record)
        fig.canvas.draw()
    return list(seen.items())


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_covers_another_or_leaves_the_figure(drawn, name):
    fig = drawn[name].figure
    found = texts(fig)
    assert len(found) >= 5
    for (a, first), (b, second) in itertools.combinations(found, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert wide <= 1 or high <= 1, f"{a.get_text()!r} covers {b.get_text()!r}"
    for text, box in found:
        assert box.x0 >= 0 and box.x1 <= fig.bbox.width, f"{text.get_text()!r} is cut off"
        assert box.y0 >= 0 and box.y1 <= fig.bbox.height, f"{text.get_text()!r} is cut off"


def test_the_overlap_check_can_fail():
    ax = bars()
    for _ in range(2):
        ax.text(2, 1, "twice in one place")
    with pytest.raises(AssertionError, match="covers"):
        test_no_text_covers_another_or_leaves_the_figure({"x": ax}, "x")


@pytest.mark.parametrize("name", FIGURES)
def test_type_is_large_and_dark_enough(drawn, name):
    for text, _ in texts(drawn[name].figure):
        assert text.get_fontsize() >= 9, text.get_text()
        rgb = np.array(matplotlib.colors.to_rgb(text.get_color()))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        contrast = 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05)
        assert contrast >= 3.0, f"{text.get_text()!r}: contrast {contrast:.1f} on white"


@pytest.mark.parametrize("name", FIGURES)
def test_title_names_device_and_origin(drawn, name):
    for ax in drawn[name].figure.axes:
        line = ax.get_title(loc="left").replace("\n", " ")
        device, origin = line.split(" · ")[:2]
        assert device in (T4, "Tesla T4", "NVIDIA L40S", "any GPU",
                          "NVIDIA A100-SXM4-80GB (simulated)",
                          *(get(key).name for key in (*FUSION_DEVICES, "h200")))  # fmt: skip
        assert origin in plots.ORIGINS
        assert (origin == "simulated") == device.endswith("(simulated)")
        headlines = [t for t in ax.texts if t.get_gid() == "headline"]
        assert len(headlines) == 1 and headlines[0].get_text()


@pytest.mark.parametrize("name", FIGURES)
def test_log_axes_are_stated_and_linear_ones_are_not(drawn, name):
    ax = drawn[name]
    for scale, label in ((ax.get_xscale(), ax.get_xlabel()), (ax.get_yscale(), ax.get_ylabel())):
        assert ("log scale" in label) == (scale == "log")


def test_a_simulated_number_is_never_called_measured():
    with pytest.raises(ValueError, match="cannot be the device of a measurement"):
        plots.draw_bars(None, Bars(1, 1, 1, 1), "x", "measured", T4)
    with pytest.raises(ValueError, match="Unknown origin 'guessed'"):
        plots.draw_bars(None, Bars(1, 1, 1, 1), "x", "guessed", T4)
    ax = plots.draw_bars(None, Bars(1, 1, 1, 1), "x", "simulated", "Tesla T4")
    assert ax.get_title(loc="left").startswith("Tesla T4 (simulated) · simulated")


def test_roofline_geometry():
    ax = roofline()
    assert ax.get_xscale() == ax.get_yscale() == "log"
    lines = {line.get_label().split(":")[0]: line for line in ax.lines}
    for r in ROOFS:
        x, y = lines[r.label].get_data()
        assert x[1] == pytest.approx(r.rates["fp16"] / r.bandwidth)
        assert y[0] == pytest.approx(x[0] * r.bandwidth)
        assert y[1] == y[2] == r.rates["fp16"]
    styles = {lines[r.label].get_linestyle() for r in ROOFS}
    markers = {lines[r.label].get_marker() for r in ROOFS}
    assert styles == {"--", ":", "-"} and len(markers) == 3
    assert lines["datasheet peak"].get_linestyle() == "--"
    assert lines["simulated ceiling"].get_linestyle() == "-"
    vector = lines["vector units"]
    assert set(vector.get_ydata()) == {2.0e12} and vector.get_xdata()[0] == 2.0e12 / 235e9
    legend = " ".join(t.get_text() for t in ax.get_legend().get_texts())
    for words in ("65 TFLOP/s fp16", "320 GB/s", "ridge 203 FLOP/B", "ridge 102 FLOP/B"):
        assert words in legend
    assert any(t.get_text() == "ridge 102 FLOP/B" for t in ax.texts)


def test_roofline_points_are_labelled_in_place_and_ghosts_are_hollow():
    ax = roofline()
    marks = [line for line in ax.lines if (line.get_gid() or "").startswith("point")]
    assert [(m.get_xdata()[0], m.get_ydata()[0]) for m in marks] == [
        (p.intensity, p.rate) for p in POINTS
    ]
    assert len({m.get_marker() for m in marks}) == len(marks)
    hollow = [m for m in marks if m.get_markerfacecolor() == style.PAPER]
    assert len(hollow) == 1
    labels = [t.get_text() for t in ax.texts]
    assert "cos ×3 fused (predicted)" in labels and "matmul 256" in labels


def test_ten_points_have_ten_markers():
    points = [Point(f"point {i}", 2.0**i, 1e11 * 1.5**i, "simulated") for i in range(10)]
    ax = plots.draw_roofline(None, ROOFS, points)
    marks = [line for line in ax.lines if (line.get_gid() or "").startswith("point")]
    assert len({m.get_marker() for m in marks}) == 10


def test_roofline_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="at least one roof"):
        plots.draw_roofline(None, [], [])
    with pytest.raises(ValueError, match="no rate for int8"):
        plots.draw_roofline(None, ROOFS, [], "int8")
    with pytest.raises(ValueError, match="above zero"):
        plots.draw_roofline(None, ROOFS, [Point("x", 0, 1)])


@pytest.mark.parametrize(
    ("prediction", "measured", "factor"),
    [(5.1e-3, 2.21e-3, 2.31), (1e-3, 4e-3, 4.0), (2e-3, 2e-3, 1.0)],
)
def test_off_by_is_a_factor_of_at_least_one(prediction, measured, factor):
    assert plots.off_by(prediction, measured) == pytest.approx(factor, rel=2e-3)
    with pytest.raises(ValueError, match="above zero"):
        plots.off_by(0.0, measured)


@pytest.mark.parametrize(
    ("prediction", "sentence"),
    [
        (5.1e-3, "Your prediction was off by ×2.3 (too long)"),
        (0.5525e-3, "Your prediction was off by ×4 (too short)"),
        (2.2, "Your prediction was off by ×995 (too long)"),
        (2.25e-3, "Your prediction was off by ×1.02: right"),
        (None, "No prediction was made"),
    ],
)
def test_bars_say_how_far_off(prediction, sentence):
    ax = bars(prediction)
    assert [t.get_text() for t in ax.texts if t.get_gid() == "verdict"] == [sentence]
    assert sentence[1:] in plots.alt_text(ax.figure)


def test_bars_have_the_length_of_their_values():
    ax = bars()
    widths = {bar.get_label(): bar.patches[0].get_width() for bar in ax.containers}
    assert widths == pytest.approx(
        {"your prediction": 5.1, "datasheet bound": 1.68, "ceiling bound": 2.24,
         "simulated run": 2.21}
    )  # fmt: skip
    assert ax.get_xlabel() == "time per call (ms)" and ax.get_xlim()[0] == 0
    labels = [t.get_text() for t in ax.texts]
    assert {"5.1 ms", "1.68 ms", "2.24 ms", "2.21 ms"} <= set(labels)
    looks = {(p.get_hatch(), p.get_linestyle(), p.get_facecolor()[:3] == (1, 1, 1))
             for p in ax.patches}  # fmt: skip
    assert len(looks) == 4


def test_a_bar_that_is_cut_says_so_and_keeps_its_number():
    ax = bars(2.2)
    widths = {bar.get_label(): bar.patches[0].get_width() for bar in ax.containers}
    assert widths["your prediction"] < 3 * widths["ceiling bound"]
    assert "2,200 ms, bar cut" in [t.get_text() for t in ax.texts]
    with pytest.raises(ValueError, match="above zero"):
        bars(-1.0)


def test_sweep_series_differ_in_more_than_colour():
    ax = sweep()
    lines = [line for line in ax.lines if line.get_label() in CURVES]
    assert len(lines) == 3
    for attribute in ("get_color", "get_marker", "get_linestyle"):
        assert len({getattr(line, attribute)() for line in lines}) == 3
    for attribute in range(3):
        assert len({str(look[attribute]) for look in style.SERIES}) == len(style.SERIES)
    for line in lines:
        assert list(line.get_ydata()) == pytest.approx([1e3 * v for v in CURVES[line.get_label()]])
    assert ax.get_ylabel() == "time per call (ms), log scale"
    knee = [line for line in ax.lines if list(line.get_xdata()) == [60, 60]]
    assert len(knee) == 1
    names = [t.get_text() for t in ax.texts]
    assert {"eager", "fused multiply", "fused cos", "predicted knee 60", "flat"} <= set(names)


def test_sweep_units_levels_and_spread():
    ax = cache_sweep()
    assert ax.get_ylabel() == "implied bandwidth (GB/s)"
    assert "datasheet 320 GB/s" in [t.get_text() for t in ax.texts]
    assert ax.get_xticklabels()[0].get_text() == "262 KB"
    assert [list(line.get_ydata()) for line in ax.lines if line.get_gid() == "datasheet"] == [
        [320, 320]
    ]
    assert "p20 to p80" in ax.get_title(loc="left")
    (strokes,) = ax.collections
    assert strokes.get_segments()[0][:, 1].tolist() == pytest.approx([810, 990])


def test_sweep_refuses_what_it_cannot_draw():
    common = dict(origin="measured", device="T4", xlabel="x", ylabel="y")
    with pytest.raises(ValueError, match="2 values for 3"):
        plots.draw_sweep(None, [1, 2, 3], {"a": [1, 2]}, **common)
    with pytest.raises(ValueError, match="above zero"):
        plots.draw_sweep(None, [0, 1], {"a": [1, 2]}, logx=True, **common)
    with pytest.raises(ValueError, match="at most 7"):
        plots.draw_sweep(None, [1], {str(i): [1] for i in range(8)}, **common)


def test_idle_share():
    assert plots.idle_share(launches(5, 1e-5, 5e-5)) == pytest.approx(0, abs=1e-9)
    # Kernels of 9 µs, one every 32 µs: 5 gaps of 23 µs in 6 x 9 + 5 x 23 µs.
    assert plots.idle_share(launches(6, 32e-6, 9e-6)) == pytest.approx(115 / 169)
    overlapping = [Event("GPU", "a", 0, 4), Event("GPU", "b", 1, 2), Event("GPU", "c", 6, 8)]
    assert plots.idle_share(overlapping) == pytest.approx(0.25)
    assert plots.idle_share([Event("CPU", "a", 0, 1)]) is None


def test_timeline_lanes_gaps_and_crop(drawn):
    ax = drawn["timeline, gaps"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["CPU\nqueues", "GPU\nruns"]
    lanes = {c.get_label(): c for c in ax.collections if c.get_label() in ("CPU", "GPU")}
    assert lanes["CPU"].get_hatch() != lanes["GPU"].get_hatch()
    starts = [path.vertices[:, 0].min() for path in lanes["GPU"].get_paths()]
    assert starts == pytest.approx([32, 64, 96, 128, 160, 192])
    assert sum(c.get_gid() == "idle" for c in ax.collections) == 5
    assert "GPU idle 68 % of its time" in ax.get_title(loc="left")
    assert not any(c.get_gid() == "idle" for c in drawn["timeline, full"].collections)
    long = drawn["timeline, long"]
    said = long.get_title(loc="left").replace("\n", " ")
    assert "40 of 1,226 kernels" in said and "GPU idle 84 %" in said
    (gpu,) = [c for c in long.collections if c.get_label() == "GPU"]
    assert len(gpu.get_paths()) == 40


def test_timeline_tells_waiting_from_launching():
    events = [
        Event("CPU", "aten.cos.default", 0, 1),
        Event("GPU", "aten::cos", 1, 9),
        Event("CPU", "cudaDeviceSynchronize", 1, 9),
    ]
    ax = plots.draw_timeline(None, events, "measured", "Tesla T4")
    looks = {c.get_label(): c.get_hatch() for c in ax.collections}
    assert looks["waits"] != looks["CPU"]
    (waiting,) = [c for c in ax.collections if c.get_label() == "waits"]
    assert waiting.get_paths()[0].vertices[:, 0].max() == pytest.approx(9)
    assert "dotted: CPU waits" in ax.get_xlabel()
    assert "cos" in [t.get_text() for t in ax.texts]


def test_events_reject_nonsense():
    with pytest.raises(ValueError, match="Unknown lane"):
        Event("TPU", "x", 0, 1)
    with pytest.raises(ValueError, match="ends before"):
        Event("GPU", "x", 1, 0)
    with pytest.raises(ValueError, match="empty"):
        plots.draw_timeline(None, [], "measured", "T4")


def test_events_from_a_simulated_trace():
    def kernel(name, queued, start, end):
        return SimpleNamespace(name=name, queued=queued, start=start, end=end)

    trace = [kernel("a", 10, 10, 30), kernel("b", 15, 30, 50), kernel("c", 100, 100, 120)]
    events = plots.events_from_trace(trace)
    assert [(e.start, e.end) for e in events if e.lane == "GPU"] == [(10, 30), (30, 50), (100, 120)]
    # The host was busy with something else before it launched c.
    assert [(e.start, e.end) for e in events if e.lane == "CPU"] == [(5, 10), (10, 15), (85, 100)]
    host = [SimpleNamespace(name="a", start=2, end=10)]
    events = plots.events_from_trace(trace, host)
    assert [(e.name, e.start, e.end) for e in events if e.lane == "CPU"] == [("a", 2, 10)]


def test_events_from_the_profiler():
    def event(kind, start, end, parent=None, region=False):
        return SimpleNamespace(
            name="x", device_type=f"DeviceType.{kind}", cpu_parent=parent,
            time_range=SimpleNamespace(start=start, end=end), is_user_annotation=region,
        )  # fmt: skip

    seen = [
        event("CPU", 100, 130),
        event("CPU", 110, 120, "mm"),
        event("CUDA", 125, 150),
        event("CUDA", 90, 200, region=True),
    ]
    events = plots.events_from_profiler(SimpleNamespace(events=lambda: seen))
    assert [(e.lane, round(e.start * 1e6), round(e.end * 1e6)) for e in events] == [
        ("CPU", 0, 30),
        ("GPU", 25, 50),
    ]


def trips(ax):
    return [t.get_gid() for t in ax.texts if (t.get_gid() or "").startswith("trip ")]


def total(ax):
    return next(t.get_text() for t in ax.texts if t.get_gid() == "total")


def test_trips_are_counted_with_their_bytes():
    one_by_one = plots.draw_trips(None, 3, False, elements=2**27)
    fused = plots.draw_trips(None, 3, True, elements=2**27)
    assert trips(one_by_one) == ["trip read", "trip write"] * 3
    assert trips(fused) == ["trip read", "trip write"]
    assert total(one_by_one) == "3 round trips = 3 reads + 3 writes, 1,611 MB moved"
    assert total(fused) == "1 round trip = 1 read + 1 write, 537 MB moved"
    many = plots.draw_trips(None, 8, False)
    assert len(trips(many)) == 6 and "8 round trips" in total(many)
    assert "... and 5 more round trips" in [t.get_text() for t in many.texts]
    with pytest.raises(ValueError, match="at least one"):
        plots.draw_trips(None, 0, True)
    top, bottom = plots.draw_trips_pair(2, dtype="fp32", elements=10**6)
    assert "16 MB" in total(top) and "8 MB" in total(bottom)


def test_ledger_stacks_to_the_measured_time():
    ax = ledger()
    eager = [p for p in ax.patches if p.get_y() < 0.5]
    assert [p.get_width() for p in eager] == pytest.approx([13.2, 0.4, 13.6, 12])
    assert [p.get_x() for p in eager] == pytest.approx([0, 13.2, 13.6, 27.2])
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == ["memory", "compute", "host", "left over"]
    assert len({p.get_hatch() for p in eager}) == 4
    assert eager[-1].get_hatch() and eager[-1].get_facecolor()[:3] == (1, 1, 1)
    assert "left over 31 %" in plots.alt_text(ax.figure)
    assert "39.2 ms" in [t.get_text() for t in ax.texts]


def test_a_ledger_writes_the_measured_time_and_lists_its_parts_in_one_order():
    two = {"a": book(0, 3e-3, 0, 0.1e-3), "b": book(8.366e-3, 0, 0, 0.039e-3)}
    ax = plots.draw_ledger(None, two, "replayed", "Tesla T4")
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == ["memory", "compute", "left over"]
    assert "8.41 ms" in [t.get_text() for t in ax.texts]  # 0.039 is too little to be drawn


def test_ledger_rows_may_be_objects_but_must_be_known():
    row = SimpleNamespace(label="host (launch)", seconds=1.0)
    ax = plots.draw_ledger(None, SimpleNamespace(rows=[row], left_over_s=1.0), "measured", "T4")
    assert [p.get_width() for p in ax.patches] == [1.0, 1.0]
    with pytest.raises(ValueError, match="one of memory, "):
        strange = SimpleNamespace(rows=[("gremlins", 1.0)], left_over_s=0.0)
        plots.draw_ledger(None, strange, "measured", "T4")


def test_a_ledger_keeps_the_parts_of_memory_apart():
    rows = [("weights", 2.0), ("caches", 1.0)]
    ax = plots.draw_ledger(None, SimpleNamespace(rows=rows, left_over_s=1.0), "measured", "T4")
    assert [p.get_width() for p in ax.patches] == [2.0, 1.0, 1.0]
    assert len({p.get_hatch() for p in ax.patches}) == 3
    assert "weights 50 %, caches 25 %, left over 25 %" in plots.alt_text(ax.figure)


def test_a_ledger_speaks_of_a_left_over_only_where_there_is_one():
    said = "left over: unexplained"
    assert said in ledger().get_title(loc="left")
    for left in (0.0, -0.2e-3, 1e-6):  # nothing, the model too slow, too little to be drawn
        ax = plots.draw_ledger(None, book(2.5e-3, 0, 0, left), "replayed", "Tesla T4")
        assert "left over" not in ax.get_title(loc="left")
        assert "left over" not in plots.alt_text(ax.figure)
    two = {"a": book(2e-3, 0, 0, 0.0), "b": book(1e-3, 0, 0, 1e-3)}
    ax = plots.draw_ledger(None, two, "replayed", "Tesla T4")
    assert said in ax.get_title(loc="left")


CARD = SimpleNamespace(
    name="X", bandwidth=100.0, vector_rate=150.0, fp32_lanes_per_sm=64,
    sustained_bandwidth=1.0, sustained_vector_rate=1.0,
)  # fmt: skip


def test_free_operations_is_bytes_against_vector_rate():
    t4 = get("t4")
    expected = 4 / t4.bandwidth * t4.vector_rate
    assert plots.free_operations(1, "fp16", t4) == pytest.approx(expected)
    assert plots.free_operations(1, "fp32", t4) == pytest.approx(2 * expected)
    assert plots.free_operations(10, "fp16", t4) == pytest.approx(expected / 10)
    order = [plots.free_operations(30, "fp16", get(key)) for key in ("a100_80_sxm", "t4")]
    assert order == sorted(order), "an A100 has the least vector arithmetic per byte"


def test_every_card_is_drawn_from_its_datasheet_peaks():
    assert any(d.sustained_bandwidth for d in all_devices()), "else there is nothing to mix up"
    assert plots.free_operations(1, "fp16", CARD) == pytest.approx(4 / 100 * 150)
    for key in FUSION_DEVICES:
        ax = plots.draw_fusion_explorer(None, 3, "multiply", "fp16", key, elements=10**9)
        (eager,) = [line for line in ax.lines if line.get_label() == "eager"]
        assert eager.get_ydata()[0] == pytest.approx(4e12 / get(key).bandwidth)
        said = ax.get_title(loc="left").replace("\n", " ")
        assert "every card at its datasheet peaks" in said


def test_fusion_explorer_draws_both_regimes():
    ax = plots.draw_fusion_explorer(None, 4, "cosine", "fp16", CARD, elements=100)
    assert slots(("cos",), 64) == 15
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    # A trip takes 400 B / 100 B/s = 4 s; a cosine 15 x 100 / 150 = 10 s: never free.
    assert lines["eager"][:2].tolist() == lines["fused"][:2].tolist() == pytest.approx([10, 20])
    assert "never free" in ax.get_title(loc="left").replace("\n", " ")
    assert not [t for t in ax.texts if t.get_gid() == "gain"]
    ax = plots.draw_fusion_explorer(None, 4, "multiply", "fp32", CARD, elements=75)
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    # A trip takes 600 B / 100 B/s = 6 s; a multiply 75 / 150 = 0.5 s; knee at 12.
    assert lines["eager"][:3].tolist() == pytest.approx([6, 12, 18])
    assert lines["fused"][[0, 11, 23]].tolist() == pytest.approx([6, 6, 12])
    assert "no longer free after 12" in [t.get_text() for t in ax.texts]
    assert [t.get_text() for t in ax.texts if t.get_gid() == "gain"] == ["×4"]
    span = [line.get_ydata().tolist() for line in ax.lines if line.get_gid() == "span"]
    assert span[0] == pytest.approx([6, 24])
    for wrong in (dict(operations=0), dict(function="sinc"), dict(dtype="int3")):
        with pytest.raises(ValueError):
            plots.draw_fusion_explorer(None, **{"device": CARD, **wrong})


def test_the_cost_of_a_function_is_counted_for_the_card():
    for key, function, words in (
        ("t4", "cosine", "cosine: 15 slots on this card"),
        ("l4", "cosine", "cosine: 28 slots on this card"),
        ("l4", "multiply", "multiply: 1 slot on this card"),
    ):
        ax = plots.draw_fusion_explorer(None, 3, function, "fp16", key)
        assert words in ax.get_title(loc="left") and words in plots.alt_text(ax.figure)


FUSIONS = [name for name in FIGURES if name.startswith("fusion")]


@pytest.mark.parametrize("name", FUSIONS)
def test_no_label_of_the_fusion_figure_lies_on_a_line_or_marker(drawn, name):
    ax = drawn[name]
    boxes = dict(texts(ax.figure))
    labels = [t for t in ax.texts if t in boxes and t.get_gid() in ("gain", "keep")]
    assert labels
    reach = 4  # pixels: half of the widest marker but one
    for line in ax.lines:
        for start, end in itertools.pairwise(line.get_transform().transform(line.get_xydata())):
            for x, y in np.linspace(start, end, 200):
                for label in labels:
                    box, near = boxes[label], reach if line.get_label() in ("eager", "fused") else 0
                    inside = box.x0 - near < x < box.x1 + near and box.y0 < y + near
                    assert not (inside and y - near < box.y1), f"{label.get_text()!r} on a line"


def test_the_label_check_can_fail():
    ax = plots.draw_fusion_explorer(None, 3, "cosine", "fp16", "t4")
    (line,) = [line for line in ax.lines if line.get_label() == "fused"]
    ax.annotate("on the line", (2, line.get_ydata()[1]), gid="keep")
    with pytest.raises(AssertionError, match="on a line"):
        test_no_label_of_the_fusion_figure_lies_on_a_line_or_marker({"x": ax}, "x")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_says_in_words_what_it_shows(drawn, name):
    words = plots.alt_text(drawn[name].figure)
    assert len(words) > 80 and any(origin in words.lower() for origin in plots.ORIGINS)
    assert any(character.isdigit() for character in words)


def test_png_is_white_small_and_carries_its_description():
    ax = bars()
    image = Image.open(io.BytesIO(plots.png(ax.figure)))
    pixels = np.asarray(image.convert("RGB"))
    for edge in (pixels[:8], pixels[-8:], pixels[:, :8], pixels[:, -8:]):
        assert (edge == 255).all(), "the margin must be white on a dark page"
    assert image.text["Description"] == plots.alt_text(ax.figure)
    assert image.width == 1024 and len(plots.png(ax.figure)) < 40_000


@pytest.mark.parametrize("name", ["roofline", "bars", "sweep", "timeline, gaps", "ledger"])
def test_a_dark_theme_changes_no_pixel(drawn, name):
    light = plots.png(FIGURES[name]().figure)
    with style_context("dark_background"):
        dark = plots.png(FIGURES[name]().figure)
    assert light == dark


def test_drawing_into_axes_of_the_learner():
    from matplotlib import pyplot

    fig, (left, right) = pyplot.subplots(1, 2)
    assert plots.draw_bars(left, Bars(1, 1, 1, 1), "x", "simulated", T4) is left
    plots.draw_timeline(right, launches(3, 1e-5, 1e-5), "simulated", T4)
    assert "x (" in plots.alt_text(fig) and "GPU lane" in plots.alt_text(fig)
    number = fig.number
    plots.show(fig)
    assert not pyplot.fignum_exists(number)


def test_show_prints_words_outside_a_notebook(capsys):
    ax = bars()
    plots.show(ax.figure, "One sentence.")
    assert capsys.readouterr().out == "One sentence.\n"
    plots.show(ax.figure)
    assert "off by ×2.3" in capsys.readouterr().out
    empty, _ = plots.figure()
    with pytest.raises(ValueError, match="needs a sentence"):
        plots.show(empty)


def test_importing_is_cheap():
    code = (
        "import sys, helpers.plots, helpers.explore\n"
        "heavy = {'torch', 'matplotlib', 'numpy', 'PIL', 'IPython', 'ipywidgets'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_readme_picture_is_drawn_by_a_command(tmp_path, capsys):
    from helpers.plots.__main__ import main

    assert main([str(tmp_path / "docs")]) == 0
    picture = tmp_path / "docs" / "fusion.png"
    assert picture.stat().st_size < 80_000 and Image.open(picture).width == 1024
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2.236e-3, "s", "2.24 ms"), (32e-6, "s", "32 µs"), (320e9, "B/s", "320 GB/s"),
     (65e12, "FLOP/s", "65 TFLOP/s"), (2.039e12, "B/s", "2.04 TB/s"), (0, "s", "0 ns"),
     (999.6, "s", "1,000 s"), (536870912, "B", "537 MB")],
)  # fmt: skip
def test_quantities_choose_their_unit(value, unit, text):
    assert style.quantity(value, unit) == text


def test_spread_apart_keeps_order_distance_and_limits():
    moved = style.spread_apart([10, 11, 50, 99, 100], 8, 0, 100)
    assert moved == sorted(moved) and min(np.diff(moved)) >= 8 and max(moved) <= 100
    assert style.spread_apart([5, 50], 8, 0, 100) == [5, 50]
    assert style.spread_apart([], 8, 0, 100) == []


@pytest.mark.parametrize("logy", [False, True])
def test_a_sweep_draws_what_was_measured_and_names_what_was_not(logy):
    nan = float("nan")
    look = dict(origin="simulated", device="Tesla T4 (simulated)", xlabel="x", ylabel="time")
    ax = plots.draw_sweep(
        None, [1, 2, 4], {"a": [nan, 1.0, 2.0], "b": [nan] * 3}, logx=True, logy=logy, **look
    )
    assert plots.png(ax.figure)
    words = plots.alt_text(ax.figure)
    assert "a: from 1 s to 2 s" in words and "not measured: b" in words
    empty = plots.draw_sweep(None, [1, 2], {"a": [nan, nan]}, logx=True, logy=logy, **look)
    assert plots.png(empty.figure) and "no point was measured" in plots.alt_text(empty.figure)
