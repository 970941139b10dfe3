"""Trained models: folders as transformers saves them, and GGUF files.

>>> model = heed.models.load("all-MiniLM-L6-v2")  # doctest: +SKIP
>>> model.embed(["A cat sat.", "A dog lay."]).shape  # doctest: +SKIP
(2, 384)
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _heed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy import ndarray

__all__ = ["ChatPrompt", "Generated", "Model", "SealDifference", "describe", "load", "seal_differences"]


@dataclass(frozen=True)
class Generated:
    """A text that a model wrote, and why it ended: max_tokens, end_token, stop_text, context_full or caller."""

    ids: list[int]
    text: str
    reason: str
    prefill_seconds: float
    decode_seconds: float
    seal: str | None = None
    log_probs: list[float] | None = None


class ChatPrompt(str):
    """A conversation as the text that a model was trained on, and its ids. Where a model takes a text it takes the ids of this
    one: they begin as the template says, and what a message says is never a special token."""

    ids: list[int]

    def __new__(cls, text: str, ids: Sequence[int]) -> ChatPrompt:
        prompt = super().__new__(cls, text)
        prompt.ids = list(ids)
        return prompt


class Model:
    """A trained transformer with its weights and its tokenizer. Texts may be given as such or as lists of ids;
    `switched_off` is a list of (layer, head) whose output is replaced by 0."""

    def __init__(self, model: _heed.Model) -> None:
        self._model = model

    @property
    def config(self) -> dict[str, Any]:
        return self._model.config

    @property
    def num_parameters(self) -> int:
        """Of all weights, a tied one counted once."""
        return self._model.num_parameters

    @property
    def num_bytes(self) -> int:
        """Memory that the weights take as they are stored."""
        return self._model.num_bytes

    def encode(self, text: str, pair: str | None = None, *, add_special_tokens: bool = True) -> list[int]:
        if isinstance(text, ChatPrompt) and pair is None:
            return list(text.ids)
        return self._model.encode(text, pair, add_special_tokens)[0]

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        return self._model.decode(list(ids), skip_special_tokens)

    def tokens(self, text: str | Sequence[int], pair: str | None = None) -> list[str]:
        """The tokens of a text as people should see them."""
        return [self._model.label(i) for i in self._ids(text, pair)[0]]

    def chat_prompt(
        self,
        messages: Sequence[tuple[str, str] | Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> ChatPrompt:
        """Messages as the model's own template writes them, with the beginning of the answer at the end: for generate(). A message
        is (role, content), or a dict with "role", "content" and what else the template reads: "tool_calls", "reasoning_content". tools
        are JSON schemas of functions, variables other names of the template, such as enable_thinking=False. All is text, numbers, lists
        and dicts."""
        conversation = [_json("a message", m if isinstance(m, Mapping) else _message(m)) for m in messages]
        options = [_json("tools", list(tools)) if tools is not None else "", _json("the variables", variables) if variables else ""]
        return ChatPrompt(*self._model.chat_prompt(conversation, add_generation_prompt, *options))

    @property
    def encoder(self) -> Model:
        """The encoder of a model that has one (config["has_encoder"]); the model itself is its decoder."""
        return Model(self._model.encoder())

    def forward(
        self,
        text: str | Sequence[int],
        pair: str | None = None,
        *,
        switched_off: Any = (),
        source: str | Sequence[int] | None = None,
    ) -> ndarray:
        """Hidden states after the last layer and norm, float32 [tokens, hidden_size]. A model with an encoder needs a source,
        and text is what its decoder reads, whose first token is config["start_id"]."""
        return self._model.forward(*self._ids(text, pair), list(switched_off), self._source(source))

    def hidden_states(
        self,
        text: str | Sequence[int],
        pair: str | None = None,
        *,
        switched_off: Any = (),
        source: str | Sequence[int] | None = None,
    ) -> ndarray:
        """Those after the embedding and after each layer, float32 [num_layers + 1, tokens, hidden_size]."""
        return self._model.hidden_states(*self._ids(text, pair), list(switched_off), self._source(source))

    def attentions(
        self,
        text: str | Sequence[int],
        pair: str | None = None,
        *,
        switched_off: Any = (),
        source: str | Sequence[int] | None = None,
    ) -> ndarray:
        """The weights of every head, float32 [num_layers, num_heads, tokens, tokens]."""
        return self._model.attentions(*self._ids(text, pair), list(switched_off), self._source(source))

    def cross_attentions(self, text: str | Sequence[int], source: str | Sequence[int]) -> ndarray:
        """The weights of every head of a decoder on the tokens of its source, float32
        [num_layers, num_heads, tokens, source tokens]."""
        return self._model.cross_attentions(self._ids(text, None)[0], self._ids(source, None)[0])

    def logits(
        self, text: str | Sequence[int], *, switched_off: Any = (), source: str | Sequence[int] | None = None
    ) -> ndarray:
        """Scores of the token after each token, float32 [tokens, vocab_size]."""
        return self._model.logits(self._ids(text, None)[0], list(switched_off), self._source(source))

    def mean_loss(self, text: str | Sequence[int], *, switched_off: Any = ()) -> float:
        """The mean of -log p(token | tokens before it) in nats."""
        return self._model.mean_loss(self._ids(text, None)[0], list(switched_off))

    def sha256(self) -> str:
        """The hash of the model's files: of a GGUF file what `sha256sum FILE` prints; of a folder that of the lines that it
        prints of the files that load() read, sorted by name. Computed at the first call and kept."""
        return self._model.sha256()

    @overload
    def embed(self, texts: Sequence[str], *, seal: Literal[False] = ...) -> ndarray: ...

    @overload
    def embed(self, texts: Sequence[str], *, seal: Literal[True]) -> tuple[ndarray, str]: ...

    def embed(self, texts: Sequence[str], *, seal: bool = False) -> ndarray | tuple[ndarray, str]:
        """One vector for each text, float32 [len(texts), hidden_size]; with seal=True these and their seal, a str
        (seal_differences)."""
        if isinstance(texts, str):
            raise ValueError("embed: texts is one str, expected a list of them")
        return self._model.embed(list(texts), seal)

    def generate(
        self,
        prompt: str | Sequence[int],
        *,
        max_tokens: int = 100,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        logit_bias: Mapping[int, float] | None = None,
        seed: int = 0,
        stop: Sequence[str] = (),
        end_ids: Sequence[int] = (),
        log_probs: bool = False,
        cache: str = "float32",
        on_text: Callable[[str], bool | None] | None = None,
        seal: bool = False,
    ) -> Generated:
        """Goes on after a prompt: a text, ids, or what chat_prompt() gives. A model with an encoder (T5, Marian, BART) reads the
        prompt as its source and writes a text of its own. on_text is called with each piece of the text; False
        ends it. The text is what follows the prompt's, with the space before its first word. With seal=True the result has a
        seal, by which another machine verifies that it computes the same bits (seal_differences), with log_probs=True the logarithm of the
        probability that the model gave each token. Options change logits in the order of transformers: bias, penalty, temperature,
        top_k, top_p, min_p. end_ids are tokens that end the text besides those of the model."""
        options = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "repetition_penalty": repetition_penalty,
            "logit_bias": list((logit_bias or {}).items()),
            "end_ids": list(end_ids),
            "log_probs": log_probs,
            "seed": seed,
            "stop": stop if isinstance(stop, str) else list(stop),
            "cache": cache,
            "on_text": on_text,
            "seal": seal,
        }
        return Generated(**self._model.generate(self._ids(prompt, None)[0], options))

    def _source(self, source: str | Sequence[int] | None) -> list[int] | None:
        return None if source is None else self._ids(source, None)[0]

    def _ids(self, text: str | Sequence[int], pair: str | None) -> tuple[list[int], list[int]]:
        if isinstance(text, ChatPrompt) and pair is None:
            return text.ids, []
        if isinstance(text, str):
            ids, type_ids = self._model.encode(text, pair, True)
            return ids, type_ids if any(type_ids) else []
        if pair is not None:
            raise ValueError("pair goes with a text, not with ids")
        try:
            return [operator.index(i) for i in text], []
        except TypeError:
            raise ValueError(f"ids are {text!r:.100}, expected a text or whole numbers") from None


def _message(message: Any) -> dict[str, str]:
    try:
        role, content = message
    except (TypeError, ValueError):
        raise ValueError(f"chat_prompt: a message is {message!r:.100}, expected (role, content) or a dict") from None
    return {"role": str(role), "content": str(content)}


def _json(what: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"chat_prompt: {what}: {error}; expected text, numbers, lists and dicts") from None


@dataclass(frozen=True)
class SealDifference:
    """A difference between two seals. part: kind, model, input, option, logits, choice, length, vectors, output or all; index: of
    the token or the text, counted from 0, otherwise None; text: the difference as a sentence."""

    part: str
    index: int | None
    text: str


def seal_differences(expected: str, found: str) -> list[SealDifference]:
    """How a computation differs from the one that was sealed, given both seals: generate(seal=True).seal, or what
    embed(seal=True) gives. Empty where every bit is the same. Of the tokens of a text only the first that differs is listed."""
    return [SealDifference(*difference) for difference in _heed.seal_differences(expected, found)]


def load(path: str | os.PathLike[str]) -> Model:
    """The model of a folder (config.json, model.safetensors, tokenizer.json) or of a GGUF file. Weights are read where
    the files are mapped, and stay as they are stored."""
    return Model(_heed.load_model(os.fspath(path)))


def describe(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What a path holds, without reading weights: one dict for the model, or for each model of a folder that is none itself.

    Members: path, kind ("gguf" or "folder"), opens, refusals (the error for each part that load() would refuse), architecture,
    config (family, sizes, windows and rotary bases of the layers; None where it is refused), num_files, num_elements, num_bytes,
    tensors (for each type: type, tensors, elements, bytes, is_read), num_tokens of the tokenizer, has_chat_template."""
    return [json.loads(text) for text in _heed.describe_models(os.fspath(path))]
