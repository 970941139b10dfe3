"""Vectors of texts as the files of sentence-transformers ask for them: heed computes them or refuses by name what it lacks. The
expected vectors are made of transformers' hidden states; where sentence-transformers is installed it makes them too."""

import json
import pathlib
import shutil

import heed
import numpy as np
import pytest
import safetensors.torch
import torch
from test_models import SIZES, TEXTS, randomise, word_tokenizer
from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel, PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

NEWER = {  # in sentence-transformers 6
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
}
WIDTH = SIZES["hidden_size"]

POOLINGS = {
    "cls": lambda h: h[0],
    "max": lambda h: h.max(axis=0),
    "mean": lambda h: h.mean(axis=0),
    "mean_sqrt_len_tokens": lambda h: h.sum(axis=0) / np.sqrt(len(h)),
    "weightedmean": lambda h: (h * np.arange(1, len(h) + 1)[:, None]).sum(axis=0) / np.arange(1, len(h) + 1).sum(),
    "lasttoken": lambda h: h[-1],
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> tuple[BertModel, pathlib.Path]:
    folder = tmp_path_factory.mktemp("plain")
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES, intermediate_size=48, max_position_embeddings=64)).eval()
    randomise(model)
    model.save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return model, folder


def modules(*names: tuple[str, str], types: dict[str, str] | None = None) -> list[dict]:
    return [
        {"idx": i, "name": str(i), "path": path, "type": (types or {}).get(name, f"sentence_transformers.models.{name}")}
        for i, (name, path) in enumerate(names)
    ]


USUAL = modules(("Transformer", ""), ("Pooling", "1_Pooling"))
NORMALIZED = modules(("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
MEAN = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def written(plain: tuple[BertModel, pathlib.Path], folder: pathlib.Path, files: dict[str, object]) -> pathlib.Path:
    """A copy of the plain model with more files, as JSON."""
    shutil.copytree(plain[1], folder, dirs_exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        kept = json.loads((folder / name).read_text()) if (folder / name).exists() else None
        merged = {**kept, **content} if isinstance(kept, dict) else content
        (folder / name).write_text(json.dumps(merged))
    return folder


def expected_vectors(model: BertModel, pooling: list[str], normalize: bool, longest: int, prompt: str) -> np.ndarray:
    vectors = []
    for text in TEXTS:
        ids = word_tokenizer()(prompt + text)["input_ids"]
        ids = ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]]
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0].double().numpy()
        vector = np.concatenate([POOLINGS[name](hidden) for name in pooling])
        vectors.append(vector / np.linalg.norm(vector) if normalize else vector)
    return np.stack(vectors)


def case(files: dict, pooling=("mean",), normalize=False, longest=64, prompt=""):
    return files, list(pooling), normalize, longest, prompt


def pooled(config: dict, listed: list = USUAL, **others) -> dict:
    return {"modules.json": listed, "1_Pooling/config.json": config, **others}


NEW_MEAN = {"embedding_dimension": WIDTH, "pooling_mode": "mean", "include_prompt": True}
COMPUTED = {
    "nothing": case({}),
    "mean": case(pooled(MEAN)),
    "cls": case(pooled({"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": True}), ["cls"]),
    "no mode": case(pooled({**MEAN, "pooling_mode_mean_tokens": False})),
    "two modes of before": case(pooled({**MEAN, "pooling_mode_cls_token": True}), ["cls", "mean"]),
    "all modes of before": case(
        pooled(
            {
                "word_embedding_dimension": WIDTH,
                "pooling_mode_lasttoken": True,
                "pooling_mode_max_tokens": True,
                "pooling_mode_mean_sqrt_len_tokens": True,
                "pooling_mode_weightedmean_tokens": True,
            }
        ),
        ["max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"],
    ),
    "one mode": case(pooled({**NEW_MEAN, "pooling_mode": "lasttoken"}), ["lasttoken"]),
    "modes in their order": case(pooled({**NEW_MEAN, "pooling_mode": ["mean", "cls", "max"]}), ["mean", "cls", "max"]),
    "normalized": case(pooled(MEAN, NORMALIZED), normalize=True),
    "normalized, two modes": case(
        pooled({**NEW_MEAN, "pooling_mode": ["mean", "cls"]}, NORMALIZED), ["mean", "cls"], normalize=True
    ),
    "not listed": case({"modules.json": USUAL, "1_Pooling/config.json": MEAN, "2_Normalize/config.json": {}}),
    "other paths": case(
        {
            "modules.json": modules(("Transformer", ""), ("Pooling", "pool"), ("Normalize", "norm")),
            "pool/config.json": {**MEAN, "pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True},
        },
        ["cls"],
        normalize=True,
    ),
    "newer": case(
        {
            "modules.json": modules(("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"), types=NEWER),
            "1_Pooling/config.json": NEW_MEAN,
            "2_Normalize/config.json": {
                "module_input_name": "sentence_embedding",
                "module_output_name": "sentence_embedding",
            },
            "sentence_bert_config.json": {
                "transformer_task": "feature-extraction",
                "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
                "module_output_name": "token_embeddings",
            },
            "config_sentence_transformers.json": {
                "__version__": {"sentence_transformers": "6.2.0"},
                "default_prompt_name": None,
                "model_type": "SentenceTransformer",
                "prompts": {"document": "", "query": ""},
                "similarity_fn_name": "cosine",
            },
            "tokenizer_config.json": {"model_max_length": 7},
        },
        normalize=True,
        longest=7,
    ),
    "length of before": case(
        pooled(MEAN, **{"sentence_bert_config.json": {"max_seq_length": 6, "do_lower_case": False}}), longest=6
    ),
    "both lengths": case(
        pooled(
            MEAN,
            **{"sentence_bert_config.json": {"max_seq_length": 9}, "tokenizer_config.json": {"model_max_length": 7}},
        ),
        longest=9,
    ),
    "no length": case(
        pooled(
            MEAN,
            **{"sentence_bert_config.json": {"max_seq_length": None}, "tokenizer_config.json": {"model_max_length": 7}},
        ),
        longest=7,
    ),
    "default prompt": case(
        pooled(
            MEAN,
            **{"config_sentence_transformers.json": {"prompts": {"q": "the cat ", "d": ""}, "default_prompt_name": "q"}},
        ),
        prompt="the cat ",
    ),
    "prompts by name only": case(pooled(MEAN, **{"config_sentence_transformers.json": {"prompts": {"q": "the cat "}}})),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_vectors_are_those_that_the_files_ask_for(plain, tmp_path: pathlib.Path, name: str) -> None:
    files, pooling, normalize, longest, prompt = COMPUTED[name]
    found = heed.models.load(written(plain, tmp_path, files)).embed(TEXTS)
    expected = expected_vectors(plain[0], pooling, normalize, longest, prompt)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-5 * max(1, np.abs(expected).max())


@pytest.mark.parametrize("name", COMPUTED)
def test_sentence_transformers_makes_the_same_vectors(plain, tmp_path: pathlib.Path, name: str) -> None:
    library = pytest.importorskip("sentence_transformers")
    folder = written(plain, tmp_path, COMPUTED[name][0])
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    found = heed.models.load(folder).embed(TEXTS)
    assert np.abs(found - expected).max() < 1e-5 * max(1, np.abs(expected).max())


DENSE = modules(("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))
TWO_DENSE = modules(
    ("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Dense", "3_Dense"), ("Normalize", "4_Normalize"), types=NEWER
)
TANH = {"in_features": WIDTH, "out_features": 12, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"}
BEHIND = {"in_features": 12, "out_features": 20, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
ACTIVATIONS = {
    "activation.Tanh": torch.tanh,
    "linear.Identity": lambda x: x,
    "activation.ReLU": torch.relu,
    "activation.GELU": torch.nn.functional.gelu,
}


def write_dense(folder: pathlib.Path, settings: dict, seed: int) -> torch.nn.Linear:
    torch.manual_seed(seed)
    linear = torch.nn.Linear(settings["in_features"], settings["out_features"], bias=settings["bias"])
    safetensors.torch.save_file({f"linear.{key}": value for key, value in linear.state_dict().items()}, folder / "model.safetensors")
    return linear


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_products_behind_pooling(plain, tmp_path: pathlib.Path, activation: str) -> None:
    first = {**TANH, "activation_function": f"torch.nn.modules.{activation}"}
    files = {"2_Dense/config.json": first, "3_Dense/config.json": BEHIND}
    folder = written(plain, tmp_path, {**pooled(MEAN, TWO_DENSE), **files})
    one = write_dense(folder / "2_Dense", first, 1)
    other = write_dense(folder / "3_Dense", BEHIND, 2)
    mean = torch.tensor(expected_vectors(plain[0], ["mean"], False, 64, ""), dtype=torch.float32)
    with torch.no_grad():
        vectors = ACTIVATIONS[activation](one(mean))
        expected = torch.nn.functional.normalize(other(vectors)).numpy()
    model = heed.models.load(folder)
    np.testing.assert_allclose(model.embed(TEXTS), expected, rtol=0, atol=1e-5)
    (folder / "modules.json").write_text(json.dumps(DENSE))
    np.testing.assert_allclose(heed.models.load(folder).embed(TEXTS), vectors.numpy(), rtol=0, atol=1e-5)
    write_dense(folder / "2_Dense", first, 3)
    assert heed.models.load(folder).sha256() != model.sha256()


REFUSED = {
    "Dense without weights": (pooled(MEAN, DENSE, **{"2_Dense/config.json": TANH}), "neither model.safetensors nor"),
    "Dense of another width": (
        pooled(MEAN, DENSE, **{"2_Dense/config.json": {**TANH, "in_features": 7}}),
        "in_features is 7, expected 32",
    ),
    "Dense of an activation that heed lacks": (
        pooled(MEAN, DENSE, **{"2_Dense/config.json": {**TANH, "activation_function": "torch.nn.modules.activation.Mish"}}),
        'activation_function is "torch.nn.modules.activation.Mish", expected Identity, Tanh, ReLU or GELU',
    ),
    "Dense of tokens": (
        pooled(MEAN, DENSE, **{"2_Dense/config.json": {**TANH, "module_input_name": "token_embeddings"}}),
        'module_input_name is "token_embeddings"',
    ),
    "Dense behind Normalize": (
        pooled(MEAN, modules(("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"), ("Dense", "3_Dense"))),
        "the module is Dense, expected Normalize",
    ),
    "a module of its own": (
        pooled(MEAN, modules(("Transformer", ""), ("Pooling", "1_Pooling"), ("X", ""), types={"X": "own.Scaling"})),
        "the module is own.Scaling",
    ),
    "no Pooling": ({"modules.json": modules(("Transformer", ""))}, "expected Transformer and Pooling"),
    "no modules.json": ({"1_Pooling/config.json": MEAN}, "without modules.json"),
    "a path outside": (pooled(MEAN, modules(("Transformer", ""), ("Pooling", "../1_Pooling"))), "expected one below the folder"),
    "another width": (pooled({**MEAN, "word_embedding_dimension": 48}), "word_embedding_dimension is 48, expected 32"),
    "unknown mode": (pooled({**NEW_MEAN, "pooling_mode": "median"}), 'pooling_mode is "median"'),
    "no modes": (pooled({**NEW_MEAN, "pooling_mode": []}), "pooling_mode is empty"),
    "unknown member": (pooled({**MEAN, "temperature": 2}), "temperature is 2"),
    "lower case": (pooled(MEAN, **{"sentence_bert_config.json": {"do_lower_case": True}}), "do_lower_case is true"),
    "another task": (pooled(MEAN, **{"sentence_bert_config.json": {"transformer_task": "fill-mask"}}), "transformer_task"),
    "expansion": (pooled(MEAN, **{"sentence_bert_config.json": {"query_length": 8}}), "query_length is 8"),
    "no tokens": (pooled(MEAN, **{"sentence_bert_config.json": {"max_seq_length": 0}}), "is 0, expected at least 1"),
    "tokens normalized": (
        pooled(MEAN, NORMALIZED, **{"2_Normalize/config.json": {"module_input_name": "token_embeddings"}}),
        'module_input_name is "token_embeddings"',
    ),
    "unknown prompt": (
        pooled(MEAN, **{"config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": "q"}}),
        'default_prompt_name is "q"',
    ),
    "prompt left out": (
        pooled(
            {**MEAN, "include_prompt": False},
            **{"config_sentence_transformers.json": {"prompts": {"q": "the "}, "default_prompt_name": "q"}},
        ),
        "include_prompt is false",
    ),
    "several vectors": (pooled(MEAN, **{"config_sentence_transformers.json": {"model_type": "MultiVectorEncoder"}}), "model_type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_heed_lacks_is_refused_by_name(plain, tmp_path: pathlib.Path, name: str) -> None:
    files, problem = REFUSED[name]
    with pytest.raises(RuntimeError) as error:
        heed.models.load(written(plain, tmp_path, files))
    assert problem in str(error.value)
    (described,) = heed.models.describe(tmp_path)
    assert any(problem in refusal for refusal in described["refusals"])


# Two folders as sentence-transformers has them: multilingual E5 (a unigram tokenizer, a prompt) and all-mpnet-base-v2.
FOLDERS = {
    "e5": (
        lambda size: XLMRobertaModel(
            XLMRobertaConfig(**{**SIZES, "vocab_size": size}, intermediate_size=48, max_position_embeddings=66, pad_token_id=0, type_vocab_size=1)
        ),
        {"prompts": {"query": "query: "}, "default_prompt_name": "query"},
        "query: ",
    ),
    "mpnet": (
        lambda size: MPNetModel(
            MPNetConfig(**{**SIZES, "vocab_size": size}, intermediate_size=48, max_position_embeddings=66)
        ),
        {},
        "",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_sentence_transformers(name: str, tmp_path: pathlib.Path) -> None:
    test_tokenizers = pytest.importorskip("test_tokenizers")
    make, settings, prompt = FOLDERS[name]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=test_tokenizers.xlm_roberta(), pad_token="<pad>")
    model = make(len(tokenizer)).eval()
    randomise(model)
    files = {"config_sentence_transformers.json": settings, "sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": False}}
    folder = tmp_path / "made"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path, content in pooled(MEAN, NORMALIZED, **files).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(json.dumps(content))
    texts = ["The Straße  is wet\n", "naïve ﬁne 猫 </s>", "", "a long text " * 9]
    found = heed.models.load(folder).embed(texts)
    for text, vector in zip(texts, found, strict=True):
        ids = tokenizer(prompt + text)["input_ids"]
        ids = ids if len(ids) <= 12 else [*ids[:11], ids[-1]]
        with torch.no_grad():
            expected = model(torch.tensor([ids])).last_hidden_state[0].double().numpy().mean(axis=0)
        assert np.abs(vector - expected / np.linalg.norm(expected)).max() < 1e-5
