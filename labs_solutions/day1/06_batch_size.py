# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 06_batch_size.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 06 · Batch size: why is a bigger batch sometimes free?
#
# **Two sittings of 30 minutes**, with the break after section 4, and an optional third of 15. Ten of
# the minutes go into a written answer. You will be able to
#
# - say what a batch shares and what it cannot share,
# - compute the batch at which a layer stops being free, and find it in a measurement,
# - tell the two causes of flat latency apart, by a test,
# - compute how many sequences fit, and say what happens to the next one.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("06-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 01 to 05, in case you start here:
#
# | word | meaning |
# |---|---|
# | roof | the fastest a part can go: on paper (*datasheet*), as others saw it (*sustained*), or on your machine (its *ceiling*) |
# | memory, compute, overhead | the three buckets: a program waits for bytes, for arithmetic, or for the CPU that launches |
# | [intensity]({{course:docs}}/glossary.md#arithmetic-intensity), [ridge point]({{course:docs}}/glossary.md#ridge-point) | FLOP per byte moved; the intensity at which a card turns from memory to compute |
# | [CUDA graph]({{course:docs}}/glossary.md#cuda-graph) | many launches recorded once and started as one |
# | L2, cold, hot | the cache on the chip. *Cold*: emptied before each run. *Hot*: the data is still in it |

# %%
# Run this cell first, and again after a restart.
import importlib.util
import math
import statistics
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch

from helpers import devices, explore, inference, lab, plots, roofline
from helpers.facts import fact

gpu = lab.setup("06_batch_size")

# %% [markdown]
# ## Two questions from before
#
# **06-1.** Eight rows go through one layer: `[8, 4096] @ [4096, 4096]`, fp16. What is the
# arithmetic intensity, in FLOP per byte? One digit is enough.

# %% nbgrader={"grade": false, "grade_id": "06-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
intensity = ...  # FLOP per byte
### BEGIN SOLUTION
intensity = 2 * 8 * 4096 * 4096 / (2 * (8 * 4096 + 4096 * 4096 + 8 * 4096))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-1", intensity)

# %% [markdown]
# **06-2.** Twenty kernels are recorded in a CUDA graph and replayed. What is saved?
#
# - **a** bytes: results stay in registers between the kernels
# - **b** arithmetic: the graph skips what it has computed before
# - **c** nineteen launches: the CPU gives one order in place of twenty
# - **d** the wait at the end: the result is there at once

# %% nbgrader={"grade": false, "grade_id": "06-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
saved = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
saved = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-2", saved)

# %% [markdown]
# ## 1 · Two kinds of bytes
#
# A language model writes one token at a time. First it reads the whole prompt in one pass. That is
# the [prefill]({{course:docs}}/glossary.md#prefill). Then it makes one pass for every new token.
# That is [decode]({{course:docs}}/glossary.md#decode). What it worked out about each earlier token
# it keeps, so that it need not work it out again: a key and a value per layer, the
# [KV cache]({{course:docs}}/glossary.md#kv-cache). Notebook 07 goes deeper. This is enough for now:

# %%
plots.show(plots.draw_decode_primer().figure)

# %% [markdown]
# Put several sequences into one pass and you have a **batch**. Each sequence adds one row. What one
# sequence notices is [latency]({{course:docs}}/glossary.md#latency): how long a step takes. What the
# owner of the card notices is [throughput]({{course:docs}}/glossary.md#throughput): tokens per second
# over all sequences. A batch that leaves latency as it is multiplies throughput.
#
# In the factory picture the lorries bring the tools, all of them, for every pass: the weights do
# not fit on the chip. Once a tool is there, one order can use it or a hundred can. But every
# order also has a box of its own in the warehouse, its cache, which no other order needs. The
# picture breaks in one place: a real factory would keep its tools.
#
# From the front end you know the data loader that merges many small queries into one round trip.
# The trip is shared, the rows of the answer are not. That comparison breaks later: a network has
# only the one limit, and here a second one, arithmetic, takes over at some batch.
#
# In numbers, for Llama-2-7B in fp16:

# %%
model = inference.model()
print(f"{model.parameters:,} parameters, {model.weights / 1e9:.2f} GB")
print(f"one decode step reads {model.step_weights / 1e9:.2f} GB of them "
      "(of the input embedding only one row per token)")
print(f"one token in the cache: {model.kv_bytes:,} bytes")
print(f"{model.step_weights / model.kv_bytes:,.0f} tokens in the cache weigh as much as the weights")

# %% [markdown]
# **06-3.** Write `bytes_per_token`: the bytes that one decode step reads **for each token it
# gives**. A step of `batch` sequences gives `batch` tokens. Every sequence has `context` tokens in
# its cache. (What a step writes is tiny; leave it out.)

# %% nbgrader={"grade": false, "grade_id": "06-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bytes_per_token(weights, kv_per_token, batch, context):
    """Bytes read per token given.

    weights: bytes of all weights. kv_per_token: bytes that one token has in the cache. (One line.)
    """
    ### BEGIN SOLUTION
    return weights / batch + kv_per_token * context
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-3", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("06-3", bytes_per_token)

# %%
for batch in (1, 2, 8, 32, 128):
    each = bytes_per_token(model.step_weights, model.kv_bytes, batch, 1024)
    if isinstance(each, (int, float)):
        print(f"batch {batch:4}, context 1,024: {each / 1e9:6.2f} GB read per token")

# %% [markdown]
# The first part shrinks with every row. The second does not. Keep both in mind: sections 2 to 4
# are about the first, sections 5 and 6 about the second.
#
# ## 2 · Where should it bend?
#
# Take one layer and leave the cache aside. `B` rows of width `D` become `B` rows of width `F`:
# 2·B·D·F FLOP, and three things to move, each element once: the rows in, the weights, the rows
# out. As long as moving takes longer, the arithmetic of another row hides behind the trip. The row
# is free.
#
# **06-4.** Write `batch_knee`: the batch at which arithmetic and moving take **equally** long.
# Count the rows in and out as well as the weights.

# %% nbgrader={"grade": false, "grade_id": "06-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def batch_knee(bandwidth, rate, width_in, width_out, itemsize):
    """Rows at which a linear layer computes as long as it moves; need not be a whole number.

    bandwidth in bytes/s, rate in FLOP/s, itemsize in bytes per element. (About three lines.)
    """
    ### BEGIN SOLUTION
    weights = itemsize * width_in * width_out / bandwidth
    one_row_moves = itemsize * (width_in + width_out) / bandwidth
    one_row_computes = 2 * width_in * width_out / rate
    return weights / (one_row_computes - one_row_moves)
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-4", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-4", batch_knee)

# %% [markdown]
# Two words that are easily mixed up. The ridge point is a property of the card, in FLOP per byte.
# The knee is a batch, in rows. In fp16 they nearly agree, because one row does one FLOP per byte of
# weights. The knee lies a little above, since the rows themselves move too.

# %%
for key in ("t4", "l4", "a100_80_sxm", "h100_sxm"):
    card = devices.get(key)
    rate = card.peak["fp16"]
    knee = batch_knee(card.bandwidth, rate, 4096, 4096, 2)
    if isinstance(knee, (int, float)):
        print(f"{card.name:15} datasheet ridge {rate / card.bandwidth:4.0f} FLOP/byte, "
              f"knee of a 4096 x 4096 layer {knee:4.0f} rows")

# %% [markdown]
# And on your machine? The knee moves with the roof. A card that computes slower than its
# datasheet, because it gets hot or runs into its power limit, has its knee at a *smaller* batch.

# %%
dtype = "fp16" if gpu.itemsize == 2 else "fp32"
width = 1024 if gpu.cpu else 4096
knees = {}
for roof in lab.roofs():
    knee = batch_knee(roof.bandwidth, roof.rates[dtype], width, width, gpu.itemsize)
    if isinstance(knee, (int, float)):
        knees[roof.label] = knee
        print(f"{roof.label:20} {roof.bandwidth / 1e9:6,.0f} GB/s  {roof.rates[dtype] / 1e12:6,.2f} "
              f"TFLOP/s  knee at {knee:4.0f} rows   ({roof.origin})")

# %% [markdown]
# ## 3 · Measure it fairly
#
# Time one `[B, 4096] @ [4096, 4096]` in fp16 for growing B, and you will see a flat line on most
# cards. It may prove nothing. That one matrix is 33.6 MB. It fits into the L2 of an A100
# ({{fact:device.a100_80_sxm.l2}}) or an H100 ({{fact:device.h100_sxm.l2}}), so after the first run no trip to
# memory is left to share. And on such cards it is over about as fast as the next launch arrives.
#
# So we take three precautions:
#
# - **Twelve matrices in turn**, 403 MB on a GPU. When the first is needed again, it has long left the
#   cache. (Twelve is no accident: one layer of Llama-2-7B holds 12.06 times as many weights as one
#   4096 × 4096 matrix.)
# - **A CUDA graph**, so that no launch can hide anything. Cold runs on top, as always.
# - **No `torch.compile`.** Batches of one curve should run the same code, and it compiles again when
#   a shape is new. Told to do so for each size (`dynamic=False`), it gives up after eight of them and
#   goes on in eager mode: a line in the log, and no error. (So `lab.sweep` resets it between sizes.)
#
# Random numbers, too: on zeros a GPU draws less power, and can run faster. (A CPU gets smaller
# matrices, which may stay in its cache, and other programs beside them. Its lines can look different
# from what the text says about a GPU.)
# <!-- derived: 33.6 MB; 403 MB -->

# %%
def matrices(width, count):
    """`count` square weights of random numbers, scaled so that results neither grow nor fade."""
    return [torch.randn(width, width, device=gpu.device, dtype=gpu.dtype) * width**-0.5
            for _ in range(count)]


def through(weights, rows):
    """A function that sends a batch of `rows` through all `weights`, one after the other."""
    width = weights[0].shape[0]
    table = torch.randn(2**22 // width, width, device=gpu.device, dtype=gpu.dtype)
    x = table[:rows]  # picked from a table, as an embedding gives them

    def run():
        h = x
        for w in weights:
            h = h @ w
        return h

    return run


layer = matrices(width, 12)
batches = [2**k for k in range(8 if gpu.cpu else 11)]
print(f"{12 * width**2 * gpu.itemsize / 1e6:,.0f} MB of weights, batches {batches}")

# %% [markdown]
# Commit two numbers. How many times as long as a batch of 1 will a batch of **32** take? And at how
# many rows does the line bend (the **knee**)?

# %% nbgrader={"grade": false, "grade_id": "06-5-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
times_32 = ...  # time at batch 32 / time at batch 1
knee_rows = ...  # rows
### BEGIN SOLUTION
times_32 = 1.0
knee_rows = knees[lab.ceiling().label]
### END SOLUTION
lab.predict("06-5", times_32, unit="times", label="batch 32")
lab.predict("06-5", knee_rows, unit="rows", label="knee")

# %%
swept = lab.sweep("06-5", {"weights": lambda rows: lab.as_graph(through(layer, rows))}, batches)

# %%
if swept:
    seconds = swept["weights"]
    roof = lab.ceiling()
    expected = [max(2 * rows * width**2 / roof.rates[dtype],
                    gpu.itemsize * (width**2 + 2 * rows * width) / roof.bandwidth) * 12
                for rows in batches]
    axes = plots.draw_sweep(None, batches, {"your run": seconds, "expected": expected},
                            logx=True, logy=True, knee=knees.get(roof.label),
                            knee_label="your batch_knee:", title="Twelve matrices, more and more rows",
                            xlabel="batch (rows)", ylabel="time",
                            note=f"expected: the longer of moving and computing, {roof.label}",
                            origin=gpu.origin, device=gpu.name)
    plots.show(axes.figure)
    lab.outcome("06-5", "batch 32", seconds[batches.index(32)] / seconds[0])
    print(f"batch 1 reads its weights at {12 * width**2 * gpu.itemsize / seconds[0] / 1e9:,.0f} GB/s")

# %% [markdown]
# On the left the line lies on the trip of the weights. Twice the rows, the same time: each row is
# twice as cheap. On the right it lies on the arithmetic. Twice the rows, twice the time. Between
# them there is nothing but the change from one to the other.
#
# If you run on a simulated card: the dashed line and the model are the same two formulas, and the
# model adds about a microsecond per kernel, which shows on a fast card. What you check there is your
# own reasoning. On a real card look for what the dashed line does not know: steps, where a batch
# does not fill a whole tile of the matrix unit, and a card that slows down while it is hot.
#
# **06-5.** Fit two straight lines, by hand.
#
# | entry | meaning |
# |---|---|
# | `flat_ms` | the median time of the **four** smallest batches, in ms |
# | `per_row_us` | the slope of the line through the **two** largest: time per added row, in µs |
# | `knee` | the batch at which the flat line meets that line |

# %% nbgrader={"grade": false, "grade_id": "06-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
fit = {"flat_ms": ..., "per_row_us": ..., "knee": ...}  # from `seconds` and `batches`
### BEGIN SOLUTION
flat = statistics.median(seconds[:4])
slope = (seconds[-1] - seconds[-2]) / (batches[-1] - batches[-2])
fit = {"flat_ms": flat * 1e3, "per_row_us": slope * 1e6,
       "knee": batches[-1] - (seconds[-1] - flat) / slope}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-5", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("06-5", fit)

# %%
found = fit.get("knee") if isinstance(fit, dict) else None
if isinstance(found, (int, float)) and found > 0:
    lab.outcome("06-5", "knee", found)

# %% [markdown]
# Expect the fit a little below `batch_knee`. Two straight lines do not know that the flat part is not
# quite flat: every row moves itself, in and out. (On a real card steps and heat move it as well.)
#
# Does a batch change the answer? It must not, up to rounding. The rows never meet.

# %%
small = matrices(256, 2)
x = torch.randn(8, 256, device=gpu.device, dtype=gpu.dtype)
together = x @ small[0] @ small[1]
alone = torch.cat([x[i : i + 1] @ small[0] @ small[1] for i in range(8)])
print("eight rows together and one by one, same values:", torch.allclose(together, alone, atol=1e-2))

# %% [markdown]
# ## 4 · Flat has two causes
#
# You double the batch of a program you do not know, and the time grows by a tenth. Which bucket is
# it in? Here are two such programs. Both multiply small batches by matrices, in plain eager mode.
# `wide` has two matrices and `narrow` has 24. The first four lines are the GPU's own time. The last
# two are the wall time of a loop of calls, the CPU included: what you would notice. (On a CPU all six
# are wall time.)

# %%
programs = {"wide": (4096 if gpu.cpu else 16384, 2), "narrow": (128, 24)}
weights = {name: matrices(*shape) for name, shape in programs.items()}
functions = {}
for name in programs:
    functions[name] = through(weights[name], 4)
    functions[f"{name}, twice the batch"] = through(weights[name], 8)
quick = {"budget": 0.2, "warmup": 0.02, "min_samples": 5}
lab.measure("06-6", functions, **quick)
for name in programs:
    lab.compare("06-6", f"{name}, twice the batch", name, clock="wall")

# %% [markdown]
# **06-6.** Suppose you saw only these last two lines, or a "+10 %". Name **one** bucket that such a
# program *could* be in, and a **second test** that would settle it.
#
# Buckets: `"memory"`, `"compute"`, `"overhead"`. Tests: `"batch times four"`,
# `"launches in a CUDA graph"`, `"GPU utilisation"`, `"bytes over bandwidth"`, `"more samples"`,
# `"change the width"`, `"gaps in a trace"`.

# %% nbgrader={"grade": false, "grade_id": "06-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
suspicion = {"could be": ..., "second test": ...}
### BEGIN SOLUTION
suspicion = {"could be": "memory", "second test": "launches in a CUDA graph"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-6", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-6", suspicion)

# %% [markdown]
# Now run two of the tests on both programs: **one launch** (a CUDA graph) and **half the width**
# (matrices of half the side, a quarter of the bytes, the same number of launches).
#
# Look at the shapes once more: `wide` 2 matrices of 16384 × 16384 (on a CPU 4096 × 4096), `narrow` 24
# of 128 × 128. Predict all four. `"far less"` is anything below 0.6 of the time.

# %% nbgrader={"grade": false, "grade_id": "06-7-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
effects = {"wide, one launch": ..., "wide, half the width": ...,
           "narrow, one launch": ..., "narrow, half the width": ...}
# each: "far less", "about the same" or "far more"
### BEGIN SOLUTION
effects = {"wide, one launch": "about the same", "wide, half the width": "far less",
           "narrow, one launch": "far less", "narrow, half the width": "about the same"}
### END SOLUTION
for name, effect in effects.items():
    lab.predict("06-7", effect, label=name, options=["far less", "about the same", "far more"])

# %%
tests = {}
for name, (side, count) in programs.items():
    tests[name] = functions[name]
    tests[f"{name}, one launch"] = ... if gpu.cpu else lab.as_graph(functions[name])
    tests[f"{name}, half the width"] = through(matrices(side // 2, count), 4)
tried = lab.measure("06-7", tests, **quick)
for name in effects:
    lab.compare("06-7", name, name.partition(",")[0], prediction=name, clock="wall")

# %% [markdown]
# The third test costs no run at all: **bytes over bandwidth**. How much of the wall time would the
# trip of the weights explain, and how much the launches? (They happen at the same time: do not add
# the two.) What neither explains is a question. On a simulated card nothing much can be left: the
# same model made the times, with the launch cost of a published host.

# %%
roof = lab.ceiling()
for name, (side, count) in programs.items():
    if name in tried:
        wall = tried[name].wall or tried[name].median
        trip, launches = count * side**2 * gpu.itemsize / roof.bandwidth, count * roof.host_per_op
        print(f"{name:7} wall {wall * 1e3:7.3f} ms: the trip explains {trip / wall:4.0%}, "
              f"{count} launches {launches / wall:4.0%}   ({gpu.origin})")

# %% [markdown]
# **06-7.** Which bucket is each of them in: `"memory"`, `"compute"` or `"overhead"`?

# %% nbgrader={"grade": false, "grade_id": "06-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdict = {"wide": ..., "narrow": ...}
### BEGIN SOLUTION
verdict = {"wide": "memory", "narrow": "overhead"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("06-7", verdict)

# %% [markdown]
# Waiting for bytes or for launches: a larger batch is good for both. What you should do *next*
# differs: one wants fewer bytes, the other fewer launches.
#
# ## 5 · The bytes that nobody shares
#
# Back to the cache. In a decode step each sequence reads its own. The cell below reads one layer's
# keys and values as attention does: every query meets every key of its sequence, and the values are
# summed by the weights that come out. On a GPU each sequence is a long chat of 4,096 tokens. How many
# times as long as a batch of 1 will a batch of **32** take?

# %% nbgrader={"grade": false, "grade_id": "06-8-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
cache_32 = ...  # time at batch 32 / time at batch 1
### BEGIN SOLUTION
cache_32 = 32
### END SOLUTION
lab.predict("06-8", cache_32, unit="times", label="cache, batch 32")

# %%
context, heads = (256, 8) if gpu.cpu else (4096, 32)


def attention(sequences):
    """One layer's attention of one new token per sequence, over its own keys and values."""
    made = {"device": gpu.device, "dtype": gpu.dtype}
    keys = torch.randn(sequences * heads, context, 128, **made)
    values = torch.randn(sequences * heads, 128, context, **made)
    query = torch.randn(sequences * heads, 128, 1, **made)
    return lab.as_graph(lambda: values @ torch.softmax(keys @ query * 128**-0.5, 1))


few = batches[:7]
cached = lab.sweep("06-8", {"cache": attention}, few)

# %%
if swept and cached:
    own, shared = cached["cache"], swept["weights"][: len(few)]
    axes = plots.draw_sweep(None, few, {"weights": shared, "cache": own,
                                        "sum": [a + b for a, b in zip(shared, own)]},
                            logx=True, logy=True, title="One layer: the shared part and the own part",
                            xlabel="batch (sequences)", ylabel="time",
                            note=f"context {context:,}; sum: added up, not run together",
                            origin=gpu.origin, device=gpu.name)
    plots.show(axes.figure)
    lab.outcome("06-8", "cache, batch 32", own[few.index(32)] / own[0])
    longer = [b for b, a, w in zip(few, own, shared) if a >= w]
    print(f"the cache takes longer than the weights from a batch of {longer[0]} on" if longer
          else "the cache stays shorter than the weights here")

# %% [markdown]
# Two lines with two laws. The weights: flat, shared. The cache: a slope from the first sequence on,
# because every sequence brings its own bytes. The sum bends long before the knee of section 3. (Below
# 32 times? Three kernels must start, however little there is to read. On a fast card that is part
# of the time of batch 1.)
#
# **06-8.** At a context of 1,024 tokens: at which batch does the **whole** decode step of Llama-2-7B
# become compute-bound on an A100 80 GB? Take all its FLOP against all its bytes.
#
# - **a** at about 153, the ridge point of that card
# - **b** at about 165, the knee of its layers
# - **c** later, at several times that: the weights' arithmetic must first outrun the cache
# - **d** at no batch, however much memory the card had
# <!-- derived: 80 GB -->

# %% nbgrader={"grade": false, "grade_id": "06-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
whole_step = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
whole_step = "d"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-8", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-8", whole_step)

# %%
card = gpu.facts or devices.get("a100_80_sxm")
paper = roofline.datasheet(card)
print(f"{card.name}, datasheet peaks, {model.name} in fp16")
for tokens in (0, 128, 256, 1024, 4096):
    crossing = inference.step_crossing(model, paper, tokens)
    said = f"at a batch of {crossing:,.0f}" if math.isfinite(crossing) else "never"
    limit = (2 * model.matrices + 4 * 32 * 4096 * tokens) / (tokens * model.kv_bytes) if tokens else 0
    tends = f"intensity tends to {limit:5.1f} FLOP/byte" if tokens else "the weights alone"
    print(f"context {tokens:5,}: compute-bound {said:22} {tends}")

# %% [markdown]
# As the batch grows, the weights are shared so widely that they no longer count. What is left per
# token is its own arithmetic over its own cache. At 256 tokens and more, no batch that fits into the
# memory makes this step compute-bound, on any card of this course. (On some, 128 tokens are too many
# already. Models in which several heads share keys and values have a smaller cache. For them the
# bend lies further right.)
#
# ## 6 · The other wall
#
# Before the time runs out, the room may. The weights lie in memory, and so do all caches. What no
# longer fits does not get slower. It stops with an error: *out of memory*.
#
# **06-9.** Write `largest_batch`: how many sequences of `context` tokens fit beside the weights, if
# `share` of the memory may be used. The rest is for the runtime and for what lies between layers.

# %% nbgrader={"grade": false, "grade_id": "06-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def largest_batch(memory, weights, kv_per_token, context, share):
    """How many whole sequences fit; 0 where not one does.

    memory, weights and kv_per_token in bytes, share from 0 to 1. (About two lines.)
    """
    ### BEGIN SOLUTION
    left = share * memory - weights
    return max(0, math.floor(left / (kv_per_token * context)))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-9", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("06-9", largest_batch)

# %% [markdown]
# **06-10.** Llama-2-7B in fp16 on a T4, sold as 16 GB, and on an A100 of 80 GB. Count both as sold,
# in GB of 1e9 bytes. Your context and your share of the memory are printed below. How many sequences
# fit?
# <!-- derived: 16 GB; 80 GB -->

# %%
mine = lab.case("06-10")

# %% nbgrader={"grade": false, "grade_id": "06-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
fits = {"T4": ..., "A100": ...}  # whole sequences; all weights must lie in memory
### BEGIN SOLUTION
fits = {name: largest_batch(memory, model.weights, model.kv_bytes, mine["context"], mine["share"])
        for name, memory in (("T4", 16e9), ("A100", 80e9))}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-10", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-10", fits)

# %% [markdown]
# Both walls in one figure. Find a card, a context and a width of the weights for which
#
# - the memory ends before the bend is even visible,
# - the knee of the weights lies inside the memory, and yet the step bends long before it.
#
# (Calculated from datasheets for all cards, so that they can be compared. `int8` and `int4` weights
# are a shorter trip and leave more room; their arithmetic and the cache stay fp16 here.)

# %%
explore.batch(gpu, context=256)

# %% [markdown]
# ## 7 · The question
#
# *Why does a bigger batch sometimes cost almost no latency?* "Sometimes" is half of the answer. First
# its parts, then your own words.
#
# **06-11.** Choose one of the options for each entry.
#
# | entry | options |
# |---|---|
# | `fixed cost` | `"reading the weights"`, `"reading the cache"`, `"computing a row"` |
# | `shared by` | `"all layers"`, `"all tokens of a sequence"`, `"all rows of the batch"` |
# | `free until` | `"the memory is full"`, `"arithmetic takes as long as the trip"`, `"L2 is full"` |
# | `bends earlier` | `"each sequence reads its own cache"`, `"the weights grow"`, `"launches add up"` |
# | `ends with` | `"twice the latency"`, `"a slower clock"`, `"out of memory"` |
# | `second test` | `"one launch"`, `"GPU utilisation"`, `"a still larger batch"` |
#
# `second test`: flat latency has two causes. What tells them apart?

# %% nbgrader={"grade": false, "grade_id": "06-11-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
claims = {"fixed cost": ..., "shared by": ..., "free until": ...,
          "bends earlier": ..., "ends with": ..., "second test": ...}
### BEGIN SOLUTION
claims = {"fixed cost": "reading the weights", "shared by": "all rows of the batch",
          "free until": "arithmetic takes as long as the trip",
          "bends earlier": "each sequence reads its own cache", "ends with": "out of memory",
          "second test": "one launch"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-11", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-11", claims)

# %% [markdown]
# **In your own words** (4 points, read by a person). A colleague doubled the batch of a model in
# service, and latency hardly moved. "So a bigger batch is free," they say. Answer in 100 to 200
# words. Say
#
# - what cost is fixed, and who shares it,
# - until when another row is free, with a number for one card,
# - two exceptions: one in which time grows, one in which time is not the problem,
# - which test tells the two causes of flat latency apart, and what each outcome would mean.
#
# Double-click the next cell, write, and run it. No check can read it; if nobody grades your
# notebook, hold it against this list. One point for each line.

# %% [markdown] nbgrader={"grade": true, "grade_id": "06-written", "locked": false, "points": 4, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A decode step reads all weights once, however many rows the batch has. That trip is the fixed
# cost, and the rows share it: as long as it takes longer than their arithmetic, another row hides
# behind it and latency stays flat. That holds until the rows per trip reach about the card's ridge
# point (on an A100 by its datasheet 153 FLOP per byte, so about 165 rows for a 4096 x 4096 layer).
# Beyond it latency grows with the batch.
#
# Two exceptions. Each sequence also reads its own KV cache, which nobody shares, so the whole step
# bends earlier, and the earlier the longer the context. And the caches fill the memory: the batch
# that no longer fits is not slower, it fails with an out-of-memory error.
#
# Flat latency alone does not prove any of this: a program that waits for launches is flat too. Put
# the launches into a CUDA graph. If the time falls, it was overhead; if it stays, and bytes over
# bandwidth explains it, it was the trip of the weights.
#
# **How to grade**, one point per line, half points allowed:
#
# 1. *Fixed cost and sharing*: the weights are read once per step, for all rows of the batch.
# 2. *Until when*: arithmetic takes as long as the trip, near the ridge point; with a number or the
#    formula for one card. Only "until compute-bound", without either: half.
# 3. *Two exceptions*: time grows (own cache traffic, or latency linear beyond the ridge), and
#    capacity: out of memory, not slowness. One of the two: half.
# 4. *The second test*: CUDA graph, gaps in a trace, bytes over bandwidth, or another width, and what
#    each outcome means. The test without its reading: half. "A larger batch": none.
# ### END SOLUTION

# %% [markdown]
# This is the end of the core. Fill the recap at the bottom (06-12) now if your time is over, and
# come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 8 · Does so simple a model hold?
#
# One trip for the weights, one for each cache, the larger of moving and computing. Nothing else:
# no norms, no sampling, no scheduling. Below it stands beside published runs of a 7B model in
# TensorRT-LLM on an A100. We take the datasheet of the 80 GB card and add a prefill to the steps.
# Before you run it: will the model be too fast or too slow? By the same factor each time?
# <!-- derived: 80 GB -->

# %%
paper = roofline.datasheet(devices.get("a100_80_sxm"))


def request(batch, prompt, answer):
    """Seconds for `batch` sequences: one prefill, then a step for each token of the answer."""
    steps = sum(inference.decode(model, paper, batch, prompt + i).seconds for i in range(answer))
    return inference.prefill(model, paper, prompt, batch).seconds + steps


for batch, prompt, answer in ((384, 128, 128), (60, 128, 2048), (52, 2048, 128)):
    published = fact(f"result.trt_llm.a100.batch{batch}_{prompt}_{answer}").value
    rate = batch * answer / request(batch, prompt, answer)
    print(f"batch {batch:3}, {prompt:4} in, {answer:4} out: model {rate:6,.0f} tokens/s, "
          f"published {published:6,.0f}, that is {published / rate:.0%}")
first = request(1, 128, 20)
base = fact("result.nemo.a100.batch1").value
for batch in (2, 4, 8):
    published = fact(f"result.nemo.a100.batch{batch}").value
    print(f"batch {batch}, 128 in, 20 out: model x{request(batch, 128, 20) / first:.2f} of batch 1, "
          f"published x{published / base:.2f} (NeMo, A100 80 GB)")

# %% [markdown]
# Three very different batches, and the published rate is about the same share of the model each
# time. The model does not know how far below its datasheet a card stays. What it does know,
# which term grows with what, it gets right. The NeMo lines compare ratios only: the source, as we
# read it, does not name its model. Eight times the batch for well below twice the latency, in both.
#
# Another published run, of an 8B model in vLLM on an A100 40 GB, gained {{fact:result.vllm.knee_gain}}
# times the tokens with {{fact:result.vllm.knee}} requests at once, and had its knee there: far
# below any ridge point. The figures do not say why. Which test of section 4 would you run first?
# <!-- derived: 40 GB -->
#
# ## 9 · What the careless benchmark shows
#
# One matrix in place of twelve, and nothing clears the cache. Same launches, same arithmetic.

# %%
careless = lab.measure("06-5", {"twelve in turn": lab.as_graph(through(layer, 1)),
                                "one, again and again": lab.as_graph(through(layer[:1] * 12, 1))},
                       cache="hot", purpose="demonstration")
for name, m in careless.items():
    print(f"{name:20} implied {12 * width**2 * gpu.itemsize / m.median / 1e9:6,.0f} GB/s "
          f"({m.origin})" + (f", datasheet {gpu.facts.bandwidth / 1e9:,.0f}" if gpu.facts else ""))
if gpu.facts:
    print(f"one matrix: {width**2 * gpu.itemsize / 2**20:.0f} MiB; L2: {gpu.facts.l2 / 2**20:.0f} MiB")

# %% [markdown]
# Where the matrix fits into L2, the second line is above what the memory can do. Its flat latency
# would be real, but it would not be about memory: it would be about L2, or about launches. Where it
# does not fit, both lines agree, and the careless benchmark was right by luck.
#
# ## Recap
#
# **06-12.** Fill your row of the running summary table: what does **twice the batch** do to the time
# of a program that is bound by each of the three? `"about the same"` or `"about double"`.

# %% nbgrader={"grade": false, "grade_id": "06-12-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # memory: weights that the batch shares
### BEGIN SOLUTION
row = {"memory": "about the same", "compute": "about double", "overhead": "about the same"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "06-12", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("06-12", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - The weights are a fixed trip that all rows share. Up to the knee, near the ridge point, rows are
#   free.
# - The cache is not shared. It bends latency earlier, and it fills the memory: that ends in an
#   error, not in slowness.
# - Flat latency has two causes. Ask for a second test before you believe either.
#
# **Next, 07:** the stages of a model one by one. Where does each bucket appear, and what did each
# step of a well-known speed-up really remove?
#
# Further reading: Pope et al., *Efficiently Scaling Transformer Inference*, for the arithmetic of
# decode; Horace He, *Making Deep Learning Go Brrrr From First Principles*, whose footnote on batch
# size is section 4.
