"""The units that facts may use, and how a value is written for people."""

from __future__ import annotations

from collections.abc import Mapping

_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_SI = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

UNITS: Mapping[str, Mapping[str, float]] = {
    "1": {"": 1.0, "%": 0.01, "thousand": 1e3, "million": 1e6, "billion": 1e9},
    "B": _BYTES | _BINARY,
    "B/s": {f"{name}/s": scale for name, scale in (_BYTES | _BINARY).items()},
    "B/token": {f"{name}/token": scale for name, scale in (_BYTES | _BINARY).items()},
    "FLOP": {f"{name}FLOP": scale for name, scale in _SI.items()},
    "FLOP/s": {f"{name}FLOP/s": scale for name, scale in _SI.items()},
    "FLOP/token": {f"{name}FLOP/token": scale for name, scale in _SI.items()},
    "FLOP/B": {"FLOP/byte": 1.0},
    "op": {"operations": 1.0},
    "op/s": {
        "operations/s": 1.0,
        "million operations/s": 1e6,
        "billion operations/s": 1e9,
        "TOP/s": 1e12,
    },
    "op/clock": {"per clock": 1.0},
    "element": {"elements": 1.0},
    "token": {"tokens": 1.0},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "token/s": {"tokens/s": 1.0},
    "request/s": {"requests/s": 1.0},
    "W": {"W": 1.0},
    "Hz": {"MHz": 1e6, "GHz": 1e9, "Hz": 1.0},
    "USD": {"$": 1.0},
    "USD/h": {"$/h": 1.0},
    "unit/h": {"compute units/h": 1.0},
    "USD/unit": {"$/compute unit": 1.0},
    "slot": {"slots": 1.0},
    "version": {"": 1.0},
    "name": {"": 1.0},
}
"""Unit of a fact -> the units it can be shown in, each with its size in the fact's unit."""


def format_value(
    value: object, unit: str, spec: str | None = None, *, where: str = "this value"
) -> str:
    """Return ``value`` (in ``unit``) with a readable unit: four significant digits, 1,000s marked.

    ``spec`` names the unit to show; an unknown one raises ValueError with the possible ones.
    """
    choices = UNITS[unit]
    if spec is not None and spec not in choices:
        known = ", ".join(name for name in choices if name)
        raise ValueError(f"{where} is in {unit} and cannot be shown in {spec!r}; choose: {known}.")
    if isinstance(value, list):
        return ", ".join(format_value(item, unit, spec, where=where) for item in value)
    if isinstance(value, bool | str):
        return str(value)
    shown = _usual(float(value), unit) if spec is None else spec
    number = _digits(float(value) / choices[shown], whole=isinstance(value, int) and not shown)
    if shown.startswith("$"):
        return f"${number}{shown[1:]}"
    if shown == "%":
        return f"{number}%"
    return f"{number} {shown}" if shown else number


def _usual(value: float, unit: str) -> str:
    """The unit that people use for a value of this size."""
    choices = UNITS[unit]
    if unit == "B/s":
        return "GB/s" if value >= 1e9 else "MB/s"
    if unit == "FLOP/s":
        return "TFLOP/s" if value >= 1e11 else "GFLOP/s"
    if unit == "s":
        return next((n for n in ("s", "ms", "us") if value >= choices[n]), "ns")
    if unit == "Hz":
        return "MHz"
    if unit == "B" and 2**20 <= value < 2**30 and value % 2**20 == 0:
        return "MiB"  # caches come in powers of two: 4 MiB is not 4 MB
    if unit in ("B", "B/token", "FLOP", "FLOP/token"):
        decimal = [name for name in choices if "iB" not in name]
        return next((n for n in reversed(decimal) if value >= choices[n]), decimal[0])
    return next(iter(choices))


def _digits(number: float, *, whole: bool) -> str:
    if whole or abs(number) >= 1e4:
        return f"{number:,.0f}"
    text = f"{number:,.4g}" if abs(number) < 1e3 else f"{number:,.1f}"
    if "e" in text:
        return text
    return text.rstrip("0").rstrip(".") if "." in text else text
