"""The front door: what a learner sees, on the simulated card and on the CPU."""

import json
import math
import os

import pytest
import torch

from helpers import evidence, lab, measuring, session, simgpu

STEM = "04_cos_chain_fusion"


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    """A folder of its own, no settings from outside, and no simulator left behind."""
    for name in (
        "BRRR_GPU",
        "BRRR_DEVICE",
        "NBGRADER_EXECUTION",
        "COLAB_RELEASE_TAG",
        "BRRR_STATIC",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BRRR_EVIDENCE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "_current", None)
    yield
    if simgpu.active():
        simgpu.active().deactivate()


@pytest.fixture
def gpu():
    return lab.setup(STEM)


def kept(tmp_path):
    return evidence.read(tmp_path / f"{STEM}.evidence.json")


def test_before_setup_every_call_says_what_to_do():
    for call in (
        lambda: lab.check("04-1", 0.25),
        lambda: lab.predict("04-4", 1.0),
        lambda: lab.measure("04-4", lambda: 1),
        lambda: lab.hint("04-1"),
        lab.progress,
        lab.ceiling,
    ):
        with pytest.raises(session.LabError, match="Run the setup cell") as told:
            call()
        assert told.value._render_traceback_() == [f"LabError: {told.value}"]


def test_setup_says_on_what_it_runs(capsys):
    gpu = lab.setup(STEM)
    said = capsys.readouterr().out
    assert "Tesla T4 (simulated)" in said and "model" in said
    assert (gpu.name, gpu.origin, gpu.device) == ("Tesla T4 (simulated)", "simulated", "cuda")
    assert gpu.facts.key == "t4"
    assert lab.setup(STEM, device="cpu").cpu
    assert simgpu.active() is None
    assert "measures the CPU" in capsys.readouterr().out


def test_another_card_can_be_simulated(monkeypatch):
    assert lab.setup(STEM, simulate="A100-80").facts.key == "a100_80_sxm"
    monkeypatch.setenv("BRRR_GPU", "h100")
    assert lab.setup(STEM).facts.key == "h100_sxm"
    with pytest.raises(session.LabError, match="No facts about a device called 'B52'"):
        lab.setup(STEM, simulate="B52")
    with pytest.raises(session.LabError, match="device must be"):
        lab.setup(STEM, device="tpu")


def test_an_unknown_exercise_is_named(gpu):
    with pytest.raises(session.LabError, match="There is no exercise '04-99'"):
        lab.check("04-99", 1)


def test_a_prediction_is_locked_until_reset(gpu, tmp_path, capsys):
    lab.predict("04-4", ..., unit="ms")
    assert "no prediction yet" in capsys.readouterr().out
    lab.predict("04-4", "fast", unit="ms")
    assert "one positive number in ms" in capsys.readouterr().out
    lab.predict("04-4", object(), unit="ms")
    assert "is not a number" in capsys.readouterr().out
    lab.predict("04-4", 2.5, unit="ms")
    lab.predict("04-4", 9.9, unit="ms")
    said = capsys.readouterr().out
    assert "locked: 2.5 ms" in said and "locked before" in said and "9.9" not in said
    assert [r.value for r in kept(tmp_path).records] == [2.5]
    lab.reset("04-4")
    lab.predict("04-4", 9.9, unit="ms")
    assert [r.value for r in kept(tmp_path).records] == [9.9]


def test_nothing_is_measured_before_the_prediction(gpu, tmp_path, capsys):
    calls = []
    assert lab.measure("04-4", lambda: calls.append(1), label="cos x1") is ...
    assert lab.sweep("04-9", {"cosine": lambda k: calls.append}, [1]) == {}
    assert lab.measure("04-10", {"as it is": lambda: calls.append(1)}) == {}
    said = capsys.readouterr().out
    assert calls == [] and said.count("commit your prediction first") == 3
    assert "(bucket, half the bytes, twice the arithmetic, one launch)" in said


def test_a_measurement_is_recorded_with_its_work(gpu, tmp_path):
    lab.predict("04-4", 0.01, unit="ms")
    x = torch.randn(2**20, device="cuda", dtype=torch.float16)
    m = lab.measure("04-4", lambda: x.cos(), label="cos x1")
    record = kept(tmp_path).latest("04-4", "measurement", "cos x1")
    assert record.intact and record.origin == "simulated" and m.origin == "simulated"
    assert record.device["name"] == "Tesla T4 (simulated)"
    assert record.value["work"] == {
        "bytes_ideal": 2**22,
        "bytes_unfused": 2**22,
        "flops": 2**20,
        "kernels": 1,
        "elements": 2**20,
        "itemsize": 2,
    }
    assert set(record.versions) == {"course", "torch", "python"}


def test_several_functions_are_measured_in_turn(gpu, capsys):
    x = torch.randn(2**22, device="cuda", dtype=torch.float16)
    lab.predict("04-6", 2, label="speed-up")
    found = lab.measure(
        "04-6", {"cos x1": lambda: x.cos(), "cos x3": lambda: x.cos().cos().cos(), "fused": ...}
    )
    assert set(found) == {"cos x1", "cos x3"}
    assert found["cos x1"].group == found["cos x3"].group
    assert "04-6 fused: not started" in capsys.readouterr().out
    lab.compare("04-6", "cos x3", "cos x1", prediction="speed-up")
    said = capsys.readouterr().out
    assert "71.54 us = 3.00" in said and "you predicted 2, it is 3: off by x1.50" in said
    lab.compare("04-6", "cos x3", "fused")
    assert "not both measured" in capsys.readouterr().out


def test_not_started_is_welcome_everywhere(gpu, capsys):
    assert lab.measure("04-4", ...) is ...
    assert lab.kernels(...) is ...
    lab.reveal("04-4")
    lab.ledger("04-6", ["fused"])
    lab.show_table(...)
    for exercise in [f"04-{n}" for n in range(1, 15)]:
        lab.check(exercise, ...)
    said = capsys.readouterr().out
    assert said.count(": not started") == 15 and "There is no table yet" in said


def test_bodies_without_code_are_not_started(gpu, capsys):
    def documented(elements, bytes_per_element, operations, fused):
        """Only words."""

    def passed(elements, bytes_per_element, operations, fused):
        pass

    def dots(elements, bytes_per_element, operations, fused): ...

    for stub in (documented, passed, dots):
        lab.check("04-3", stub)
    assert capsys.readouterr().out.count("not started") == 3

    def prints(elements, bytes_per_element, operations, fused):
        str(elements)

    lab.check("04-3", prints)
    assert "does not return it" in capsys.readouterr().out


def test_a_function_that_raises_is_an_error_in_your_code(gpu, capsys):
    lab.check("04-3", lambda elements: elements)
    said = capsys.readouterr().out
    assert "error in your code" in said and "TypeError" in said


def test_check_never_raises_whatever_it_is_given(gpu, capsys):
    odd = [None, "text", float("nan"), -1, [], {}, object(), print, torch.zeros(9, device="cuda"),
           torch.zeros(2**24, device="cuda"), 10**400, b"bytes", {1, 2}, range(3)]  # fmt: skip
    for exercise in [f"04-{n}" for n in range(1, 15)]:
        for answer in odd:
            lab.check(exercise, answer)
            said = capsys.readouterr().out
            assert ": right" not in said and "Traceback" not in said


def test_hints_step_and_stay(gpu, capsys):
    for _ in range(3):
        lab.hint("04-3")
    said = capsys.readouterr().out.splitlines()
    assert [line[:11] for line in said] == ["Hint 1 of 2", "Hint 2 of 2", "Hint 2 of 2"]


def test_evidence_survives_a_restart(gpu, tmp_path, capsys, monkeypatch):
    lab.predict("04-4", 2.5, unit="ms")
    lab.check("04-1", 0.25)
    seed = kept(tmp_path).seed
    monkeypatch.setattr(session, "_current", None)
    capsys.readouterr()
    lab.setup(STEM)
    assert "2 earlier records were found" in capsys.readouterr().out
    lab.progress()
    assert "1 of 14 exercises are right" in capsys.readouterr().out
    assert kept(tmp_path).seed == seed


def test_a_damaged_file_is_set_aside(tmp_path, capsys):
    path = tmp_path / f"{STEM}.evidence.json"
    path.write_text("{ half")
    lab.setup(STEM)
    assert "damaged at line 1" in capsys.readouterr().out
    assert (tmp_path / f"{STEM}.evidence.damaged.json").read_text() == "{ half"
    lab.check("04-1", 0.25)
    assert kept(tmp_path).records


def test_a_folder_that_refuses_is_told_once(gpu, tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise evidence.EvidenceError("x cannot be written (Read-only file system)")

    monkeypatch.setattr(evidence, "write", refuse)
    lab.check("04-1", 0.25)
    lab.check("04-2", "b")
    assert capsys.readouterr().out.count("cannot be written") == 1


def test_evidence_is_never_kept_beside_the_solutions(tmp_path, monkeypatch):
    monkeypatch.delenv("BRRR_EVIDENCE_DIR")
    folder = tmp_path / "labs_solutions" / "day1"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    lab.setup(STEM)
    lab.check("04-1", 0.25)
    assert list(folder.iterdir()) == []
    assert (tmp_path / "work" / "instructor" / f"{STEM}.evidence.json").exists()


def test_evidence_holds_no_path_and_no_person(gpu, tmp_path):
    lab.check("04-1", 0.25)
    text = (tmp_path / f"{STEM}.evidence.json").read_text()
    assert str(tmp_path) not in text and os.path.expanduser("~") not in text


# ---------------------------------------------------------------- grading


def handed_in(tmp_path, seed=5):
    """What a learner measured on a simulated A100, lifted out of the submission."""
    lab.setup(STEM, simulate="A100-80")
    lab.predict("04-4", 1, unit="ms")
    x = torch.randn(2**20, device="cuda", dtype=torch.float16)
    m = lab.measure("04-4", lambda: x.cos(), label="cos x1")
    data = kept(tmp_path).to_dict()
    (tmp_path / f"{STEM}.replay.json").write_text(json.dumps({"evidence": data, "seed": seed}))
    (tmp_path / f"{STEM}.evidence.json").unlink()
    simgpu.active().deactivate()
    return m


def test_when_graded_measurements_are_replayed(tmp_path, monkeypatch, capsys):
    m = handed_in(tmp_path)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    machine = lab.setup(STEM)
    assert machine.facts.key == "a100_80_sxm"

    def never():
        calls.append(1)
        return torch.zeros(1, device="cuda").cos()

    calls = []
    again = lab.measure("04-4", never, label="cos x1")
    assert again.samples == m.samples and again.origin == "replayed"
    assert len(calls) == 1  # counted once, never timed
    assert "replayed" in capsys.readouterr().out
    assert lab.measure("04-4", never, label="cos x2") is ...
    assert lab.measure("04-6", {"a": never}) == {}
    assert capsys.readouterr().out.count("no measurement of it was handed in") == 2
    assert not (tmp_path / f"{STEM}.evidence.json").exists()


def test_when_graded_check_only_emits(tmp_path, monkeypatch):
    handed_in(tmp_path)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    shown = []
    monkeypatch.setattr(lab, "publish", shown.append)
    lab.setup(STEM)
    lab.check("04-1", 4)
    lab.check("04-2", ...)
    lab.check("04-3", lambda n, b, k, f: 2 * n * b * (1 if f else k))
    answers = [data[lab.ANSWER_MIME] for data in shown]
    assert answers[0] == {"exercise": "04-1", "value": 4}
    assert answers[1] == {"exercise": "04-2", "value": evidence.PLACEHOLDER}
    assert all(set(call) == {"value"} for call in answers[2]["value"])
    assert all("right" not in data["text/plain"] for data in shown)


def test_a_sweep_is_replayed_too(tmp_path, monkeypatch):
    lab.setup(STEM)
    make = {"a": lambda k: torch.randn(k, device="cuda").cos}
    curves = lab.sweep("04-11", make, [2**12, 2**16], cache="hot")
    data = {"evidence": kept(tmp_path).to_dict(), "seed": 1}
    (tmp_path / f"{STEM}.replay.json").write_text(json.dumps(data))
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    lab.setup(STEM)
    assert lab.sweep("04-11", make, [2**12, 2**16], cache="hot") == curves


def test_a_point_that_does_not_fit_is_missing_and_told(gpu, capsys):
    huge = {"a": lambda k: lambda: torch.empty(k, device="cuda").cos()}
    curve = lab.sweep("04-11", huge, [2**12, 2**40])["a"]
    assert curve[0] > 0 and math.isnan(curve[1])
    assert "memory" in capsys.readouterr().out


def test_the_bounds_and_the_ledger_are_drawn(gpu, capsys):
    x = torch.randn(2**26, device="cuda", dtype=torch.float16)
    lab.predict("04-4", 4.5, unit="ms")
    lab.measure("04-4", lambda: x.cos(), label="cos x1")
    lab.reveal("04-4", "cos x1")
    said = capsys.readouterr().out
    assert "your prediction was off by ×4" in said and "Tesla T4 (simulated)" in said
    lab.ledger("04-4", ["cos x1"])
    assert "memory 100 %" in capsys.readouterr().out
    labels = [roof.label for roof in lab.roofs()]
    assert labels == ["datasheet peak", "published sustained", "simulated ceiling"]


def test_the_ledger_of_the_wall_clock_shows_the_host(gpu, capsys):
    x = torch.randn(1000, device="cuda", dtype=torch.float16)
    lab.measure("04-14", {"tiny": lambda: x.cos().cos().cos()})
    capsys.readouterr()
    lab.ledger("04-14", ["tiny"])
    assert "the model asks for" in capsys.readouterr().out  # the queue was held
    lab.ledger("04-14", ["tiny"], clock="wall")
    assert "host 100 %" in capsys.readouterr().out


def test_on_the_wall_clock_the_host_is_in_the_bars_and_in_the_ledger(gpu, capsys):
    tiny = torch.randn(1000, device="cuda", dtype=torch.float16)
    lab.predict("04-4", 3.2, unit="ms")
    lab.measure("04-4", lambda: [tiny.cos() for _ in range(100)], label="tiny")
    took = session.current("04-4").evidence.latest("04-4", "measurement", "tiny").value
    assert took["wall"] > 5 * took["summary"]["median"]  # queued first, the kernels take no time
    capsys.readouterr()
    lab.ledger("04-4", ["tiny"], clock="wall")
    assert "host 100 %" in capsys.readouterr().out
    lab.ledger("04-4", ["tiny"])
    assert "the model asks for" in capsys.readouterr().out
    lab.reveal("04-4", "tiny", clock="wall")
    assert f"it is {took['wall'] * 1e3:.3g} ms" in capsys.readouterr().out


def test_a_fused_chain_must_stay_on_the_device(gpu, capsys):
    lab.check("04-5", lambda x: x.cpu().float().cos().cos().cos())
    said = capsys.readouterr().out
    assert "no longer on the device" in said and "not yet" in said
    lab.check("04-5", torch.compile(lambda x: x.cos().cos().cos()))
    assert "04-5: right" in capsys.readouterr().out


def test_whatever_a_function_raises_becomes_feedback(gpu, capsys):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    def leaves(*_):
        raise SystemExit(1)

    def mute(*_):
        raise Mute

    for function in (leaves, mute):
        lab.check("04-3", function)
        assert "error in your code" in capsys.readouterr().out


def test_what_is_no_prediction_is_said(gpu, capsys):
    for value in (10**5000, [1], torch.zeros(2, device="meta"), lambda: 1):
        lab.predict("04-4", value, unit="ms")
    assert "locked" not in capsys.readouterr().out


def test_lab_times_cold_unless_told(gpu):
    x = torch.randn(2**16, device="cuda")
    assert lab.measure("04-14", lambda: x.cos()).cache == "cold"
    assert lab.measure("04-14", lambda: x.cos(), cache="hot").cache == "hot"


def test_a_sweep_over_many_sizes_stays_compiled(gpu):
    lab.predict("04-9", 4, label="cosine")
    wide = torch.randn(2**22, device="cuda")

    def run(x):
        return x.cos().cos()

    fused = torch.compile(run)
    make = {"a": lambda k: lambda: fused(wide[: 2**k])}
    curve = lab.sweep("04-9", make, list(range(11, 22)))["a"]
    eager = lab.measure("04-14", lambda: run(wide[: 2**21])).median
    assert curve[-1] < 0.7 * eager


def test_the_ceiling_is_replayed(tmp_path, monkeypatch):
    lab.setup(STEM, simulate="A100-80")
    roof = lab.ceiling()
    data = {"evidence": kept(tmp_path).to_dict(), "seed": 1}
    record = next(r for r in data["evidence"]["records"] if r["label"] == "ceiling")
    record["value"]["bandwidth"] = 1.23e12
    (tmp_path / f"{STEM}.replay.json").write_text(json.dumps(data))
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    lab.setup(STEM)
    assert roof.bandwidth != 1.23e12 and lab.ceiling().bandwidth == 1.23e12


def test_when_graded_the_evidence_decides_on_what_to_run(tmp_path, monkeypatch):
    handed_in(tmp_path)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert lab.setup(STEM, device="cpu").facts.key == "a100_80_sxm"
    simgpu.active().deactivate()
    path = tmp_path / f"{STEM}.replay.json"
    data = json.loads(path.read_text())
    for record in data["evidence"]["records"]:
        record["device"] = {"type": "cpu", "name": "Some CPU"}
    path.write_text(json.dumps(data))
    assert lab.setup(STEM).cpu


def test_two_kernels_on_one_file_lose_nothing(tmp_path, monkeypatch):
    lab.setup(STEM)
    first = session.current()
    monkeypatch.setattr(session, "_current", None)
    lab.setup(STEM)
    lab.predict("04-4", 2.5, unit="ms")
    first.record("04-1", "answer", {"answer": 1, "state": "not_yet", "fraction": 0.0})
    assert {r.exercise for r in kept(tmp_path).records} == {"04-1", "04-4"}
    lab.reset("04-4")
    assert {r.exercise for r in kept(tmp_path).records} == {"04-1"}


def test_evidence_of_another_notebook_is_set_aside(tmp_path, capsys):
    other = evidence.fresh("05_async_timing", "0.1")
    evidence.write(other, tmp_path / f"{STEM}.evidence.json")
    lab.setup(STEM)
    assert "belongs to another notebook" in capsys.readouterr().out
    for odd in ("../../x", 4, "notebook"):
        with pytest.raises(session.LabError, match="file's stem"):
            lab.setup(odd)


def test_records_changed_by_hand_are_left_out(tmp_path, capsys):
    lab.setup(STEM)
    lab.check("04-1", 0.25)
    path = tmp_path / f"{STEM}.evidence.json"
    path.write_text(path.read_text().replace('"right"', '"not_yet"'))
    session._current = None
    lab.setup(STEM)
    assert "are left out: 1" in capsys.readouterr().out
    assert not session.current().evidence.records


def test_times_of_another_machine_are_kept_and_not_used(tmp_path, capsys):
    lab.setup(STEM)
    x = torch.randn(2**20, device="cuda", dtype=torch.float16)
    lab.predict("04-6", 3, label="speed-up")
    lab.measure("04-6", {"cos x3": lambda: x.cos().cos().cos(), "fused": lambda: x.cos()})
    lab.check("04-1", 0.25)
    before = {r.checksum for r in kept(tmp_path).records}
    capsys.readouterr()
    lab.setup(STEM, device="cpu")
    said = capsys.readouterr().out
    assert "Records made on another machine" in said and "Tesla T4 (simulated)" in said
    lab.compare("04-6", "cos x3", "fused", prediction="speed-up")
    assert "not both measured yet" in capsys.readouterr().out
    assert lab.predicted("04-6", "speed-up") is None
    lab.predict("04-4", 30, unit="ms")
    assert before < {r.checksum for r in kept(tmp_path).records}
    lab.setup(STEM)
    lab.compare("04-6", "cos x3", "fused", prediction="speed-up")
    assert "you predicted 3" in capsys.readouterr().out


def test_validate_fails_where_an_answer_is_not_right(tmp_path, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    lab.setup(STEM)
    for answer in (0.5, ...):
        with pytest.raises(session.LabError, match="04-1: not"):
            lab.check("04-1", answer)
    lab.check("04-1", 0.25)
    assert not (tmp_path / f"{STEM}.evidence.json").exists()


def test_a_function_that_fails_when_run_again_is_an_error(gpu, capsys):
    runs = []

    def twice_only(x):
        runs.append(1)
        if len(runs) > 2:
            raise ValueError("enough")
        return x.cos().cos().cos()

    lab.check("04-5", twice_only)
    said = capsys.readouterr().out
    assert "error in your code" in said and "enough" in said


def test_an_outcome_is_told_beside_its_prediction_and_kept(gpu, tmp_path, capsys):
    lab.outcome("04-6", "speed-up", 3.0)
    assert "nothing was predicted" in capsys.readouterr().out
    lab.predict("04-6", 2, unit="times", label="speed-up")
    lab.outcome("04-6", "speed-up", 3.0)
    assert "you predicted 2, it is 3: off by x1.50" in capsys.readouterr().out
    record = kept(tmp_path).latest("04-6", "outcome", "speed-up")
    assert (record.value, record.unit, record.origin) == (3.0, "times", "simulated")
    lab.predictions()
    assert "04-6" in capsys.readouterr().out


def test_an_outcome_that_was_calculated_is_not_called_simulated(gpu, tmp_path, capsys):
    lab.predict("04-6", 2, unit="times", label="speed-up")
    lab.outcome("04-6", "speed-up", 3.0, origin="none")
    assert "off by x1.50" in capsys.readouterr().out
    assert kept(tmp_path).latest("04-6", "outcome", "speed-up").origin == "none"


def test_a_revealed_time_is_an_outcome_too(gpu, tmp_path, capsys):
    x = torch.randn(2**22, device="cuda", dtype=torch.float16)
    lab.predict("04-4", 1.0, unit="ms")
    cos1 = lab.measure("04-4", lambda: x.cos(), label="cos x1")
    lab.reveal("04-4", "cos x1")
    record = kept(tmp_path).latest("04-4", "outcome")
    assert record.value == pytest.approx(cos1.median * 1e3)
    assert "you predicted 1 ms" in capsys.readouterr().out


def test_an_option_is_told_beside_the_factor(gpu, capsys):
    lab.predict("04-10", "about half", label="one launch", options=["about half", "about double"])
    capsys.readouterr()
    lab.outcome("04-10", "one launch", 0.97)
    assert "you predicted 'about half', it is x0.97" in capsys.readouterr().out


def test_the_summary_shows_this_notebook_and_those_beside(gpu, tmp_path, capsys):
    lab.summary()
    assert "no row yet" in capsys.readouterr().out
    row = {"memory": "cures", "compute": "nothing", "overhead": "helps"}
    lab.check("04-14", row)
    lab.summary()
    assert "04 what fusion does" in capsys.readouterr().out


@pytest.fixture
def drawn(monkeypatch):
    """An exercise with numbers of its own, and one that observes a function."""
    from helpers.checks import engine

    def case(seed):
        return {"bytes": float(seed % 97), "card": "T4"}

    def observe(fn, calls, machine):
        return [{"value": fn(*call) * (machine.itemsize if machine else 1)} for call in calls]

    def grader(answer, context):
        return engine.right("04-8")

    for name, options in [
        ("04-90", {"case": case}),
        ("04-91", {"inputs": lambda seed: [[1], [seed]], "observe": observe}),
    ]:
        made = engine.Exercise(name, grader, **options)
        monkeypatch.setitem(engine._registered, name, made)


def test_a_case_is_the_learners_own_and_stays(gpu, drawn, capsys):
    first = lab.case("04-90")
    assert lab.case("04-90") == first and first["card"] == "T4"
    seed = session.current().evidence.seed
    assert first["bytes"] == seed % 97
    assert "04-90, your numbers: bytes = " in capsys.readouterr().out
    assert session.current().context().case("04-90") == first
    assert session.current().context().case("04-91") == {}


def test_a_case_of_several_rows_is_shown_row_by_row(gpu, monkeypatch, capsys):
    from helpers.checks import engine

    rows = {"limit": 3, "A": {"host": 45.0, "moved": 6.8}, "B": {"host": 0.4, "moved": 7.0}}
    made = engine.Exercise("04-92", lambda answer, context: None, case=lambda seed: rows)
    monkeypatch.setitem(engine._registered, "04-92", made)
    assert lab.case("04-92") == rows
    assert capsys.readouterr().out.splitlines() == [
        "04-92, your numbers: limit = 3",
        "  A: host = 45, moved = 6.8",
        "  B: host = 0.4, moved = 7",
    ]


def test_an_observed_function_is_run_by_its_exercise(gpu, drawn):
    from helpers import answers, checks

    made = answers.of_function(lambda n: n + 1, checks.find("04-91"), gpu, 5)
    assert made == [{"value": 2 * gpu.itemsize}, {"value": 6 * gpu.itemsize}]


def test_when_graded_code_gets_the_judges_inputs_and_cases_stay_the_learners(
    gpu, drawn, tmp_path, monkeypatch
):
    lab.predict("04-4", 1.0, unit="ms")
    mine = session.current().evidence
    replay = {"evidence": mine.to_dict(), "seed": 4242}
    (tmp_path / f"{STEM}.replay.json").write_text(json.dumps(replay), "utf-8")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    lab.setup(STEM)
    now = session.current()
    assert now.seed == now.context().seed == 4242
    assert now.evidence.seed == mine.seed
    assert lab.case("04-90")["bytes"] == mine.seed % 97


def test_the_ceiling_travels_in_the_output_of_the_cell(gpu, monkeypatch):
    """Grading lifts records out of outputs: the cell that shows the roofs must carry it, always."""
    told = []
    monkeypatch.setattr(measuring, "tell", lambda record, said: told.append((record, said)))
    for times in (1, 2):  # the cell run once, and again
        roofs = lab.roofs()
        assert len(told) == times
        record, said = told[-1]
        assert (record.exercise, record.label) == ("04-0", "ceiling")
        assert record.value["bandwidth"] == roofs[-1].bandwidth and record.intact
        assert "GB/s" in said and "TFLOP/s fp16" in said and "simulated" in said
    lab.ceiling()
    assert len(told) == 2, "not again where nobody asked for the roofs"


def test_a_graph_replays_the_launches_as_one_and_a_cpu_gets_its_function_back(gpu):
    x = torch.zeros(1000, device="cuda", dtype=torch.float16)

    def many():
        for _ in range(20):
            x.add_(1)

    replay = lab.as_graph(many)
    before = x[0].item()
    replay()
    assert x[0].item() == before + 20
    runs = {"eager": many, "graph": replay}
    found = lab.measure("04-14", runs)
    assert found["graph"].wall < 0.5 * found["eager"].wall
    lab.setup(STEM, device="cpu")
    assert lab.as_graph(many) is many


def test_a_sweep_travels_in_the_output_of_its_cell(gpu, monkeypatch):
    from helpers import telling

    shown = []
    monkeypatch.setattr(telling, "publish", shown.append)
    lab.predict("04-9", 20, unit="repeats", label="cosine")
    lab.sweep("04-9", {"cosine": lambda n: torch.ones(n, device="cuda").cos}, [2**10, 2**20])
    whole, *_ = [bundle for bundle in shown if "records" in bundle[evidence.MIME]]
    for kept in (whole, {"text/plain": whole["text/plain"]}):  # some front ends keep only text
        output = {"output_type": "display_data", "data": kept}
        found = evidence.from_notebook({"cells": [{"outputs": [output]}]})
        assert [r.label for r in found] == ["cosine @ 1024", "cosine @ 1048576"]
        assert all(r.intact and r.value["samples"] for r in found)


def test_a_damaged_bundle_of_records_costs_only_itself():
    good = evidence.Record("04-4", "prediction", 1.0).sealed()
    several = {"records": [good.to_dict(), 7, {"exercise": 1}]}
    text = evidence.LINE + json.dumps(several)
    cell = {"outputs": [{"data": {"text/plain": text}}]}
    assert evidence.from_notebook({"cells": [cell]}) == [good]
