#!/usr/bin/env python3
"""What the connector gives and costs a real engine: time to the first token; its calls, its
processor time, its copies; what a running request feels of a node that stops.

bench.py [--documents 5] [--bursts 10] [--requests 100] [--rounds 5]

Run by `tests/run engines --bench`: documents for the time to the first token, bursts of requests
without hits, requests with hits, rounds in which a node stops.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_costs import costs
from bench_pauses import pauses
from replica import Replica, replicas
from workload import text

import nodes

HERE = Path(__file__).parent
LAYERS = 8
TOKEN_BYTES = LAYERS * 2 * 3 * 64 * 4  # K and V, 3 heads of 64, float32


def first_tokens(model: Path, folder: Path, documents: int) -> None:
    """45 MiB of KV a document: computed, from the engine's own cache, from its node's, from the
    other node's.
    """
    tokens, rng = 3840, random.Random(2)
    millis: dict[str, list[float]] = {"cold": [], "local": [], "replica": [], "node": []}
    with nodes.cluster(2, slab="1GiB") as pando:
        made = [
            Replica(
                model,
                pando[i].socket,
                folder / f"first-{name}.log",
                dtype="float32",
                kv_cache_memory_bytes=100 << 20,  # two documents
                max_model_len=4096,
            )
            for name, i in (("a", 0), ("c", 0), ("b", 1))
        ]
        with replicas(*made) as (a, c, b):
            known: list[int] = []  # C's own cache has it
            # C and B stand idle while A computes, so all three figures are of engines that did.
            for number in range(-4, 2 * documents):
                document = text(rng, tokens)
                asked = [("cold", a, document, 0), ("node", b, document, tokens)]
                if number % 2 == 0:
                    asked.append(("replica", c, document, tokens))
                elif known:
                    asked.append(("local", c, known, tokens))
                for kind, replica, prefix, cached in asked:
                    answer = replica.ask(prefix + text(rng, 40))
                    assert answer.cached == cached, kind
                    if number >= 0:  # before, memory and connections are used for the first time
                        millis[kind].append(1000 * answer.first_token_s)
                known = document if number % 2 == 0 else []
                a.drain()
                b.drain()
    median = {kind: statistics.median(each) for kind, each in millis.items()}
    size = tokens * TOKEN_BYTES / 2**20
    print(f"first token, {tokens} tokens shared, {size:.0f} MiB, {documents} documents, medians:")
    print(f"  cold {median['cold']:.0f} ms, vLLM's own cache {median['local']:.0f} ms")
    for kind, goal, what in (
        ("replica", 25, "another replica of the host"),
        ("node", 55, "the other node"),
    ):
        more = median[kind] - median["local"]
        low, high = min(millis[kind]), max(millis[kind])
        print(
            f"  {what}: {median[kind]:.0f} ms ({low:.0f} to {high:.0f}), "
            f"{more:+.0f} ms beyond its own cache (goal {goal})"
        )


def make_model(folder: Path) -> Path:
    shape = ("--layers", str(LAYERS), "--hidden", "384", "--dtype", "float32")
    subprocess.run([sys.executable, str(HERE / "make_model.py"), str(folder), *shape], check=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=5)
    parser.add_argument("--bursts", type=int, default=10)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = Path(name)
        model = make_model(folder / "model")
        first_tokens(model, folder, args.documents)
        costs(model, TOKEN_BYTES, folder, args.bursts, args.requests)
        pauses(model, folder, args.rounds)


if __name__ == "__main__":
    main()
