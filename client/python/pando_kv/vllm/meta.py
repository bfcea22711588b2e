"""What the scheduler's side tells the workers in each step, and what they tell back."""

from __future__ import annotations

from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorMetadata,
    KVConnectorWorkerMetadata,
)

from pando_kv import Claim


@dataclass
class Copy:
    """A claim's blocks from `first_block` on, and where the engine has them, or wants them."""

    request_id: str
    claim: Claim
    first_block: int
    block_ids: list[int]


@dataclass
class StepMeta(KVConnectorMetadata):
    """For all workers of the replica alike."""

    loads: list[Copy] = field(default_factory=list)
    # Their blocks are full once this step's forward is done.
    stores: list[Copy] = field(default_factory=list)
    # Requests whose copies end now: their blocks may be somebody else's in this step's forward.
    stop: set[str] = field(default_factory=set)
    # Finished requests that get no more stores: reported as sent when those they have are done.
    last: set[str] = field(default_factory=set)


@dataclass
class WorkerMeta(KVConnectorWorkerMetadata):
    """What ended on this worker since the step before."""

    stores_done: dict[str, int] = field(default_factory=dict)  # by request
    failed: list[Claim] = field(default_factory=list)  # may stand: the scheduler's side ends them

    def aggregate(self, other: KVConnectorWorkerMetadata) -> WorkerMeta:
        assert isinstance(other, WorkerMeta)
        done = dict(self.stores_done)
        for request_id, count in other.stores_done.items():
            done[request_id] = done.get(request_id, 0) + count
        return WorkerMeta(done, self.failed + other.failed)
