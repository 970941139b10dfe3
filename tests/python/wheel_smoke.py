"""Uses every part of an installed heed where there is no other package than NumPy. scripts/test-wheel runs it."""

import importlib.util
import json
import pathlib
import pkgutil
import re
import struct
import sys
import tempfile

import numpy

import heed

# Packages that some submodules use or are compared with. None is installed here.
OTHERS = {"torch", "transformers", "onnx", "onnxruntime"}
# Libraries that the system may have and a wheel must not use.
UNWANTED = re.compile(r"blas|lapack|cairo|pango|fontconfig|libmpi", re.IGNORECASE)

random = numpy.random.default_rng(0)
QUERY, KEY, VALUE = (random.standard_normal((1, 2, 9, 8), numpy.float32) for _ in range(3))


def check_imports() -> None:
    """Every module can be imported, or says which package it lacks."""
    lacking = {}
    for module in pkgutil.walk_packages(heed.__path__, "heed."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name in OTHERS, f"{module.name} does not find {error.name}"
            lacking[module.name] = str(error)
    expected = {"heed.torch": "torch", "heed.transformers": "torch"}
    for name, package in expected.items():
        assert lacking[name] == f"{name} needs {package}, which is not installed: pip install {package}", lacking[name]
    print("without", ", ".join(sorted(lacking)))


def check_operator() -> None:
    mask = heed.causal() & heed.sliding_window(4, 0)
    made = heed.attention(QUERY, KEY, VALUE, mask=mask, return_lse=True)
    expected = heed.reference.attention(QUERY, KEY, VALUE, mask=mask).out
    numpy.testing.assert_allclose(made[0], expected, rtol=1e-4, atol=1e-5)
    ones = numpy.ones_like(made[0])
    found = heed.attention_backward(ones, QUERY, KEY, VALUE, *made, lse_low=made.lse_low, mask=mask)
    assert found.key.shape == KEY.shape
    weights = heed.reference.attention(QUERY, KEY, VALUE, causal=True, keep=["weights"]).weights
    numpy.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    assert heed.diagnose(weights)
    assert "<html" in heed.show(weights, tokens=list("abcdefghi")).html
    angles = numpy.outer(numpy.arange(9), heed.rotary_frequencies(8).inv_freq).astype(numpy.float32)
    turned = heed.rotary_embedding(QUERY, numpy.cos(angles), numpy.sin(angles), pairing="halves")
    numpy.testing.assert_allclose((turned**2).sum(), (QUERY**2).sum(), rtol=1e-5)


def check_figure() -> None:
    """Drawn, or refused by what to do."""
    try:
        heed.figure(numpy.eye(3, dtype=numpy.float32)).render("svg")
    except RuntimeError as error:
        assert "HEED_BUILD_FIGURES=ON" in str(error), error


def check_cache() -> None:
    sequence = heed.KvSequence(heed.KvPool(num_kv_heads=2, head_dim=8))
    sequence.append(KEY, VALUE)
    found = heed.attend(QUERY, sequence, causal=True)
    numpy.testing.assert_allclose(found, heed.attention(QUERY, KEY, VALUE, causal=True), rtol=1e-4, atol=1e-5)


def check_ranks() -> None:
    def work(comm):
        own = [heed.distributed.own_tokens(comm, whole) for whole in (QUERY, KEY, VALUE)]
        return heed.distributed.gather_tokens(comm, heed.distributed.attention(comm, *own, causal=True))

    for found in heed.distributed.run_threads(2, work):
        assert numpy.array_equal(found, heed.attention(QUERY, KEY, VALUE, causal=True))


# --- a model ------------------------------------------------------------------------------------------------------------

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HIDDEN, BETWEEN, WIDTH = 16, 24, 8  # numbers per token, in feed-forward layers, per key head


def drawn_weights() -> dict[str, numpy.ndarray]:
    shapes = {"model.embed_tokens": (26, HIDDEN), "lm_head": (26, HIDDEN), "model.norm": (HIDDEN,)}
    layer = "model.layers.0."
    shapes |= {f"{layer}{name}_layernorm": (HIDDEN,) for name in ("input", "post_attention")}
    shapes |= {f"{layer}self_attn.{name}_proj": (rows, HIDDEN) for name, rows in (("q", HIDDEN), ("k", WIDTH), ("v", WIDTH))}
    shapes |= {f"{layer}self_attn.o_proj": (HIDDEN, HIDDEN), f"{layer}mlp.down_proj": (HIDDEN, BETWEEN)}
    shapes |= {f"{layer}mlp.{name}_proj": (BETWEEN, HIDDEN) for name in ("gate", "up")}
    return {f"{name}.weight": random.standard_normal(shape, numpy.float32) for name, shape in shapes.items()}


def save_model(folder: pathlib.Path) -> None:
    """A Llama of one layer, whose tokens are letters."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-5}
    config |= {"hidden_size": HIDDEN, "intermediate_size": BETWEEN, "num_hidden_layers": 1, "vocab_size": 26}
    config |= {"num_attention_heads": HIDDEN // WIDTH, "num_key_value_heads": 1, "max_position_embeddings": 64}
    config |= {"tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = {letter: index for index, letter in enumerate(LETTERS)}
    tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "decoder": {"type": "ByteLevel"}}
    tokenizer |= {"added_tokens": [], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    header, data = {}, b""
    for name, weight in drawn_weights().items():
        end = len(data) + weight.nbytes
        header[name] = {"dtype": "F32", "shape": weight.shape, "data_offsets": [len(data), end]}
        data += weight.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def check_models() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        save_model(folder)
        model = heed.models.load(folder)
        assert model.num_bytes > 0 and model.decode(model.encode("heed")) == "heed"
        assert model.forward("heed").shape == (4, HIDDEN)
        weights = model.attentions("heed")
        numpy.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        logits = model.logits("heed")
        written = model.generate("heed", max_tokens=3)
        assert written.ids[0] == int(logits[-1].argmax()) and len(written.text) == 3
        assert model.mean_loss("heed") > 0
        seal = model.generate("heed", max_tokens=3, seal=True).seal
        assert heed.models.seal_differences(seal, seal) == []


def check_loaded_libraries() -> None:
    """What was loaded is the wheel's own, NumPy's, or comes with every system."""
    maps = pathlib.Path("/proc/self/maps")
    if not maps.exists():
        return
    packages = pathlib.Path(heed.__file__).parents[1]
    loaded = {line.split()[-1] for line in maps.read_text().splitlines() if ".so" in line}
    foreign = {path for path in loaded if UNWANTED.search(path) and not path.startswith(str(packages))}
    assert not foreign, f"the wheel uses {foreign}"


def main() -> None:
    for package in OTHERS:
        assert importlib.util.find_spec(package) is None, f"{package} is here: this shall run where NumPy is alone"
    check_imports()
    check_operator()
    check_figure()
    check_cache()
    check_ranks()
    check_models()
    check_loaded_libraries()
    print("heed", heed.__version__, "from", pathlib.Path(heed.__file__).parent, "works on", sys.version.split()[0])


if __name__ == "__main__":
    main()
