"""What is there for a new request: asked once, answered when it is known, given back if unused."""

from __future__ import annotations

import logging

from pando_kv import AcquireCall, AwaitCall, Claim, Client, Code, Intent, State, now_ns
from pando_kv.vllm.settings import Settings
from pando_kv.vllm.track import Track

logger = logging.getLogger("vllm.pando")

# A new request's answer is looked for so long: it mostly comes within 0.1 ms, and "ask again" would
# cost the request a step.
BRIEFLY = 300_000  # ns
CLAIM_LIFE = 60_000_000_000  # ns: far beyond the longest load or store
# Answers are read once a step, and a step may take longer than the node may: so a call's own
# deadline lies far behind the one that is kept here, after what has come was read.
CALL_LIFE = 60_000_000_000  # ns


class Lookup:
    """Uses the scheduler's session; does not own it.

    One question is waited for as long as the node may take. A node that has left it unanswered for
    a tenth of that counts as absent until it answers: nothing else is asked or waited for.
    """

    def __init__(self, client: Client, settings: Settings, block_tokens: int) -> None:
        self._client = client
        self._settings = settings
        self._block = block_tokens
        self._said = ""
        self._unanswered: AcquireCall | AwaitCall | None = None
        self._unanswered_since = 0

    def matched(self, track: Track, computed: int) -> int | None:
        """Tokens beyond `computed` that can be loaded; None: not known yet. May be repeated."""
        if track.over:
            return 0
        if track.asked_ns == 0:
            if self.silent():
                track.over = True
                return 0
            self._acquire(track, computed)
        if track.call is not None and not self._answered(track):
            alone = track.call is self._unanswered
            if now_ns() < track.until_ns and (alone or not self.silent()):
                return None
            self._give_up(track)
        track.engine = computed
        return max(0, track.blocks * self._block - computed)

    def silent(self) -> bool:
        """A question is unanswered for too long. What comes too late is given back here."""
        if self._unanswered is None:
            return False
        self._client.poll()
        if not self._unanswered.ready():
            return now_ns() - self._unanswered_since > self._settings.call_ns // 10
        self._unanswered = None  # dropped: what it brought goes back
        return False

    def _wait_for(self, track: Track) -> None:
        if self._unanswered is None:
            self._unanswered, self._unanswered_since = track.call, track.asked_ns

    def _give_up(self, track: Track) -> None:
        self._wait_for(track)
        track.call = None
        self.give_back(track)  # a load would only wait again
        track.open = True  # it may come to the node yet
        self._say("no answer in time")

    def give_back(self, track: Track) -> None:
        """Nobody will load what was found."""
        if track.claim:
            self._client.abort([track.claim])
        track.claim, track.blocks = Claim(), 0

    def drop(self, track: Track) -> None:
        """Nobody waits any more; what an answer still brings is given back by the client."""
        if isinstance(track.call, AcquireCall) and not self._answered(track):
            track.open = True  # it may have come to the node
        track.call = None
        self.give_back(track)

    def _acquire(self, track: Track, computed: int) -> None:
        assert track.prompt is not None
        now = track.asked_ns = now_ns()
        tokens = track.request._all_token_ids
        track.call = self._client.start_acquire(
            track.number,
            tokens,
            engine_hit_tokens=computed,
            claim_deadline_ns=now + CLAIM_LIFE,
            deadline_ns=now + CALL_LIFE,
            intent=Intent.COMPUTE,
            again=track.request.num_preemptions > 0,
            segments=track.prompt.segments(len(tokens)),
            extras=track.prompt.extras,
        )
        track.until_ns = now + self._settings.call_ns
        track.told = len(tokens)
        if not self._client.wait_until(track.call, now + BRIEFLY):
            self._wait_for(track)

    def _answered(self, track: Track) -> bool:
        """Takes the answer that has come; false: there is none yet."""
        call = track.call
        assert call is not None
        if not call.ready():
            self._client.poll()
            if not call.ready():
                return False
        track.call = None
        if isinstance(call, AwaitCall):
            self._awaited(track, call)
        else:
            self._acquired(track, call)
        # A ticket that was issued meanwhile is awaited in its turn.
        return track.call is None or self._answered(track)

    def _acquired(self, track: Track, call: AcquireCall) -> None:
        got = call.get()
        waited = (now_ns() - track.asked_ns) / 1e6
        logger.debug("Pando: found %d blocks in %.1f ms: %s", got.blocks, waited, got.code)
        track.open = got.code in (Code.OK, Code.LOST) and self._client.session != 0
        self._say("" if got.code == Code.OK else f"no answer: {got.message}")
        if got.code != Code.OK:
            return
        track.claim, track.blocks = got.claim, got.blocks
        if got.ticket and self._settings.wait_ns:
            until = now_ns() + self._settings.wait_ns
            track.call = self._client.start_await(
                got.ticket, until_ns=until, deadline_ns=until + CALL_LIFE
            )
            track.until_ns = until + self._settings.call_ns
            self._client.flush()

    def _awaited(self, track: Track, call: AwaitCall) -> None:
        more = call.get()
        waited = (now_ns() - track.asked_ns) / 1e6
        logger.debug("Pando: awaited %d blocks for %.1f ms: %s", more.blocks, waited, more.code)
        if more.code == Code.OK and more.claim:
            track.claim, track.blocks = more.claim, more.blocks
            track.peer = (more.peer_begin, more.peer_end)

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
