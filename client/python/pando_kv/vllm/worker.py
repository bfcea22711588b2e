"""A worker's side: what is copied between the engine's KV and the node's pages.

    the engine's thread            the copy thread (C++, client/python/copy_thread.h)
      loads of a step  ──submit──►   begin, copy, end
      stores, after the forward ──►  the same, when no load waits
      results         ◄──────────
      stop(request): returns once none of its copies touches a block any more

Invariants:
 1. A load is reported once, whatever becomes of it, and only when it touches no block any more.
 2. A block that is loaded is reported as good only if all of its request's were copied and had the
    checksum that was stored.
 3. The engine's thread never waits for the node, only (in `stop`) for the 4 KiB that are copied.

Used by the engine's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pando_kv import Claim, CopyJob, CopyThread, EndedCopy, KvLayout, State
from pando_kv.vllm.meta import Copy, WorkerMeta
from pando_kv.vllm.stats import Numbers

if TYPE_CHECKING:
    from pando_kv.vllm.settings import Settings
    from pando_kv.vllm.space import Fields

logger = logging.getLogger("vllm.pando")


@dataclass
class _Job:
    request_id: str
    load: bool
    copy: CopyJob


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
        self._layout = layout
        self._thread = CopyThread(
            settings.socket,
            replica_key,
            shard=rank,
            world_size=world_size,
            page_bytes=layout.page_bytes,
            fields=fields,
            copy_ns=settings.copy_ns,
            call_ns=settings.call_ns,
        )
        self._tag = 0
        self._jobs: dict[int, _Job] = {}  # by tag: those that have not ended
        self._unfinished: dict[str, int] = {}  # stores by request
        self._last: set[str] = set()
        self._received: set[str] = set()
        self._failed: set[str] = set()
        self._stores_done: dict[str, int] = {}
        self._failed_claims: list[Claim] = []
        self._numbers = Numbers()
        self._said = ""

    def load(self, copies: Iterable[Copy]) -> None:
        for copy in copies:
            self._submit(copy, load=True)

    def store(self, copies: Iterable[Copy]) -> None:
        for copy in copies:
            self._submit(copy, load=False)
            self._unfinished[copy.request_id] = self._unfinished.get(copy.request_id, 0) + 1

    def _submit(self, copy: Copy, load: bool) -> None:
        job = CopyJob(copy.claim, self._layout, copy.first_block, copy.block_ids)
        self._tag += 1
        self._jobs[self._tag] = _Job(copy.request_id, load, job)
        self._thread.submit(self._tag, job, load=load)

    def stop(self, request_ids: set[str]) -> None:
        """Once it has returned, no copy of these requests touches a block; they end as failed."""
        for job in self._jobs.values():
            if job.request_id in request_ids:
                job.copy.stop()

    def last(self, request_ids: set[str]) -> None:
        """These requests have finished, and get no more stores."""
        self._last |= request_ids

    def take_done(self) -> Done:
        self._take_ended()
        sent = {r for r in self._last if r not in self._unfinished}
        self._last -= sent
        done = Done(sent, self._received, self._failed)
        self._received, self._failed = set(), set()
        return done

    def take_meta(self) -> WorkerMeta | None:
        done, self._stores_done = self._stores_done, {}
        failed, self._failed_claims = self._failed_claims, []
        return WorkerMeta(done, failed) if done or failed else None

    def attached(self) -> bool:
        """As the copy thread last saw it."""
        return self._thread.state == State.ATTACHED

    @property
    def copies(self) -> int:
        """Since the start, of which the end was taken."""
        return self._numbers.copies()

    def numbers(self) -> Numbers:
        """Since the start, of copies whose end was taken."""
        return Numbers(**vars(self._numbers))

    def close(self) -> None:
        """Ends all copies, then the session. Waits for what a call to the node may take."""
        self._thread.close()

    def _take_ended(self) -> None:
        for ended in self._thread.take_ended():
            self._ended(self._jobs.pop(ended.tag), ended)
        self._say()

    def _ended(self, job: _Job, ended: EndedCopy) -> None:
        result = ended.result
        good = result.good(job.copy.wanted)
        logger.debug(
            "Pando: %s of %d blocks %s: node %.1f ms, copy %.1f ms, in all %.1f ms %s",
            "load" if job.load else "store",
            job.copy.wanted,
            "done" if good else f"failed ({result.code})",
            result.begin_ns / 1e6,
            result.copy_ns / 1e6,
            ended.in_all_ns / 1e6,
            result.message,
        )
        self._count(job, ended, good)
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

    def _count(self, job: _Job, ended: EndedCopy, good: bool) -> None:
        numbers, result = self._numbers, ended.result
        numbers.copy_cpu_ns += result.copy_cpu_ns
        if job.load:
            numbers.loads += 1
            numbers.loads_failed += not good
            numbers.load_bytes += result.bytes
            numbers.load_ns += result.copy_ns
        else:
            numbers.stores += 1
            numbers.stores_failed += not good
            numbers.store_bytes += result.bytes
            numbers.store_ns += result.copy_ns

    def _say(self) -> None:
        """What the node refuses, once."""
        if self._thread.state != State.REFUSED:
            return
        error = self._thread.last_error
        if error != self._said:
            self._said = error
            logger.warning("Pando: the node refuses this worker: %s", error)
