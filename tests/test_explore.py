"""Explorers: widgets where someone can move them, the same picture everywhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from matplotlib.figure import Figure

from helpers import devices, explore, plots
from helpers.explore import Choice, Slider


@pytest.fixture(autouse=True)
def no_switches(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("BRRR_STATIC", raising=False)


@pytest.fixture
def notebook(monkeypatch):
    """A process that looks like a running notebook."""
    monkeypatch.setattr(explore.controls, "in_notebook", lambda: True)


@pytest.fixture
def shown(monkeypatch):
    figures = []
    monkeypatch.setattr(plots, "show", lambda fig, alt=None: figures.append(fig))
    return figures


@pytest.fixture
def interact(monkeypatch):
    """Stand in for ipywidgets.interact, which needs a front end; notes what it was given."""
    import ipywidgets

    calls = []
    monkeypatch.setattr(ipywidgets, "interact", lambda f, **w: calls.append((f, w)))
    return calls


def draw(count, kind="a"):
    ax = plots.figure()[1]
    ax.set_title(f"{count} {kind}")
    return ax


CONTROLS = dict(count=Slider(3, 1, 9), kind=Choice("b", ("a", "b")))


def test_a_notebook_gets_one_control_for_each_value(notebook, interact, shown):
    import ipywidgets

    explore.explorer(draw, **CONTROLS)
    ((update, widgets),) = interact
    assert list(widgets) == ["count", "kind"]
    slider, menu = widgets["count"], widgets["kind"]
    assert isinstance(slider, ipywidgets.IntSlider) and isinstance(menu, ipywidgets.Dropdown)
    assert (slider.value, slider.min, slider.max) == (3, 1, 9)
    assert slider.continuous_update is False, "a figure cannot follow every step of a slider"
    assert (menu.value, menu.options) == ("b", ("a", "b"))
    assert shown == []
    update(count=5, kind="a")
    assert [fig.axes[0].get_title() for fig in shown] == ["5 a"]


def test_a_fraction_makes_a_float_slider():
    import ipywidgets

    widget = Slider(0.5, 0.0, 1.0, 0.1, "share").widget("x")
    assert isinstance(widget, ipywidgets.FloatSlider) and widget.description == "share"
    assert widget.step == 0.1


@pytest.mark.parametrize(
    ("variable", "value"),
    [("NBGRADER_EXECUTION", "autograde"), ("NBGRADER_EXECUTION", "validate"), ("BRRR_STATIC", "1")],
)
def test_nobody_there_gets_the_static_twin(
    notebook, interact, shown, monkeypatch, capsys, variable, value
):
    monkeypatch.setenv(variable, value)
    explore.explorer(draw, **CONTROLS)
    assert interact == []
    assert [fig.axes[0].get_title() for fig in shown] == ["3 b"]
    assert "count = 3, kind = b (no controls:" in capsys.readouterr().out


def test_brrr_static_zero_means_interactive(notebook, monkeypatch):
    monkeypatch.setenv("BRRR_STATIC", "0")
    assert explore.static_reason() is None


def test_without_ipywidgets_the_static_twin_is_drawn(notebook, interact, shown, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # import would now fail
    explore.explorer(draw, **CONTROLS)
    assert explore.static_reason() == "ipywidgets is not installed"
    assert len(shown) == 1 and interact == []


def test_without_a_kernel_the_static_twin_is_drawn(interact, shown):
    assert explore.static_reason() == "this is not a running notebook"
    explore.explorer(draw, **CONTROLS)
    assert len(shown) == 1 and interact == []


def test_both_ways_draw_the_same(notebook, interact, shown):
    explore.explorer(draw, **CONTROLS)
    ((update, widgets),) = interact
    update(**{name: widget.value for name, widget in widgets.items()})
    twin = explore.static_twin(draw, **CONTROLS)
    assert isinstance(twin, Figure) and plots.png(twin, "x") == plots.png(shown[0], "x")


def test_no_more_than_three_controls():
    four = {name: Slider(1, 0, 2) for name in "abcd"}
    with pytest.raises(ValueError, match="1 to 3 controls; got 4"):
        explore.explorer(draw, **four)
    with pytest.raises(ValueError, match="got 0"):
        explore.explorer(draw)


def test_defaults_must_be_possible():
    with pytest.raises(ValueError, match="outside 1 to 5"):
        Slider(9, 1, 5)
    with pytest.raises(ValueError, match="not one of"):
        Choice("c", ("a", "b"))
    assert Choice("k", (("Label", "k"),)).default == "k"


def test_fusion_starts_at_the_device_of_the_learner(notebook, interact, shown):
    explore.fusion("A100-80", operations=8)
    ((update, widgets),) = interact
    assert list(widgets) == ["function", "dtype", "device"]
    assert [w.value for w in widgets.values()] == ["cosine", "fp16", "a100_80_sxm"]
    assert widgets["function"].options == ("multiply", "exp", "cosine", "gelu")
    assert [key for _, key in widgets["device"].options] == list(explore.FUSION_DEVICES)
    assert ("T4", "t4") in widgets["device"].options
    update(function="multiply", dtype="fp32", device="t4")
    (ax,) = shown[0].axes
    assert ax.get_title(loc="left").startswith("T4 · calculated")
    assert "8 operations" in plots.alt_text(shown[0]) and "fp32" in plots.alt_text(shown[0])
    assert "multiply: 1 slot" in plots.alt_text(shown[0])


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (None, "t4"),
        ("H100", "h100_sxm"),
        (devices.get("l4"), "l4"),
        (SimpleNamespace(facts=devices.get("rtx_4090")), "rtx_4090"),
        (SimpleNamespace(facts=None), "t4"),
        (SimpleNamespace(facts=devices.get("p100_pcie")), "p100_pcie"),
    ],
)
def test_fusion_takes_a_name_a_device_or_a_machine(notebook, interact, shown, given, key):
    explore.fusion(given)
    ((update, widgets),) = interact
    assert widgets["device"].value == key
    keys = [option for _, option in widgets["device"].options]
    assert set(keys) == {*explore.FUSION_DEVICES, key} and len(keys) <= 7
    update(**{name: widget.value for name, widget in widgets.items()})
    assert shown[0].axes[0].get_title(loc="left").startswith(devices.get(key).name)


def test_fusion_names_what_it_cannot_start_with():
    with pytest.raises(devices.UnknownDevice, match="L99"):
        explore.fusion("L99")
    with pytest.raises(TypeError, match="not with 4"):
        explore.fusion(4)


def test_fusion_static_twin(shown, capsys):
    explore.fusion()
    assert "T4 · calculated" in shown[0].axes[0].get_title(loc="left")
    assert "function = cosine, dtype = fp16, device = T4" in capsys.readouterr().out


CELLS = (
    "%matplotlib inline\n"
    "import os; os.environ.pop('BRRR_STATIC', None); os.environ.pop('NBGRADER_EXECUTION', None)\n"
    "from helpers import explore, plots\n"
    "ax = plots.draw_trips(None, 3, True)\nplots.show(ax.figure)",
    "explore.fusion()",
    "os.environ['BRRR_STATIC'] = '1'\nexplore.fusion()",
    "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\n"
    "plots.draw_trips(ax, 2, False)\nplots.show(fig, 'Two \"trips\" & back')",
)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A notebook run by a real kernel, as JSON."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    repository = str(Path(__file__).resolve().parents[1])
    NotebookClient(book, timeout=120, resources={"metadata": {"path": repository}}).execute()
    return book


def pictures(cell):
    return [o for o in cell.outputs if "image/png" in o.get("data", {})]


def test_a_real_kernel_shows_each_figure_once_with_its_words(executed):
    first, _, _, last = executed.cells
    for cell, alt in ((first, "3 × cos, fused: 1 kernel"), (last, 'Two "trips" & back')):
        (picture,) = pictures(cell)
        assert picture.data["text/plain"].startswith(alt)
        assert picture.metadata["image/png"]["alt"].startswith(alt)
        assert 480 <= picture.metadata["image/png"]["width"] <= 700
        (fold,) = [o for o in cell.outputs if "text/html" in o.get("data", {})]
        assert (
            "<details>" in fold.data["text/html"] and "Figure in words" in fold.data["text/plain"]
        )
    assert "Two &quot;trips&quot; &amp; back" in json.dumps(fold.data["text/html"]).replace(
        "\\", ""
    )


def test_a_real_kernel_makes_widgets_or_the_static_twin(executed):
    _, live, static, _ = executed.cells
    widget = "application/vnd.jupyter.widget-view+json"
    assert any(widget in o.get("data", {}) for o in live.outputs)
    assert not any(widget in o.get("data", {}) for o in static.outputs)
    assert len(pictures(static)) == 1
    assert not any(o.output_type == "error" for c in executed.cells for o in c.outputs)


def test_the_words_reach_an_exported_page(executed):
    from nbconvert import HTMLExporter

    for template in ("lab", "classic"):
        page, _ = HTMLExporter(template_name=template).from_notebook_node(executed)
        assert "Figure in words" in page
        assert page.count("3 × cos, fused: 1 kernel") >= (2 if template == "classic" else 1)


def test_it_runs_where_only_matplotlib_is(tmp_path):
    code = (
        "import sys\nfor gone in ('IPython', 'ipywidgets'): sys.modules[gone] = None\n"
        "from helpers import explore\nexplore.fusion('L4')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "L4 from its" in done.stdout
