"""Models of transformers with random weights as heed.transformers registers it: what they compute by heed is what
they compute by transformers' own steps."""

from collections.abc import Iterator

import pytest
import torch

transformers = pytest.importorskip("transformers")

from transformers import AttentionInterface, AttentionMaskInterface  # noqa: E402

import heed.torch  # noqa: E402
import heed.transformers  # noqa: E402
from test_transformers import CONFIGS, PADDING, PROMPTS, SIZES, VOCABULARY, generate, make_model  # noqa: E402

LEFT = PADDING
RIGHT = PADDING.flip(1)
FULL = torch.ones_like(PADDING)
ALL = CONFIGS | {
    "qwen3": lambda: transformers.Qwen3Config(**SIZES),
    "gemma3": lambda: transformers.Gemma3TextConfig(**SIZES, sliding_window=6, query_pre_attn_scalar=8),
}


def test_who_registers() -> None:
    """Importing heed.transformers did; the function does it again where something else came after."""
    before = AttentionInterface()["heed"], AttentionMaskInterface()["heed"]
    AttentionInterface.register("heed", AttentionInterface()["sdpa"])
    AttentionMaskInterface.register("heed", AttentionMaskInterface()["sdpa"])
    heed.torch.register_transformers()
    assert (AttentionInterface()["heed"], AttentionMaskInterface()["heed"]) == before


@pytest.fixture(scope="module", autouse=True)
def more_models() -> Iterator[None]:
    added = {name: make for name, make in ALL.items() if name not in CONFIGS}
    CONFIGS.update(added)
    yield
    for name in added:
        del CONFIGS[name]


def hidden_states(model, implementation: str, mask: torch.Tensor, **inputs) -> list[torch.Tensor]:
    """After every layer, where there is text."""
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        found = model(attention_mask=mask.long(), output_hidden_states=True, **inputs)
    layers = getattr(found, "hidden_states", None) or (*found.encoder_hidden_states, *found.decoder_hidden_states)
    return [layer[mask] if layer.shape[:2] == mask.shape else layer for layer in layers]


def assert_same_states(model, mask: torch.Tensor, **inputs) -> None:
    found, expected = (hidden_states(model, name, mask, **inputs) for name in ("heed", "eager"))
    assert len(found) == len(expected) > 2
    for one, other in zip(found, expected):
        scale = other.abs().max().clamp(min=1.0)
        torch.testing.assert_close(one / scale, other / scale, atol=1e-5, rtol=0)


@pytest.mark.parametrize("mask", [FULL, LEFT, RIGHT], ids=["full", "left", "right"])
@pytest.mark.parametrize("name", ALL)
def test_hidden_states(name: str, mask: torch.Tensor) -> None:
    assert_same_states(make_model(name), mask, input_ids=torch.where(mask, PROMPTS, 0))


def tokens_of(model, implementation: str, mask: torch.Tensor, **options) -> torch.Tensor:
    model.set_attn_implementation(implementation)
    return model.generate(
        torch.where(mask, PROMPTS, 0), attention_mask=mask.long(), do_sample=False, max_new_tokens=20, **options
    )


CACHES = {"dynamic": {}, "static": {"cache_implementation": "static"}, "none": {"use_cache": False}}


@pytest.mark.parametrize("mask", [FULL, LEFT], ids=["full", "left"])
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", ALL)
def test_greedy_tokens(name: str, cache: str, mask: torch.Tensor) -> None:
    model = make_model(name)
    expected = tokens_of(model, "eager", mask)
    assert torch.equal(tokens_of(model, "heed", mask, **CACHES[cache]), expected)


@pytest.mark.parametrize("name", CONFIGS)
def test_caches_of_heed_are_as_they_were(name: str) -> None:
    model = make_model(name)
    expected, expected_logits = generate(model)
    cache = heed.transformers.KvCache(page_size=16)
    tokens, logits = generate(model, cache)
    assert torch.equal(tokens, expected)
    torch.testing.assert_close(logits, expected_logits, atol=2e-4, rtol=1e-5)
    if name == "llama":
        assert [len(sequence) for sequence in cache.layers[0]._sequences] == [28, 24, 27]  # padding is not stored


ENCODER_DECODER = {
    "vocab_size": VOCABULARY, "d_model": 32, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": None, "decoder_start_token_id": 1, "forced_eos_token_id": None, "dropout": 0.0,
}  # fmt: skip


def bart():
    return transformers.BartForConditionalGeneration(
        transformers.BartConfig(
            **ENCODER_DECODER, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, init_std=0.3,
        )
    )  # fmt: skip


def t5():
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, pad_token_id=0,
            decoder_start_token_id=0, eos_token_id=None, dropout_rate=0.0,
        )
    )  # fmt: skip


SEQ2SEQ = {"bart": bart, "t5": t5}


@pytest.mark.parametrize("mask", [FULL, RIGHT], ids=["full", "right"])
@pytest.mark.parametrize("name", SEQ2SEQ)
def test_encoders_and_decoders(name: str, mask: torch.Tensor) -> None:
    """Bidirectional, causal and cross attention, and T5's position biases."""
    torch.manual_seed(1)
    model = SEQ2SEQ[name]().eval()
    targets = PROMPTS[:, :5]
    assert_same_states(model, mask, input_ids=torch.where(mask, PROMPTS, 0), decoder_input_ids=targets)
    options = {"num_beams": 2}
    for more in ({}, options):
        expected = tokens_of(model, "eager", mask, **more)
        assert torch.equal(tokens_of(model, "heed", mask, **more), expected)


@pytest.mark.parametrize("mask", [FULL, LEFT, RIGHT], ids=["full", "left", "right"])
def test_bidirectional(mask: torch.Tensor) -> None:
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    assert_same_states(transformers.BertModel(config).eval(), mask, input_ids=torch.where(mask, PROMPTS, 0))


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_training(name: str) -> None:
    """Gradients of all parameters, sinks among them."""
    model = make_model(name).train()
    # The tokens after padding are ignored: a row that sees nothing is 0 in heed and a mean in eager attention.
    labels = PROMPTS.masked_fill(~(LEFT & LEFT.roll(1, 1)), -100)
    labels[:, 0] = -100
    gradients = []
    for implementation in ("heed", "eager"):
        model.set_attn_implementation(implementation)
        model.zero_grad()
        model(torch.where(LEFT, PROMPTS, 0), attention_mask=LEFT.long(), labels=labels).loss.backward()
        gradients.append({key: x.grad for key, x in model.named_parameters() if x.grad is not None})
    assert name != "gpt_oss" or any("sinks" in key for key in gradients[0])
    for key, gradient in gradients[1].items():
        scale = gradient.abs().max().clamp(min=1e-3)
        torch.testing.assert_close(gradients[0][key] / scale, gradient / scale, atol=1e-4, rtol=0)


def test_weights_on_request() -> None:
    model = make_model()
    found = []
    for implementation in ("heed", "eager"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            found.append(model(PROMPTS, output_attentions=True).attentions)
    assert [layer.shape for layer in found[0]] == [(3, 4, 9, 9)] * 2
    torch.testing.assert_close(*found, atol=1e-5, rtol=0)


def test_half_precision() -> None:
    model, found = make_model(dtype=torch.bfloat16), []
    for implementation in ("heed", "eager"):
        model.set_attn_implementation(implementation)
        with torch.no_grad():
            found.append(model(PROMPTS, attention_mask=FULL.long()).logits.float())
    assert 0 < (found[0] - found[1]).square().mean().sqrt() < 0.3


def test_a_cache_of_pages_is_refused() -> None:
    x = torch.ones(1, 2, 3, 8)
    with pytest.raises(ValueError, match="there is a object, expected keys and values in tensors"):
        heed._any_model._attention(torch.nn.Module(), x, x, x, None, cache=object())
