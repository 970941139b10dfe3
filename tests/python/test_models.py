"""Trained models in heed beside transformers: hidden states, weights, logits and texts of small random models that
transformers wrote, and of the real ones where `make models` has fetched them."""

import os
import pathlib

import heed
import numpy as np
import pytest
import tokenizers
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertModel,
    BloomConfig,
    BloomForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    FalconConfig,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    NomicBertConfig,
    NomicBertModel,
    Olmo2Config,
    Olmo2ForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    RobertaConfig,
    RobertaModel,
    SmolLM3Config,
    SmolLM3ForCausalLM,
    StableLmConfig,
    StableLmForCausalLM,
    Starcoder2Config,
    Starcoder2ForCausalLM,
)

TEXTS = [
    "the cat sat on the mat because it was tired",
    "a dog",
    "the mat sat on the cat and the cat sat on the mat and the mat sat on the cat again",
]
WORDS = sorted({word for text in TEXTS for word in text.split()})


def word_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3, **{word: i + 4 for i, word in enumerate(WORDS)}}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]"
    )


SIZES = {"vocab_size": 4 + len(WORDS), "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
DECODER = {**SIZES, "intermediate_size": 56, "num_key_value_heads": 2, "eos_token_id": None, "bos_token_id": None}
PLAIN = {key: value for key, value in DECODER.items() if key != "num_key_value_heads"}  # as many keys as heads
ENDS = {"eos_token_id": None, "bos_token_id": None, "pad_token_id": None}
LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.75,
    "short_factor": [1.0, 1.25, 1.5],
    "long_factor": [2.0, 3.0, 5.0],
}
GPT2 = {"vocab_size": 4 + len(WORDS), "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64}

ENCODERS = ("bert", "roberta", "distilbert", "mpnet", "electra", "albert", "modernbert", "nomic_bert")
# A window of three positions on either side, in two layers of three.
MODERN = {**SIZES, **ENDS, "intermediate_size": 48, "max_position_embeddings": 64, "local_attention": 6}
MODELS = {
    "bert": lambda: BertModel(BertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64)),
    # A token of every text is the padding, after which positions are counted.
    "roberta": lambda: RobertaModel(
        RobertaConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, pad_token_id=1, type_vocab_size=1)
    ),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=4 + len(WORDS), dim=32, n_layers=3, n_heads=4, hidden_dim=48, max_position_embeddings=64)
    ),
    "mpnet": lambda: MPNetModel(
        MPNetConfig(**SIZES, intermediate_size=48, max_position_embeddings=64)
    ),
    "electra": lambda: ElectraModel(ElectraConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, embedding_size=48)),
    "electra, one width": lambda: ElectraModel(
        ElectraConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, embedding_size=32)
    ),
    "albert": lambda: AlbertModel(AlbertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64, embedding_size=12)),
    "modernbert": lambda: ModernBertModel(ModernBertConfig(**MODERN)),
    "modernbert, biases": lambda: ModernBertModel(
        ModernBertConfig(**MODERN, norm_bias=True, attention_bias=True, mlp_bias=True, layer_types=["sliding_attention"] * 3)
    ),
    "nomic_bert": lambda: NomicBertModel(NomicBertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**GPT2, eos_token_id=None, bos_token_id=None)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**DECODER)),
    "llama, llama3 scaling": lambda: LlamaForCausalLM(
        LlamaConfig(
            **DECODER,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        )
    ),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**DECODER, sliding_window=5)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**DECODER, tie_word_embeddings=True)),
    "qwen2, windows in some layers": lambda: Qwen2ForCausalLM(
        Qwen2Config(**DECODER, sliding_window=3, use_sliding_window=True, max_window_layers=1)
    ),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**DECODER, head_dim=12)),
    "qwen3, windows in some layers": lambda: Qwen3ForCausalLM(
        Qwen3Config(**DECODER, head_dim=12, attention_bias=True, sliding_window=3, use_sliding_window=True, max_window_layers=2)
    ),
    "olmo2": lambda: Olmo2ForCausalLM(Olmo2Config(**DECODER, pad_token_id=None)),
    "smollm3": lambda: SmolLM3ForCausalLM(SmolLM3Config(**DECODER, pad_token_id=None, no_rope_layers=[1, 0, 1])),
    "gemma2": lambda: Gemma2ForCausalLM(
        Gemma2Config(**DECODER, pad_token_id=None, head_dim=12, sliding_window=4, query_pre_attn_scalar=9)
    ),
    "gpt_neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**PLAIN, rotary_pct=0.5)),
    "gpt_neox, parts in turn": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**PLAIN, use_parallel_residual=False)),
    "phi3": lambda: Phi3ForCausalLM(Phi3Config(**DECODER, pad_token_id=None, sliding_window=5)),
    # The longest text and the written ones are longer than 16 tokens, from which on the factors are others.
    "phi3, longrope": lambda: Phi3ForCausalLM(
        Phi3Config(
            **DECODER,
            pad_token_id=None,
            max_position_embeddings=64,
            original_max_position_embeddings=16,
            rope_parameters=LONG_ROPE,
        )
    ),
    "phi": lambda: PhiForCausalLM(PhiConfig(**DECODER, partial_rotary_factor=0.75)),
    "gpt_neo": lambda: GPTNeoForCausalLM(
        GPTNeoConfig(
            **{"vocab_size": SIZES["vocab_size"], "hidden_size": 32, "num_layers": 3, "num_heads": 4, **ENDS},
            max_position_embeddings=64,
            window_size=4,
            attention_types=[[["global", "local"], 1], [["local"], 1]],
        )
    ),
    "mistral, heads wider than the embedding": lambda: MistralForCausalLM(
        MistralConfig(**DECODER, head_dim=16, sliding_window=None, rope_theta=1000000.0)
    ),
    "granite": lambda: GraniteForCausalLM(
        GraniteConfig(
            **DECODER, embedding_multiplier=1.5, attention_multiplier=0.4, residual_multiplier=0.7, logits_scaling=1.25
        )
    ),
    "stablelm": lambda: StableLmForCausalLM(StableLmConfig(**DECODER, use_qkv_bias=True, partial_rotary_factor=0.5)),
    "stablelm, norms of heads": lambda: StableLmForCausalLM(
        StableLmConfig(**DECODER, qk_layernorm=True, use_parallel_residual=True)
    ),
    "starcoder2": lambda: Starcoder2ForCausalLM(Starcoder2Config(**DECODER, sliding_window=5)),
    "cohere": lambda: CohereForCausalLM(CohereConfig(**DECODER, pad_token_id=None, logit_scale=0.25)),
    "cohere, norms of heads": lambda: CohereForCausalLM(
        CohereConfig(**DECODER, pad_token_id=None, use_qk_norm=True, attention_bias=True)
    ),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**DECODER, num_local_experts=5, num_experts_per_tok=2)),
    "qwen3_moe": lambda: Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            **DECODER, head_dim=12, num_experts=5, num_experts_per_tok=3, moe_intermediate_size=24, mlp_only_layers=[1]
        )
    ),
    "gptj": lambda: GPTJForCausalLM(GPTJConfig(**GPT2, **ENDS, rotary_dim=4)),
    # transformers computes Falcon's weights only if it was made for that.
    "falcon": lambda: AutoModelForCausalLM.from_config(FalconConfig(**SIZES, **ENDS), attn_implementation="eager"),
    "falcon, few keys": lambda: AutoModelForCausalLM.from_config(
        FalconConfig(**SIZES, **ENDS, new_decoder_architecture=True, num_kv_heads=2, ffn_hidden_size=48),
        attn_implementation="eager",
    ),
    "bloom": lambda: BloomForCausalLM(BloomConfig(vocab_size=SIZES["vocab_size"], hidden_size=36, n_layer=3, n_head=6, **ENDS)),
    "opt": lambda: OPTForCausalLM(
        OPTConfig(**SIZES, **ENDS, ffn_dim=48, max_position_embeddings=64, dropout=0.0, word_embed_proj_dim=32)
    ),
    "gemma3": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **DECODER,
            pad_token_id=None,
            head_dim=12,
            sliding_window=4,
            query_pre_attn_scalar=9,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 300.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            },
        )
    ),
}


def randomise(model: torch.nn.Module) -> None:
    """Weights as large as trained ones, and biases and norms that are not those of the beginning."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(noise * (0.3 if "norm" not in name else 0.1))
            else:
                parameter.add_(noise * 0.2)


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    torch.manual_seed(0)
    model = MODELS[request.param]().eval()
    randomise(model)
    folder = tmp_path_factory.mktemp("model")
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    model.set_attn_implementation("eager")
    return model, heed.models.load(folder)


def truth(model: torch.nn.Module, ids: list[int]):
    with torch.no_grad():
        return model(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)


@pytest.mark.parametrize("text", TEXTS)
def test_hidden_states_and_weights(pair, text: str) -> None:
    expected, model = pair
    ids = model.encode(text)
    found = truth(expected, ids)
    states = np.stack([state[0].numpy() for state in found.hidden_states])
    assert np.abs(model.hidden_states(ids) - states).max() < 2e-5 * max(1, np.abs(states).max())
    weights = np.stack([layer[0].numpy() for layer in found.attentions])
    assert np.abs(model.attentions(ids) - weights).max() < 1e-5
    assert np.array_equal(model.forward(ids), model.hidden_states(ids)[-1])


def test_logits(pair) -> None:
    expected, model = pair
    if model.config["family"] in ENCODERS:
        with pytest.raises(ValueError, match="has no head"):
            model.logits(TEXTS[0])
        return
    for text in TEXTS:
        ids = model.encode(text)
        found = truth(expected, ids)
        logits = found.logits[0].numpy()
        assert np.abs(model.logits(ids) - logits).max() < 2e-5 * max(1, np.abs(logits).max())
        loss = torch.nn.functional.cross_entropy(found.logits[0, :-1].double(), torch.tensor(ids[1:]))
        assert model.mean_loss(ids) == pytest.approx(loss.item(), abs=1e-5)


WRITTEN_BY_SMALL_MODELS = 40


def test_greedy_texts(pair) -> None:
    expected, model = pair
    if model.config["family"] in ENCODERS:
        with pytest.raises(ValueError, match="does not write"):
            model.generate(TEXTS[0])
        return
    for text in TEXTS[1:]:  # the shortest and the longest
        ids = model.encode(text)
        prompt = torch.tensor([ids])
        written = expected.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=WRITTEN_BY_SMALL_MODELS,
            do_sample=False,
            eos_token_id=-1,
        )[0, len(ids) :].tolist()
        for cache in ("float32", "float16"):
            pieces: list[str] = []
            result = model.generate(ids, max_tokens=WRITTEN_BY_SMALL_MODELS, cache=cache, on_text=pieces.append)
            assert result.ids == written[: len(result.ids)], cache
            assert len(result.ids) == WRITTEN_BY_SMALL_MODELS or result.reason == "end_token"
            assert "".join(pieces) == result.text
            assert model.decode(ids) + result.text == model.decode(ids + result.ids)


def test_bias_penalty_and_log_probs(pair) -> None:
    """Greedy texts with changed logits are those of transformers, which changes them in the same order; probabilities are of the
    logits as the model gave them."""
    expected, model = pair
    if model.config["family"] in ENCODERS:
        return
    bias = {5: 1.5, 9: -2.0, 12: 0.75}
    for text in TEXTS[:2]:
        ids = model.encode(text)
        written = expected.generate(
            torch.tensor([ids]),
            max_new_tokens=16,
            do_sample=False,
            eos_token_id=-1,
            repetition_penalty=1.7,
            sequence_bias=[[[token], value] for token, value in bias.items()],
        )[0].tolist()
        result = model.generate(ids, max_tokens=16, repetition_penalty=1.7, logit_bias=bias, log_probs=True)
        assert result.ids == written[len(ids) :][: len(result.ids)]
        assert len(result.ids) == 16 or result.reason == "end_token"
        if model.config["family"] == "phi3":  # a longer text turns all keys otherwise, so each length is read alone
            rows = torch.stack([truth(expected, ids + result.ids[:i]).logits[0, -1] for i in range(len(result.ids))])
        else:
            rows = truth(expected, ids + result.ids).logits[0, len(ids) - 1 : -1]
        rows = rows.double().log_softmax(-1)
        assert np.allclose(result.log_probs, [float(row[token]) for row, token in zip(rows, result.ids)], atol=1e-4)
        assert model.generate(ids, max_tokens=1).log_probs is None


def test_min_p_draws_what_transformers_keeps(pair) -> None:
    from transformers.generation.logits_process import LogitsProcessorList, MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper

    expected, model = pair
    if model.config["family"] in ENCODERS:
        return
    ids = model.encode(TEXTS[0])
    steps = LogitsProcessorList([TemperatureLogitsWarper(2.0), TopKLogitsWarper(12), MinPLogitsWarper(0.3)])
    scores = steps(torch.tensor([ids]), truth(expected, ids).logits[:, -1])[0]
    kept = set(torch.isfinite(scores).nonzero().flatten().tolist())
    drawn = [model.generate(ids, max_tokens=1, temperature=2.0, top_k=12, min_p=0.3, seed=seed) for seed in range(60)]
    found = {result.ids[0] if result.ids else 2 for result in drawn}  # [SEP] ends the text
    assert found <= kept
    assert {token for token in kept if float(scores.softmax(-1)[token]) > 0.2} <= found


def test_chat_prompts_have_tools_and_variables(tmp_path) -> None:
    model = MODELS["llama"]()
    model.save_pretrained(tmp_path)
    tokenizer = word_tokenizer()
    tokenizer.chat_template = (
        "{% if tools %}{{ tools | tojson }}{% endif %}{{ mood }}{% for m in messages %}{{ m.role }}: {{ m.content or '' }}"
        "{% for call in m.tool_calls or [] %}{{ call.function | tojson }}{% endfor %}{% endfor %}"
    )
    tokenizer.save_pretrained(tmp_path)
    call = {"type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, None, "é"]}}}
    messages = [{"role": "user", "content": "cat"}, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "7"}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    prompt = heed.models.load(tmp_path).chat_prompt(messages, tools=tools, mood="dog")
    assert prompt == tokenizer.apply_chat_template(messages, tools=tools, mood="dog", tokenize=False, add_generation_prompt=True)
    model = heed.models.load(tmp_path)
    assert model.chat_prompt([("user", "cat")]) == model.chat_prompt([{"role": "user", "content": "cat"}])
    for wrong, problem in [
        (["cat"], "a message is 'cat'"),
        ([("writer", "cat")], "the role 'writer'"),
        ([{"content": "cat"}], "the text 'role'"),
        ([{"role": "user", "content": {1, 2}}], "expected text, numbers, lists and dicts"),
    ]:
        with pytest.raises(ValueError, match=problem):
            model.chat_prompt(wrong)
    with pytest.raises(ValueError, match="an argument of its own"):
        model._model.chat_prompt(['{"role": "user", "content": "a"}'], True, "", '{"messages": 1}')


def test_a_head_that_is_switched_off_adds_nothing(pair) -> None:
    expected, model = pair
    ids = model.encode(TEXTS[0])
    off = model.hidden_states(ids, switched_off=[(1, 2)])
    on = model.hidden_states(ids)
    assert np.array_equal(off[:2], on[:2])
    assert np.abs(off[2] - on[2]).max() > 1e-3
    if model.config["family"] == "albert":  # the columns of one layer are those of all
        return
    # The same model without the head's columns of the output projection.
    names = {
        "gpt2": "attn.c_proj",
        "gpt_neo": "attn.attention.out_proj",
        "gptj": "attn.out_proj",
        "gpt_neox": "attention.dense",
        "opt": "self_attn.out_proj",
        "phi": "self_attn.dense",
        "distilbert": "attention.out_lin",
        **dict.fromkeys(("bloom", "falcon"), "self_attention.dense"),
        **dict.fromkeys(("bert", "roberta", "electra"), "attention.output.dense"),
        "mpnet": "attention.attn.o",
        "modernbert": "attn.Wo",
    }
    name = names.get(model.config["family"], "self_attn.o_proj")
    part = dict(expected.named_modules())
    layers = [key for key in part if key.endswith(f".1.{name}")]
    projection = part[layers[0]]
    kept = projection.weight.data.clone()
    dim = model.config["head_dim"]
    columns = slice(2 * dim, 3 * dim)
    if model.config["family"] == "gpt2":
        projection.weight.data[columns] = 0
    else:
        projection.weight.data[:, columns] = 0
    try:
        states = truth(expected, ids).hidden_states[2][0].numpy()
    finally:
        projection.weight.data = kept
    assert np.abs(off[2] - states).max() < 2e-5 * max(1, np.abs(states).max())
    with pytest.raises(ValueError, match=r"head 3\.0, expected layers in \[0, 3\)"):
        model.forward(ids, switched_off=[(3, 0)])


def test_what_does_not_fit_is_refused(pair) -> None:
    _, model = pair
    with pytest.raises(ValueError, match=r"ids\[1\] is 99999"):
        model.forward([1, 99999])
    with pytest.raises(ValueError, match="texts is one str"):
        model.embed("one")


def models_folder() -> pathlib.Path:
    here = pathlib.Path(__file__).parents[2] / "build/models"
    return pathlib.Path(os.environ.get("HEED_MODELS", here))


def real(name: str) -> pathlib.Path:
    path = models_folder() / name
    if not path.exists():
        pytest.skip("`make models` has not been run")
    return path


SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A fast auburn fox leapt across a sleeping hound.",
    "Shares fell sharply on Tuesday after the central bank raised its rates.",
    "Attention weights every token by how well its key answers a query; the rest is bookkeeping.",
    "¿Dónde está la biblioteca? 北京 — naïve café, 3.14 & more...",
    "x",
    "Water boils at 100 °C at sea level, but at 90 °C on a mountain of 3,000 metres.",
    "WHY IS EVERYTHING WRITTEN IN CAPITALS?!",
    "to be or not to be that is the question to be or not to be that is the question to be or not to be",
    "for (int i = 0; i < n; ++i) sum += x[i] * y[i];  // a product of two vectors",
    "Der schnelle braune Fuchs springt über den faulen Hund; Größe, Maß und Übermut.",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "The trophy does not fit into the suitcase because it is too big.",
    "She told her sister that her car had been towed, and that she would have to walk.",
    "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
    "Hello 👋🏽, world 🌍! Do emoji ever end? 👩‍👩‍👧",
    "An internationalization antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis test.",
    "In 1969, two people walked on the Moon. They stayed for less than a day, took photographs, set up a few "
    "instruments, and gathered some twenty kilograms of stones. A third waited in orbit, alone.",
    "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum()\n",
    "Once there was a lighthouse keeper who wrote letters to ships. " * 12,
]


@pytest.fixture(scope="module")
def mini_lm():
    path = real("all-MiniLM-L6-v2")
    return AutoModel.from_pretrained(path, attn_implementation="eager").eval(), heed.models.load(path), path


def test_mini_lm_hidden_states_weights_and_vectors(mini_lm) -> None:
    expected, model, path = mini_lm
    tokenizer = AutoTokenizer.from_pretrained(path)
    vectors = []
    of_states = of_weights = 0.0
    for sentence in SENTENCES:
        ids = tokenizer(sentence)["input_ids"]
        assert model.encode(sentence) == ids
        found = truth(expected, ids)
        states = np.stack([state[0].numpy() for state in found.hidden_states])
        of_states = max(of_states, np.abs(model.hidden_states(ids) - states).max())
        weights = np.stack([layer[0].numpy() for layer in found.attentions])
        of_weights = max(of_weights, np.abs(model.attentions(ids) - weights).max())
        mean = states[-1].mean(axis=0)
        vectors.append(mean / np.linalg.norm(mean))
    of_vectors = np.abs(model.embed(SENTENCES) - np.stack(vectors)).max()
    print(f"largest differences: states {of_states:.2e}, weights {of_weights:.2e}, vectors {of_vectors:.2e}")
    assert max(of_states, of_weights, of_vectors) < 1e-5


def test_mini_lm_reads_pairs(mini_lm) -> None:
    expected, model, path = mini_lm
    tokens = AutoTokenizer.from_pretrained(path)("How old are you?", "I am forty.", return_tensors="pt")
    with torch.no_grad():
        states = expected(**tokens).last_hidden_state[0].numpy()
    found = model.forward("How old are you?", "I am forty.")
    assert np.abs(found - states).max() < 1e-5


PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n",
    "Once upon a time,",
    "1, 2, 3, 4,",
    "The three most important things about gravity are",
    "Dear Sir or Madam,\n",
    "Question: Why do leaves turn red in autumn?\nAnswer:",
    "A recipe for bread:\n1.",
    "The old man looked at the sea and",
    "In this paper we show that",
]
WRITTEN = 100  # tokens after each prompt


@pytest.fixture(scope="module")
def smol_lm():
    """SmolLM2 as transformers reads the GGUF file, which needs the package gguf; otherwise its numbers as heed reads
    them would be compared with themselves."""
    pytest.importorskip("gguf")
    path = real("SmolLM2-135M-Instruct.Q4_1.gguf")
    expected = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    expected.set_attn_implementation("eager")
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return expected.eval(), heed.models.load(path), tokenizer


def test_smol_lm_tokens_and_logits(smol_lm) -> None:
    expected, model, tokenizer = smol_lm
    worst = 0.0
    for text in SENTENCES:
        ids = tokenizer(text)["input_ids"]
        assert model.encode(text) == ids
        logits = truth(expected, ids).logits[0].numpy()
        worst = max(worst, np.abs(model.logits(ids) - logits).max() / np.abs(logits).max())
    print(f"largest difference of logits: {worst:.2e} of the largest")
    assert worst < 1e-4


def test_smol_lm_writes_what_transformers_prefers(smol_lm) -> None:
    """Each token of heed's greedy texts is what transformers finds most likely behind those before: then its greedy text
    is the same. One pass over a text tells, where writing it takes ten times as long. Two tokens tie where their logits
    are closer than the bound of the logits."""
    expected, model, tokenizer = smol_lm
    ties = 0
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        result = model.generate(prompt, max_tokens=WRITTEN)
        chosen = list(result.ids)
        if result.reason == "end_token":
            chosen.append(expected.generation_config.eos_token_id)
        assert len(chosen) == WRITTEN or result.reason == "end_token"
        with torch.no_grad():
            logits = expected(torch.tensor([ids + chosen])).logits[0, len(ids) - 1 : -1]
        for at, (row, token) in enumerate(zip(logits, chosen, strict=True)):
            if row.argmax() != token:
                assert row.max() - row[token] < 1e-4 * row.abs().max(), (prompt, at)
                ties += 1
    print(f"ties in {len(PROMPTS)} texts of {WRITTEN} tokens: {ties}")


def test_smol_lm_writes_what_transformers_writes(smol_lm) -> None:
    expected, model, tokenizer = smol_lm
    for prompt in PROMPTS[:4]:
        tokens = tokenizer(prompt, return_tensors="pt")
        written = expected.generate(**tokens, max_new_tokens=30, do_sample=False)
        result = model.generate(prompt, max_tokens=30)
        expected_ids = written[0, tokens["input_ids"].shape[1] :].tolist()
        assert result.ids == expected_ids[: len(result.ids)]
        assert len(result.ids) == 30 or result.reason == "end_token"


def test_smol_lm_answers_in_its_template(smol_lm) -> None:
    _, model, tokenizer = smol_lm
    messages = [("user", "What is 2 + 2?")]
    expected = tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in messages], tokenize=False, add_generation_prompt=True
    )
    prompt = model.chat_prompt(messages)
    assert prompt == expected
    assert model.encode(prompt) == tokenizer(expected, add_special_tokens=False)["input_ids"]


def test_gemma_3_is_that_of_transformers() -> None:
    """The file in Q4_K_M, whose tensors have four formats, beside the floats that transformers makes of them."""
    path = real("gemma-3-270m.Q4_K_M.gguf")
    expected = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    model = heed.models.load(path)
    for text in ("The capital of France is", "def softmax(x):"):
        ids = model.encode(text)
        with torch.no_grad():
            logits = expected(torch.tensor([ids])).logits[0].numpy()
        assert np.abs(model.logits(ids) - logits).max() < 1e-5 * np.abs(logits).max()
        written = expected.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0, len(ids) :].tolist()
        found = model.generate(ids, max_tokens=20).ids
        assert found == written[: len(found)]
