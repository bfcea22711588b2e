"""Stock vLLM under traffic, and nodes that die at each of their steps, and stop."""

from __future__ import annotations

import random
import subprocess

import pytest
from replica import CLIENTS_TOKENS
from workload import Account, Tree, at_rest, text

import nodes
from two_nodes.setup import BLOCK, CALL_S, Setup


def test_clients_that_come_and_go_are_answered_as_alone(
    setup: Setup, request: pytest.FixtureRequest
) -> None:
    """Eight at each replica, with prompts of shared parts; every fifth hangs up."""
    long = request.config.getoption("--long")
    rng, tree = random.Random(4), Tree(5, part=100)
    prompts = [tree.prompt(rng.randrange(1, 50)) for _ in range(200 if long else 30)]
    expected = setup.alone(prompts, count=CLIENTS_TOKENS)
    setup.up()
    busy = [setup.a, setup.b, setup.c]
    account = Account(busy, setup.nodes)
    preempted = setup.a.counters().get("vllm:num_preemptions", 0)
    for seconds in (60, 240) if long else (12,):
        for seed, each in enumerate(busy):
            each.start_clients(prompts, clients=8, seconds=seconds, seed=seed)
        for each in busy:
            served = each.served()
            assert len(served) > 8
            for number, tokens in served:
                assert tokens == expected[number][: len(tokens)], f"{each.name}, prompt {number}"
        at_rest(setup.nodes, setup.shared)
    assert setup.a.counters()["vllm:num_preemptions"] > preempted
    counts = account.agrees(hung_up=True)
    assert counts["hit_host"] > 0 and counts["hit_peer"] > 0


# Those that no load or store passes: engines that are refused, replaced or die, claims that expire
# or are given back, memory that runs out, a node's end. Nodes are killed there without engines.
ELSEWHERE = {
    *("socket.closed", "pidfd.fired", "attach.refused", "session.replaced", "session.closed"),
    *("process.exited", "replica.gone", "reserve.full", "claim.expired", "claim.aborted"),
    *("claim.lost", "quarantine.entered", "quarantine.left", "settle.by_node"),
    *("drain.started", "drain.requested", "drain.ended"),
}
FEW = [
    "acquire.leased",
    "reserve.placed",
    "begin.held",
    "settle.counted",
    "fetch.pulling",
    "grant.given",
]


def all_steps() -> list[str]:
    command = [str(nodes.BIN / "pando-node"), "--list-steps"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
    steps = listed.stdout.split()
    assert set(steps) >= {*ELSEWHERE, *FEW}
    return [step for step in steps if step not in ELSEWHERE]


# FAULTS C4
def test_a_node_killed_at_each_step_changes_no_answer(
    setup: Setup, request: pytest.FixtureRequest
) -> None:
    """The node stops itself at a step, is killed there, and comes back. It is B's, which takes from
    A's node, stores, and loads what it has stored; for a step of who is taken from, A's.
    """
    rng = random.Random(8)
    for step in all_steps() if request.config.getoption("--long") else FEW:
        document = text(rng, 5 * BLOCK + 1)
        question = document + text(rng, 2 * BLOCK)
        (expected,) = setup.alone([question])
        victim = 0 if step.startswith("grant.") else 1
        setup.up(victim, step)
        setup.a.ask(document)
        setup.a.drain()
        setup.wait_for(lambda: setup.told(5), "node 2 was told what node 1 has")
        for _ in range(2):
            assert setup.b.ask(question).tokens == expected, step
            setup.b.drain()
        assert setup.nodes[victim].stopped(), f"no load or store passes {step}"
        setup.nodes[victim].kill()
        for _ in range(2):
            assert setup.b.ask(question).tokens == expected, step
            setup.b.drain()
    setup.up()
    at_rest(setup.nodes, setup.shared)


# FAULTS D1
def test_a_node_that_stops_costs_one_request_its_deadline(setup: Setup) -> None:
    setup.up()
    rng = random.Random(11)
    prompts = [text(rng, BLOCK + 8) for _ in range(6)]
    expected = setup.alone(prompts)

    def ask() -> list[float]:
        setup.b.drain()
        answers = setup.b.ask_all(prompts)
        assert [answer.tokens for answer in answers] == expected
        return sorted(answer.first_token_s for answer in answers)

    ask()  # uses everything for the first time
    assert ask()[-1] < CALL_S / 2, "this machine is too slow for this test"
    setup.nodes[1].stop()
    try:
        *others, last = ask()
        assert last >= CALL_S and others[-1] < CALL_S
        for _ in range(3):  # it counts as absent until it answers
            assert ask()[-1] < CALL_S
    finally:
        setup.nodes[1].go_on()
    at_rest(setup.nodes, setup.shared)
    setup.b.drain()
    assert all(answer.cached == BLOCK for answer in setup.b.ask_all(prompts))


# FAULTS D1
def test_loads_that_wait_when_a_node_stops_wait_for_one_deadline_together(setup: Setup) -> None:
    rng = random.Random(12)
    document = text(rng, 4 * BLOCK)
    prompts = [document + text(rng, 8) for _ in range(6)]
    expected = setup.alone(prompts)
    setup.up(1, "begin.held")
    setup.a.ask([*document, 0])
    setup.a.drain()
    setup.wait_for(lambda: setup.told(4), "node 2 was told what node 1 has")
    answers = setup.b.ask_all(prompts)
    assert setup.nodes[1].stopped()
    assert [answer.tokens for answer in answers] == expected
    times = [answer.first_token_s for answer in answers]
    assert min(times) >= CALL_S and max(times) < 3 * CALL_S
    setup.nodes[1].go_on()
    at_rest(setup.nodes, setup.shared)


def test_a_node_that_is_stopped_under_traffic_changes_no_answer(
    setup: Setup, request: pytest.FixtureRequest
) -> None:
    setup.up()
    rng, tree = random.Random(13), Tree(14, part=100)
    prompts = [tree.prompt(rng.randrange(1, 50)) for _ in range(20)]
    expected = setup.alone(prompts, count=CLIENTS_TOKENS)
    seconds = 60 if request.config.getoption("--long") else 4
    for stopped in (False, True, False):
        setup.b.start_clients(prompts, clients=8, seconds=seconds if stopped else 2, seed=stopped)
        if stopped:
            setup.nodes[1].stop()
        for number, tokens in setup.b.served():
            assert tokens == expected[number][: len(tokens)], f"prompt {number}"
        if stopped:
            setup.nodes[1].go_on()
    at_rest(setup.nodes, setup.shared)
