"""Small random models of transformers and the same as GGUF files, whose keys and tensors tests change."""

import dataclasses
import pathlib
import re
from collections.abc import Callable
from typing import Any

import gguf
import heed
import numpy as np
import torch
import transformers

LAYERS = 2
VOCABULARY = 40
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
DECODER = {**SIZES, "intermediate_size": 56, "num_key_value_heads": 2, "max_position_embeddings": 64}
ENDS = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": None}


def make_llama() -> torch.nn.Module:
    config = transformers.LlamaConfig(**DECODER, **ENDS, rms_norm_eps=1e-5)
    return transformers.LlamaForCausalLM(config)


def make_qwen2() -> torch.nn.Module:
    config = transformers.Qwen2Config(**DECODER, **ENDS, rms_norm_eps=1e-5, rope_theta=10000.0)
    return transformers.Qwen2ForCausalLM(config)


def make_qwen3() -> torch.nn.Module:
    config = transformers.Qwen3Config(**DECODER, **ENDS, rms_norm_eps=1e-5, rope_theta=10000.0, head_dim=8)
    return transformers.Qwen3ForCausalLM(config)


def make_olmo2() -> torch.nn.Module:
    return transformers.Olmo2ForCausalLM(transformers.Olmo2Config(**DECODER, **ENDS, rms_norm_eps=1e-5))


def make_smollm3() -> torch.nn.Module:
    config = transformers.SmolLM3Config(**{**DECODER, "num_hidden_layers": 5}, **ENDS, rms_norm_eps=1e-5, rope_theta=10000.0)
    return transformers.SmolLM3ForCausalLM(config)


GEMMA = {"rms_norm_eps": 1e-5, "sliding_window": 3}


def make_gemma2() -> torch.nn.Module:
    return transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**DECODER, **ENDS, **GEMMA, head_dim=8, query_pre_attn_scalar=8))


def make_gemma3() -> torch.nn.Module:
    config = transformers.Gemma3TextConfig(**{**DECODER, "num_hidden_layers": 7}, **ENDS, **GEMMA, head_dim=12, query_pre_attn_scalar=12)
    return transformers.Gemma3ForCausalLM(config)


def make_granite() -> torch.nn.Module:
    scales = {"embedding_multiplier": 1.5, "attention_multiplier": 0.4, "residual_multiplier": 0.7, "logits_scaling": 1.25}
    config = transformers.GraniteConfig(**DECODER, **ENDS, **scales, rms_norm_eps=1e-5)
    return transformers.GraniteForCausalLM(config)


EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True}


def make_qwen3moe() -> torch.nn.Module:
    config = transformers.Qwen3MoeConfig(**DECODER, **ENDS, **EXPERTS, rms_norm_eps=1e-5, rope_theta=10000.0, head_dim=8)
    return transformers.Qwen3MoeForCausalLM(config)


def make_phi3() -> torch.nn.Module:
    config = transformers.Phi3Config(
        **DECODER, **ENDS, rms_norm_eps=1e-5, sliding_window=5, rope_theta=10000.0, partial_rotary_factor=0.5
    )
    return transformers.Phi3ForCausalLM(config)


PLAIN = {key: value for key, value in DECODER.items() if key != "num_key_value_heads"}  # as many keys as heads


def make_phi2() -> torch.nn.Module:
    return transformers.PhiForCausalLM(transformers.PhiConfig(**PLAIN, **ENDS, rope_theta=10000.0, partial_rotary_factor=0.5))


def make_gptneox() -> torch.nn.Module:
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**PLAIN, **ENDS, rotary_pct=0.5))


def make_stablelm() -> torch.nn.Module:
    config = transformers.StableLmConfig(**DECODER, **ENDS, rope_theta=10000.0, partial_rotary_factor=0.5)
    return transformers.StableLmForCausalLM(config)


def make_starcoder2() -> torch.nn.Module:
    return transformers.Starcoder2ForCausalLM(transformers.Starcoder2Config(**DECODER, **ENDS, rope_theta=10000.0))


def make_command_r() -> torch.nn.Module:
    config = transformers.CohereConfig(**DECODER, **ENDS, logit_scale=0.25, rope_theta=10000.0)
    return transformers.CohereForCausalLM(config)


FALCON = {**SIZES, **ENDS, "ffn_hidden_size": 56, "max_position_embeddings": 64}


def make_falcon() -> torch.nn.Module:
    config = transformers.FalconConfig(**FALCON, new_decoder_architecture=True, num_kv_heads=2)
    return transformers.FalconForCausalLM(config)


def make_bloom() -> torch.nn.Module:
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": LAYERS, "n_head": 4}
    return transformers.BloomForCausalLM(transformers.BloomConfig(**sizes, **ENDS))


def make_gpt2() -> torch.nn.Module:
    sizes = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": LAYERS, "n_head": 4, "n_positions": 64}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **ENDS))


def make_bert() -> torch.nn.Module:
    config = transformers.BertConfig(**SIZES, intermediate_size=56, max_position_embeddings=64)
    return transformers.BertModel(config, add_pooling_layer=False)


# Models of LAYERS layers, and deeper ones, whose layers differ more.
SHALLOW = {
    "llama": make_llama,
    "qwen2": make_qwen2,
    "qwen3": make_qwen3,
    "olmo2": make_olmo2,
    "gemma2": make_gemma2,
    "gpt2": make_gpt2,
    "bert": make_bert,
    "granite": make_granite,
    "qwen3moe": make_qwen3moe,
    "phi3": make_phi3,
    "phi2": make_phi2,
    "gptneox": make_gptneox,
    "stablelm": make_stablelm,
    "starcoder2": make_starcoder2,
    "command-r": make_command_r,
    "falcon": make_falcon,
    "bloom": make_bloom,
}
DEEP = {"smollm3": make_smollm3, "gemma3": make_gemma3}
MODELS = SHALLOW | DEEP
ARCHITECTURES = list(SHALLOW)


def member_of(architecture: str) -> str:
    """The member of gguf.MODEL_ARCH."""
    return architecture.upper().replace("-", "_")


DEPTHS = dict.fromkeys(SHALLOW, LAYERS) | {"smollm3": 5, "gemma3": 7}

GENERAL = {
    "block_count": LAYERS,
    "context_length": 64,
    "embedding_length": 32,
    "attention.head_count": 4,
}
LLAMA = {
    **GENERAL,
    "feed_forward_length": 56,
    "attention.head_count_kv": 2,
    "attention.layer_norm_rms_epsilon": 1e-5,
    "rope.dimension_count": 8,
    "rope.freq_base": 10000.0,
}
LAYER_NORM = {key: value for key, value in LLAMA.items() if key != "attention.layer_norm_rms_epsilon"} | {
    "attention.layer_norm_epsilon": 1e-5
}
KEYS = {
    "granite": {
        **LLAMA,
        "embedding_scale": 1.5,
        "attention.scale": 0.4,
        "residual_scale": 0.7,
        "logit_scale": 1.25,
    },
    "qwen3moe": {
        **LLAMA,
        "attention.key_length": 8,
        "expert_count": 3,
        "expert_used_count": 2,
        "expert_feed_forward_length": 24,
    },
    "phi3": {**LLAMA, "rope.dimension_count": 4, "attention.sliding_window": 5},
    "phi2": {**LAYER_NORM, "attention.head_count_kv": 4, "rope.dimension_count": 4},
    "gptneox": {**GENERAL, "feed_forward_length": 56, "attention.layer_norm_epsilon": 1e-5, "rope.dimension_count": 4}
    | {"use_parallel_residual": True},
    "stablelm": {**LAYER_NORM, "rope.dimension_count": 4},
    "starcoder2": LAYER_NORM,
    "command-r": {**LAYER_NORM, "logit_scale": 0.25},
    "falcon": {**LAYER_NORM, "tensor_data_layout": "jploski"},
    "bloom": {**GENERAL, "feed_forward_length": 128, "attention.layer_norm_epsilon": 1e-5, "attention.head_count_kv": 4},
    "llama": LLAMA,
    "qwen2": LLAMA,
    "qwen3": {**LLAMA, "attention.key_length": 8},
    "olmo2": LLAMA,
    "smollm3": {**LLAMA, "block_count": DEPTHS["smollm3"]},
    "gemma2": {
        **LLAMA,
        "attention.key_length": 8,
        "attention.sliding_window": 3,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "gemma3": {
        **LLAMA,
        "attention.key_length": 12,
        "attention.value_length": 12,
        "rope.dimension_count": 12,
        "block_count": DEPTHS["gemma3"],
        "attention.sliding_window": 3,
        "rope.freq_base": 1000000.0,
    },
    "gpt2": {**GENERAL, "feed_forward_length": 128, "attention.layer_norm_epsilon": 1e-5},
    "bert": {
        **GENERAL,
        "feed_forward_length": 56,
        "attention.layer_norm_epsilon": 1e-12,
        "attention.causal": False,
    },
}


def tokenizer_keys(tokens: int = VOCABULARY) -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [chr(ord("A") + i) for i in range(tokens - 1)] + ["AB"],
        "tokenizer.ggml.token_type": [1] * tokens,
        "tokenizer.ggml.merges": ["A B"],
    }


def with_neighbours(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of query or key in the order for turning adjacent dimensions."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def in_thirds(parameter: np.ndarray, groups: int) -> np.ndarray:
    """The rows of query, of key and of value, which folders have by key head."""
    rows = parameter.reshape(groups, -1, 8, *parameter.shape[1:])
    parts = (rows[:, :-2], rows[:, -2:-1], rows[:, -1:])
    return np.concatenate([part.reshape(-1, *parameter.shape[1:]) for part in parts])


ADJACENT = ("llama", "smollm3", "granite")  # files have the rows of query and key for turning adjacent dimensions


def converted(architecture: str, name: str, array: np.ndarray, groups: int) -> np.ndarray:
    """A parameter as files of the architecture have it."""
    if architecture == "gpt2" and ".c_" in name and array.ndim == 2:
        return array.T
    if architecture in ADJACENT and "q_proj" in name:
        return with_neighbours(array, 4)
    if architecture in ADJACENT and "k_proj" in name:
        return with_neighbours(array, 2)
    if architecture.startswith("gemma") and "norm" in name:
        return array + 1
    if "query_key_value" in name:
        return in_thirds(array, groups)
    return array


def groups_of(config: transformers.PreTrainedConfig) -> int:
    """The number of key heads."""
    is_falcon_7b = getattr(config, "multi_query", False) and not config.new_decoder_architecture
    return 1 if is_falcon_7b else getattr(config, "num_kv_heads", 4)


def tensors_of_experts(layer: str, name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """All experts of a layer in one tensor for each product."""
    if name.endswith("down_proj"):
        return {f"blk.{layer}.ffn_down_exps.weight": array}
    gate, up = np.split(array, 2, axis=1)
    parts = {"gate": gate, "up": up}
    return {f"blk.{layer}.ffn_{part}_exps.weight": np.ascontiguousarray(half) for part, half in parts.items()}


def tensors_of(architecture: str, model: torch.nn.Module) -> dict[str, np.ndarray]:
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[member_of(architecture)], DEPTHS[architecture])
    tensors: dict[str, np.ndarray] = {}
    is_tied = model.config.tie_word_embeddings
    for name, parameter in model.state_dict().items():
        if name == "lm_head.weight" and is_tied:
            continue
        array = converted(architecture, name, parameter.numpy(), groups_of(model.config))
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors |= tensors_of_experts(name.split(".")[2], name, array)
            continue
        base, of_head = re.subn(r"\.norms\.\d+", "", name.removeprefix("transformer.") if architecture == "bloom" else name)
        found = names.get_name(base, (".weight", ".bias"))
        assert found is not None, name
        tensors[found] = np.vstack([*tensors.get(found, []), array]) if of_head else np.ascontiguousarray(array)
    return tensors


def is_close(a: np.ndarray, b: np.ndarray) -> bool:
    return np.abs(a - b).max() < 2e-5 * max(1, np.abs(b).max())


def type_of(value: Any) -> gguf.GGUFValueType:
    if isinstance(value, list):
        return gguf.GGUFValueType.ARRAY
    kinds = {
        bool: gguf.GGUFValueType.BOOL,
        int: gguf.GGUFValueType.UINT32,
        float: gguf.GGUFValueType.FLOAT32,
        str: gguf.GGUFValueType.STRING,
    }
    return kinds[type(value)]


@dataclasses.dataclass
class GgufModel:
    """A GGUF file of a random model: its keys without the architecture, and its tensors."""

    architecture: str
    folder: pathlib.Path
    make: Callable[[], torch.nn.Module] | None = None  # otherwise that of the table
    own_keys: dict[str, Any] = dataclasses.field(default_factory=dict)  # other than those of the table

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.torch = (self.make or MODELS[self.architecture])().eval()
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in self.torch.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(noise * 0.3 if parameter.dim() > 1 else parameter + noise * 0.2)
        keys = KEYS[self.architecture] | self.own_keys
        self.keys = {f"{self.architecture}.{key}": value for key, value in keys.items() if value is not None}
        self.keys |= tokenizer_keys()
        self.tensors = tensors_of(self.architecture, self.torch)

    def write(
        self,
        keys: dict[str, Any] | None = None,
        tensors: dict[str, np.ndarray] | None = None,
        kinds: dict[str, gguf.GGMLQuantizationType] | None = None,
    ) -> pathlib.Path:
        """With these keys and tensors beside its own; None takes one away. Arrays of tensors in `kinds` are bytes."""
        path = self.folder / "model.gguf"
        writer = gguf.GGUFWriter(path, self.architecture)
        changed = {**self.keys, **(keys or {})}
        architecture = changed.pop("general.architecture", None)
        if architecture is not None:
            writer.kv_data[0]["general.architecture"].value = architecture
        for key, value in changed.items():
            if isinstance(value, list):
                writer.add_array(key, value)
            elif value is not None:
                writer.add_key_value(key, value, type_of(value))
        for name, array in {**self.tensors, **(tensors or {})}.items():
            if array is not None:
                writer.add_tensor(name, array, raw_dtype=(kinds or {}).get(name))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def found(self, ids: list[int], keys: dict[str, Any] | None = None, tensors: Any = None) -> np.ndarray:
        """Logits, or BERT's hidden states, of heed with these keys and tensors."""
        model = heed.models.load(self.write(keys, tensors))
        return model.forward(ids) if self.architecture == "bert" else model.logits(ids)

    def expected(self, ids: list[int], **settings: Any) -> np.ndarray:
        """Logits, or BERT's hidden states, of transformers with these settings of its configuration."""
        model = self.torch
        if settings:
            config = type(model.config)(**{**model.config.to_dict(), **settings})
            model = type(model)(config, **({"add_pooling_layer": False} if self.architecture == "bert" else {}))
            model.load_state_dict(self.torch.state_dict())
        with torch.no_grad():
            found = model.eval()(torch.tensor([ids]))
        return (found.last_hidden_state if self.architecture == "bert" else found.logits)[0].numpy()
