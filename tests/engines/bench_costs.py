"""What the connector costs beside the same engine without one, and beside one that does nothing."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from engine_timing import SCHEDULER_CALLS
from replica import Replica, replicas
from workload import text

import nodes

EMPTY = {"kv_connector": "EmptyConnector", "kv_connector_module_path": "empty_connector"}
BURST, TOKENS = 4, 1024
DOCUMENT = 3840
SLAB = 256 << 20  # filled before anything is measured: no page is used for the first time then


@dataclass
class Used:
    """By one replica, and by the node for it."""

    wall: list[float] = field(default_factory=list)  # a burst
    calls: list[tuple[str, float, float]] = field(default_factory=list)
    process: float = 0.0
    copy_thread: float = 0.0
    node: float = 0.0

    def play(self, replica: Replica, node: nodes.Node, prompts: list[list[int]]) -> None:
        before, node_before = replica.call("calls"), node.processor_s()
        begin = time.perf_counter()
        replica.ask_all(prompts, count=4)
        self.wall.append(time.perf_counter() - begin)
        replica.drain()
        after = replica.call("calls")
        self.node += node.processor_s() - node_before
        self.calls += [(name, wall, cpu) for name, wall, cpu in after["calls"]]
        self.process += after["process_s"] - before["process_s"]
        self.copy_thread += after["copy_thread_s"] - before["copy_thread_s"]


def costs(model: Path, token_bytes: int, folder: Path, bursts: int, requests: int) -> None:
    """`token_bytes`: of the model's KV."""
    rng = random.Random(1)
    with nodes.node(slab=f"{SLAB >> 20}MiB") as node:
        made = [
            Replica(model, None, folder / "plain.log", dtype="float32"),
            Replica(model, node.socket, folder / "empty.log", dtype="float32", extra=EMPTY),
            Replica(model, node.socket, folder / "pando.log", dtype="float32"),
        ]
        with replicas(*made) as (_, empty, pando):
            filling = SLAB // (BURST * TOKENS * token_bytes) + 1
            for each in [*made, *[pando] * filling]:
                each.ask_all([text(rng, TOKENS) for _ in range(BURST)])
                each.drain()
            empty.call("time_calls")
            pando.call("time_calls")
            first = pando.call("numbers")
            used = [Used() for _ in made]
            for number in range(bursts):
                prompts = [text(rng, TOKENS) for _ in range(BURST)]
                for turn in range(len(made)):
                    which = (number + turn) % len(made)
                    used[which].play(made[which], node, prompts)
            misses = pando.call("numbers")
            report_misses(used, (misses["copy_cpu_ns"] - first["copy_cpu_ns"]) / 1e9)
            document = text(rng, DOCUMENT)
            pando.ask(document)
            pando.drain()
            hits = Used()
            for _ in range(requests):
                hits.play(pando, node, [document + text(rng, 20)])
            print(f"{DOCUMENT:,} tokens shared, {requests} requests:")
            report_calls(hits, used[1])
            report_copies(pando, token_bytes, first, misses)


def report_misses(used: list[Used], copies: float) -> None:
    plain, empty, pando = used
    print(f"no hits, {len(plain.wall) * BURST} prompts of {TOKENS:,} tokens:")
    report_calls(pando, empty)
    calls = sum(cpu for _, _, cpu in pando.calls)
    threads = pando.copy_thread - copies
    share = 100 * (calls + threads + pando.node) / plain.process
    print(
        f"  processor: calls {calls:.3f} s, thread {threads:.3f} s, node {pando.node:.3f} s: "
        f"{share:.2f} % of the {plain.process:.1f} s of an engine without connector (goal 1 %); "
        f"copies beside that {copies:.3f} s"
    )
    for name, one in (("this connector", pando), ("one that does nothing", empty)):
        beside = [100 * (a / b - 1) for a, b in zip(one.wall, plain.wall, strict=True)]
        print(
            f"  wall clock of a burst with {name}: {statistics.median(beside):+.1f} % "
            f"({min(beside):+.1f} to {max(beside):+.1f}) beside none"
        )


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report_calls(used: Used, empty: Used) -> None:
    def micros(of: Used, name: str) -> list[float]:
        return [wall * 1e6 for n, wall, _ in of.calls if n in SCHEDULER_CALLS and name in ("", n)]

    def line(name: str, goals: tuple[str, str] = ("", "")) -> None:
        if each := micros(used, name):
            nothing = micros(empty, name) or [0.0]
            shown = [
                f"p{share * 100:.0f} {percentile(each, share):6.0f} us{goal} "
                f"(one that does nothing {percentile(nothing, share):.0f})"
                for share, goal in zip((0.5, 0.99), goals, strict=True)
            ]
            print(f"  {name or 'scheduler calls':30} {'   '.join(shown)}   of {len(each)}")

    for name in SCHEDULER_CALLS:
        line(name)
    line("", goals=(" goal 150", " goal 1,000"))


def report_copies(
    pando: Replica, token_bytes: int, first: dict[str, int], misses: dict[str, int]
) -> None:
    """Stores are those of the prompts without hits, loads those of the others."""
    last = pando.call("numbers")
    for kind, total, before, after in (
        ("store", 256 << 20, first, misses),
        ("load", DOCUMENT * token_bytes, misses, last),
    ):
        copied = after[f"{kind}_bytes"] - before[f"{kind}_bytes"]
        rate = copied / max(after[f"{kind}_ns"] - before[f"{kind}_ns"], 1)
        plain = statistics.median(pando.call("memcpy_rate", total=total, rounds=5))
        print(
            f"  {kind}s: {copied / 2**20:.0f} MiB at {rate:.2f} GB/s, checksums included: "
            f"{100 * rate / plain:.0f} % (goal 90 %) of memcpy of the same pieces, {plain:.2f} GB/s"
        )
