"""The operator with the keywords of Python."""

from . import _heed
from ._options import make_options


def attention(query, key, value, *, return_lse=False, weights_of=None, num_threads=None, **options):
    made = make_options(**options)
    if not return_lse and weights_of is None:
        return _heed.attention(query, key, value, made, False, num_threads)
    results = _heed.attention(query, key, value, made, return_lse, num_threads)
    results = results if return_lse else (results,)
    if weights_of is not None:
        results += (_heed.attention_weights(query, key, weights_of, made, num_threads),)
    return results


def attention_weights(query, key, rows, *, num_threads=None, **options):
    return _heed.attention_weights(query, key, rows, make_options(**options), num_threads)
