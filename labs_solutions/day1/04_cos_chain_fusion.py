# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 04_cos_chain_fusion.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 04 · The cos chain: one trip instead of three
#
# **40 minutes**, and an optional second sitting of 50. You will be able to
#
# - count the bytes and the kernels of a chain of operations before you run it,
# - fuse the chain with `torch.compile` and prove from a measurement that it worked,
# - tell a believable timing from an impossible one,
# - say when fusion is worth nothing.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("04-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 01 to 03, in case you start here:
#
# | word | meaning |
# |---|---|
# | [kernel]({{course:docs}}/glossary.md#kernel), [launch]({{course:docs}}/glossary.md#kernel-launch) | one function that runs on the GPU; the CPU's order to start it |
# | roof | the fastest a part can go: on paper (*datasheet*), as others saw it (*sustained*), or on your machine (its *ceiling*) |
# | memory, compute, overhead | the three buckets: a program waits for bytes, for arithmetic, or for the CPU that launches |
# | [tensor core]({{course:docs}}/glossary.md#tensor-core), vector unit | hardware for matrix products; hardware for everything else |
# | [L2]({{course:docs}}/glossary.md#l2) | the GPU's cache: a small memory on the chip, several times faster than the large one. *Hot*: the data is in it. *Cold*: it is not |

# %%
# Run this cell first, and again after a restart.
import functools
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import time

import torch

from helpers import counting, devices, explore, lab, plots

gpu = lab.setup("04_cos_chain_fusion")

# %% [markdown]
# ## Two questions from before
#
# **04-1.** `relu` on an fp16 tensor: one operation per element, the element comes in, the element
# goes out. What is its
# [arithmetic intensity]({{course:docs}}/glossary.md#arithmetic-intensity), in FLOP per byte?

# %% nbgrader={"grade": false, "grade_id": "04-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
intensity = ...  # FLOP per byte
### BEGIN SOLUTION
intensity = 1 / (2 + 2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-1", intensity)

# %% [markdown]
# **04-2.** Which part of the machine evaluates `cos` for each element?
#
# - **a** the tensor cores
# - **b** the vector units
# - **c** the copy engine
# - **d** the CPU

# %% nbgrader={"grade": false, "grade_id": "04-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
unit = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
unit = "b"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-2", unit)

# %% [markdown]
# ## 1 · Count the lorries
#
# In the factory picture, device memory is the warehouse and the compute units are the factory.
# Lorries carry elements in and results out. One PyTorch operation is one order: everything comes
# in, is worked on, and goes back to the warehouse. The next order fetches it again.
#
# `x.cos().cos().cos()` is three orders. The two results in the middle are carried out and
# straight back in, and nobody ever looks at them. **[Fusion]({{course:docs}}/glossary.md#fusion)** merges the orders: each element
# stays in the factory, in a *[register]({{course:docs}}/glossary.md#register)*, until all three cosines are done.
#
# Mind the word *trip*: here it is out and back, a read and a write. Some authors count one way;
# for them `cos().cos()` is four, and two when fused.
#
# If you come from the front end: `map().map().map()` builds two arrays that nobody wants. One
# `map` with the three functions inside does not. The picture breaks in one place: an array in
# JavaScript also costs the allocator time. Here only the lorries count.

# %%
eager_picture, fused_picture = plots.draw_trips_pair(3, elements=None)
plots.show(eager_picture.figure)

# %% [markdown]
# The lab's tensor is large on purpose, so that no cache can hold it.

# %%
n, itemsize = gpu.elements, gpu.itemsize
x = torch.randn(n, device=gpu.device, dtype=gpu.dtype)
print(f"x has {n:,} elements of {itemsize} bytes: {n * itemsize / 1e6:,.0f} MB")
print(f"One trip in and out moves {2 * n * itemsize / 1e6:,.0f} MB")

# %% [markdown]
# **04-3.** Write a function that returns the **bytes** a chain of pointwise operations moves. The
# check calls it with sizes of its own.

# %% nbgrader={"grade": false, "grade_id": "04-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_moved(elements, bytes_per_element, operations, fused):
    """Bytes that a chain of `operations` pointwise operations moves, in and out together.

    `fused` is True when the whole chain is one kernel. (About two lines.)
    """
    ### BEGIN SOLUTION
    trips = 1 if fused else operations
    return 2 * elements * bytes_per_element * trips
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-3", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("04-3", bytes_moved)

# %% [markdown]
# ## 2 · One cosine: predict, then measure
#
# How long does one `x.cos()` take? You know the bytes. Now you need the speed of the memory. For
# a T4 the datasheet says {{fact:device.t4.bandwidth}}, and a published run that added two large arrays
# sustained {{fact:device.t4.sustained.bandwidth}}. The cell below copies a large tensor on *your* machine
# and puts its ceiling beside the published roofs.

# %%
for roof in lab.roofs():
    operations = f"{roof.vector_rate / 1e12:.2f}" if roof.vector_rate else "?"
    print(f"{roof.label:20} {roof.bandwidth / 1e9:6,.0f} GB/s   "
          f"vector units {operations:>5} T operations/s   ({roof.origin})")
if gpu.origin == "simulated":
    print("This card is a model. It was set to published figures, or to a share of the datasheet where\n"
          "there are none, and here they come back. On a real card the last line can surprise you.")

# %% [markdown]
# Commit a number in milliseconds. It is locked when you run the cell: a prediction made after
# the measurement teaches nothing. Being wrong costs nothing.

# %% nbgrader={"grade": false, "grade_id": "04-4-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
prediction_ms = ...  # how long one x.cos() takes, in ms
### BEGIN SOLUTION
prediction_ms = 2 * n * itemsize / lab.ceiling().bandwidth * 1e3
### END SOLUTION
lab.predict("04-4", prediction_ms, unit="ms")

# %%
cos1 = lab.measure("04-4", lambda: x.cos(), label="cos x1")
lab.reveal("04-4", "cos x1")

# %% [markdown]
# Read the bars from the bottom. On a GPU the last bar cannot be shorter than the datasheet bound,
# and it should sit close to the ceiling bound: the memory was busy all the time, and nothing else
# matters. If it is far longer than the ceiling bound, that is your first question, not noise.
#
# **04-4.** Turn the measured time back into a bandwidth, in GB/s (GB is 1e9 bytes). `cos1.median`
# is in seconds. This *implied bandwidth* is the number to look at first in any pointwise timing.

# %% nbgrader={"grade": false, "grade_id": "04-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
achieved = ...  # GB/s
### BEGIN SOLUTION
achieved = 2 * n * itemsize / cos1.median / 1e9
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("04-4", achieved)

# %% [markdown]
# ## 3 · Three cosines, one kernel
#
# Here is the chain, and the number of kernels it launches. Do not take that number for granted:
# one PyTorch operation can be one kernel or several. On a real GPU the profiler counts them; the
# simulated card applies the compiler's rules, and says *modelled*.

# %%
def chain(x):
    return x.cos().cos().cos()


chain_kernels = lab.kernels(chain, x)

# %% [markdown]
# **04-5.** Make `fused`, a function that computes the same in **one** kernel. PyTorch can write
# it for you. (One line. The last section shows the same kernel by hand.)
#
# The first call of a compiled function compiles it, which takes seconds. The measurements below
# keep it apart as the *first call*.

# %% nbgrader={"grade": false, "grade_id": "04-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
fused = ...
### BEGIN SOLUTION
fused = torch.compile(chain)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-5", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("04-5", fused)

# %% [markdown]
# ## 4 · The result table
#
# How many times faster than the eager chain will `fused` be? Three trips become one. Commit a
# factor.

# %% nbgrader={"grade": false, "grade_id": "04-6-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
speedup = ...  # time of chain / time of fused
### BEGIN SOLUTION
speedup = 3
### END SOLUTION
lab.predict("04-6", speedup, unit="times", label="speed-up")

# %%
runs = lab.measure("04-6", {"cos x1": lambda: x.cos(), "cos x3": lambda: chain(x),
                            "fused": ... if fused is ... else lambda: fused(x)})
lab.compare("04-6", "cos x3", "fused", prediction="speed-up")

# %% [markdown]
# The *first call* of the fused row is the compiler at work (on the simulated card a made-up,
# fixed time). It may have to be paid again when the shape changes, and it never belongs into the
# median.
#
# **04-6.** Fill the table. One row per version, four columns:
#
# | column | meaning |
# |---|---|
# | `kernels` | kernels launched, counted with `lab.kernels(function, x)` |
# | `gb` | GB moved, from your `bytes_moved` |
# | `ms` | the measured median in ms, from `runs` |
# | `gb_per_s` | the implied bandwidth: `gb` over the time, in GB/s |

# %% nbgrader={"grade": false, "grade_id": "04-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
# {"cos x1": {"kernels": ..., "gb": ..., "ms": ..., "gb_per_s": ...}, "cos x3": ..., "fused": ...}
table = ...
### BEGIN SOLUTION
table = {}
for name, function, operations, is_fused in [("cos x1", torch.cos, 1, False),
                                             ("cos x3", chain, 3, False),
                                             ("fused", fused, 3, True)]:
    gb = bytes_moved(n, itemsize, operations, is_fused) / 1e9
    seconds = runs[name].median
    table[name] = {"kernels": lab.kernels(function, x), "gb": gb, "ms": seconds * 1e3,
                   "gb_per_s": gb / seconds}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-6", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("04-6", table)

# %% [markdown]
# Your table beside what the ceiling allows: the bytes of a row over the bandwidth of this machine.

# %%
one_trip_ms = 2 * n * itemsize / lab.ceiling().bandwidth * 1e3
lab.show_table(table, bound_ms={"cos x1": one_trip_ms, "cos x3": 3 * one_trip_ms,
                                "fused": one_trip_ms})

# %% [markdown]
# Hold `ms` against `bound_ms`. The eager rows should stand on the memory roof: both agree. Now the
# fused row. If it stands there too, the trips were the whole bill and you got your factor
# of three. If its implied bandwidth is *lower*, something besides memory takes time.
#
# The ledger says what. Lorries and machines work at the same moment, so a kernel takes the *longer*
# of moving and computing, not the sum. The lines below give both, and what the CPU needs to queue
# the launches meanwhile. The bar shows what counts, and hatched, what nothing explains. (On the
# simulated card nothing can be left over: the same model made the times.)

# %%
lab.ledger("04-6", ["cos x1", "cos x3", "fused"], fused=["fused"])

# %% [markdown]
# Fusion took away two of three trips. It took away no cosine. Section 7 finds the point where
# the cosines become the bill.
#
# ## 5 · The same answer?
#
# A speed-up without a check is a rumour. Compare both versions on a sample.

# %%
sample = torch.linspace(-3, 3, 1024, device=gpu.device, dtype=gpu.dtype)
expected = chain(sample)
if fused is ...:
    print("There is no fused version to compare yet.")
else:
    got = fused(sample)
    print("equal with the default tolerance:", torch.allclose(expected, got))

# %% [markdown]
# **04-7.** Find the largest absolute `difference` between `expected` and `got`, and choose a
# `tolerance` for `torch.allclose(expected, got, atol=tolerance)`: wide enough for this difference,
# and not much wider, so that real mistakes still show.

# %% nbgrader={"grade": false, "grade_id": "04-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
agreement = {"difference": ..., "tolerance": ...}
### BEGIN SOLUTION
difference = (expected - got).abs().max().item()
agreement = {"difference": difference, "tolerance": max(4 * difference, 1e-6)}
assert torch.allclose(expected, got, atol=agreement["tolerance"])
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("04-7", agreement)

# %% [markdown]
# ## 6 · A timing that lies
#
# The GPU answers late: a launch returns before the kernel runs (notebook 05 is about that). Here
# is the mistake that nearly everybody makes once, made on purpose: a stopwatch that does not wait.

# %%
def wait_for_gpu():
    if not gpu.cpu:
        torch.cuda.synchronize()


def stopwatch(function, wait):
    """Seconds for one call, by the wall clock. `wait=False` is the mistake."""
    function()
    wait_for_gpu()
    start = time.perf_counter()
    function()
    if wait:
        wait_for_gpu()
    return time.perf_counter() - start


print(f"{gpu.name}, by the wall clock of this machine")
for wait in (False, True):
    one = sorted(stopwatch(lambda: x.cos(), wait) for _ in range(9))
    three = sorted(stopwatch(lambda: chain(x), wait) for _ in range(9))
    print(f"wait={wait!s:5}  one cosine {one[4] * 1e3:7.3f} ms  three {three[4] * 1e3:7.3f} ms  "
          f"ratio {three[4] / one[4]:4.1f}  spread {(one[7] - one[1]) / one[4]:4.0%}  "
          f"implied {2 * n * itemsize / one[4] / 1e9:8,.0f} GB/s")
if gpu.cpu:
    print("A CPU has no queue: it works when it is told, and both lines agree.")

# %% [markdown]
# The second line reads a little long: starting and waiting are inside it too. Notebook 05 removes
# that as well.
#
# **04-8.** Suppose you only saw the first line of a run on a GPU. Which number gives the mistake
# away?
#
# - **a** the ratio of three to one
# - **b** the spread of the nine runs
# - **c** the implied bandwidth
# - **d** the number of kernels

# %% nbgrader={"grade": false, "grade_id": "04-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
clue = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
clue = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-8", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("04-8", clue)

# %% [markdown]
# This is the end of the core. Fill the recap at the bottom (04-14) now if your 40 minutes are
# over, and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 7 · When does fusion stop being free?
#
# Let the chain grow inside one kernel. The trip stays the same, the arithmetic grows. At some
# length, the *knee*, arithmetic takes as long as the trip. Before it more work costs nothing.
#
# Start with the cheapest operation there is, a multiply by a number close to 1 (a multiply by 2
# overflows fp16 after 16 repeats, and then two wrong answers agree: infinity equals infinity).
# The tensor is fp32 here: more bytes per element, so a longer flat part to look at.
#
# **04-9.** Write `knee`: the number of repeats at which arithmetic takes as long as one trip in
# and out. `vector_rate` counts plain operations per second; `instructions` is how many one repeat
# takes.

# %% nbgrader={"grade": false, "grade_id": "04-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def knee(bandwidth, vector_rate, bytes_per_element, instructions):
    """Repeats at which arithmetic and one trip (in and out) take equally long.

    bandwidth in bytes/s, vector_rate in operations/s. (About three lines.)
    """
    ### BEGIN SOLUTION
    trip = 2 * bytes_per_element / bandwidth
    repeat = instructions / vector_rate
    return trip / repeat
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-9", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-9", knee)

# %% [markdown]
# The sweep makes one fused kernel per length, from multiplies and from cosines. Where will the
# *cosine* bend? A cosine is not one instruction: it reduces its argument, evaluates a polynomial and
# picks a sign. We counted the instructions in the code that NVIDIA's compiler writes. A *slot* is
# one vector unit busy for one clock: a multiply takes one. The cell prints what a cosine takes.
# Commit a number of cosines.

# %% nbgrader={"grade": false, "grade_id": "04-9-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
cosine_slots = devices.slots(["cos"], gpu.facts.fp32_lanes_per_sm if gpu.facts else 64)
print(f"one cosine takes {cosine_slots:g} slots" + ("" if gpu.facts else " (on a T4; here unknown)"))
bend = ...  # cosines in one fp32 kernel from which on it takes longer than one trip
### BEGIN SOLUTION
roof = lab.ceiling()
bend = knee(roof.bandwidth, roof.vector_rate, 4, cosine_slots)
### END SOLUTION
lab.predict("04-9", bend, unit="cosines", label="cosine")

# %%
def repeated(operation, times):
    """A compiled function that applies `operation` to its argument `times` times."""
    def run(x):
        for _ in range(times):
            x = operation(x)
        return x

    return torch.compile(run)


wide = torch.randn(n // 4, device=gpu.device, dtype=torch.float32)
lengths = [1, 2, 3, 4, 6, 8, 16, 32, 64, 128, 256]


def chain_of(operation):
    """For each length, a function without arguments that runs the fused chain on `wide`."""
    return lambda length: functools.partial(repeated(operation, length), wide)


curves = lab.sweep("04-9", {"multiply": chain_of(lambda t: t * 1.0001),
                            "cosine": chain_of(torch.cos)}, lengths)

# %%
if curves:
    roof = lab.ceiling()
    mine = knee(roof.bandwidth, roof.vector_rate, 4, 1)
    axes = plots.draw_sweep(None, lengths, curves, logx=True, logy=True,
                            knee=mine if isinstance(mine, float) and mine > 0 else None,
                            knee_label="knee of a multiply, yours",
                            title="More work in the same trip", ylabel="time",
                            xlabel="operations in one fused kernel",
                            origin=gpu.origin, device=gpu.name)
    plots.show(axes.figure)
    for name, times in curves.items():
        longer = [k for k, t in zip(lengths, times) if t > 1.1 * times[0]]
        print(f"{name}: " + (f"longer from {longer[0]} on" if longer else "flat to the end"))
    guess = lab.predicted("04-9", "cosine")
    print("you predicted for the cosine:", f"{guess:.3g}" if guess else "nothing")

# %% [markdown]
# The multiply is flat until its knee, if that lies within the figure. Published, for a multiply in
# fp32 on an A100: flat below {{fact:result.repeat_sweep.knee_low}}, compute-bound above {{fact:result.repeat_sweep.knee_high}}.
#
# The cosine bends much earlier: a handful of cosines uses up what dozens of multiplies do. Nobody
# has published that knee, and PyTorch's compiler may write another cosine than eager mode uses. On
# a real card *your* curve is the evidence; the simulated one is only a model.

# %% [markdown]
# The same question for other cards, functions and dtypes. All cards stand at their datasheets here,
# so that they can be compared. What a card sustains is another matter, and its knee moves with it:
# on paper three fused cosines in fp16 are free on a T4, at its sustained rates they are not. Find a
# card and a dtype for which not even two are free.

# %%
explore.fusion(gpu)

# %% [markdown]
# ## 8 · Put your verdict to the test
#
# A label proves nothing. What follows from it does. Take ten cosines in fp32, one after the other
# (`ten` below). Name the bucket they are in, and predict what three changes do to their time:
#
# - **half the bytes**: the same ten cosines on fp16 elements,
# - **twice the arithmetic**: ten fused kernels of two cosines each,
# - **one launch**: the ten launches recorded as a *[CUDA graph]({{course:docs}}/glossary.md#cuda-graph)* and replayed as one. (Many launches
#   are many small HTTP requests; the graph is the bundle. It breaks where a bundle would not: the
#   shapes and addresses in it are frozen.)
#
# The predictions cost nothing. They are the point.

# %% nbgrader={"grade": false, "grade_id": "04-10-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
bucket = ...  # "memory", "compute" or "overhead"
effects = {"half the bytes": ..., "twice the arithmetic": ..., "one launch": ...}
# each effect: "about half", "about the same" or "about double"
### BEGIN SOLUTION
bucket = "memory"
effects = {"half the bytes": "about half", "twice the arithmetic": "about the same",
           "one launch": "about the same"}
### END SOLUTION
lab.predict("04-10", bucket, label="bucket", options=["memory", "compute", "overhead"])
for name, effect in effects.items():
    lab.predict("04-10", effect, label=name,
                options=["about half", "about the same", "about double"])

# %%
def ten(function, x):
    for _ in range(10):
        function(x)


narrow = wide.to(gpu.dtype)
twice = torch.compile(lambda t: t.cos().cos())
changes = lab.measure("04-10", {
    "as it is": lambda: ten(torch.cos, wide),
    "half the bytes": lambda: ten(torch.cos, narrow),
    "twice the arithmetic": lambda: ten(twice, wide),
    "one launch": ... if gpu.cpu else lab.as_graph(lambda: ten(torch.cos, wide)),
})
for name in effects:
    lab.compare("04-10", name, "as it is", prediction=name)

# %% [markdown]
# **04-10.** Which bucket do these times leave standing, and which of the three changes decided it?

# %% nbgrader={"grade": false, "grade_id": "04-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdict = {"bucket": ..., "decided by": ...}
# "memory", "compute" or "overhead"; "half the bytes", "twice the arithmetic" or "one launch"
### BEGIN SOLUTION
verdict = {"bucket": "memory", "decided by": "half the bytes"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-10", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("04-10", verdict)

# %% [markdown]
# Fusion takes away launches as well as trips. On a large tensor nobody notices. On a thousand
# elements there is nothing else: the loop takes as long as the CPU needs to ask. These are wall
# times of a loop of calls, the CPU included. If yours gains little: a compiled function first
# checks that its input still fits, and on a fast CPU that costs as much as a few launches.

# %%
tiny = x[:1000].clone()
small = lab.measure("04-14", {"cos x3, tiny": lambda: chain(tiny),
                              "fused, tiny": ... if fused is ... else lambda: fused(tiny)})
lab.compare("04-14", "cos x3, tiny", "fused, tiny", clock="wall")

# %% [markdown]
# ## 9 · Too small to be true
#
# The second way to fool yourself: data that never left the cache. Here the cosine runs again and
# again on the same tensor, and nothing clears L2 between two runs.

# %%
def cosine_of(elements):
    return torch.randn(elements, device=gpu.device, dtype=gpu.dtype).cos


sizes = [2**k for k in range(14, 28)]
hot = lab.sweep("04-11", {"cosine": cosine_of}, sizes, cache="hot")
moved = [2 * itemsize * k for k in sizes]
implied = {"implied": [b / seconds for b, seconds in zip(moved, hot["cosine"])]}
levels = {roof.label: roof.bandwidth for roof in lab.roofs() if roof.origin != "published"}
if gpu.facts:
    levels["datasheet"] = gpu.facts.bandwidth
axes = plots.draw_sweep(None, moved, implied, logx=True, xunit="B", yunit="B/s", levels=levels,
                        knee=gpu.facts.l2 if gpu.facts else None, knee_label="L2",
                        title="Implied bandwidth by size", xlabel="bytes read and written",
                        ylabel="implied bandwidth", origin=gpu.origin, device=gpu.name)
plots.show(axes.figure)

# %% [markdown]
# On the far left, starting a kernel takes longer than its work. On the right stands the memory.
# Between them lies the trap: the data fits into L2, and the implied bandwidth is above what the
# memory can do. (The model drops off a cliff there; a real card slides.) Above the datasheet it is
# a sure sign. `lab.measure` clears the cache before each run unless told otherwise, as here with
# `cache="hot"`.
#
# **04-11.** The plain cure is a larger tensor. What is the **smallest power of two** of fp16
# elements for which reads and writes together are at least **ten times** L2? (`gpu.facts.l2` is in
# bytes.)

# %% nbgrader={"grade": false, "grade_id": "04-11-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
honest = ...  # elements
### BEGIN SOLUTION
honest = 1
while gpu.facts and honest * (2 + 2) < 10 * gpu.facts.l2:
    honest *= 2
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-11", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-11", honest)

# %% [markdown]
# ## 10 · A gate from a real model
#
# The feed-forward layer of Llama-2-7B multiplies two branches, each
# {{fact:model.llama2_7b.ffn}} wide: `silu(g) * u`. That is two kernels in eager mode.
#
# **04-12.** How many whole tensors cross the memory bus, reads and writes counted one by one,
# before fusion and after?

# %% nbgrader={"grade": false, "grade_id": "04-12-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
gate = {"before": ..., "after": ...}
### BEGIN SOLUTION
gate = {"before": 5, "after": 3}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-12", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("04-12", gate)

# %% [markdown]
# And in time? Commit a factor: eager over fused.

# %% nbgrader={"grade": false, "grade_id": "04-12-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
gate_speedup = ...  # time of eager / time of fused
### BEGIN SOLUTION
gate_speedup = 5 / 3
### END SOLUTION
lab.predict("04-12", gate_speedup, unit="times", label="speed-up")

# %%
def gated(g, u):
    return torch.nn.functional.silu(g) * u


g = torch.randn(4096, 11008, device=gpu.device, dtype=gpu.dtype)
u = torch.randn_like(g)
gated_fused = torch.compile(gated)
runs = lab.measure("04-12", {"eager": lambda: gated(g, u), "fused": lambda: gated_fused(g, u)})
lab.compare("04-12", "eager", "fused", prediction="speed-up")
lab.ledger("04-12", ["eager", "fused"], fused=["fused"])
pair = torch.randn(2, 64, 64, device=gpu.device, dtype=gpu.dtype)
print("same values:", torch.allclose(gated(*pair), gated_fused(*pair), atol=1e-2))

# %% [markdown]
# ## 11 · A matrix product with a relu
#
# **04-13.** Which of these will gain least from fusion?
#
# - **a** a layer norm on a long tensor
# - **b** a small model that launches hundreds of tiny kernels
# - **c** bias, activation and dropout, one after the other
# - **d** a large transformer reading a prompt of thousands of tokens

# %% nbgrader={"grade": false, "grade_id": "04-13-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
poor = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
poor = "d"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-13", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-13", poor)

# %% [markdown]
# Now one layer of that kind: a large matrix product and a `relu`. Commit a factor, eager over
# compiled.

# %% nbgrader={"grade": false, "grade_id": "04-13-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
layer_speedup = ...  # time of eager / time of compiled
### BEGIN SOLUTION
layer_speedup = 1.0
### END SOLUTION
lab.predict("04-13", layer_speedup, unit="times", label="speed-up")

# %%
side = 1024 if gpu.cpu else 4096
a = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)
w = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)


def layer(a):
    return torch.relu(a @ w)


layer_compiled = torch.compile(layer)
runs = lab.measure("04-13", {"eager": lambda: layer(a), "compiled": lambda: layer_compiled(a)})
lab.compare("04-13", "eager", "compiled", prediction="speed-up")
lab.kernels(layer, a)
lab.kernels(layer_compiled, a)
relu_ms = 2 * side**2 * itemsize / lab.ceiling().bandwidth * 1e3
print(f"one trip of the relu: {relu_ms:.3f} ms at this {lab.ceiling().label}")

# %% [markdown]
# Compare the two numbers of kernels. By default the compiler leaves a large matrix product to the
# library that is best at it, and then the `relu` has nothing to merge with. Had it merged, its
# one trip was all there was to win: hold it against the time of the layer.
#
# Published, for a whole model: compiled, an 8B model that reads long sequences ran at
# {{fact:result.compile.llama_8b_forward}} times its eager speed, and a 1B model on short ones gained {{fact:result.compile.llama_1b_forward}} times.

# %% [markdown]
# ## 12 · The same idea, larger: FlashAttention
#
# Attention writes a table of scores, one number for each pair of positions, reads it back for the
# softmax, writes it again, and reads it once more. FlashAttention keeps pieces of that table on
# the chip. Nearly the same arithmetic, far fewer trips. Both versions below are counted, not
# timed; for the second the least that it must move.

# %%
def attention(q, k, v):
    return torch.softmax((q / 128**0.5) @ k.transpose(-1, -2), -1) @ v


positions = [256, 512, 1024, 2048, 4096, 8192]
moved = {"scores in memory": [], "scores on chip, at least": []}
for length in positions:
    q, k, v = (torch.empty(1, 32, length, 128, dtype=torch.float16, device="meta") for _ in range(3))
    flash = torch.nn.functional.scaled_dot_product_attention
    moved["scores in memory"].append(counting.count(attention, q, k, v).bytes_unfused)
    moved["scores on chip, at least"].append(counting.count(flash, q, k, v).bytes_unfused)
axes = plots.draw_sweep(None, positions, moved, logx=True, logy=True, yunit="B",
                        title="Bytes moved by one attention layer, counted", xlabel="positions",
                        ylabel="bytes moved", origin="counted", device="32 heads of 128, fp16")
plots.show(axes.figure)

# %% [markdown]
# ## Extra, on a real GPU · The kernel by hand
#
# This is about what the compiler wrote for you, in Triton: one load, three cosines in registers,
# one store. Elsewhere the cell does nothing.

# %%
if gpu.origin == "measured" and not gpu.cpu and importlib.util.find_spec("triton"):
    import triton
    import triton.language as tl

    @triton.jit
    def cos3_kernel(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        value = tl.load(x + at, mask=inside).to(tl.float32)
        value = tl.cos(tl.cos(tl.cos(value)))
        tl.store(y + at, value.to(y.dtype.element_ty), mask=inside)

    def by_hand(x):
        y = torch.empty_like(x)
        cos3_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y

    print("same values:", torch.allclose(by_hand(sample), expected, atol=2e-3))
    lab.measure("04-5", {"by hand": lambda: by_hand(x)}, purpose="demonstration")
else:
    print("Nothing to run here: this needs a GPU and Triton.")

# %% [markdown]
# ## Recap
#
# **04-14.** Fill your row of the running summary table: what does fusion do for a program that is
# bound by each of the three? `"cures"`, `"helps"` or `"nothing"`, each once.

# %% nbgrader={"grade": false, "grade_id": "04-14-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # what fusion does for each
### BEGIN SOLUTION
row = {"memory": "cures", "compute": "nothing", "overhead": "helps"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "04-14", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("04-14", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Count the trips first. The bytes tell how long a pointwise chain must take.
# - Look at the implied bandwidth of every timing. Above the roof it is wrong, far below it there
#   is something to find.
# - Fusion removes trips and launches, never arithmetic.
#
# **Next, 05:** the stopwatch that did not wait. Why does a launch return before the work is done,
# and how do you time code that answers late?
#
# Further reading: Horace He, *Making Deep Learning Go Brrrr From First Principles*, whose plot of
# repeated multiplies section 7 measures again; Ivanov et al., *Data Movement Is All You Need*,
# for what unfused operations cost a whole model.
