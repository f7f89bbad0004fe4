# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 05_async_timing.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 05 · The stopwatch that did not wait
#
# **40 minutes**, and an optional second sitting of 30. You will be able to
#
# - say why a GPU call returns before its work is done, and which lines make it wait,
# - write a stopwatch for GPU code that you can trust,
# - name the fault of a benchmark from its code,
# - find the point from which on the launch cost is hidden, and what to do below it.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("05-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 01 to 04, in case you start here:
#
# | word | meaning |
# |---|---|
# | kernel, [launch]({{course:docs}}/glossary.md#kernel-launch) | one function that runs on the GPU; the CPU's order to start it |
# | memory, compute, overhead | the three buckets: a program waits for bytes, for arithmetic, or for the CPU that launches |
# | implied bandwidth | bytes that must move, over the measured seconds. Above the datasheet it cannot be true |
# | fusion, [torch.compile]({{course:docs}}/glossary.md#torch-compile) | several operations in one kernel; what makes such kernels |
# | [L2]({{course:docs}}/glossary.md#l2), hot, cold | the GPU's cache; the data is in it, or is not |

# %%
# Run this cell first, and again after a restart.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import statistics
import time

import numpy as np
import torch

from helpers import explore, lab, plots

gpu = lab.setup("05_async_timing")

# %% [markdown]
# ## Two questions from before
#
# **05-1.** A colleague timed `relu` on an fp16 tensor. What is the implied bandwidth, in GB/s?
# (GB is 1e9 bytes. The numbers are yours alone.)

# %%
case = lab.case("05-1")
elements, microseconds = case["million elements"] * 1_000_000, case["microseconds"]

# %% nbgrader={"grade": false, "grade_id": "05-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
implied = ...  # GB/s
### BEGIN SOLUTION
implied = 4 * elements / (microseconds * 1e-6) / 1e9
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-1", implied)

# %% [markdown]
# **05-2.** Published, for Llama-2-7B on an A100-80 that writes one token after the other in eager mode:
# {{fact:result.gpt_fast.eager}}, so 39 ms per token, in {{fact:result.gpt_fast.operations}} operations. The memory could deliver the weights in 6.5 ms, and the arithmetic takes less than that.
# What do the 39 ms wait for?
#
# - **a** the memory
# - **b** the arithmetic
# - **c** the CPU that launches
# - **d** the bus between CPU and GPU
#
# <!-- derived: 39 ms; 6.5 ms -->

# %% nbgrader={"grade": false, "grade_id": "05-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
waits_for = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
waits_for = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-2", waits_for)

# %% [markdown]
# ## 1 · An order is not a result
#
# In the factory picture the CPU is the dispatcher. It writes an order on a slip, drops it into the
# tray of the factory, and turns to the next slip. It does not walk over and watch. The tray is the
# *queue*, and this way of working is called
# [asynchronous execution]({{course:docs}}/glossary.md#asynchronous-execution).
#
# `c = a @ b` on a GPU drops a slip. `c` exists at once: its shape is known and its place in memory
# is reserved. Its numbers come later. You never notice, because the factory works through the
# tray in order: whoever needs `c` queues behind it.
#
# Where the picture breaks: the tray has an end. It holds about a thousand slips, and then the
# dispatcher has to stand and wait.
#
# If you come from the front end: a launch is like calling `fetch` without `await`. The picture
# breaks twice. There is no promise to await for one call, only for everything so far; and the
# order is kept.
#
# Below, six kernels, and a stopwatch on the CPU. It shows how long the dispatcher was busy. Move
# the controls: when does the stopwatch show nearly the truth although nobody waits?

# %%
explore.queue(gpu)

# %% [markdown]
# Two things to see. If a kernel takes much longer than a launch, the GPU never stands still, and
# the stopwatch is far off. If a launch takes much longer, the GPU stands idle between the kernels,
# and the stopwatch is nearly right. Keep the second for later: it is the third bucket, overhead.
#
# ## 2 · Three clocks, one matmul
#
# Here is one large matrix product, and three ways to time it.

# %%
side = 1024 if gpu.cpu else 8192
if not gpu.cpu and torch.cuda.mem_get_info()[0] > 3e10:
    side = 16384  # a large card is a fast one: let it, too, be busy for some milliseconds
a = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)
b = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)


def wait():
    """Return when the GPU has done all that was asked. Without a GPU there is nothing to wait for."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def naive_ms(fn):
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1e3


def waited_ms(fn):
    wait()  # nothing old may run into the measurement
    start = time.perf_counter()
    fn()
    wait()  # and the clock must not stop before the work has
    return (time.perf_counter() - start) * 1e3


def events_ms(fn):
    if gpu.cpu:
        return waited_ms(fn)  # a CPU has no events
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    fn()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)  # in milliseconds

# %% [markdown]
# An *event* is a slip of its own: "write down the time when you get here". The GPU reads the
# clock, not the CPU.
#
# Two predictions, in ms: what does the naive clock show, and what the one that waits? The second
# you can compute: FLOP over the rate of this machine, which `lab.ceiling().rates` has in FLOP/s.

# %% nbgrader={"grade": false, "grade_id": "05-3-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
naive_guess = ...  # ms that naive_ms shows
waited_guess = ...  # ms that waited_ms shows
### BEGIN SOLUTION
rate = lab.ceiling().rates["fp32" if gpu.itemsize == 4 else "fp16"]
waited_guess = 2 * side**3 / rate * 1e3
naive_guess = waited_guess if gpu.cpu else 0.1
### END SOLUTION
lab.predict("05-3", naive_guess, unit="ms", label="naive")
lab.predict("05-3", waited_guess, unit="ms", label="waited")

# %%
def product():
    return a @ b


def typical(clock, fn, times=7):
    """The middle one of a few readings, each begun with an empty queue."""
    readings = []
    for _ in range(times):
        wait()
        readings.append(clock(fn))
    return statistics.median(readings)


matmul = lab.measure("05-3", product, label="matmul")
if matmul is not ...:
    readings = {clock.__name__: typical(clock, product) for clock in (naive_ms, waited_ms, events_ms)}
    for name, reading in readings.items():
        print(f"{name:10} {reading:9.4f} ms   ({gpu.origin}, {gpu.name})")
    lab.outcome("05-3", "naive", readings["naive_ms"])
lab.reveal("05-3", "matmul", prediction="waited")

# %% [markdown]
# (On a simulated card the clock on the wall is real and the kernel is the model's: the naive time is
# what *this* computer needs to play the launch.)
#
# **05-3.** Fill in the three readings in ms, and what the naive one would mean: the TFLOP/s that it
# implies for this product.

# %% nbgrader={"grade": false, "grade_id": "05-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
clocks = {"naive": ..., "synchronize": ..., "events": ..., "naive TFLOP/s": ...}
### BEGIN SOLUTION
clocks = {"naive": readings["naive_ms"], "synchronize": readings["waited_ms"],
          "events": readings["events_ms"]}
clocks["naive TFLOP/s"] = 2 * side**3 / (clocks["naive"] / 1e3) / 1e12
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-3", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-3", clocks)

# %% [markdown]
# A rate above the datasheet is the surest sign of a clock that did not wait. A tidy, repeatable,
# wrong number is worse than a noisy one: nothing about it looks wrong.
#
# ## 3 · What makes the CPU wait?
#
# Now the other way round. Suppose the GPU has work for a while, and Python reaches one of these
# lines. `y` is a small fp16 tensor on the GPU.
#
# | name | line |
# |---|---|
# | `double` | `z = y * 2` |
# | `shape` | `n = y.shape[0]` |
# | `sum` | `s = y.sum()` |
# | `item` | `s = y.sum().item()` |
# | `print` | `print(y)` |
# | `cpu` | `h = y.cpu()` |
# | `if` | `if y.sum() > 0: ...` |
# | `cast` | `z = y.to(torch.float32)` |
#
# **05-4.** Which lines make the CPU wait for the GPU? `"waits"` or `"runs on"` for each.

# %% nbgrader={"grade": false, "grade_id": "05-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
lines = {"double": ..., "shape": ..., "sum": ..., "item": ...,
         "print": ..., "cpu": ..., "if": ..., "cast": ...}
### BEGIN SOLUTION
lines = {"double": "runs on", "shape": "runs on", "sum": "runs on", "item": "waits",
         "print": "waits", "cpu": "waits", "if": "waits", "cast": "runs on"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("05-4", lines)

# %% [markdown]
# See for yourself: two matrix products are queued, then the line runs under a naive clock.

# %%
y = torch.ones(1000, device=gpu.device, dtype=gpu.dtype)
steps = {
    "double": lambda: y * 2,
    "shape": lambda: y.shape[0],
    "sum": lambda: y.sum(),
    "item": lambda: y.sum().item(),
    "print": lambda: str(y),  # what print does before it shows anything
    "cpu": lambda: y.cpu(),
    "if": lambda: 1 if y.sum() > 0 else 0,
    "cast": lambda: y.to(torch.float32),
}
for name, line in steps.items():
    wait()
    product(), product()
    print(f"{name:8} {naive_ms(line):9.3f} ms until Python goes on   ({gpu.origin})")
wait()
if gpu.cpu:
    print("A CPU has no queue: the products were done before the line was reached.")

# %% [markdown]
# If you come from the front end: you know this from the browser. Write a style, then read
# `offsetHeight` in a loop: each read forces a layout that could have been done once, later. `.item()`
# in a training loop is that read. The picture breaks in one place: the browser does *extra* layouts,
# while the GPU does no extra work. What is lost is the head start: the tray runs empty while the
# CPU stands still, and fills again only afterwards.
#
# The cure is the same as well: collect on the GPU (`total += loss.detach()`), and read once at the end.
#
# **Errors come late, too.** An index out of range inside a kernel is found when the kernel runs, not
# when it is queued. Python is further on by then, and the traceback blames an innocent line, often
# the next `.item()` or `print`:
#
# ```python
# picked = table[index]        # the index is wrong here
# loss = picked.sum() * 2      # queued, no complaint
# print(loss.item())           # RuntimeError: CUDA error: device-side assert triggered
# ```
#
# We do not run it: after this error a real card answers nothing until you restart the notebook. To
# find the guilty line, start Python with `CUDA_LAUNCH_BLOCKING=1`, so that every launch waits, or run the step on the CPU. Never
# leave that switch on for a timing.
#
# ## 4 · Your own stopwatch
#
# **05-5.** Write `time_gpu(fn)`. It takes a function without arguments and returns the **seconds** of
# one typical call. The check hands it kernels whose length it knows, on your GPU or on a simulated
# one, and some of them misbehave. So:
#
# 1. *wait*: the clock stops when the work is done (`wait()` from above, or events on a GPU),
# 2. *[warm-up]({{course:docs}}/glossary.md#warm-up)*: at least three calls before the first look at the clock,
# 3. *repeat*: ten calls or more, each timed on its own,
# 4. *median*: one odd call, slow or fast, moves a mean or a minimum, and not the median,
# 5. *seconds*, and no error of `fn` is hidden.
#
# (About eight lines. `torch.utils.benchmark.Timer` may do it for you; writing it once is worth more.)

# %% nbgrader={"grade": false, "grade_id": "05-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def time_gpu(fn):
    """Seconds of one typical, warm call of `fn`, a function without arguments."""
    ### BEGIN SOLUTION
    for _ in range(3):
        fn()
    times = []
    for _ in range(15):
        wait()
        start = time.perf_counter()
        fn()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-5", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
lab.check("05-5", time_gpu)

# %% [markdown]
# Your stopwatch beside the course's, on the same product.

# %%
try:
    mine = time_gpu(product)
except Exception as error:  # events and torch.cuda.synchronize, for example, where there is no card
    mine = print(f"time_gpu stopped here: {error}")
if isinstance(mine, (float, np.floating, torch.Tensor)) and matmul is not ...:
    print(f"time_gpu     {float(mine) * 1e3:9.4f} ms   ({gpu.origin}, {gpu.name})")
    print(f"lab.measure  {matmul.median * 1e3:9.4f} ms")
else:
    print("There is nothing to compare yet.")

# %% [markdown]
# Yours reads a little long: a start and a wait are inside it. For a kernel of some milliseconds
# nobody cares. Section 7 shows a kernel for which they are all there is.
#
# `lab.measure` keeps apart what a single number would mix. Here is one small operation, its data
# inside L2 (if your card has one that the course knows), measured with the cache cleared before each
# run (*cold*) and not (*hot*).

# %%
small = torch.randn(gpu.facts.l2 // 8 if gpu.facts else 2**18, device=gpu.device, dtype=gpu.dtype)
quick = {"budget": 0.3}
if gpu.origin == "simulated":  # a model needs no warming, and says the same each time
    quick |= {"warmup": 0.01, "min_samples": 4}
views = {}
for cache in ("cold", "hot"):
    m = lab.measure("05-5", lambda: small.relu(), label=cache, cache=cache, purpose="demonstration", **quick)
    if m is ...:
        continue
    times = {"first": m.first_call, "median": m.median, "p20": m.p20, "p80": m.p80, "wall": m.wall}
    if m.host:
        times["host"] = m.host
    views[cache if m.cache == cache else "also hot"] = {k: s * 1e6 for k, s in times.items()}
if views:
    print("in microseconds")
    lab.show_table(views)
if gpu.cpu:
    print("Nothing here can empty a CPU's caches: both rows are hot.")

# %% [markdown]
# | column | what it answers |
# |---|---|
# | `first` | the first call, with everything that is loaded or compiled for it. Never part of the median |
# | `median` | the time on the GPU of a typical run; half are faster |
# | `p20`, `p80` | a fifth are faster than the one, a fifth slower than the other. Far apart: measure again. (A simulated card has no spread) |
# | `wall` | what one call costs in a loop that waits once at its end, CPU and GPU together |
# | `host` | what the CPU needs to queue one call |
#
# Cold or hot, which is right? Both. In a large program other data has passed through the cache
# since the last time: cold. In a small loop over the same data: hot. Say which.
#
# A real card also changes its pace: cool, it may run faster than it can for long, and some seconds
# of hard work slow it down (the moving roof of notebook 01). So warm up by *time* where it matters,
# and measure rivals in turn, not first all of one and then all of the other.
#
# ## 5 · Six benchmarks that lie
#
# The cell measures, and builds from the parts what each of six broken benchmarks would print on this
# machine.

# %%
x = torch.randn(gpu.elements, device=gpu.device, dtype=gpu.dtype)
tiny, square = x[:1000].clone(), torch.randn(1536, 1536, device=gpu.device, dtype=gpu.dtype)


def chain(t):
    return t.cos().cos().cos()


fused = torch.compile(chain)
kept = {"purpose": "demonstration", **quick}
first = lab.measure("05-6", lambda: square @ square, label="first matmul of its size", **kept)
large = lab.measure("05-6", {"cos": lambda: x.cos(), "fused": lambda: fused(x)}, **kept)
little = lab.measure("05-6", {"eager, tiny": lambda: chain(tiny), "fused, tiny": lambda: fused(tiny)}, **kept)
cached = lab.measure("05-6", lambda: small.relu(), label="in cache", cache="hot", **kept)

# %%
def six_benchmarks():
    """What six broken benchmarks would print here, put together from the measurements above."""
    cos_s, compiler_s = large["cos"].median, large["fused"].first_call
    mean_s = (compiler_s + 9 * large["fused"].median) / 10
    gain = little["eager, tiny"].wall / little["fused, tiny"].median
    hot = 2 * small.numel() * gpu.itemsize / cached.median
    plain = 2 * x.numel() * gpu.itemsize / cos_s
    print(f"For comparison: x.cos() takes {cos_s * 1e3:.3g} ms and moves {plain / 1e9:,.4g} GB/s.")
    return [
        plots.Benchmark("A", """x.cos(); wait()
start = time.perf_counter()
x.cos()
print((time.perf_counter() - start) * 1e3)""", f"{(large['cos'].host or cos_s) * 1e3:.3g} ms"),
        plots.Benchmark("B", """# the first lines of a program
begin.record()
square @ square
end.record(); end.synchronize()
print(begin.elapsed_time(end))""", f"{first.first_call * 1e3:.3g} ms"),
        plots.Benchmark("C", """fused = torch.compile(chain); wait()
start = time.perf_counter()
for _ in range(10): fused(x)
wait()
print((time.perf_counter() - start) / 10 * 1e3)""", f"{mean_s * 1e3:,.4g} ms"),
        plots.Benchmark("D", """before = wall time per call, chain(tiny)
after = events around fused(tiny), queue full
print(before / after)""", f"{gain:.3g} times"),
        plots.Benchmark("E", """for _ in range(100): small.relu()
seconds = events around small.relu()
print(small.nbytes * 2 / seconds / 1e9)""", f"{hot / 1e9:,.4g} GB/s"),
        plots.Benchmark("F", """seconds = time_gpu(lambda: x.cos())
print(x.nbytes * 2 / seconds / 2**30)""", f"{plain / 2**30:,.4g} GB/s"),
    ]


if first is not ... and cached is not ... and len(large) == len(little) == 2:
    axes = plots.draw_benchmarks(None, six_benchmarks(), gpu.origin, gpu.name,
                                 title="Six benchmarks, and what they print")
    plots.show(axes.figure)

# %% [markdown]
# Some of the six may print nearly the truth here. That makes them no better. On a CPU, for example, A
# is right. On a simulated card B is nearly right, since a model loads no libraries, and the compiler
# of C takes a made-up time. Reported from a real card, whose name the source leaves out: the first
# handle of the matrix library took {{fact:result.first_call.first}}, later ones {{fact:result.first_call.later}}.
#
# **05-6.** Name the fault of each. Each name fits once.
#
# `"does not wait"`, `"no warm-up"`, `"counts the compiler"`, `"mixes two clocks"`,
# `"data in the cache"`, `"GiB called GB"`

# %% nbgrader={"grade": false, "grade_id": "05-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
faults = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ...}
### BEGIN SOLUTION
faults = {"A": "does not wait", "B": "no warm-up", "C": "counts the compiler",
          "D": "mixes two clocks", "E": "data in the cache", "F": "GiB called GB"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-6", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-6", faults)

# %%
done = isinstance(faults, dict) and ... not in faults.values()
if done and first is not ... and cached is not ... and len(large) == len(little) == 2:
    user = little["eager, tiny"].wall / little["fused, tiny"].wall
    plain = 2 * x.numel() * gpu.itemsize / large["cos"].median
    cold = 2 * small.numel() * gpu.itemsize / views["cold"]["median"] * 1e6 if "cold" in views else None
    print("What an honest one of each prints:")
    lab.show_table({name: {"": value} for name, value in {
        "A": f"{large['cos'].median * 1e3:.3g} ms",
        "B": f"{first.median * 1e3:.3g} ms",
        "C": f"{large['fused'].median * 1e3:.3g} ms",
        "D": f"{user:.3g} times",
        "E": f"{cold / 1e9:,.4g} GB/s" if cold else "cannot tell",
        "F": f"{plain / 1e9:,.4g} GB/s",
    }.items()})

# %% [markdown]
# Which clock for which question?
#
# | question | clock |
# |---|---|
# | how long does this kernel take? | events, with the queue held full; say cold or hot |
# | how long does a user wait? | wall clock, waiting on both sides, warm |
# | how much faster is B than A? | the *same* clock for both, measured in turn |
#
# **05-7.** Now mend three of them. Your logs, in words: a compiled loop of `calls` calls took `total`
# seconds, of which `first` went into its first call. A chain took `eager` wall and GPU time per call,
# and its compiled version `fused` wall and GPU time. A bandwidth was `printed` as GB/s, after
# dividing by 2**30.
#
# Give the honest numbers: ms per call of the compiled loop *once it is warm*, the speed-up that a
# *user waiting at the wall clock* gets from fusing, and the bandwidth in GB/s.

# %%
log = lab.case("05-7")

# %% nbgrader={"grade": false, "grade_id": "05-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
honest = {"ms per call": ..., "speed-up": ..., "GB/s": ...}
### BEGIN SOLUTION
honest = {
    "ms per call": (log["total (s)"] - log["first (s)"]) / (log["calls"] - 1) * 1e3,
    "speed-up": log["eager: wall (us)"] / log["fused: wall (us)"],
    "GB/s": log["printed"] * 2**30 / 1e9,
}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("05-7", honest)

# %% [markdown]
# This is the end of the core. Fill the recap at the bottom (05-10) now if your 40 minutes are
# over, and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 6 · When the tray runs empty
#
# Back to the second thing that the timeline showed. If an order takes longer to write than to carry
# out, the factory waits for the dispatcher: [overhead]({{course:docs}}/glossary.md#overhead-bound).
# The cure with the least effort is a larger batch: the same number of orders, more work in each.
#
# Take `relu` on a batch of rows, 4,096 fp16 elements each. From how many rows on does the queue stop
# running dry? Commit a number: the CPU's time for one order, times what the memory can move in
# it. `lab.ceiling()` knows both, as `host_per_op` (seconds) and `bandwidth`.

# %% nbgrader={"grade": false, "grade_id": "05-8-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
rows_guess = ...  # rows from which on the GPU is busy all the time
### BEGIN SOLUTION
roof = lab.ceiling()
rows_guess = roof.host_per_op * roof.bandwidth / (2 * 4096 * gpu.itemsize)
### END SOLUTION
lab.predict("05-8", rows_guess, unit="rows", label="rows")

# %%
rows = [2**k for k in range(7, 11 if gpu.cpu else 15)]


def relu_of(n):
    batch = torch.randn(n, 4096, device=gpu.device, dtype=gpu.dtype)
    return lambda: torch.relu(batch)


sweep = lab.measure("05-8", {f"{n} rows": relu_of(n) for n in rows}, cache="hot", **quick)

# %%
if gpu.cpu:
    print("A CPU has no queue that could run dry. Read on; the figure needs a GPU, or the simulated one.")
elif len(sweep) == len(rows):
    points = [sweep[f"{n} rows"] for n in rows]
    series = {"GPU runs one": [m.median for m in points], "loop, per call": [m.wall for m in points],
              "CPU queues one": [m.host for m in points]}
    guess = lab.predicted("05-8", "rows")
    axes = plots.draw_sweep(None, rows, series, logx=True, logy=True, title="When is the queue full?",
                            xlabel="rows in the batch", ylabel="time per call",
                            knee=guess, knee_label="your prediction",
                            origin=gpu.origin, device=gpu.name)
    plots.show(axes.figure)

# %% [markdown]
# Follow the loop. On the left it lies on the CPU's line: more rows cost nothing, because the GPU was
# idle anyway. On the right it lies on the GPU's line: the CPU is far ahead, and what a launch costs
# no longer matters. A program takes the *longer* of the two, not the sum.
#
# **05-8.** What is the smallest batch of this sweep for which the GPU needs at least as long as the
# CPU?

# %% nbgrader={"grade": false, "grade_id": "05-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
full = ...  # rows
### BEGIN SOLUTION
full = next((n for n in rows if sweep[f"{n} rows"].median >= (sweep[f"{n} rows"].host or 0)), rows[-1])
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-8", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("05-8", full)

# %%
if isinstance(full, (int, float)) and not gpu.cpu:
    lab.outcome("05-8", "rows", full)

# %% [markdown]
# Bear three things in mind. The sweep knows only powers of two. The launch cost belongs to the *host*:
# a faster card with the same host needs a larger batch to be busy. And as long as the batch fits into
# L2, the GPU is faster than your prediction from the memory allowed: that is the steep step in its
# line. (A model steps, a real card slides. And the simulated host is no fast one: its cost per
# operation is that of the published 7B run in question 05-2.)
#
# ## 7 · Events can lie as well
#
# Here is one addition of a thousand elements, once with a plain pair of events and once with
# `lab.measure`.

# %%
reading = typical(events_ms, lambda: tiny + 1)
held = lab.measure("05-5", lambda: tiny + 1, label="tiny", purpose="demonstration", **quick)
print(f"a plain pair of events: {reading * 1e3:8.2f} us   ({gpu.origin}, {gpu.name})")
if held is not ...:
    print(f"lab.measure:            {held.median * 1e6:8.2f} us")
if gpu.cpu:
    print("A CPU has no events; here both are wall clocks.")

# %% [markdown]
# The pair is not wrong: it says how much time passed on the GPU between two slips. But the GPU stood
# idle there, waiting for the dispatcher to write the order between them. `lab.measure` first puts a
# kernel into the queue that only spins. While it spins, everything is queued behind it, and then the
# GPU runs it without a gap. That is the "queue held full" of the table above.
#
# ## 8 · One slip for many orders
#
# What if the batch cannot grow, as when one user waits for one answer? Then write fewer slips. A
# [CUDA graph]({{course:docs}}/glossary.md#cuda-graph) records the launches of a program once and
# replays all of them with one submission.
#
# If you come from the front end: it is the bundle that replaces a hundred small requests. The picture breaks
# where a bundle would not care: shapes and memory addresses in a graph are frozen, nothing in it may
# wait or decide on a value, and every kernel still runs one by one.
#
# The program: 32 additions, one after the other, on 2,048 elements. Which bucket is it in, and what
# do three changes do to its wall time?

# %% nbgrader={"grade": false, "grade_id": "05-9-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
bucket = ...  # "memory", "compute" or "overhead"
effects = {"half the elements": ..., "ten times the elements": ..., "one launch": ...}
# each effect: "much less", "about the same" or "much more"
### BEGIN SOLUTION
bucket = "overhead"
effects = {"half the elements": "about the same", "ten times the elements": "about the same",
           "one launch": "much less"}
### END SOLUTION
lab.predict("05-9", bucket, label="bucket", options=["memory", "compute", "overhead"])
for name, word in effects.items():
    lab.predict("05-9", word, label=name, options=["much less", "about the same", "much more"])

# %%
def many(t):
    for _ in range(32):
        t = t + 1
    return t


def as_graph(function):
    """Record the launches of `function` once; each call replays them as one."""
    function()
    torch.cuda.synchronize()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        function()
    return recorded.replay


base, half, tenfold = (torch.zeros(n, device=gpu.device, dtype=gpu.dtype) for n in (2048, 1024, 20480))
versions = {
    "as it is": lambda: many(base),
    "half the elements": lambda: many(half),
    "ten times the elements": lambda: many(tenfold),
}
if gpu.cpu:
    print("A CPU has no graph that could be recorded: the third change needs a GPU, or the simulated one.")
else:
    versions["one launch"] = as_graph(lambda: many(base))
changes = lab.measure("05-9", versions, **quick)
for name in changes:
    if name in effects:
        lab.compare("05-9", name, "as it is", prediction=name, clock="wall")

# %% [markdown]
# **05-9.** Which bucket do these times leave standing? And which one change proves it, where the
# others only rule something out?

# %% nbgrader={"grade": false, "grade_id": "05-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdict = {"bucket": ..., "decided by": ...}
# "memory", "compute" or "overhead"; "half the elements", "ten times the elements" or "one launch"
### BEGIN SOLUTION
verdict = {"bucket": "overhead", "decided by": "one launch"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-9", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-9", verdict)

# %% [markdown]
# In notebook 04 the same graph did nothing for ten large cosines. There the launches were hidden
# behind the kernels. Here they were the bill.
#
# Published, for a small model on a Colab T4: {{fact:result.action_expert.t4.eager}} per step in eager mode, {{fact:result.action_expert.t4.graph}} as a CUDA
# graph. And the limit of it: in a training run on {{fact:result.cuda_graphs.mask_rcnn_gpus}} GPUs the part that was put into a graph fell from {{fact:result.cuda_graphs.mask_rcnn_before}} to
# {{fact:result.cuda_graphs.mask_rcnn_after}}, and the whole job became {{fact:result.cuda_graphs.mask_rcnn_whole}} times faster, because the rest was not in it.

# %% [markdown]
# ## Recap
#
# **05-10.** Fill your row of the running summary table: what does a stopwatch that does not wait show
# of a program in each bucket? `"far too little"`, `"nearly the truth"` or `"far too much"`.

# %% nbgrader={"grade": false, "grade_id": "05-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # what the naive stopwatch shows of each
### BEGIN SOLUTION
row = {"memory": "far too little", "compute": "far too little", "overhead": "nearly the truth"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "05-10", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("05-10", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - A launch is an order. Wait before you stop the clock, or you time the order.
# - Warm up, repeat, take the median, and say which clock and which cache.
# - Where the CPU is the slower one, the queue runs dry. Give each launch more work, or put many
#   launches into one.
#
# **Next, 06:** twice the batch at nearly the same latency. You have now seen one reason for it. The
# next notebook has another, and a test that tells the two apart.
#
# Further reading: the PyTorch documentation, *CUDA semantics*, section on asynchronous execution;
# PyTorch blog, *Accelerating PyTorch with CUDA Graphs*, the source of the training figures;
# the source of `triton.testing.do_bench`, which empties the cache as `lab.measure` does.
