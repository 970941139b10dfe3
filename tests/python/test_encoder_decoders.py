"""Encoder-decoders in heed beside transformers: T5, BART and Marian, small and random."""

import json
import pathlib
import subprocess

import heed
import numpy as np
import pytest
import tokenizers
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

VOCABULARY = 40
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 12, "d_ff": 56, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4}
BART = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 56,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
    "eos_token_id": 39,
    "forced_eos_token_id": None,
}
NO_ENDS = {"decoder_start_token_id": 0, "eos_token_id": 39}
MODELS = {
    "t5": lambda: T5ForConditionalGeneration(T5Config(**T5, **NO_ENDS)),
    "t5, few buckets": lambda: T5ForConditionalGeneration(
        T5Config(**T5, **NO_ENDS, relative_attention_num_buckets=8, relative_attention_max_distance=9)
    ),
    "t5 1.1": lambda: T5ForConditionalGeneration(
        T5Config(**T5, **NO_ENDS, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    ),
    "bart": lambda: BartForConditionalGeneration(BartConfig(**BART)),
    "bart, scaled": lambda: BartForConditionalGeneration(
        BartConfig(**BART, scale_embedding=True, activation_function="relu")
    ),
    "marian": lambda: MarianMTModel(MarianConfig(**BART, scale_embedding=True, activation_function="swish")),
}
SOURCE = [5, 9, 31, 7, 7, 20, 3, 12, 39, 2, 6, 38]
TARGET = [0, 8, 30, 2, 17]


@pytest.fixture(scope="module", params=MODELS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    model = MODELS[request.param]().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name and request.param == "marian":
                continue
            noise = torch.randn(parameter.shape, generator=generator)
            # T5 does not divide scores by the root of the head size.
            scale = 0.15 if request.param.startswith("t5") else 0.3
            parameter.copy_(noise * scale if parameter.dim() > 1 else parameter + noise * 0.2)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=generator))
    model.config._attn_implementation = "eager"
    model.save_pretrained(folder)
    return heed.models.load(folder), type(model).from_pretrained(folder, attn_implementation="eager").eval(), folder


def assert_close(found: np.ndarray, expected: torch.Tensor) -> None:
    expected = expected.detach().numpy()
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))


def test_every_state_and_weight(both) -> None:
    model, reference, _ = both
    with torch.no_grad():
        expected = reference(
            input_ids=torch.tensor([SOURCE]),
            decoder_input_ids=torch.tensor([TARGET]),
            output_hidden_states=True,
            output_attentions=True,
        )
    encoder = model.encoder
    for found, state in zip(encoder.hidden_states(SOURCE), expected.encoder_hidden_states, strict=True):
        assert_close(found, state[0])
    for found, weights in zip(encoder.attentions(SOURCE), expected.encoder_attentions, strict=True):
        assert_close(found, weights[0])
    for found, state in zip(model.hidden_states(TARGET, source=SOURCE), expected.decoder_hidden_states, strict=True):
        assert_close(found, state[0])
    for found, weights in zip(model.attentions(TARGET, source=SOURCE), expected.decoder_attentions, strict=True):
        assert_close(found, weights[0])
    for found, weights in zip(model.cross_attentions(TARGET, SOURCE), expected.cross_attentions, strict=True):
        assert_close(found, weights[0])
    assert_close(model.logits(TARGET, source=SOURCE), expected.logits[0])


def test_greedy_texts(both) -> None:
    model, reference, _ = both
    for source in (SOURCE, SOURCE[:1], SOURCE[3:8]):
        with torch.no_grad():
            expected = reference.generate(
                input_ids=torch.tensor([source]), max_new_tokens=40, min_new_tokens=0, do_sample=False, num_beams=1, use_cache=False
            )[0].tolist()
        found = model.generate(source, max_tokens=40)
        ended = [39] if found.reason == "end_token" else []
        assert expected[1:] == found.ids + ended


def test_sizes(both) -> None:
    model, reference, folder = both
    (described,) = heed.models.describe(folder)
    assert described["opens"], described["refusals"]
    parameters = {id(p): p.numel() for name, p in reference.named_parameters()}
    assert model.num_parameters >= sum(parameters.values())
    assert model.config["has_encoder"]
    assert not model.encoder.config["has_encoder"]


def test_a_source_is_needed_and_fits(both) -> None:
    model, _, _ = both
    with pytest.raises(ValueError, match="writes of a source text, and source is not given"):
        model.logits(TARGET)
    with pytest.raises(ValueError, match="has no encoder beside its layers"):
        model.encoder.forward(SOURCE, source=SOURCE)
    with pytest.raises(ValueError, match=r"ids\[1\] is 40, expected one of \[0, 40\)"):
        model.logits(TARGET, source=[1, 40])
    with pytest.raises(ValueError, match="has no encoder beside its layers"):
        _ = model.encoder.encoder


WORDS = ["<unk>", *(f"w{i}" for i in range(1, VOCABULARY - 1)), "</s>"]


def write_word_tokenizer(folder: pathlib.Path) -> None:
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>").save_pretrained(folder)


def test_translations_and_their_alignment(both, build: pathlib.Path) -> None:
    _, reference, folder = both
    write_word_tokenizer(folder)
    text = " ".join(WORDS[i] for i in SOURCE if i != 39)
    source = [i for i in SOURCE if i != 39]
    command = [build / "heed", "translate", "--model", folder, "--json", "--show-alignment", text]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["source"] == text.split()
    written = [WORDS.index(token) for token in found["target"]]
    assert written == heed.models.load(folder).generate(text, max_tokens=512).ids
    if not written:
        return
    with torch.no_grad():
        start = reference.config.decoder_start_token_id
        expected = reference(
            input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[start, *written[:-1]]]), output_attentions=True
        )
    assert_close(np.array(found["alignment"], np.float32), torch.cat(expected.cross_attentions, 1)[0])
    chosen = expected.logits[0].log_softmax(-1)[range(len(written)), written].sum().item()
    assert found["log_probability"] == pytest.approx(chosen, rel=1e-4, abs=1e-4)
    ran = subprocess.run([*command[:4], "--beam", "3", text], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "--beam is 3, expected 1" in ran.stderr


CASES = {
    "t5": (
        T5ForConditionalGeneration,
        T5Config(**T5, **NO_ENDS),
        {
            "relative_attention_num_buckets": 16,
            "relative_attention_max_distance": 20,
            "layer_norm_epsilon": 0.5,
            "feed_forward_proj": "gelu",
            "tie_word_embeddings": False,
            "dense_act_fn": "silu",
            "scale_decoder_outputs": False,
            "num_heads": 6,
            "d_ff": 40,
            "decoder_start_token_id": 3,
        },
        {"is_decoder": True, "is_encoder_decoder": False, "feed_forward_proj": "gated-mish"},
        {"dropout_rate": 0.5, "initializer_factor": 2.0, "classifier_dropout": 0.5, "pad_token_id": 3, "bos_token_id": 4},
    ),
    "bart": (
        BartForConditionalGeneration,
        BartConfig(**BART),
        {"scale_embedding": True, "activation_function": "relu", "decoder_attention_heads": 8},
        {"is_decoder": True, "is_encoder_decoder": False, "activation_function": "mish", "d_model": 33, "decoder_start_token_id": 40},
        {
            "dropout": 0.5,
            "attention_dropout": 0.5,
            "activation_dropout": 0.5,
            "init_std": 0.5,
            "encoder_layerdrop": 0.5,
            "decoder_layerdrop": 0.5,
            "classifier_dropout": 0.5,
            "num_beams": 7,
        },
    ),
    "marian": (
        MarianMTModel,
        MarianConfig(**BART),
        {"scale_embedding": True, "activation_function": "relu", "encoder_attention_heads": 8},
        {
            "share_encoder_decoder_embeddings": False,
            "decoder_vocab_size": 41,
            "max_position_embeddings": 131073,
            "is_encoder_decoder": False,
            "unknown_key": 3,
        },
        {"dropout": 0.5, "static_position_embeddings": True, "normalize_before": False},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_member_of_the_configuration(name: str, tmp_path: pathlib.Path) -> None:
    kind, config, changing, refused, harmless = CASES[name]
    torch.manual_seed(0)
    kind(config).eval().save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    members = json.loads(file.read_text())

    def run(**changed) -> np.ndarray:
        file.write_text(json.dumps(members | changed))
        return heed.models.load(tmp_path).logits(TARGET, source=SOURCE)

    plain = run()
    for key, value in harmless.items():
        np.testing.assert_array_equal(run(**{key: value}), plain, err_msg=key)
    for key, value in refused.items():
        with pytest.raises((ValueError, RuntimeError)):
            run(**{key: value})
    for key, value in changing.items():
        if key in ("num_heads", "d_ff", "decoder_attention_heads", "encoder_attention_heads", "relative_attention_num_buckets"):
            model = kind(type(config)(**{**config.to_dict(), key: value})).eval()
            model.save_pretrained(tmp_path / "other")
            found = heed.models.load(tmp_path / "other").logits(TARGET, source=SOURCE)
        else:
            found = run(**{key: value})
            model = kind.from_pretrained(tmp_path).eval()
        with torch.no_grad():
            expected = model(input_ids=torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([TARGET])).logits[0]
        assert_close(found, expected)
