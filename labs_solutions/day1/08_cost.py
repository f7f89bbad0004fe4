# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 08_cost.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 08 · From bottlenecks to money
#
# **40 minutes**, and an optional second sitting of 30. You will be able to
#
# - turn a rent per hour and a speed into a cost per million tokens,
# - say how much cheaper a larger batch makes a token, and what stops it,
# - say why a faster card can save nothing,
# - pick the remedy that pays, and name the ones that would be wasted,
# - choose a card and a batch under a latency limit (second sitting).
#
# Each exercise has one answer variable, a check below it, and a hint in two steps:
# `lab.hint("08-3")`. What you predict, measure and answer is kept when you run a cell twice or
# restart; variables are not, so after a restart run the cells from the top.
#
# **Words on loan** from notebooks 02, 06 and 07, in case you start here:
#
# | word | meaning |
# |---|---|
# | memory-, compute-, overhead-bound | the program waits for bytes, for arithmetic, or for the CPU that launches |
# | decode, prefill | making tokens one after the other; reading the prompt, all its tokens at once |
# | batch | sequences (customers) that are served in the same step |
# | [KV cache]({{course:docs}}/glossary.md#kv-cache) | the keys and values of all tokens so far, kept in memory and read again in every step |
# | datasheet peak, ceiling | the fastest a part can go on paper; what your machine really reached |

# %%
# Run this cell first, and again after a restart.
import dataclasses
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

import torch
import torch.nn.functional as F

from helpers import devices, explore, inference, lab, plots, roofline
from helpers.facts import fact, show

gpu = lab.setup("08_cost")
llama = inference.model()  # Llama-2-7B, its shapes and sizes

# %% [markdown]
# ## Two questions from before
#
# **08-1.** A decode step of Llama-2-7B reads {{fact:model.llama2_7b.decode_weights}} of weights. An
# A100 80 GB SXM reads {{fact:device.a100_80_sxm.bandwidth}} on paper. How many tokens per second can
# it make at most for **one** sequence with a short context? <!-- derived: 80 GB -->

# %% nbgrader={"grade": false, "grade_id": "08-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
rate = ...  # tokens per second
### BEGIN SOLUTION
rate = 2039 / 13.2
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-1", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-1", rate)

# %% [markdown]
# **08-2.** Many sequences are decoded in one step. What can they **not** share, so that each of
# them brings its own?
#
# - **a** the trip of the weights
# - **b** the launches of the kernels
# - **c** the KV cache
# - **d** the factors of the norms

# %% nbgrader={"grade": false, "grade_id": "08-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
private = ...  # "a", "b", "c" or "d"
### BEGIN SOLUTION
private = "c"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-2", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-2", private)

# %% [markdown]
# ## 1 · The rent of the factory
#
# You rent the factory by the hour, with machines, lorries and warehouse. The rent is the same
# whether the machines run or wait. So every bottleneck of this course is on the bill: while the
# program waits for memory you pay for idle arithmetic units, and while it waits for the CPU you
# pay for everything.
#
# The picture breaks in one place: a factory can send people home when there is no work. A rented
# card costs the same at night, until you give it back.
#
# If you come from the front end: it is a server, not a serverless function. The cost of a request
# is the rent divided by the requests that share the hour. It breaks here: web requests share a
# server without helping each other, while sequences in one batch share the very same read of the
# weights.
#
# Prices are inputs. They differ several times between sellers and change within months, so each
# one carries its seller and its day. Set your own if you have one.

# %%
offers = {"t4": "price.modal.t4", "l4": "price.modal.l4", "a100_80_sxm": "price.modal.a100_80",
          "h100_sxm": "price.modal.h100", "a100_40_sxm": "price.lambda.a100_40",
          "a10": "price.lambda.a10", "h100_pcie": "price.lambda.h100_pcie",
          "a100_80_pcie": "price.runpod_secure.a100_80_pcie"}

my_price = None  # USD per hour, above 0; your own price for your card takes the place of the one above
my_card = "t4"  # one of the above: used where yours is a CPU, unknown, or without any price

known = gpu.facts is not None and (gpu.facts.key in offers or my_price is not None)
mine = gpu.facts if known else devices.get(my_card)
others = [key for key in ("l4", "a100_80_sxm", "h100_sxm") if key != mine.key][:2]
cards = [mine, *(devices.get(key) for key in others)]
price = {}
for card in cards:
    own = card is mine and my_price is not None
    price[card.key] = my_price if own else fact(offers[card.key]).value
    print(f"{card.name:16} {f'${my_price}/h (yours)' if own else show(offers[card.key])}")
if not known:
    print(f"({gpu.name} has no price here: the {mine.name} stands in for it.)")
unit, hours = fact("price.colab.unit"), fact("price.colab.units_t4")
print(f"A T4 on Colab, as it was: {hours.value} compute units an hour ({hours.date}) at "
      f"${unit.value:.2f} a unit ({unit.date}), so ${hours.value * unit.value:.2f} an hour")

# %% [markdown]
# Take the first card of the list, one sequence at a time, memory as fast as on paper. What do a
# million tokens cost? Commit a number before you have a formula: it is the sort of guess that
# budgets are made of. Being wrong costs nothing.

# %% nbgrader={"grade": false, "grade_id": "08-3-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
guess_usd = ...  # USD per million tokens at batch 1
### BEGIN SOLUTION
guess_usd = 5.0
### END SOLUTION
lab.predict("08-3", guess_usd, unit="USD", label="batch 1")

# %% [markdown]
# **08-3.** Write the formula. `utilisation` is the share of the paid hours in which the card makes
# that many tokens; in the rest it waits for customers.

# %% nbgrader={"grade": false, "grade_id": "08-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cost_per_million(price_per_hour, tokens_per_second, utilisation=1.0):
    """USD per million tokens.

    price_per_hour in USD; utilisation from 0 to 1. (About three lines.)
    """
    ### BEGIN SOLUTION
    usd_per_second = price_per_hour / 3600
    usd_per_token = usd_per_second / (tokens_per_second * utilisation)
    return usd_per_token * 1e6
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-3", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-3", cost_per_million)

# %%
fastest = mine.bandwidth / llama.step_weights  # tokens per second
usd = cost_per_million(price[mine.key], fastest)
right_usd = inference.cost_per_million(price[mine.key], fastest)
if usd is None or abs(usd - right_usd) > 0.01 * right_usd:
    print("Your number comes when cost_per_million is right.")
else:
    print(f"{mine.name}, one sequence, no context: {fastest:.1f} tokens/s on paper, "
          f"{usd:.2f} USD per million tokens")
    lab.outcome("08-3", "batch 1", usd, origin="none")  # calculated, not timed

# %% [markdown]
# ## 2 · 32 tokens for the price of one?
#
# The weights are a fixed trip. Serve 32 sequences in a step, and the trip is shared by 32 tokens.
# Were that all, a token would cost 32 times less.
#
# Here is one of the 32 layers of Llama-2-7B at its true size (on a CPU a smaller one): its matrix
# products, and the attention that reads the cache. Each sequence has a context of 1,024 tokens. Its
# newest token would be stored as well, one of 1,025: that is left out.

# %%
context = 1024
shape = llama
if gpu.cpu:
    shape = dataclasses.replace(llama, hidden=1024, heads=8, kv_heads=8, ffn=2752)


def normal(*sizes):
    return torch.randn(*sizes, device=gpu.device, dtype=gpu.dtype) * 0.02


wide, inner = shape.hidden, shape.ffn
qkv, out, down = normal(wide, 3 * wide), normal(wide, wide), normal(inner, wide)
gate, up = normal(wide, inner), normal(wide, inner)


def layer_step(batch):
    """One decode step of `batch` sequences through the layer: a function without arguments."""
    x = normal(batch, wide)
    keys, values = (normal(batch, shape.heads, context, shape.head_dim) for _ in range(2))

    def step():
        query = (x @ qkv)[:, :wide].reshape(batch, shape.heads, 1, shape.head_dim)
        seen = F.scaled_dot_product_attention(query, keys, values).reshape(batch, wide)
        h = x + seen @ out
        return h + (F.silu(h @ gate) * (h @ up)) @ down

    return step


weights_mb = shape.layer_matrices * gpu.itemsize / 1e6
cache_mb = 2 * wide * gpu.itemsize * context / 1e6
print(f"weights of the layer {weights_mb:,.0f} MB, cache of one sequence {cache_mb:,.1f} MB, "
      f"of 32 sequences {32 * cache_mb:,.0f} MB")

# %% [markdown]
# How many times **less** will a token cost in a batch of 32 than alone? The rent runs by time, so
# compare the time per token. Commit a factor.

# %% nbgrader={"grade": false, "grade_id": "08-4-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
cheaper = ...  # cost of a token at batch 1 / cost at batch 32
### BEGIN SOLUTION
cheaper = 32 * (weights_mb + cache_mb) / (weights_mb + 32 * cache_mb)
### END SOLUTION
lab.predict("08-4", cheaper, unit="times", label="cheaper")

# %%
runs = lab.measure("08-4", {"batch 1": layer_step(1), "batch 32": layer_step(32)})

# %% [markdown]
# **08-4.** From these two times: how many times less does a token cost at batch 32?
# `runs["batch 1"].median` is the time of a whole step, in seconds.

# %% nbgrader={"grade": false, "grade_id": "08-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
gain = ...
### BEGIN SOLUTION
gain = 32 * runs["batch 1"].median / runs["batch 32"].median
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-4", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-4", gain)

# %%
def book(took, **trips):
    """A ledger of a time: what each trip explains, in seconds, and what is left over."""
    rows = tuple(roofline.Row(name, trip, trip / took) for name, trip in trips.items())
    left = took - sum(trips.values())
    return roofline.Ledger(took, rows, left, left / took)


if not runs:
    print("Nothing measured yet, so there is nothing to explain.")
else:
    lab.outcome("08-4", "cheaper", 32 * runs["batch 1"].median / runs["batch 32"].median)
    books, speed = {}, lab.ceiling().bandwidth / 1e6  # MB per second, as your machine copies
    for name, batch in (("batch 1", 1), ("batch 32", 32)):
        once, each = weights_mb / speed, batch * cache_mb / speed
        books[name] = book(runs[name].median, weights=once, caches=each)
        print(f"{name}: weights {once * 1e3:.3g} ms, caches {each * 1e3:.3g} ms at this "
              f"{lab.ceiling().label}; the step took {runs[name].median * 1e3:.3g} ms")
    axes = plots.draw_ledger(None, books, gpu.origin, gpu.name, title="What the bytes explain")
    plots.show(axes.figure)

# %% [markdown]
# The weights crossed once in both runs. The caches crossed once **each**, and 32 of them outweigh
# the weights of the layer. On a GPU these bytes explain most of both bars, and the CPU that launches
# is not in them: `lab.measure` keeps the queue full. (On the simulated card the model made the times
# from the bytes, so they nearly agree. Measured on a CPU, part of the longer step is arithmetic: a
# CPU can do less of it per byte.)
#
# What is left over is a question. A kernel that reads many short caches, for one, may stay further
# from the roof than one that reads a single large matrix.
#
# ## 3 · The same with the whole model
#
# Now on paper, for all layers: {{fact:model.llama2_7b.decode_weights}} of weights per step, and
# {{fact:model.llama2_7b.kv_bytes|B/token}} of cache, in every context. As long as the step
# is [memory-bound]({{course:docs}}/glossary.md#memory-bound), its time is its bytes over the bandwidth.
#
# **08-5.** An A100 80 GB SXM goes from batch 1 to batch 32. How many times cheaper does a token get
# when every context holds 128 tokens, 1,024, or 2,048? Both steps read their caches.
# <!-- derived: 80 GB -->

# %% nbgrader={"grade": false, "grade_id": "08-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
gains = {128: ..., 1024: ..., 2048: ...}
### BEGIN SOLUTION
def step_bytes(batch, context):
    return llama.step_weights + batch * context * llama.kv_bytes


gains = {c: 32 * step_bytes(1, c) / step_bytes(32, c) for c in (128, 1024, 2048)}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-5", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("08-5", gains)

# %% [markdown]
# The figure goes on to the end: more sequences, until the card's memory is full. Two things stop
# the fall. The line bends where the caches outweigh the shared weights, and it **ends** at the
# cross: one sequence more is not slower, it is an out-of-memory error.

# %%
a100 = devices.get("a100_80_sxm")
a100_price = price.get("a100_80_sxm", fact(offers["a100_80_sxm"]).value)
lines = [plots.Offer(f"context {c:,}", a100, a100_price, c) for c in (128, 1024, 2048)]
axes = plots.draw_cost_curves(None, lines, device=a100.name,
                              title=f"Llama-2-7B, A100 at {a100_price:.2f} USD an hour")
plots.show(axes.figure)

# %% [markdown]
# Look at context 128: past a batch of about 150 the line is flat. There the weights' products reach
# the [ridge point]({{course:docs}}/glossary.md#ridge-point) and become compute-bound: from then on
# more rows take more time, and nothing is shared any longer.
#
# ## 4 · The cost table
#
# **08-6.** Fill the table for the three cards in `cards`. Context 1,024, every card at its
# datasheet peak, so that they can be compared.
#
# | column | meaning |
# |---|---|
# | `price` | USD per hour, from `price` |
# | `usd_at_1` | USD per million tokens at batch 1 |
# | `batch` | the largest batch that fits: `inference.largest_batch(llama, card.memory, context)` |
# | `ms` | the time of one step at that batch, in ms |
# | `usd` | USD per million tokens at that batch |
#
# The time of a step in seconds, KV reads included:
# `inference.decode(llama, roofline.datasheet(card), batch, context).seconds`. A step makes one token
# for each sequence.

# %% nbgrader={"grade": false, "grade_id": "08-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
# {card.key: {"price": ..., "usd_at_1": ..., "batch": ..., "ms": ..., "usd": ...}, ...}
table = ...
### BEGIN SOLUTION
table = {}
for card in cards:
    roof, rent = roofline.datasheet(card), price[card.key]
    alone = inference.decode(llama, roof, 1, context).seconds
    most = inference.largest_batch(llama, card.memory, context)
    full = inference.decode(llama, roof, most, context).seconds
    table[card.key] = {"price": rent, "usd_at_1": cost_per_million(rent, 1 / alone),
                       "batch": most, "ms": full * 1e3,
                       "usd": cost_per_million(rent, most / full)}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-6", "locked": true, "points": 1.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-6", table)

# %%
if isinstance(table, dict) and all(isinstance(line, dict) for line in table.values()):
    names = ("price", "usd_at_1", "batch", "ms", "usd")
    print(f"{'card':14}" + "".join(f"{name:>10}" for name in names))
    for key, line in table.items():
        print(f"{key!s:14}" + "".join(f"{line.get(name, '')!s:>10.6}" for name in names))
    print("(calculated from datasheets: nothing was timed)")

# %% [markdown]
# Hold `usd_at_1` against `usd`. The batch decides more than the card, and what decides the batch is
# the memory that the weights leave free. That is why a cheap small card can be the dear one.
#
# The table is a floor: published runs on A100s cost about 1.3 to 1.4 times as much (section 8 shows
# them). Plan with that, not with the floor.
#
# ## 5 · The hours nobody asks
#
# All of this was for a card that always has customers. Most have not: the requests of a product
# come by day, and a batch of a hundred needs a hundred people who wait for an answer at the same
# moment.

# %%
load = lab.case("08-7")

# %% [markdown]
# **08-7.** A rented card could make `"tokens/s at full load"`. Over day and night your customers ask
# for `"tokens/s asked for"` on average, and the card waits in between. What does a million tokens
# really cost? And what would it cost on a card that is **twice as fast**, at the same rent, with the
# same customers?

# %% nbgrader={"grade": false, "grade_id": "08-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
bill = {"usd": ..., "usd on a card twice as fast": ...}
### BEGIN SOLUTION
full_load, asked = load["tokens/s at full load"], load["tokens/s asked for"]
bill = {
    "usd": cost_per_million(load["usd per hour"], full_load, asked / full_load),
    "usd on a card twice as fast": cost_per_million(load["usd per hour"], 2 * full_load,
                                                    asked / (2 * full_load)),
}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-7", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-7", bill)

# %% [markdown]
# Keep this before any tuning: **a faster program saves money only if the saved time is used**, by
# more customers or by giving the card back.

# %% [markdown]
# ## 6 · Which remedy pays
#
# First the bucket, then the remedy. A remedy for another bucket costs work and mostly saves nothing.
#
# | bottleneck | remedy | what a token costs after it | what it costs you |
# |---|---|---|---|
# | memory | more rows per trip: batching | the weights' share divided by the batch; the caches' share stays | latency, memory for the caches, enough customers |
# | memory | fewer bytes: int8, int4 weights ([quantisation]({{course:docs}}/glossary.md#quantisation)) | the weights' share divided by up to 2, 4 | accuracy, measured separately on your task; kernels that unpack |
# | memory | fewer trips: fusion, FlashAttention | the trips of intermediates disappear | compile time, or a kernel to look after |
# | compute | arithmetic in 8 bits, on tensor cores that have it | up to half | accuracy; not every card has it |
# | compute | a better algorithm, another card | what it saves | your time, or a higher rent |
# | overhead | compile, [CUDA graphs]({{course:docs}}/glossary.md#cuda-graph), fewer kernels | down to what the kernels need | seconds of compiling, fixed shapes |
# | nobody asks | fewer hours, a smaller card, a second model on it | divided by what utilisation gains | waiting for a cold start |
#
# Overhead is the cheapest to win back: no bit of the result need change, and nobody waits longer.
# In the public ladder of gpt-fast, on an A100, compiling took decoding from
# {{fact:result.gpt_fast.eager}} to {{fact:result.gpt_fast.compiled}}. Without it, int8 weights were
# *slower* than fp16: the unpacking is then kernels of its own, with trips of their own.
#
# Three servers. Each line is one step, in ms: what the CPU needs to queue it, what moving and what
# computing the weights' products takes, and the reading of the caches.

# %%
profiles = lab.case("08-8")

# %% [markdown]
# The rule: the weights' part takes the **larger** of moved and computed, the cache comes on top,
# and the CPU queues meanwhile, so a step is the larger of that sum and `host`. The remedies:
#
# - `"cuda graph"`: `host` falls to a twentieth,
# - `"8 bits"`: weights and arithmetic in 8 bits; `weights moved` and `weights computed` halve,
# - `"batch x4"`: four times the sequences; `weights computed` and `cache` times 4, and 4 times the
#   tokens.
#
# First the verdict: name the bucket of each server. It is locked, it costs nothing, and the nine
# answers that follow from it will tell whether it was more than a label.

# %% nbgrader={"grade": false, "grade_id": "08-8-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
buckets = {"A": ..., "B": ..., "C": ...}  # "memory", "compute" or "overhead"
### BEGIN SOLUTION
buckets = {"A": "overhead", "B": "memory", "C": "compute"}
### END SOLUTION
for server, bucket in buckets.items():
    lab.predict("08-8", bucket, label=server, options=["memory", "compute", "overhead"])

# %% [markdown]
# **08-8.** Rank the remedies for each server, by what a token costs afterwards, the best one first.
# Where two leave the same, either order is right.

# %% nbgrader={"grade": false, "grade_id": "08-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
ranking = {"A": ..., "B": ..., "C": ...}  # each a list of "cuda graph", "8 bits", "batch x4"
### BEGIN SOLUTION
ranking = {
    "A": ["cuda graph", "batch x4", "8 bits"],
    "B": ["batch x4", "8 bits", "cuda graph"],
    "C": ["8 bits", "cuda graph", "batch x4"],
}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-8", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("08-8", ranking)

# %%
def step_ms(host, moved, computed, cache):
    return max(host, max(moved, computed) + cache)


def gains_of(profile):
    """Cost of a token before over after, for each remedy."""
    h, m, c, k = profile.values()
    before = step_ms(h, m, c, k)
    return {"cuda graph": before / step_ms(h / 20, m, c, k),
            "8 bits": before / step_ms(h, m / 2, c / 2, k),
            "batch x4": 4 * before / step_ms(h, m, 4 * c, 4 * k)}


if not isinstance(ranking, dict) or ... in ranking.values():
    print("The picture of the nine answers comes when the ranking is filled.")
else:
    axes = plots.draw_remedies(None, {name: gains_of(p) for name, p in profiles.items()},
                               device="your three servers")
    plots.show(axes.figure)

# %% [markdown]
# A waits for its CPU. B makes tokens and waits for bytes. C reads long prompts and waits for
# arithmetic. Each remedy wins once. One verdict for each server, put to three tests: a bucket that
# is named rightly tells its bars in advance.
#
# This is the end of the core. Fill the recap at the bottom (08-11) now if your 40 minutes are over,
# and come back for the rest.
#
# ---
#
# # Second sitting (optional)
#
# ## 7 · A limit on waiting
#
# Each customer waits for the whole step, however many share it. So a product has a limit: so many
# ms per token and no more. With it a card has two walls, and the nearer one counts:
#
# - the **memory wall**: one more sequence does not fit,
# - the **latency limit**: one more sequence fits, and makes everybody wait too long.
#
# There is a rule of thumb in it. Once memory-bound, a step reads all that lies in memory, once. A
# card that needs longer to read its whole memory than the limit allows can never use all of it.
# Divide capacity by bandwidth, as notebook 01 did. (92 % is the share that `largest_batch` fills.)

# %%
budget = lab.case("08-9")
for key in ("l4", "a100_80_sxm", "h100_sxm"):
    card = devices.get(key)
    print(f"  {card.name:16} reads 92 % of its memory in "
          f"{0.92 * card.memory / card.bandwidth * 1e3:4.1f} ms, {show(budget[key])}")

# %% [markdown]
# **08-9.** You have three offers, a context and a limit on the time of a step: they are yours
# alone. For each card, find the largest batch that keeps both walls, 0 if not even one sequence
# does. Then name the card with the cheapest token at its batch, and what a million of them costs.
# `fact(budget["l4"]).value` is a price; every card at its datasheet peak.

# %% nbgrader={"grade": false, "grade_id": "08-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
plan = {"batches": {"l4": ..., "a100_80_sxm": ..., "h100_sxm": ...}, "cheapest": ..., "usd": ...}
### BEGIN SOLUTION
batches, costs = {}, {}
for key in plan["batches"]:
    card = devices.get(key)
    roof, limit = roofline.datasheet(card), budget["limit_ms"] / 1e3
    most = inference.largest_batch(llama, card.memory, budget["context"])
    batch = 0
    while batch < most and inference.decode(llama, roof, batch + 1, budget["context"]).seconds <= limit:
        batch += 1
    batches[key] = batch
    if batch:
        step = inference.decode(llama, roof, batch, budget["context"]).seconds
        costs[key] = cost_per_million(fact(budget[key]).value, batch / step)
cheapest = min(costs, key=costs.get)
plan = {"batches": batches, "cheapest": cheapest, "usd": costs[cheapest]}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-9", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("08-9", plan)

# %%
if not isinstance(plan, dict) or plan.get("cheapest", ...) is ...:
    print("The picture of your three offers comes when the plan is filled.")
else:
    lines = [plots.Offer(devices.get(key).name, key, fact(budget[key]).value, budget["context"])
             for key in ("l4", "a100_80_sxm", "h100_sxm")]
    title = f"Your three offers, context {budget['context']:,}"
    axes = plots.draw_cost_curves(None, lines, limit=budget["limit_ms"] / 1e3, title=title)
    plots.show(axes.figure)

# %% [markdown]
# ## 8 · How far to trust the table
#
# The table of section 4 is a floor: the datasheet's rates, and nothing but weights, cache and matrix
# products. Beside it: what others measured on an A100, and what your own machine's roofs say about a
# step at batch 1.

# %%
step = inference.decode(llama, roofline.datasheet(a100), 1, 256).seconds
published = fact("result.gpt_fast.compiled").value
print(f"A100, batch 1, context 256:        floor {1 / step:7,.0f} tokens/s, published {published:7,.0f}"
      f"   cost x{1 / step / published:.2f}")
mean = 128 + 2048 // 2  # 128 tokens in, 2048 out: the context in the middle of the answer
step = inference.decode(llama, roofline.datasheet(a100), 60, mean).seconds
published = fact("result.trt_llm.a100.batch60_128_2048").value
print(f"A100, batch 60, 128 in, 2048 out:  floor {60 / step:7,.0f} tokens/s, published {published:7,.0f}"
      f"   cost x{60 / step / published:.2f}")
print("\nYour roofs, batch 1, weights only:")
for roof in lab.roofs():
    tokens = roof.bandwidth / llama.step_weights
    said = f"{roof.label:20} {roof.bandwidth / 1e9:6,.0f} GB/s  {tokens:6.1f} tokens/s"
    if known and (usd := cost_per_million(price[mine.key], tokens)) is not None:
        said += f"  {usd:6.2f} USD per million"
    print(f"{said}   ({roof.origin})")

# %% [markdown]
# The published runs are gpt-fast on an A100 80 GB limited to {{fact:result.gpt_fast.power}}, and
# TensorRT-LLM on an A100 (its caches fill 68 GB at the end, so it was the one of 80). Both cost
# about 1.3 to 1.4 times the floor.
#
# Where your own list has several lines, they are several prices for the same work: what the
# datasheet promises, what others sustained, what your machine reached. (On the simulated card the
# ceiling was set to published figures, or to a share of the datasheet where there are none: here it
# only comes back.)
# <!-- derived: 80 GB; 68 GB -->
#
# ## 9 · Half the bytes, not half the bill
#
# The same ladder, batch 1, on an A100 80 GB: fp16 {{fact:result.gpt_fast.compiled}}, int8 weights
# {{fact:result.gpt_fast.int8}}. Half the bytes, and 1.47 times the tokens. Where is the rest?
# Make the ledger: take from each step what reading its weights takes at
# {{fact:device.a100_80_sxm.bandwidth}}. <!-- derived: 80 GB -->
#
# **08-10.** How many ms of a step are `left` over, in fp16 and in int8? In int8 each weight is one
# byte. `llama.step_weights` holds the bytes that a step reads in fp16.

# %% nbgrader={"grade": false, "grade_id": "08-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
left = {"fp16": ..., "int8": ...}  # ms
### BEGIN SOLUTION
trip = llama.step_weights / a100.bandwidth
left = {"fp16": (1 / 107.0 - trip) * 1e3, "int8": (1 / 157.4 - trip / 2) * 1e3}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-10", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-10", left)

# %% [markdown]
# If that left-over is a fixed part of every step, it predicts the next rung. int4 weights are half
# a byte each. How many tokens per second? Commit a number, then compare it with the published one.

# %% nbgrader={"grade": false, "grade_id": "08-10-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
int4_rate = ...  # tokens per second
### BEGIN SOLUTION
int4_rate = 1 / (trip / 4 + (left["fp16"] + left["int8"]) / 2 / 1e3)
### END SOLUTION
lab.predict("08-10", int4_rate, unit="tokens/s", label="int4")

# %%
if lab.predicted("08-10", "int4") is None:
    print("The published step comes after your prediction.")
else:
    lab.outcome("08-10", "int4", fact("result.gpt_fast.int4").value, origin="none")
    books = {}
    for name, rung, bits in [("fp16", "compiled", 16), ("int8", "int8", 8), ("int4", "int4", 4)]:
        took = 1 / fact(f"result.gpt_fast.{rung}").value
        books[name] = book(took, weights=llama.step_weights * bits / 16 / a100.bandwidth)
    axes = plots.draw_ledger(None, books, "published", "A100 80 GB, gpt-fast",
                             title="Half the weights, the same left-over")
    plots.show(axes.figure)

# %% [markdown]
# The left-over hardly moves. It is what the weights' bytes at full speed do not explain: memory below
# its datasheet rate, the cache, norms, sampling, gaps between kernels. In int4 it is a little
# longer: its weights carry scales, one for each group of 32, and they were not counted here. A
# ledger gives you the size of the question; only a trace answers it.
#
# So a remedy is worth its bucket's **share** of the step, never more. And the accuracy of int8 and
# int4 is not on this bill at all: measure it on your own task before you believe the saving.
#
# ## 10 · Play with the walls
#
# Cost above, time per token below, for the first card of your list; the limit is 50 ms. Which of
# the two walls comes first at a context of 128, and at 4,096? The rule of thumb of section 7 tells
# in advance: compare the limit with `0.92 * mine.memory / mine.bandwidth`. It fails where the
# arithmetic takes over, at short contexts and large batches. <!-- derived: 50 ms -->

# %%
explore.cost(mine, price=price[mine.key])

# %% [markdown]
# ## Recap
#
# **08-11.** Fill your row of the running summary table: the remedy that pays for each bucket.
# `"more rows per trip"`, `"lower precision"` or `"fewer launches"`, each once.

# %% nbgrader={"grade": false, "grade_id": "08-11-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
row = {"memory": ..., "compute": ..., "overhead": ...}  # the remedy that pays
### BEGIN SOLUTION
row = {"memory": "more rows per trip", "compute": "lower precision", "overhead": "fewer launches"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "08-11", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("08-11", row)

# %%
lab.summary()
lab.progress()

# %% [markdown]
# What to keep:
#
# - Rent by the token: price per hour over tokens that really come out of the hour.
# - The batch shares the weights and nothing else. Caches, the memory wall and the latency limit end
#   the fall.
# - First the bucket, then the remedy. A remedy saves the share of its bucket, and only if somebody
#   uses the time.
#
# **Next, 09:** the self-test. Seven questions that need all of this, numbers of your own, and your
# earlier predictions beside what came out.
#
# Further reading: PyTorch, *Accelerating Generative AI with PyTorch II: GPT, Fast*, for the ladder
# of section 9; Pope et al., *Efficiently Scaling Transformer Inference*, for the arithmetic of
# section 3 and its trade of latency against cost.
