"""A worker's side: one thread that copies between the engine's KV and the node's pages.

    the engine's thread            the copy thread
      loads of a step  ──queue──►    begin, copy, end (without the interpreter's lock)
      stores, after the forward ──►  the same, when no load waits
      results         ◄──────────
      stop(request): returns once none of its copies touches a block any more

Invariants:
 1. A load is reported once, whatever becomes of it, and only when it touches no block any more.
 2. A block that is loaded is reported as good only if all of its request's were copied and had the
    checksum that was stored.
 3. The engine's thread never waits for the node, only (in `stop`) for the 4 KiB that are copied.

The session with the node is the copy thread's own; the engine's thread shares `_lock`'s members.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pando_kv import Claim, Client, CopyJob, CopyResult, KvLayout, Role, State, now_ns
from pando_kv.vllm.meta import Copy, WorkerMeta
from pando_kv.vllm.stats import Numbers

if TYPE_CHECKING:
    from pando_kv.vllm.settings import Settings
    from pando_kv.vllm.space import Fields

logger = logging.getLogger("vllm.pando")

_LOOK = 5.0  # seconds between looks at the node of a session that has nothing to do
_LOOK_DETACHED = 0.1


@dataclass
class _Job:
    request_id: str
    load: bool
    copy: CopyJob
    queued_ns: int


@dataclass
class Done:
    """What ended since the last look."""

    sent: set[str]
    received: set[str]
    failed: set[str]


class WorkerSide:
    """One session of the node, role worker, of shard `rank` of `world_size`."""

    def __init__(
        self,
        settings: Settings,
        replica_key: str,
        fields: Fields,
        layout: KvLayout,
        rank: int,
        world_size: int,
    ) -> None:
        self._settings = settings
        self._layout = layout
        self._client = Client(
            settings.socket,
            replica_key,
            role=Role.WORKER,
            shard=rank,
            world_size=world_size,
            page_bytes=layout.page_bytes,
            fields=fields,
        )
        self._lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._loads: deque[_Job] = deque()
        self._stores: deque[_Job] = deque()
        self._running: _Job | None = None
        self._unfinished: dict[str, int] = {}  # stores by request
        self._last: set[str] = set()
        self._received: set[str] = set()
        self._failed: set[str] = set()
        self._stores_done: dict[str, int] = {}
        self._failed_claims: list[Claim] = []
        self._numbers = Numbers()
        self._closing = False
        self._attached = False
        self._said = ""
        self._thread = threading.Thread(target=self._work, name="pando-copy", daemon=True)
        self._thread.start()

    # ---- The engine's thread

    def load(self, copies: Iterable[Copy]) -> None:
        self._queue(copies, load=True)

    def store(self, copies: Iterable[Copy]) -> None:
        self._queue(copies, load=False)

    def _queue(self, copies: Iterable[Copy], load: bool) -> None:
        jobs = [_Job(c.request_id, load, self._job(c), now_ns()) for c in copies]
        if not jobs:
            return
        with self._lock:
            for job in jobs:
                if load:
                    self._loads.append(job)
                else:
                    self._stores.append(job)
                    self._unfinished[job.request_id] = self._unfinished.get(job.request_id, 0) + 1
        os.eventfd_write(self._wake, 1)

    def _job(self, copy: Copy) -> CopyJob:
        return CopyJob(copy.claim, self._layout, copy.first_block, copy.block_ids)

    def stop(self, request_ids: set[str]) -> None:
        """Once it has returned, no copy of these requests touches a block; they end as failed."""
        with self._lock:
            jobs = [*self._loads, *self._stores]
            if self._running is not None:
                jobs.append(self._running)
        for job in jobs:
            if job.request_id in request_ids:
                job.copy.stop()

    def last(self, request_ids: set[str]) -> None:
        """These requests have finished, and get no more stores."""
        with self._lock:
            self._last |= request_ids

    def take_done(self) -> Done:
        with self._lock:
            sent = {r for r in self._last if r not in self._unfinished}
            self._last -= sent
            done = Done(sent, self._received, self._failed)
            self._received, self._failed = set(), set()
            return done

    def take_meta(self) -> WorkerMeta | None:
        with self._lock:
            done, self._stores_done = self._stores_done, {}
            failed, self._failed_claims = self._failed_claims, []
        return WorkerMeta(done, failed) if done or failed else None

    def attached(self) -> bool:
        """As the copy thread last saw it."""
        return self._attached

    def numbers(self) -> Numbers:
        """Since the start."""
        with self._lock:
            return Numbers(**vars(self._numbers))

    def close(self) -> None:
        """Ends all copies, then the session. Waits for what a call to the node may take."""
        with self._lock:
            self._closing = True
            jobs = [*self._loads, *self._stores]
            if self._running is not None:
                jobs.append(self._running)
        os.eventfd_write(self._wake, 1)
        for job in jobs:
            job.copy.stop()
        self._thread.join(timeout=self._settings.call_ns * 3 / 1e9)

    # ---- The copy thread

    def _work(self) -> None:
        while (job := self._next()) is not None:
            result: CopyResult | None = None
            try:
                result = self._copy(job)
            except Exception:
                logger.exception("Pando: a copy failed")
            self._ended(job, result)
        self._client.close()

    def _next(self) -> _Job | None:
        """The next job, or None at the end. Looks after the session while there is none."""
        while True:
            with self._lock:
                if self._loads or self._stores:
                    self._running = (self._loads or self._stores).popleft()
                    return self._running
                if self._closing:
                    return None
            self._client.poll()
            self._say()
            self._attached = self._client.state == State.ATTACHED
            self._wait(_LOOK if self._attached else _LOOK_DETACHED)

    def _wait(self, seconds: float) -> None:
        """Until there is a job, or something of the node: also its end is heard of at once."""
        waiting = select.poll()
        waiting.register(self._wake, select.POLLIN)
        if self._client.fileno() >= 0:
            waiting.register(self._client.fileno(), select.POLLIN)
        waiting.poll(seconds * 1000)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _copy(self, job: _Job) -> CopyResult:
        deadline = job.queued_ns + self._settings.copy_ns
        return job.copy.execute(self._client, deadline_ns=deadline, call_ns=self._settings.call_ns)

    def _ended(self, job: _Job, result: CopyResult | None) -> None:
        good = result is not None and result.good(job.copy.wanted)
        if result is not None:
            logger.debug(
                "Pando: %s of %d blocks %s: node %.1f ms, copy %.1f ms, in all %.1f ms %s",
                "load" if job.load else "store",
                job.copy.wanted,
                "done" if good else f"failed ({result.code})",
                result.begin_ns / 1e6,
                result.copy_ns / 1e6,
                (now_ns() - job.queued_ns) / 1e6,
                result.message,
            )
        with self._lock:
            self._running = None
            self._count(job, result, good)
            if not good:
                self._failed_claims.append(job.copy.claim)
            if job.load:
                self._received.add(job.request_id)
                if not good:
                    self._failed.add(job.request_id)
                return
            done = self._stores_done
            done[job.request_id] = done.get(job.request_id, 0) + 1
            self._unfinished[job.request_id] -= 1
            if self._unfinished[job.request_id] == 0:
                del self._unfinished[job.request_id]

    def _count(self, job: _Job, result: CopyResult | None, good: bool) -> None:
        numbers = self._numbers
        size, took = (result.bytes, result.copy_ns) if result is not None else (0, 0)
        if job.load:
            numbers.loads += 1
            numbers.loads_failed += not good
            numbers.load_bytes += size
            numbers.load_ns += took
        else:
            numbers.stores += 1
            numbers.stores_failed += not good
            numbers.store_bytes += size
            numbers.store_ns += took

    def _say(self) -> None:
        """What the node refuses, once."""
        if self._client.state != State.REFUSED:
            return
        error = self._client.last_error
        if error != self._said:
            self._said = error
            logger.warning("Pando: the node refuses this worker: %s", error)
