#!/usr/bin/env python3
"""Makes a small Llama with random weights and a tokenizer of bytes; nothing is downloaded.

  make_model.py FOLDER [--layers 12] [--hidden 768] [--dtype bfloat16] [--seed N] [--change TENSOR]

It judges caches, not language: the same arguments give the same weights on every machine, and what
it says depends on all of its context. Random attention would be nearly uniform, so that a wrong
block among many changed little: the scores' standard deviation is set to `--sharpness`, with which
a token attends to a few others that the context selects.

`--change TENSOR` makes another model of equal shape, by one element of that tensor.
`--adapter` makes a LoRA adapter for the model of these arguments, another one for each `--seed`.
`--attention mla|sliding` makes a model with another kind of attention, of fixed shape.
`--images` makes one that sees, of fixed shape: token 259 stands for an image, of 256 tokens.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

HEAD, VOCABULARY, POSITIONS = 64, 4096, 16384
SPECIAL = ("<s>", "</s>", "<pad>")  # ids 256 to 258; those below are the bytes
IMAGE = 259  # in a prompt to a model that sees


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int

    @property
    def heads(self) -> int:
        return self.hidden // HEAD

    @property
    def kv_heads(self) -> int:
        return next(n for n in (4, 3, 2, 1) if self.heads % n == 0 and n < max(self.heads, 2))

    @property
    def feed_forward(self) -> int:
        return self.hidden * 8 // 3 // 64 * 64


def weights(
    shape: Shape, seed: int, dtype: torch.dtype, sharpness: float
) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    hidden, wide = shape.hidden, shape.feed_forward

    def normal(rows: int, columns: int, variance: float = 1.0) -> torch.Tensor:
        """Maps unit variance to `variance`."""
        draws = torch.randn(rows, columns, generator=random)
        return (draws * (variance / columns) ** 0.5).to(dtype)

    one = torch.ones(hidden, dtype=dtype)
    tensors = {
        "model.embed_tokens.weight": normal(VOCABULARY, hidden, hidden),
        "model.norm.weight": one.clone(),
        "lm_head.weight": normal(VOCABULARY, hidden),
    }
    for i in range(shape.layers):
        layer = {
            "input_layernorm": one.clone(),
            "post_attention_layernorm": one.clone(),
            # Queries and keys have a share of the scores' spread each.
            "self_attn.q_proj": normal(shape.heads * HEAD, hidden, sharpness),
            "self_attn.k_proj": normal(shape.kv_heads * HEAD, hidden, sharpness),
            "self_attn.v_proj": normal(shape.kv_heads * HEAD, hidden),
            "self_attn.o_proj": normal(hidden, shape.heads * HEAD),
            "mlp.gate_proj": normal(wide, hidden),
            "mlp.up_proj": normal(wide, hidden),
            "mlp.down_proj": normal(hidden, wide),
        }
        tensors |= {f"model.layers.{i}.{name}.weight": tensor for name, tensor in layer.items()}
    return tensors


def adapter(
    shape: Shape, seed: int, dtype: torch.dtype
) -> tuple[dict[str, torch.Tensor], dict[str, object]]:
    """Tensors and configuration: as strong as the projections that it changes."""
    random = torch.Generator().manual_seed(seed)
    rank, hidden = 8, shape.hidden
    rows = {
        "q_proj": shape.heads * HEAD,
        "k_proj": shape.kv_heads * HEAD,
        "v_proj": shape.kv_heads * HEAD,
    }
    tensors = {}
    for i in range(shape.layers):
        for name, out in rows.items():
            path = f"base_model.model.model.layers.{i}.self_attn.{name}"
            down = torch.randn(rank, hidden, generator=random) / hidden**0.5
            up = torch.randn(out, rank, generator=random) / rank**0.5
            tensors[f"{path}.lora_A.weight"] = down.to(dtype)
            tensors[f"{path}.lora_B.weight"] = up.to(dtype)
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": list(rows)}
    return tensors, config


def configuration(shape: Shape, dtype: str) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": HEAD,
        "intermediate_size": shape.feed_forward,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": POSITIONS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
        "dtype": dtype,
    }


def other_model(attention: str, seed: int) -> Any:
    """float32, with transformers' own initial weights."""
    import transformers

    torch.manual_seed(seed)
    shape: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": POSITIONS,
        "bos_token_id": 256,
        "eos_token_id": 257,
        "pad_token_id": 258,
    }
    if attention == "sliding":
        shape |= {"num_key_value_heads": 2, "sliding_window": 512}
        config: Any = transformers.MistralConfig(**shape)
    else:
        shape |= {"num_key_value_heads": 4, "q_lora_rank": None, "kv_lora_rank": 512}
        shape |= {"qk_rope_head_dim": 64, "qk_nope_head_dim": HEAD, "v_head_dim": HEAD}
        shape |= {"n_routed_experts": 4, "moe_intermediate_size": 128, "first_k_dense_replace": 99}
        config = transformers.DeepseekV2Config(**shape, topk_method="greedy")
    auto: Any = transformers.AutoModelForCausalLM
    return auto.from_config(config, dtype=torch.float32)


def seeing_model(folder: Path, seed: int) -> None:
    """A Llava in float32. Unlike transformers' initial weights, those of its projector let what it
    sees weigh as much as what it reads.
    """
    import transformers

    torch.manual_seed(seed)
    text = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.1}
    vision = {"num_attention_heads": 2, "image_size": 224, "patch_size": 14}
    made: Any = transformers
    config = made.LlavaConfig(
        text_config={
            **{"model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": 256},
            **{"intermediate_size": 512, "num_hidden_layers": 3, **text},
            **{"max_position_embeddings": POSITIONS, "bos_token_id": 256, "eos_token_id": 257},
        },
        vision_config={
            **{"model_type": "clip_vision_model", "hidden_size": 64, "intermediate_size": 128},
            **{"num_hidden_layers": 2, "projection_dim": 64, **vision},
        },
        image_token_id=IMAGE,
        image_seq_length=256,
    )
    model = made.AutoModelForImageTextToText.from_config(config, dtype=torch.float32)
    model.model.multi_modal_projector.linear_2.weight.data *= 5
    tensors = {  # the tower's, as vLLM expects them
        name.replace("vision_tower.", "vision_tower.vision_model."): tensor.clone()
        for name, tensor in model.state_dict().items()
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = ["LlavaForConditionalGeneration"]
    config.save_pretrained(folder)
    write_tokenizer(folder)
    made.LlavaProcessor(
        image_processor=made.CLIPImageProcessorPil(size={"shortest_edge": 224}, crop_size=224),
        tokenizer=made.AutoTokenizer.from_pretrained(folder),
        patch_size=14,
        vision_feature_select_strategy="default",
        image_token=f"<{IMAGE}>",
        num_additional_image_tokens=1,
    ).save_pretrained(folder)


def tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(SPECIAL))
    first = len(alphabet) + len(SPECIAL)
    made.add_tokens([AddedToken(f"<{i}>", normalized=False) for i in range(first, VOCABULARY)])
    return made


def write_tokenizer(folder: Path) -> None:
    tokenizer().save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **dict(zip(("bos_token", "eos_token", "pad_token"), SPECIAL, strict=True)),
        "model_max_length": POSITIONS,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768, help="a multiple of 64")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--sharpness", type=float, default=3.0)
    parser.add_argument("--change", metavar="TENSOR")
    parser.add_argument("--adapter", action="store_true")
    parser.add_argument("--attention", choices=("full", "mla", "sliding"), default="full")
    parser.add_argument("--images", action="store_true")
    args = parser.parse_args()

    shape = Shape(args.layers, args.hidden)
    folder: Path = args.folder
    folder.mkdir(parents=True, exist_ok=True)
    if args.adapter:
        tensors, config = adapter(shape, args.seed, getattr(torch, args.dtype))
        save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
        (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
        return
    if args.images:
        seeing_model(folder, args.seed)
        return
    if args.attention != "full":
        other_model(args.attention, args.seed).save_pretrained(folder)
        write_tokenizer(folder)
        return
    tensors = weights(shape, args.seed, getattr(torch, args.dtype), args.sharpness)
    if args.change:
        tensors[args.change].view(-1)[0] += 1
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    texts: dict[str, object] = {
        "config.json": configuration(shape, args.dtype),
        "generation_config.json": {"bos_token_id": 256, "eos_token_id": 257},
    }
    for name, text in texts.items():
        (folder / name).write_text(json.dumps(text, indent=2) + "\n")
    write_tokenizer(folder)


if __name__ == "__main__":
    main()
