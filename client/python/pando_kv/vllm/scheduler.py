"""The scheduler's side: what is asked of the node for each request, and when.

    new ──acquire──► asked ──► (awaiting what a peer has, or somebody computes) ──► answered
    admitted: the claim goes to the workers, who load it     blocks fill: reserve ──► stores
    finished: settle; the engine keeps the blocks until the workers have stored them

Nothing here waits for the node, but for a look of at most BRIEFLY at a new request's answer: it
mostly comes within 0.1 ms, and "ask again" would cost a step. Every call has a deadline; whatever
fails is a miss.

Invariants:
 1. A request is given external tokens once in each of its lives: after a load that failed it
    computes. (The engine asks again then, without end if it is told the same.) A preemption begins
    another life, which the node's account does not count again.
 2. A block is reserved only if all its tokens are known and its KV is there when this step is done,
    computed by this engine or loaded and verified.
 3. Blocks of a finished request stay its own until all its stores are done.

Used by the engine's scheduling thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pando_kv import (
    AcquireCall,
    AwaitCall,
    Claim,
    Client,
    Code,
    Intent,
    ReserveCall,
    Role,
    State,
    now_ns,
)
from pando_kv.vllm.meta import Copy, StepMeta, WorkerMeta
from pando_kv.vllm.prompt import Prompt, describe

if TYPE_CHECKING:
    from vllm.v1.core.kv_cache_manager import KVCacheBlocks
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request

    from pando_kv.vllm.settings import Settings
    from pando_kv.vllm.space import Fields

logger = logging.getLogger("vllm.pando")

BRIEFLY = 300_000  # ns
ATTACH_AT_START = 100_000_000  # ns: once, while the engine is being built
CLAIM_LIFE = 60_000_000_000  # ns: far beyond the longest load or store


@dataclass
class _Reserve:
    """A question for pages that has no answer yet."""

    call: ReserveCall
    appended: bool  # it told tokens: if it is lost, no later ones can be told


@dataclass
class _Track:
    """One request, from its first look to its last store."""

    request: Request
    number: int  # the node's name for it
    prompt: Prompt | None  # None: it cannot be shared
    call: AcquireCall | AwaitCall | None = None
    claim: Claim = field(default_factory=Claim)
    blocks: int = 0  # leading ones that the claim has
    open: bool = False  # the node knows the request, or may: to be settled
    asked: bool = False
    asked_ns: int = 0
    over: bool = False  # gets nothing external any more
    engine: int = 0  # tokens that the engine's own cache had
    external: int = 0  # tokens that are loaded, or were
    peer: tuple[int, int] = (0, 0)  # blocks that came from peers while it waited
    failed: int = 0  # tokens that were to be loaded and were not
    loading: bool = False
    admitted: bool = False
    began_ns: int = 0  # of the first step that computed it
    prefill_ns: int = 0
    told: int = 0  # tokens that the node knows
    reserved: int = 0  # blocks that were asked for, or were there
    reserves: list[_Reserve] = field(default_factory=list)
    stores: int = 0  # that workers have not ended, times workers
    given: list[Claim] = field(default_factory=list)  # to workers, who may not have begun them
    block_ids: list[int] | None = None  # once finished
    closing: bool = False  # workers were told that no more stores come


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
        self._workers = world_size
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
        self._tracks: dict[str, _Track] = {}
        self._numbers = 0
        self._loads: list[Copy] = []
        self._stop: set[str] = set()
        self._ids_of: Callable[[str], tuple[list[int], ...]] | None = None
        self._said = ""

    def resolve_block_ids(self, ids_of: Callable[[str], tuple[list[int], ...]]) -> None:
        self._ids_of = ids_of

    # ---- A new request

    def matched(self, request: Request, computed: int) -> tuple[int | None, bool]:
        """Tokens beyond `computed` that can be loaded; None: ask again. May be repeated."""
        track = self._tracks.get(request.request_id)
        if track is None:
            track = self._track(request)
        if track.over or request.skip_reading_prefix_cache:
            return 0, False
        if not track.asked:
            self._acquire(track, computed)
        if track.call is not None and not self._answered(track):
            return None, False
        track.engine = computed
        more = max(0, track.blocks * self._block - computed)
        return more, more > 0

    def _track(self, request: Request) -> _Track:
        self._numbers += 1
        prompt = describe(request, self._block)
        track = _Track(request, self._numbers, prompt, over=prompt is None)
        self._tracks[request.request_id] = track
        return track

    def _acquire(self, track: _Track, computed: int) -> None:
        assert track.prompt is not None
        track.asked = True
        now = track.asked_ns = now_ns()
        tokens = track.request._all_token_ids
        track.call = self._client.start_acquire(
            track.number,
            tokens,
            engine_hit_tokens=computed,
            claim_deadline_ns=now + CLAIM_LIFE,
            deadline_ns=now + self._settings.call_ns,
            intent=Intent.COMPUTE,
            again=track.request.num_preemptions > 0,
            segments=track.prompt.segments(len(tokens)),
            extras=track.prompt.extras,
        )
        track.told = len(tokens)
        self._client.wait_until(track.call, now + BRIEFLY)

    def _answered(self, track: _Track) -> bool:
        """Takes the answer that has come; false: there is none yet."""
        call = track.call
        assert call is not None
        if not call.ready():
            self._client.poll()
            if not call.ready():
                return False
        track.call = None
        waited = (now_ns() - track.asked_ns) / 1e6
        if isinstance(call, AwaitCall):
            more = call.get()
            logger.debug("Pando: awaited %d blocks for %.1f ms: %s", more.blocks, waited, more.code)
            if more.code == Code.OK and more.claim:
                track.claim, track.blocks = more.claim, more.blocks
                track.peer = (more.peer_begin, more.peer_end)
            return True
        got = call.get()
        logger.debug("Pando: found %d blocks in %.1f ms: %s", got.blocks, waited, got.code)
        track.open = got.code in (Code.OK, Code.LOST) and self._client.session != 0
        if got.code != Code.OK:
            self._say(f"no answer: {got.message}" if got.message else "no answer")
            return True
        self._say("")
        track.claim, track.blocks = got.claim, got.blocks
        if got.ticket and self._settings.wait_ns:
            until = now_ns() + self._settings.wait_ns
            track.call = self._client.start_await(
                got.ticket, until_ns=until, deadline_ns=until + self._settings.call_ns
            )
            self._client.flush()
            return track.call.ready() and self._answered(track)
        return True

    def admitted(self, request: Request, blocks: KVCacheBlocks, external: int) -> None:
        """The engine has blocks for the request, and will load `external` tokens into them."""
        track = self._tracks.get(request.request_id)
        if track is None or track.admitted:
            return
        track.admitted = track.over = True
        if external == 0:
            self._give_back(track)
            return
        first, end = track.engine // self._block, (track.engine + external) // self._block
        ids = blocks.get_block_ids()[0][first:end]
        track.external = external
        track.loading = True
        self._loads.append(Copy(request.request_id, track.claim, first, ids))
        track.given.append(track.claim)
        track.claim = Claim()

    def _give_back(self, track: _Track) -> None:
        if track.claim:
            self._client.abort([track.claim])
        track.claim, track.blocks = Claim(), 0

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
        self._client.poll()
        meta = StepMeta(loads=self._loads, stop=self._stop)
        self._loads, self._stop = [], set()
        for request_id in output.preempted_req_ids or ():
            if track := self._tracks.get(request_id):
                self._preempted(track)
                meta.stop.add(request_id)
        for track in self._tracks.values():
            if track.reserves:
                self._dispatch(track, meta)
        for request_id, scheduled in output.num_scheduled_tokens.items():
            if track := self._tracks.get(request_id):
                self._scheduled(track, scheduled)
        self._close(meta)
        self._client.flush()
        return meta

    def _preempted(self, track: _Track) -> None:
        """Its blocks are gone, and their stores with them. It begins anew, under another number."""
        for reserve in track.reserves:
            if reserve.call.ready():
                self._abort(reserve.call)
        track.reserves.clear()  # the client gives back what a dropped call brings
        self._take_back(track)
        self._settle(track)
        self._numbers += 1
        track.number = self._numbers
        track.asked = track.admitted = False
        track.over = track.prompt is None
        track.engine = track.external = track.failed = 0
        track.peer = (0, 0)
        track.began_ns = track.prefill_ns = 0

    def _take_back(self, track: _Track) -> None:
        """Claims whose copies are told to stop: what has not begun never will."""
        self._client.abort(track.given)
        track.given.clear()

    def _abort(self, call: ReserveCall) -> None:
        claim = call.get().claim
        if claim:
            self._client.abort([claim])

    def _dispatch(self, track: _Track, meta: StepMeta) -> None:
        """The reservations that were answered become stores of this step."""
        waiting: list[_Reserve] = []
        for reserve in track.reserves:
            if not reserve.call.ready():
                waiting.append(reserve)
                continue
            got = reserve.call.get()
            if got.code != Code.OK:
                track.open = track.open and not reserve.appended and got.code != Code.UNKNOWN
                continue
            if not got.claim:
                continue
            ids = self._block_ids(track)[got.begin : got.end]
            if len(ids) != got.end - got.begin:
                self._client.abort([got.claim])
                continue
            track.stores += self._workers
            track.given.append(got.claim)
            meta.stores.append(Copy(track.request.request_id, got.claim, got.begin, ids))
        track.reserves = waiting

    def _block_ids(self, track: _Track) -> list[int]:
        if track.block_ids is not None:
            return track.block_ids
        assert self._ids_of is not None
        return self._ids_of(track.request.request_id)[0]

    def _scheduled(self, track: _Track, tokens: int) -> None:
        request = track.request
        if track.began_ns == 0:
            track.began_ns = now_ns()
            track.reserved = request.num_computed_tokens // self._block
        elif track.prefill_ns == 0 and request.num_computed_tokens >= request.num_prompt_tokens:
            track.prefill_ns = now_ns() - track.began_ns
        self._reserve(track, request.num_computed_tokens + tokens)

    def _reserve(self, track: _Track, computed: int) -> None:
        """Asks for pages for the blocks that are full when `computed` tokens are."""
        request = track.request
        known = request.num_tokens if self._settings.store_decoded else request.num_prompt_tokens
        full = min(computed, known) // self._block
        if full <= track.reserved or not track.open or track.prompt is None:
            return
        now = now_ns()
        append = request._all_token_ids[track.told : full * self._block]
        call = self._client.start_reserve(
            track.number,
            append,
            begin=track.reserved,
            end=full,
            claim_deadline_ns=now + CLAIM_LIFE,
            deadline_ns=now + self._settings.call_ns,
        )
        track.told = max(track.told, full * self._block)
        track.reserved = full
        track.reserves.append(_Reserve(call, bool(append)))

    def _close(self, meta: StepMeta) -> None:
        for request_id, track in self._tracks.items():
            if track.block_ids is None or track.reserves or track.closing or track.loading:
                continue
            track.closing = True
            meta.last.add(request_id)

    # ---- What has come of it

    def ended(self, output: KVConnectorOutput) -> None:
        for request_id in output.finished_recving or ():
            if track := self._tracks.get(request_id):
                track.loading = False
                if request_id in (output.failed_recving or ()):
                    track.failed, track.external = track.external, 0
                    track.admitted = False  # asked again by the engine, and told that there is none
                if track.block_ids is not None:  # aborted meanwhile: the engine frees it now
                    self._forget(track)
        if isinstance(output.kv_connector_worker_meta, WorkerMeta):
            self._client.abort(output.kv_connector_worker_meta.failed)
            for request_id, count in output.kv_connector_worker_meta.stores_done.items():
                if track := self._tracks.get(request_id):
                    track.stores -= count
                    if track.stores == 0:
                        track.given.clear()
        for request_id in output.finished_sending or ():
            if track := self._tracks.get(request_id):
                self._forget(track)

    def finished(self, request: Request, block_ids: list[int]) -> bool:
        """True: the engine keeps the blocks until the workers say that they have sent them."""
        track = self._tracks.get(request.request_id)
        if track is None:
            return False
        if track.call is not None:
            self._drop_call(track)
        self._give_back(track)
        if track.loading:
            self._stop.add(request.request_id)
            self._take_back(track)
            track.failed, track.external = track.external, 0
        else:
            self._reserve(track, request.num_computed_tokens)
        self._settle(track)
        track.block_ids = list(block_ids)
        if track.loading:
            return False  # it is the end of the load that frees them
        if not track.reserves and track.stores == 0:
            self._forget(track)
            return False
        return True

    def _drop_call(self, track: _Track) -> None:
        """Nobody waits for the look any more; what its answer brings is given back."""
        if isinstance(track.call, AcquireCall):
            self._answered(track)
            track.open = track.open or track.call is not None
        track.call = None

    def _settle(self, track: _Track) -> None:
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

    def _forget(self, track: _Track) -> None:
        self._tracks.pop(track.request.request_id, None)

    # ---- Else

    def poll(self) -> None:
        """What an engine's step does for the session, for one that makes no steps."""
        self._client.poll()

    def attached(self) -> bool:
        return self._client.state == State.ATTACHED

    def tracks(self) -> list[_Track]:
        """Requests that are looked after, finished ones with stores included. To be read only."""
        return list(self._tracks.values())

    def close(self) -> None:
        self._client.close()

    def _say(self, state: str) -> None:
        """Once for each time the node goes or comes, and once for each refusal."""
        if state and self._client.state == State.REFUSED:
            state = f"the node refuses this engine: {self._client.last_error}"
        if state == self._said:
            return
        if state:
            logger.warning("Pando: %s; prompts are computed here until it answers", state)
        elif self._said:
            logger.info("Pando: the node at %s answers again", self._settings.socket)
        self._said = state
