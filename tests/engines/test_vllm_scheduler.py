"""The scheduler's side against a real node, step by step, without an engine around it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import nodes
from pando_kv import Client, CopyJob, KvLayout, Role, now_ns
from pando_kv.vllm import settings
from pando_kv.vllm.meta import StepMeta, WorkerMeta
from pando_kv.vllm.scheduler import SchedulerSide

BLOCK = 16
PAGE = 4096
CALL_MS = 100


class Request(SimpleNamespace):
    """The part of vLLM's request that is looked at."""

    def __init__(self, name: str, tokens: list[int]) -> None:
        super().__init__(
            request_id=name,
            _all_token_ids=tokens,
            prompt_token_ids=tokens,
            num_tokens=len(tokens),
            num_prompt_tokens=len(tokens),
            num_computed_tokens=0,
            num_preemptions=0,
            skip_reading_prefix_cache=False,
            prompt_embeds=None,
            prompt_is_token_ids=None,
            lora_request=None,
            resumable=False,
            cache_salt=None,
            mm_features=[],
        )


class Rig:
    """A scheduler's side, and a worker's session beside it."""

    def __init__(self, node: nodes.Node, key: str) -> None:
        read = settings.read_settings({"pando.socket": node.socket, "pando.call_ms": CALL_MS})
        self.side = SchedulerSide(read, key, [("model", "m")], BLOCK, 1)
        self.worker = Client(node.socket, key, role=Role.WORKER, page_bytes=PAGE)
        assert self.worker.wait_attached(now_ns() + 2_000_000_000)
        self._kv = bytearray(64 * PAGE)
        import ctypes

        address = ctypes.addressof(ctypes.c_char.from_buffer(self._kv))
        self.layout = KvLayout([(address, PAGE, PAGE)], 64)
        self.side.resolve_block_ids(lambda request_id: (list(range(64)),))

    def step(self, preempted: tuple[str, ...] = (), **scheduled: int) -> StepMeta:
        output: Any = SimpleNamespace(preempted_req_ids=preempted, num_scheduled_tokens=scheduled)
        return self.side.step(output)

    def copy(self, meta: StepMeta) -> None:
        done: dict[str, int] = {}
        for copy in meta.stores:
            job = CopyJob(copy.claim, self.layout, copy.first_block, copy.block_ids)
            assert job.execute(self.worker, deadline_ns=now_ns() + 2_000_000_000).good(job.wanted)
            done[copy.request_id] = done.get(copy.request_id, 0) + 1
        self.ended(worker=WorkerMeta(done))

    def ended(self, worker: WorkerMeta | None = None, sent: tuple[str, ...] = ()) -> None:
        output: Any = SimpleNamespace(
            finished_recving=None,
            failed_recving=None,
            finished_sending=set(sent),
            kv_connector_worker_meta=worker,
        )
        self.side.ended(output)

    def look(self, request: Any) -> int:
        """Asks as an engine does, step after step."""
        while (found := self.side.matched(request, 0)[0]) is None:
            time.sleep(0.001)
        return found

    def compute(self, request: Any) -> None:
        """The step that computes a request `r` of 64 tokens, of which nothing is there."""
        assert self.look(request) == 0
        self.side.admitted(request, SimpleNamespace(), 0)
        self.step(r=64)


@pytest.fixture
def node() -> Iterator[nodes.Node]:
    with nodes.node() as one:
        yield one


def long_step() -> None:
    """What a step takes that computes much: longer than the node may take to answer."""
    time.sleep(3 * CALL_MS / 1000)


def test_answers_that_came_during_a_long_step_are_in_time(node: nodes.Node) -> None:
    rig = Rig(node, "long")
    request: Any = Request("r", list(range(64)))
    rig.compute(request)
    long_step()
    request.num_computed_tokens = 64
    meta = rig.step()
    assert [len(copy.block_ids) for copy in meta.stores] == [4]
    assert rig.side.finished(request, list(range(4)))
    rig.copy(meta)
    assert rig.step().last == {"r"}
    rig.ended(sent=("r",))
    assert not rig.side.tracks()
    other: Any = Request("s", [*range(64), 1])
    assert rig.look(other) == 64
    assert not rig.side.finished(other, [])
    nodes.wait_for(lambda: node.status()["leases"] == 0, "the unused claim given back")


# FAULTS D1
def test_a_silent_node_is_asked_by_one_request(node: nodes.Node) -> None:
    rig = Rig(node, "silent")
    node.stop()
    begin = time.monotonic()
    first: Any = Request("a", list(range(40)))
    assert rig.look(first) == 0
    waited = time.monotonic() - begin
    assert CALL_MS / 1000 <= waited < CALL_MS / 1000 + 1
    for number in range(50):
        request: Any = Request(f"b{number}", list(range(40)))
        assert rig.side.matched(request, 0) == (0, False)
        assert not rig.side.finished(request, [])
    assert time.monotonic() - begin - waited < 0.2
    rig.side.finished(first, [])
    node.go_on()

    def answers() -> bool:
        request: Any = Request(f"c{time.monotonic()}", list(range(40)))
        rig.look(request)
        found = any(track.open for track in rig.side.tracks())
        rig.side.finished(request, [])
        return found

    nodes.wait_for(answers, "asked again once it answers")
    nodes.wait_for(lambda: node.status()["requests"] == 0, "all settled")


def test_requests_that_come_at_once_do_not_all_wait_for_a_silent_node(node: nodes.Node) -> None:
    rig = Rig(node, "at once")
    node.stop()
    begin = time.monotonic()
    waiting: list[Any] = [Request(f"r{number}", list(range(40))) for number in range(8)]
    waited = []
    while waiting:
        for request in waiting[:]:
            if rig.side.matched(request, 0)[0] is not None:
                waited.append(time.monotonic() - begin)
                waiting.remove(request)
                rig.side.finished(request, [])
        time.sleep(0.001)
    assert waited[-1] >= CALL_MS / 1000 and waited[-2] < CALL_MS / 2000
    node.go_on()

    def settled() -> bool:
        rig.step()
        return bool(node.status()["requests"] == 0)

    nodes.wait_for(settled, "what came too late settled")


# FAULTS C10
def test_what_comes_too_late_is_given_back_by_the_next_step(node: nodes.Node) -> None:
    rig = Rig(node, "late")
    request: Any = Request("r", list(range(64)))
    rig.compute(request)
    request.num_computed_tokens = 64
    metas = []
    nodes.wait_for(lambda: metas.append(rig.step()) or bool(metas[-1].stores), "reserved")  # type: ignore[func-returns-value]
    rig.copy(metas[-1])
    rig.side.finished(request, [])
    node.stop()
    late: Any = Request("s", [*range(64), 1])
    assert rig.look(late) == 0
    rig.side.finished(late, [])
    node.go_on()
    nodes.wait_for(lambda: node.status()["leases"] > 0, "found too late")

    def given_back() -> bool:
        rig.step()
        return bool(node.status()["leases"] == 0)

    nodes.wait_for(given_back, "the late claim given back")


# FAULTS D6
def test_blocks_do_not_wait_for_pages_that_never_come(node: nodes.Node) -> None:
    rig = Rig(node, "never")
    request: Any = Request("r", list(range(64)))
    assert rig.look(request) == 0
    rig.side.admitted(request, SimpleNamespace(), 0)
    node.stop()
    rig.step(r=64)
    request.num_computed_tokens = 64
    assert rig.side.finished(request, list(range(4)))
    deadline = time.monotonic() + 2
    while not rig.step().last:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    rig.ended(sent=("r",))
    assert not rig.side.tracks()
    node.go_on()
    rig.side.poll()


# FAULTS C1, D1, F1
def test_a_request_whose_pages_came_too_late_is_settled_all_the_same(node: nodes.Node) -> None:
    rig = Rig(node, "late")
    request: Any = Request("r", list(range(64)))
    rig.compute(request)
    nodes.wait_for(lambda: node.status()["reservations"] == 1, "reserved")
    rig.copy(rig.step())
    request._all_token_ids.extend(range(BLOCK))  # decoded
    request.num_tokens, request.num_computed_tokens = 80, 64
    node.stop()
    rig.step(r=BLOCK)
    deadline = time.monotonic() + 5
    while rig.side.tracks()[0].reserves:
        assert time.monotonic() < deadline
        rig.step()
        time.sleep(0.005)
    node.go_on()
    assert not rig.side.finished(request, [])
    nodes.wait_for(lambda: node.tokens()["prompt"] == 64, "settled")

    def given_back() -> bool:
        rig.side.poll()  # as an engine's next step does
        return bool(node.status()["reservations"] == 0)

    nodes.wait_for(given_back, "the late pages given back")


# FAULTS C1, F1
def test_a_preempted_request_gives_its_claims_back_and_is_counted_once(node: nodes.Node) -> None:
    rig = Rig(node, "preempted")
    request: Any = Request("r", list(range(64)))
    rig.compute(request)
    nodes.wait_for(lambda: node.status()["reservations"] == 1, "reserved")
    meta = rig.step()  # the stores are given, and none begins
    assert meta.stores
    request.num_preemptions = 1
    assert rig.step(preempted=("r",)).stop == {"r"}
    nodes.wait_for(lambda: node.status()["reservations"] == 0, "given back")
    rig.ended(worker=WorkerMeta({"r": 1}))
    rig.compute(request)
    rig.side.finished(request, [])
    nodes.wait_for(lambda: node.ask("stats")["requests"] == 1, "counted")
    assert node.tokens()["prompt"] == 64
