"""What tells a request's KV from another's with the same tokens: scopes, adapters, images."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.v1.request import Request

    from pando_kv.vllm.lora import Adapters

logger = logging.getLogger("vllm.pando")

_SCOPE_BYTES = 200  # a salt's own name up to here, then its digest
_EXTRA_BYTES = 1000  # as it is up to here, then its digest: far below what the node takes
_said: set[str] = set()


@dataclass(frozen=True)
class Prompt:
    """`scope`: who may match, empty for all. `extras`: (block, bytes), ascending."""

    scope: str = ""
    extras: list[tuple[int, bytes]] = field(default_factory=list)

    def segments(self, tokens: int) -> list[tuple[str, int]]:
        return [(self.scope, tokens)] if self.scope else []


def describe(request: Request, block_tokens: int, adapters: Adapters) -> Prompt | None:
    """None: something shaped its KV that cannot be told, so it is not shared."""
    odd = _not_describable(request)
    adapter = ""
    if not odd and request.lora_request is not None:
        adapter = adapters.digest(request.lora_request)
        if not adapter:
            odd = "adapters whose files changed since the engine began, or that are in no folder,"
    if not odd:
        return Prompt(_scope(request.cache_salt), _extras(request, block_tokens, adapter))
    if odd not in _said:
        _said.add(odd)
        logger.warning("Pando: %s are not shared in this version", odd)
    return None


def _not_describable(request: Request) -> str:
    if request.prompt_embeds is not None or request.prompt_is_token_ids is not None:
        return "prompts of embeddings"
    if request.prompt_token_ids is None:
        return "prompts without token ids"
    if request.resumable:
        return "streaming inputs"
    return ""


def _scope(salt: str | None) -> str:
    if not salt:
        return ""
    if len(salt.encode()) <= _SCOPE_BYTES:
        return f"salt:{salt}"
    return f"digest:{_digest(salt.encode()).hex()}"


def _extras(request: Request, block_tokens: int, adapter: str) -> list[tuple[int, bytes]]:
    """The adapter's digest at the first block; at each block that items of other kinds than text
    cover, vLLM's own digests of these and where in it they begin.
    """
    by_block: dict[int, list[object]] = {0: [["lora", adapter]]} if adapter else {}
    for item in request.mm_features:
        begin, length = item.mm_position.offset, item.mm_position.length
        for block in range(begin // block_tokens, (begin + length - 1) // block_tokens + 1):
            what = [item.modality, item.identifier, begin - block * block_tokens, length]
            by_block.setdefault(block, []).append(what)
    texts = ((block, json.dumps(by_block[block]).encode()) for block in sorted(by_block))
    return [(block, text if len(text) <= _EXTRA_BYTES else _digest(text)) for block, text in texts]


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=32).digest()
