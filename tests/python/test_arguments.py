"""Every number that Python gives to the library is one that fits, or the error names the argument."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import heed
from heed import _heed
from heed._explained import parameters_of

POOL = heed.KvPool(1, 8)
X = np.zeros((1, 1, 4, 8), np.float32)

# A valid value for each kind of argument.
SAMPLES = {
    "int": 1,
    "float": 1.0,
    "bool": True,
    "str": "causal",
    "object": None,
    "None": None,
    "tuple": (),
    "dict": {},
    "Callable": print,
    "Mask": heed.causal(),
    "KvPool": POOL,
    "KvSequence": heed.KvSequence(POOL),
    "RelativeBuckets": heed.RelativeBuckets.clip(3),
    "Options": _heed.Options("attention", **{
        **dict.fromkeys(["mask", "score_mod", "scale"]), "learned": {},
        "softcap": 0.0, "dropout": 0.0, "seed": 0, "query_offset": 0, "precision": "fast",
    }),
    "TokenDivision": heed.distributed.TokenDivision(2048, 2),
    "Plan": heed.plan(X, X, X),
}  # fmt: skip
NOT_WHOLE = ("x", 2.5, object(), 2**70, -(2**70))
NOT_A_NUMBER = ("x", object(), [1.0])


def sample(annotation: str):
    kind = annotation.split("|")[0].strip()
    if kind.startswith("tuple["):
        return tuple(sample(part) for part in kind.removeprefix("tuple[")[:-1].split(", "))
    if "[" in kind:
        return []
    return SAMPLES[kind.split(".")[-1]]


def functions():
    """(name, how to call it, its nanobind signature)"""
    for name, member in vars(_heed).items():
        if hasattr(member, "__nb_signature__"):
            yield name, member, member
        elif inspect.isclass(member):
            for method_name, method in vars(member).items():
                function = getattr(method, "__func__", method)
                if hasattr(function, "__nb_signature__") and not method_name.startswith("__"):
                    yield f"{name}.{method_name}", getattr(member, method_name), function


def cases():
    for name, call, signature in functions():
        parameters = [(p, a) for p, a in parameters_of(signature) if p not in ("*", "/")]
        is_method = bool(parameters) and parameters[0][0] == "self"
        for parameter, annotation in parameters:
            kinds = {part.strip() for part in annotation.split("|")}
            bad = NOT_WHOLE if "int" in kinds else NOT_A_NUMBER if "float" in kinds else ()
            if bad and name != "usual_attention":
                yield pytest.param(name, call, parameters, is_method, parameter, bad, id=f"{name}-{parameter}")


CASES = list(cases())


def test_the_table_is_there() -> None:
    assert len(CASES) > 70
    names = {case.values[0] for case in CASES}
    assert {"streaming", "RelativeBuckets.clip", "KvSequence.truncate", "attention_statistics", "rotary_embedding"} <= names


@pytest.mark.parametrize(("name", "call", "parameters", "is_method", "wrong", "bad"), CASES)
def test_a_number_that_is_none_is_named(name, call, parameters, is_method, wrong, bad) -> None:
    try:
        given = {parameter: sample(annotation) for parameter, annotation in parameters if parameter != "self"}
        receiver = (SAMPLES[name.split(".")[0]],) if is_method else ()
    except KeyError as missing:
        # These exist only after ranks have met or a file was read.
        assert str(missing).strip("'") in ("Ranks", "DivisionPlan", "Model", "module", "Figure"), missing
        return
    for value in bad:
        if not all(parameter for parameter in given):
            call_it = lambda: call(*receiver, *(given | {wrong: value}).values())  # noqa: E731
        else:
            call_it = lambda: call(*receiver, **(given | {wrong: value}))  # noqa: E731
        with pytest.raises((TypeError, ValueError), match=rf"{name}: {wrong} is ") as caught:
            call_it()
        assert "incompatible" not in str(caught.value)


@pytest.mark.parametrize("option", ["seed", "dropout", "softcap", "scale", "query_offset"])
def test_options_name_what_is_wrong(option: str) -> None:
    bad = ("x", object(), None if option != "scale" else "x") + ((2.5, 2**70) if option in ("seed", "query_offset") else ())
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=f"^attention: {option} is "):
            heed.attention(X, X, X, **{option: value})
        with pytest.raises((TypeError, ValueError), match=f"^attention_statistics: {option} is "):
            heed.attention_statistics(X, X, **{option: value})
    with pytest.raises(ValueError, match="^attention: seed is -1, expected at least 0"):
        heed.attention(X, X, X, seed=-1)
    with pytest.raises(TypeError, match="^attention_statistics: top_k is 2.5, expected a whole number"):
        heed.attention_statistics(X, X, top_k=2.5)


@pytest.mark.parametrize(
    ("make", "defaults"),
    [
        (heed.KvPool, {"num_kv_heads": 1, "head_dim": 8, "value_dim": 8, "page_size": 16, "max_pages": 3}),
        (lambda **numbers: heed.KvSequence(POOL, **numbers), {"window": 4, "sinks": 1, "max_append": 2, "rewind": 3}),
        (heed.distributed.TokenDivision, {"length": 2048, "size": 2}),
    ],
    ids=["KvPool", "KvSequence", "TokenDivision"],
)
def test_classes_name_what_is_wrong(make, defaults) -> None:
    make(**defaults)
    make(**{name: np.int64(number) for name, number in defaults.items()})
    for name in defaults:
        for value in NOT_WHOLE:
            with pytest.raises(ValueError, match=f"^(KvPool|KvSequence|TokenDivision): {name} is "):
                make(**(defaults | {name: value}))


def test_numbers_of_numpy_are_numbers() -> None:
    expected = heed.attention(X, X, X, dropout=0.5, seed=3, scale=2.0, softcap=1.0, num_threads=1)
    kinds = {"dropout": np.float32(0.5), "seed": np.uint8(3), "scale": np.float64(2), "softcap": np.int32(1), "num_threads": np.int16(1)}
    np.testing.assert_array_equal(heed.attention(X, X, X, **kinds), expected)
    assert str(heed.streaming(np.int64(2), np.uint8(3))) == str(heed.streaming(2, 3))


def test_what_else_is_wrong_is_said() -> None:
    with pytest.raises(TypeError, match="^streaming: there is no argument 'sink'; there are sinks, window, alignment$"):
        heed.streaming(sink=1, window=2)
    with pytest.raises(TypeError, match="^columns: 2 arguments were given, expected at most 1$"):
        heed.columns(1, 2)
    with pytest.raises(TypeError, match="^tree: parents is .*, expected a sequence, each a whole number$"):
        heed.tree([0.5])
    with pytest.raises(ValueError, match=r"mask is a function, expected a heed.Mask: heed.where\(function\) makes one"):
        heed.attention(X, X, X, mask=lambda b, h, q, k: k <= q)
    with pytest.raises(ValueError, match=r"mask is a ndarray, expected a heed.Mask or .* heed.allow\(array\)"):
        heed.attention(X, X, X, mask=np.ones((4, 4), bool))
