"""What is stored of a request: pages are asked for as its blocks fill, and given to the workers."""

from __future__ import annotations

from collections.abc import Callable

from pando_kv import Client, Code, now_ns
from pando_kv.vllm.lookup import CALL_LIFE, CLAIM_LIFE
from pando_kv.vllm.lora import Adapters
from pando_kv.vllm.meta import Copy
from pando_kv.vllm.settings import Settings
from pando_kv.vllm.track import Reserve, Track

BlockIds = Callable[[str], tuple[list[int], ...]]


class Storing:
    """Uses the scheduler's session; does not own it.

    A block is reserved only if all its tokens are known and its KV is there when this step is done,
    computed by this engine or loaded and verified.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        block_tokens: int,
        world_size: int,
        adapters: Adapters,
    ) -> None:
        self._client = client
        self._settings = settings
        self._block = block_tokens
        self._workers = world_size
        self._adapters = adapters
        self._ids_of: BlockIds | None = None

    def resolve_block_ids(self, ids_of: BlockIds) -> None:
        self._ids_of = ids_of

    def scheduled(self, track: Track, tokens: int) -> None:
        """This step computes so many tokens of the request."""
        request = track.request
        if track.began_ns == 0:
            track.began_ns = now_ns()
            track.reserved = request.num_computed_tokens // self._block
        elif track.prefill_ns == 0 and request.num_computed_tokens >= request.num_prompt_tokens:
            track.prefill_ns = now_ns() - track.began_ns
        self.reserve(track, request.num_computed_tokens + tokens)

    def reserve(self, track: Track, computed: int) -> None:
        """Asks for pages for the blocks that are full when `computed` tokens are."""
        request = track.request
        known = request.num_tokens if self._settings.store_decoded else request.num_prompt_tokens
        full = min(computed, known) // self._block
        if full <= track.reserved or track.prompt is None or not (track.open and track.storing):
            return
        now = now_ns()
        append = request._all_token_ids[track.told : full * self._block]
        call = self._client.start_reserve(
            track.number,
            append,
            begin=track.reserved,
            end=full,
            claim_deadline_ns=now + CLAIM_LIFE,
            deadline_ns=now + CALL_LIFE,
        )
        track.told = max(track.told, full * self._block)
        track.reserved = full
        track.reserves.append(Reserve(call, now, bool(append)))

    def answered(self, track: Track) -> list[Copy]:
        """The reservations that were answered, as stores of this step.

        What has not been answered for long never is: the blocks would wait for it.
        """
        waiting: list[Reserve] = []
        stores: list[Copy] = []
        for reserve in track.reserves:
            if not reserve.call.ready():
                if now_ns() - reserve.asked_ns < self._settings.call_ns:
                    waiting.append(reserve)
                else:
                    track.storing = track.storing and not reserve.appended
                continue
            got = reserve.call.get()
            if got.code != Code.OK:
                track.storing = track.storing and not reserve.appended
                # Of a life of the node that has ended, or that does not know it: nothing to settle.
                track.open = track.open and got.code not in (Code.UNKNOWN, Code.LOST)
                continue
            if not got.claim:
                continue
            ids = self._block_ids(track)[got.begin : got.end]
            if len(ids) != got.end - got.begin or not self._adapters.known(track.request):
                self._client.abort([got.claim])
                continue
            track.stores += self._workers
            track.given.append(got.claim)
            stores.append(Copy(track.request.request_id, got.claim, got.begin, ids))
        track.reserves = waiting
        return stores

    def _block_ids(self, track: Track) -> list[int]:
        if track.block_ids is not None:
            return track.block_ids
        assert self._ids_of is not None
        return self._ids_of(track.request.request_id)[0]

    def take_back(self, track: Track) -> None:
        """Claims whose copies are told to stop, and those that come late: nobody begins them."""
        for reserve in track.reserves:
            if reserve.call.ready() and (claim := reserve.call.get().claim):
                self._client.abort([claim])
        track.reserves.clear()  # the client gives back what a dropped call brings
        self._client.abort(track.given)
        track.given.clear()
