# ---
# jupyter:
#   accelerator: GPU
#   colab:
#     gpuType: T4
#     name: 09_self_test.ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   jupytext:
#     formats: py:percent
# ---

# %% [markdown]
# # 09 · Self-test: does it hold?
#
# **40 minutes.** Nothing is measured here. You will be able to
#
# - name what limits a step from its numbers, and say when they do not suffice,
# - say which test would decide, and what follows from each verdict,
# - see how your judgement stands: against this test, and against your own earlier predictions,
# - go back to the one notebook that is worth repeating.
#
# Seven questions, one function, three cases. Each has one answer variable, a check below it, and a
# hint in two steps: `lab.hint("09-3")`. The numbers are **yours**: another learner has others. They
# come as a dict, so `batch["rows"]` is the first of them. What you answer is kept when you run a
# cell twice or restart; variables are not, so after a restart run the cells from the top.
#
# The other notebooks open with two questions from before. This one is made of them. Every word
# was taught; if one is gone, the [glossary]({{course:docs}}/glossary.md) has a line on it. A pocket
# calculator is a Python cell: add one wherever you like. GB is 1e9 bytes throughout, and all rates
# of cards are datasheet peaks, so that no question depends on the machine you sit at. (The first
# cell looks for a GPU as everywhere. It does not matter here whether it finds one.)

# %%
# Run this cell first, and again after a restart.
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("helpers") is None:  # on Colab; elsewhere the course is installed
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "{{course:wheel}}"])

from helpers import explore, lab, plots

gpu = lab.setup("09_self_test")

# %% [markdown]
# ## One prediction first
#
# As before every measurement: commit a number. There are 11 exercises. How many will be right at
# your **first** attempt? (An entry left out, or a word that is no option, is no attempt.) It costs
# nothing, and at the end the answer stands beside it.

# %% nbgrader={"grade": false, "grade_id": "09-1-prediction", "locked": false, "schema_version": 3, "solution": true, "task": false}
first_attempts = ...  # of 11
### BEGIN SOLUTION
first_attempts = 11
### END SOLUTION
lab.predict("09-1", first_attempts, unit="exercises", label="right at first")

# %% [markdown]
# ## 1 · More rows, the same time
#
# A model answers `rows` requests at once in `ms`. With `more_rows` at once it takes `ms_then`.

# %%
batch = lab.case("09-1")

# %% [markdown]
# **09-1.** What can have limited the step with the *smaller* number of rows? Four suspects, each
# `"possible"` or `"excluded"`:
#
# - `arithmetic`: the matrix products
# - `own bytes`: what each row brings along, its activations or its
#   [KV cache]({{course:docs}}/glossary.md#kv-cache)
# - `shared bytes`: the weights, fetched once for all rows
# - `launches`: the CPU, which queues the same kernels for few rows and for many
#
# `arithmetic_ms`: how long can the arithmetic of the smaller batch have taken **at most**, if it
# grows in proportion to the rows?
#
# `test`: which one separates the suspects that are left? `"more rows"` (double them again),
# `"graph"` (record the step as one [CUDA graph]({{course:docs}}/glossary.md#cuda-graph)),
# `"more memory"` (a card with twice the GB), `"faster arithmetic"` (a card with twice the FLOP/s).

# %% nbgrader={"grade": false, "grade_id": "09-1-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
flat = {"arithmetic": ..., "own bytes": ..., "shared bytes": ..., "launches": ...,
        "arithmetic_ms": ..., "test": ...}
### BEGIN SOLUTION
flat = {"arithmetic": "excluded", "own bytes": "excluded", "shared bytes": "possible",
        "launches": "possible",
        "arithmetic_ms": batch["ms_then"] * batch["rows"] / batch["more_rows"], "test": "graph"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-1", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-1", flat)

# %% [markdown]
# ## 2 · A cosine, two cosines, two in one
#
# A large tensor, a card by name.

# %%
wave = lab.case("09-2")

# %% [markdown]
# **09-2.** How many ms does the memory of this card need for `x.cos()`, for `x.cos().cos()` one
# after the other, and for the same two in one fused kernel? Take it that the arithmetic hides behind
# the trips, so moving is all that counts.

# %% nbgrader={"grade": false, "grade_id": "09-2-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
cosines = {"once": ..., "twice": ..., "fused": ...}  # ms
### BEGIN SOLUTION
trip_ms = 2 * wave["elements"] * wave["bytes_each"] / (wave["gb_per_s"] * 1e9) * 1e3
cosines = {"once": trip_ms, "twice": 2 * trip_ms, "fused": trip_ms}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-2", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-2", cosines)

# %% [markdown]
# ## 3 · Two figures of one memory
#
# Every card is sold with two figures for its memory: so many GB, so many GB/s. Your card and model:

# %%
card = lab.case("09-3")

# %% [markdown]
# **09-3.** Which of the two figures does each phenomenon come from: `"capacity"` or `"bandwidth"`?
#
# - `crash`: the run stops with an out-of-memory error
# - `context`: how many tokens of conversation fit beside the weights
# - `tokens`: at batch 1 a large model, compiled and in a CUDA graph, still gives its tokens slowly
# - `twins`: two cards with the same GB, and a copy within their memory takes twice as long on one
#
# And `token_ms`: at batch 1 all `weights_gb` pass through the memory's bus once per token. What is
# the least time of a token on your card, in ms?

# %% nbgrader={"grade": false, "grade_id": "09-3-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
figures = {"crash": ..., "context": ..., "tokens": ..., "twins": ..., "token_ms": ...}
### BEGIN SOLUTION
figures = {"crash": "capacity", "context": "capacity", "tokens": "bandwidth", "twins": "bandwidth",
           "token_ms": card["weights_gb"] / card["gb_per_s"] * 1e3}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-3", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("09-3", figures)

# %% [markdown]
# ## 4 · The rule, and what breaks it
#
# "A matmul is compute-bound, a pointwise operation is memory-bound." A good rule, until you meet
# decode.

# %%
shape = lab.case("09-4")

# %% [markdown]
# **09-4.** In fp16, count each matrix as moved once. Give the
# [arithmetic intensity]({{course:docs}}/glossary.md#arithmetic-intensity) in FLOP per byte of
#
# - `square`: a product of two matrices of `side` × `side`
# - `pointwise`: a `relu`
# - `rows`: a product of `rows` × 4096 with a weight of 4096 × 4096, as in decode
#
# `square_is` and `rows_is`: hold them against `ridge`, the
# [ridge point]({{course:docs}}/glossary.md#ridge-point) of your card. `"memory"` or `"compute"`?
#
# `because`: why is the product with few rows so different?
#
# - **a** its matrix of weights is smaller
# - **b** each weight that is fetched is used for a few rows only
# - **c** it cannot run on the tensor cores
# - **d** it takes more launches

# %% nbgrader={"grade": false, "grade_id": "09-4-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
intensities = {"square": ..., "pointwise": ..., "rows": ...,
               "square_is": ..., "rows_is": ..., "because": ...}
### BEGIN SOLUTION
def product(m, k, n):
    return 2 * m * k * n / (2 * (m * k + k * n + m * n))


def side_of_ridge(intensity):
    return "compute" if intensity > shape["ridge"] else "memory"


square = product(shape["side"], shape["side"], shape["side"])
few = product(shape["rows"], 4096, 4096)
intensities = {"square": square, "pointwise": 1 / (2 + 2), "rows": few,
               "square_is": side_of_ridge(square), "rows_is": side_of_ridge(few), "because": "b"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-4", intensities)

# %% [markdown]
# ## 5 · A card that idles
#
# GPU-Util reads `busy_percent`: in that share of the time a kernel was running, in the rest none.
# Then somebody put `torch.compile` around the model, and it became `speedup` times faster. A
# million tokens had cost `usd_before`, and the card's hour still costs the same.
#
# (From the front end: the counter is the tab's loading spinner. It turns while something loads,
# be it one byte or all of it. It breaks in one place: a spinner belongs to one tab, the counter to
# everything on the card.)

# %%
idling = lab.case("09-5")

# %% [markdown]
# **09-5.** Kernels and gaps take turns here.
#
# - `bucket`: what limited the model before? `"memory"`, `"compute"` or `"overhead"`
# - `free kernels`: the speed-up if the kernels took **no time at all** and the gaps stayed
# - `no gaps`: the speed-up if the gaps vanished and the kernels stayed as they were
# - `usd`: what a million tokens cost now

# %% nbgrader={"grade": false, "grade_id": "09-5-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
idle = {"bucket": ..., "free kernels": ..., "no gaps": ..., "usd": ...}
### BEGIN SOLUTION
busy = idling["busy_percent"] / 100
idle = {"bucket": "overhead", "free kernels": 1 / (1 - busy), "no gaps": 1 / busy,
        "usd": idling["usd_before"] / idling["speedup"]}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-5", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-5", idle)

# %% [markdown]
# ## 6 · A large relu, in numbers
#
# A `relu` on an fp16 tensor of `gb` GB. `vector_tops` are the card's vector operations, in 1e12 per
# second; `tensor_tflops` its tensor cores.

# %%
tensor = lab.case("09-6")

# %% [markdown]
# **09-6.** `memory_ms`: the trip, in and out. `arithmetic_ms`: one operation per element, on the
# unit that can do it. `bucket`: `"memory"`, `"compute"` or `"overhead"`. And if the `relu` runs in a
# loop for a second, `utilisation`: does GPU-Util read `"low"`, `"half"` or `"full"`?

# %% nbgrader={"grade": false, "grade_id": "09-6-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
relu = {"memory_ms": ..., "arithmetic_ms": ..., "bucket": ..., "utilisation": ...}
### BEGIN SOLUTION
elements = tensor["gb"] * 1e9 / 2
relu = {"memory_ms": 2 * tensor["gb"] / tensor["gb_per_s"] * 1e3,
        "arithmetic_ms": elements / (tensor["vector_tops"] * 1e12) * 1e3,
        "bucket": "memory", "utilisation": "full"}
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-6", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-6", relu)

# %% [markdown]
# ## 7 · Three pictures
#
# The factory once more: machines are the compute units, lorries on the road the bandwidth, the
# dispatcher the CPU. Each picture shows a program that waits for another one of them.

# %%
scene = lab.case("09-7")
pictures = plots.draw_factories(None, scene["picture"])
plots.show(pictures[0].figure)

# %% [markdown]
# **09-7.** For each picture:
#
# - `bucket`: `"memory"`, `"compute"` or `"overhead"`
# - `halve`: what must be halved to halve the time? `"bytes"`, `"FLOPs"`, or `"neither"` of them
#   would help
# - `remedy`: which helps most? `"fusion"`, `"tensor cores"` or `"CUDA graph"`

# %% nbgrader={"grade": false, "grade_id": "09-7-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
seen = {"A": {"bucket": ..., "halve": ..., "remedy": ...},
        "B": {"bucket": ..., "halve": ..., "remedy": ...},
        "C": {"bucket": ..., "halve": ..., "remedy": ...}}
### BEGIN SOLUTION
all_machines = {"bucket": "compute", "halve": "FLOPs", "remedy": "tensor cores"}
full_road = {"bucket": "memory", "halve": "bytes", "remedy": "fusion"}
empty_desk = {"bucket": "overhead", "halve": "neither", "remedy": "CUDA graph"}
arrangements = {1: (all_machines, full_road, empty_desk), 2: (all_machines, empty_desk, full_road),
                3: (full_road, all_machines, empty_desk), 4: (full_road, empty_desk, all_machines),
                5: (empty_desk, all_machines, full_road), 6: (empty_desk, full_road, all_machines)}
seen = dict(zip("ABC", arrangements[scene["picture"]]))
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-7", "locked": true, "points": 0.5, "schema_version": 3, "solution": false, "task": false}
lab.check("09-7", seen)

# %% [markdown]
# ## 8 · The rule, as code
#
# Everything above in four lines. A step was measured. On paper its arithmetic, its bytes and its
# host would each take so long, if they were alone. They work at the same moment, so the **longest**
# of the three is what the model expects. (All kernels of the step are alike here. Otherwise, for
# each kernel, take the longer of its arithmetic and its bytes; add these up; hold the sum against
# the host.)
#
# A bucket is named only if it explains from 60 % to 110 % of the measured time. Below 60 % too much
# is left over, as in notebook 02. Above 110 % the time itself is in doubt: no step is that much
# faster than its longest part.
#
# **09-8.** Write `explain`. The check calls it with steps of its own.

# %% nbgrader={"grade": false, "grade_id": "09-8-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
def explain(measured, compute, memory, host):
    """What limits a step, and what is left over. All four in seconds.

    Returns two values: "compute", "memory", "overhead" (the host is the longest) or
    "another test"; and the measured time less the longest of the three, in seconds, with its sign.
    """
    ### BEGIN SOLUTION
    parts = {"compute": compute, "memory": memory, "overhead": host}
    longest = max(parts, key=parts.get)
    verdict = longest if 0.6 <= parts[longest] / measured <= 1.1 else "another test"
    return verdict, measured - parts[longest]
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-8", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-8", explain)

# %% [markdown]
# ## 9 · Diagnose: numbers only
#
# First some practice without points. Each case is made up, as if somebody had timed a step. Work it
# out from the numbers beside the question marks, say the verdict aloud, then set `show` to see it. Cases 1 to 5
# hold one of each kind, and so do 6 to 10 and the later fives: three buckets, one that nothing
# explains, and one that cannot be.

# %%
explore.diagnosis()

# %% [markdown]
# Now three of your own. Each comes with `ms` measured, `tflop` of matrix products, `gb` moved,
# `launches` kernels that cost the host `us_each` microseconds apiece, and the card's datasheet.
#
# For each case
#
# - `verdict`: `"memory"`, `"compute"`, `"overhead"` or `"another test"`
# - `explains`: how many **percent** of the measured time the longest of the three would take
# - `next`: what you would do. `"fewer bytes"`, `"cheaper arithmetic"`, `"fewer launches"`, or, where
#   no bucket may be named, `"look at the trace"` (most of the time is unexplained) or
#   `"time it again"` (no card is that fast)

# %%
step_1 = lab.case("09-9")

# %% [markdown]
# **09-9.** The first case.

# %% nbgrader={"grade": false, "grade_id": "09-9-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
case_1 = {"verdict": ..., "explains": ..., "next": ...}
### BEGIN SOLUTION
def solved(step):
    compute = step["tflop"] / step["tflop_per_s"] * 1e3
    memory = step["gb"] / step["gb_per_s"] * 1e3
    host = step["launches"] * step["us_each"] / 1e3
    verdict, left_over = explain(step["ms"], compute, memory, host)
    share = 100 * (1 - left_over / step["ms"])
    unnamed = "look at the trace" if share < 60 else "time it again"
    remedy = {"memory": "fewer bytes", "compute": "cheaper arithmetic",
              "overhead": "fewer launches", "another test": unnamed}
    return {"verdict": verdict, "explains": share, "next": remedy[verdict]}


case_1 = solved(step_1)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-9", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-9", case_1)

# %%
step_2 = lab.case("09-10")

# %% [markdown]
# **09-10.** The second case. Your `explain` may do the work: it takes any unit, if all four
# arguments are in the same.

# %% nbgrader={"grade": false, "grade_id": "09-10-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
case_2 = {"verdict": ..., "explains": ..., "next": ...}
### BEGIN SOLUTION
case_2 = solved(step_2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-10", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-10", case_2)

# %%
step_3 = lab.case("09-11")

# %% [markdown]
# **09-11.** The third case.

# %% nbgrader={"grade": false, "grade_id": "09-11-answer", "locked": false, "schema_version": 3, "solution": true, "task": false}
case_3 = {"verdict": ..., "explains": ..., "next": ...}
### BEGIN SOLUTION
case_3 = solved(step_3)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "09-11", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
lab.check("09-11", case_3)

# %% [markdown]
# On your own programs take the roofs that your card showed (`lab.roofs()`), not the datasheet: a
# bucket that explains 55 % of a time at the peak rate may well explain 70 % at the rate the card
# sustains. And put every verdict to the test: predict what half the bytes, half the FLOPs or one
# graph would do, and run it.
#
# ## 10 · How you did
#
# First the prediction from the top.

# %%
lab.first_try("09-1", "right at first")

# %% [markdown]
# Then topic by topic. A topic with a mistake links to its notebook, also if you found the answer
# later; what you have not answered yet counts neither way. (`lab.progress()` lists the exercises one
# by one. Checks may be run as often as you like.)

# %%
lab.topics("{{course:colab}}")

# %% [markdown]
# ## 11 · Your own record
#
# Each notebook keeps what you predicted and what came out, in a file that ends in
# `.evidence.json` beside it. If you did the other notebooks in this folder, everything is here
# already. On Colab each notebook runs on a machine of its own: open the *Files* panel of each tab,
# download its evidence file, upload it here, and run these two cells again. It works with any number
# of them, also with none.

# %%
lab.predictions()

# %% [markdown]
# Two things to look at. **Which side**: do you tend to guess too low or too high? Too low a time
# often means a trip or the host was forgotten; too high a speed-up, that something else became the
# limit. **Which notebook**: the one with the widest spread is where your intuition has most to gain,
# whatever the checks say.
#
# And the table that you filled, row by row. A row appears when its notebook's evidence lies here and
# its recap was right.

# %%
lab.summary()

# %% [markdown]
# Read it column by column. Each column is one bucket from the first notebook to the last: what sets
# its speed, what leans there, what cures it, and what that is worth.
#
# What to keep from all nine:
#
# - Ask what the step waits for: bytes, arithmetic, or orders. The longest one counts.
# - A verdict is worth the predictions that follow from it. Predict, then run.
# - What nothing explains is a question. A time that cannot be is one, too.
#
# **What comes next:** [the anatomy of a 7B model]({{course:docs}}/next.md), matrix by matrix. The
# [misconceptions]({{course:docs}}/misconceptions.md) that these notebooks disprove, each with the
# notebook that does it, fit on a page; and the [sources]({{course:docs}}/sources.md) are worth
# reading in the original.
#
# Further reading: Horace He, *Making Deep Learning Go Brrrr From First Principles*, from which the
# three buckets come; Williams, Waterman and Patterson, *Roofline: An Insightful Visual Performance
# Model for Multicore Architectures* (2009).
