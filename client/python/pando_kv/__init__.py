"""Inference engines share their KV cache through Pando: the client of a pando-node.

One `Client` is one session of one engine process with the node of its host; it is used by one
thread at a time. Importing this starts no thread and needs no engine. The engines' connectors are
modules of their own: `pando_kv.vllm`.
"""

from pando_kv._pando import (
    AcquireCall,
    AcquireResult,
    AwaitCall,
    AwaitResult,
    Claim,
    Client,
    Code,
    CopyJob,
    CopyResult,
    CopyThread,
    Counters,
    EndedCopy,
    EndResult,
    Hold,
    Intent,
    KvLayout,
    ProbeCall,
    ProbeResult,
    ReserveCall,
    ReserveResult,
    Role,
    SettleCall,
    SettleResult,
    State,
    now_ns,
)

__all__ = [
    "AcquireCall",
    "AcquireResult",
    "AwaitCall",
    "AwaitResult",
    "Claim",
    "Client",
    "Code",
    "CopyJob",
    "CopyResult",
    "CopyThread",
    "Counters",
    "EndResult",
    "EndedCopy",
    "Hold",
    "Intent",
    "KvLayout",
    "ProbeCall",
    "ProbeResult",
    "ReserveCall",
    "ReserveResult",
    "Role",
    "SettleCall",
    "SettleResult",
    "State",
    "now_ns",
]
