#!/usr/bin/env python3
"""What the connector gives and costs a real engine: time to the first token; its calls, its
processor time, its copies.

bench.py [--requests 200] [--documents 5]      run by `tests/run engines --bench`
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from replica import Replica, replicas
from workload import text

import nodes

HERE = Path(__file__).parent


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(title: str, calls: dict[str, Any], before: dict[str, Any], requests: int) -> None:
    taken = [seconds for _, seconds, _ in calls["calls"]]
    print(f"{title}: {requests} requests, {len(taken)} calls on the scheduling thread")
    for name in sorted({name for name, _, _ in calls["calls"]}):
        each = [seconds * 1e6 for n, seconds, _ in calls["calls"] if n == name]
        p50, p99 = percentile(each, 0.5), percentile(each, 0.99)
        print(f"  {name:9} p50 {p50:7.0f} us   p99 {p99:7.0f} us   of {len(each)}")
    p50, p99 = percentile(taken, 0.5) * 1e6, percentile(taken, 0.99) * 1e6
    print(f"  all       p50 {p50:7.0f} us (goal 150)   p99 {p99:7.0f} us (goal 1,000)")
    cpu = sum(seconds for _, _, seconds in calls["calls"])
    copies = calls["copy_thread_s"] - before["copy_thread_s"]
    process = calls["process_s"] - before["process_s"]
    print(
        f"  processor: calls {cpu:.3f} s, {100 * cpu / process:.2f} % of the engine's "
        f"{process:.1f} s (goal 1 %); the copy thread, copies included, {copies:.3f} s"
    )


def play(replica: Replica, prompts: list[list[int]]) -> None:
    for prompt in prompts:
        replica.drain()
        replica.ask(prompt, count=4)
    replica.drain()


def first_tokens(folder: Path, documents: int) -> None:
    """45 MiB of KV a document: computed, from the engine's own cache, from its node's, from the
    other node's.
    """
    tokens, rng = 3840, random.Random(2)
    model = make_model(folder / "wide", layers=8, hidden=384)
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
    size = tokens * 2 * 3 * 64 * 4 * 8 / 2**20
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


def make_model(folder: Path, layers: int, hidden: int) -> Path:
    shape = ("--layers", str(layers), "--hidden", str(hidden), "--dtype", "float32")
    subprocess.run([sys.executable, str(HERE / "make_model.py"), str(folder), *shape], check=True)
    return folder


def costs(folder: Path, count: int) -> None:
    """One replica, one node."""
    rng = random.Random(1)
    model = make_model(folder / "model", layers=4, hidden=256)
    with nodes.node(slab="1GiB") as one:
        made = Replica(model, one.socket, folder / "log", dtype="float32")
        with replicas(made) as (replica,):
            document = text(rng, 3840)
            replica.ask(document)
            replica.call("time_calls")
            before = replica.call("calls")
            play(replica, [text(rng, 1024) for _ in range(count // 4)])
            nothing = replica.call("calls")
            report("no hits, 1,024 tokens", nothing, before, count // 4)
            before = nothing
            play(replica, [document + text(rng, 20) for _ in range(count)])
            report("3,840 tokens shared", replica.call("calls"), before, count)
            numbers = replica.call("numbers")
            for kind in ("load", "store"):
                rate = numbers[f"{kind}_bytes"] / max(numbers[f"{kind}_ns"], 1)
                mib = numbers[f"{kind}_bytes"] / 2**20
                print(f"{kind}s: {mib:.0f} MiB at {rate:.2f} GB/s, checksums included")
    rates = statistics.median(memory_rates(document_bytes=3840 * 4096))
    print(f"memcpy of pieces of 128 KiB, as many bytes: {rates:.2f} GB/s")


def memory_rates(document_bytes: int) -> list[float]:
    import time

    piece = 128 << 10
    source = bytearray(document_bytes)
    target = memoryview(bytearray(document_bytes))
    view = memoryview(source)
    rates = []
    for _ in range(20):
        begin = time.perf_counter()
        for offset in range(0, document_bytes, piece):
            target[offset : offset + piece] = view[offset : offset + piece]
        rates.append(document_bytes / (time.perf_counter() - begin) / 1e9)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--documents", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        first_tokens(Path(name), args.documents)
        costs(Path(name), args.requests)


if __name__ == "__main__":
    main()
