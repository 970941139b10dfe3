"""Frequencies of rotary embeddings. Everything is computed by the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _heed

if TYPE_CHECKING:
    from collections.abc import Sequence


class RotaryFrequencies(NamedTuple):
    """inv_freq, float64 [rotary_dim / 2], in radians per position, and what cosines and sines are multiplied by."""

    inv_freq: Any
    attention_factor: float


def rotary_frequencies(
    rotary_dim: int,
    *,
    rope_type: str = "default",
    rope_theta: float = 10000.0,
    length: int | None = None,
    **parameters: float | bool | Sequence[float] | None,
) -> RotaryFrequencies:
    """How fast each pair of rotary_dim turned dimensions turns, scaled as a model's configuration says: names and
    parameters are those of rope_parameters (rope_scaling in config.json), which may be given as they are.

    rope_type     "default", "linear", "dynamic", "yarn", "longrope" (also "su") or "llama3"
    rope_theta    the base
    length        how long the whole sequence is, what a cache holds of it included; "dynamic" and "longrope" depend
                  on it and need it, the others ignore it
    factor        of all but "default". "longrope" needs it, max_position_embeddings divided by the original one, or
                  attention_factor.
    original_max_position_embeddings
                  of all but "default" and "linear"; for "dynamic" the configuration's max_position_embeddings
    low_freq_factor, high_freq_factor
                  of "llama3"; 1 and 4
    short_factor, long_factor
                  of "longrope": [rotary_dim / 2] numbers each
    attention_factor
                  of "yarn" and "longrope", in place of what follows from factor
    beta_fast, beta_slow, truncate, mscale, mscale_all_dim
                  of "yarn"; 32, 1, True, and neither mscale

    A parameter that the scaling does not have is refused; None counts as not given. The equations, and their sources, are
    in heed/attention/rotary_frequencies.h.

    >>> inv_freq, attention_factor = heed.rotary_frequencies(
    ...     4, rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=32768
    ... )
    >>> inv_freq.tolist(), round(attention_factor, 6)
    ([1.0, 0.000625], 1.138629)
    """
    return RotaryFrequencies(*_heed.rotary_frequencies(rotary_dim, rope_type, rope_theta, length, parameters))
