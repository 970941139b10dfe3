"""generate() of small models with random weights: the same tokens from heed's cache as from transformers' own."""

import copy

import pytest
import torch

transformers = pytest.importorskip("transformers")

import heed.transformers  # noqa: E402
from heed.transformers import KvCache  # noqa: E402

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256,
    "pad_token_id": 0, "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
# Plain, with windows, with windows and a softcap, and with windows and sinks.
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SIZES),
    "mistral": lambda: transformers.MistralConfig(**SIZES, sliding_window=6),
    "gemma2": lambda: transformers.Gemma2Config(
        **SIZES, sliding_window=6, query_pre_attn_scalar=8, attn_logit_softcapping=2.0
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SIZES, sliding_window=6, num_local_experts=2, num_experts_per_tok=1
    ),
}
PROMPTS = torch.randint(1, VOCABULARY, (3, 9), generator=torch.Generator().manual_seed(0))
# Texts of nine, five and eight tokens, padded on the left.
PADDING = torch.arange(9) >= torch.tensor([[0], [4], [1]])


def make_model(name: str = "llama", dtype: torch.dtype = torch.float32):
    torch.manual_seed(1)
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), attn_implementation="eager")
    for parameter in model.parameters():
        if parameter.ndim > 1:  # with the usual small numbers one token would repeat forever
            torch.nn.init.normal_(parameter, std=0.5)
    return model.to(dtype).eval()


def generate(model, cache=None, prompts=PROMPTS, mask=PADDING, **options):
    """The tokens and logits of 20 steps, by heed where there is a cache of it."""
    model.set_attn_implementation("heed" if isinstance(cache, KvCache) else "eager")
    done = model.generate(
        torch.where(mask, prompts, 0), attention_mask=mask.long(), past_key_values=cache, do_sample=False,
        **{"max_new_tokens": 20, "output_logits": True, "return_dict_in_generate": True} | options,
    )  # fmt: skip
    return done.sequences, torch.stack(done.logits or (torch.zeros(0),))


BEAMS = pytest.mark.parametrize("beams", [{}, {"num_beams": 3}, {"num_beams": 4, "num_return_sequences": 2}])


@BEAMS
@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_tokens(name: str, beams: dict) -> None:
    model = make_model(name)
    expected, expected_logits = generate(model, **beams)
    cache = KvCache(page_size=16)
    tokens, logits = generate(model, cache, **beams)
    assert torch.equal(tokens, expected)
    assert len(expected[0, 9:].unique()) > 1 or name == "gemma2"
    torch.testing.assert_close(logits, expected_logits, atol=2e-4, rtol=1e-5)
    assert cache.get_seq_length() == 9 + 20 - 1


def test_padding_is_not_stored() -> None:
    cache = KvCache(page_size=16)
    generate(make_model(), cache, max_new_tokens=1)
    for layer in cache.layers:
        assert [len(sequence) for sequence in layer._sequences] == [9, 5, 8]


def test_beams_share_pages() -> None:
    model, prompt = make_model(), torch.randint(1, VOCABULARY, (1, 64))
    caches = [KvCache(page_size=16), KvCache(page_size=16)]
    for cache, beams in zip(caches, (1, 8)):
        generate(model, cache, prompt, torch.ones(1, 64, dtype=torch.bool), num_beams=beams, max_new_tokens=17)
        assert cache.get_seq_length() == 80
    one, eight = (cache.layers[0]._pool.pages_in_use for cache in caches)
    assert one == 5 and eight < 8 * one


@pytest.mark.parametrize("name", ["llama", "mistral"])
@pytest.mark.parametrize("options", [{"prompt_lookup_num_tokens": 3}, {"prefill_chunk_size": 4}])
def test_other_ways_to_generate(name: str, options: dict) -> None:
    """Guesses that are taken back, and prompts that are read in pieces, of which some are all padding."""
    model = make_model(name)
    entries = 1 if "prompt_lookup_num_tokens" in options else 3
    prompts, mask = PROMPTS[:entries], PADDING[:entries]
    plain = {"output_logits": False}
    expected, _ = generate(model, None, prompts, mask, **plain)
    cache = KvCache()
    tokens, _ = generate(model, cache, prompts, mask, **plain, **options)
    assert torch.equal(tokens, expected)


def test_a_text_goes_on() -> None:
    model, cache = make_model(), KvCache()
    tokens, _ = generate(model, cache)
    longer = torch.cat([tokens, PROMPTS[:, :4]], dim=1)
    mask = torch.cat([PADDING, torch.ones(3, 24, dtype=torch.bool)], dim=1)
    expected, _ = generate(model, None, longer, mask)
    twin = copy.deepcopy(cache)
    pages = cache.layers[0]._pool.pages_in_use
    for each in (cache, twin):
        assert torch.equal(generate(model, each, longer, mask)[0], expected)
        assert each.get_seq_length() == 33 + 19
    assert pages == 3 and cache.layers[0]._pool.pages_in_use == 6
    cache.reset()
    assert cache.get_seq_length() == 0 and cache.layers[0]._pool.pages_in_use == 3
    assert torch.equal(generate(model, cache, longer, mask)[0], expected)


def logits_of(model, cache, tokens, mask, pieces) -> torch.Tensor:
    model.set_attn_implementation("heed" if isinstance(cache, KvCache) else "eager")
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    found = []
    with torch.no_grad():
        for begin, end in zip(pieces, pieces[1:]):
            out = model(
                tokens[:, begin:end], attention_mask=mask[:, :end].long(), position_ids=positions[:, begin:end],
                past_key_values=cache,
            )  # fmt: skip
            found.append(out.logits)
    return torch.cat(found, dim=1)


def test_padding_anywhere() -> None:
    """Holes in the middle of texts, read in pieces, and entries that are chosen and repeated between them."""
    model, random = make_model(), torch.Generator().manual_seed(3)
    tokens = torch.randint(1, VOCABULARY, (4, 40), generator=random)
    mask = torch.rand(4, 40, generator=random) < 0.7
    mask[0], mask[1, :25] = True, False
    cache, own = KvCache(page_size=16), transformers.DynamicCache()
    found, expected = (logits_of(model, each, tokens, mask, [0, 7, 8, 9, 21]) for each in (cache, own))
    torch.testing.assert_close(found[mask[:, :21]], expected[mask[:, :21]], atol=1e-4, rtol=1e-5)
    for change in (
        lambda cache: cache.batch_select_indices(torch.tensor([3, 1, 0])),
        lambda cache: cache.batch_repeat_interleave(2),
        lambda cache: cache.crop(-5),
    ):
        change(cache)
        change(own)
    tokens, mask = (x[[3, 3, 1, 1, 0, 0]] for x in (tokens, mask))
    mask = torch.cat([mask[:, :16], torch.ones(6, 3, dtype=torch.bool)], dim=1)
    last = []
    for each in (cache, own):
        model.set_attn_implementation("heed" if each is cache else "eager")
        positions = (mask.cumsum(1) - 1)[:, 16:]
        with torch.no_grad():
            out = model(tokens[:, :3], attention_mask=mask.long(), position_ids=positions, past_key_values=each)
        last.append(out.logits)
    torch.testing.assert_close(*last, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_masks_of_the_callers_own(kind: str) -> None:
    """Rank 4, for instance of a tree of guesses."""
    model = make_model()
    seen = torch.rand(3, 1, 9, 9, generator=torch.Generator().manual_seed(0)) < 0.5
    seen |= torch.eye(9, dtype=torch.bool)
    bias = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
    with torch.no_grad():
        expected = model(PROMPTS, attention_mask=bias).logits
        model.set_attn_implementation("heed")
        found = model(PROMPTS, attention_mask=seen if kind == "boolean" else bias, past_key_values=KvCache()).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_masks_of_the_callers_own_over_padded_texts() -> None:
    model, outs = make_model(), []
    seen = torch.rand(3, 1, 4, 13, generator=torch.Generator().manual_seed(0)) < 0.5
    seen[..., :9] &= PADDING[:, None, None]
    seen[..., 9:] |= torch.eye(4, dtype=torch.bool)
    for cache in (KvCache(), transformers.DynamicCache()):
        logits_of(model, cache, PROMPTS, PADDING, [0, 9])
        mask = seen if isinstance(cache, KvCache) else torch.where(seen, 0.0, torch.finfo(torch.float32).min)
        with torch.inference_mode():
            outs.append(model(PROMPTS[:, :4], attention_mask=mask, past_key_values=cache).logits)
    torch.testing.assert_close(*outs, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(("storage", "error"), [("float16", 0.005), ("bfloat16", 0.04), ("int8", 0.1), ("int4", 0.9)])
def test_storages(storage: str, error: float) -> None:
    """Attention reads the prompt as it is stored. The logits have a standard deviation of 2.9."""
    model = make_model()
    caches = [KvCache(), KvCache(key_storage=storage)]
    expected, found = (generate(model, cache, max_new_tokens=1)[1] for cache in caches)
    difference = (found - expected).square().mean().sqrt()
    assert 0 < difference < error
    assert caches[1].allocated_bytes < caches[0].allocated_bytes


def test_half_precision() -> None:
    expected = generate(make_model(), max_new_tokens=1)[1]
    found = generate(make_model(dtype=torch.bfloat16), KvCache(), max_new_tokens=1)[1]
    assert (found.float() - expected).square().mean().sqrt() < 0.3


def test_out_of_pages_leaves_the_cache_as_it_was() -> None:
    model, cache = make_model(), KvCache(page_size=16, max_pages=4)  # the first entry gets its second page
    mask = torch.ones(3, 9, dtype=torch.bool)
    logits_of(model, cache, PROMPTS, mask, [0, 9])
    with pytest.raises(heed.OutOfPages):
        logits_of(model, cache, PROMPTS.repeat(1, 2), torch.ones(3, 18, dtype=torch.bool), [9, 18])
    assert cache.get_seq_length() == 9
    for layer in cache.layers:
        assert [len(sequence) for sequence in layer._sequences] == [9, 9, 9]
        assert layer._pool.pages_in_use == 3


def run_as(implementation: str, **options):
    model = make_model()
    model.set_attn_implementation(implementation)
    tokens = options.pop("tokens", PROMPTS)
    with torch.no_grad():
        return model(tokens, **options)


def cached(length: int = 9) -> KvCache:
    cache = KvCache()
    run_as("heed", past_key_values=cache, tokens=PROMPTS[:, :length], attention_mask=PADDING[:, :length].long())
    return cache


def attend(is_causal: bool = True, **options) -> None:
    """As a layer of a model would that has options of its own."""
    states = torch.ones(1, 2, 3, 8)
    module = torch.nn.Module()
    module.is_causal = is_causal
    attention = transformers.AttentionInterface()["heed"]
    attention(module, states, *KvCache().update(states, states, 0), None, **options)


def with_gradient() -> None:
    model = make_model()
    model.set_attn_implementation("heed")
    model(PROMPTS, past_key_values=KvCache())


@pytest.mark.parametrize(
    ("text", "misuse"),
    [
        ("KvCache: aten.*only the attention of a model with attn_implementation=\"heed\" reads",
         lambda: run_as("eager", past_key_values=KvCache())),
        ("KvCache: aten.*only the attention", lambda: run_as("sdpa", past_key_values=KvCache())),
        ("the query requires a gradient, which a cache does not have", with_gradient),
        (r"attention_mask is \[3, 9\], expected \[3, 18\]: 9 positions are cached, 9 are new",
         lambda: run_as("heed", past_key_values=cached(), attention_mask=PADDING.long())),
        (r"attention_mask is \[3, 1, 9, 9\], expected \[3, 1, 9, 18\]",
         lambda: run_as("heed", past_key_values=cached(), attention_mask=torch.ones(3, 1, 9, 9))),
        ("attention_mask has other padding than when keys were cached",
         lambda: run_as("heed", past_key_values=cached(), attention_mask=torch.ones(3, 18))),
        ("attention_mask has other padding", lambda: run_as("heed", past_key_values=cached())),
        ("a batch of 2, expected 3 as cached", lambda: run_as("heed", past_key_values=cached(), tokens=PROMPTS[:2])),
        ("the layer is not causal and has no attention_mask", lambda: attend(is_causal=False)),
        ("dropout is 0.5, expected 0", lambda: attend(dropout=0.5)),
        ("there is a position_bias, expected none", lambda: attend(position_bias=torch.ones(1, 1, 3, 3))),
        ("crop of 3, expected -9 to 0", lambda: cached().crop(3)),
        ("crop of -10, expected -9 to 0", lambda: cached().crop(-10)),
        ("KvPool: key_storage is 'int2'", lambda: KvCache(key_storage="int2")),
    ],
)  # fmt: skip
def test_misuse(text: str, misuse) -> None:
    with pytest.raises(ValueError, match=text):
        misuse()


def test_what_is_refused_is_not_appended() -> None:
    cache = cached()
    with pytest.raises(ValueError):
        run_as("heed", past_key_values=cache)
    assert cache.get_seq_length() == 9
