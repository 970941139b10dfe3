"""heed's caches and attention in the package transformers.

>>> import heed.transformers
>>> model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="heed")
>>> cache = heed.transformers.KvCache(key_storage="int8")
>>> model.generate(**tokens, past_key_values=cache)

The import makes attn_implementation="heed" the attention of any model, as heed.torch.register_transformers() does: over
a KvCache, over other caches, or over none.
"""

from ._needs import needed_by

with needed_by("heed.transformers"):
    from . import _any_model
    from ._transformers_cache import KvCache

__all__ = ["KvCache"]

KvCache.__module__ = __name__

_any_model.register()
