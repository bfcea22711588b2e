"""The Python client against a real node: calls, copies, what stops them, and what never blocks."""

from __future__ import annotations

import array
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nodes
import pando_kv
from pando_kv import (
    Claim,
    Client,
    Code,
    CopyJob,
    CopyThread,
    Intent,
    KvLayout,
    Role,
    State,
    now_ns,
)

BLOCK = 16
PIECES = 4
PIECE_BYTES = 8192
PAGE = PIECES * PIECE_BYTES
BLOCKS = 32


def soon(seconds: float = 2.0) -> int:
    return now_ns() + int(seconds * 1e9)


class Kv:
    """An engine's KV: PIECES layers of BLOCKS blocks, each layer in a buffer of its own."""

    def __init__(self) -> None:
        self.layers = [bytearray(BLOCKS * PIECE_BYTES) for _ in range(PIECES)]
        pieces = [(array_address(layer), PIECE_BYTES, PIECE_BYTES) for layer in self.layers]
        self.layout = KvLayout(pieces, BLOCKS)

    def fill(self, block: int, seed: int) -> None:
        for i, layer in enumerate(self.layers):
            layer[block * PIECE_BYTES : (block + 1) * PIECE_BYTES] = content(seed, i)

    def holds(self, block: int, seed: int) -> bool:
        return all(
            layer[block * PIECE_BYTES : (block + 1) * PIECE_BYTES] == content(seed, i)
            for i, layer in enumerate(self.layers)
        )


def content(seed: int, piece: int) -> bytes:
    return bytes((seed * 7 + piece * 31 + i) % 251 for i in range(PIECE_BYTES))


def array_address(buffer: bytearray) -> int:
    import ctypes

    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


@pytest.fixture(scope="module")
def node() -> Iterator[nodes.Node]:
    with nodes.node() as one:
        yield one


def make_client(socket: str, key: str, role: Role = Role.BOTH) -> Client:
    return Client(
        socket,
        key,
        role=role,
        block_tokens=BLOCK,
        page_bytes=PAGE,
        fields=[("model", "test")],
        retry_max_ns=100_000_000,
    )


def acquire(client: Client, request: int, tokens: object, **more: object) -> pando_kv.AcquireResult:
    call = client.start_acquire(request, tokens, deadline_ns=soon(), **more)  # type: ignore[arg-type]
    assert client.wait_until(call, soon())
    return call.get()


def reserve(client: Client, request: int, begin: int, end: int) -> pando_kv.ReserveResult:
    call = client.start_reserve(request, [], begin=begin, end=end, deadline_ns=soon())
    assert client.wait_until(call, soon())
    return call.get()


def settle(client: Client, request: int, **used: int) -> pando_kv.SettleResult:
    call = client.start_settle(request, deadline_ns=soon(), **used)
    assert client.wait_until(call, soon())
    return call.get()


def copy(client: Client, job: CopyJob) -> pando_kv.CopyResult:
    result = job.run(client, deadline_ns=soon())
    job.finish(client, deadline_ns=soon())
    return result


def test_import_needs_nothing_and_starts_no_thread() -> None:
    code = (
        "import pando_kv, sys, threading, os;"
        "assert threading.active_count() == 1 and len(os.listdir('/proc/self/task')) == 1;"
        "assert not {'torch', 'vllm', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_stores_and_loads_what_another_client_stored(node: nodes.Node) -> None:
    before = node.tokens()
    tokens = [2**32 - 1, 0, *range(62)]
    first, kv = make_client(node.socket, "a"), Kv()
    assert first.wait_attached(soon())
    assert acquire(first, 1, tokens).blocks == 0
    got = reserve(first, 1, 0, 4)
    assert (got.begin, got.end, got.code) == (0, 4, Code.OK)
    for i in range(4):
        kv.fill(10 + i, seed=i)
    result = copy(first, CopyJob(got.claim, kv.layout, 0, [10, 11, 12, 13]))
    assert result.good(4) and result.store and result.bytes == 4 * PAGE
    settle(first, 1)

    second, other = make_client(node.socket, "b"), Kv()
    assert second.wait_attached(soon())
    hit = acquire(second, 7, array.array("I", tokens), intent=Intent.COMPUTE)
    assert hit.blocks == 3  # one token is left to compute, so the last block is not given
    result = copy(second, CopyJob(hit.claim, other.layout, 1, [5, 2]))
    assert result.good(2) and not result.store
    assert other.holds(5, 1) and other.holds(2, 2) and not other.holds(0, 0)
    assert settle(second, 7, engine=0, host=48).code == Code.OK
    after = node.tokens()
    assert after["prompt"] - before["prompt"] == 128
    assert after["hit_host"] - before["hit_host"] == 48


def test_scopes_and_extras_tell_prompts_apart(node: nodes.Node) -> None:
    client, kv = make_client(node.socket, "scopes"), Kv()
    assert client.wait_attached(soon())
    tokens = list(range(1000, 1033))

    def play(request: int, **prompt: object) -> int:
        blocks = acquire(client, request, tokens, **prompt).blocks
        got = reserve(client, request, 0, 2)
        if got.claim:
            assert copy(client, CopyJob(got.claim, kv.layout, got.begin, [0, 1][got.begin :])).pages
        settle(client, request, host=blocks * BLOCK)
        return blocks

    assert play(1, segments=[("tenant-a", 33)]) == 0
    assert play(2, segments=[("tenant-b", 33)]) == 0
    assert play(3) == 0
    assert play(4, segments=[("tenant-a", 33)], extras=[(1, b"image")]) == 1
    assert play(5, segments=[("tenant-a", 33)], extras=[(1, b"image")]) == 2
    assert play(6, segments=[("tenant-a", 33)]) == 2


def test_holds_copy_page_by_page(node: nodes.Node) -> None:
    client = make_client(node.socket, "pages")
    assert client.wait_attached(soon())
    tokens = list(range(5000, 5040))
    acquire(client, 1, tokens)
    code, message, hold = client.begin(reserve(client, 1, 0, 2).claim, deadline_ns=soon())
    assert code == Code.OK, message
    pages = [os.urandom(PAGE), os.urandom(PAGE)]
    assert hold.store(0, [pages[0]])
    layer = bytearray(pages[1])
    halves: list[Any] = [(array_address(layer), PAGE // 2), memoryview(pages[1])[PAGE // 2 :]]
    assert hold.store(1, halves)
    assert not hold.store(1, [pages[0][:100]]), "pieces must sum to a page"
    assert hold.store(1, halves)
    assert client.end(hold, deadline_ns=soon()).code == Code.OK
    code, message, hold = client.begin(acquire(client, 2, tokens).claim, deadline_ns=soon())
    out = [bytearray(PAGE // 2), bytearray(PAGE // 2)]
    assert code == Code.OK and hold.pages == 2 and hold.load(1, out)
    assert bytes(out[0] + out[1]) == pages[1]
    with pytest.raises(BufferError):
        hold.load(0, [bytes(PAGE)])  # read-only
    assert client.end(hold, deadline_ns=soon()).code == Code.OK


def test_a_stopped_job_touches_nothing(node: nodes.Node) -> None:
    client, kv = make_client(node.socket, "stop"), Kv()
    assert client.wait_attached(soon())
    tokens = list(range(9000, 9040))
    acquire(client, 1, tokens)
    job = CopyJob(reserve(client, 1, 0, 2).claim, kv.layout, 0, [0, 1])
    job.stop()
    result = copy(client, job)
    assert result.stopped and result.pages == 0 and not result.good(2)
    assert acquire(client, 2, tokens).blocks == 0, "nothing was committed"
    settle(client, 1)
    settle(client, 2)
    client.close()
    nodes.wait_for(lambda: node.status()["pages"]["quarantined"] == 0, "no page in quarantine")


def test_a_claim_without_the_wanted_blocks_is_no_copy(node: nodes.Node) -> None:
    client, kv = make_client(node.socket, "wanted"), Kv()
    assert client.wait_attached(soon())
    acquire(client, 1, list(range(7000, 7040)))
    claim = reserve(client, 1, 0, 2).claim
    assert copy(client, CopyJob(claim, kv.layout, 1, [0, 1])).code == Code.INVALID
    with pytest.raises(IndexError):
        CopyJob(claim, kv.layout, 0, [BLOCKS])
    with pytest.raises(ValueError, match="overlap"):
        KvLayout([(4096, 10, 20)], 2)


def test_without_a_node_all_is_a_miss_at_once() -> None:
    client, kv = make_client("unix:/tmp/no-such-pando.sock", "none"), Kv()
    start = time.monotonic()
    call = client.start_acquire(1, list(range(100)), deadline_ns=soon())
    assert call.ready() and call.get().code == Code.LOST
    job = CopyJob(Claim(1, 1), kv.layout, 0, [0])
    assert job.run(client, deadline_ns=soon()).code == Code.LOST
    assert job.finish(client, deadline_ns=soon()).code == Code.UNKNOWN
    assert time.monotonic() - start < 0.5
    assert client.state == State.DISCONNECTED and "no-such-pando" in client.last_error


def test_a_wait_holds_no_lock_and_ends_at_its_deadline() -> None:
    with nodes.node() as one:
        client = make_client(one.socket, "silent")
        assert client.wait_attached(soon())
        one.stop()
        call = client.start_probe(list(range(100)), deadline_ns=soon(5))
        done = threading.Event()

        def wait() -> None:
            client.wait_until(call, soon(0.3))
            done.set()

        thread = threading.Thread(target=wait, daemon=True)
        start = time.monotonic()
        thread.start()
        turns = 0
        while not done.is_set():  # this thread runs meanwhile
            turns += 1
            time.sleep(0.001)
            if turns == 20:
                with pytest.raises(RuntimeError, match="in use by another thread"):
                    client.poll()
        assert 0.25 < time.monotonic() - start < 2 and turns > 50
        thread.join()
        one.go_on()


def make_thread(socket: str, key: str) -> CopyThread:
    return CopyThread(
        socket,
        key,
        shard=0,
        world_size=1,
        page_bytes=PAGE,
        fields=[],
        copy_ns=10_000_000_000,
        call_ns=1_000_000_000,
    )


def take(thread: CopyThread, count: int) -> list[pando_kv.EndedCopy]:
    ended: list[pando_kv.EndedCopy] = []

    def all_there() -> bool:
        ended.extend(thread.take_ended())
        return len(ended) >= count

    nodes.wait_for(all_there, f"{count} copies ended")
    assert len(ended) == count
    return ended


def test_a_copy_thread_stores_and_loads(node: nodes.Node) -> None:
    thread, kv = make_thread(node.socket, "thread"), Kv()
    scheduler = make_client(node.socket, "thread", Role.SCHEDULER)
    assert scheduler.wait_attached(soon())
    nodes.wait_for(lambda: thread.state == State.ATTACHED, "the thread's session attached")
    tokens = list(range(15000, 15065))
    acquire(scheduler, 1, tokens)
    for i in range(4):
        kv.fill(i, seed=i)
        claim = reserve(scheduler, 1, i, i + 1).claim
        thread.submit(i, CopyJob(claim, kv.layout, i, [i]), load=False)
    stored = take(thread, 4)
    assert [each.tag for each in stored] == [0, 1, 2, 3]
    assert all(each.result.good(1) and each.result.store for each in stored)
    settle(scheduler, 1)
    hit = acquire(scheduler, 2, tokens)
    assert hit.blocks == 4
    thread.submit(7, CopyJob(hit.claim, kv.layout, 0, [10, 11, 12, 13]), load=True)
    (loaded,) = take(thread, 1)
    assert loaded.tag == 7 and loaded.result.good(4) and loaded.in_all_ns > 0
    assert all(kv.holds(10 + i, seed=i) for i in range(4))
    settle(scheduler, 2, host=64)
    thread.close()
    thread.close()


def extents_present() -> list[bool]:
    """Of each extent that this process has mapped: whether all of it is in its page table."""
    present: list[bool] = []
    size, extent = 0, False
    with open("/proc/self/smaps") as maps:
        for line in maps:
            if line.startswith("Size:"):
                size = int(line.split()[1])
            elif line.startswith("Rss:") and extent:
                present.append(int(line.split()[1]) == size)
            elif "-" in line.split()[0]:
                extent = "memfd:pando-extent" in line
    return present


def test_a_copy_thread_touches_what_it_has_mapped_before_it_is_needed(node: nodes.Node) -> None:
    others = len(extents_present())
    thread, kv = make_thread(node.socket, "touches"), Kv()
    scheduler = make_client(node.socket, "touches", Role.SCHEDULER)
    assert scheduler.wait_attached(soon())
    nodes.wait_for(lambda: thread.state == State.ATTACHED, "the thread's session attached")
    whole = sum(extents_present())
    acquire(scheduler, 1, list(range(21000, 21040)))
    claim = reserve(scheduler, 1, 0, 1).claim
    thread.submit(1, CopyJob(claim, kv.layout, 0, [0]), load=False)
    (stored,) = take(thread, 1)
    assert stored.result.good(1) and stored.result.copy_cpu_ns > 0
    assert len(extents_present()) == others + 1
    nodes.wait_for(lambda: sum(extents_present()) == whole + 1, "all of the extent touched")
    settle(scheduler, 1)
    thread.close()


def test_a_copy_thread_ends_all_that_waits_when_it_is_closed() -> None:
    with nodes.node() as one:
        thread, kv = make_thread(one.socket, "closed"), Kv()
        nodes.wait_for(lambda: thread.state == State.ATTACHED, "the thread's session attached")
        one.stop()
        for tag in range(5):
            thread.submit(tag, CopyJob(Claim(1, 1), kv.layout, 0, [0]), load=tag % 2 == 0)
        start = time.monotonic()
        thread.close()
        assert time.monotonic() - start < 5, "one answer's time, not that of all"
        ended = take(thread, 5)
        assert sorted(each.tag for each in ended) == [0, 1, 2, 3, 4]
        assert not any(each.result.good(1) for each in ended)
        one.go_on()


def test_a_copy_thread_is_not_waited_for_in_a_forks_child(node: nodes.Node) -> None:
    thread = make_thread(node.socket, "forked")
    child = os.fork()
    if child == 0:
        thread.close()
        os._exit(0)
    nodes.wait_for(lambda: os.waitpid(child, os.WNOHANG)[0] == child, "the child has ended")
    thread.close()


def test_a_copy_thread_may_be_closed_by_two_at_once() -> None:
    with nodes.node() as one:
        thread, kv = make_thread(one.socket, "closed-twice"), Kv()
        nodes.wait_for(lambda: thread.state == State.ATTACHED, "the thread's session attached")
        one.stop()  # so that both closes wait for an answer's time
        thread.submit(1, CopyJob(Claim(1, 1), kv.layout, 0, [0]), load=True)
        both = [threading.Thread(target=thread.close, daemon=True) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join(timeout=5)
        assert not any(each.is_alive() for each in both)
        assert [each.tag for each in take(thread, 1)] == [1]
        one.go_on()


def test_a_copy_thread_that_is_closed_gives_back_what_it_is_told_to_copy(node: nodes.Node) -> None:
    thread, kv = make_thread(node.socket, "late"), Kv()
    thread.close()
    thread.submit(5, CopyJob(Claim(1, 1), kv.layout, 0, [0]), load=True)
    (ended,) = thread.take_ended()
    assert ended.tag == 5 and not ended.result.good(1) and ended.result.stopped
    assert "closed" in ended.result.message


def in_a_forks_child(check: Callable[[], bool]) -> bool:
    """Whether `check` came true there within five seconds."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(5)
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


def test_a_copy_thread_says_in_a_forks_child_what_it_is() -> None:  # FAULTS D7
    with nodes.node() as one:
        thread, kv = make_thread(one.socket, "forked"), Kv()
        nodes.wait_for(lambda: thread.state == State.ATTACHED, "the thread's session attached")
        jobs = [CopyJob(Claim(1, 1), kv.layout, 0, [0]) for _ in range(400)]

        def child() -> bool:
            if thread.state != State.FORKED or thread.take_ended():
                return False
            for job in jobs:
                job.stop()
            with pytest.raises(RuntimeError, match="forked"):
                thread.submit(9, jobs[0], load=True)
            thread.close()
            return True

        # The thread is in any of its steps, with its lock or without.
        for tag, job in enumerate(jobs):
            thread.submit(tag, job, load=True)
            if tag % 20 == 0:
                assert in_a_forks_child(child)
        take(thread, len(jobs))
        thread.close()


def test_claims_travel_between_processes() -> None:
    claim = pickle.loads(pickle.dumps(Claim(3, 2**64 - 1)))
    assert claim == Claim(3, 2**64 - 1) and hash(claim) == hash(Claim(3, 2**64 - 1))
    assert claim and not Claim()


def test_tokens_must_be_tokens(node: nodes.Node) -> None:
    client = make_client(node.socket, "types")
    for wrong in ([-1], [2**32], ["a"], array.array("Q", [1]), "text"):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            client.start_probe(wrong, deadline_ns=soon())  # type: ignore[arg-type]
