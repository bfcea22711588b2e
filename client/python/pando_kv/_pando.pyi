"""The C++ client of a pando-node (client/client.h)."""

import enum
from collections.abc import Sequence
from typing import overload

from typing_extensions import Buffer

def now_ns() -> int:
    """CLOCK_MONOTONIC, in nanoseconds."""

class Role(enum.Enum):
    SCHEDULER = 0

    WORKER = 1

    BOTH = 2

class State(enum.Enum):
    DISCONNECTED = 0

    ATTACHING = 1

    ATTACHED = 2

    ABSENT = 3

    REFUSED = 4

    DRAINING = 5

    FORKED = 6

    CLOSED = 7

class Code(enum.Enum):
    OK = 0

    INVALID = 1

    LIMIT = 2

    UNKNOWN = 3

    EXPIRED = 4

    UNAVAILABLE = 5

    LOST = 6

class Intent(enum.Enum):
    LOOK = 0

    COMPUTE = 1

class Counters:
    @property
    def calls(self) -> int: ...
    @property
    def calls_refused(self) -> int: ...
    @property
    def calls_lost(self) -> int: ...
    @property
    def calls_lost_full(self) -> int: ...
    @property
    def given_back(self) -> int: ...
    @property
    def attaches(self) -> int: ...
    @property
    def sessions_lost(self) -> int: ...

class Client:
    """One session of one engine process with the node of its host (client/client.h).

    Used by one thread at a time, else RuntimeError. No call blocks but `wait_until`,
    `wait_attached`, `begin` and `end`, which end at their deadline and do not hold the
    interpreter's lock. Deadlines are absolute, in nanoseconds of `now_ns`; `claim_deadline_ns` 0
    is 30 s from now. Any failure is a miss, said by a result's `code` and `message`.
    """
    def __init__(
        self,
        socket: str,
        replica_key: str,
        *,
        role: Role = Role.BOTH,
        shard: int = 0,
        world_size: int = 1,
        block_tokens: int = 0,
        page_bytes: int = 0,
        fields: Sequence[tuple[str, str]] = [],
        prefill_tokens_per_s: int = 0,
        attach_timeout_ns: int = 1000000000,
        retry_min_ns: int = 50000000,
        retry_max_ns: int = 2000000000,
    ) -> None: ...
    @property
    def state(self) -> State: ...
    @property
    def last_error(self) -> str: ...
    @property
    def boot_id(self) -> int: ...
    @property
    def session(self) -> int: ...
    @property
    def counters(self) -> Counters: ...
    def fileno(self) -> int: ...
    def wants_write(self) -> bool: ...
    def poll(self) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def wait_attached(self, deadline_ns: int) -> bool: ...
    @overload
    def wait_until(self, call: AcquireCall, until_ns: int) -> bool: ...
    @overload
    def wait_until(self, call: AwaitCall, until_ns: int) -> bool: ...
    @overload
    def wait_until(self, call: ProbeCall, until_ns: int) -> bool: ...
    @overload
    def wait_until(self, call: ReserveCall, until_ns: int) -> bool: ...
    @overload
    def wait_until(self, call: SettleCall, until_ns: int) -> bool: ...
    def start_acquire(
        self,
        request: int,
        tokens: list[int] | Buffer,
        *,
        engine_hit_tokens: int = 0,
        claim_deadline_ns: int = 0,
        deadline_ns: int,
        intent: Intent = Intent.LOOK,
        again: bool = False,
        segments: Sequence[tuple[str, int]] = [],
        extras: Sequence[tuple[int, bytes]] = [],
    ) -> AcquireCall: ...
    def start_await(self, ticket: int, *, until_ns: int, deadline_ns: int) -> AwaitCall: ...
    def start_probe(
        self,
        tokens: list[int] | Buffer,
        *,
        deadline_ns: int,
        segments: Sequence[tuple[str, int]] = [],
        extras: Sequence[tuple[int, bytes]] = [],
    ) -> ProbeCall: ...
    def start_reserve(
        self,
        request: int,
        append_tokens: list[int] | Buffer,
        *,
        begin: int,
        end: int,
        claim_deadline_ns: int = 0,
        deadline_ns: int,
    ) -> ReserveCall: ...
    def start_reserve_prompt(
        self,
        tokens: list[int] | Buffer,
        *,
        begin: int,
        end: int,
        claim_deadline_ns: int = 0,
        deadline_ns: int,
        segments: Sequence[tuple[str, int]] = [],
        extras: Sequence[tuple[int, bytes]] = [],
    ) -> ReserveCall: ...
    def start_settle(
        self,
        request: int,
        *,
        deadline_ns: int,
        engine: int = 0,
        host: int = 0,
        failed: int = 0,
        prefill_micros: int = 0,
    ) -> SettleCall: ...
    def abort(self, claims: Sequence[Claim]) -> None: ...
    def begin(self, claim: Claim, *, deadline_ns: int) -> tuple[Code, str, Hold]: ...
    def end(self, hold: Hold, *, deadline_ns: int) -> EndResult: ...

class Claim:
    """Names a claim in all sessions of the replica. Immutable, hashable, can be pickled."""
    def __init__(self, boot_id: int = 0, id: int = 0) -> None: ...
    @property
    def boot_id(self) -> int: ...
    @property
    def id(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, arg: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __repr__(self) -> str: ...
    def __getstate__(self) -> tuple[int, int]: ...
    def __setstate__(self, arg: tuple[int, int], /) -> None: ...

class AcquireResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def blocks(self) -> int: ...
    @property
    def in_flight(self) -> bool: ...
    @property
    def ticket(self) -> int: ...

class AcquireCall:
    def ready(self) -> bool: ...
    def get(self) -> AcquireResult: ...

class AwaitResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def blocks(self) -> int: ...
    @property
    def in_flight(self) -> bool: ...
    @property
    def peer_begin(self) -> int: ...
    @property
    def peer_end(self) -> int: ...

class AwaitCall:
    def ready(self) -> bool: ...
    def get(self) -> AwaitResult: ...

class ProbeResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...
    @property
    def blocks(self) -> int: ...
    @property
    def in_flight(self) -> bool: ...

class ProbeCall:
    def ready(self) -> bool: ...
    def get(self) -> ProbeResult: ...

class ReserveResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def in_flight(self) -> bool: ...
    @property
    def full(self) -> bool: ...

class ReserveCall:
    def ready(self) -> bool: ...
    def get(self) -> ReserveResult: ...

class SettleResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...

class SettleCall:
    def ready(self) -> bool: ...
    def get(self) -> SettleResult: ...

class EndResult:
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...

class Hold:
    """The right to touch the pages of one claim, until `Client.end` or its own end.

    `load` and `store` copy one page (counted from the claim's first block) to or from `pieces`:
    writable or readable buffers, or (address, bytes), in order, together one page. False: not
    copied, or not what was stored. The interpreter's lock is not held meanwhile.
    """
    @property
    def claim(self) -> Claim: ...
    @property
    def store_pages(self) -> bool: ...
    @property
    def first_block(self) -> int: ...
    @property
    def pages(self) -> int: ...
    @property
    def page_bytes(self) -> int: ...
    @property
    def live(self) -> bool: ...
    def stop(self) -> None: ...
    def load(self, page: int, pieces: Sequence[Buffer | tuple[int, int]]) -> bool: ...
    def store(self, page: int, pieces: Sequence[Buffer | tuple[int, int]]) -> bool: ...

class KvLayout:
    """Where an engine's KV lies: block b of piece (base, stride, bytes) is at base + b * stride.

    The pieces of a block, in order, are one page of at most 8 MiB. The memory is the engine's and
    stays where it is while a copy may run. Immutable.
    """
    def __init__(self, pieces: Sequence[tuple[int, int, int]], blocks: int) -> None: ...
    def self_test(self, source: int, target: int) -> bool:
        """A pattern through the copies' way, from one block to another; their content is lost."""

    @property
    def blocks(self) -> int: ...
    @property
    def pieces(self) -> int: ...
    @property
    def page_bytes(self) -> int: ...

class CopyResult:
    """What `CopyJob.run` came to; `good(wanted)`: all wanted pages were copied, and right."""
    @property
    def code(self) -> Code: ...
    @property
    def message(self) -> str: ...
    @property
    def store(self) -> bool: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def pages(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def begin_ns(self) -> int: ...
    @property
    def copy_ns(self) -> int: ...
    @property
    def copy_cpu_ns(self) -> int: ...
    @property
    def end_code(self) -> Code: ...
    def good(self, wanted: int) -> bool: ...

class CopyJob:
    """The pages of one claim, begun and copied without the interpreter's lock.

    `blocks[i]` is the engine's block for the claim's block `first_block + i`. `run` and `finish`,
    or both in `execute`, are for the thread that uses the client, once each; the node may take
    `call_ns` for each answer. `stop` is for any other thread: once it has returned, the engine's
    blocks are not touched any more. It waits for a 4 KiB chunk, never for the node.
    """
    def __init__(
        self, claim: Claim, layout: KvLayout, first_block: int, blocks: Sequence[int]
    ) -> None: ...
    @property
    def claim(self) -> Claim: ...
    @property
    def wanted(self) -> int: ...
    def run(self, client: Client, *, deadline_ns: int, call_ns: int = 1000000000) -> CopyResult: ...
    def execute(
        self, client: Client, *, deadline_ns: int, call_ns: int = 1000000000
    ) -> CopyResult: ...
    def finish(self, client: Client, *, deadline_ns: int) -> EndResult: ...
    def stop(self) -> None: ...

class EndedCopy:
    @property
    def tag(self) -> int: ...
    @property
    def result(self) -> CopyResult: ...
    @property
    def in_all_ns(self) -> int: ...

class CopyThread:
    """A worker's session and the thread that copies for it, without the interpreter's lock.

    Jobs that are submitted run one after another, loads before stores; each comes back once, by its
    tag, from `take_ended`. A copy may take `copy_ns` from its submission on, each answer of the
    node `call_ns`. `close` stops all copies and waits for what the node may still take to answer;
    what is submitted afterwards fails at once. In a fork's child the state is FORKED, `submit`
    raises RuntimeError and nothing ends. May be used by any thread.
    """
    def __init__(
        self,
        socket: str,
        replica_key: str,
        *,
        shard: int,
        world_size: int,
        page_bytes: int,
        fields: Sequence[tuple[str, str]],
        copy_ns: int,
        call_ns: int,
    ) -> None: ...
    @property
    def state(self) -> State: ...
    @property
    def last_error(self) -> str: ...
    def submit(self, tag: int, job: CopyJob, *, load: bool) -> None: ...
    def take_ended(self) -> list[EndedCopy]: ...
    def close(self) -> None: ...
