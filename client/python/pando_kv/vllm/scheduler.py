"""The scheduler's side: what is asked of the node for each request, and when.

    new ──acquire──► asked ──► (awaiting what a peer has, or somebody computes) ──► answered
    admitted: the claim goes to the workers, who load it     blocks fill: reserve ──► stores
    finished: settle; the engine keeps the blocks until the workers have stored them

Nothing here waits for the node, but for a brief look at a new request's answer (lookup.py). Every
call has a deadline; whatever fails is a miss.

Invariants:
 1. A request is given external tokens once in each of its lives: after a load that failed it
    computes. (The engine asks again then, without end if it is told the same.) A preemption begins
    another life, which the node's account does not count again.
 2. Blocks of a finished request stay its own until all its stores are done.
 3. A request is settled once in each life, after its last reservation was sent.

Used by the engine's scheduling thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pando_kv import Claim, Client, Role, State, now_ns
from pando_kv.vllm.lookup import Lookup
from pando_kv.vllm.lora import Adapters
from pando_kv.vllm.meta import Copy, StepMeta, WorkerMeta
from pando_kv.vllm.prompt import describe
from pando_kv.vllm.storing import BlockIds, Storing
from pando_kv.vllm.track import Track

if TYPE_CHECKING:
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

    from pando_kv.vllm.settings import Settings
    from pando_kv.vllm.space import Fields

ATTACH_AT_START = 100_000_000  # ns: once, while the engine is being built


class SchedulerSide:
    """One session of the node, role scheduler."""

    def __init__(
        self,
        settings: Settings,
        replica_key: str,
        fields: Fields,
        block_tokens: int,
        world_size: int,
    ) -> None:
        self._settings = settings
        self._block = block_tokens
        self._client = Client(
            settings.socket,
            replica_key,
            role=Role.SCHEDULER,
            world_size=world_size,
            block_tokens=block_tokens,
            fields=fields,
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
        )
        # The answer to attach is read only when there is a step; none may come for long.
        self._client.wait_attached(now_ns() + ATTACH_AT_START)
        self._lookup = Lookup(self._client, settings, block_tokens)
        self._adapters = Adapters(settings.full_digest)
        self._storing = Storing(self._client, settings, block_tokens, world_size, self._adapters)
        self._tracks: dict[str, Track] = {}
        self._numbers = 0
        self._loads: list[Copy] = []
        self._stop: set[str] = set()

    def resolve_block_ids(self, ids_of: BlockIds) -> None:
        """How the blocks of a request that is not finished are found."""
        self._storing.resolve_block_ids(ids_of)

    # ---- A new request

    def matched(self, request: Request, computed: int) -> tuple[int | None, bool]:
        """Tokens beyond `computed` that can be loaded; None: ask again. May be repeated."""
        if request.skip_reading_prefix_cache:
            return 0, False
        track = self._tracks.get(request.request_id)
        if track is None:
            prompt = describe(request, self._block, self._adapters)
            track = Track(request, self._number(), prompt, over=prompt is None)
            self._tracks[request.request_id] = track
        more = self._lookup.matched(track, computed)
        if more and not self._adapters.known(request):  # it has waited since it was described
            self._lookup.give_back(track)
            track.over, more = True, 0
        return more, bool(more)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def admitted(self, request: Request, blocks: KVCacheBlocks, external: int) -> None:
        """The engine has blocks for the request, and will load `external` tokens into them."""
        track = self._tracks.get(request.request_id)
        if track is None or track.admitted:
            return
        track.admitted = track.over = True
        if external == 0:
            self._lookup.give_back(track)
            return
        first, end = track.engine // self._block, (track.engine + external) // self._block
        ids = blocks.get_block_ids()[0][first:end]
        track.external = external
        track.loading = True
        self._loads.append(Copy(request.request_id, track.claim, first, ids))
        track.given.append(track.claim)
        track.claim = Claim()

    def from_peers(self, request: Request, external: int) -> int:
        """How many of the external tokens of an admitted request came from peers."""
        track = self._tracks.get(request.request_id)
        if track is None:
            return 0
        begin, end = (block * self._block for block in track.peer)
        return max(0, min(end, track.engine + external) - max(begin, track.engine))

    # ---- A step

    def step(self, output: SchedulerOutput) -> StepMeta:
        """What the workers do in this step: loads and stores that can begin, copies that end."""
        self.poll()
        meta = StepMeta(loads=self._loads, stop=self._stop)
        self._loads, self._stop = [], set()
        for request_id in output.preempted_req_ids or ():
            if track := self._tracks.get(request_id):
                self._preempted(track)
                meta.stop.add(request_id)
        for track in self._tracks.values():
            if track.reserves:
                meta.stores += self._storing.answered(track)
        for request_id, tokens in output.num_scheduled_tokens.items():
            if track := self._tracks.get(request_id):
                self._storing.scheduled(track, tokens)
        self._close(meta)
        self._client.flush()
        return meta

    def _preempted(self, track: Track) -> None:
        """Its blocks are gone, and their stores with them."""
        self._storing.take_back(track)
        self._settle(track)
        track.next_life(self._number())

    def _close(self, meta: StepMeta) -> None:
        """Finished requests whose last stores go to the workers in this step, or went before."""
        for request_id, track in self._tracks.items():
            done = track.block_ids is not None and not track.reserves and not track.loading
            if done and not track.closing:
                track.closing = True
                meta.last.add(request_id)

    # ---- What has come of it

    def ended(self, output: KVConnectorOutput) -> None:
        """What the workers have reported in this step."""
        failed = output.failed_recving or ()
        for request_id in output.finished_recving or ():
            if track := self._tracks.get(request_id):
                self._load_ended(track, failed=request_id in failed)
        if isinstance(output.kv_connector_worker_meta, WorkerMeta):
            self._workers_ended(output.kv_connector_worker_meta)
        for request_id in output.finished_sending or ():
            self._tracks.pop(request_id, None)

    def _load_ended(self, track: Track, failed: bool) -> None:
        track.loading = False
        if failed:
            track.failed, track.external = track.external, 0
            track.admitted = False  # the engine asks again, and is told that there is nothing
        if track.block_ids is not None:  # aborted meanwhile: the engine frees its blocks now
            self._tracks.pop(track.request.request_id, None)

    def _workers_ended(self, meta: WorkerMeta) -> None:
        self._client.abort(meta.failed)
        for request_id, count in meta.stores_done.items():
            if track := self._tracks.get(request_id):
                track.stores -= count
                if track.stores == 0:
                    track.given.clear()

    def finished(self, request: Request, block_ids: list[int]) -> bool:
        """True: the engine keeps the blocks until the workers say that they have sent them."""
        track = self._tracks.get(request.request_id)
        if track is None:
            return False
        self._lookup.drop(track)
        if track.loading:
            self._stop.add(request.request_id)
            self._storing.take_back(track)
            track.failed, track.external = track.external, 0
        else:
            self._storing.reserve(track, request.num_computed_tokens)
        self._settle(track)
        track.block_ids = list(block_ids)
        if track.loading:
            return False  # it is the end of the load that frees them
        if not track.reserves and track.stores == 0:
            del self._tracks[request.request_id]
            return False
        return True

    def _settle(self, track: Track) -> None:
        if not track.open:
            return
        track.open = False
        self._client.start_settle(
            track.number,
            engine=track.engine,
            host=track.external,
            failed=track.failed,
            prefill_micros=track.prefill_ns // 1000,
            deadline_ns=now_ns() + self._settings.call_ns,
        )
        self._client.flush()

    # ---- Else

    def poll(self) -> None:
        """What an engine's step does for the session, for one that makes no steps."""
        self._client.poll()
        self._lookup.silent()

    def attached(self) -> bool:
        return self._client.state == State.ATTACHED

    def tracks(self) -> list[Track]:
        """Requests that are looked after, finished ones with stores included. To be read only."""
        return list(self._tracks.values())

    def close(self) -> None:
        self._client.close()
