"""The sourced numbers: each complete, dated, and equal to what can be worked out beside it."""

import datetime
import itertools

import pytest

from helpers import facts as facts_module
from helpers.facts import UNITS, FactError, fact, facts, label, parse, problems, show, sources
from helpers.facts.units import format_value

REGISTRY = {"book": {"title": "A book", "url": "https://example.org"}}
GOOD = {"value": 1.0, "unit": "B/s", "source": "book", "date": "2026-11-29"}
TODAY = datetime.date(2026, 11, 29)


def value(path: str) -> float:
    return fact(path).value


def test_every_fact_is_whole_and_its_source_is_named_once():
    titles = {entry["title"] for entry in sources().values()}
    assert len(titles) == len(sources())
    for path, found in facts().items():
        assert found.path == path
        assert found.unit in UNITS
        assert found.source in titles
        assert found.date.year >= 2010
        assert found.value not in ("", None, [])
    used = {found.source for found in facts().values()}
    assert titles == used, "a source that no fact uses"


def test_every_source_has_an_address_or_says_that_there_is_none():
    for key, entry in sources().items():
        assert set(entry) <= {"title", "url", "note"}, key
        assert entry["url"] == "" or entry["url"].startswith("https://"), key


def test_no_fact_lies_in_the_future():
    assert problems(max(TODAY, datetime.date.today())) == []


def test_a_future_date_is_a_problem():
    day_before_the_first = min(found.date for found in facts().values()) - datetime.timedelta(1)
    assert len(problems(day_before_the_first)) == len(facts())
    assert "lies in the future" in problems(day_before_the_first)[0]


def test_a_good_fact_parses():
    found, names = parse("device", {"x": {"name": "X", "speed": GOOD}}, REGISTRY)
    assert found["device.x.speed"].source == "A book"
    assert found["device.x.speed"].date == TODAY
    assert names == {"device.x": "X"}


@pytest.mark.parametrize("key", ["unit", "source", "date"])
def test_a_fact_without_one_of_its_keys_fails(key):
    broken = {k: v for k, v in GOOD.items() if k != key}
    with pytest.raises(FactError, match=f"device.x.speed lacks {key}"):
        parse("device", {"x": {"speed": broken}}, REGISTRY)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": "GB/s"}, "unknown unit 'GB/s'"),
        ({"source": "hearsay"}, "'hearsay', not in sources.toml"),
        ({"date": "2026-13-01"}, "date '2026-13-01'"),
        ({"date": 2026}, "date 2026"),
        ({"when": "2026-11-29"}, "unknown when"),
    ],
)
def test_a_fact_with_something_wrong_fails(change, message):
    with pytest.raises(FactError, match=message):
        parse("device", {"x": {"speed": GOOD | change}}, REGISTRY)


def test_a_bare_value_fails():
    with pytest.raises(FactError, match=r"device.x.speed is a bare value"):
        parse("device", {"x": {"speed": 320e9}}, REGISTRY)


def test_an_unknown_path_names_its_neighbours():
    with pytest.raises(FactError) as caught:
        fact("device.t4.bandwith")
    assert str(caught.value).startswith("There is no fact 'device.t4.bandwith'. Did you mean ")
    assert "device.t4.bandwidth" in str(caught.value)
    assert isinstance(caught.value, KeyError)
    with pytest.raises(FactError, match=r"device\.t4\.peak\.fp16"):
        fact("device.t4.peak")
    with pytest.raises(FactError, match=r"no table named .price\.nobody."):
        label("price.nobody")


def test_facts_returns_a_copy():
    facts().clear()
    assert facts()


@pytest.mark.parametrize(
    ("path", "spec", "text"),
    [
        ("device.t4.bandwidth", None, "320 GB/s"),
        ("device.a100_80_sxm.bandwidth", None, "2,039 GB/s"),
        ("device.a100_80_sxm.bandwidth", "TB/s", "2.039 TB/s"),
        ("device.t4.l2", None, "4 MiB"),
        ("device.t4.l2", "MB", "4.194 MB"),
        ("device.t4.memory", "GiB", "14.75 GiB"),
        ("device.t4.peak.fp16", None, "65 TFLOP/s"),
        ("device.t4.boost_clock", None, "1,590 MHz"),
        ("device.l4.power", None, "72 W"),
        ("model.llama2_7b.parameters", None, "6,738,415,616"),
        ("model.llama2_7b.weights", None, "13.48 GB"),
        ("model.llama2_7b.layers", None, "32"),
        ("result.gpt_fast.eager", None, "25.5 tokens/s"),
        ("result.nemo.a100.batch8", None, "330 ms"),
        ("result.bert.normalisation_time", "%", "25.5%"),
        ("result.action_expert.t4.graph", "ms", "0.819 ms"),
        ("host.operation", None, "32 us"),
        ("price.lambda.a100_40", None, "$1.48/h (Lambda, 2026-05-01)"),
        ("price.colab.units_t4", None, "1.84 compute units/h"),
    ],
)
def test_show(path, spec, text):
    assert show(path, spec, today=TODAY) == text


def test_every_fact_can_be_shown():
    for path in facts():
        assert show(path, today=TODAY)


def test_show_refuses_a_unit_of_another_kind():
    with pytest.raises(ValueError, match=r"device.t4.power is in W and cannot be shown in 'GB'"):
        show("device.t4.power", "GB")
    assert format_value([1, 2], "1") == "1, 2"


def test_a_price_older_than_a_year_says_so():
    price = fact("price.lambda.a100_40")
    last = price.date + datetime.timedelta(days=365)
    assert not price.stale(last)
    assert price.stale(last + datetime.timedelta(days=1))
    old = show(price.path, today=last + datetime.timedelta(days=1))
    assert old == "$1.48/h (Lambda, 2026-05-01, more than a year old)"
    assert not fact("device.t4.bandwidth").stale(datetime.date(2050, 1, 1))


def test_every_price_has_a_seller():
    prices = [path for path, found in facts().items() if found.unit == "USD/h"]
    assert len(prices) > 20
    for path in prices:
        assert label(".".join(path.split(".")[:2]))


# What follows works the numbers out a second way.


def test_llama_parameters_follow_from_its_shape():
    at = "model.llama2_7b"
    hidden, ffn, layers = value(f"{at}.hidden"), value(f"{at}.ffn"), value(f"{at}.layers")
    table = value(f"{at}.vocabulary") * hidden
    layer = 4 * hidden**2 + 3 * hidden * ffn + 2 * hidden
    assert value(f"{at}.heads") * value(f"{at}.head_dim") == hidden
    assert value(f"{at}.layer_parameters") == layer
    assert value(f"{at}.parameters") == layers * layer + 2 * table + hidden
    assert value(f"{at}.decode_parameters") == value(f"{at}.parameters") - table
    assert value(f"{at}.weights") == 2 * value(f"{at}.parameters")
    assert value(f"{at}.decode_weights") == 2 * value(f"{at}.decode_parameters")
    norms = layers * 2 * hidden + hidden
    assert value(f"{at}.decode_flops") == 2 * (value(f"{at}.decode_parameters") - norms)
    assert value(f"{at}.kv_bytes") == 2 * layers * hidden * 2


def test_action_expert_parameters_follow_from_its_shape():
    at = "model.action_expert"
    d = value(f"{at}.hidden")
    # qkv 3, proj 1, cross q 1, cross kv 2, cross out 1, MLP 2 x ratio; t_proj once
    matrices = value(f"{at}.layers") * (8 + 2 * value(f"{at}.mlp_ratio")) * d**2 + d**2
    assert value(f"{at}.parameters") == pytest.approx(matrices, rel=0.01)
    assert value(f"{at}.weights") == pytest.approx(2 * matrices, rel=0.01)


def test_python_cost_per_operation_is_the_eager_ladder_over_its_operations():
    rate, operations = value("result.gpt_fast.eager"), value("result.gpt_fast.operations")
    assert value("host.operation") == pytest.approx(1 / rate / operations, rel=0.01)
    assert value("host.launch_low") < value("host.launch") < value("host.operation")
    assert value("host.tiny_operation") == pytest.approx(
        1 / value("result.overhead.tiny_operations"), rel=0.01
    )


def test_gpt_fast_bandwidths_are_tokens_times_weights():
    weights = value("model.llama2_7b.decode_weights")
    at = "result.gpt_fast_readme"
    assert value(f"{at}.fp16_bandwidth") == pytest.approx(value(f"{at}.fp16") * weights, rel=0.01)
    share = (
        value("result.gpt_fast.compiled")
        * value("model.llama2_7b.weights")
        / value("result.gpt_fast.mbu_bandwidth")
    )
    assert share == pytest.approx(value("result.gpt_fast.mbu"), abs=0.005)


def test_the_ladder_climbs():
    steps = [value(f"result.gpt_fast.{key}") for key in ("eager", "compiled", "int8", "int4")]
    assert steps == sorted(steps)
    for gpu in ("a100", "h100"):
        times = [value(f"result.nemo.{gpu}.batch{b}") for b in (1, 2, 4, 8)]
        assert times == sorted(times)
        assert times[-1] < 1.5 * times[0], "eight rows cost far less than eight times one"
    for gpu in ("t4", "l4"):
        found = [
            f.value for p, f in facts().items() if p.startswith(f"result.action_expert.{gpu}_")
        ]
        assert found == sorted(found)


def test_shares_add_up_to_one():
    for kind in ("flops", "time"):
        total = sum(
            value(f"result.bert.{part}_{kind}")
            for part in ("contraction", "normalisation", "elementwise")
        )
        assert total == pytest.approx(1.0, abs=1e-9)


def test_the_repeat_sweep_knee_is_the_multiplies_per_fp32_element():
    knee = value("result.repeat_sweep.peak") / (value("result.repeat_sweep.bandwidth") / 8)
    assert knee == pytest.approx(52, rel=0.01)
    assert value("result.repeat_sweep.knee_low") < knee < value("result.repeat_sweep.knee_high")


def test_mask_rcnn_gain_leaves_half_the_step_outside_the_graph():
    gain, whole = 31e-3 / 6e-3, value("result.cuda_graphs.mask_rcnn_whole")
    before = value("result.cuda_graphs.mask_rcnn_before")
    assert before / value("result.cuda_graphs.mask_rcnn_after") == pytest.approx(gain)
    assert (1 - 1 / whole) / (1 - 1 / gain) == pytest.approx(0.51, abs=0.01)


def test_instruction_counts_are_ordered_as_the_code_is():
    kinds = {path.split(".")[1] for path in facts() if path.startswith("instruction.")}
    for kind in kinds:
        fma, xu, issue = (value(f"instruction.{kind}.{col}") for col in ("fma", "xu", "issue"))
        assert 0 <= fma + xu <= issue, kind
    assert value("instruction.cos.fma") == 15
    assert value("instruction.cos.xu") == 2
    assert value("instruction.cos.issue") == 28
    cheap = ("mul", "exp", "tanh", "cos", "pow")
    costs = [value(f"instruction.{name}.issue") for name in cheap]
    assert all(a < b for a, b in itertools.pairwise(costs))


def test_the_whole_file_set_is_read():
    stems = {p.name.removesuffix(".toml") for p in _data_files()} - {"sources"}
    assert stems == set(facts_module.KINDS)


def _data_files():
    from importlib import resources

    return [p for p in resources.files("helpers.facts").iterdir() if p.name.endswith(".toml")]
