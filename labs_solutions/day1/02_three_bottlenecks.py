# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 02_three_bottlenecks.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 02 · Three bottlenecks: compute, bandwidth, overhead
#
# **40 minutes**, and an optional second sitting of 30. You will be able to
#
# - say for each of the three bottlenecks what it is, how to test for it, how it shows and what cures it,
# - read a timeline and tell the three apart,
# - turn one rule into code that names a bottleneck, or says that it cannot,
# - put a verdict to the test by predicting what a change will do.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("02-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan.** The first two are from notebook 01, the others come later in the course.
#
# | word | meaning |
# |---|---|
# | kernel, launch | one function that runs on the GPU; the CPU's order to start it |
# | roof | the fastest a part can go: on paper (*datasheet*), as others saw it (*sustained*), or on your machine (its *ceiling*) |
# | eager | PyTorch's usual way: every operation is launched by itself, one after the other |
# | batch | how many rows of data go through at once (06) |
# | fusion | several operations in one kernel, so that what lies between them never goes to memory (04) |
# | CUDA graph | many launches recorded once and replayed as one (05) |
# | trace | the record of a profiler: what ran when, on the CPU and on the GPU (05) |

# %%
# Run this cell first, and again after a restart.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch

from helpers import counting, explore, lab, plots, roofline, timing
from helpers.facts import fact, label

gpu = lab.setup("02_three_bottlenecks")

# %% [markdown]
# ## Two questions from before
#
# From here on each notebook opens with two questions from earlier ones. Looking an answer up is
# fine. Trying first, without looking, is what makes it stay.
#
# **02-1.** How many **milliseconds** does a memory of that bandwidth need to read that many
# gigabytes? The numbers are yours alone.

# %%
reading = lab.case("02-1")

# %% nbgrader={"grade": false, "grade_id": "02-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
read_ms = ...  # ms
### BEGIN SOLUTION
read_ms = reading["gigabytes"] / reading["gb_per_s"] * 1e3
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-1", read_ms)

# %% [markdown]
# **02-2.** A program fits into a card's memory with room to spare, and waits for that memory most
# of the time. You move it to a card with twice the memory *capacity*, all else equal. What happens?
#
# - **a** it takes about half the time
# - **b** it takes about twice the time
# - **c** it takes the same time
# - **d** it runs out of memory

# %% nbgrader={"grade": false, "grade_id": "02-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
capacity = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
capacity = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-2", capacity)

# %% [markdown]
# ## 1 · What can a GPU wait for?
#
# Think of a factory. The compute units are its machines, the device memory is the warehouse. Lorries
# carry goods between them: how many per hour is the
# [bandwidth]({{course:docs}}/glossary.md#bandwidth). And a dispatcher, the CPU, hands out one
# order at a time.
#
# What can be the reason that it makes too little? Name three before you read on.
#
# 1. The machines run all day, and more work is waiting: **[compute-bound]({{course:docs}}/glossary.md#compute-bound)**.
# 2. The machines stand still until the next lorry comes: **[memory-bound]({{course:docs}}/glossary.md#memory-bound)**.
#    (In full: memory-*bandwidth*-bound. The size of the warehouse has nothing to do with it.)
# 3. Machines and lorries stand still until the next order comes:
#    **[overhead-bound]({{course:docs}}/glossary.md#overhead-bound)**.
#
# These three are the **buckets** of this course: the time of a program falls mostly into one of them, or
# you do not know yet.
#
# Where the picture breaks: a real factory keeps stock. A GPU keeps next to none. Everything comes
# from the warehouse for each order and goes back after it. And lorries and machines work *at the same
# moment*, so an order takes the longer of the two, not the sum.

# %%
plots.show(plots.draw_lanes()[0].figure)

# %% [markdown]
# Look at the second picture. A kernel runs all the time, and the machines rest all the same. Only
# the third has gaps between the kernels. While they last, nothing on the GPU moves.
#
# The dispatcher may run ahead: in the first two pictures all the orders lie on the pile long
# before they are due. A slow CPU is no problem as long as the pile does not run out.
#
# | | compute-bound | memory-bound | overhead-bound |
# |---|---|---|---|
# | **definition** | the time is that of the arithmetic | the time is that of the bytes moved | the time is that of the CPU that asks |
# | **test** | FLOPs / FLOP rate ≈ time | bytes / bandwidth ≈ time | operations × cost of one on the CPU ≈ time, and gaps between kernels |
# | **symptom** | a card with more FLOP/s helps; moving fewer bytes does not | half the bytes is half the time; twice the arithmetic on them changes almost nothing | ten times the batch takes almost the same time; fewer bytes do not help |
# | **remedy** | lower precision on [tensor cores]({{course:docs}}/glossary.md#tensor-core), a better algorithm, a faster card | [fusion]({{course:docs}}/glossary.md#fusion), smaller numbers ([quantisation]({{course:docs}}/glossary.md#quantisation)), more rows per trip of the weights | fewer kernels, [CUDA graphs]({{course:docs}}/glossary.md#cuda-graph), [torch.compile]({{course:docs}}/glossary.md#torch-compile) |
#
# Each symptom is a *what if*. That makes it something you can try. (In inference the first column is
# the rare one: mostly while a long prompt is read, notebook 07.)

# %% [markdown]
# ## 2 · Read three timelines
#
# Here are three programs without their names. Which is which? Nothing is ever perfect: one short
# gap does not make a program overhead-bound, and the lanes can be busy for a while in any of them.

# %%
mine = lab.case("02-3")
plots.show(plots.draw_unlabelled_lanes(mine["series"])[0].figure)

# %% [markdown]
# **02-3.** Name the bottleneck of each.

# %% nbgrader={"grade": false, "grade_id": "02-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
timelines = {"A": ..., "B": ..., "C": ...}  # "compute", "memory" or "overhead"
### BEGIN SOLUTION
import itertools

order = list(itertools.permutations(["compute", "memory", "overhead"]))[mine["series"]]
timelines = dict(zip("ABC", order))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-3", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-3", timelines)

# %% [markdown]
# A caution. A profiler shows the top lane and the frames. The two lanes *inside* a kernel it does
# not show by itself: there, compute-bound and memory-bound look alike, a solid row of kernels. To
# tell those two apart you need numbers: FLOPs and bytes.
#
# ## 3 · Numbers: three programs on paper
#
# All three on an A100 (80 GB): {{fact:device.a100_80_sxm.peak.fp16}} in fp16 on its
# tensor cores, {{fact:device.a100_80_sxm.bandwidth}}. What do you expect of each, and by what factor?
#
# - a **matmul** of two 4096 × 4096 matrices in fp16,
# - a **relu** on 1 GB of fp16 numbers: negative ones become zero,
# - a **tiny** relu, on 1,000 numbers.
#
# <!-- derived: 1 GB; 80 GB -->

# %%
bandwidth = fact("device.a100_80_sxm.bandwidth").value  # bytes/s
tensor_rate = fact("device.a100_80_sxm.peak.fp16").value  # FLOP/s, matrix products only
vector_rate = fact("device.a100_80_sxm.peak.fp32").value / 2  # the sheet counts a multiply-add as two
smallest = fact("host.tiny_operation").value  # s: the CPU's time for a smallest PyTorch operation

on_paper = {  # name: FLOPs, bytes in and out, FLOP/s
    "matmul": (2 * 4096**3, 3 * 4096**2 * 2, tensor_rate),
    "relu": (5e8, 2 * 5e8 * 2, vector_rate),
    "relu, naively": (5e8, 2 * 5e8 * 2, tensor_rate),
    "tiny": (1000, 2 * 1000 * 2, vector_rate),
}
print(f"{'A100, on paper':15} {'FLOP':>10} {'bytes':>10} {'compute':>12} {'memory':>12}   longer")
for name, (flops, moved, speed) in on_paper.items():
    compute, memory = flops / speed, moved / bandwidth
    factor = max(compute, memory) / min(compute, memory)
    print(f"{name:15} {flops:10.4g} {moved:10.4g} {timing.seconds(compute):>12} "
          f"{timing.seconds(memory):>12}   {'compute' if compute > memory else 'memory'}, x{factor:.1f}")
print(f"one smallest operation costs the CPU {timing.seconds(smallest)} (published, one fast host)")

# %% [markdown]
# - The **matmul** needs nine times longer to compute than to move: compute-bound.
# - The **relu** is memory-bound by 19 times. Divide by the tensor-core rate and you get 612, but a
#   tensor core cannot run a relu: it multiplies matrices and nothing else. The units that can, the
#   vector units, do 32 times fewer operations per second.
# - For the **tiny** relu neither matters. Moving 4 KB takes two nanoseconds. The CPU needs
#   thousands of nanoseconds to ask for it: overhead-bound.
#
# FLOPs over bytes has a name: [arithmetic intensity]({{course:docs}}/glossary.md#arithmetic-intensity).
# It is 1365 for the matmul and 0.25 for the relu. This card's ridge point (notebook 01) is 153: above it
# arithmetic takes longer, below it the bytes do. Of the third case it knows nothing.
#
# Run the large relu in a loop for a second and look at `nvidia-smi`. **GPU-Util says 100 %.** That
# number only tells that *some kernel was running* all the time. On this A100 its machines rest 95 % of it.
#
# <!-- derived: 4 KB -->
#
# ## 4 · One rule
#
# Here is the rule of this course. Flow charts, code and figures use the same one.
#
# - A **kernel** takes the longer of computing (FLOPs / rate) and moving (bytes / bandwidth).
# - A **program** takes the longer of two: the sum over its kernels, or what the CPU needs to queue
#   them (operations × cost per operation).
# - A bottleneck is **named only if it explains at least 60 % of the measured time**. Otherwise the
#   answer is: needs another test.
#
# Why 60 %? Below that, fixing the thing you named leaves two fifths of the time or more as it was. "I do not
# know yet" is then the better answer, and a cheaper one.

# %%
plots.show(plots.draw_flow_chart(share=roofline.EXPLAINS).figure)

# %% [markdown]
# Question 1 comes first for a reason. If the CPU needs longer than all the kernels together, the GPU
# runs dry. If it needs less, it works while the kernels run: its time is *hidden*.
#
# **02-4.** Write the chart as code. The check calls your function with programs of its own. Some of
# them nobody can name from these numbers, and "another test" is then the right answer.

# %% nbgrader={"grade": false, "grade_id": "02-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def diagnose(measured, compute, memory, host):
    """"compute", "memory", "overhead" or "another test". All arguments are in seconds.

    measured: what the program took. compute: its compute-bound kernels. memory: its memory-bound
    kernels. host: what the CPU needs to queue all of it. (About seven lines.)
    """
    ### BEGIN SOLUTION
    enough = 0.6 * measured
    if host > compute + memory and host >= enough:
        return "overhead"
    if compute >= enough:
        return "compute"
    if memory >= enough:
        return "memory"
    return "another test"
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-4", "locked": true, "points": 2.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-4", diagnose)

# %% [markdown]
# ## 5 · The same three on your machine
#
# The rule needs three numbers of your machine: how fast it computes, moves and asks. This measures
# them, and prepares the programs. *Relu* overwrites its tensor: one read and one write all the same. *Tiny*
# is a hundred small operations now, one alone is hard to time.

# %%
roof = lab.ceiling()
rate = roof.rates["fp32" if gpu.cpu else "fp16"]
print(f"{gpu.name}: {rate / 1e12:.4g} TFLOP/s in matrix products, "
      f"{roof.bandwidth / 1e9:.4g} GB/s, {roof.host_per_op * 1e6:.3g} us of CPU per small operation")

side = 1024 if gpu.cpu else 4096
a = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)
b = torch.randn(side, side, device=gpu.device, dtype=gpu.dtype)
large = torch.randn(gpu.elements if gpu.cpu else 500_000_000, device=gpu.device, dtype=gpu.dtype)
small = torch.randn(1000, device=gpu.device, dtype=gpu.dtype)


def hundred():
    """One hundred tiny operations, one launch each."""
    for _ in range(100):
        torch.relu(small)


programs = {"matmul": lambda: a @ b, "relu": lambda: large.relu_(), "tiny": hundred}
print(f"matmul: {side} x {side};  relu: {large.numel():,} elements of {gpu.itemsize} bytes, in place;  "
      f"tiny: 100 operations on {small.numel():,} elements")

# %% [markdown]
# How long will each take, in milliseconds? Use the three numbers above. The predictions are locked when
# you run the cell. Being wrong costs nothing.
#
# (On the simulated card an operation costs the CPU {{fact:host.operation}}, a published average over a whole
# model. The {{fact:host.tiny_operation}} of section 3 are for a bare loop. Section 8 tells them apart.)

# %% nbgrader={"grade": false, "grade_id": "02-5-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
expected_ms = {"matmul": ..., "relu": ..., "tiny": ...}
### BEGIN SOLUTION
expected_ms = {"matmul": 2 * side**3 / rate * 1e3,
               "relu": 2 * large.numel() * gpu.itemsize / roof.bandwidth * 1e3,
               "tiny": 100 * roof.host_per_op * 1e3}
### END SOLUTION
for name, guess in expected_ms.items():
    lab.predict("02-5", guess, unit="ms", label=name)

# %% [markdown]
# A word on the clock. `lab.measure` gives two times. The *median* is the GPU's own: everything is
# queued before it starts, so it never waits for the CPU. Here we want what *you* wait for, the
# CPU included: the **wall** time of a loop of calls. (On a CPU both are the same clock.)

# %%
runs = lab.measure("02-5", programs)
for name, run in runs.items():
    if name != "matmul":
        lab.outcome("02-5", name, run.wall * 1e3)
lab.reveal("02-5", "matmul", "matmul", clock="wall")
lab.ledger("02-5", list(programs), clock="wall")

# %% [markdown]
# The first figure lays your prediction for the matmul beside two bounds and the measurement. The
# second is the **ledger**: what of each time is explained, and by what. Whatever nothing explains is
# crossed, and it is a question, not noise. (On the simulated card hardly anything can be left over:
# the roof comes from the same model that made the times.)
#
# Now let your own function speak.

# %%
for name, run in runs.items():
    t = roofline.times(counting.count(programs[name]), roof, roof.host_per_op)
    verdict = diagnose(run.wall, t.compute_bound, t.memory_bound, t.host)
    print(f"{name:7} measured {run.wall * 1e3:8.3f} ms   compute {t.compute_bound * 1e3:8.3f}   "
          f"memory {t.memory_bound * 1e3:8.3f}   host {t.host * 1e3:8.3f}   -> {verdict}")

# %% [markdown]
# **02-5.** Your verdict on each: what does the time consist of?

# %% nbgrader={"grade": false, "grade_id": "02-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdicts = {"matmul": ..., "relu": ..., "tiny": ...}  # "compute", "memory" or "overhead"
### BEGIN SOLUTION
verdicts = {"matmul": "compute", "relu": "memory", "tiny": "overhead"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-5", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-5", verdicts)

# %% [markdown]
# ## 6 · Put your verdict to the test
#
# A label proves nothing. What follows from it does. This is the habit of the whole course: **name a
# bottleneck, say what it foretells, try it.**
#
# The patient is new: sixteen layers, one after the other, each a matrix product of a few rows with a
# large matrix of weights. A language model does this for every word it writes (notebooks 06 and 07).
# Three changes, each to one thing only:
#
# - **half the bytes**: matrices of half the size, and twice as many rows. FLOPs and launches stay.
# - **twice the arithmetic**: twice as many rows through the same matrices. More FLOPs, and the bytes stay
#   nearly the same.
# - **one launch**: all sixteen recorded as a CUDA graph and replayed as one. A CPU has no such thing: there
#   you predict it, and it is left out.

# %%
layers, width, rows = 16, 1024 if gpu.cpu else 4096, 8


def weights(wide, narrow):
    """Sixteen matrices, wide x narrow and narrow x wide in turn, scaled so that values stay small."""
    shapes = [(wide, narrow), (narrow, wide)] * (layers // 2)
    return [torch.randn(*shape, device=gpu.device, dtype=gpu.dtype) / shape[0]**0.5 for shape in shapes]


def through(x, matrices):
    for matrix in matrices:
        x = x @ matrix
    return x


whole, halved = weights(width, width), weights(width, width // 2)
few = torch.randn(rows, width, device=gpu.device, dtype=gpu.dtype)
many = torch.randn(2 * rows, width, device=gpu.device, dtype=gpu.dtype)
stack_bytes = sum(m.numel() for m in whole) * gpu.itemsize
stack_flops = 2 * rows * sum(m.numel() for m in whole)
print(f"{stack_bytes / 1e6:,.0f} MB of weights, {stack_flops / 1e9:.3g} GFLOP, {layers} operations")
for name, seconds in [("compute", stack_flops / rate), ("memory", stack_bytes / roof.bandwidth),
                      ("host", layers * roof.host_per_op)]:
    print(f"  {name:8} alone: {seconds * 1e3:7.3f} ms at this {roof.label}")

# %% [markdown]
# Name its bottleneck on *your* machine, and say what each change will do to the time. "About half" means
# below 0.75 times, "about double" above 1.4 times.

# %% nbgrader={"grade": false, "grade_id": "02-6-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
bucket = ...  # "memory", "compute" or "overhead"
effects = {"half the bytes": ..., "twice the arithmetic": ..., "one launch": ...}
# each effect: "about half", "about the same" or "about double"
### BEGIN SOLUTION
alone = {"compute": stack_flops / rate, "memory": stack_bytes / roof.bandwidth,
         "overhead": layers * roof.host_per_op}
bucket = max(alone, key=alone.get)
effects = {"half the bytes": "about half" if bucket == "memory" else "about the same",
           "twice the arithmetic": "about double" if bucket == "compute" else "about the same",
           "one launch": "about half" if bucket == "overhead" else "about the same"}
### END SOLUTION
lab.predict("02-6", bucket, label="bucket", options=["memory", "compute", "overhead"])
for name, effect in effects.items():
    lab.predict("02-6", effect, label=name,
                options=["about half", "about the same", "about double"])

# %%
sample, thin, results = torch.randn(rows, 64, device=gpu.device, dtype=gpu.dtype), weights(64, 64), []
replay = lab.as_graph(lambda: results.append(through(sample, thin)))
if not gpu.cpu:
    replay()
    same = torch.allclose(results[-1], through(sample, thin), atol=1e-2)
    print("a small stack, replayed as a graph, gives the same values (atol 1e-2):", same)

changes = lab.measure("02-6", {
    "as it is": lambda: through(few, whole),
    "half the bytes": lambda: through(many, halved),
    "twice the arithmetic": lambda: through(many, whole),
    "one launch": ... if gpu.cpu else lab.as_graph(lambda: through(few, whole)),
})
for name in effects:
    lab.compare("02-6", name, "as it is", prediction=name, clock="wall")

# %% [markdown]
# On a GPU the first lines are its own times, the ratios are what *you* wait for. Where the two disagree,
# the GPU got faster and you did not: that is overhead.
#
# **02-6.** Which bottleneck do these times leave standing, and which of the three changes decided it?

# %% nbgrader={"grade": false, "grade_id": "02-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
tested = {"bucket": ..., "decided by": ...}
# "memory", "compute" or "overhead"; "half the bytes", "twice the arithmetic" or "one launch"
### BEGIN SOLUTION
factors = {name: run.wall / changes["as it is"].wall for name, run in changes.items()}
if factors["half the bytes"] < 0.75:
    tested = {"bucket": "memory", "decided by": "half the bytes"}
elif factors["twice the arithmetic"] >= 1.4:
    tested = {"bucket": "compute", "decided by": "twice the arithmetic"}
else:
    tested = {"bucket": "overhead", "decided by": "one launch"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-6", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-6", tested)

# %% [markdown]
# This is the end of the core. Fill the recap at the bottom (02-9) now if your 40 minutes are
# over, and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 7 · Two more looks at your verdicts
#
# Which roof did you judge the matmul of section 5 by? Your verdict may hang on that.

# %%
for known in lab.roofs():
    if runs:
        computing = 2 * side**3 / known.rates["fp32" if gpu.cpu else "fp16"]
        print(f"by the {known.label:20} arithmetic explains {computing / runs['matmul'].wall:4.0%} "
              "of the matmul's time")

# %% [markdown]
# The datasheet assumes a cool card at full clock. Published for a T4: {{fact:device.t4.peak.fp16}}
# on paper, {{fact:device.t4.sustained.fp16}} in a short run, and about
# {{fact:device.t4.sustained_power_capped.fp16}} once its power limit binds. Judged by the datasheet,
# arithmetic explains only 37 % of a matmul at that last rate: plainly compute-bound, and yet "another
# test". So judge by the ceiling you measured, and keep the datasheet to see what you are missing.
#
# And would another card change the verdict on the stack of section 6? Here it is with *your* CPU and the memory of other cards.

# %%
print(f"{layers} operations cost your CPU {layers * roof.host_per_op * 1e3:.3f} ms")
for key in ["t4", "l4", "a100_80_sxm", "h100_sxm"]:
    milliseconds = stack_bytes / fact(f"device.{key}.bandwidth").value * 1e3
    print(f"  {label(f'device.{key}'):16} moves the weights in {milliseconds:.3f} ms (datasheet)")

# %% [markdown]
# A faster memory does not make the CPU ask faster. The same code can be memory-bound on one machine and
# overhead-bound on the next: a bottleneck belongs to a program *on a machine*.
#
# ## 8 · A public case: 39 ms for one step
#
# <!-- derived: 39 ms -->
#
# Published for a language model with 32 layers on an A100 in eager mode: {{fact:result.gpt_fast.eager}}.
# A token is about a word, and each takes one step of the model: 39.2 ms. We counted the operations
# of a step that launch a kernel: {{fact:result.gpt_fast.operations}}. Compiled with CUDA graphs the same
# step ran at {{fact:result.gpt_fast_readme.fp16}} to {{fact:result.gpt_fast.compiled}}. (What happens
# inside is for notebook 07.)
#
# <!-- derived: 39.2 ms -->

# %%
plots.show(plots.draw_public_case().figure)

# %% [markdown]
# The memory explains a sixth. Launches, at 5 to 10 µs each, explain at most a third. And the
# published trace shows a GPU that waits for the CPU.
#
# **02-7.** Two things.
#
# - `us per operation`: what does each of the operations cost the CPU, *all* of it, in
#   microseconds, if the CPU is busy from the first to the last?
# - `here`: the same step, the same bytes and operations, on *your* machine. The cell below says what your
#   memory and your CPU would need. Which is the bottleneck?
#
# <!-- derived: 10 µs -->

# %%
step_bytes = fact("model.llama2_7b.decode_weights").value
operations = fact("result.gpt_fast.operations").value
print(f"{gpu.name}: {step_bytes / 1e9:.1f} GB take {step_bytes / roof.bandwidth * 1e3:.1f} ms, "
      f"{operations:,} small operations take the CPU {operations * roof.host_per_op * 1e3:.1f} ms")

# %% nbgrader={"grade": false, "grade_id": "02-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
rest = {"us per operation": ..., "here": ...}  # a number; "memory" or "overhead"
### BEGIN SOLUTION
seconds_per_step = 1 / fact("result.gpt_fast.eager").value
here = "memory" if step_bytes / roof.bandwidth > operations * roof.host_per_op else "overhead"
rest = {"us per operation": seconds_per_step / operations * 1e6, "here": here}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("02-7", rest)

# %% [markdown]
# So the launch is the small part. Python walks through the model's code, PyTorch looks up the right
# kernel, checks shapes and types and reserves memory. All of that is
# [overhead]({{course:docs}}/glossary.md#overhead). (Your own figure above is for the smallest
# operation in a bare loop. A model's Python comes on top, so take it as the least. On the simulated
# card it *is* the published average: there it tells nothing new.)
#
# On a T4 the same weights take 41 ms at the datasheet's {{fact:device.t4.bandwidth}}, and about 55 at
# the {{fact:device.t4.sustained.bandwidth}} that others measured. With a CPU like the one above, its
# 39 ms would be hidden behind the memory. With one twice as slow they would not. Whoever says "on a
# T4 this is memory-bound" has to measure the CPU first.
#
# <!-- derived: 41 ms; 39 ms -->
#
# ## 9 · Play with the three bars
#
# FLOPs, bytes and kernels of a program, and the roof of your machine. Start from ten kernels. Find
# a setting for each bottleneck, then one where two bars are so close that no honest answer names one.

# %%
explore.buckets(gpu, roof)

# %% [markdown]
# ## 10 · Three ways to tell, and what each is blind to
#
# | way | costs | separates | cannot | use it |
# |---|---|---|---|---|
# | **arithmetic intensity on paper**, against the card's ridge point | nothing | compute from memory | see overhead: it assumes that the GPU is always busy | first, always |
# | **a profiler's timeline** | a set-up; it slows the program, so never take times from it | all three, down to the kernel, if its counters are read too | say what the time is without it | when paper and stopwatch disagree |
# | **change batch or dtype, time again** | one parameter | compute from the rest | tell memory from overhead: both stay flat when the batch grows | quick, on code you cannot open |
#
# Two traps sit in the last row. "Twice the batch, ten percent more time" fits overhead. It fits
# memory as well: the weights make one trip, whatever the number of rows. And "fp16 is twice as fast as
# fp32" does not prove memory: half the bytes, yes, but fp16 also switches the tensor cores on. What does
# separate memory from overhead: gaps, a CUDA graph, and bytes over bandwidth against the time.
#
# If you come from the front end: the timeline is the Performance panel of the browser's tools, and an
# overhead-bound program is a page made of a thousand small requests. A fatter line does not help. The
# picture breaks in one place: a browser opens several connections, a GPU takes the kernels of one
# *stream* strictly one after the other.
#
# ## 11 · None of the three
#
# "Needs another test" is not a failure. Here is a timeline that no bottleneck explains. The CPU is not busy:
# it waits. What for?

# %%
plots.show(plots.draw_lanes(["copies"])[0].figure)

# %% [markdown]
# Before each kernel something comes over from the host, and nobody has anything to do meanwhile. Three
# usual suspects:
#
# - **copies** between CPU and GPU, over a link many times slower than the GPU's memory
#   (`.to("cuda")` in a loop, `.item()`, printing a tensor);
# - **too little parallel work**: a kernel so small that most of the card has nothing to do. It takes longer
#   than FLOPs and bytes say, without a single gap;
# - **Python itself**: reading files, preparing data, a loop over numbers. Nothing is even queued.
#
# ## 12 · Wrong labels
#
# Six claims from real life. Each names a bottleneck. Which labels hold?
#
# - **A** "`nvidia-smi` shows 100 % for a whole minute. It is *compute-bound*."
# - **B** "4096 × 4096 matmul, fp16, A100: measured 0.52 ms. Its FLOPs alone need 0.44 ms at the
#   datasheet's rate. It is *compute-bound*."
# - **C** "Twice the batch takes 10 % more time. It is *overhead-bound*."
# - **D** "From fp32 to fp16 the matmul got twice as fast. It is *memory-bound*."
# - **E** "Of 10 ms, queueing explains 3.5, moving 3.0 and computing 1.0. Queueing is the largest, so it is
#   *overhead-bound*."
# - **F** "This `exp` over a large tensor reaches one percent of the card's FLOP rate, while bytes over
#   bandwidth explain 85 % of the time. The machines are badly used, so it is *compute-bound*."
#
# <!-- derived: 0.52 ms; 0.44 ms; 10 ms -->
#
# **02-8.** Judge each: `"fits"`; `"counter"` (a number that cannot show this); `"two fit"` (another
# bottleneck would show the same); `"too little"` (explains less than 60 %); `"other bucket"` (the numbers given
# name another one).

# %% nbgrader={"grade": false, "grade_id": "02-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
claims = {"A": ..., "B": ..., "C": ..., "D": ..., "E": ..., "F": ...}
### BEGIN SOLUTION
claims = {"A": "counter", "B": "fits", "C": "two fit", "D": "two fit", "E": "too little",
          "F": "other bucket"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-8", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-8", claims)

# %% [markdown]
# ## Recap
#
# **02-9.** Your row of the running summary table: what makes a program of each kind faster?
# `"fewer bytes"`, `"a faster unit"` or `"fewer launches"`, each once.

# %% nbgrader={"grade": false, "grade_id": "02-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # what makes it faster
### BEGIN SOLUTION
row = {"memory": "fewer bytes", "compute": "a faster unit", "overhead": "fewer launches"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "02-9", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("02-9", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Three numbers explain most times: FLOPs over rate, bytes over bandwidth, operations times the
#   CPU's cost. The longest wins, if it explains at least 60 %.
# - "Needs another test" is an answer. A full GPU timeline, or a utilisation of 100 %, is none.
# - Name it, foretell what a change will do, try it.
#
# **Next, 03:** why does a matmul lean on the machines and a relu on the lorries? And what makes the same
# matmul change sides?
#
# Further reading: Horace He, *Making Deep Learning Go Brrrr From First Principles*, which sorts slow
# programs into these three; the PyTorch team's *Accelerating Generative AI with PyTorch II: GPT, Fast*,
# where the 39 ms come from; Williams, Waterman and Patterson, *Roofline* (2009), for the first two bars.
#
# <!-- derived: 39 ms -->
