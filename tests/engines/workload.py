"""Prompts with shared prefixes, and accounts that must agree."""

from __future__ import annotations

import random
from collections.abc import Sequence

from replica import CHUNK, Answer, Replica

import nodes


def text(rng: random.Random, tokens: int) -> list[int]:
    return [rng.randrange(256) for _ in range(tokens)]


def warm(replica: Replica, tokens: list[int]) -> Answer:
    """From Pando alone: the replica's own cache is dropped before and after."""
    replica.drain()
    answer = replica.ask(tokens)
    replica.drain()
    return answer


class Tree:
    """Prompts that are paths through a tree of random parts: a root, sections, questions."""

    def __init__(self, seed: int, part: int, branches: int = 3, depth: int = 3) -> None:
        self._rng = random.Random(seed)
        self._part, self._branches, self._depth = part, branches, depth
        self._parts: dict[tuple[int, ...], list[int]] = {}

    def prompt(self, tail: int) -> list[int]:
        """A random path, cut anywhere, and `tail` tokens that no other prompt has."""
        path: tuple[int, ...] = ()
        tokens: list[int] = []
        for _ in range(self._depth):
            path = (*path, self._rng.randrange(self._branches))
            if path not in self._parts:
                self._parts[path] = text(self._rng, self._part)
            tokens += self._parts[path]
        cut = self._rng.randrange(self._part, len(tokens) + 1)
        return tokens[:cut] + text(self._rng, tail)


ENGINE_COUNTERS = {
    "queries": "vllm:external_prefix_cache_queries",
    "hits": "vllm:external_prefix_cache_hits",
    "from_host": "vllm:prompt_tokens_cached_by_source/host",
    "from_peers": "vllm:prompt_tokens_cached_by_source/p2p",
}


class Account:
    """What replicas and nodes have counted since this was made."""

    def __init__(self, replicas: Sequence[Replica], pando: Sequence[nodes.Node]) -> None:
        self._replicas, self._nodes = replicas, pando
        self._before = self._read()

    def _read(self) -> dict[str, int]:
        sums: dict[str, int] = {}
        for each in self._replicas:
            counters = each.counters()
            for name, key in ENGINE_COUNTERS.items():
                sums[name] = sums.get(name, 0) + int(counters.get(key, 0))
        for node in self._nodes:
            for name, count in {**node.tokens(), "failed": node.ask("stats")["failed"]}.items():
                sums[name] = sums.get(name, 0) + count
        return sums

    def since(self) -> dict[str, int]:
        return {name: count - self._before[name] for name, count in self._read().items()}

    def agrees(self, hung_up: bool = False) -> dict[str, int]:
        """The engines' own external counters and the nodes' account, to the token.

        An engine counts what it is going to load; what of it failed, or was aborted, the nodes
        count as computed, and name as failed. Those who hung up before an engine had room for them
        are known to the nodes alone.
        """
        now = self.since()
        known = now["prompt"] - now["hit_engine"]
        assert now["queries"] <= known if hung_up else now["queries"] == known, now
        assert now["hits"] == now["hit_host"] + now["hit_peer"] + now["failed"], now
        assert now["hits"] == now["from_host"] + now["from_peers"], now
        assert now["from_peers"] >= now["hit_peer"], now
        assert now["failed"] or now["from_peers"] == now["hit_peer"], now
        return now


def at_rest(pando: Sequence[nodes.Node], replicas: Sequence[Replica]) -> None:
    """No claim, no hold, nothing half written anywhere, and every block of an engine free."""
    for each in replicas:
        each.drain()

    def quiet(node: nodes.Node) -> bool:
        status = node.status()
        pages = status["pages"]
        busy = sum(pages[state] for state in ("held", "quarantined", "receiving", "reserved"))
        return not (busy or status["holds"] or status["leases"] or status["reservations"])

    def all_quiet() -> bool:
        for each in replicas:  # a step gives back what came too late for somebody
            each.call("attach", seconds=0.1)
        return all(quiet(node) for node in pando)

    nodes.wait_for(all_quiet, "all nodes at rest")
    for each in replicas:
        each.drain()
    for node in pando:
        node.check()


def share(pando: Sequence[nodes.Node], a: Replica, b: Replica) -> None:
    """What A computes comes back to it from its node, and to B from the other one, bit for bit."""
    rng = random.Random(1)
    account = Account([a, b], pando)
    for _ in range(3):
        tokens = text(rng, 5 * CHUNK + 10)
        cold = a.ask(tokens)
        a.drain()
        assert cold.cached == 0
        for replica in (a, b):
            got = warm(replica, tokens)
            assert got.cached == 5 * CHUNK
            assert got.same(cold)
    at_rest(pando, [a, b])
    assert account.agrees()["hit_peer"] == 3 * 5 * CHUNK
