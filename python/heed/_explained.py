"""Functions of the library that say which argument they do not take, what was found and what they expect.

What nanobind raises lists the types of a whole signature. Its signatures are read here, once something was refused.
"""

from __future__ import annotations

import functools
import numbers
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy

from . import _heed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WORDS = {"int": "a whole number", "float": "a number", "bool": "True or False", "str": "a str", "None": "None"}
_SEQUENCE = re.compile(r"(?:collections\.abc\.Sequence|list)\[(.*)\]")
_TUPLE = re.compile(r"tuple\[(.*)\]")


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parameters_of(function: Any) -> list[tuple[str, str]]:
    """(name, annotation) of each parameter, as nanobind has them: "*" among them begins those with keywords."""
    signature = function.__nb_signature__[0][0]
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    return [(name.strip(), kind.split("=")[0].strip()) for name, _, kind in (part.partition(":") for part in _split(inside, ","))]


def _is_one(kind: str, value: Any) -> bool:
    if kind == "None":
        return value is None
    if kind == "int":
        return hasattr(value, "__index__")
    if kind == "float":
        return isinstance(value, (numbers.Real, numpy.bool_)) or hasattr(value, "__index__")
    if kind == "bool":
        return isinstance(value, (bool, numpy.bool_))
    if kind == "str":
        return isinstance(value, str)
    if sequence := _SEQUENCE.fullmatch(kind):
        return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and all(_fits(sequence[1], x) for x in value)
    if parts := _TUPLE.fullmatch(kind):
        kinds = _split(parts[1], ",")
        return isinstance(value, (tuple, list)) and len(value) == len(kinds) and all(map(_fits, kinds, value))
    name = kind.split(".")[-1]
    if name == "Callable":
        return callable(value)
    return kind == "object" or not name.isidentifier() or name in {base.__name__ for base in type(value).__mro__}


def _fits(annotation: str, value: Any) -> bool:
    return any(_is_one(kind, value) for kind in _split(annotation, "|"))


def _words(annotation: str) -> str:
    def one(kind: str) -> str:
        if sequence := _SEQUENCE.fullmatch(kind):
            return f"a sequence, each {_words(sequence[1])}"
        if parts := _TUPLE.fullmatch(kind):
            return f"({', '.join(map(_words, _split(parts[1], ',')))})"
        return _WORDS.get(kind, f"a {kind.split('.')[-1]}")

    return " or ".join(map(one, _split(annotation, "|")))


def _whole_numbers(value: Any) -> Iterator[int]:
    """All in it."""
    if hasattr(value, "__index__"):
        yield operator.index(value)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _whole_numbers(part)


def _problem(parameters: list[tuple[str, str]], given: dict[str, Any]) -> Exception | None:
    for name, annotation in parameters:
        if name in given and not _fits(annotation, given[name]):
            return TypeError(f"{name} is {given[name]!r:.100}, expected {_words(annotation)}")
    # All are of the right types: some number is not in the range of its type in C++.
    for name, annotation in parameters:
        if name in given and re.search(r"\bint\b", annotation):
            for number in _whole_numbers(given[name]):
                if number < 0 or number >= 2**31:
                    expected = "expected at least 0" if number < 0 else "which is too large"
                    return ValueError(f"{name} is {number}, {expected}")
    return None


def explain(name: str, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Exception | None:
    """What is wrong with the arguments of a call of this name; None where that cannot be said."""
    parameters = [(parameter, kind) for parameter, kind in parameters_of(function) if parameter not in ("*", "/", "self")]
    names = [parameter for parameter, _ in parameters]
    if len(arguments) > len(names):
        return TypeError(f"{name}: {len(arguments)} arguments were given, expected at most {len(names)}")
    unknown = [keyword for keyword in keywords if keyword not in names]
    if unknown and all(names):
        return TypeError(f"{name}: there is no argument '{unknown[0]}'; there are {', '.join(names)}")
    problem = _problem(parameters, dict(zip(names, arguments)) | keywords)
    return None if problem is None else type(problem)(f"{name}: {problem}")


def explained(function: Any, name: str, is_method: bool = False) -> Callable[..., Any]:
    """The function, which explains what it refuses."""

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
            problem = explain(name, function, arguments[is_method:], keywords)
            if problem is None:
                raise
        raise problem

    call.__nb_signature__ = function.__nb_signature__  # type: ignore[attr-defined]
    return call


# It is called for every short sequence, by heed.torch alone, which gives it what it takes.
_AS_IT_IS = {"usual_attention"}
# What Python looks up by itself.
_SPECIAL = re.compile(r"__(?!call__)\w+__")


def _explain_methods(cls: type) -> None:
    for name, method in list(vars(cls).items()):
        if _SPECIAL.fullmatch(name):
            continue
        if type(method).__name__ == "nb_method":
            setattr(cls, name, explained(method, f"{cls.__name__}.{name}", is_method=True))
        elif type(method).__name__ == "nb_func":
            setattr(cls, name, staticmethod(explained(method, f"{cls.__name__}.{name}")))


def _explain_all() -> None:
    for name, member in list(vars(_heed).items()):
        if type(member).__name__ == "nb_func" and name not in _AS_IT_IS:
            setattr(_heed, name, explained(member, name))
        elif isinstance(member, type):
            _explain_methods(member)


_explain_all()
