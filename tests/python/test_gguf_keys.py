"""Every key of GGUF files that the library gguf knows, in a file of each architecture: heed computes what transformers
computes with that setting, what it computes without where the key changes nothing, or refuses the file by a message that
names the key. What llama.cpp makes of a key is said beside it."""

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

import heed
import pytest

gguf = pytest.importorskip("gguf")

from gguf_files import ARCHITECTURES, LAYERS, VOCABULARY, GgufModel, is_close  # noqa: E402

IDS = [1, 7, 12, 7, 30, 39, 4, 12, 2, 25, 18, 3]
SAME: dict[str, Any] = {}  # settings of transformers that change nothing


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A message that has the pattern, and the name of the case's first key unless the tensors tell."""

    pattern: str = ""
    names_key: bool = True


NAMED = Refusal()
SHAPE = Refusal(r"tensor blk\.0\.\S+ has shape", names_key=False)


def rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **settings}}


YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 1024}
YARN_ROPE = {"factor": 4.0, "original_max_position_embeddings": 1024}
YARN_ATTENTION = 1 + 0.1 * math.log(4)

# Keys and their effects on a model. The outcome is settings of transformers, or the rest of the error message.
OF_ALL = [
    ({"vocab_size": VOCABULARY}, SAME),
    ({"vocab_size": VOCABULARY + 1}, Refusal("is 41, expected 40: so many rows has token_embd.weight")),
    ({"context_length": 0}, Refusal("is 0, expected at least 1")),
    ({"embedding_length": 48}, Refusal("has shape|rope.dimension_count is 8, expected 12", names_key=False)),
    ({"block_count": LAYERS - 1}, Refusal(r"tensor 'blk\.1\.", names_key=False)),
    ({"block_count": LAYERS + 1}, Refusal(r"'blk\.2\.", names_key=False)),
    ({"block_count": float(LAYERS)}, Refusal("is a number, expected an integer")),
    ({"block_count": [LAYERS]}, Refusal("is an array of integers, expected an integer")),
    ({"feed_forward_length": [56, 24]}, Refusal("is an array of 2 integers, expected one number of at least 1 for")),
    ({"attention.head_count": 5}, NAMED),
    ({"attention.head_count": 0}, Refusal("is 0, expected at least 1")),
    ({"attention.head_count": "4"}, Refusal("is a string, expected an integer")),
    ({"attention.head_count": [4, 4]}, SAME),
    ({"attention.head_count": [4, 2]}, Refusal("is an array of 2 integers, expected one number")),
    ({"attention.head_count_kv": [2, 1]}, Refusal("is an array of 2 integers, expected one number")),
    ({"attention.head_count_kv": 0}, Refusal("is 0, expected at least 1")),
    ({"attention.key_length": 8}, SAME),
    ({"attention.value_length": 8}, SAME),
    ({"attention.value_length": 4}, Refusal("is 4, expected 8: values are as long as keys")),
    ({"expert_shared_count": 1}, NAMED),
    ({"expert_group_count": 1}, NAMED),
    ({"expert_group_used_count": 1}, NAMED),
    ({"use_parallel_residual": False}, SAME),
    ({"use_parallel_residual": True}, NAMED),
    ({"tensor_data_layout": "Meta AI original pth"}, SAME),  # llama.cpp ignores it
    ({"rope.scaling.finetuned": True}, SAME),  # used for MiniCPM and Granite only
    ({"pooling_type": 0}, SAME),
    ({"pooling_type": 1}, SAME),
    ({"pooling_type": 2}, SAME),
    ({"pooling_type": 3}, Refusal(r"is 3, expected 0 \(none\), 1 \(the mean\) or 2")),
    ({"pooling_type": 4}, NAMED),
]
WITHOUT_EXPERTS = [
    ({"expert_count": 0, "expert_used_count": 0}, SAME),
    ({"expert_count": 8}, Refusal("is 8, expected 0: heed has no experts of this architecture")),
    ({"expert_used_count": 2}, NAMED),
]
OF_MIXTRAL = [
    ({"expert_count": 0, "expert_used_count": 0}, SAME),
    ({"expert_count": 8, "expert_used_count": 2}, Refusal(r"blk\.0\.ffn_gate_inp\.weight", names_key=False)),
    ({"expert_used_count": 9, "expert_count": 8}, Refusal("is 9, expected at most llama.expert_count, 8")),
    ({"expert_used_count": 2}, NAMED),
]
OF_EXPERTS = [
    ({"expert_used_count": 1}, {"num_experts_per_tok": 1}),
    ({"expert_used_count": 4}, Refusal("is 4, expected at most qwen3moe.expert_count, 3")),
    ({"expert_count": 2}, SHAPE),
    *(({key: None}, NAMED) for key in ("expert_count", "expert_used_count")),
    ({"expert_feed_forward_length": 28}, SHAPE),
    ({"expert_feed_forward_length": None}, SHAPE),
]
OF_DECODERS = [
    ({"context_length": 40}, SAME),
    ({"attention.causal": True}, SAME),
    ({"attention.causal": False}, Refusal("is false, expected true")),
]
OF_KEY_HEADS = [
    ({"attention.key_length": 16, "rope.dimension_count": 16}, SHAPE),
    ({"attention.head_count_kv": [2, 2]}, SAME),
    ({"attention.head_count_kv": 1}, SHAPE),
    ({"attention.head_count_kv": 3}, NAMED),
]
OF_RMS_NORMS = [
    ({"attention.layer_norm_rms_epsilon": 0.5}, {"rms_norm_eps": 0.5}),
    ({"attention.layer_norm_rms_epsilon": math.nan}, Refusal("is nan, expected a number, at least 0")),
    ({"attention.layer_norm_rms_epsilon": None}, NAMED),
    ({"attention.layer_norm_epsilon": 0.5}, SAME),  # these models have no layer norms
]
OF_WHOLE_HEADS = [
    ({"attention.key_length": 16}, Refusal("rope.dimension_count is 8, expected 16", names_key=False)),
    ({"rope.dimension_count": 4}, Refusal("is 4, expected 8: the architecture turns whole heads")),
    ({"rope.dimension_count": 0}, NAMED),
]
OF_PARTS_OF_HEADS = [
    ({"rope.dimension_count": 8}, rope("default", partial_rotary_factor=1.0)),
    ({"rope.dimension_count": None}, rope("default", partial_rotary_factor=1.0)),
    ({"rope.dimension_count": 3}, Refusal("is 3, expected an even number, at most 8, the size of heads")),
    ({"rope.dimension_count": 10}, NAMED),
    ({"rope.dimension_count": 0}, NAMED),
    ({"rope.freq_base": 500.0}, rope("default", rope_theta=500.0, partial_rotary_factor=0.5)),
    ({"rope.scaling.factor": 4.0}, rope("linear", factor=4.0, partial_rotary_factor=0.5)),
    (YARN, rope("yarn", **YARN_ROPE, partial_rotary_factor=0.5)),
]
OF_ROTARY = [
    ({"rope.freq_base": 500.0}, rope("default", rope_theta=500.0)),
    ({"rope.freq_base": None}, SAME),
    ({"rope.freq_base": 1e-45}, Refusal("is 1.4.*e-45, expected a number, at least 1")),
    ({"rope.freq_base": 0.0}, NAMED),
    ({"rope.freq_base": math.inf}, NAMED),
    ({"rope.freq_base": "10000"}, Refusal("is a string, expected a number")),
    ({"rope.scaling.factor": 4.0}, rope("linear", factor=4.0)),  # llama.cpp: linear by default
    ({"rope.scaling.factor": 0.0}, SAME),
    ({"rope.scaling.factor": 0.5}, Refusal("is 0.5, expected a number, at least 1")),
    ({"rope.scale_linear": 4.0}, rope("linear", factor=4.0)),  # the first name of the key
    ({"rope.scale_linear": 4.0, "rope.scaling.factor": 2.0}, NAMED),
    ({"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}, rope("linear", factor=4.0)),
    ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, SAME),
    ({"rope.scaling.type": "longrope"}, Refusal("is 'longrope', expected none, linear or yarn")),
    ({"rope.scaling.type": 2}, Refusal("is an integer, expected a string")),
    (YARN, rope("yarn", **YARN_ROPE)),
    ({"rope.freq_base": 1.0, **YARN}, Refusal("is 1, expected more than 1 with YaRN")),
    ({"rope.scaling.original_context_length": 16}, SAME),  # of YaRN only
    ({"rope.scaling.original_context_length": 0, "rope.scaling.type": "yarn"}, NAMED),
    ({"rope.scaling.yarn_beta_fast": 8.0, **YARN}, rope("yarn", **YARN_ROPE, beta_fast=8.0)),
    ({"rope.scaling.yarn_beta_slow": 8.0, **YARN}, rope("yarn", **YARN_ROPE, beta_slow=8.0)),
    ({"rope.scaling.yarn_beta_slow": 0.0, **YARN}, Refusal("is 0, expected a positive number")),
    ({"rope.scaling.yarn_beta_fast": 0.5, **YARN}, NAMED),
    ({"rope.scaling.yarn_beta_fast": 8.0}, SAME),
    ({"rope.scaling.yarn_beta_slow": 4.0}, SAME),
    ({"rope.scaling.attn_factor": 0.75, **YARN}, rope("yarn", **YARN_ROPE, attention_factor=0.75 * YARN_ATTENTION)),
    ({"rope.scaling.attn_factor": 1.0}, SAME),
    ({"rope.scaling.attn_factor": 2.0}, NAMED),
    ({"rope.scaling.attn_factor": 0.0, **YARN}, NAMED),
    ({"rope.scaling.yarn_ext_factor": 1.0, **YARN}, rope("yarn", **YARN_ROPE)),
    ({"rope.scaling.yarn_ext_factor": 0.5, **YARN}, NAMED),
    ({"rope.scaling.yarn_ext_factor": 1.0}, NAMED),
    ({"rope.scaling.yarn_ext_factor": -1.0}, SAME),
    ({"rope.scaling.yarn_attn_factor": 2.0, **YARN}, NAMED),
    ({"rope.scaling.yarn_log_multiplier": 0.1, **YARN}, NAMED),
    ({"rope.scaling.alpha": 1000.0}, NAMED),
]
OF_FEED_FORWARD = [({"feed_forward_length": 24}, SHAPE)]
OF_ALL = OF_ALL + OF_FEED_FORWARD
OF_LLAMA = OF_DECODERS + OF_KEY_HEADS + OF_RMS_NORMS + OF_WHOLE_HEADS + OF_ROTARY
# Cases of rotary embeddings without a difference to the result of transformers, or that are refused.
OF_ROTARY_ALONE = [case for case in OF_ROTARY if isinstance(case[1], Refusal) or not case[1]]


def of_epsilon(setting: str) -> list:
    """Of layer norms, whose epsilon has this name in transformers."""
    return [
        ({"attention.layer_norm_epsilon": 0.5}, {setting: 0.5}),
        ({"attention.layer_norm_epsilon": None}, NAMED),
        ({"attention.layer_norm_rms_epsilon": 0.5}, SAME),
    ]


OF_LAYER_NORMS = [
    ({"attention.key_length": 16}, NAMED),
    ({"context_length": 40}, Refusal("tensor position_embd.weight has shape", names_key=False)),
    ({"attention.head_count_kv": 4}, SAME),
    ({"attention.head_count_kv": 2}, NAMED),
    ({"attention.layer_norm_rms_epsilon": 0.5}, SAME),  # these models have no RMS norms
    ({"attention.layer_norm_epsilon": None}, NAMED),
    ({"attention.layer_norm_epsilon": -1.0}, NAMED),
]
WITHOUT_WINDOW = [({"attention.sliding_window": 3}, SAME)]  # llama.cpp: no window in these architectures
OF_OLMO2 = [
    ({"attention.sliding_window": 0}, SAME),
    ({"attention.sliding_window": 3}, Refusal("is 3, expected 0: with a window it is OLMo 3")),
]
OF_GEMMA2 = [
    ({"attention.sliding_window": 2}, {"sliding_window": 2}),
    ({"attn_logit_softcapping": 2.0}, {"attn_logit_softcapping": 2.0}),
    ({"attn_logit_softcapping": -1.0}, Refusal("at least 0")),
    ({"final_logit_softcapping": 2.0}, {"final_logit_softcapping": 2.0}),
    ({"final_logit_softcapping": 0.0}, {"final_logit_softcapping": None}),
]
OF_GRANITE = [
    ({"embedding_scale": 2.0}, {"embedding_multiplier": 2.0}),
    ({"attention.scale": 0.2}, {"attention_multiplier": 0.2}),
    ({"residual_scale": 0.5}, {"residual_multiplier": 0.5}),
    ({"logit_scale": 4.0}, {"logits_scaling": 4.0}),
    *(({key: None}, NAMED) for key in ("embedding_scale", "attention.scale", "residual_scale", "logit_scale")),
    ({"logit_scale": 0.0}, Refusal("is 0, expected a positive number")),
    ({"rope.scaling.finetuned": False}, Refusal("is false, expected true: heed's Granite turns queries and keys")),
]
OF_PHI3 = [
    ({"attention.sliding_window": 3}, {"sliding_window": 3}),  # llama.cpp computes no window
    ({"attention.sliding_window": 0}, {"sliding_window": None}),
    ({"attention.sliding_window": None}, {"sliding_window": None}),
    ({"rope.dimension_count": 8}, rope("default", partial_rotary_factor=1.0)),
    ({"rope.freq_base": 500.0}, rope("default", rope_theta=500.0, partial_rotary_factor=0.5)),
]
PARALLEL = [({"use_parallel_residual": True}, SAME), ({"use_parallel_residual": False}, NAMED)]
WITHOUT_ORDER = [case for case in OF_ALL if "use_parallel_residual" not in case[0]]
ONE_KEY_A_HEAD = [({"attention.head_count_kv": 2}, NAMED), ({"attention.key_length": 16}, NAMED)]

CASES = {
    "granite": OF_ALL + OF_LLAMA + WITHOUT_WINDOW + OF_GRANITE,
    "phi3": OF_ALL + OF_DECODERS + OF_KEY_HEADS + OF_RMS_NORMS + OF_ROTARY_ALONE + OF_PHI3,
    "phi2": [
        *(WITHOUT_ORDER + PARALLEL + OF_DECODERS + OF_ROTARY_ALONE + OF_PARTS_OF_HEADS + WITHOUT_WINDOW),
        *of_epsilon("layer_norm_eps"),
        ({"attention.head_count_kv": 2}, SHAPE),
    ],
    "gptneox": [
        *(WITHOUT_ORDER + OF_DECODERS + OF_ROTARY_ALONE + OF_PARTS_OF_HEADS + WITHOUT_WINDOW + ONE_KEY_A_HEAD),
        *of_epsilon("layer_norm_eps"),
        ({"use_parallel_residual": False}, {"use_parallel_residual": False}),
        ({"use_parallel_residual": None}, Refusal("true or false", names_key=False)),
    ],
    "stablelm": [
        *(WITHOUT_ORDER + OF_DECODERS + OF_KEY_HEADS + OF_ROTARY_ALONE + OF_PARTS_OF_HEADS + WITHOUT_WINDOW),
        *of_epsilon("layer_norm_eps"),
        # The norms of the file tell; converters wrote this key for models that do otherwise.
        ({"use_parallel_residual": True}, SAME),
        ({"use_parallel_residual": False}, SAME),
    ],
    "starcoder2": [
        *(OF_ALL + OF_DECODERS + OF_KEY_HEADS + OF_WHOLE_HEADS + OF_ROTARY + WITHOUT_WINDOW),
        *of_epsilon("norm_epsilon"),
    ],
    "command-r": [
        *(WITHOUT_ORDER + PARALLEL + OF_DECODERS + OF_KEY_HEADS + OF_WHOLE_HEADS + OF_ROTARY + WITHOUT_WINDOW),
        *of_epsilon("layer_norm_eps"),
        ({"logit_scale": 0.5}, {"logit_scale": 0.5}),
        ({"logit_scale": None}, NAMED),
    ],
    "falcon": [
        *(WITHOUT_ORDER + PARALLEL + OF_DECODERS + OF_KEY_HEADS + OF_WHOLE_HEADS + OF_ROTARY + WITHOUT_WINDOW),
        *of_epsilon("layer_norm_epsilon"),
    ],
    "bloom": OF_ALL + OF_DECODERS + WITHOUT_WINDOW + ONE_KEY_A_HEAD + of_epsilon("layer_norm_epsilon"),
    "qwen3moe": [case for case in OF_ALL if case not in OF_FEED_FORWARD] + OF_LLAMA + WITHOUT_WINDOW + OF_EXPERTS,
    "llama": OF_ALL + OF_LLAMA + WITHOUT_WINDOW + OF_MIXTRAL,
    "qwen2": OF_ALL + OF_LLAMA + WITHOUT_WINDOW,
    "qwen3": OF_ALL + OF_LLAMA + WITHOUT_WINDOW,
    "olmo2": OF_ALL + OF_LLAMA + OF_OLMO2,
    "gemma2": OF_ALL + OF_LLAMA + OF_GEMMA2,
    "gpt2": [
        *OF_ALL,
        *OF_LAYER_NORMS,
        *WITHOUT_WINDOW,
        ({"attention.layer_norm_epsilon": 0.5}, {"layer_norm_epsilon": 0.5}),
        ({"attention.causal": True}, SAME),
        ({"attention.causal": False}, NAMED),
    ],
    "bert": [
        *OF_ALL,
        *OF_LAYER_NORMS,
        *WITHOUT_WINDOW,
        ({"attention.layer_norm_epsilon": 0.5}, {"layer_norm_eps": 0.5}),
        ({"attention.causal": False}, SAME),
        ({"attention.causal": True}, NAMED),
    ],
}
CASES = {
    architecture: cases if architecture in ("llama", "qwen3moe") else cases + WITHOUT_EXPERTS
    for architecture, cases in CASES.items()
}


@pytest.fixture(scope="module", params=ARCHITECTURES)
def file(request, tmp_path_factory) -> GgufModel:
    return GgufModel(request.param, tmp_path_factory.mktemp("gguf"))


def assert_refused(file: GgufModel, keys: dict[str, Any], pattern: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=pattern):
        heed.models.load(file.write(keys))
    try:
        refusals = heed.models.describe(file.folder / "model.gguf")[0]["refusals"]
    except (ValueError, RuntimeError) as error:  # of the header
        refusals = [str(error)]
    assert any(re.search(pattern, refusal) for refusal in refusals)


def full_names(file: GgufModel, keys: dict[str, Any]) -> dict[str, Any]:
    return {f"{file.architecture}.{key}": value for key, value in keys.items()}


# Cases that several architectures have are tried with all of them only with --exhaustive.
FIRST = ("llama", "qwen2", "qwen3", "olmo2", "gemma2", "gpt2", "bert")
SHARED = {id(case) for case in OF_ALL + OF_LLAMA + OF_PARTS_OF_HEADS + WITHOUT_WINDOW + WITHOUT_EXPERTS}


def test_keys_with_a_meaning(file: GgufModel, is_exhaustive: bool) -> None:
    base = file.expected(IDS)
    for case in CASES[file.architecture]:
        keys, outcome = case
        if not is_exhaustive and file.architecture not in FIRST and id(case) in SHARED:
            continue
        changed = full_names(file, keys)
        if isinstance(outcome, Refusal):
            name = re.escape(next(iter(changed))) if outcome.names_key else ""
            assert_refused(file, changed, f"{name}.*(?:{outcome.pattern})")
            continue
        expected = file.expected(IDS, **outcome) if outcome else base
        assert is_close(file.found(IDS, changed), expected), (keys, outcome)
        assert is_close(base, expected) == (not outcome), f"{outcome} changes nothing"


def known_keys() -> Iterator[str]:
    """All of the library gguf, with {arch}."""

    def walk(keys: type) -> Iterator[str]:
        for name, value in vars(keys).items():
            if isinstance(value, type):
                yield from walk(value)
            elif not name.startswith("_"):
                yield value

    yield from walk(gguf.Keys)


def test_every_other_key_of_the_architecture_is_refused(file: GgufModel, is_exhaustive: bool) -> None:
    tried = {f"{{arch}}.{key}" for keys, _ in CASES[file.architecture] for key in keys}
    others = {key for key in known_keys() if key.startswith("{arch}.")} - tried
    assert len(others) > 70
    tried_now = sorted(others) if is_exhaustive or file.architecture in FIRST else sorted(others)[::6]
    for key in [*tried_now, "{arch}.no_such_key"]:
        name = key.format(arch=file.architecture, dense="dense_2")
        assert_refused(file, {name: 7}, f"{re.escape(name)} is 7, expected")


NOT_OF_MODELS = ("adapter.", "clip.", "imatrix.", "diffusion.", "xielu.")
LISTED = (
    "llama, qwen2, qwen3, qwen3moe, olmo2, smollm3, gemma2, gemma3, granite, phi3, phi2, gptneox, stablelm, starcoder2, command-r, "
    "falcon, bloom, gpt2 or bert"
)
SAID_OF_FILES = {
    "general.type": ("adapter", "is 'adapter', expected 'model'"),
    "general.architecture": ("mamba", f"is 'mamba', expected {LISTED}"),
    "general.quantization_version": (1, "is 1, expected 2"),
    "general.alignment": (33, "is 33, a power of two is expected"),
    "split.count": (3, "first of 3 parts"),
}


def test_descriptions_change_nothing(llama: GgufModel) -> None:
    keys = {key.format(id=0) for key in known_keys() if key.startswith(("general.", "split."))} - set(SAID_OF_FILES)
    assert len(keys) > 40
    # Keys that tools write under their own names are also ignored.
    noted = dict.fromkeys([*keys, "quantize.imatrix.chunks_count", "somebody.note"], 7)
    assert is_close(llama.found(IDS, {**noted, "general.type": "model", "split.count": 1}), llama.expected(IDS))


def test_keys_of_other_files_are_refused(llama: GgufModel) -> None:
    for key, (value, message) in SAID_OF_FILES.items():
        assert_refused(llama, {key: value}, message)
    keys = [key for key in known_keys() if key.startswith(NOT_OF_MODELS)]
    assert len(keys) > 40
    for key in keys:
        assert_refused(llama, {key: 7}, f"{re.escape(key)} is 7, expected no such key")


IDLE = "fim_pre fim_suf fim_mid prefix suffix middle"  # tokens of prompts with a gap
IDLE_OF_TOKENIZERS = {
    **{f"tokenizer.ggml.{role}_token_id": 7 for role in IDLE.split()},
    "tokenizer.ggml.scores": [0.5] * VOCABULARY,  # BPE over bytes ranks by merges
    "tokenizer.ggml.add_sep_token": True,  # pairs of texts are refused
    "tokenizer.ggml.add_space_prefix": False,
    "tokenizer.ggml.remove_extra_whitespaces": False,
    "tokenizer.ggml.mask_token_id": 7,
    "tokenizer.ggml.padding_token_id": 7,
    "tokenizer.ggml.seperator_token_id": 7,
    "tokenizer.ggml.unknown_token_id": 7,
    "tokenizer.huggingface.json": "{}",
    "tokenizer.rwkv.world": "x",
    "tokenizer.chat_templates": ["tool"],
    "tokenizer.chat_template.{name}": "x",
}
STOPS = [f"tokenizer.ggml.{role}_token_id" for role in "eos eot eom fim_pad fim_rep fim_sep".split()]
OF_TOKENIZERS = {
    "tokenizer.ggml.model": [("rwkv", "is 'rwkv', expected gpt2, llama, t5 or bert"), (3, "is an integer, expected a string")],
    "tokenizer.ggml.pre": [("x", "is 'x', expected one of default, gpt-2"), (["gpt-2"], "is an array of strings")],
    "tokenizer.ggml.tokens": [("A", "is a string, expected an array of strings"), (None, "is 'tokenizer.ggml.tokens'")],
    "tokenizer.ggml.token_type": [([1] * 39, "has 39 values for 40 tokens"), ([7] * 40, r"\[0\] is 7, expected 0 to")],
    "tokenizer.ggml.merges": [(["A ?"], r"'A \?' is not two tokens that make a third"), (7, "an array of strings")],
    "tokenizer.ggml.add_space_prefix": [(True, "is true, expected false")],
    "tokenizer.ggml.remove_extra_whitespaces": [(True, "is true, expected false")],
    "tokenizer.ggml.precompiled_charsmap": [([1, 2], "is an array of 2 integers, expected no such key")],
    "tokenizer.ggml.normalizer.lowercase": [(True, "is true, expected false")],
    "tokenizer.ggml.no_such_key": [(7, "is 7, expected no such key")],
    "tokenizer.ggml.add_bos_token": [(True, "bos_token_id is missing"), (1, "is an integer, expected a bool")],
    "tokenizer.ggml.add_eos_token": [(True, "eos_token_id is missing")],
    "tokenizer.ggml.bos_token_id": [(VOCABULARY, "is 40, expected 0 <= id < 40"), ("A", "is a string")],
    **{key: [(VOCABULARY, "is 40, expected 0 <= id < 40")] for key in STOPS},
}
CHECKED_BY_MODELS = {"tokenizer.ggml.token_type_count", "tokenizer.chat_template"}


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> GgufModel:
    return GgufModel("llama", tmp_path_factory.mktemp("gguf"))


def test_every_key_of_tokenizers(llama: GgufModel) -> None:
    known = {key for key in known_keys() if key.startswith("tokenizer.")}
    assert known <= IDLE_OF_TOKENIZERS.keys() | OF_TOKENIZERS.keys() | CHECKED_BY_MODELS
    model = heed.models.load(llama.write(IDLE_OF_TOKENIZERS))
    assert model.encode("CAB") == [2, VOCABULARY - 1] == heed.models.load(llama.write()).encode("CAB")
    assert model.decode([2, 39, 7]) == "CABH"
    for key, cases in OF_TOKENIZERS.items():
        for value, message in cases:
            assert_refused(llama, {key: value}, f"{re.escape(key.split('_token')[0])}.*{message}|{message}")


def test_ends_of_texts(llama: GgufModel) -> None:
    first = heed.models.load(llama.write()).generate(IDS, max_tokens=1).ids[0]
    for key in STOPS:
        written = heed.models.load(llama.write({key: first})).generate(IDS, max_tokens=3)
        assert (written.ids, written.reason) == ([], "end_token"), key
    frame = {"tokenizer.ggml.bos_token_id": 5, "tokenizer.ggml.eos_token_id": 6}
    frame |= {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    assert heed.models.load(llama.write(frame)).encode("AB") == [5, VOCABULARY - 1, 6]


def test_pooling(tmp_path_factory) -> None:
    file = GgufModel("bert", tmp_path_factory.mktemp("gguf"))
    states = file.expected(file_ids := heed.models.load(file.write()).encode("CAFE"))
    assert len(file_ids) == 4
    for kind, expected in ((0, states.mean(axis=0)), (1, states.mean(axis=0)), (2, states[0])):
        model = heed.models.load(file.write({"bert.pooling_type": kind}))
        assert is_close(model.embed(["CAFE"])[0], expected), kind
    assert_refused(file, {"tokenizer.ggml.token_type_count": 3}, "token_type_count is 3, expected 2: so many rows")
