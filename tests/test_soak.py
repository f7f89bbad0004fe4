"""Soaking: windows by events, by the wall clock and by the model; and the clock beside them."""

import subprocess
import time
import types

import pytest
import torch

from helpers import clock, lab, simgpu
from helpers.timing import MeasureError
from helpers.timing import soak as soaking
from helpers.timing.soak import ClockReader, Soak, soak
from tests.fake_cuda import FakeGPU


@pytest.fixture
def gpu(monkeypatch):
    fake = FakeGPU().install(monkeypatch)
    yield fake
    fake.uninstall()


class Readings:
    """A clock reader whose readings the test gives: (s after the start, Hz)."""

    def __init__(self, *seen):
        self.seen, self.stopped = seen, False

    def start(self):
        self.begin = clock.now()

    def stop(self):
        self.stopped = True
        return [(self.begin + at, hertz) for at, hertz in self.seen]


def throttled(gpu, slow_from=1.0, factor=2.0):
    """A kernel of 5 ms that takes `factor` as long once the card has worked for `slow_from` s."""

    def fn():
        gpu.launch(5e-3 * (factor if gpu.stream > slow_from else 1.0))

    return fn


def test_a_card_that_slows_down_shows_it_window_by_window(gpu):
    found = soak(throttled(gpu), seconds=3.0, reader=Readings((0.1, 1.59e9), (2.0, 0.9e9)))
    assert found.calls == 10 and 35 < len(found.windows) < 65
    assert found.first == pytest.approx(5e-3, rel=0.01)
    assert found.sustained == pytest.approx(10e-3, rel=0.01)
    assert found.kept == pytest.approx(0.5, rel=0.02)
    assert found.windows[-1].at == pytest.approx(3.0, abs=0.25)
    assert found.clocks() == [1.59e9, 0.9e9]
    assert (found.origin, found.device, found.notes) == ("measured", "Tesla T4", ())


def test_a_card_that_holds_its_rate_keeps_all_of_it(gpu):
    found = soak(lambda: gpu.launch(2e-3), seconds=1.0, reader=Readings())
    assert found.kept == pytest.approx(1.0, abs=1e-3)
    assert found.clocks() == []
    assert any("cannot be read" in note for note in found.notes)


def test_the_gpu_never_rests_between_two_windows(gpu):
    found = soak(lambda: gpu.launch(5e-3), seconds=1.0, reader=Readings())
    busy = sum(w.seconds * found.calls for w in found.windows)
    assert busy == pytest.approx(found.windows[-1].at, rel=1e-6)
    assert found.windows[-1].at == pytest.approx(len(found.windows) * 0.05, rel=0.01)


def test_windows_hold_a_whole_number_of_calls_and_never_too_many(gpu):
    assert soak(lambda: gpu.launch(0.2), seconds=1.0, reader=Readings()).calls == 1
    short = soak(lambda: gpu.launch(10e-6, host=1e-6), seconds=0.1, reader=Readings())
    assert short.calls == soaking.MOST_CALLS


def test_a_failing_function_stops_the_reader_and_is_named(gpu):
    reader, calls = Readings(), [0]

    def breaks():
        calls[0] += 1
        if calls[0] > 30:
            raise RuntimeError("it broke")
        gpu.launch(5e-3)

    with pytest.raises(MeasureError, match="it broke"):
        soak(breaks, seconds=2.0, reader=reader)
    assert reader.stopped


@pytest.mark.parametrize(
    "options", [{"seconds": 0.0}, {"seconds": -1.0}, {"seconds": 31.0}, {"window": 0.0},
                {"seconds": 0.01}, {"seconds": float("nan")}],
)  # fmt: skip
def test_a_length_that_is_none_is_refused(gpu, options):
    with pytest.raises(MeasureError, match="seconds must be at most 30"):
        soak(lambda: gpu.launch(1e-3), **options)


def test_what_is_no_function_is_refused(gpu):
    with pytest.raises(MeasureError, match="not a function"):
        soak(torch.ones(3))


def test_on_a_cpu_the_wall_clock_is_read():
    now = [0.0]

    def fn():
        now[0] += 4e-3

    with clock.using(lambda: now[0]):
        found = soak(fn, seconds=0.5, device="cpu")
    assert found.calls == 12 and found.origin == "measured" and found.device.startswith("CPU")
    assert found.first == pytest.approx(4e-3) and found.sustained == pytest.approx(4e-3)
    assert found.notes == () and found.clocks() == []


def test_a_soak_survives_as_plain_data(gpu):
    found = soak(throttled(gpu), seconds=1.5, reader=Readings((0.5, 1e9)))
    data = found.to_dict()
    assert Soak.from_dict(data) == found
    assert len(data["samples"]) == len(found.windows)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("windows"),
        lambda d: d["samples"].append(1.0),
        lambda d: d.update(windows=[], samples=[]),
        lambda d: d["windows"][0].__setitem__(1, -1.0),
        lambda d: d["windows"].__setitem__(0, [1.0]),
        lambda d: d["windows"][0].__setitem__(0, float("nan")),
    ],
)
def test_a_damaged_soak_is_a_value_error(gpu, damage):
    data = soak(lambda: gpu.launch(5e-3), seconds=0.3, reader=Readings()).to_dict()
    damage(data)
    with pytest.raises(ValueError):
        Soak.from_dict(data)


# ---------------------------------------------------------------- the clock


def test_the_clock_comes_from_nvml_where_it_answers(monkeypatch):
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda device=None: 1590)
    assert soaking.sm_clock(run=None) == 1.59e9


@pytest.mark.parametrize(
    ("said", "hertz"),
    [("1590\n", 1.59e9), ("900\n1410\n", 0.9e9), ("", None), ("[N/A]\n", None)],
)
def test_else_from_nvidia_smi(monkeypatch, said, hertz):
    def no_nvml(device=None):
        raise ModuleNotFoundError("pynvml")

    monkeypatch.setattr(torch.cuda, "clock_rate", no_nvml)
    asked = []

    def run(command, **options):
        asked.append((command, options["timeout"]))
        return types.SimpleNamespace(stdout=said)

    assert soaking.sm_clock(run) == hertz
    assert asked == [(soaking.SMI, 2.0)]


@pytest.mark.parametrize(
    "error", [FileNotFoundError("nvidia-smi"), subprocess.TimeoutExpired("nvidia-smi", 2.0),
              subprocess.CalledProcessError(9, "nvidia-smi")],
)  # fmt: skip
def test_a_clock_that_nobody_tells_is_none(monkeypatch, error):
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda device=None: 1 / 0)

    def run(*args, **options):
        raise error

    assert soaking.sm_clock(run) is None


def test_the_reader_reads_beside_the_work_and_stops():
    reader = ClockReader(lambda: 1e9, pause=0.001)
    reader.start()
    deadline = time.monotonic() + 5
    while len(reader.seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    seen = reader.stop()
    assert len(seen) >= 3 and all(hertz == 1e9 for _, hertz in seen)
    assert not reader._thread.is_alive()


def test_a_reader_without_a_clock_gives_up_at_once():
    asked = []
    reader = ClockReader(lambda: asked.append(1), pause=0.001)
    reader.start()
    reader._thread.join(5)
    assert reader.stop() == [] and len(asked) == 1


# ---------------------------------------------------------------- the model and the lab


def test_a_modelled_card_has_no_temperature_and_says_so():
    with simgpu.SimulatedGPU("T4", sleep=False):
        a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
        found = soak(lambda: a @ a, seconds=0.5)
    assert found.origin == "simulated" and "(simulated)" in found.device
    assert found.kept == pytest.approx(1.0, abs=0.01)
    assert found.notes == ("a modelled card has no temperature and no power limit",)


def test_hurried_waits_take_no_real_time_then_or_later():
    with simgpu.SimulatedGPU("T4") as card:
        a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
        begin, virtual = time.perf_counter(), clock.now()
        with card.hurried():
            for _ in range(2000):
                a @ a
            torch.cuda.synchronize()
        assert card.sleep
        torch.cuda.synchronize()
        assert clock.now() - virtual > 6.0  # virtual: 2,000 x 3.3 ms
        assert time.perf_counter() - begin < 5.0
        begin = time.perf_counter()
        for _ in range(30):
            a @ a
        torch.cuda.synchronize()
        assert time.perf_counter() - begin > 0.09  # after it, waits are real again


@pytest.fixture
def opened(tmp_path, monkeypatch):
    monkeypatch.setenv("BRRR_EVIDENCE_DIR", str(tmp_path))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    lab.setup("04_cos_chain_fusion", simulate="T4")
    yield tmp_path
    simgpu.active().deactivate()


def test_the_lab_soaks_only_after_the_prediction_and_keeps_the_windows(opened, capsys):
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    assert lab.soak("04-4", ...) is ...
    assert lab.soak("04-4", lambda: a @ a, label="soak", seconds=0.3) is ...
    assert "commit your prediction first" in capsys.readouterr().out
    lab.predict("04-4", 1.0, unit="ms")
    found = lab.soak("04-4", lambda: a @ a, label="soak", seconds=0.3)
    said = capsys.readouterr().out
    assert "04-4 soak: 3.2" in said and "no temperature" in said
    record = lab.session.current().context().measurement("04-4", "soak")
    assert record.value["work"]["flops"] == 2 * 4096**3
    assert record.value["samples"] == [w.seconds for w in found.windows]


def test_when_graded_the_soak_is_replayed_and_nothing_runs(opened, capsys):
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    lab.predict("04-4", 1.0, unit="ms")
    first = lab.soak("04-4", lambda: a @ a, label="soak", seconds=0.3)
    now = lab.session.current()
    now.replaying = True
    again = lab.soak("04-4", lambda: 1 / 0, label="soak")
    assert again.origin == "replayed" and again.windows == first.windows
    assert lab.soak("04-4", lambda: 1 / 0, label="other") is ...
    now.evidence.latest("04-4", "measurement", "soak").value["samples"][0] *= 2
    assert lab.soak("04-4", lambda: 1 / 0, label="soak") is ...
    said = capsys.readouterr().out
    assert "is not there" in said and "is damaged" in said


def test_measuring_a_model_takes_less_real_time_than_it_says(opened):
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float32)
    lab.predict("04-4", 1.0, unit="ms")
    begin = time.perf_counter()
    m = lab.measure("04-4", lambda: a @ a, label="long", budget=9.0)
    assert m.median * m.n > 2.0  # ten calls of 264 ms
    assert time.perf_counter() - begin < m.median * m.n
    assert simgpu.active().sleep
