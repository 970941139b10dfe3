"""What models return as their attentions, as layers with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Layer(NamedTuple):
    name: str
    weights: Any
    queries_are_source: bool = False
    """of an encoder, whose tokens are the others' keys"""
    is_cross: bool = False


# What the outputs of transformers' models have, and what each is: its name, whether queries are of the source, whether
# it is cross-attention.
_OF_OUTPUTS = {
    "attentions": ("layer", False, False),
    "encoder_attentions": ("encoder", True, False),
    "decoder_attentions": ("decoder", False, False),
    "cross_attentions": ("cross", False, True),
}


def _is_array(given: Any) -> bool:
    return hasattr(given, "shape")


def _check_layers(function: str, name: str, layers: Sequence[Any]) -> None:
    for index, layer in enumerate(layers):
        if not _is_array(layer):
            raise ValueError(
                f"{function}: {name}[{index}] is a {type(layer).__name__}, expected the weights of a layer, "
                "[batch, num_heads, queries, keys]; a model must be asked for them with output_attentions=True, and of what "
                "generate() returns one step is taken"
            )


def layers_of(function: str, given: Any) -> list[Layer] | None:
    """The layers of what a model returned, or of a tuple or list of its attentions; None of anything else."""
    if isinstance(given, (tuple, list)) and not hasattr(given, "_fields"):
        if len(given) == 0:
            raise ValueError(f"{function}: there are no layers, expected at least one")
        if not any(map(_is_array, given)) and not any(part is None for part in given):
            return None
        _check_layers(function, "attentions", given)
        return [Layer(f"layer {index}", layer) for index, layer in enumerate(given)]
    if _is_array(given) or not any(hasattr(given, name) for name in _OF_OUTPUTS):
        return None
    layers = []
    for field, (name, is_source, is_cross) in _OF_OUTPUTS.items():
        attentions = getattr(given, field, None)
        if attentions is None:
            continue
        _check_layers(function, field, attentions)
        layers += [Layer(f"{name} {index}", layer, is_source, is_cross) for index, layer in enumerate(attentions)]
    if not layers:
        raise ValueError(
            f"{function}: the {type(given).__name__} has no attentions: call the model with output_attentions=True and "
            'attn_implementation="eager", or "heed" after heed.torch.register_transformers()'
        )
    return layers


def without_gradient(weights: Any) -> Any:
    """Of a layer's weights, which a model that was called without torch.no_grad() records; nobody reads those of a tensor
    that is given alone."""
    return weights.detach() if hasattr(weights, "detach") else weights
