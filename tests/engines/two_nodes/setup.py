"""Stock vLLM in float32, where answers may be compared whatever else runs: replicas on two nodes.

A, C and W are replicas of the first node, B of the second. A has a KV cache of its own that is too
small, so that requests are preempted; W has the same model with other weights. The reference has no
connector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from replica import Replica, replicas

import nodes
from nodes import Node

BLOCK = 32
CALL_S = 1.0  # what a node may take to answer B, C and W


class Setup(NamedTuple):
    nodes: list[Node]
    reference: Replica
    a: Replica
    b: Replica
    c: Replica
    w: Replica

    @property
    def node(self) -> Node:
        """That of all but B."""
        return self.nodes[0]

    @property
    def shared(self) -> list[Replica]:
        return [self.a, self.b, self.c, self.w]

    def alone(self, prompts: list[list[int]], count: int = 8) -> list[list[int]]:
        """The tokens that each prompt's answer has when nothing else runs and nothing is cached."""
        answers = []
        for tokens in prompts:
            self.reference.drain()
            answers.append(self.reference.ask(tokens, count=count).tokens)
        return answers

    def up(self, victim: int = 0, step: str = "") -> None:
        """Fresh nodes, found by each other and by all; one of them stops itself at a step."""
        for node in self.nodes:
            node.end()
        for number, node in enumerate(self.nodes):
            node.start(*(("--pause-at", step) if step and number == victim else ()))
        self.wait_for(self._known, "the nodes know each other")
        for each in self.shared:
            self.wait_for(lambda each=each: each.call("attach", seconds=0.2), "attached")  # type: ignore[misc]

    def stopped(self) -> bool:
        return any(node.stopped() for node in self.nodes)

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Or until a node has stopped itself."""
        nodes.wait_for(lambda: self.stopped() or condition(), what)

    def _known(self) -> bool:
        try:
            for node in self.nodes:
                node.text("--timeout", "1", "peers", "--wait", "1")
        except AssertionError:
            return False
        return True

    def told(self, blocks: int) -> bool:
        """Node 2 has heard of so many blocks of node 1."""
        try:
            peers = self.nodes[1].ask("--timeout", "1", "status")["cluster"]["peers"]
        except AssertionError:  # it has just stopped
            return False
        return any(peer["blocks"] >= blocks for peer in peers)


@contextlib.contextmanager
def two_nodes(model: Path, other_weights: Path, logs: Path) -> Iterator[Setup]:
    """The nodes do not run yet."""
    engine = {"dtype": "float32", "block_size": BLOCK, "max_model_len": 1024}
    quick = {"config": {"pando.call_ms": int(1000 * CALL_S), "pando.wait_ms": 3000}}
    pando = nodes.peers(2)
    here, there = (node.socket for node in pando)
    small = {**engine, "num_gpu_blocks_override": 40}
    made = [
        Replica(model, None, logs / "fp32-r.log", **engine),
        Replica(model, here, logs / "fp32-a.log", **small),
        Replica(model, there, logs / "fp32-b.log", extra=quick, **engine),
        Replica(model, here, logs / "fp32-c.log", extra=quick, **engine),
        Replica(other_weights, here, logs / "fp32-w.log", extra=quick, **engine),
    ]
    try:
        with replicas(*made) as (reference, a, b, c, w):
            yield Setup(pando, reference, a, b, c, w)
    finally:
        for node in pando:
            node.close()
