# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 03_matmul_vs_pointwise.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 03 · Matmul and pointwise: two temperaments
#
# **40 minutes**, and an optional second sitting of 25. You will be able to
#
# - work out how much arithmetic an operation does for each byte it moves,
# - hold that number against your own card and say which way the operation leans,
# - say when a matrix product waits for memory all the same,
# - predict at how many rows a bigger batch stops being free.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("03-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 01 and 02, in case you start here:
#
# | word | meaning |
# |---|---|
# | [matmul]({{course:docs}}/glossary.md#matmul) | a matrix product, written `a @ b` |
# | pointwise | an operation on each element by itself: `relu`, `+`, `cos` |
# | kernel | one function that runs on the GPU; a PyTorch operation is at least one |
# | tensor core, vector unit | hardware for matrix products; hardware for all else |
# | fp16, fp32 | numbers of two and of four bytes |
# | roof, ceiling | the fastest a part can go; the roof that your own machine shows |
# | ridge point | FLOP per byte at which moving and computing take equally long |
# | memory, compute, overhead | the three buckets: a program waits for bytes, for arithmetic, or for the CPU that launches |
# | row | one input of a batch: a token, an image, a user |

# %%
# Run this cell first, and again after a restart.
import importlib.util
import math
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch
from torch.nn import functional as F

from helpers import counting, explore, lab, plots
from helpers.facts import fact

gpu = lab.setup("03_matmul_vs_pointwise")
dtype = {2: "fp16", 4: "fp32"}[gpu.itemsize]

# %% [markdown]
# ## Two questions from before
#
# **03-1.** Here is a card that nobody sells. What is its ridge point, in FLOP per byte?

# %%
card = lab.case("03-1")

# %% nbgrader={"grade": false, "grade_id": "03-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
ridge_of_card = ...  # FLOP per byte
### BEGIN SOLUTION
ridge_of_card = card["tflop_per_s"] * 1e12 / (card["gb_per_s"] * 1e9)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("03-1", ridge_of_card)

# %% [markdown]
# **03-2.** You rewrite a kernel so that it does twice the arithmetic on the same bytes. It takes as
# long as before. What follows?
#
# - **a** it is memory-bound
# - **b** it is not compute-bound; memory or overhead is left
# - **c** its utilisation is low
# - **d** it is compute-bound, and the units had room

# %% nbgrader={"grade": false, "grade_id": "03-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
follows = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
follows = "b"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("03-2", follows)

# %% [markdown]
# ## 1 · The same lorries, other work
#
# Two square matrices, `a` and `b`. You can add them or multiply them. Both times two matrices come
# into the factory and one goes out: the lorries drive the same. How much does the work differ?
#
# - `a + b` does one addition for each element of the result. Each number is used once.
# - `a @ b` meets every row of `a` with every column of `b`. Each number is used again and again:
#   2N³ FLOP where the sum does N². For N = 4096 that is 8,192 times as much.
#
# So the first question about an operation is not how much it computes. It is how often it uses a
# byte once the lorry has brought it: FLOP divided by bytes, the
# [arithmetic intensity]({{course:docs}}/glossary.md#arithmetic-intensity).
#
# **03-3.** Write it for the matrix product `[m, k] @ [k, n]`. Each of the three matrices is moved
# once. A multiply-add counts as two FLOP. The check calls it with sizes of its own.

# %% nbgrader={"grade": false, "grade_id": "03-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matmul_intensity(m, k, n, itemsize):
    """FLOP per byte of [m, k] @ [k, n] with elements of `itemsize` bytes. (About three lines.)"""
    ### BEGIN SOLUTION
    flop = 2 * m * k * n
    moved = itemsize * (m * k + k * n + m * n)
    return flop / moved
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-3", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("03-3", matmul_intensity)

# %% [markdown]
# **03-4.** Now a pointwise operation, in one kernel: it reads `inputs` tensors of equal size, does
# `flop_per_element` for each element, and writes one tensor.

# %% nbgrader={"grade": false, "grade_id": "03-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pointwise_intensity(flop_per_element, inputs, itemsize):
    """FLOP per byte of one pointwise kernel. (One or two lines.)"""
    ### BEGIN SOLUTION
    return flop_per_element / (itemsize * (inputs + 1))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("03-4", pointwise_intensity)

# %% [markdown]
# Your two functions at work, in fp16. Read the numbers from top to bottom: the pointwise ones do
# not know how large the tensor is, the square products grow with N, and the last line is a surprise
# to keep for section 5.

# %%
paper = {
    "relu": pointwise_intensity(1, 1, 2),
    "a + b": pointwise_intensity(1, 2, 2),
    "N x N product, N = 256": matmul_intensity(256, 256, 256, 2),
    "N x N product, N = 4096": matmul_intensity(4096, 4096, 4096, 2),
    "one row through 4096 x 4096": matmul_intensity(1, 4096, 4096, 2),
}
written = all(isinstance(value, (int, float)) and value > 0 for value in paper.values())
for name, value in paper.items():
    print(f"{name:30} {value:8,.2f} FLOP/byte" if written else f"{name:30} {value}")
if not written:
    print("Write both functions first: the figures below use them.")

# %% [markdown]
# ## 2 · Count a real function
#
# A formula is a claim. The counter of this course runs a function once, listens to every PyTorch
# operation, and adds up FLOPs and bytes from the shapes. Nothing is timed, and on PyTorch's device
# `meta` nothing is even computed: the tensors have a shape and no numbers.

# %%
sizes = lab.case("03-5")
rows, width = sizes["rows"], sizes["width"]
inner = 4 * width  # wide inside, as in most transformers
x = torch.empty(rows, width, dtype=torch.float16, device="meta")
up = torch.empty(width, inner, dtype=torch.float16, device="meta")
down = torch.empty(inner, width, dtype=torch.float16, device="meta")

product = counting.count(torch.mm, x, up)
print("x @ up, counted:     ", product.intensity, "FLOP/byte")
print("x @ up, your formula:", matmul_intensity(rows, width, inner, 2))


def block(x):
    """The feed-forward block of a transformer, in its plainest form."""
    return torch.relu(x @ up) @ down


work = counting.count(block, x)
print(work)

# %% [markdown]
# Two large products with a small `relu` between them. Each operation is a kernel of its own, so
# the tensor between them goes out to memory and comes back: the count called *unfused*. (*Ideal*
# is what a single kernel for the whole block would have to move.)
#
# **03-5.** Which share of the block's FLOPs does the `relu` do, and which share of its bytes does
# it move? Shares lie between 0 and 1.

# %% nbgrader={"grade": false, "grade_id": "03-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
relu_share = {"flops": ..., "bytes": ...}
### BEGIN SOLUTION
relu = next(op for op in work.ops if "relu" in op.name)
relu_share = {"flops": relu.flops / work.flops, "bytes": relu.bytes / work.bytes_unfused}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-5", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("03-5", relu_share)

# %% [markdown]
# ## 3 · A whole model: BERT
#
# Is such a small share of the FLOPs worth a thought? Ivanov and others sorted every operation of
# one BERT training step into three kinds, and published for each its share of the FLOPs and its
# share of the time, on V100 cards.

# %%
kinds = {"matrix products": "contraction", "normalisation": "normalisation",
         "element-wise": "elementwise"}
shares = {name: (fact(f"result.bert.{kind}_flops").value, fact(f"result.bert.{kind}_time").value)
          for name, kind in kinds.items()}
axes = plots.draw_shares(None, shares, device="BERT training step, V100", origin="published",
                         more="from the table of Ivanov et al., 2020")
plots.show(axes.figure)

# %% [markdown]
# Everything but the matrix products is a fifth of a percent of the arithmetic, and well over a third
# of the time. (Normalisation here means softmax and layer norm.)
#
# **03-6.** Turn the shares into rates. How many **times lower** is the rate in FLOP/s of each small
# kind than that of the matrix products? No card and no second is needed: shares are enough.
# `shares[name]` holds the pair (share of FLOPs, share of time).

# %% nbgrader={"grade": false, "grade_id": "03-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
times_lower = {"normalisation": ..., "element-wise": ...}
### BEGIN SOLUTION
rate = {name: flops / time for name, (flops, time) in shares.items()}
times_lower = {name: rate["matrix products"] / rate[name] for name in times_lower}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-6", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("03-6", times_lower)

# %% [markdown]
# Can slower hardware explain it? In part. Matrix products run on
# [tensor cores]({{course:docs}}/glossary.md#tensor-core), all else on the vector units. A V100's
# datasheet gives them {{fact:device.v100_sxm_16.peak.fp16}} and {{fact:device.v100_sxm_16.peak.fp32}}, an A100's
# {{fact:device.a100_80_sxm.peak.fp16}} and {{fact:device.a100_80_sxm.peak.fp32}}: 8 and 16 times apart, not hundreds.
# Most of the gap is no arithmetic at all. It is waiting.
#
# ## 4 · Two roofs, and where you stand under them
#
# Most cards have two kinds of arithmetic, and so two ridge points: one for matrix products, and a
# much lower one for everything else. Here they are for yours. Watch how far they move between
# paper and practice. (A datasheet counts a multiply-add of the vector units as two. Here it is one
# operation, as a `relu` or an addition is: half the datasheet's rate.)

# %%
roofs = lab.roofs()
for roof in roofs:
    matrix = f"{roof.rates[dtype] / roof.bandwidth:6.1f}" if dtype in roof.rates else "     ?"
    vector = f"{roof.vector_rate / roof.bandwidth:5.1f}" if roof.vector_rate else "    ?"
    print(f"{roof.label:20} ridge of matrix products {matrix}   of vector units {vector} "
          f"FLOP/byte   ({roof.origin})")
if gpu.origin == "simulated":
    print("This card is a model, set to published figures or to a share of the datasheet: its ceiling\n"
          "is no discovery. On a real card the last line can surprise you.")
if gpu.cpu:
    print("A CPU has one kind of arithmetic. Its second number only counts a multiply-add as one.")

# %% [markdown]
# How wide can the range be? Published for a T4: on paper {{fact:device.t4.peak.fp16}} over
# {{fact:device.t4.bandwidth}}, a ridge of 203. Short runs reached {{fact:device.t4.sustained.fp16}} over
# {{fact:device.t4.sustained.bandwidth}}: 175. Once its power limit binds, {{fact:device.t4.sustained_power_capped.fp16}} are
# reported, and 75 is left if its memory keeps to the datasheet. From end to end that is almost a
# factor of three. So a verdict within a factor of three of the ridge is none: there, say *near*.

# %%
def leans(intensity, ridges):
    """Which way an operation leans: "memory", "compute", or "near" within a factor of three."""
    if intensity < min(ridges) / 3:
        return "memory"
    return "compute" if intensity > 3 * max(ridges) else "near"


matrix_ridges = [roof.rates[dtype] / roof.bandwidth for roof in roofs if dtype in roof.rates]
vector_ridges = [roof.vector_rate / roof.bandwidth for roof in roofs if roof.vector_rate]
if written:
    print(f"{gpu.name}, {dtype}\n{'':30} FLOP/byte  {'ridge':>14}  leans to")
    for name, value in paper.items():
        ridges = matrix_ridges if "4096" in name or "N x N" in name else vector_ridges
        here = value * 2 / gpu.itemsize  # the table above was for two bytes per element
        between = f"{min(ridges):.1f} to {max(ridges):.1f}"
        print(f"{name:30} {here:9,.2f}  {between:>14}  {leans(here, ridges)}")

# %% [markdown]
# The picture of it is the [roofline]({{course:docs}}/glossary.md#roofline): intensity to the right, speed upwards. The slope is
# memory: for each byte that arrives, so much work can be done and no more. The flat part is
# arithmetic. They meet at the ridge. The hollow marks are where your numbers would stand at best.

# %%
own = lab.ceiling()
points = []
if written:
    for name, value in paper.items():
        here = value * 2 / gpu.itemsize
        best = own.rates[dtype] if "4096" in name or "N x N" in name else own.vector_rate
        short = name.partition(" through")[0].replace(" product", "")
        points.append(plots.Point(short, here, min(best, own.bandwidth * here), "predicted"))
axes = plots.draw_roofline(None, roofs, points, dtype, origin="calculated",
                           title="What each could reach on your machine")
plots.show(axes.figure)

# %% [markdown]
# ## 5 · What rows share
#
# The last line of your table: one row through a 4096 × 4096 layer is a matrix product, and in fp16
# it has an intensity of about 1. Is the matrix too small? Try 8192 in your formula: still 1. Each
# weight is brought in, used for one multiply-add, and forgotten.
#
# Now send B rows through the same layer at once. The weights, D × F of them, make one trip, and all
# B rows use them. In fp16 the intensity is
#
# $$\frac{1}{1/B + 1/D + 1/F} \quad \text{FLOP/byte,}$$
#
# which is close to B as long as B is much smaller than the layer. **What decides is how many rows
# share one trip of the weights, not the size of the matrix.**
#
# In the factory: the weights are a heavy set of moulds that arrives by lorry. One workpiece or a
# hundred, the moulds come once. The picture breaks in one place: a factory keeps its moulds. Here
# they rarely fit on the floor, and for the next batch they are fetched again.
#
# If you come from the front end: a large library fetched to format one date. The download is the
# bill. Format ten thousand dates with it, and the download vanishes in the sum. That breaks where
# the browser caches the library; a GPU's cache is too small for a model's weights.

# %% [markdown]
# The next cell sends 1, 2, 4, ... rows through a wide layer and through one half as wide. On a GPU
# the larger set of weights exceeds every [L2]({{course:docs}}/glossary.md#l2) the course knows, and
# the cache is emptied before each run: each run pays for the trip, as it would inside a model.
#
# Commit two numbers first. From how many rows on does the time rise? And how many times as long as
# one row do 64 rows take?

# %% nbgrader={"grade": false, "grade_id": "03-7-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
bend = ...  # rows from which on more rows cost more time
sixty_four = ...  # time of 64 rows / time of one row
### BEGIN SOLUTION
bend = min(matrix_ridges) * gpu.itemsize / 2
sixty_four = max(1, 64 / bend)
### END SOLUTION
lab.predict("03-7", bend, unit="rows", label="bend")
lab.predict("03-7", sixty_four, unit="times", label="64 rows")

# %%
def layer(width):
    """For a number of rows, a function without arguments that sends them through one layer."""
    weight = torch.randn(width, width, device=gpu.device, dtype=gpu.dtype)

    def with_rows(rows):
        x = torch.randn(rows, width, device=gpu.device, dtype=gpu.dtype)
        return lambda: x @ weight

    return with_rows


wide = 2048 if gpu.cpu else 8192
batches = [2**k for k in range(10 if gpu.cpu else 13)]
curves = lab.sweep("03-7", {f"{wide} wide": layer(wide), f"{wide // 2} wide": layer(wide // 2)},
                   batches)

# %%
if curves:
    guess = lab.predicted("03-7", "bend")
    in_view = guess and batches[0] <= guess <= batches[-1]
    times = curves[f"{wide} wide"]
    shown = {**curves, f"{wide} wide, per row": [t / b for t, b in zip(times, batches)]}
    axes = plots.draw_sweep(None, batches, shown, logx=True, logy=True,
                            knee=guess if in_view else None, knee_label="your prediction:",
                            title="One layer, more and more rows", xlabel="rows",
                            ylabel="time", origin=gpu.origin, device=gpu.name)
    plots.show(axes.figure)
    if all(map(math.isfinite, times)):
        meet = batches[-1] * times[0] / times[-1]
        lab.outcome("03-7", "64 rows", times[batches.index(64)] / times[0])
        lab.outcome("03-7", "bend", meet)

# %% [markdown]
# Extend the flat part to the right and the rising part to the left: where they meet is the bend that
# the last line names. On the flat part another row is nearly free, and the time *per row* falls. On
# the rising part each row pays in full. The layer half as wide has a quarter of the weights, so on
# the left it is much quicker. It bends at about the same place: rows decide.
#
# (The simulated card is built on the rule of this section, so it bends where the formula says: a
# few rows after the meeting point, since the flat part is not quite flat. A real card does not draw
# two straight lines: its library works in tiles of fixed size and changes kernels on the way, so
# steps of a few ten percent are normal. On a CPU the weights may stay in its cache, and the bend
# comes far earlier.)
#
# **03-7.** Now compute it. At how many rows does the intensity of the `wide` × `wide` layer equal
# the ridge of your own ceiling, `lab.ceiling()`? Elements have `gpu.itemsize` bytes; the formula
# above was for two.

# %% nbgrader={"grade": false, "grade_id": "03-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
ridge = lab.ceiling().rates[dtype] / lab.ceiling().bandwidth
rows_needed = ...  # rows
### BEGIN SOLUTION
rows_needed = 1 / (2 / (gpu.itemsize * ridge) - 1 / wide - 1 / wide)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("03-7", rows_needed)

# %% [markdown]
# The reason in one figure: intensity against rows for two widths, and the ridges you know of your
# card. The widths lie on each other as long as the rows weigh little beside the weights.

# %%
axes = plots.draw_intensity(None, [2**k for k in range(13)], [1024, 8192], roofs, dtype)
plots.show(axes.figure)

# %% [markdown]
# Move it yourself: rows, width, dtype. At the width and dtype of your sweep your own points stand
# beside it. First find the number of rows that crosses the ridge. Then make the layer as small as
# the menu allows: does the same number of rows still do?

# %%
mine = {}
if curves:
    mine[wide, dtype] = [
        plots.Point(f"yours, {b}", plots.linear_intensity(b, wide, wide, gpu.itemsize),
                    2 * b * wide**2 / curves[f"{wide} wide"][batches.index(b)], gpu.origin)
        for b in (batches[0], batches[4], batches[-3])
        if math.isfinite(curves[f"{wide} wide"][batches.index(b)])]
explore.roofline(gpu, roofs=roofs, points=mine, width=wide)

# %% [markdown]
# So the size of the matrix does count at one end: in fp16 a layer of width D never gets beyond D/2
# FLOP/byte, however many rows it sees, because the rows themselves have to be moved. Notebook 06
# comes back to the bend with a whole model, where something else gets in first.
#
# This is the end of the core. Fill the recap at the bottom (03-10) now if your 40 minutes are over,
# and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 6 · Eight operations
#
# These eight make up most of a transformer. Which way does each lean on your machine? First the
# paper: the counter gives their intensities.

# %%
tokens, hidden, heads, positions, head = ((2048, 1024, 8, 512, 64) if gpu.cpu
                                          else (16384, 4096, 32, 2048, 128))


def randn(*shape):
    return torch.randn(*shape, device=gpu.device, dtype=gpu.dtype)


a, b = randn(tokens, hidden), randn(tokens, hidden)
weight, vocabulary = randn(hidden, hidden), randn(32000, hidden)
queries, keys = randn(heads, positions, head), randn(heads, positions, head)
scores = randn(heads, positions, positions)
ids = torch.randint(0, 32000, (tokens,), device=gpu.device)
one, square = a[:1], a[:hidden]

operations = {
    "embedding": lambda: F.embedding(ids, vocabulary),
    "residual add": lambda: a + b,
    "gelu": lambda: F.gelu(a),
    "layer norm": lambda: F.layer_norm(a, (hidden,)),
    "softmax": lambda: torch.softmax(scores, -1),
    "attention scores": lambda: torch.bmm(queries, keys.transpose(1, 2)),
    "one-token linear": lambda: one @ weight,
    "large matmul": lambda: square @ weight,
}
intensity = {name: counting.count(function).intensity for name, function in operations.items()}
for name, value in intensity.items():
    print(f"{name:18} {value:9,.3f} FLOP/byte")
print(f"ridge of matrix products {min(matrix_ridges):.0f} to {max(matrix_ridges):.0f}, "
      f"of vector units {min(vector_ridges):.1f} to {max(vector_ridges):.1f}")

# %% [markdown]
# **03-8.** Give each a word: `"memory"`, `"compute"`, or `"near"` where the intensity is within a
# factor of three of the ridge. Mind which of the two ridges holds for which operation.

# %% nbgrader={"grade": false, "grade_id": "03-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdicts = {"embedding": ..., "residual add": ..., "gelu": ..., "layer norm": ..., "softmax": ...,
            "attention scores": ..., "one-token linear": ..., "large matmul": ...}
### BEGIN SOLUTION
products = ("attention scores", "one-token linear", "large matmul")
verdicts = {name: leans(value, matrix_ridges if name in products else vector_ridges)
            for name, value in intensity.items()}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-8", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("03-8", verdicts)

# %% [markdown]
# Now time them. One number to commit: how many times more FLOP/s will the large matmul reach than
# `gelu`, which counts as one FLOP per element?

# %% nbgrader={"grade": false, "grade_id": "03-8-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
gap = ...  # FLOP/s of the large matmul / FLOP/s of gelu
### BEGIN SOLUTION
gap = lab.ceiling().rates[dtype] / (intensity["gelu"] * lab.ceiling().bandwidth)
### END SOLUTION
lab.predict("03-8", gap, unit="times", label="matmul over gelu")

# %%
runs = lab.measure("03-8", operations, budget=0.3)
if len(runs) == len(operations):
    flops = {name: counting.count(function).flops for name, function in operations.items()}
    reached = {name: flops[name] / runs[name].median for name in operations}
    axes = plots.draw_roofline(
        None, roofs, [plots.Point(name, intensity[name], reached[name], gpu.origin)
                            for name in operations if flops[name]],
        dtype, title="Eight operations under your roofs")
    plots.show(axes.figure)
    lab.outcome("03-8", "matmul over gelu", reached["large matmul"] / reached["gelu"])

# %% [markdown]
# (The embedding does no arithmetic: it has no place on this axis.) The attention scores have many
# rows, and yet they stand far to the left of the large matmul. In `2 / (itemsize * (1/m + 1/k + 1/n))`
# the smallest of the three sides counts most. In a layer with few rows that is the rows. Here it is
# the head.
#
# Points on the slope wait for lorries, points on the flat part for arithmetic. A point well *below*
# its roof waits for something that this picture does not know. One well *above* it found its data in
# a cache, as on a CPU, or the ceiling was taken while the machine was busy. The ledger puts numbers
# to it. (On the simulated card next to nothing is left over: the model that made the times has the
# same roofs.)

# %%
lab.ledger("03-8", ["gelu", "softmax", "attention scores", "large matmul"])

# %% [markdown]
# One FLOP for a `gelu` is a convention. In the compiler's code it takes at least {{fact:instruction.gelu.fma}} per
# element, a slot being one vector unit busy for one clock. Cards with little vector arithmetic per
# byte come close to their second ridge here, and notebook 04 finds a bend in a chain of cosines.
#
# ## 7 · Put the verdict to the test
#
# A label proves nothing. What follows from it does. Take the `wide` layer with few rows and with
# many. Two changes to each:
#
# - **twice the arithmetic**: twice the rows through the same weights,
# - **half the weights**: twice the rows through half of the columns. The arithmetic stays as it was,
#   the trip of the weights is halved.
#
# Predict all four effects on the time. They cost nothing, and they are the point.

# %% nbgrader={"grade": false, "grade_id": "03-9-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
# each: "about half", "about the same" or "about double"
effects = {"few rows, twice the arithmetic": ..., "few rows, half the weights": ...,
           "many rows, twice the arithmetic": ..., "many rows, half the weights": ...}
### BEGIN SOLUTION
effects = {"few rows, twice the arithmetic": "about the same",
           "few rows, half the weights": "about half",
           "many rows, twice the arithmetic": "about double",
           "many rows, half the weights": "about the same"}
### END SOLUTION
for name, effect in effects.items():
    lab.predict("03-9", effect, label=name,
                options=["about half", "about the same", "about double"])

# %%
whole = randn(wide, wide)
half = whole[:, : wide // 2].contiguous()


def send(rows, weights):
    x = randn(rows, wide)
    return lambda: x @ weights


changes = {}
for side, rows in {"few rows": 1 if gpu.cpu else 16, "many rows": 512 if gpu.cpu else 2048}.items():
    changes[side] = send(rows, whole)
    changes[f"{side}, twice the arithmetic"] = send(2 * rows, whole)
    changes[f"{side}, half the weights"] = send(2 * rows, half)
lab.measure("03-9", changes, budget=0.3)
for name in effects:
    lab.compare("03-9", name, name.partition(",")[0], prediction=name)

# %% [markdown]
# **03-9.** Which bucket do these factors leave standing for few rows, and which for many?

# %% nbgrader={"grade": false, "grade_id": "03-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
buckets = {"few rows": ..., "many rows": ...}  # "memory", "compute" or "overhead"
### BEGIN SOLUTION
buckets = {"few rows": "memory", "many rows": "compute"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-9", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("03-9", buckets)

# %% [markdown]
# ## Recap
#
# **03-10.** Fill your row of the running summary table: which operation leans to which bucket? Use
# `"matmul with many rows"`, `"pointwise and few rows"` and `"tiny operations"`, each once.

# %% nbgrader={"grade": false, "grade_id": "03-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # which operation leans there
### BEGIN SOLUTION
row = {"memory": "pointwise and few rows", "compute": "matmul with many rows",
       "overhead": "tiny operations"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "03-10", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("03-10", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Intensity is FLOP per byte. Hold it against the ridge of the unit that does the work, on the card
#   you have, and say *near* when it is near.
# - A pointwise operation never shares a byte, however large the tensor. A matrix product shares its
#   weights among its rows, and with one row it shares nothing.
# - Few FLOPs can be much time. Look for the bytes.
#
# **Next, 04:** pointwise operations waste their trips. What if three of them shared one?
#
# Further reading: Williams, Waterman and Patterson, *Roofline: An Insightful Visual Performance
# Model*, 2009; Ivanov et al., *Data Movement Is All You Need*, arXiv 2007.00072, where the shares of
# section 3 come from; Horace He, *Making Deep Learning Go Brrrr From First Principles*.
