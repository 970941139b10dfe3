"""`heed heads`: scores, named heads and switched-off heads, against transformers' own attention weights."""

import json
import math
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")
import tokenizers  # noqa: E402

STORY = pathlib.Path(__file__).parents[2] / "src/tasks/texts/lighthouse.txt"
SPREAD = 0.4  # of the weights: the heads of untrained models look uniform


def make_causal(folder: pathlib.Path) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train([str(STORY)], trainer)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    ).save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=8, max_position_embeddings=512,
        bos_token_id=0, eos_token_id=0, initializer_range=SPREAD,
    )  # fmt: skip
    torch.manual_seed(1)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def make_encoder(folder: pathlib.Path) -> None:
    tokenizer = tokenizers.BertWordPieceTokenizer()
    tokenizer.train([str(STORY)], vocab_size=500, min_frequency=1)
    (folder / "vocab.txt").write_text("\n".join(sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)))
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=512, initializer_range=SPREAD,
    )  # fmt: skip
    torch.manual_seed(1)
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)


@pytest.fixture(scope="module", params=["causal", "encoder"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp(request.param)
    (make_causal if request.param == "causal" else make_encoder)(path)
    return path


def load(folder: pathlib.Path):
    config = transformers.AutoConfig.from_pretrained(folder)
    kind = transformers.AutoModel if config.model_type == "bert" else transformers.AutoModelForCausalLM
    return kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


def keys_of(name: str, ids: list[int], special: set[int], q: int) -> set[int]:
    """The keys of a pattern, in plain words."""
    others = [k for k in range(len(ids)) if k != q]
    match name:
        case "previous token":
            return {q - 1}
        case "next token":
            return {q + 1}
        case "same token":
            return {q}
        case "first token":
            return {0}
        case "separators":
            return {k for k in range(1, len(ids)) if ids[k] in special}
        case "duplicate token":
            return {k for k in others if ids[k] == ids[q] and ids[q] not in special}
        case "induction":
            return {k for k in range(1, q) if ids[k - 1] == ids[q] and ids[q] not in special}
    raise ValueError(name)


def rows_with_choice(ids: list[int], is_causal: bool) -> Iterator[tuple[int, set[int]]]:
    for q in range(len(ids)):
        seen = set(range(q + 1 if is_causal else len(ids)))
        if len(seen) > 1:
            yield q, seen


def expected_score(name: str, texts: list, special: set[int], is_causal: bool) -> tuple:
    """[layers, heads] scores, chance and rows, of (ids, attention [layers, heads, n, n])."""
    total, chance, rows = 0.0, 0.0, 0
    for ids, attention in texts:
        for q, seen in rows_with_choice(ids, is_causal):
            keys = keys_of(name, ids, special, q) & seen
            if not keys or keys == seen:
                continue
            total = total + attention[:, :, q, sorted(keys)].sum(-1)
            chance += len(keys) / len(seen)
            rows += 1
    return (total / rows, chance / rows, rows) if rows else (0.0, 0.0, 0)


def attentions(model, sequences: list[list[int]]) -> list:
    with torch.no_grad():
        return [
            (ids, torch.stack(model(torch.tensor([ids]), output_attentions=True).attentions)[:, 0].double().numpy())
            for ids in sequences
        ]


def check_scores(part: dict, model, special: set[int], is_causal: bool) -> None:
    texts = attentions(model, part["ids"])
    compared = 0
    for pattern in part["patterns"]:
        if pattern["name"] in ("punctuation", "same word"):  # patterns of the text, which C++ tests check
            continue
        scores, chance, rows = expected_score(pattern["name"], texts, special, is_causal)
        np.testing.assert_allclose(np.array(pattern["scores"]), scores, atol=2e-5, err_msg=pattern["name"])
        np.testing.assert_allclose(np.array(pattern["chance"]), chance, atol=1e-9)
        assert np.all(np.array(pattern["rows"]) == rows)
        compared += rows > 0
    assert compared >= 2 if is_causal else compared >= 1
    largest = [attention[:, :, q].max(-1) for ids, attention in texts for q, _ in rows_with_choice(ids, is_causal)]
    np.testing.assert_allclose(np.array(part["confidence"]), np.mean(largest, axis=0), atol=2e-5)


def special_ids(folder: pathlib.Path) -> set[int]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}


def test_scores(folder: pathlib.Path, heed: Callable[..., str]) -> None:
    found = json.loads(heed("heads", "--model", folder, "--pieces", 2, "--random", 12, "--json"))
    model = load(folder)
    is_causal = found["family"] != "bert"
    for part in ("text", "repeated"):
        check_scores(found[part], model, special_ids(folder), is_causal)
    names = [pattern["name"] for pattern in found["repeated"]["patterns"]]
    assert names == (["duplicate token", "induction"] if is_causal else ["duplicate token"])


def test_repeated_tokens_repeat(folder: pathlib.Path, heed: Callable[..., str]) -> None:
    arguments = ("heads", "--model", folder, "--pieces", 1, "--random", 7, "--repeats", 3, "--json")
    found = json.loads(heed(*arguments))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for ids in found["repeated"]["ids"]:
        body = [i for i in ids if i not in tokenizer.all_special_ids]
        assert len(body) == 21 and len(set(body)) == 7
        assert body == body[:7] * 3
        assert all(tokenizer.decode([i]).strip().strip("#").isalnum() for i in body)
    assert json.loads(heed(*arguments, "--seed", 1))["repeated"]["ids"] != found["repeated"]["ids"]


def switch_off(model, heads: list[dict]) -> list:
    """Zeroes what the heads give to the projection behind them."""
    head_dim = 8
    hooks = []
    for layer in {head["layer"] for head in heads}:
        mine = [head["head"] for head in heads if head["layer"] == layer]

        def zero(module, inputs, mine=mine):
            x = inputs[0].clone()
            for head in mine:
                x[..., head * head_dim : (head + 1) * head_dim] = 0
            return (x, *inputs[1:])

        if model.config.model_type == "bert":
            projection = model.encoder.layer[layer].attention.output.dense
        else:
            projection = model.model.layers[layer].self_attn.o_proj
        hooks.append(projection.register_forward_pre_hook(zero))
    return hooks


def outcome(model, found: dict, heads: list[dict], full: list | None) -> tuple[list, dict]:
    """Final vectors, and what heed says of them."""
    hooks = switch_off(model, heads)
    base = model if model.config.model_type == "bert" else model.model
    with torch.no_grad():
        vectors = [base(torch.tensor([ids])).last_hidden_state[0] for ids in found["text"]["ids"]]
        values = {}
        if full is not None:
            pairs = zip(full, vectors, strict=True)
            values["cosine"] = torch.cat([torch.cosine_similarity(a, b) for a, b in pairs]).mean().item()
        if model.config.model_type != "bert":
            first = 1 + len(set(found["repeated"]["ids"][0][1:]))
            values["text_loss"] = loss(model, found["text"]["ids"], 1)
            values["repeated_loss"] = loss(model, found["repeated"]["ids"], first)
    for hook in hooks:
        hook.remove()
    return vectors, values


def loss(model, sequences: list[list[int]], first: int) -> float:
    losses = []
    for ids in sequences:
        logits = model(torch.tensor([ids])).logits[0, first - 1 : -1].double()
        losses.append(torch.nn.functional.cross_entropy(logits, torch.tensor(ids[first:]), reduction="none"))
    return torch.cat(losses).mean().item()


def test_heads_switched_off(folder: pathlib.Path, heed: Callable[..., str]) -> None:
    found = json.loads(
        heed("heads", "--model", folder, "--pieces", 2, "--random", 12, "--ablate", "1.3,0.1", "--draws", 2, "--json")
    )
    ablation = found["ablation"]
    assert ablation["chosen"]["heads"] == [{"layer": 0, "head": 1}, {"layer": 1, "head": 3}]
    model = load(folder)
    full, _ = outcome(model, found, [], None)
    outcomes = [ablation["all"], ablation["chosen"], *ablation["random"]]
    assert len(outcomes) == 4
    for given in outcomes:
        _, expected = outcome(model, found, given["heads"], full)
        for name, value in expected.items():
            assert math.isclose(given[name], value, abs_tol=2e-4), (name, given[name], value)
    drawn = [tuple(head.items()) for draw in ablation["random"] for head in draw["heads"]]
    assert not {tuple(head.items()) for head in ablation["chosen"]["heads"]} & set(drawn)
    assert all(len(draw["heads"]) == 2 for draw in ablation["random"])
