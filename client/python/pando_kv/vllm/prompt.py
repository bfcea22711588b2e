"""What tells a request's KV from another's with the same tokens: scopes, and what images say."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.v1.request import Request

logger = logging.getLogger("vllm.pando")

_SCOPE_BYTES = 200  # a salt's own name up to here, then its digest
_said: set[str] = set()


@dataclass(frozen=True)
class Prompt:
    """`scope`: who may match, empty for all. `extras`: (block, bytes), ascending."""

    scope: str = ""
    extras: list[tuple[int, bytes]] = field(default_factory=list)

    def segments(self, tokens: int) -> list[tuple[str, int]]:
        return [(self.scope, tokens)] if self.scope else []


def describe(request: Request, block_tokens: int) -> Prompt | None:
    """None: something shaped its KV that cannot be told, so it is not shared."""
    odd = _not_describable(request)
    if not odd:
        return Prompt(_scope(request.cache_salt), _multimodal(request, block_tokens))
    if odd not in _said:
        _said.add(odd)
        logger.warning("Pando: %s are not shared in this version", odd)
    return None


def _not_describable(request: Request) -> str:
    if request.prompt_embeds is not None or request.prompt_is_token_ids is not None:
        return "prompts of embeddings"
    if request.prompt_token_ids is None:
        return "prompts without token ids"
    if request.lora_request is not None:
        return "requests with a LoRA adapter"
    if request.resumable:
        return "streaming inputs"
    return ""


def _scope(salt: str | None) -> str:
    if not salt:
        return ""
    if len(salt.encode()) <= _SCOPE_BYTES:
        return f"salt:{salt}"
    return f"digest:{hashlib.blake2b(salt.encode(), digest_size=32).hexdigest()}"


def _multimodal(request: Request, block_tokens: int) -> list[tuple[int, bytes]]:
    """Each block that items cover, with their whole digests and where in it they begin."""
    by_block: dict[int, list[str]] = {}
    for item in request.mm_features:
        begin, length = item.mm_position.offset, item.mm_position.length
        for block in range(begin // block_tokens, (begin + length - 1) // block_tokens + 1):
            text = f"{item.modality}:{item.identifier}@{begin - block * block_tokens}+{length}"
            by_block.setdefault(block, []).append(text)
    return [(block, "\0".join(texts).encode()) for block, texts in sorted(by_block.items())]
