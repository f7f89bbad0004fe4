"""How long does a function take? One timing core for GPU and CPU.

`measure(fn)` times one function, `interleave(f, g)` several in turn so that their ratio survives
a machine that drifts, and `ratio(a, b)` compares. On a GPU the time is that between two CUDA
events while the queue is held; on a CPU it is wall time. Every result says which, and whether it
was measured or simulated.
"""

import hashlib
from collections.abc import Callable

from helpers import clock
from helpers.timing.cuda_sampler import CudaSampler
from helpers.timing.errors import MeasureError, check_callable, name_of
from helpers.timing.host_sampler import HostSampler
from helpers.timing.measurement import Measurement, Ratio, quantile, ratio, seconds, spread

__all__ = [
    "MeasureError",
    "Measurement",
    "Ratio",
    "interleave",
    "measure",
    "quantile",
    "ratio",
    "seconds",
    "spread",
]

STEADY = 0.02  # enough samples once the spread is this small


def measure(
    fn: Callable[[], object],
    *,
    cache: str = "cold",
    budget: float = 1.0,
    warmup: float = 0.1,
    min_samples: int = 10,
    max_samples: int = 200,
    device: str | None = None,
) -> Measurement:
    """Seconds per call of `fn`, a function without arguments.

    The first call is timed apart. Then `fn` warms up until two windows of calls agree within 5 %,
    for `warmup` seconds at most. Then samples are taken until their spread is at most 2 % (not
    before `min_samples`), until there are `max_samples`, or until `budget` seconds have gone by
    since the first call ended; a call longer than the budget is still sampled once, with a note.

    cache: "cold" empties the GPU's L2 before each sample by zeroing a buffer, as a call finds it
    in a large program; "hot" does not, as in a loop over the same data. A CPU is always hot.
    device: "cuda" or "cpu"; None means the GPU if there is one.

    Raises MeasureError, one sentence, when `fn` is not callable, raises, runs out of memory, or
    returns without having done anything that can be timed.
    """
    return interleave(
        fn,
        cache=cache,
        budget=budget,
        warmup=warmup,
        min_samples=min_samples,
        max_samples=max_samples,
        device=device,
    )[0]


def interleave(
    *fns: Callable[[], object],
    cache: str = "cold",
    budget: float = 1.0,
    warmup: float = 0.1,
    min_samples: int = 10,
    max_samples: int = 200,
    device: str | None = None,
) -> tuple[Measurement, ...]:
    """Measure several functions in turn: one sample of each per round, rotating who goes first.

    What slows the machine down meanwhile slows all of them, so `ratio` of two of the results is
    trustworthy where two separate measurements are not. Options as in `measure`; `budget` is per
    function.
    """
    _check_options(fns, cache, budget, warmup, min_samples, max_samples)
    make = CudaSampler if _on_gpu(device) else HostSampler
    shared = len(fns) > 1
    samplers = [
        make(fn, name_of(fn) + f" (argument {i})" * shared, cache, min(warmup, budget / 2), shared)
        for i, fn in enumerate(fns, 1)
    ]
    first = 0.0
    begin = clock.now()
    for sampler in samplers:
        sampler.start()
        first += sampler.first_call
    deadline = begin + first + budget * len(fns)
    rounds, enough = 0, False
    while not enough:
        round_began = clock.now()
        for i in range(len(samplers)):
            samplers[(i + rounds) % len(samplers)].take()
        rounds += 1
        steady = rounds >= min_samples and all(spread(s.samples) <= STEADY for s in samplers)
        now = clock.now()
        late = now + (now - round_began) > deadline  # the next round would end too late
        enough = steady or rounds >= max_samples or late
    if late and rounds < min_samples:
        for sampler in samplers:
            sampler.notes.append(_few(rounds, budget))
    for sampler in samplers:
        sampler.finish()
    group = None
    if shared:
        # From the samples, so that a simulated run gives the same bytes each time.
        text = repr([s.samples for s in samplers])
        group = hashlib.sha256(text.encode()).hexdigest()[:16]
    return tuple(_result(sampler, group) for sampler in samplers)


def _result(sampler: HostSampler, group: str | None) -> Measurement:
    return Measurement(
        samples=tuple(sampler.samples),
        first_call=sampler.first_call,
        host=sampler.host,
        wall=sampler.wall,
        clock=sampler.kind,
        cache=sampler.cache,
        origin=sampler.origin,
        device=sampler.device,
        held=sampler.held,
        notes=tuple(sampler.notes),
        group=group,
    )


def _few(n: int, budget: float) -> str:
    if n == 1:
        return f"one sample only: a call is too long for the budget of {budget:g} s"
    return f"{n} samples only: the budget of {budget:g} s was used up"


def _on_gpu(device: str | None) -> bool:
    import torch

    available = torch.cuda.is_available()
    if device is None:
        return available
    kind = str(device).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise MeasureError(f"device must be 'cuda', 'cpu' or None, not {device!r}.")
    if kind == "cuda" and not available:
        raise MeasureError(
            "device='cuda' was asked for, but there is no CUDA GPU here: choose device='cpu', or "
            "activate the simulated GPU first."
        )
    return kind == "cuda"


def _check_options(
    fns: tuple[object, ...],
    cache: str,
    budget: float,
    warmup: float,
    min_samples: int,
    max_samples: int,
) -> None:
    if not fns:
        raise MeasureError("There is nothing to measure: give at least one function.")
    for i, fn in enumerate(fns, 1):
        check_callable(fn, "What you gave" if len(fns) == 1 else f"Argument {i}")
    if cache not in ("cold", "hot"):
        raise MeasureError(f"cache must be 'cold' or 'hot', not {cache!r}.")
    if not budget > 0 or warmup < 0:
        raise MeasureError(
            f"budget must be above 0 s and warmup not below 0 s, not {budget!r} and {warmup!r}."
        )
    if not 1 <= min_samples <= max_samples:
        raise MeasureError(
            f"min_samples ({min_samples}) must be at least 1 and at most max_samples "
            f"({max_samples})."
        )
