# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 07_inference_stages.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 07 · Inference stages: one model, every bottleneck
#
# **40 minutes**, and an optional second sitting of 25. You will be able to
#
# - compute the arithmetic intensity of each stage of a language model, from its shapes,
# - say for each stage which bucket it is in, and with which number,
# - recognise a model that waits for the CPU, and prove it,
# - read a list of optimisations and say what each one took away.
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("07-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 01 to 06, in case you start here:
#
# | word | meaning |
# |---|---|
# | memory, compute, overhead | the three buckets: a program waits for bytes, for arithmetic, or for the CPU that launches |
# | [intensity]({{course:docs}}/glossary.md#arithmetic-intensity), [ridge]({{course:docs}}/glossary.md#ridge-point) | FLOP per byte moved; the intensity at which a card turns from memory-bound to compute-bound |
# | [prefill]({{course:docs}}/glossary.md#prefill), [decode]({{course:docs}}/glossary.md#decode) | reading the prompt, all its tokens at once; writing the answer, one token per step |
# | [KV cache]({{course:docs}}/glossary.md#kv-cache) | keys and values of the tokens so far, kept so that nobody computes them again |
# | eager | PyTorch as it comes: the CPU launches each operation by itself |

# %%
# Run this cell first, and again after a restart.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch

from helpers import counting, devices, explore, inference, lab, plots, roofline
from helpers.decoder import Decoder
from helpers.facts import fact

gpu = lab.setup("07_inference_stages")

# %% [markdown]
# ## Two questions from before
#
# **07-1.** 32 rows go through one linear layer of 4096 × 4096 in fp16. What is its arithmetic
# intensity, in FLOP per byte? (Three per cent off is fine: you may leave out what is small.)

# %% nbgrader={"grade": false, "grade_id": "07-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
rows_32 = ...  # FLOP per byte
### BEGIN SOLUTION
rows_32 = 1 / (1 / 32 + 1 / 4096 + 1 / 4096)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-1", rows_32)

# %% [markdown]
# **07-2.** A step of 1,200 kernels is recorded as a CUDA graph and replayed. What does that take
# away?
#
# - **a** the bytes that the kernels read and write
# - **b** the arithmetic in the kernels
# - **c** the time that the CPU needs to launch each kernel by itself
# - **d** the wait at the end of the step

# %% nbgrader={"grade": false, "grade_id": "07-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
graph_removes = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
graph_removes = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-2", graph_removes)

# %% [markdown]
# ## 1 · One answer, two stages
#
# You ask a chat model something. There is a pause, then words appear one by one. These are two
# different programs on the same weights.
#
# - The pause is **prefill**. All tokens of the prompt go through the model together. In the
#   factory picture, one lorry brings a weight and thousands of rows are worked on with it.
# - The words are **decode**. Each step makes one token per conversation, and each step needs every
#   weight once more. The same lorries, for one row.
#
# If you come from the front end: prefill is the time to first byte, decode is the rate at which
# the stream delivers after that. The picture breaks in one place. A web server does not read its whole
# database again for every chunk. A decoder reads all its weights again for every token.
#
# Which of the three buckets is "a language model" in? That is the wrong question, and this
# notebook is about the right one: *which stage?*
#
# Before you count anything, commit a number. Llama-2-7B decodes 32 conversations at once,
# each with 2,048 tokens behind it. **How many FLOP per byte is the whole step?**

# %% nbgrader={"grade": false, "grade_id": "07-3-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
guess = ...  # FLOP per byte of one decode step, batch 32, 2048 tokens of context each
### BEGIN SOLUTION
guess = 32
### END SOLUTION
lab.predict("07-3", guess, unit="FLOP/B", label="batch 32")

# %% [markdown]
# ## 2 · Count a decode step
#
# A step has two big parts.
#
# - **The weights.** Each token does one multiply-add, 2 FLOP, with each of P weights. The weights
#   are read *once*, for all rows of the batch together.
# - **The cache.** Attention compares the new token with everything before it. Each number in the
#   cache is 2 bytes in fp16 and takes part in one multiply-add, 2 FLOP: **1 FLOP per byte**. No
#   conversation can use another one's cache, so a batch of B reads B caches.
#
# **07-3.** Write the intensity of one whole decode step. The check calls it with numbers of its own.

# %% nbgrader={"grade": false, "grade_id": "07-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode_intensity(batch, context, parameters, weight_bytes, kv_bytes):
    """FLOP per byte of one decode step of `batch` conversations.

    context: tokens in the cache of each. parameters: weights that every token multiplies.
    weight_bytes: bytes of one weight. kv_bytes: bytes that one token leaves in the cache,
    with 1 FLOP for each byte read. (About four lines.)
    """
    ### BEGIN SOLUTION
    cache = batch * context * kv_bytes
    flop = 2 * batch * parameters + cache
    moved = parameters * weight_bytes + cache
    return flop / moved
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-3", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
lab.check("07-3", decode_intensity)

# %% [markdown]
# A formula is a claim. Here is the model itself, in plain PyTorch, at the real shapes of
# Llama-2-7B: {{fact:model.llama2_7b.layers}} layers and a *head* that scores each possible next word,
# {{fact:model.llama2_7b.parameters|billion}} parameters. It lives on PyTorch's *meta* device, where tensors have shapes and no memory. The counter
# runs it once and adds up what every operation asks for.

# %%
shapes = inference.model()  # Llama-2-7B as numbers
paper = Decoder(device="meta").eval()  # the same as a PyTorch module, without memory
PARTS = {"matmul": "weights", "attention": "attention"}


def count_step(batch, rows, context):
    """[FLOP, bytes] of each part of one step: `rows` new tokens for each of `batch` sequences."""
    paper.start(batch, context)
    tokens = torch.empty(batch, rows, dtype=torch.long, device="meta")
    with torch.no_grad():
        work = counting.count(paper, tokens, tokens[0])
    parts = {"weights": [0, 0], "attention": [0, 0], "the rest": [0, 0], "all": [0, 0]}
    for op in work.ops:
        for name in (PARTS.get(op.kind, "the rest"), "all"):
            parts[name][0] += op.flops
            parts[name][1] += op.bytes
    return parts, work.kernels


counted = {}
for stage, batch, rows in [("prefill", 1, 2048), ("decode 1", 1, 1), ("decode 32", 32, 1)]:
    counted[stage], operations = count_step(batch, rows, 2048)
    print(f"{stage}: {operations:,} operations that start a kernel")
    for name, (flop, moved) in counted[stage].items():
        print(f"   {name:10} {flop / 1e9:12,.1f} GFLOP {moved / 1e9:9,.2f} GB")

# %% [markdown]
# Read it row by row. *Weights* are the matrix products, *attention* is the work on the cache, and
# *the rest* is norms, residuals, rotations and the gate, unfused.
#
# Now hold your prediction and your function against the count.

# %%
flop, moved = counted["decode 32"]["all"]
lab.outcome("07-3", "batch 32", flop / moved, origin="none")
mine = decode_intensity(32, 2048, shapes.matrices, 2, shapes.kv_bytes)
if isinstance(mine, (int, float)):
    print(f"your function says {mine:.3g}, the count says {flop / moved:.3g} FLOP/B")

# %% [markdown]
# 32 is the tempting answer: that is what the weights alone would give. But at this context the caches are
# more than two thirds of the bytes, and caches are at 1 FLOP per byte whatever the batch. (The
# count is one or two per cent below the formula, because it also has the rest.)
#
# **07-4.** Divide. Give the intensity of these six, in FLOP per byte, from `counted`.

# %% nbgrader={"grade": false, "grade_id": "07-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
intensity = {
    "prefill weights": ...,
    "prefill attention": ...,
    "decode 1 weights": ...,
    "decode 32 weights": ...,
    "decode 32 attention": ...,
    "prefill rest": ...,
}
### BEGIN SOLUTION
for name in intensity:
    stage, _, part = name.rpartition(" ")
    flop, moved = counted[stage]["the rest" if part == "rest" else part]
    intensity[name] = flop / moved
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("07-4", intensity)

# %% [markdown]
# ## 3 · The map
#
# The same six on the roofline of your machine. Left of the ridge a stage waits for bytes, right of
# it for arithmetic. The ridge moves with the roof you believe in, so look at all of them first.

# %%
for roof in lab.roofs():
    dtype = "fp16" if "fp16" in roof.rates else "fp32"
    print(f"{roof.label:20} ridge {roofline.ridge(roof, dtype):6.0f} FLOP/B   ({roof.origin})")


def known(entry):
    value = intensity.get(entry) if isinstance(intensity, dict) else ...
    return isinstance(value, (int, float)) and value > 0


names = {"prefill weights": "prefill: weights", "prefill attention": "prefill: attention",
         "decode 1 weights": "decode 1: weights", "decode 32 weights": "decode 32: weights",
         "decode 32 attention": "decode: attention", "prefill rest": "norms and\nresiduals"}
placed = [plots.Stage(label, intensity[name] * 2 / gpu.itemsize)  # counted in fp16
          for name, label in names.items() if known(name)]
if len(placed) < len(names):
    print("The map needs all six numbers of 07-4.")
else:
    axes = plots.draw_stage_map(None, lab.ceiling(), placed, dtype, origin="counted",
                                device=gpu.name, title="Llama-2-7B on your roofline",
                                note=f"under the {lab.ceiling().label}")
    plots.show(axes.figure)
    if gpu.cpu:
        print("Drawn in this CPU's fp32: twice the bytes of fp16, half the intensity you counted.")

# %% [markdown]
# What the map says, from right to left:
#
# - **Prefill** is far to the right: 2,048 rows share each trip of the weights. Attention inside it is
#   to the right as well, as long as its scores stay on the chip.
# - **Decode** at batch 1 is at 1 in fp16. Batching moves its weights to the right, and leaves the cache where it is.
# - **The rest** is at the far left in every stage. In the counted prefill it moves 30 GB, more than
#   the matrix products do. That is what fusion is for.
#
# Now move a stage yourself. Take *weights in decode* and raise the batch until it crosses the ridge.
# Then take *decode*, the whole step, with 512 tokens behind each conversation: does it get there, within
# what fits into the card? (Small rings mark the other batches that fit. The roof is on paper here;
# activations are left out. Without a card that the course knows, the picture is a T4's.) <!-- derived: 30 GB -->

# %%
explore.stages(gpu)

# %% [markdown]
# The whole step does not get there. Its caches hold it to the left, and they fill the memory as well.
#
# ## 4 · A bucket that the map cannot show
#
# A roofline knows two roofs. The third bucket is not on it: nothing in FLOP and bytes tells how
# long the CPU needs to launch a step. So here is a decoder of the same build that is small enough to
# run anywhere.
#
# First: does it compute the right thing? Feeding it a prompt token by token must give what the
# whole prompt at once gives. That is what makes prefill and decode the same model.

# %%
torch.manual_seed(0)
tiny = Decoder(width=64, heads=4, kv_heads=4, inner=96, layers=2, words=64,
               dtype=torch.float32, device=gpu.device).eval()
words = torch.randint(0, 64, (1, 8), device=gpu.device)
places = torch.arange(8, device=gpu.device)
with torch.no_grad():
    tiny.start(1, 8)
    at_once = tiny.scores(words, places)
    tiny.start(1, 8)
    for i in range(8):
        one_by_one = tiny.scores(words[:, i : i + 1], places[i : i + 1])
print("largest difference:", f"{(at_once - one_by_one).abs().max().item():.1e}")
print("the same, atol 1e-4:", torch.allclose(at_once, one_by_one, atol=1e-4))

# %%
small = Decoder(width=512, heads=8, kv_heads=8, inner=1376, layers=4, words=32000,
                dtype=gpu.dtype, device=gpu.device).eval()
small.start(1, 256)
prompt = torch.randint(0, 32000, (1, 128), device=gpu.device)
order = torch.arange(128, device=gpu.device)


@torch.no_grad()
def decode():
    return small(prompt[:, :1], order[-1:])


@torch.no_grad()
def read_prompt():
    return small(prompt, order)


small_work = counting.count(decode)
moving_us = small_work.bytes_unfused / lab.ceiling().bandwidth * 1e6
print(f"one decode step: {small_work.kernels} operations that start a kernel, "
      f"{small_work.bytes_unfused / 1e6:.0f} MB")
print(f"moving them takes {moving_us:,.0f} us at this {lab.ceiling().label}")
more = counting.count(read_prompt).flops / small_work.flops
print(f"a prompt of 128 tokens: {more:.0f} times the arithmetic (only its last token asks the head)")

# %% [markdown]
# Two predictions, both as factors of the time that a person waits, the CPU included.
#
# - `graph`: a decode step in eager, over the same step replayed as one CUDA graph.
# - `prompt`: reading a prompt of 128 tokens in eager, over decoding one token in eager. The cell above
#   printed how much more arithmetic that is.

# %% nbgrader={"grade": false, "grade_id": "07-5-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
graph_factor = ...  # eager decode / graphed decode
prompt_factor = ...  # 128 tokens in eager / 1 token in eager
### BEGIN SOLUTION
graph_factor = 12
prompt_factor = 1
### END SOLUTION
lab.predict("07-5", graph_factor, unit="times", label="graph")
lab.predict("07-5", prompt_factor, unit="times", label="prompt")

# %%
steps = {"decode": decode, "prompt": read_prompt}
if not gpu.cpu:
    steps["decode, graph"] = lab.as_graph(decode)
runs = lab.measure("07-5", steps, min_samples=5, budget=0.4)
if gpu.cpu:
    print("A CPU has no queue and no CUDA graph: the factor `graph` cannot be measured here.")
else:
    lab.compare("07-5", "decode", "decode, graph", prediction="graph", clock="wall")
lab.compare("07-5", "prompt", "decode", prediction="prompt", clock="wall")

# %% [markdown]
# On a GPU the printed times *per call* are GPU time: `lab.measure` holds the GPU back until
# everything is queued, so that the CPU cannot spoil them. The factors use `.wall`, what a loop of
# calls takes. Where the two differ widely, you have found the third bucket without a profiler.
#
# The ledger of the wall time says who explains what.

# %%
lab.ledger("07-5", ["decode", "prompt"], clock="wall")

# %% [markdown]
# **07-5.** What does the CPU pay for each operation of an eager decode step, in **microseconds**, and
# which bucket is the step in? Take `runs["decode"].wall` (seconds) and `small_work.kernels`.

# %% nbgrader={"grade": false, "grade_id": "07-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
host = {"us per operation": ..., "bucket": ...}  # "memory", "compute" or "overhead"
### BEGIN SOLUTION
host = {"us per operation": runs["decode"].wall / small_work.kernels * 1e6, "bucket": "overhead"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-5", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("07-5", host)

# %% [markdown]
# On a GPU's map both runs hang below the roof that their intensity would allow. The stretch from the
# graph down to the eager step is the third bucket: same bytes, same arithmetic, more launches. The graph
# need not reach the roof: each small kernel takes its microsecond or two, however few bytes it moves. (If the card is simulated: its
# cost per operation was set to what the eager run of section 6 paid, so that number comes back here.)

# %%
if runs:
    rate = {name: small_work.flops / m.wall for name, m in runs.items() if name != "prompt"}
    spots = [plots.Stage(f"small {name}", small_work.intensity, r) for name, r in rate.items()]
    dtype = "fp32" if gpu.cpu else "fp16"
    axes = plots.draw_stage_map(None, lab.ceiling(), spots, dtype, origin=gpu.origin,
                                device=gpu.name, title="The small model on your roofline" if gpu.cpu
                                else "Third bucket: from the graph down to eager")
    plots.show(axes.figure)

# %% [markdown]
# ## 5 · The stage table
#
# Two rows are still missing.
#
# - **Sampling** picks the next word from {{fact:model.llama2_7b.vocabulary}}: a softmax, a sort, a
#   draw, and then the number must reach Python. At batch 1 that is a handful of kernels on 64 KB.
# - **Loading the model** happens before the first token. {{fact:model.llama2_7b.weights}} come from
#   a disk, through the host's memory, over PCIe. Published for Llama-2-7B: {{fact:result.loading.llama2_7b_before}},
#   and {{fact:result.loading.llama2_7b_after}} once the file went straight to the device. Writing the
#   same bytes into the device memory of an A100 80 GB takes 6.6 ms on paper.
#
# **07-6.** Fill the table for Llama-2-7B on a datacentre card, context 2,048. For each row: `"memory"`,
# `"compute"`, `"overhead"`, or `"link"` for disk, host and PCIe. Decode rows mean the whole step, compiled so
# that launches do not count. Attention in prefill means the fused kernel. <!-- derived: 64 KB; 80 GB; 6.6 ms -->

# %% nbgrader={"grade": false, "grade_id": "07-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
stages = {
    "prefill": ...,
    "decode batch 1": ...,
    "decode batch 32": ...,
    "attention in prefill": ...,
    "attention in decode": ...,
    "norms and residuals": ...,
    "small model in eager": ...,
    "sampling": ...,
    "loading": ...,
}
### BEGIN SOLUTION
stages = {
    "prefill": "compute",
    "decode batch 1": "memory",
    "decode batch 32": "memory",
    "attention in prefill": "compute",
    "attention in decode": "memory",
    "norms and residuals": "memory",
    "small model in eager": "overhead",
    "sampling": "overhead",
    "loading": "link",
}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-6", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-6", stages)

# %% [markdown]
# ## 6 · A ladder, with the reasons hidden
#
# The PyTorch team took Llama-2-7B at batch 1 on one A100, limited to {{fact:result.gpt_fast.power}},
# and made it faster in steps. They published each rung. Solid is the time that reading the
# weights once takes at the bandwidth they assume, {{fact:result.gpt_fast.mbu_bandwidth|TB/s}}; hatched is
# everything else. The last bar is in one piece: a step there makes several tokens, and how many was not
# published.
#
# 1. **compile**: `torch.compile` with CUDA graphs, and a cache of fixed length
# 2. **int8**: weights in one byte instead of two, arithmetic as before
# 3. **int4**: weights in half a byte, with a scale for each group of 32
# 4. **speculative**: a small model drafts a few tokens, the large one checks all of them in *one* step and
#    keeps those that it would have said itself

# %%
axes = plots.draw_ladder()
plots.show(axes.figure)

# %% [markdown]
# **07-7.** What did each step take away? `"launches"`, `"bytes"` (of one trip), `"trips"` (per token)
# or `"arithmetic"`. A word may come twice, or not at all.

# %% nbgrader={"grade": false, "grade_id": "07-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
removed = {"compile": ..., "int8": ..., "int4": ..., "speculative": ...}
### BEGIN SOLUTION
removed = {"compile": "launches", "int8": "bytes", "int4": "bytes", "speculative": "trips"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-7", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("07-7", removed)

# %%
if isinstance(removed, dict) and ... not in removed.values():
    axes = plots.draw_ladder(None, removed)
    plots.show(axes.figure)

# %% [markdown]
# The first rung is the largest, and nobody touched the model for it. An eager step there has
# {{fact:result.gpt_fast.operations}} operations, one fewer than the decoder that you counted. At {{fact:result.gpt_fast.eager}} each cost the CPU
# {{fact:host.operation|us}}: Python, dispatch and launch together.
#
# Would the same step be overhead-bound on another card? The host's part stays, the memory's part
# changes.

# %%
eager_host = fact("result.gpt_fast.operations").value * fact("host.operation").value
print("one eager decode step of Llama-2-7B, batch 1, context 1,024: on paper, that host")
for key in ("t4", "l4", "a100_80_sxm", "h100_sxm"):
    roof = roofline.datasheet(devices.get(key))
    step = inference.decode(shapes, roof, 1, 1024, host=eager_host)
    bytes_ms = (step.weights.seconds + step.attention.seconds) * 1e3
    print(f"{roof.device:16} bytes {bytes_ms:5.1f} ms   host {step.host * 1e3:5.1f} ms   {step.bound}")

# %% [markdown]
# The faster the card, the more it waits for the CPU. One program, one model, two buckets: on the
# slower cards bytes decide, by little, on the faster ones the host does, by far.
#
# And now the foil. Elsewhere `torch.compile` made an 8B model {{fact:result.compile.llama_8b_forward}} times
# as fast: a little *slower*. It was a B200, and the model read sequences of 8,192 tokens. Which
# stage is that, and why was there so little to remove? Answer for yourself, then read on.
#
# Reading 8,192 tokens is prefill. It waits for arithmetic, which no compiler takes away. There are
# about as many launches as in a decode step, spread over a step that takes
# {{fact:result.compile.llama_8b_eager|ms}} instead of a few, so they hide behind the GPU's work. Fusing
# *the rest* saves trips, but they are a small share of such a step, and here even that did not show.
#
# Three conclusions:
#
# 1. **Ask which stage, not which model.**
# 2. **Decode is the main field**: every token of every answer passes through it. Its levers are
#    fewer bytes ([quantisation]({{course:docs}}/glossary.md#quantisation)) and more rows per trip (batching, and
#    speculative decoding, which makes rows out of one conversation).
# 3. **Overhead is not an edge case.** It was three quarters of the first rung. Published for a policy
#    network of {{fact:model.action_expert.parameters|million}} parameters on a T4: {{fact:result.action_expert.t4.eager|ms}} per step in
#    eager, {{fact:result.action_expert.t4.graph|ms}} as a CUDA graph.
#
# This is the end of the core. Fill the recap at the bottom (07-11) now if your 40 minutes are
# over, and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 7 · How much of the bandwidth do they use?
#
# A decode step that only reads weights has one natural score: the share of the card's bandwidth
# that the useful bytes take. It is called [MBU]({{course:docs}}/glossary.md#mfu-mbu), model bandwidth utilisation:
# bytes of the weights × steps per second ÷ bandwidth.
#
# **07-8.** gpt-fast publishes {{fact:result.gpt_fast.mbu|%}} for its compiled rung, {{fact:result.gpt_fast.compiled}}. Compute the MBU in **per cent**, with
# all parameters of the model in fp16 and the bandwidth they assume, {{fact:result.gpt_fast.mbu_bandwidth|TB/s}}. (`shapes.parameters`
# counts them all.)

# %% nbgrader={"grade": false, "grade_id": "07-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
mbu = ...  # per cent
### BEGIN SOLUTION
mbu = shapes.parameters * 2 * 107.0 / 2.0e12 * 100
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-8", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-8", mbu)

# %% [markdown]
# The same run with other inputs that people choose in good faith:

# %%
tokens = fact("result.gpt_fast.compiled").value
for what, moved, bandwidth in [
    ("7 billion parameters, 2.0 TB/s", 7e9 * 2, 2.0e12),
    ("all parameters, 2.0 TB/s", shapes.weights, 2.0e12),
    ("all parameters, the datasheet", shapes.weights, devices.get("a100_80_sxm").bandwidth),
    ("what a step reads, the datasheet", shapes.step_weights, devices.get("a100_80_sxm").bandwidth),
]:
    share = inference.bandwidth_utilisation(moved, tokens, bandwidth)
    print(f"{what:34} {share:.1%}")

# %% [markdown]
# One run, four scores. A utilisation without its bytes, its bandwidth and its power limit is not a
# number. (The limit of {{fact:result.gpt_fast.power}} mostly lowers the clock of the compute units, so decode should feel it
# least. Prefill would.)
#
# ## 8 · Put two verdicts to the test
#
# Decode at batch 1 is memory-bound, prefill is compute-bound: so says the map. If that is true, int8
# weights must help one and not the other. Take one matrix of the model, 11008 × 4096, and predict.
#
# - **int8 in decode**: one row, weights of one byte instead of two
# - **int8 in prefill**: 2,048 rows, the same weights
# - **eight rows in decode**: eight conversations instead of one, weights in fp16

# %% nbgrader={"grade": false, "grade_id": "07-9-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
effects = {"int8 in decode": ..., "int8 in prefill": ..., "eight rows in decode": ...}
# each: "about half", "about the same" or "about double"
### BEGIN SOLUTION
effects = {"int8 in decode": "about half", "int8 in prefill": "about the same",
           "eight rows in decode": "about the same"}
### END SOLUTION
for name, effect in effects.items():
    lab.predict("07-9", effect, label=name,
                options=["about half", "about the same", "about double"])

# %% [markdown]
# In int8 each row of the matrix has one scale. For one row a compiled product turns each weight back
# into fp16 *inside* the kernel, so that only one byte per weight crosses the memory bus. The version that
# converts the matrix *first* is measured as well: it is what eager mode does. On a CPU everything is smaller and in
# fp32.

# %%
linear = torch.nn.functional.linear
inner, width, many = (2752, 1024, 256) if gpu.cpu else (11008, 4096, 2048)


def to_int8(weight):
    """Whole numbers from -127 to 127, and the scale of each row."""
    scale = weight.abs().amax(-1) / 127
    return (weight / scale[:, None]).round().to(torch.int8), scale


def converted_first(x, weight8, scale):
    return linear(x, weight8.to(x.dtype)) * scale


one_row_int8 = torch.compile(
    lambda x, weight8, scale: (x * weight8.to(x.dtype)).sum(-1) * scale, dynamic=False)

weight = torch.randn(64, 256, device=gpu.device, dtype=gpu.dtype)
x = torch.randn(1, 256, device=gpu.device, dtype=gpu.dtype)
exact, rounded = linear(x, weight)[0], one_row_int8(x, *to_int8(weight))
print(f"int8 against exact: off by {((exact - rounded).abs().max() / exact.abs().max()).item():.1%} "
      "of the largest value, at most")

# %%
weight = torch.randn(inner, width, device=gpu.device, dtype=gpu.dtype)
weight8, scale = to_int8(weight)
row, eight, long = (torch.randn(r, width, device=gpu.device, dtype=gpu.dtype) for r in (1, 8, many))
trials = lab.measure("07-9", {
    "decode": lambda: linear(row, weight),
    "int8 in decode": lambda: one_row_int8(row, weight8, scale),
    "int8, converted first": lambda: converted_first(row, weight8, scale),
    "eight rows in decode": lambda: linear(eight, weight),
    "prefill": lambda: linear(long, weight),
    "int8 in prefill": lambda: converted_first(long, weight8, scale),
}, budget=0.3)
lab.compare("07-9", "int8 in decode", "decode", prediction="int8 in decode")
lab.compare("07-9", "eight rows in decode", "decode", prediction="eight rows in decode")
lab.compare("07-9", "int8 in prefill", "prefill", prediction="int8 in prefill")
lab.compare("07-9", "int8, converted first", "decode")

# %% [markdown]
# **07-9.** Which bucket do these times leave standing for each of the two stages?

# %% nbgrader={"grade": false, "grade_id": "07-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
verdict = {"decode": ..., "prefill": ...}  # "memory", "compute" or "overhead"
### BEGIN SOLUTION
verdict = {"decode": "memory", "prefill": "compute"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-9", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("07-9", verdict)

# %% [markdown]
# Look at the last comparison once more. Converted first, int8 moves a byte in, two out, and two in
# again: five for each weight, where fp16 moves two. (On a CPU in fp32: nine against four.) It fits what gpt-fast's authors saw: int8 *without*
# compile was slower than fp16. Fewer bytes on disk are not fewer bytes on the bus.
#
# What the rounded weights cost in accuracy is another matter. An error of about one per cent in one
# product says little about answers; it is measured on its own.
#
# ## 9 · When does attention take over?
#
# In the counted prefill attention did about a thirteenth of the FLOP. But it grows with the square of
# the prompt.
#
# For one layer and a prompt of n tokens: the weights do 2 · n · W FLOP, W being the parameters of the
# layer's matrices. Attention does two products of n × n × width: 4 · n² · width FLOP, of which a causal
# mask needs **half**, since no token looks ahead. (The counter saw a kernel with an explicit mask,
# which computes all of it.)
#
# **07-10.** At which prompt length do both do the same arithmetic? `shapes.layer_matrices` is W, `shapes.hidden`
# the width. Count the causal half.

# %% nbgrader={"grade": false, "grade_id": "07-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
even = ...  # tokens
### BEGIN SOLUTION
even = shapes.layer_matrices / shapes.hidden
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-10", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-10", even)

# %%
if isinstance(even, (int, float)) and 0 < even < 1e9:
    lengths = [2**k for k in range(9, 18, 2)]
    work = {"weights": [2 * n * shapes.layer_matrices for n in lengths],
            "attention": [2 * n**2 * shapes.hidden for n in lengths]}
    axes = plots.draw_sweep(None, lengths, work, logx=True, logy=True, yunit="FLOP", knee=even,
                            knee_label="yours:", title="Arithmetic of one layer in prefill",
                            xlabel="tokens in the prompt", ylabel="arithmetic",
                            origin="calculated", device="Llama-2-7B, causal attention")
    plots.show(axes.figure)

# %% [markdown]
# At the 4,096 tokens that Llama-2 was trained for, attention is a small part. Beyond
# your crossing it is the bulk of prefill. And in decode a long context weighs in *bytes*: at about 25,000
# tokens in all caches together they weigh as much as the weights.
#
# ## Recap
#
# **07-11.** Fill your row of the running summary table: where does inference meet each bucket most
# plainly? `"decode"`, `"prefill"` or `"a small model in eager"`, each once.

# %% nbgrader={"grade": false, "grade_id": "07-11-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # where inference meets each
### BEGIN SOLUTION
row = {"memory": "decode", "compute": "prefill", "overhead": "a small model in eager"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "07-11", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("07-11", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Ask which stage, not which model: prefill computes, decode reads, a small model waits for the CPU.
# - Decode has two levers: fewer bytes per trip, more rows per trip. Neither moves the cache's 1 FLOP per byte.
# - Where the wall time is far above the GPU time, remove launches before anything else.
#
# **Next, 08:** each of these levers has a price and a gain. Which one pays, in money per million
# tokens?
#
# Further reading: PyTorch, *Accelerating Generative AI with PyTorch II: GPT, Fast*, for the ladder; Pope et
# al., *Efficiently Scaling Transformer Inference*, for the arithmetic of prefill and decode; Leviathan
# et al., *Fast Inference from Transformers via Speculative Decoding*, for why checking is cheaper than
# writing. All are in the [sources]({{course:docs}}/sources.md) or under their titles.
