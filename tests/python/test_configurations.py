"""Every member of config.json changes heed's results as it changes those of transformers, or heed refuses it by name. The
tables list all members that the configuration classes of transformers have, and more that real files have."""

import dataclasses
import json
import pathlib

import heed
import numpy as np
import pytest
import torch
from test_models import DECODER, ENCODERS, ENDS, GPT2, MODERN, PLAIN, SIZES, randomise
from transformers import (
    AlbertConfig,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BloomConfig,
    CohereConfig,
    DistilBertConfig,
    ElectraConfig,
    FalconConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GPT2Config,
    GPTJConfig,
    GPTNeoConfig,
    GPTNeoXConfig,
    GraniteConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    ModernBertConfig,
    MPNetConfig,
    NomicBertConfig,
    Olmo2Config,
    OPTConfig,
    Phi3Config,
    PhiConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    RobertaConfig,
    SmolLM3Config,
    StableLmConfig,
    Starcoder2Config,
)

LENGTH = 24
IDS = [int(i) for i in torch.randint(0, SIZES["vocab_size"], [LENGTH], generator=torch.Generator().manual_seed(3))]

GEMMA_SIZES = {
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "head_dim": 8,
    "sliding_window": 5,
    "query_pre_attn_scalar": 9,
}
BASES = {
    "bert": BertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64),
    "roberta": RobertaConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, type_vocab_size=1),
    "distilbert": DistilBertConfig(
        vocab_size=SIZES["vocab_size"], dim=32, n_layers=3, n_heads=4, hidden_dim=48, max_position_embeddings=64
    ),
    "mpnet": MPNetConfig(**SIZES, intermediate_size=48, max_position_embeddings=64),
    "electra": ElectraConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, embedding_size=12),
    "albert": AlbertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, embedding_size=12),
    "nomic_bert": NomicBertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64),
    "modernbert": ModernBertConfig(**MODERN),
    "gpt2": GPT2Config(**GPT2, eos_token_id=None, bos_token_id=None),
    "llama": LlamaConfig(**DECODER, max_position_embeddings=64),
    "mistral": MistralConfig(**DECODER, max_position_embeddings=64, sliding_window=None),
    "qwen2": Qwen2Config(**DECODER, max_position_embeddings=64),
    "qwen3": Qwen3Config(**DECODER, max_position_embeddings=64, head_dim=8),
    "olmo2": Olmo2Config(**DECODER, max_position_embeddings=64, pad_token_id=None),
    "smollm3": SmolLM3Config(
        **DECODER,
        max_position_embeddings=64,
        pad_token_id=None,
        no_rope_layers=[1, 0, 1],
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False,
    ),
    "gemma2": Gemma2Config(**DECODER, **GEMMA_SIZES),
    "gemma3_text": Gemma3TextConfig(**DECODER, **GEMMA_SIZES),
    "granite": GraniteConfig(**DECODER, max_position_embeddings=64),
    "phi3": Phi3Config(**DECODER, max_position_embeddings=64, pad_token_id=None),
    "phi": PhiConfig(**DECODER, max_position_embeddings=64),
    "gpt_neox": GPTNeoXConfig(**PLAIN, max_position_embeddings=64, rotary_pct=0.5),
    "stablelm": StableLmConfig(**DECODER, max_position_embeddings=64, partial_rotary_factor=0.5),
    "starcoder2": Starcoder2Config(**DECODER, max_position_embeddings=64),
    "cohere": CohereConfig(**DECODER, max_position_embeddings=64, pad_token_id=None, rope_theta=10000.0),
    "mixtral": MixtralConfig(
        **DECODER, max_position_embeddings=64, head_dim=8, num_local_experts=4, num_experts_per_tok=2, rope_theta=10000.0
    ),
    "qwen3_moe": Qwen3MoeConfig(
        **DECODER, max_position_embeddings=64, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24
    ),
    "gpt_neo": GPTNeoConfig(
        **{"vocab_size": SIZES["vocab_size"], "hidden_size": 32, "num_layers": 3, "num_heads": 4, **ENDS},
        max_position_embeddings=64,
        window_size=4,
        attention_types=[[["global", "local", "global"], 1]],
    ),
    "gptj": GPTJConfig(**GPT2, **ENDS, rotary_dim=4),
    "opt": OPTConfig(**SIZES, **ENDS, ffn_dim=48, max_position_embeddings=64),
    "bloom": BloomConfig(vocab_size=SIZES["vocab_size"], hidden_size=32, n_layer=3, n_head=4, **ENDS),
    "falcon": FalconConfig(**SIZES, **ENDS),
}

# The outcome of a changed member.
SAME = "nothing, in transformers and in heed"
EQUAL = "the same in transformers and in heed, and something"
REFUSED = "heed refuses it by name"
MISSING = object()  # the member is removed


class Case:
    """A change of members, the first of which is the one that is tried."""

    def __init__(self, outcome: str, *, named: str | None = None, **changes) -> None:
        self.outcome = outcome
        self.changes = changes
        self.key = next(iter(changes))
        self.named = named or self.key

    def __repr__(self) -> str:
        return f"{self.changes}: {self.outcome}"


def cases(outcome: str, **changes) -> list[Case]:
    """One case for each member."""
    return [Case(outcome, **{key: value}) for key, value in changes.items()]


def common(causal: bool) -> list[Case]:
    return [
        *cases(
            SAME,
            _attn_implementation_autoset=True,
            _name_or_path="somebody/something",
            bos_token_id=5,
            chunk_size_feed_forward=8,
            dtype="bfloat16",
            eos_token_id=[5, 6],
            gradient_checkpointing=False,
            id2label={"0": "a", "1": "b", "2": "c"},
            initializer_range=0.5,
            label2id={"a": 0, "b": 1, "c": 2},
            model_max_length=8,
            output_attentions=False,
            output_hidden_states=True,
            pad_token_id=4,
            pretraining_tp=2,
            problem_type="regression",
            repetition_penalty=1.5,
            return_dict=True,
            tokenizer_class="PreTrainedTokenizerFast",
            torch_dtype="float16",
            transformers_version="4.40.0",
            use_cache=False,
        ),
        *cases(
            REFUSED,
            add_cross_attention=True,
            alibi=True,
            attention_multiplier=2.0,
            auto_map={"AutoModel": "modeling_own.OwnModel"},
            cross_attention_hidden_size=8,
            embedding_multiplier=2.0,
            is_causal=not causal,
            is_encoder_decoder=True,
            logit_scale=2.0,
            model_type="rwkv",
            per_layer_config={"0": {"rms_norm_eps": 0.5}},
            pruned_heads={"0": [1]},
            quantization_config={"quant_method": "awq"},
            tie_last_hidden_states=False,
            vocab_size="17",
        ),
        Case(EQUAL, vocab_size=23),
        Case(SAME, is_causal=causal),
        Case(SAME, architectures=[]),
    ]


COMMON = common(causal=True)

BERT = [
    *common(causal=False),
    *cases(
        SAME,
        attention_probs_dropout_prob=0.5,
        classifier_dropout=0.5,
        hidden_dropout_prob=0.5,
        pooler_fc_size=768,
        position_embedding_type="absolute",
        tie_word_embeddings=False,
    ),
    *cases(
        EQUAL,
        hidden_act="relu",
        hidden_size=48,
        intermediate_size=40,
        layer_norm_eps=0.1,
        max_position_embeddings=32,
        num_attention_heads=2,
        num_hidden_layers=2,
        type_vocab_size=3,
    ),
    *cases(
        REFUSED,
        embedding_size=16,
        hidden_act="mish",
        is_decoder=True,
        position_embedding_type="relative_key",
    ),
]

ROBERTA = [
    *(case for case in BERT if case.key not in ("pad_token_id", "embedding_size")),
    Case(EQUAL, pad_token_id=7),
    Case(EQUAL, pad_token_id=0),
    Case(SAME, pad_token_id=MISSING),
    Case(REFUSED, pad_token_id=-1),
    Case(REFUSED, pad_token_id=2**63 - 1),
    Case(REFUSED, pad_token_id=64),
    Case(REFUSED, max_position_embeddings=-(2**63)),
    Case(REFUSED, pad_token_id=None),
]

DISTILBERT = [
    *common(causal=False),
    *cases(
        SAME,
        attention_dropout=0.5,
        dropout=0.5,
        qa_dropout=0.5,
        seq_classif_dropout=0.5,
        sinusoidal_pos_embds=True,
        tie_word_embeddings=False,
    ),
    *cases(EQUAL, activation="relu", dim=48, hidden_dim=40, max_position_embeddings=32, n_heads=2, n_layers=2),
    Case(REFUSED, activation="mish"),
    Case(REFUSED, hidden_size=48),
]

BERT_ALIKE = [case for case in BERT if case.key != "embedding_size"]

MPNET = [
    *(case for case in BERT_ALIKE if case.key not in ("type_vocab_size", "pad_token_id")),
    # The padding is 1, whatever this is.
    *cases(SAME, pad_token_id=7),
    Case(REFUSED, type_vocab_size=2),
    Case(REFUSED, relative_attention_num_buckets=16),
    Case(REFUSED, named="pad_token_id", max_position_embeddings=1),
]

ELECTRA = [
    *BERT_ALIKE,
    *cases(EQUAL, embedding_size=48),
    Case(EQUAL, embedding_size=32),
    Case(REFUSED, named="embeddings' width", embedding_size=0),
    *cases(SAME, summary_type="last", summary_use_proj=False, summary_activation="tanh", summary_last_dropout=0.5),
]

ALBERT = [
    *(case for case in BERT_ALIKE if case.key != "num_hidden_layers"),
    *cases(EQUAL, embedding_size=32, num_hidden_layers=2),
    *cases(SAME, classifier_dropout_prob=0.5, down_scale_factor=2, gap_size=1, net_structure_type=1, num_memory_blocks=2),
    *cases(REFUSED, num_hidden_groups=3, inner_group_num=2),
]

NOMIC_BERT = [
    *(case for case in BERT_ALIKE if case.key not in ("max_position_embeddings", "eos_token_id")),
    *cases(SAME, eos_token_id=5),
    *cases(
        EQUAL,
        head_dim=16,
        rope_parameters={"rope_type": "linear", "rope_theta": 100.0, "factor": 3.0},
    ),
    *cases(SAME, max_position_embeddings=32),
]

MODERNBERT = [
    *common(causal=False),
    *cases(
        SAME,
        attention_dropout=0.5,
        classifier_activation="relu",
        classifier_bias=True,
        classifier_dropout=0.5,
        classifier_pooling="mean",
        cls_token_id=3,
        decoder_bias=False,
        deterministic_flash_attn=True,
        embedding_dropout=0.5,
        initializer_cutoff_factor=3.0,
        layer_norm_eps=0.5,
        max_position_embeddings=32,
        mlp_dropout=0.5,
        sep_token_id=3,
        sparse_pred_ignore_index=-1,
        sparse_prediction=True,
        tie_word_embeddings=False,
    ),
    *cases(
        EQUAL,
        attention_bias=True,
        global_attn_every_n_layers=2,
        hidden_activation="relu",
        hidden_size=48,
        intermediate_size=40,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        local_attention=3,
        mlp_bias=True,
        norm_bias=True,
        norm_eps=0.1,
        num_attention_heads=2,
        num_hidden_layers=2,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        },
    ),
    Case(EQUAL, local_attention=0),
    Case(EQUAL, global_rope_theta=50.0, rope_parameters=MISSING),
    Case(EQUAL, local_rope_theta=50.0, rope_parameters=MISSING),
    *cases(
        REFUSED,
        hidden_activation="mish",
        layer_types=["sliding_attention"],
        local_attention=-1,
        rope_scaling={"rope_type": "linear", "factor": 2.0},
    ),
    Case(REFUSED, global_attn_every_n_layers=0),
]

GPT = [
    *common(causal=True),
    *cases(
        SAME,
        attn_pdrop=0.5,
        embd_pdrop=0.5,
        is_decoder=True,
        n_ctx=8,
        reorder_and_upcast_attn=True,
        resid_pdrop=0.5,
        summary_activation="tanh",
        summary_first_dropout=0.5,
        summary_proj_to_labels=False,
        summary_type="mean",
        summary_use_proj=False,
        task_specific_params={"text-generation": {"do_sample": True}},
    ),
    *cases(
        EQUAL,
        activation_function="relu",
        layer_norm_epsilon=0.1,
        n_embd=48,
        n_head=2,
        n_inner=40,
        n_layer=2,
        n_positions=32,
        tie_word_embeddings=False,
    ),
    Case(EQUAL, activation_function="gelu"),
    Case(SAME, activation_function=MISSING),
    Case(SAME, n_inner=128),
    Case(EQUAL, hidden_size=48, n_embd=MISSING),
    Case(EQUAL, n_positions=MISSING),
    *cases(
        REFUSED,
        hidden_size=48,
        scale_attn_by_inverse_layer_idx=True,
        scale_attn_weights=False,
    ),
]

FACTORS = {"short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [1.0, 2.0, 4.0, 8.0]}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


def rope(rope_type: str, **parameters) -> dict:
    return {"rope_type": rope_type, "rope_theta": 10000.0, **parameters}


ROTARY = [
    Case(EQUAL, rope_parameters={"rope_type": "default", "rope_theta": 100.0}),
    Case(EQUAL, rope_theta=100.0, rope_parameters=MISSING),
    Case(SAME, rope_theta=100.0),
    Case(SAME, rope_scaling={}),
    Case(SAME, rope_scaling=None),
    Case(EQUAL, rope_parameters=rope("linear", factor=4.0)),
    Case(EQUAL, rope_scaling={"type": "linear", "factor": 4.0}, rope_parameters=MISSING),
    Case(EQUAL, rope_scaling={"type": "linear", "factor": 4.0}),
    Case(EQUAL, rope_scaling={"type": "linear", "rope_type": "dynamic", "factor": 4.0}, max_position_embeddings=64, rope_theta=9.0),
    Case(SAME, rope_parameters=rope("dynamic", factor=4.0)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, original_max_position_embeddings=16)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, beta_fast=8, beta_slow=2, truncate=False, original_max_position_embeddings=16)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, beta_fast=0, beta_slow=0)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, attention_factor=1.5)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, mscale=0.5, mscale_all_dim=0.7)),
    Case(REFUSED, named="mscale", rope_parameters=rope("yarn", factor=4.0, mscale=0.5)),
    Case(EQUAL, rope_parameters=rope("longrope", factor=2.0, **FACTORS)),
    Case(EQUAL, rope_parameters=rope("longrope", original_max_position_embeddings=16, **FACTORS)),
    Case(EQUAL, rope_parameters=rope("longrope", attention_factor=1.5, original_max_position_embeddings=16, **FACTORS)),
    Case(EQUAL, rope_parameters={**LLAMA3, "rope_theta": 10000.0, "original_max_position_embeddings": 16}),
    # Next to the parameters, where it takes precedence over them.
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters={**LLAMA3, "rope_theta": 10000.0}),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters={**LLAMA3, "rope_theta": 10000.0, "original_max_position_embeddings": 32}),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("yarn", factor=4.0)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", **FACTORS)),
    Case(SAME, original_max_position_embeddings=16),
    Case(REFUSED, original_max_position_embeddings=16, rope_parameters=rope("dynamic", factor=4.0)),
    Case(REFUSED, rope_parameters=rope("dynamic", factor=4.0, original_max_position_embeddings=16)),
    Case(REFUSED, partial_rotary_factor=0.5),
    Case(REFUSED, named="partial_rotary_factor", rope_parameters=rope("default", partial_rotary_factor=0.5)),
    Case(REFUSED, named="rope_parameters.factor", rope_parameters=rope("default", factor=4.0)),
    Case(REFUSED, named="rope_parameters.beta_fast", rope_parameters=rope("linear", factor=4.0, beta_fast=8)),
    Case(REFUSED, named="rope_parameters.mrope_section", rope_parameters=rope("default", mrope_section=[2, 1, 1])),
    Case(REFUSED, rope_parameters=rope("proportional", partial_rotary_factor=0.5)),
    Case(REFUSED, rope_parameters={"full_attention": {"rope_type": "default"}}),
    Case(REFUSED, rope_parameters="default"),
    Case(REFUSED, rope_interleaved=True),
]

LLAMA_ALIKE = [
    *COMMON,
    *ROTARY,
    *cases(SAME, attention_dropout=0.5, is_decoder=True, max_position_embeddings=32, mlp_bias=False, rope_interleaved=False),
    *cases(
        EQUAL,
        head_dim=16,
        hidden_act="gelu",
        hidden_size=48,
        intermediate_size=40,
        num_attention_heads=2,
        num_hidden_layers=2,
        num_key_value_heads=1,
        rms_norm_eps=0.1,
        tie_word_embeddings=True,
    ),
    Case(EQUAL, hidden_act="gelu_pytorch_tanh"),
    *cases(REFUSED, mlp_bias=1.5, attention_bias="no", use_sliding_window={"no": 1}, head_dim=8.5),
    Case(REFUSED, named="layer_types", layer_types=["full_attention"] * 2),
    Case(REFUSED, named="layer_types", layer_types=["chunked_attention"] * 3),
    Case(REFUSED, named="window", layer_types=["full_attention", "sliding_attention", "full_attention"], sliding_window=5),
]

LLAMA = [
    *LLAMA_ALIKE,
    *cases(EQUAL, attention_bias=True, mlp_bias=True),
    Case(EQUAL, num_key_value_heads=None),
    Case(EQUAL, num_key_value_heads=MISSING),
    Case(SAME, layer_types=["full_attention"] * 3),
    Case(REFUSED, sliding_window=5),
    Case(SAME, sliding_window=5, use_sliding_window=False, max_window_layers=1),
    Case(SAME, sliding_window=None),
]

MISTRAL = [
    *LLAMA_ALIKE,
    Case(EQUAL, sliding_window=5),
    Case(SAME, sliding_window=MISSING),
    Case(EQUAL, sliding_window=MISSING, num_attention_heads=8, num_key_value_heads=MISSING),
    Case(REFUSED, sliding_window=5, use_sliding_window=False),
    Case(REFUSED, attention_bias=True),
    Case(REFUSED, mlp_bias=True),
]

WINDOW = {"sliding_window": 5, "use_sliding_window": True}
QWEN = [
    *LLAMA_ALIKE,
    Case(EQUAL, num_key_value_heads=None),
    Case(SAME, layer_types=["full_attention"] * 3),
    Case(SAME, sliding_window=5),
    Case(SAME, max_window_layers=0),
    Case(SAME, use_sliding_window=True),
    Case(EQUAL, max_window_layers=0, **WINDOW),
    Case(EQUAL, layer_types=["sliding_attention"] * 3, **WINDOW),
    Case(SAME, max_window_layers=3, **WINDOW),
    Case(EQUAL, max_window_layers=1, **WINDOW),
    Case(EQUAL, layer_types=["full_attention", "sliding_attention", "full_attention"], **WINDOW),
    Case(EQUAL, num_attention_heads=32, num_key_value_heads=MISSING, head_dim=8),
]

QWEN2 = [*QWEN, Case(REFUSED, attention_bias=False)]
QWEN3 = [*QWEN, Case(EQUAL, attention_bias=True), Case(EQUAL, head_dim=MISSING), Case(REFUSED, mlp_bias=True)]

OLMO2 = [
    *LLAMA_ALIKE,
    Case(EQUAL, attention_bias=True),
    Case(EQUAL, num_key_value_heads=None),
    Case(EQUAL, num_key_value_heads=MISSING),
    Case(REFUSED, mlp_bias=True),
    Case(REFUSED, sliding_window=5),
]

SMOLLM3 = [
    *LLAMA_ALIKE,
    *cases(EQUAL, rope_parameters=MISSING, tie_word_embeddings=MISSING),
    *cases(EQUAL, attention_bias=True, mlp_bias=True, no_rope_layers=[0, 1, 1]),
    Case(EQUAL, no_rope_layers=MISSING),
    Case(EQUAL, no_rope_layers=MISSING, no_rope_layer_interval=3),
    Case(SAME, no_rope_layer_interval=3),
    Case(SAME, no_rope_layers=[1, 0, 1, 0]),
    Case(EQUAL, num_key_value_heads=None),
    Case(SAME, sliding_window=5),
    Case(SAME, use_sliding_window=True),
    Case(EQUAL, **WINDOW),
    Case(EQUAL, layer_types=["sliding_attention", "full_attention", "sliding_attention"], **WINDOW),
    Case(REFUSED, no_rope_layers=[1, 0]),
    Case(REFUSED, no_rope_layer_interval=0, no_rope_layers=MISSING),
]

TYPES = ["full_attention", "full_attention", "sliding_attention"]
GEMMA = [
    # transformers rounds the factor of embeddings to this type; heed computes in float32.
    *(case for case in common(causal=True) if case.key not in ("dtype", "torch_dtype")),
    Case(SAME, dtype="float32"),
    *cases(SAME, attention_dropout=0.5, hidden_act="relu", is_decoder=True, max_position_embeddings=32),
    *cases(
        EQUAL,
        attention_bias=True,
        final_logit_softcapping=1.5,
        head_dim=16,
        hidden_activation="relu",
        hidden_size=48,
        intermediate_size=40,
        layer_types=TYPES,
        num_attention_heads=2,
        num_hidden_layers=2,
        num_key_value_heads=1,
        query_pre_attn_scalar=4,
        rms_norm_eps=0.1,
        sliding_window=3,
        tie_word_embeddings=False,
    ),
    Case(EQUAL, head_dim=MISSING),
    Case(EQUAL, query_pre_attn_scalar=MISSING),
    *cases(REFUSED, layer_types=TYPES[1:], mlp_bias=True, sliding_window=None, use_bidirectional_attention=True),
    Case(REFUSED, named="layer_types", layer_types=["chunked_attention"] * 3),
]
GEMMA2 = [
    *GEMMA,
    *(case for case in ROTARY if case.key != "rope_interleaved"),
    *cases(EQUAL, attn_logit_softcapping=2.0),
    Case(EQUAL, attn_logit_softcapping=None),
    Case(EQUAL, final_logit_softcapping=None),
    Case(SAME, attn_logit_softcapping=MISSING),
]


def rope_by_type(full: dict, sliding: dict) -> dict:
    return {"full_attention": full, "sliding_attention": sliding}


LINEAR = rope("linear", factor=4.0)
GEMMA3 = [
    *GEMMA,
    Case(REFUSED, attn_logit_softcapping=2.0),  # transformers ignores it
    Case(SAME, attn_logit_softcapping=None),
    Case(SAME, _sliding_window_pattern=2),
    Case(EQUAL, sliding_window_pattern=2),
    Case(EQUAL, layer_types=TYPES, rope_parameters=rope_by_type(rope("default"), LINEAR)),
    Case(EQUAL, rope_parameters=rope_by_type(LINEAR, {"rope_type": "default", "rope_theta": 50.0}), layer_types=TYPES),
    Case(EQUAL, rope_scaling={"rope_type": "linear", "factor": 8.0}, rope_parameters=MISSING, layer_types=TYPES),
    Case(EQUAL, rope_local_base_freq=50.0, rope_parameters=MISSING),
    Case(EQUAL, rope_theta=50.0, rope_parameters=MISSING, layer_types=TYPES),
    Case(REFUSED, rope_scaling={"rope_type": "linear", "factor": 8.0}),
    Case(REFUSED, rope_parameters=rope("default")),
    Case(REFUSED, named="partial_rotary_factor", rope_parameters=rope_by_type(rope("default", partial_rotary_factor=0.5), rope("default"))),
]

GRANITE = [
    *(case for case in LLAMA_ALIKE if case.key not in ("attention_multiplier", "embedding_multiplier")),
    *cases(EQUAL, attention_bias=True, mlp_bias=True),
    Case(EQUAL, num_key_value_heads=MISSING),
    *cases(EQUAL, attention_multiplier=0.5, embedding_multiplier=2.0, logits_scaling=4.0, residual_multiplier=0.5),
    Case(SAME, attention_multiplier=MISSING),
    Case(REFUSED, attention_multiplier=0.0, named="the scale of scores"),
    Case(REFUSED, logits_scaling=-1, named="the scale of logits"),
    Case(REFUSED, sliding_window=5),
]


def like_llama(*other: str) -> list[Case]:
    """The cases of Llama, without those of its rotary embedding and of other members that a family reads otherwise."""
    return [case for case in LLAMA_ALIKE if case not in ROTARY and case.key not in {"rms_norm_eps", *other}]


# Of families that turn a part of each head.
PARTIAL = [
    Case(EQUAL, rope_parameters=rope("default", rope_theta=100.0, partial_rotary_factor=0.25)),
    Case(EQUAL, rope_parameters=rope("default", partial_rotary_factor=0.75)),
    Case(REFUSED, named="partial_rotary_factor", rope_parameters=rope("default", partial_rotary_factor=1.5)),
    Case(REFUSED, named="1 dimensions of 8", rope_parameters=rope("default", partial_rotary_factor=0.2)),
]
PARTIAL_BY_NAME = [
    *PARTIAL,
    Case(EQUAL, partial_rotary_factor=0.25, rope_parameters=MISSING),
    Case(EQUAL, partial_rotary_factor=0.25, rope_parameters={"rope_type": "default", "rope_theta": 100.0}),
    Case(SAME, partial_rotary_factor=0.25),  # rope_parameters take precedence
    Case(EQUAL, rope_theta=50.0, rope_parameters=MISSING),
]
PARTIAL_SCALED = [
    Case(EQUAL, rope_parameters=rope("linear", factor=4.0, partial_rotary_factor=0.5)),
    Case(EQUAL, rope_parameters=rope("yarn", factor=4.0, partial_rotary_factor=0.5, original_max_position_embeddings=16)),
]
HALF = {"short_factor": [1.0, 1.5], "long_factor": [2.0, 3.0]}
PHI3 = [
    *like_llama(),
    Case(SAME, auto_map={"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}),
    Case(REFUSED, auto_map={"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "own.OwnForCausalLM"}),
    Case(REFUSED, auto_map={"AutoModelForCausalLM": 3}),
    Case(REFUSED, auto_map="modeling_phi3.Phi3ForCausalLM"),
    *PARTIAL_BY_NAME,
    Case(SAME, partial_rotary_factor=1.0),
    Case(EQUAL, rms_norm_eps=0.1),
    Case(EQUAL, sliding_window=5),
    Case(EQUAL, num_key_value_heads=MISSING),
    *cases(SAME, resid_pdrop=0.5, embd_pdrop=0.5, lm_head_bias=False, full_attn_mod=1, interpolate_factor=1),
    *cases(REFUSED, lm_head_bias=True, full_attn_mod=2, interpolate_factor=2, attention_bias=True, mlp_bias=True),
    # Without LongRoPE this member changes nothing.
    Case(SAME, original_max_position_embeddings=16),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=32, rope_parameters=rope("longrope", **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("su", original_max_position_embeddings=16, **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("yarn", **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", factor=8.0, **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", attention_factor=1.5, **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", partial_rotary_factor=0.5, **HALF)),
    Case(EQUAL, original_max_position_embeddings=16, rope_parameters=rope("longrope", original_max_position_embeddings=32, **FACTORS)),
    Case(EQUAL, original_max_position_embeddings=MISSING, max_position_embeddings=8192, rope_parameters=rope("longrope", **FACTORS)),
    Case(REFUSED, rope_parameters=rope("linear", factor=4.0), named="rope_type"),
]

OF_LAYER_NORM = [Case(EQUAL, layer_norm_eps=0.1)]
PHI = [
    *like_llama("mlp_bias", "hidden_act"),
    *cases(EQUAL, hidden_act="gelu"),
    *PARTIAL_BY_NAME,
    *PARTIAL_SCALED,
    *OF_LAYER_NORM,
    *cases(SAME, resid_pdrop=0.5, embd_pdrop=0.5),
    *cases(REFUSED, qk_layernorm=True, attention_bias=False, sliding_window=5),
    Case(EQUAL, num_key_value_heads=MISSING),
]
NEOX = [
    *like_llama("num_key_value_heads", "head_dim", "mlp_bias", "hidden_act"),
    *cases(EQUAL, hidden_act="gelu_pytorch_tanh"),
    *PARTIAL,
    *PARTIAL_SCALED,
    *OF_LAYER_NORM,
    *cases(EQUAL, use_parallel_residual=False, attention_bias=False),
    *cases(SAME, hidden_dropout=0.5, classifier_dropout=0.5),
    Case(EQUAL, rotary_pct=0.25, rope_parameters=MISSING),
    Case(EQUAL, rotary_emb_base=50.0, rope_parameters=MISSING),
    Case(EQUAL, rotary_emb_base=50.0, rope_parameters=MISSING, rope_theta=50.0, rotary_pct=0.25, partial_rotary_factor=0.25),
    Case(SAME, rotary_pct=0.25),
    Case(SAME, rotary_emb_base=50.0),
    Case(REFUSED, rope_theta=50.0, rope_parameters=MISSING),
    Case(REFUSED, partial_rotary_factor=0.75, rope_parameters=MISSING),
    *cases(REFUSED, num_key_value_heads=2, head_dim=8, mlp_bias=False, sliding_window=5),
]
STABLELM = [
    *like_llama("head_dim", "mlp_bias", "attention_bias"),
    *PARTIAL_BY_NAME,
    *PARTIAL_SCALED,
    *OF_LAYER_NORM,
    *cases(EQUAL, use_qkv_bias=True, qk_layernorm=True, use_parallel_residual=True),
    *cases(SAME, hidden_dropout=0.5),
    *cases(REFUSED, mlp_bias=True, attention_bias=True, sliding_window=5),
    Case(EQUAL, num_attention_heads=32, num_key_value_heads=MISSING, hidden_size=64, partial_rotary_factor=1.0, rope_parameters=MISSING),
]
STARCODER2 = [
    *like_llama("mlp_bias", "attention_bias", "tie_word_embeddings", "hidden_act"),
    *cases(EQUAL, hidden_act="gelu"),
    *ROTARY,
    *cases(EQUAL, norm_epsilon=0.1, use_bias=False, sliding_window=5, tie_word_embeddings=False),
    *cases(SAME, residual_dropout=0.5, embedding_dropout=0.5, activation_function="gelu", norm_type="layer_norm", mlp_type="default"),
    *cases(REFUSED, norm_type="rms_norm", mlp_type="gated", attention_bias=True),
]
COHERE = [
    *(case for case in like_llama("tie_word_embeddings") if case.key != "logit_scale"),
    *(case for case in ROTARY if case.changes != {"rope_theta": 100.0, "rope_parameters": MISSING}),
    *OF_LAYER_NORM,
    *cases(EQUAL, logit_scale=0.5, use_qk_norm=True, attention_bias=True, tie_word_embeddings=False),
    Case(EQUAL, rope_parameters=MISSING),
    Case(SAME, logit_scale=MISSING),
    Case(EQUAL, num_key_value_heads=MISSING),
    Case(REFUSED, sliding_window=5),
]

OF_EXPERTS = [
    *cases(EQUAL, num_experts_per_tok=1, num_local_experts=3),
    *cases(SAME, output_router_logits=False, router_aux_loss_coef=0.5, router_jitter_noise=0.5),
    Case(REFUSED, num_experts_per_tok=5, named="the number of experts of a token is 5, expected 1 to 4"),
    Case(REFUSED, num_experts_per_tok=0, named="the number of experts of a token is 0"),
    Case(REFUSED, num_local_experts=-1, named="experts"),
    Case(REFUSED, num_experts=8),
]
MIXTRAL = [
    *like_llama(),
    *ROTARY,
    *OF_EXPERTS,
    *cases(EQUAL, rms_norm_eps=0.1, sliding_window=5),
    *cases(REFUSED, attention_bias=True, mlp_bias=True),
    Case(EQUAL, num_attention_heads=8, num_key_value_heads=MISSING),
    Case(EQUAL, rope_parameters=MISSING),
]
QWEN3_MOE = [
    *like_llama("max_window_layers", "layer_types", "intermediate_size"),
    *ROTARY,
    *OF_EXPERTS,
    *cases(
        EQUAL,
        attention_bias=True,
        decoder_sparse_step=2,
        mlp_only_layers=[0, 2],
        moe_intermediate_size=40,
        norm_topk_prob=True,
        rms_norm_eps=0.1,
    ),
    Case(SAME, mlp_only_layers=None),
    Case(SAME, intermediate_size=40),  # of layers without experts
    Case(EQUAL, intermediate_size=40, mlp_only_layers=[0]),
    Case(EQUAL, num_local_experts=0),
    Case(EQUAL, num_experts=3, num_local_experts=MISSING),
    Case(SAME, sliding_window=5),
    Case(SAME, max_window_layers=1),
    Case(EQUAL, max_window_layers=1, **WINDOW),
    Case(SAME, use_sliding_window=True, sliding_window=None),
    *cases(REFUSED, decoder_sparse_step=0, mlp_only_layers=["0"], mlp_bias=True, shared_expert_intermediate_size=8),
    Case(EQUAL, num_attention_heads=4, num_key_value_heads=MISSING),
]

GPT_ALIKE = [case for case in GPT if case.key not in ("scale_attn_by_inverse_layer_idx", "scale_attn_weights")]
GPTJ = [
    # With another type transformers rounds the angles; heed computes in float32.
    *(case for case in GPT_ALIKE if case.key not in ("dtype", "torch_dtype", "n_positions", "tie_word_embeddings")),
    Case(SAME, dtype="float32"),
    Case(SAME, n_positions=32),
    Case(SAME, n_positions=MISSING),
    *cases(EQUAL, rotary_dim=8, tie_word_embeddings=True),
    *cases(SAME, scale_attn_weights=True, rotary=True),
    *cases(REFUSED, rotary_dim=None, scale_attn_weights=False, rotary=False),
    Case(REFUSED, rotary_dim=16, named="16 dimensions of 8"),
]
NEO_TYPES = [[["local", "global"], 1], [["local"], 1]]
GPT_NEO = [
    *COMMON,
    *cases(
        SAME,
        attention_dropout=0.5,
        classifier_dropout=0.5,
        embed_dropout=0.5,
        intermediate_size=128,
        resid_dropout=0.5,
        summary_type="mean",
    ),
    Case(EQUAL, max_position_embeddings=32),
    *cases(
        EQUAL,
        activation_function="relu",
        attention_layers=["local", "global", "local"],
        hidden_size=48,
        intermediate_size=40,
        layer_norm_epsilon=0.1,
        num_heads=2,
        tie_word_embeddings=False,
        window_size=3,
    ),
    Case(EQUAL, num_layers=2, attention_types=[[["global", "local"], 1]], attention_layers=MISSING),
    Case(EQUAL, attention_types=MISSING, attention_layers=MISSING, num_layers=24),
    Case(EQUAL, attention_types=NEO_TYPES, attention_layers=MISSING),
    Case(SAME, attention_types=NEO_TYPES),  # attention_layers take precedence
    Case(REFUSED, num_layers=2, named="attention_layers"),
    Case(REFUSED, attention_types=[[["global"], 2]], attention_layers=MISSING),
    Case(REFUSED, attention_types=[[["global", "global"], 10**18]], attention_layers=MISSING),
    Case(REFUSED, attention_types=[[["chunked"], 3]], attention_layers=MISSING),
    Case(REFUSED, attention_layers=["chunked"] * 3),
    Case(REFUSED, attention_types=[["global", "local", "global"]], attention_layers=MISSING),
]
OPT = [
    *COMMON,
    *cases(SAME, activation_dropout=0.5, attention_dropout=0.5, dropout=0.5, init_std=0.5, layerdrop=0.5),
    *cases(
        EQUAL,
        activation_function="gelu",
        enable_bias=False,
        ffn_dim=40,
        max_position_embeddings=32,
        num_attention_heads=2,
        num_hidden_layers=2,
        tie_word_embeddings=False,
    ),
    Case(EQUAL, hidden_size=48, word_embed_proj_dim=48),
    Case(SAME, word_embed_proj_dim=MISSING),
    *cases(
        REFUSED,
        word_embed_proj_dim=16,
        do_layer_norm_before=False,
        layer_norm_elementwise_affine=False,
        _remove_final_layer_norm=True,
    ),
]
BLOOM = [
    *COMMON,
    *cases(
        SAME,
        attention_dropout=0.5,
        hidden_dropout=0.5,
        pretraining_tp=4,
        slow_but_exact=True,
        masked_softmax_fusion=True,
        attention_softmax_in_fp32=True,
        seq_length=32,
    ),
    *cases(EQUAL, hidden_size=48, layer_norm_epsilon=0.1, n_head=8, n_layer=2, tie_word_embeddings=False),
    Case(EQUAL, n_head=5, hidden_size=40),
    Case(EQUAL, n_embed=48, hidden_size=MISSING),
    *cases(REFUSED, apply_residual_connection_post_layernorm=True, n_embed=48),
]
NEW = {"new_decoder_architecture": True}
FALCON = [
    *(case for case in COMMON if case.key != "alibi"),
    *ROTARY,
    *cases(SAME, attention_dropout=0.5, hidden_dropout=0.5, num_kv_heads=2, max_position_embeddings=32, alibi=False),
    *cases(
        EQUAL,
        activation="relu",
        bias=True,
        ffn_hidden_size=40,
        hidden_size=48,
        layer_norm_epsilon=0.1,
        multi_query=False,
        new_decoder_architecture=True,
        num_attention_heads=2,
        num_hidden_layers=2,
        parallel_attn=False,
        tie_word_embeddings=False,
    ),
    Case(SAME, ffn_hidden_size=MISSING),
    Case(EQUAL, num_kv_heads=2, **NEW),
    Case(EQUAL, num_kv_heads=1, **NEW),
    Case(EQUAL, num_kv_heads=2, num_ln_in_parallel_attn=1, **NEW),
    Case(SAME, num_ln_in_parallel_attn=1),
    Case(EQUAL, parallel_attn=False, multi_query=False, bias=True),
    Case(REFUSED, alibi=True),
    Case(REFUSED, multi_query=False, num_kv_heads=2),
    Case(REFUSED, num_ln_in_parallel_attn=2),
    Case(REFUSED, num_ln_in_parallel_attn=3, **NEW),
    Case(REFUSED, parallel_attn=False, **NEW),
    Case(REFUSED, apply_residual_connection_post_layernorm=True),
]

TABLES = {
    "bert": BERT,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "mpnet": MPNET,
    "electra": ELECTRA,
    "albert": ALBERT,
    "nomic_bert": NOMIC_BERT,
    "modernbert": MODERNBERT,
    "gpt2": GPT,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "olmo2": OLMO2,
    "smollm3": SMOLLM3,
    "gemma2": GEMMA2,
    "gemma3_text": GEMMA3,
    "granite": GRANITE,
    "phi3": PHI3,
    "phi": PHI,
    "gpt_neox": NEOX,
    "stablelm": STABLELM,
    "starcoder2": STARCODER2,
    "cohere": COHERE,
    "mixtral": MIXTRAL,
    "qwen3_moe": QWEN3_MOE,
    "gpt_neo": GPT_NEO,
    "gptj": GPTJ,
    "opt": OPT,
    "bloom": BLOOM,
    "falcon": FALCON,
}


def reference(folder: pathlib.Path) -> torch.nn.Module:
    config = AutoConfig.from_pretrained(folder)
    kind = AutoModel if config.model_type in ENCODERS else AutoModelForCausalLM
    torch.manual_seed(0)
    return kind.from_config(config, attn_implementation="eager").float().eval()


def expected_of(model: torch.nn.Module) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor([IDS]))[0][0].numpy()


def found_of(folder: pathlib.Path) -> np.ndarray:
    model = heed.models.load(folder)
    return model.forward(IDS) if model.config["family"] in ENCODERS else model.logits(IDS)


def is_close(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.shape == expected.shape and np.abs(found - expected).max() < 2e-5 * max(1, np.abs(expected).max())


class Base:
    """A small model of a family in a folder, whose config.json may be written anew."""

    def __init__(self, family: str, folder: pathlib.Path) -> None:
        self.folder = folder
        self.config = {"model_type": family, **BASES[family].to_dict()}
        self.config.pop("layer_types", None)
        self.write({})
        model = reference(folder)
        randomise(model)
        self.save(model)
        self.weights = model.state_dict()
        self.result = expected_of(model)

    def write(self, changes: dict) -> None:
        config = {key: value for key, value in {**self.config, **changes}.items() if value is not MISSING}
        (self.folder / "config.json").write_text(json.dumps(config))

    def save(self, model: torch.nn.Module, folder: pathlib.Path | None = None) -> None:
        """The weights, beside config.json as it was written here."""
        config = (self.folder / "config.json").read_text()
        model.save_pretrained(folder or self.folder)
        ((folder or self.folder) / "config.json").write_text(config)
        ((folder or self.folder) / "generation_config.json").unlink(missing_ok=True)


@pytest.fixture(scope="module", params=TABLES)
def base(request, tmp_path_factory) -> Base:
    return Base(request.param, tmp_path_factory.mktemp(request.param))


def problem_with(base: Base, case: Case, other: pathlib.Path) -> str | None:
    """What is wrong with what heed makes of a case; nothing where all is well."""
    base.write(case.changes)
    if case.outcome == REFUSED:
        try:
            heed.models.load(base.folder)
        except (ValueError, OSError, RuntimeError) as error:
            if case.named not in str(error):
                return f"the error does not name {case.named}: {error}"
            refusals = heed.models.describe(base.folder)[0]["refusals"]
            return None if any(case.named in refusal for refusal in refusals) else f"describe() does not refuse it: {refusals}"
        return "heed opens it"
    model = reference(base.folder)
    if case.outcome == SAME:
        model.load_state_dict(base.weights)
        expected = expected_of(model)
        if not is_close(expected, base.result):
            return "it changes what transformers computes"
        return None if is_close(found_of(base.folder), expected) else "it changes what heed computes"
    randomise(model)
    expected = expected_of(model)
    if is_close(expected, base.result):
        return "it changes nothing in transformers"
    base.save(model, other)
    return None if is_close(found_of(other), expected) else "heed computes something else"


def test_members_change_what_they_change_in_transformers(base: Base, tmp_path: pathlib.Path, is_exhaustive: bool) -> None:
    """Members that Llama or BERT has as well change with --exhaustive alone in families that are like it."""
    problems = []
    family = base.config["model_type"]
    for case in TABLES[family]:
        if not is_exhaustive and family != "llama" and case in LLAMA_ALIKE:
            continue
        if not is_exhaustive and family in ("mpnet", "electra", "albert", "nomic_bert") and case in BERT_ALIKE:
            continue
        try:
            problem = problem_with(base, case, tmp_path)
        except (ValueError, OSError, RuntimeError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            problems.append(f"{case}, but {problem}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("family", TABLES)
def test_the_table_has_every_member_of_transformers(family: str) -> None:
    members = {field.name for kind in (type(BASES[family]), PreTrainedConfig) for field in dataclasses.fields(kind)}
    assert members - {case.key for case in TABLES[family]} == set()


def test_a_head_in_the_file_counts_before_a_tie(tmp_path: pathlib.Path) -> None:
    base = Base("llama", tmp_path)
    base.write({"tie_word_embeddings": True})
    expected = expected_of(AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager"))
    assert is_close(expected, base.result)
    assert is_close(found_of(tmp_path), expected)


def test_texts_end_where_they_end_in_transformers(tmp_path: pathlib.Path) -> None:
    """By the token of generation_config.json, or else that of config.json."""
    base = Base("llama", tmp_path)
    free = heed.models.load(tmp_path).generate(IDS, max_tokens=12).ids
    assert len(free) == 12 and len(set(free)) > 2
    early, late = free[1], next(i for i in free[2:] if i != free[1] and i != free[0])
    lengths = set()
    for config, generation in [(late, None), ([late, early], None), (early, late), (early, [late]), (None, early)]:
        base.write({"eos_token_id": config})
        (tmp_path / "generation_config.json").unlink(missing_ok=True)
        if generation is not None:
            (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": generation, "top_p": 0.5}))
        model = AutoModelForCausalLM.from_pretrained(tmp_path)
        prompt = torch.tensor([IDS])
        expected = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False, pad_token_id=3
        )[0, LENGTH:].tolist()
        found = heed.models.load(tmp_path).generate(IDS, max_tokens=12)
        # transformers returns the token that ended the text, heed does not.
        assert found.ids == expected[: len(found.ids)]
        assert len(expected) - len(found.ids) == (found.reason == "end_token")
        lengths.add(len(found.ids))
    assert len(lengths) > 1
