"""The operator with all its options as a function that PyTorch's autograd records. Everything is computed by the
library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from . import _heed
from ._entries import each_entry
from ._operator import AttentionOutput
from ._options import make_options
from ._recorded import as_given, as_real, check_gradients, put_together, rows_of, taken_apart
from ._score_mod import TileFunction
from .distributed import ranks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor
    from typing_extensions import Unpack

    from ._options import Options

_FUNCTION = "heed.torch.attention"


class _Call(NamedTuple):
    """What a call has besides the tensors that autograd sees."""

    options: dict[str, Any]  # without what taken_apart() takes, and without masks that are tensors
    is_allowed: bool  # whether the mask tensor says what may be seen; its numbers are added otherwise
    score_mod: Callable[..., Tensor] | None
    num_learned: int
    ranks: _heed.Ranks | None  # among which tokens are divided


class _Inputs(NamedTuple):
    """The tensors of a call."""

    operands: tuple[Tensor, ...]  # query, key, value
    mask: Tensor | None
    learned: tuple[Tensor | None, ...]
    parameters: tuple[Tensor, ...]  # of score_mod


class _Made(NamedTuple):
    out: Tensor
    lse: Tensor
    lse_low: Tensor
    out_low: Tensor | None


def _inputs_of(call: _Call, tensors: Sequence[Tensor | None]) -> _Inputs:
    end = 4 + call.num_learned
    return _Inputs(tuple(tensors[:3]), tensors[3], tuple(tensors[4:end]), tuple(tensors[end:]))


def _options_of(call: _Call, inputs: _Inputs, score_mod: TileFunction | None) -> _heed.Options:
    options = put_together(inputs.learned, call.options)
    if inputs.mask is not None:
        options["mask"] = (_heed.allow if call.is_allowed else _heed.additive)(inputs.mask.detach())
    if score_mod is not None:
        options["score_mod"] = score_mod
    return make_options(_FUNCTION, **options)


def _tile_function(call: _Call, inputs: _Inputs, needs: Sequence[bool] = ()) -> TileFunction | None:
    if call.score_mod is None:
        return None
    scale, softcap = call.options.get("scale"), call.options.get("softcap", 0.0)
    return TileFunction(call.score_mod, inputs.parameters, needs, inputs.operands, (scale, softcap))


def _attend(call: _Call, inputs: _Inputs, *, with_lse: bool) -> Any:
    def read() -> tuple[list[Tensor], _heed.Options]:
        operands = [rows_of(tensor) for tensor in inputs.operands]
        return operands, _options_of(call, inputs, _tile_function(call, inputs))

    threads = torch.get_num_threads()
    if call.ranks is None:
        operands, options = read()
        return _heed.attention(*operands, options, with_lse, threads)
    operands, options = _heed.run_on_all(call.ranks, read)
    return _heed.distributed_attention(call.ranks, *operands, options, with_lse, threads)


def _with_a_column(tensor: Tensor, number: Tensor | float) -> Tensor:
    """[..., dim + 1]"""
    column = tensor.new_empty((*tensor.shape[:-1], 1))
    column[..., 0] = number
    return torch.cat([tensor, column], dim=-1)


def _with_lse_in(call: _Call, inputs: _Inputs, made: _Made, grads: tuple[Tensor, Tensor]):
    """The call with one more dimension of values, which is 0, and of outputs, which is 1, through which the gradient of
    the lse goes back: grad_score = weight · (grad_out · value - grad_out · out + grad_lse)."""
    query, key, value = inputs.operands
    learned = list(inputs.learned)
    if learned[-1] is not None:  # the value table of relative_vectors
        learned[-1] = _with_a_column(learned[-1], 0.0)
    inputs = inputs._replace(operands=(query, key, _with_a_column(value, 0.0)), learned=tuple(learned))
    grad_out, grad_lse = grads
    return inputs, made._replace(out=_with_a_column(made.out, 1.0)), _with_a_column(grad_out, -grad_lse)


def _check_lse(inputs: _Inputs) -> None:
    """Kernels subtract grad_out · out, which they are given; the reference computes its own sum, without the column."""
    largest = 65536  # of dimensions that kernels take
    dims = [tensor.shape[-1] for tensor in inputs.operands[1:]]
    if _heed.attention_target() == "reference" or dims[0] > largest or dims[1] >= largest:
        raise RuntimeError(f"{_FUNCTION}: the lse has no gradient where no kernel computes attention, but the reference")


def _backward(call: _Call, inputs: _Inputs, made: _Made, grads: tuple[Any, Any], needs: Sequence[bool]):
    """The gradients of query, key, value, the mask (none), what is learned and the parameters of score_mod."""
    grad_out, grad_lse = grads
    if grad_out is None:
        grad_out = torch.zeros_like(made.out)
    given, value_dim = inputs, made.out.shape[-1]
    if grad_lse is not None:
        _check_lse(inputs)
        if made.out.dtype != made.lse.dtype:
            # The output of half precision is rounded: its gradients are computed from another, in float32.
            inputs = inputs._replace(operands=tuple(map(as_real, inputs.operands)))
            made, grad_out = _Made(*_attend(call, inputs, with_lse=True)), as_real(grad_out)
        inputs, made, grad_out = _with_lse_in(call, inputs, made, (grad_out, grad_lse))
    score_mod = _tile_function(call, inputs, needs[4 + call.num_learned :])
    operands = [rows_of(tensor) for tensor in (grad_out, *inputs.operands)]
    options = _options_of(call, inputs, score_mod)
    # Sums that several threads add to would depend on who comes first.
    threads = 1 if score_mod is not None and score_mod.learns else torch.get_num_threads()
    if call.ranks is None:
        found = list(_heed.attention_backward(*operands, tuple(made), options, threads))
    else:
        found = list(_heed.distributed_attention_backward(call.ranks, *operands, tuple(made), options, threads))
    if grad_lse is not None:
        found[2] = found[2][..., :value_dim]
        found[-1] = None if found[-1] is None else found[-1][..., :value_dim]
    gradients = [*as_given(found[:3], given.operands), None, *as_given(found[3:], given.learned)]
    return *gradients, *([None] * len(inputs.parameters) if score_mod is None else score_mod.gradients)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, *tensors):
        made = _attend(call, _inputs_of(call, tensors), with_lse=True)
        ctx.call = call
        ctx.save_for_backward(*tensors, *made)
        ctx.mark_non_differentiable(*(low for low in made[2:] if low is not None))
        ctx.set_materialize_grads(False)
        return made

    @staticmethod
    def backward(ctx, grad_out, grad_lse, *_grads_low):
        check_gradients("attention", *(grad for grad in (grad_out, grad_lse) if grad is not None))
        # Other ranks wait for what this one has of their gradients.
        if grad_out is None and grad_lse is None and ctx.call.ranks is None:
            return (None,) * len(ctx.needs_input_grad)
        *tensors, out, lse, lse_low, out_low = ctx.saved_tensors
        inputs, needs = _inputs_of(ctx.call, tensors), ctx.needs_input_grad[1:]
        return None, *_backward(ctx.call, inputs, _Made(out, lse, lse_low, out_low), (grad_out, grad_lse), needs)


def _check(query: Any, key: Any, value: Any) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{_FUNCTION}: {name} is a {type(tensor).__name__}, expected a torch.Tensor")
        if not tensor.is_cpu:
            raise ValueError(f"{_FUNCTION}: {name} is on {tensor.device}, expected cpu")


def _split_mask(query: Tensor, options: dict[str, Any]) -> tuple[Tensor | None, dict[str, Any]]:
    """A mask that is a tensor, and the options without it: numbers that have a gradient, or more digits than a mask
    keeps, are a bias."""
    mask = options.get("mask")
    if not isinstance(mask, torch.Tensor):
        return None, options
    rest = {name: option for name, option in options.items() if name != "mask"}
    if mask.dtype == torch.bool:
        return mask, rest
    if not mask.is_floating_point():
        raise ValueError(
            f"{_FUNCTION}: mask is a tensor of {mask.dtype}, expected torch.bool, true = may attend, or numbers to be added"
        )
    if not mask.requires_grad and query.dtype != torch.float64:
        return mask, rest
    bias = rest.get("bias")
    return None, rest | {"bias": mask if bias is None else mask + bias}


def _apply(call: _Call, tensors: Sequence[Tensor | None], *, with_lse: bool) -> Any:
    return each_entry(lambda *own: _apply_to_one(call, own, with_lse=with_lse), *tensors)


def _apply_to_one(call: _Call, tensors: Sequence[Tensor | None], *, with_lse: bool) -> Any:
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors):
        made = _Attention.apply(call, *tensors)
        return made if with_lse else made[0]
    with torch.no_grad():
        return _attend(call, _inputs_of(call, tensors), with_lse=with_lse)


def _weights(call: _Call, tensors: Sequence[Tensor | None]) -> Tensor:
    """Attention to values of which each is a dimension of its own."""
    key, value = tensors[1:3]
    values = torch.eye(key.shape[-2], dtype=value.dtype).expand(*value.shape[:-2], -1, -1)
    without = call._replace(options=call.options | {"dropout": 0.0})
    # What relative_vectors add to values is no weight.
    learned = (*tensors[4 : 3 + call.num_learned], None)
    return _apply(without, [*tensors[:2], values, tensors[3], *learned, *tensors[4 + call.num_learned :]], with_lse=False)


def _prepared(
    query: Tensor, key: Tensor, value: Tensor, parameters: Sequence[Tensor], options: dict[str, Any]
) -> tuple[_Call, list[Tensor | None]]:
    """The call that is asked for, on one machine, and its tensors."""
    _check(query, key, value)
    given = dict(options)
    if given.get("dropout") and given.get("seed") is None:
        # Drawn where PyTorch draws, so that torch.manual_seed() decides.
        given["seed"] = int(torch.randint(2**63 - 1, (), dtype=torch.int64))
    given = {name: option for name, option in given.items() if not (name == "seed" and option is None)}
    score_mod = given.pop("score_mod", None)
    if score_mod is None and len(parameters) > 0:
        raise ValueError(f"{_FUNCTION}: there are score_mod_parameters, expected a score_mod that takes them")
    mask, given = _split_mask(query, given)
    learned, rest = taken_apart(_FUNCTION, given)
    call = _Call(rest, mask is not None and mask.dtype == torch.bool, score_mod, len(learned), None)
    return call, [query, key, value, mask, *learned, *parameters]


def _prepared_on_all(ranks: _heed.Ranks, given: tuple[Any, ...], *, wants_weights: bool) -> tuple[_Call, list[Tensor | None]]:
    """The same on several ranks, which all raise what one of them does."""
    *_, parameters, options = given

    def prepare() -> tuple[_Call, list[Tensor | None]]:
        if wants_weights:
            raise ValueError(f"{_FUNCTION}: return_weights is True, expected False where tokens are divided")
        if any(parameter.requires_grad for parameter in parameters):
            raise ValueError(
                f"{_FUNCTION}: score_mod_parameters require gradients, expected none that does where tokens are divided"
            )
        return _prepared(*given)

    call, tensors = _heed.run_on_all(ranks, prepare)
    first_seed = int(_heed.gather_texts(ranks, str(call.options.get("seed", 0)))[0])
    if options.get("dropout") and options.get("seed") is None:
        # All draw one, and that of the first rank counts.
        call = call._replace(options=call.options | {"seed": first_seed})
    return call._replace(ranks=ranks), tensors


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    return_lse: bool = False,
    return_weights: bool = False,
    score_mod_parameters: Sequence[Tensor] = (),
    comm: Any = None,
    **options: Unpack[Options],
) -> Any:
    """heed.attention() with gradients: for query, key, value, the tensors of the options, which heed.AttentionGradients
    names, a float mask and the parameters of score_mod.

    query: [batch, num_heads, q_len, head_dim]
    key:   [batch, num_kv_heads, kv_len, head_dim]
    value: [batch, num_kv_heads, kv_len, value_dim]

    float32, float16, bfloat16 or float64, in the processor's memory. Strides may be any where the elements of the last
    dimension lie side by side, such as those of x.view(batch, length, heads, dim).transpose(1, 2): nothing is copied.

    options               those of heed.attention(), with these differences:
    mask                  also a tensor that broadcasts to [batch, num_heads, q_len, kv_len]: booleans, true = may
                          attend, or numbers added to the scores
    seed                  of dropout: when not given, drawn from PyTorch's generator
    score_mod             score_mod(score, b, h, q_idx, kv_idx, *score_mod_parameters) -> score, of PyTorch's
                          operations: called with tensors for a tile of scores, score [keys, rows], b [], h and q_idx
                          [rows], kv_idx [keys, 1], all int64; it must work element by element
    score_mod_parameters  tensors of which score_mod depends, whose gradients are wanted. Others that require a gradient
                          must not appear in it
    return_lse            also lse [batch, num_heads, q_len], which has a gradient, in an AttentionOutput
    return_weights        also the weights [batch, num_heads, q_len, kv_len] before dropout, which have a gradient. Costs
                          as much as values of kv_len dimensions

    Returns out [batch, num_heads, q_len, value_dim], or an AttentionOutput (out, lse), (out, lse, weights), or the tuple
    (out, weights). Half precision goes back in float32; there is no gradient of a gradient.

    >>> x = torch.randn(1, 8, 128, 64, requires_grad=True)
    >>> sinks = torch.zeros(8, requires_grad=True)
    >>> heed.torch.attention(x, x, x, causal=True, sinks=sinks).sum().backward()
    """
    ranks = None if comm is None else ranks_of(_FUNCTION, comm)
    given = (query, key, value, score_mod_parameters, options)
    call, tensors = _prepared(*given) if ranks is None else _prepared_on_all(ranks, given, wants_weights=return_weights)
    found = _apply(call, tensors, with_lse=return_lse)
    weights = (_weights(call, tensors),) if return_weights else ()
    if return_lse:
        return AttentionOutput(*found, *weights)
    return (found, *weights) if weights else found
