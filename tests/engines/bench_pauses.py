"""How long a running request waits for its next token while the node is stopped."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

from replica import Replica, replicas
from workload import text

import nodes

PHASES = ("node runs", "node stopped", "node runs again")
STEPS, APART = 120, 10  # in a phase; between other requests that begin
CALL_MS = 500

Pauses = list[tuple[float, float]]  # of a token: seconds, and of them those in the connector


def pauses(model: Path, folder: Path, rounds: int) -> None:
    rng = random.Random(3)
    with nodes.node() as node:
        quick = {"config": {"pando.call_ms": CALL_MS}}
        made = [
            Replica(model, None, folder / "pauses-plain.log", dtype="float32"),
            Replica(model, node.socket, folder / "pauses.log", dtype="float32", extra=quick),
        ]
        with replicas(*made) as (plain, pando):
            pando.call("time_calls")
            none: list[list[Pauses]] = []
            ours: list[list[Pauses]] = []
            for number in range(-1, rounds):
                begun = [decode(each, node, rng) for each in (plain, pando)]
                if number >= 0:  # the first one uses everything for the first time
                    none.append(begun[0])
                    ours.append(begun[1])
    report(none, ours)


def decode(replica: Replica, node: nodes.Node, rng: random.Random) -> list[Pauses]:
    """One long answer, other requests beside it, in three phases. (Without connector too: then the
    node is nobody's.)
    """
    (name,) = replica.call("begin", prompts=[text(rng, 100)], salt="", count=4 * STEPS)
    phases = []
    for phase in PHASES:
        if phase == "node stopped":
            node.stop()
        if phase == "node runs again":
            node.go_on()
        others = [text(rng, 150) for _ in range(STEPS // APART)]
        phases.append(replica.call("decode", name=name, steps=STEPS, others=others, apart=APART))
    replica.call("abort", ids=[name])
    replica.drain()
    return phases


def report(none: list[list[Pauses]], ours: list[list[Pauses]]) -> None:
    print(f"pauses of a running answer, a request beside it every {APART} tokens:")
    for number, phase in enumerate(PHASES):
        shown = []
        for name, rounds in (("without connector", none), ("with", ours)):
            every = [1000 * pause for each in rounds for pause, _ in each[number]]
            worst = [1000 * max(pause for pause, _ in each[number]) for each in rounds]
            shown.append(
                f"{name} {statistics.median(every):.1f} ms, "
                f"worst of a round {statistics.median(worst):.1f}, of all {max(worst):.1f}"
            )
        calls = [1000 * connector for each in ours for _, connector in each[number]]
        shown.append(
            f"in the connector {statistics.median(calls):.2f} ms, worst {max(calls):.2f} (goal 5)"
        )
        print(f"  {phase:16} {';  '.join(shown)}")
