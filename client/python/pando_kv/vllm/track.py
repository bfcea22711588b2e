"""What the scheduler's side knows of one request, from its first look to its last store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pando_kv import AcquireCall, AwaitCall, Claim, ReserveCall

if TYPE_CHECKING:
    from vllm.v1.request import Request

    from pando_kv.vllm.prompt import Prompt


@dataclass
class Reserve:
    """A question for pages that has no answer yet."""

    call: ReserveCall
    asked_ns: int
    appended: bool  # it told tokens: if it is lost, no later ones can be told


@dataclass
class Track:
    """Groups: the look for what is there; the load; what is stored; the end."""

    request: Request
    number: int  # the node's name for it
    prompt: Prompt | None  # None: it cannot be shared

    call: AcquireCall | AwaitCall | None = None
    asked_ns: int = 0  # 0: not yet
    until_ns: int = 0  # the answer is waited for until then
    over: bool = False  # gets nothing external any more
    claim: Claim = field(default_factory=Claim)
    blocks: int = 0  # leading ones that the claim has
    peer: tuple[int, int] = (0, 0)  # blocks that came from peers while it waited
    open: bool = False  # the node knows the request, or may: to be settled
    storing: bool = True  # the node may be asked for pages

    admitted: bool = False  # the engine has blocks for it
    engine: int = 0  # tokens that the engine's own cache had
    external: int = 0  # tokens that are loaded, or were
    failed: int = 0  # tokens that were to be loaded and were not
    loading: bool = False

    began_ns: int = 0  # of the first step that computed it
    prefill_ns: int = 0
    told: int = 0  # tokens that the node knows
    reserved: int = 0  # blocks that were asked for, or were there
    reserves: list[Reserve] = field(default_factory=list)
    stores: int = 0  # that workers have not ended, times workers
    given: list[Claim] = field(default_factory=list)  # to workers, who may not have begun them

    block_ids: list[int] | None = None  # once finished
    closing: bool = False  # workers were told that no more stores come

    def next_life(self, number: int) -> None:
        """After a preemption: it begins anew, under another number."""
        self.number = number
        self.asked_ns = self.began_ns = self.prefill_ns = 0
        self.engine = self.external = self.failed = 0
        self.peer = (0, 0)
        self.admitted = False
        self.over = self.prompt is None
        self.storing = True
