"""The host clock, in one place, so that it can be replaced.

Everything in `helpers` that asks "what time is it on the host?" asks `now()`. Normally that is
`time.perf_counter`. The simulated GPU installs its virtual host clock here, and tests install
clocks whose every tick they know.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Source = Callable[[], float]

_sources: list[Source] = []


def now() -> float:
    """Seconds on the host clock; only differences mean anything."""
    return _sources[-1]() if _sources else time.perf_counter()


def install(source: Source) -> None:
    """Make `source` (a function that returns seconds) the host clock until it is uninstalled.

    Sources nest: the last one installed is read. Raises TypeError if `source` is not callable.
    """
    if not callable(source):
        raise TypeError(f"A clock is a function that returns seconds, not {source!r}.")
    _sources.append(source)


def uninstall(source: Source | None = None) -> None:
    """Remove `source`, wherever it stands; without an argument, the last one installed.

    Raises RuntimeError if it is not installed.
    """
    # Equality, not identity: a bound method is a new object each time it is looked up.
    positions = [i for i, s in enumerate(_sources) if source is None or s == source]
    if not positions:
        raise RuntimeError("This clock is not installed: install it before you uninstall it.")
    del _sources[positions[-1]]


def installed() -> bool:
    """True while the host clock is not the real one."""
    return bool(_sources)


@contextmanager
def using(source: Source) -> Iterator[Source]:
    """`install` for the length of a `with` block, also when it ends in an exception."""
    install(source)
    try:
        yield source
    finally:
        uninstall(source)
