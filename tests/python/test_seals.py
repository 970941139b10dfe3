"""Seals, computed again from what docs/models.md says of them, with Python's hashlib."""

import base64
import hashlib
import pathlib
import subprocess
from collections.abc import Callable

import heed as package
import numpy as np
import pytest
from wheel_smoke import save_model

FILES = ["config.json", "model.safetensors", "tokenizer.json"]


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def digits(digest: bytes, count: int) -> str:
    return base64.urlsafe_b64encode(digest).decode()[:count]


def integers(*numbers: int) -> bytes:
    return np.array(numbers, "<i8").tobytes()


def completed(begin: str, model: str, sealed_input: bytes, chain: bytes, output: bytes, steps: str) -> str:
    sealed = digits(sha256(begin.encode(), model.encode(), sealed_input, chain, output), 22)
    text = f"{begin}:{output.hex()[:8]}:{steps}:{sealed}"
    return f"{text}:{digits(sha256(text.encode()), 4)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("model")
    save_model(path)
    return path


@pytest.fixture(scope="module")
def model(folder: pathlib.Path) -> package.models.Model:
    return package.models.load(folder)


def test_the_model_is_hashed_as_sha256sum_does(folder: pathlib.Path, model: package.models.Model) -> None:
    listing = subprocess.run(["sha256sum", *FILES], cwd=folder, capture_output=True, check=True).stdout
    assert model.sha256() == sha256(listing).hex()


def test_a_generated_token(model: package.models.Model) -> None:
    logits = model.logits("h")
    assert len(logits) == 1
    sealed_input = sha256(integers(*model.encode("h")))
    seen = sha256(bytes(32), logits.astype("<f4").tobytes())
    chain = sha256(seen, integers(int(logits.argmax())))
    written = model.generate("h", max_tokens=1, seal=True)
    output = sha256(b"max_tokens\n", written.text.encode())
    begin = f"heed1:generate:{model.sha256()[:16]}:{sealed_input.hex()[:8]}:n=1"
    steps = digits(seen, 1) + digits(chain, 1)
    assert written.seal == completed(begin, model.sha256(), sealed_input, chain, output, steps)


def test_vectors(model: package.models.Model) -> None:
    texts = ["heed", "attention"]
    vectors, seal = model.embed(texts, seal=True)
    assert np.array_equal(vectors, model.embed(texts))
    sealed_input = sha256(*(integers(len(text)) + text.encode() for text in texts))
    each = [sha256(vector.astype("<f4").tobytes()) for vector in vectors]
    output = sha256(*each)
    begin = f"heed1:embed:{model.sha256()[:16]}:{sealed_input.hex()[:8]}:pool=mean"
    steps = "".join(digits(digest, 2) for digest in each)
    assert seal == completed(begin, model.sha256(), sealed_input, output, output, steps)


def test_differences_are_named(model: package.models.Model) -> None:
    seal = model.generate("heed", max_tokens=4, seal=True).seal
    assert package.models.seal_differences(seal, model.generate("heed", max_tokens=4, seal=True).seal) == []
    option, *_ = package.models.seal_differences(seal, model.generate("heed", max_tokens=5, seal=True).seal)
    assert (option.part, option.index, option.text) == ("option", None, "another option: max_tokens is 5, in the seal 4")
    other, logits, *_ = package.models.seal_differences(seal, model.generate("heer", max_tokens=4, seal=True).seal)
    assert (other.part, logits.part, logits.index) == ("input", "logits", 0)
    assert model.generate("heed", max_tokens=4).seal is None
    with pytest.raises(ValueError, match="it begins with 'x'"):
        package.models.seal_differences("x", seal)


def test_the_command_prints_the_same_seal(
    heed: Callable[..., str], folder: pathlib.Path, model: package.models.Model
) -> None:
    printed = heed("generate", "--model", folder, "--tokens", 6, "--temperature", 0, "--seal", "heed").splitlines()[-1]
    assert printed == model.generate("heed", max_tokens=6, seal=True).seal
    embedded = heed("embed", "--model", folder, "--seal", "heed", "attention").splitlines()[-1]
    assert embedded == model.embed(["heed", "attention"], seal=True)[1]
