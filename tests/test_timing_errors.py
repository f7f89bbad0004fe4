"""Each way a measurement can fail gives one sentence: what, where, what to do."""

import functools
import io
import weakref
from contextlib import redirect_stdout

import pytest
import torch

from helpers.timing import MeasureError, interleave, measure


def sentence(fn, **options):
    """What measure says about `fn` on the CPU."""
    with pytest.raises(MeasureError) as caught:
        measure(fn, **{"device": "cpu", "budget": 0.1, **options})
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith((".", "()."))
    return text


def fails_after(good, error=None):
    """A function whose first `good` calls work; each takes about a millisecond of real work."""
    x, left = torch.zeros(1 << 20), [good]

    def halve():
        if not left[0]:
            raise error or ValueError("odd width")
        left[0] -= 1
        return x / 2

    return halve


@pytest.mark.parametrize(("value", "kind"), [(3, "an int"), (None, "None"), (0.5, "a float")])
def test_not_a_function(value, kind):
    text = sentence(value)
    assert kind in text and "lambda" in text
    with pytest.raises(MeasureError, match="Argument 2 is"):
        interleave(lambda: None, value, device="cpu")


def test_a_function_that_wants_arguments():
    assert "without arguments" in sentence(lambda x: x)


def test_a_function_that_raises_says_which_call_and_where():
    text = sentence(lambda: torch.zeros(3).coss())
    assert "AttributeError" in text and "first call" in text and "coss" in text
    assert "line" in text and "test_timing_errors" not in text
    text = sentence(fails_after(1), warmup=0.05)
    assert "halve raised ValueError in a warm-up call" in text and "odd width" in text
    # With no warm-up to speak of, all but a few of the calls are timed ones.
    assert "in a timed call" in sentence(fails_after(4), warmup=0.0)


def test_of_several_functions_the_failing_one_is_named():
    x = torch.zeros(1 << 16)
    with pytest.raises(MeasureError, match=r"lambda \(argument 2\) raised ZeroDivisionError"):
        interleave(lambda: x.cos(), lambda: 1 / 0, device="cpu", budget=0.1)


def test_the_cause_is_kept_for_debuggers():
    with pytest.raises(MeasureError) as caught:
        measure(lambda: 1 / 0, device="cpu")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_is_not_an_error_of_fn():
    with pytest.raises(KeyboardInterrupt):
        measure(fails_after(0, KeyboardInterrupt()), device="cpu")


def test_out_of_memory_on_the_gpu_says_how_much_was_asked():
    error = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 ..")
    text = sentence(fails_after(0, error))
    assert "ran out of GPU memory in its first call when 20.00 GiB more were asked for" in text
    assert "smaller size" in text
    text = sentence(fails_after(0, torch.cuda.OutOfMemoryError("no figures here")))
    assert "first call: try a smaller size" in text


def test_out_of_memory_on_the_host():
    text = sentence(lambda: torch.zeros(2**50, dtype=torch.uint8))
    assert "ran out of host memory" in text and "1.049e+06 GiB" in text
    assert "host memory" in sentence(fails_after(0, MemoryError()))


def test_out_of_memory_lets_go_of_what_the_failed_call_held():
    held = []

    def greedy():
        local = torch.zeros(10)
        held.append(weakref.ref(local))
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with pytest.raises(MeasureError) as caught:
        measure(greedy, device="cpu")
    assert held[0]() is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", [None, 3.0, torch.zeros(2)])
def test_a_function_that_returns_at_once(value):
    assert "returned at once" in sentence(lambda: value)


def test_the_smallest_operation_is_not_taken_for_nothing():
    x = torch.zeros(1)
    assert measure(lambda: x.view(-1), device="cpu", budget=0.1).median > 0


@pytest.mark.parametrize(
    "result", [torch.zeros(2).cos, torch.cos, lambda: 1, functools.partial(torch.cos)]
)
def test_a_function_that_returns_a_function(result):
    text = sentence(lambda: result)
    assert "did you forget to call it?" in text


def test_returning_a_module_is_fine():
    layer = torch.nn.Linear(64, 64)
    assert measure(lambda: layer.to(torch.float32), device="cpu", budget=0.1).n >= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": "warm"}, "cache must be"),
        ({"budget": 0}, "budget must be"),
        ({"warmup": -1}, "warmup"),
        ({"min_samples": 0}, "min_samples"),
        ({"min_samples": 20, "max_samples": 10}, "at most max_samples"),
        ({"device": "tpu"}, "device must be"),
    ],
)
def test_options_that_make_no_sense(options, words):
    assert words in sentence(lambda: None, **options)


def test_nothing_to_measure():
    with pytest.raises(MeasureError, match="nothing to measure"):
        interleave()


def test_a_notebook_shows_the_sentence_and_no_stack():
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell()
    out = io.StringIO()
    with redirect_stdout(out):
        shell.run_cell("from helpers.timing import measure\nmeasure(3, device='cpu')")
    shown = out.getvalue()
    assert "MeasureError: What you gave is an int" in shown
    assert "Traceback" not in shown and "check_callable" not in shown
