"""Padded nn.TransformerEncoder inference under heed.torch.enabled(): what PyTorch's nested tensors compute."""

import pytest
import torch

import heed.torch

LENGTHS = torch.tensor([7, 3, 5])
PADDING = torch.arange(7) >= LENGTHS[:, None]
MIDDLE = torch.zeros(3, 7, dtype=torch.bool)
MIDDLE[1, 2:4] = MIDDLE[2, 0] = True


def encoder(*, with_norm: bool = False, **options) -> torch.nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)
    norm = torch.nn.LayerNorm(16) if with_norm else None
    nests = not options.get("norm_first", False)  # otherwise PyTorch warns that it does not nest
    return torch.nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=nests).eval()


def tokens() -> torch.Tensor:
    return torch.randn(3, 7, 16, generator=torch.Generator().manual_seed(1))


def packed_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each call of attention_packed() has."""
    calls: list[int] = []

    def attend(query, *others, **options):
        calls.append(len(query))
        return heed.attention_packed(query, *others, **options)

    monkeypatch.setattr(heed._encoder, "attention_packed", attend)
    return calls


@pytest.mark.parametrize("options", [{}, {"with_norm": True}, {"activation": "gelu"}], ids=str)
def test_is_what_nested_tensors_are(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding is 0 before the last norm, with heed and without."""
    model, x, calls = encoder(**options), tokens(), packed_calls(monkeypatch)
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=PADDING)
        assert not calls
        with heed.torch.enabled():
            found = model(x, src_key_padding_mask=PADDING)
        assert calls == [15, 15]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        assert options.get("with_norm") or not found[PADDING].any()
        numbers = torch.zeros(3, 7).masked_fill(PADDING, -torch.inf)
        with heed.torch.enabled():
            assert torch.equal(model(x, src_key_padding_mask=numbers), found)
    with torch.no_grad():
        assert torch.equal(model(x, src_key_padding_mask=PADDING), expected)


def test_padding_may_lie_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, calls = encoder(), tokens(), packed_calls(monkeypatch)
    with torch.no_grad(), heed.torch.enabled():
        found = model(x, src_key_padding_mask=MIDDLE)
    assert calls == [18, 18]
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=MIDDLE)
    torch.testing.assert_close(found[~MIDDLE], expected[~MIDDLE], atol=1e-5, rtol=1e-5)


def hooked(model: torch.nn.Module) -> torch.nn.Module:
    model.layers[0].linear1.register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.train(),
        lambda model: hooked(model),
        lambda model: model.double(),
        lambda model: encoder(norm_first=True),
    ],
    ids=["training", "hooks", "double", "norm first"],
)
def test_everything_else_is_pytorchs(change, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = packed_calls(monkeypatch)
    model = change(encoder(dropout=0.0))
    x = tokens().to(next(model.parameters()).dtype)
    with heed.torch.enabled(), torch.no_grad():
        model(x, src_key_padding_mask=PADDING)
        model(x, mask=torch.zeros(7, 7, dtype=torch.bool), src_key_padding_mask=PADDING)
        model(x)
    assert not calls


def test_gradients_are_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, model = packed_calls(monkeypatch), encoder(dropout=0.0)
    with heed.torch.enabled():
        model(tokens(), src_key_padding_mask=PADDING).sum().backward()
    assert not calls and model.layers[0].linear1.weight.grad is not None
