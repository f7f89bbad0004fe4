# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 01_gpu_model.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 01 · The GPU model: two jobs, two speeds
#
# **40 minutes**, and an optional second sitting of 15. You will be able to
#
# - name the two jobs of a GPU, and the figure of the card that limits each,
# - tell what does not fit from what is slow,
# - say how long any number of bytes takes, from any place where it may lie,
# - measure what your own card reaches, and hold it against its datasheet.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("01-2")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top. From notebook 02 on,
# each one opens with two questions from those before: recalling makes things stay. Here there is
# nothing to recall yet.
#
# **Words on loan**, each explained where it is needed:
#
# | word | meaning |
# |---|---|
# | tensor | an array of numbers, here mostly in the GPU's memory |
# | fp16, fp32 | numbers of 2 and of 4 bytes (16 and 32 bits) |
# | [FLOP]({{course:docs}}/glossary.md#flop) | one floating-point addition or multiplication; FLOP/s is how many per second |
# | matmul | a matrix product, the operation that models mostly consist of; 03 takes it apart |
# | 7B model, weights, token | a language model with 7 billion learned numbers, the weights; a token is a piece of text that it reads or writes. 06 explains |
#
# GB is 1e9 bytes everywhere, GB/s is 1e9 bytes per second, and T is 1e12.

# %%
# Run this cell first, and again after a restart.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch

from helpers import devices, explore, lab, levels, plots
from helpers.facts import fact

gpu = lab.setup("01_gpu_model")

# %% [markdown]
# ## 1 · A factory and its lorries
#
# Your program is slow, and you may buy one better card. Which number on its datasheet do you look
# at?
#
# A GPU has two jobs. It **moves** numbers between its memory and its compute units, and it
# **computes** with them. Different hardware does each, so each has a speed of its own.

# %%
plots.show(plots.draw_card(None, gpu.facts or "t4").figure)
if gpu.facts is None:
    print("The course has no datasheet of your machine, so this is a T4's.")

# %% [markdown]
# Read it from the right.
#
# - The **factory** is the compute units. They stand in workshops, the
#   [SMs]({{course:docs}}/glossary.md#sm). Each SM has *vector units* ("CUDA cores"), which do any
#   arithmetic, and on most cards
#   [tensor cores]({{course:docs}}/glossary.md#tensor-core), which do nothing but matrix products,
#   and far more of those. The figure is FLOP/s.
# - The **warehouse** is device memory: HBM on the large cards, GDDR on the small ones. It has two
#   figures. One says how much fits, the other how fast it comes out.
# - The **lorries** between them are the second of these:
#   [bandwidth]({{course:docs}}/glossary.md#bandwidth), in bytes per second.
# - The **dispatcher** is the CPU. A function that runs on the GPU is a *kernel*; the order to
#   start it is a [launch]({{course:docs}}/glossary.md#kernel-launch). Data that the CPU has must
#   first pass a narrow road, PCIe.
#
# A launch is like an HTTP request: asking has a price, however small the answer. That picture
# breaks at the `await`: the dispatcher does not wait for the answer (notebook 05).
#
# Where the picture of the factory breaks: lorries and machines work at the same moment. While one
# load is worked on, the next is on its way. So a kernel takes at best the *longer* of moving and
# computing, not the sum. And all lorries only drive if all SMs order something: a small tensor
# leaves most of both idle.

# %% [markdown]
# ## 2 · What fits is not how fast
#
# Two cards hold the same number of GB. Are they equally fast?

# %%
for key in ("l4", "rtx_3090", "a100_80_sxm", "h100_sxm"):
    card = devices.get(key)
    print(f"{card.name:15} holds {card.memory / 1e9:3.0f} GB, moves {card.bandwidth / 1e9:5,.0f} GB/s")

# %% [markdown]
# The RTX 3090 moves three times what the L4 does, with the same capacity. The size of a warehouse
# says nothing about its road.
#
# The two also fail in different ways. Too large for the capacity: the program *stops*, with an
# out-of-memory error. Too much for the bandwidth: it *runs*, and takes long. In a browser, a full
# `localStorage` throws an error and a slow connection makes you wait. (The picture breaks at the
# reload: `localStorage` survives it, a GPU's memory is empty once the program has ended.)
#
# **01-1.** Five reports. What is the limit in each: `"capacity"`, `"bandwidth"` or
# `"arithmetic"`?
# <!-- derived: 13.5 GB; 12 GB -->
#
# - **a** A model with 13.5 GB of weights does not start on a card of 12 GB.
# - **b** Adding 1 to each element of a huge tensor: in fp16 it takes half as long as in fp32.
# - **c** A large matrix product takes the same time on a card with half the GB/s, and half the
#   time on one with twice the TFLOP/s.
# - **d** With 8 images at a time it ran yesterday. With 16 it stops with an error.
# - **e** Copying a tensor inside the card takes the same time on two cards with equal GB/s, though
#   one of them holds five times as much.

# %% nbgrader={"grade": false, "grade_id": "01-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
limits = {"a": ..., "b": ..., "c": ..., "d": ..., "e": ...}
### BEGIN SOLUTION
limits = {"a": "capacity", "b": "bandwidth", "c": "arithmetic", "d": "capacity", "e": "bandwidth"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-1", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("01-1", limits)

# %% [markdown]
# ## 3 · Four figures that describe a card
#
# How long does it take to read something once? This is the first question about any program, and
# it needs two numbers.
#
# **01-2.** Write the function. The check calls it with numbers of its own.

# %% nbgrader={"grade": false, "grade_id": "01-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def seconds_to_read(nbytes, bandwidth):
    """Seconds to read `nbytes` bytes once, at `bandwidth` bytes per second. (One line.)"""
    ### BEGIN SOLUTION
    return nbytes / bandwidth
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-2", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("01-2", seconds_to_read)

# %%
for key in ("t4", "l4", "rtx_3090", "a100_80_sxm", "h100_sxm"):
    card = devices.get(key)
    took = seconds_to_read(card.memory, card.bandwidth)
    if took:
        print(f"{card.name:15} reads all of its memory once in {took * 1e3:5.1f} ms")
    else:
        print(f"{card.name:15} waits for your function")

# %% [markdown]
# Between 20 and 80 ms, for cards that differ in almost everything. So a program that must touch all
# of that memory for each result gives a dozen to a few dozen results per second, no more. A
# language model is nearly such a program: for each token it reads all of its weights.
# <!-- derived: 80 ms; 13.5 GB; 6.6 ms; 39 ms -->
#
# Now the whole description of one card, an A100 with {{fact:device.a100_80_sxm.memory}}, in four
# rows.
#
# | row | figure | what it means |
# |---|---|---|
# | capacity | {{fact:device.a100_80_sxm.memory}} | 13.5 GB of weights (a 7B model in fp16) fit almost six times |
# | bandwidth | {{fact:device.a100_80_sxm.bandwidth}} | reading all of it takes 39 ms, the 13.5 GB take 6.6 ms |
# | arithmetic | {{fact:device.a100_80_sxm.peak.fp16}} in fp16 | in those 6.6 ms it could do 2.06e12 FLOP |
# | their ratio | 153 FLOP/byte | so much must be computed for each byte fetched, or the factory waits |
#
# Hold the third row against what a 7B model needs. To write one token it reads all its weights
# once, and does 13.5e9 FLOP with them. The card could do 153 times as much in that time. Keep this
# sentence: notebook 06 is built on it.
#
# Why 153 twice? Each weight is 2 bytes, and is used for one multiplication and one addition: one
# FLOP for each byte. The card is built for 153. Both questions are the same question.
#
# The ratio has a name, the [ridge point]({{course:docs}}/glossary.md#ridge-point). Below it a
# program waits for bytes, above it for arithmetic.

# %% [markdown]
# **01-3.** Write the table as a function of any card, so that you can use it for your own.

# %% nbgrader={"grade": false, "grade_id": "01-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def four_rows(memory, bandwidth, rate, nbytes):
    """Return four numbers: read_all, read, flop_meanwhile, ridge. (Up to five lines.)

    read_all        seconds to read `memory` bytes once, at `bandwidth` bytes per second
    read            seconds to read `nbytes` bytes once
    flop_meanwhile  FLOP that the card could do in the time `read`, at `rate` FLOP per second
    ridge           FLOP for each byte moved, the ratio of the two speeds
    """
    ### BEGIN SOLUTION
    read_all = seconds_to_read(memory, bandwidth)
    read = seconds_to_read(nbytes, bandwidth)
    return read_all, read, rate * read, rate / bandwidth
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-3", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("01-3", four_rows)

# %%
weights = fact("model.llama2_7b.weights").value
token_flop = 2 * fact("model.llama2_7b.parameters").value
sheet = gpu.facts or devices.get("t4")  # the course has no datasheet of a CPU


def show_rows(name, memory, bandwidth, rate):
    """Print the table of one card, once four_rows is written."""
    rows = four_rows(memory, bandwidth, rate, weights)
    if not isinstance(rows, (tuple, list)) or len(rows) != 4:
        print("The table waits for your function.")
        return
    read_all, read, flop_meanwhile, ridge = rows
    print(f"{name}: four rows")
    print(f"capacity    {memory / 1e9:8.1f} GB       a 7B model takes {weights / 1e9:.1f} GB: "
          f"it {'fits' if weights < memory else 'does not fit'}")
    print(f"bandwidth   {bandwidth / 1e9:8,.4g} GB/s     all of it {read_all * 1e3:,.1f} ms, "
          f"the 7B weights {read * 1e3:,.1f} ms")
    print(f"arithmetic  {rate / 1e12:8.3g} TFLOP/s  meanwhile {flop_meanwhile:.3g} FLOP, "
          f"{flop_meanwhile / token_flop:,.0f} times what one token needs")
    print(f"ratio       {ridge:8,.3g} FLOP/byte")


show_rows(f"{sheet.name}, from the datasheet", sheet.memory, sheet.bandwidth, sheet.peak["fp16"])
if gpu.facts is None:
    print("The course has no datasheet of your machine. Its own table comes in section 5.")

# %% [markdown]
# ## 4 · The memory ladder
#
# Device memory is not the only place for data. Closer to the units there are faster ones, all much
# smaller. Further away there are slower ones, most of them larger.

# %%
plots.show(plots.draw_memory_ladder(None, gpu.facts or "t4", levels.host_memory()).figure)

# %% [markdown]
# From the top:
#
# - **registers**: where a unit finds the numbers it is working on. They belong to one SM each; the
#   figure adds them up. Taken together they are no trifle: on a T4 they hold more than L2.
# - **shared memory and L1**: a workbench in each SM.
# - **[L2]({{course:docs}}/glossary.md#l2)**: one for the whole card.
#   {{fact:device.t4.l2}} on a T4, {{fact:device.a100_80_sxm.l2}} on an A100.
# - **device memory**: the warehouse. CUDA may report less than was sold: of a T4's 16 GB it sees
#   {{fact:device.t4.memory}}.
# - **host memory**, over **[PCIe]({{course:docs}}/glossary.md#pcie)**: on the CPU's side. Its size
#   is that of the machine that you are on. *Pinned* means that the system has promised not to move
#   it, so the card may fetch it itself. *Ordinary* memory is copied once more on the way.
# - **disk**: everything else.
#
# How much of this is known? Capacities come from the vendor, and so do the rates of device memory
# and PCIe. No datasheet gives the rates inside an SM: those rows are an *order of magnitude*, worked
# out from the parts (SMs × bytes per clock × clock). L2 is a published measurement where there is
# one. The disk is one published load of a 7B model in 6 s; yours may be ten times slower.
# <!-- derived: 6 s; 16 GB -->
#
# The message is the slope: every step down is slower by a factor, and the step off the card is one of
# the steepest, 20 on a T4 and 65 on an A100. Choose an amount and a step to compare with. Can you
# find an amount that fits into L2 on one card and not on another? (The times are by rate alone. A few
# KB would wait for the first byte much longer than the rest takes to follow.)

# %%
explore.ladder(gpu)

# %% [markdown]
# **The narrow road.** A datasheet may say {{fact:device.l4.pcie}} or twice that for one and the same
# link. PCIe carries both directions at once, and the larger figure adds them. What you copy to the
# card has one direction: {{fact:device.a100_80_sxm.pcie}} on PCIe 4.0, {{fact:device.t4.pcie}} on
# 3.0, which a T4 has. In practice less: here is one 7B model on its way to the card.

# %%
for said, link_rate in [
    ("PCIe 4.0, ideal", fact("device.a100_80_sxm.pcie").value),
    ("  pinned, the best published", fact("result.transfer.pinned_gen4").value),
    ("  pinned, an A10", fact("result.transfer.pinned_a10").value),
    ("PCIe 3.0, ideal", fact("device.t4.pcie").value),
    ("  pinned, a V100", fact("result.transfer.pinned_v100").value),
    ("  a T4, kind of memory unknown", fact("result.transfer.t4_to_device_opencl").value),
    ("ordinary memory, a good case", fact("result.transfer.pageable_load").value),
    ("ordinary memory, on Colab", fact("result.transfer.pageable_colab").value),
]:
    print(f"{said:32} {link_rate / 1e9:6.2f} GB/s   {weights / link_rate:5.2f} s")
for key in dict.fromkeys(["t4", "a100_80_sxm", gpu.facts.key if gpu.facts else "t4"]):
    card = devices.get(key)
    print(f"{card.name}: its memory delivers {card.bandwidth / card.pcie:.0f} times what PCIe does, one way")

# %% [markdown]
# Real loading is slower still, since the weights must first come from a disk and pass through the
# host: in one report a 7B model took {{fact:result.loading.llama2_7b_before}} to load, and
# {{fact:result.loading.llama2_7b_after}} once its files were read straight to the card.
#
# **01-4.** Your own transfer. The sheet gives PCIe in both directions together, and device memory,
# both in GB/s. How many `seconds` do the gigabytes take to the card, at best? And how many `times`
# faster does device memory deliver them? Two digits are enough.

# %%
numbers = lab.case("01-4")

# %% nbgrader={"grade": false, "grade_id": "01-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
link = {"seconds": ..., "times": ...}
### BEGIN SOLUTION
one_way = numbers["pcie_both_ways"] / 2
link = {"seconds": numbers["gigabytes"] / one_way, "times": numbers["device_memory"] / one_way}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("01-4", link)

# %% [markdown]
# ## 5 · Your own roofs
#
# A datasheet promises. What does the card keep? A T4 is sold with
# {{fact:device.t4.peak.fp16}} in fp16. A short run on Colab (30 products) reached
# {{fact:device.t4.sustained.fp16}}, and about {{fact:device.t4.sustained_power_capped.fp16}} are
# reported once its limit of {{fact:device.t4.power}} bites. Its {{fact:device.t4.bandwidth}} on
# paper were {{fact:device.t4.sustained.bandwidth}} in one published run and
# {{fact:device.t4.sustained.bandwidth_best}} in another. So its ridge is 203 on paper, and anywhere
# from about 75 (24 over 320) to 175 (41.9 over 239) in practice. Nobody can tell you yours. Measure
# it.
#
# > **The GPU answers late.** A launch returns before its kernel has run, so a stopwatch around it
# > shows next to nothing. `lab.measure` waits for the GPU, lets it
# > [warm up]({{course:docs}}/glossary.md#warm-up), repeats, and takes the middle of the times.
# > Notebook 05 shows how, and what happens without. Until then take its word.
#
# For the bandwidth, copy a tensor that is much larger than any cache. For the arithmetic, multiply
# two square matrices. With side *s* each of the *s*² results takes *s* multiplications and *s*
# additions: 2 *s*³ FLOP.

# %%
n, itemsize = gpu.elements, gpu.itemsize
x = torch.randn(n, device=gpu.device, dtype=gpu.dtype)
y = torch.empty_like(x)
side = 1024 if gpu.cpu else 4096
matrices = {}
for name, dtype in [("fp16", torch.float16), ("fp32", torch.float32)]:
    if not (gpu.cpu and name == "fp16"):  # a CPU does fp16 by detours
        matrices[name] = torch.randn(side, side, device=gpu.device, dtype=dtype)
print(f"the copy: {n * itemsize / 1e6:,.0f} MB in, {n * itemsize / 1e6:,.0f} MB out")
print(f"one product: {2 * side**3 / 1e9:,.1f} GFLOP, in {' and '.join(matrices)}")

# %% [markdown]
# Commit two numbers: the bandwidth of the copy, bytes read and written together, and the rate of
# the product in fp16 (on a CPU: fp32). They are locked when you run the cell. A prediction made
# after the measurement teaches nothing, and being wrong costs nothing.

# %% nbgrader={"grade": false, "grade_id": "01-5-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
copy_gb_per_s = ...  # GB/s
matmul_tflop_per_s = ...  # TFLOP/s
### BEGIN SOLUTION
copy_gb_per_s = 20 if gpu.cpu else 0.8 * sheet.bandwidth / 1e9
matmul_tflop_per_s = 0.1 if gpu.cpu else 0.7 * sheet.peak["fp16"] / 1e12
### END SOLUTION
lab.predict("01-5", copy_gb_per_s, unit="GB/s", label="copy")
lab.predict("01-5", matmul_tflop_per_s, unit="TFLOP/s", label="matmul")

# %%
jobs = {name: lambda m=m: torch.mm(m, m) for name, m in matrices.items()}
runs = lab.measure("01-5", {"copy": lambda: y.copy_(x)} | jobs)

# %% [markdown]
# **01-5.** Turn the times into rates. Fill `own` with four entries (on a CPU leave out `fp16`, and
# take the ridge of fp32):
#
# | entry | meaning |
# |---|---|
# | `bandwidth` | GB/s of the copy, read plus written |
# | `fp16`, `fp32` | TFLOP/s of the product |
# | `ridge` | FLOP/byte: your fp16 rate over your bandwidth |

# %% nbgrader={"grade": false, "grade_id": "01-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
own = {"bandwidth": ..., "fp16": ..., "fp32": ..., "ridge": ...}
### BEGIN SOLUTION
own = {"bandwidth": 2 * n * itemsize / runs["copy"].median / 1e9}
for name in matrices:
    own[name] = 2 * side**3 / runs[name].median / 1e12
own["ridge"] = own.get("fp16", own["fp32"]) * 1e12 / (own["bandwidth"] * 1e9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-5", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("01-5", own)

# %%
if not all(isinstance(own.get(entry), (int, float)) for entry in ("bandwidth", *matrices)):
    print("Fill own with numbers first: then it is drawn beside the datasheet.")
else:
    card, rows = gpu.facts, {}
    rows["copy"] = {"datasheet": card and card.bandwidth, "published": card and card.sustained_bandwidth,
                    "yours": own["bandwidth"] * 1e9}
    for name in matrices:
        rows[f"matmul {name}"] = {"datasheet": card and card.peak.get(name),
                                  "published": card and card.sustained.get(name),
                                  "yours": own[name] * 1e12}
    if card:
        units = {name: "B/s" if name == "copy" else "FLOP/s" for name in rows}
        plots.show(plots.draw_achieved(None, rows, units, gpu.origin, gpu.name).figure)
    lab.outcome("01-5", "copy", own["bandwidth"])
    lab.outcome("01-5", "matmul", own["fp32" if gpu.cpu else "fp16"])
    if card:
        holds = card.memory
    else:
        holds = (levels.host_memory() or 16e9) if gpu.cpu else torch.cuda.mem_get_info()[1]
    show_rows(f"{gpu.name}, from your own figures ({gpu.origin})", holds, own["bandwidth"] * 1e9,
              own["fp32" if gpu.cpu else "fp16"] * 1e12)
    if gpu.origin == "simulated":
        print("This card is a model. It was set to the published figures, or to a share of the\n"
              "datasheet where there are none, and here they come back. A real card can surprise you.")

# %% [markdown]
# A copy usually reaches 75 to 93 % of the datasheet: memory must be refreshed, and turning from
# reading to writing takes time. A product may fall further below, when a small card runs into its
# power limit, or reach the sheet, when a card boosts above the clock that its sheet counts with. Where
# there are tensor cores, fp16 is ahead of fp32 by much more than half the bytes explain: fp16 runs on
# them, fp32 on the vector units.
#
# The matrices hold random numbers on purpose. Zeros flip fewer bits, need less power, and so allow
# a higher clock: on an A100, products of zeros ran at {{fact:result.matmul_data.zeros}}, of random
# numbers at {{fact:result.matmul_data.normal}}.

# %% [markdown]
# ## 6 · Does it last?
#
# Those runs were short. A card that works for seconds grows warm, and may come to its power limit.
# Then it lowers its clock. How much of the rate of the first 50 ms is left after some seconds?
# <!-- derived: 50 ms -->
# Commit a percentage.

# %% nbgrader={"grade": false, "grade_id": "01-6-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
kept = ...  # in %
### BEGIN SOLUTION
kept = 80
### END SOLUTION
lab.predict("01-6", kept, unit="%", label="kept")

# %%
matrix = matrices["fp32" if gpu.cpu else "fp16"]
length = 6.0 if gpu.origin == "measured" and not gpu.cpu else 2.0  # seconds
soak = lab.soak("01-6", lambda: torch.mm(matrix, matrix), label="soak", seconds=length)
if soak is not ...:
    lines = {}
    if gpu.facts:
        lines = {"datasheet": gpu.facts.peak["fp16"]}
        if "fp16" in gpu.facts.sustained:
            lines["published"] = gpu.facts.sustained["fp16"]
        if gpu.facts.key == "t4":
            lines["published, power cap"] = fact("device.t4.sustained_power_capped.fp16").value
    axes = plots.draw_soak(None, [w.at for w in soak.windows],
                           [2 * side**3 / w.seconds for w in soak.windows],
                           [w.clock for w in soak.windows], gpu.origin, gpu.name, levels=lines,
                           note="the model has no temperature" if gpu.origin == "simulated" else "")
    plots.show(axes.figure)
    lab.outcome("01-6", "kept", 100 * soak.kept)

# %% [markdown]
# If your line falls and the clock falls with it, you have seen the roof move. Under a power limit
# the clock of the SMs sinks, and, so it is reported, that of the memory does not: the factory slows
# down, the lorries keep their speed, the ridge becomes lower. If your line is flat, the card stays
# below its limits, or it is the model, which knows no heat. If it rises, the card was asleep. On a
# CPU that others use too, the neighbours draw the line.
#
# So there are three roofs, and this course keeps them apart: *datasheet*, *first moment*,
# *sustained*.
#
# **01-6.** What is the ridge that lasts, in FLOP/byte? `soak.sustained` is the seconds per call in
# the last third; the bandwidth is your own.

# %% nbgrader={"grade": false, "grade_id": "01-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
lasting = ...  # FLOP/byte
### BEGIN SOLUTION
lasting = 2 * side**3 / soak.sustained / (own["bandwidth"] * 1e9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-6", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("01-6", lasting)

# %% [markdown]
# ## 7 · The price of an order
#
# The third speed belongs to neither lorries nor factory. For each operation Python, PyTorch and
# the driver have to work before the GPU knows of it. How long does that take for the smallest
# operation there is, adding 1 to one number? Commit a time in microseconds (µs, millionths of a
# second).

# %% nbgrader={"grade": false, "grade_id": "01-7-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
launch_us = ...  # microseconds
### BEGIN SOLUTION
launch_us = 10
### END SOLUTION
lab.predict("01-7", launch_us, unit="us", label="launch")

# %%
one = torch.zeros(1, device=gpu.device)
tiny = lab.measure("01-7", lambda: one.add_(1), label="tiny add", cache="hot")
if tiny is not ...:
    host = tiny.host or tiny.median  # a CPU has no queue: there the call itself is the price
    if not gpu.cpu:
        print(f"the GPU needs {tiny.median * 1e6:.1f} us, the CPU {host * 1e6:.1f} us to ask for it "
              f"({gpu.origin})")
    lab.outcome("01-7", "launch", host * 1e6)

# %% [markdown]
# On the simulated card the second number is a setting: what one operation cost in a published run of
# a language model, Python included. A loop of the smallest PyTorch operations took
# {{fact:host.tiny_operation}} each on another machine. Yours depends on the CPU beside your GPU.
#
# **01-7.** In the time that the CPU needs for one order, how much could the memory have moved? In MB,
# with your own bandwidth. (`tiny.host` is that time in seconds; on a CPU take `tiny.median`.)

# %% nbgrader={"grade": false, "grade_id": "01-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
worth = ...  # MB
### BEGIN SOLUTION
worth = (tiny.host or tiny.median) * own["bandwidth"] * 1e9 / 1e6
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("01-7", worth)

# %% [markdown]
# ## Optional second sitting
#
# Two experiments that put all this to the test. Without them, go on with the recap at the end: it
# takes a minute.
#
# ## 8 · One change, three answers
#
# Three jobs: copy a large tensor, multiply two large matrices, add 1 to a few numbers. Which
# figure of the card does each wait for? A guess is cheap. Put it to the test by a change that
# means something else for each: **half the bytes**, with numbers of half the size (fp16 instead of
# fp32; on a CPU fp32 instead of fp64). What happens to the time of each?

# %% nbgrader={"grade": false, "grade_id": "01-8-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
effects = {"copy": ..., "matmul": ..., "tiny add": ...}
# each: "about the same", "about half" or "far less than half"
### BEGIN SOLUTION
effects = {"copy": "about half", "matmul": "far less than half", "tiny add": "about the same"}
### END SOLUTION
for job, effect in effects.items():
    lab.predict("01-8", effect, label=job,
                options=["about the same", "about half", "far less than half"])

# %%
wide, narrow = (torch.float64, torch.float32) if gpu.cpu else (torch.float32, torch.float16)
jobs = {}
for size, dtype in [("wide", wide), ("narrow", narrow)]:
    long = torch.randn(n // 4, device=gpu.device, dtype=dtype)
    target, square = torch.empty_like(long), torch.randn(side, side, device=gpu.device, dtype=dtype)
    few = torch.zeros(8, device=gpu.device, dtype=dtype)
    jobs[f"copy, {size}"] = lambda a=long, b=target: b.copy_(a)
    jobs[f"matmul, {size}"] = lambda a=square: torch.mm(a, a)
    jobs[f"tiny add, {size}"] = lambda a=few: a.add_(1)
times = lab.measure("01-8", jobs, budget=0.5)
for job in effects if times else ():
    lab.compare("01-8", f"{job}, narrow", f"{job}, wide", prediction=job,
                clock="wall" if job == "tiny add" else "gpu")

# %% [markdown]
# The copy followed its bytes. If the product did *more* than that, bytes cannot be the reason:
# the narrow numbers also went to faster arithmetic. (On a CPU, and on cards without tensor cores,
# it may well not. Then this test does not separate the two, and the check says so.) The tiny
# addition does not care: nearly all of its time is the order.
#
# **01-8.** So which job gains from which change? Everything else stays as it is. `"copy"`,
# `"matmul"`, `"tiny add"` or `"none"`.

# %% nbgrader={"grade": false, "grade_id": "01-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
upgrade = {"twice the bandwidth": ..., "twice the FLOP rate": ..., "half the launch cost": ...,
           "twice the capacity": ...}
### BEGIN SOLUTION
upgrade = {"twice the bandwidth": "copy", "twice the FLOP rate": "matmul",
           "half the launch cost": "tiny add", "twice the capacity": "none"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-8", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("01-8", upgrade)

# %% [markdown]
# ## 9 · The narrow road, measured
#
# How many times longer does your card need to fetch a tensor from the host than to read it from
# its own memory? Commit a factor; 01-4 gave you one to start from.

# %% nbgrader={"grade": false, "grade_id": "01-4-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
slower = ...  # time over PCIe / time inside the card
### BEGIN SOLUTION
slower = gpu.facts.bandwidth / gpu.facts.pcie if gpu.facts else 20
### END SOLUTION
lab.predict("01-4", slower, unit="times", label="slower")

# %%
if gpu.cpu:
    print("A CPU has its data at hand: there is no link to measure.")
else:
    inside = torch.empty(n // 4, device=gpu.device, dtype=gpu.dtype)
    ordinary = torch.ones(n // 4, dtype=gpu.dtype)
    pinned = ordinary.pin_memory()
    moved = lab.measure("01-4", {"read inside": lambda: inside.sum(),
                                 "from pinned": lambda: inside.copy_(pinned, non_blocking=True),
                                 "from ordinary": lambda: inside.copy_(ordinary)}, purpose="demonstration")
    if moved:
        lab.compare("01-4", "from pinned", "read inside", prediction="slower")
        lab.compare("01-4", "from ordinary", "from pinned")

# %% [markdown]
# (The note about an upper bound is in order: a copy from ordinary memory makes the CPU wait. On the
# simulated card both rates are settings, within the published range.)
#
# What this means for a program: bring data over once, and leave them there. A loop that sends a
# tensor back and forth spends its time on the narrow road, and no faster card will help.

# %% [markdown]
# ## Recap
#
# Which number on the datasheet do you look at, then? The one that your program waits for. Notebook
# 02 names three ways to be slow: a program waits for bytes (*memory*), for arithmetic
# (*compute*), or for the orders (*overhead*). Capacity is none of them.
#
# **01-9.** Fill your first row of the running summary table: which figure sets the speed of each?
# `"bandwidth"`, `"FLOP rate"`, `"launch cost"` or `"capacity"`.

# %% nbgrader={"grade": false, "grade_id": "01-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # the figure that sets the speed of each
### BEGIN SOLUTION
row = {"memory": "bandwidth", "compute": "FLOP rate", "overhead": "launch cost"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "01-9", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("01-9", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Capacity says whether it runs. Bandwidth and FLOP/s say how fast, each for its own job.
# - Bytes over bandwidth is the floor under every time. Work it out before you measure.
# - Three roofs: datasheet, first moment, sustained. Trust the one that you measured, and say for how
#   long you did.
#
# **Next, 02:** a program is slow. Which of the three is it waiting for, and how would you know?
#
# Further reading: Williams, Waterman and Patterson, *Roofline* (2009), which draws these two
# speeds as one picture, from measured bandwidth; Stas Bekman, *Machine Learning Engineering*, on what
# accelerators reach in practice; Horace He, *Making Deep Learning Go Brrrr From First Principles*,
# where the factory comes from.
