"""Writes the streams that the tests of random.h, position.h and nn/init.h are held to.

    python tests/python/dump_random_streams.py

draws them from real PyTorch (2.13, on a processor with AVX2) and NumPy and writes them to
tests/data/random/NAME.bin: bare little-endian elements, one value after another. The tests make the
same calls in the same order. Run it again only when a stream is added; git then shows whether an
old one has changed.
"""

import math
import pathlib

import numpy as np
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "random"
NORMAL_SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 100, 1000, 4099)
RANDINT_RANGES = (
    (0, 1),
    (0, 2),
    (-3, 10),
    (0, 2**28 - 1),
    (0, 2**28),
    (0, 2**31),
    (0, 2**32 - 1),
    (0, 2**32),
    (0, 2**32 + 1),
    (-(2**40), 2**40),
    (0, 2**63 - 1),
    (-(2**63), 2**63 - 1),
)


def write(name, *arrays):
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    joined = np.concatenate(flat)
    (FOLDER / f"{name}.bin").write_bytes(joined.astype(joined.dtype.newbyteorder("<")).tobytes())


def torch_uniform(dtype, count):
    torch.manual_seed(0)
    return (
        torch.rand(count, dtype=dtype).numpy(),
        torch.empty(1000, dtype=dtype).uniform_(-0.37, 0.81).numpy(),
    )


def torch_normal(dtype):
    torch.manual_seed(1)
    draws = [torch.randn(size, dtype=dtype).numpy() for size in NORMAL_SIZES]
    draws += [torch.empty(size, dtype=dtype).normal_(1.5, 0.25).numpy() for size in (5, 40)]
    return draws + [torch.rand(4, dtype=dtype).numpy()]


def torch_strided():
    """Filled views that are transposed or have gaps, as they read in row-major order."""
    torch.manual_seed(2)
    views = []
    for fill in (torch.Tensor.uniform_, torch.Tensor.normal_):
        for view in (
            torch.empty(5, 7).t(),
            torch.empty(2, 3, 4).permute(2, 0, 1),
            torch.empty(4, 9)[:, ::2],
            torch.empty(4, 9)[1:3],
        ):
            views.append(fill(view).contiguous().numpy())
    return views


def torch_mixed():
    """Calls between which a second normal is kept, and a seeding that forgets it."""
    torch.manual_seed(3)
    f64 = torch.float64
    draws = [torch.randn(3), torch.rand(2), torch.randn(16), torch.randn(2, dtype=f64)]
    draws += [torch.randint(0, 10, (3,)), torch.randn(20), torch.randn(1), torch.randn(7)]
    torch.manual_seed(2**40 + 7)
    draws += [torch.randn(4, dtype=f64), torch.rand(3), torch.randn(1, dtype=f64)]
    return [draw.to(f64).numpy() for draw in draws]


def torch_randperm():
    """Whole permutations, then the start of a long one and a checksum of all of it."""
    torch.manual_seed(5)
    whole = [torch.randperm(n).numpy() for n in (0, 1, 2, 1000)]
    long = torch.randperm(70000).numpy()
    checksum = np.array([(np.arange(70000) * long).sum()])
    return [*whole, long[:500], checksum, torch.randint(0, 2**40, (1,)).numpy()]


def torch_init_float():
    torch.manual_seed(0)
    layers = [torch.nn.Embedding(4, 4)]
    layers += [torch.nn.Linear(4, 4, bias=False) for _ in range(4)]
    layers += [torch.nn.Linear(64, 64), torch.nn.Linear(7, 3)]
    return parameters(layers)


def torch_init_double():
    torch.manual_seed(0)
    sizes = ((5, 3), (64, 8), (7, 2))
    return parameters(torch.nn.Linear(*size, dtype=torch.float64) for size in sizes)


def parameters(layers):
    return [p.detach().numpy() for layer in layers for p in layer.parameters()]


def sinusoidal_encoding(dtype, max_len, d_model):
    """The formula as tutorials write it in PyTorch."""
    table = torch.zeros(max_len, d_model, dtype=dtype)
    position = torch.arange(max_len, dtype=dtype).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=dtype) * (-math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table.numpy()


def learned_encoding():
    torch.manual_seed(6)
    table = torch.empty(1000, 512)
    torch.nn.init.normal_(table, std=0.02)
    return table[-1].numpy()


def numpy_normal():
    state = np.random.RandomState(42)
    return state.randn(1001), state.rand(1000), state.randn(30, 50)


def numpy_randint():
    state = np.random.RandomState(7)
    return [state.randint(low, high, size=40) for low, high in RANDINT_RANGES]


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    write("torch_uniform_float", *torch_uniform(torch.float32, 5000))
    write("torch_uniform_double", *torch_uniform(torch.float64, 5000))
    write("torch_normal_float", *torch_normal(torch.float32))
    write("torch_normal_double", *torch_normal(torch.float64))
    write("torch_strided", *torch_strided())
    write("torch_mixed", *torch_mixed())
    torch.manual_seed(4)
    write("torch_randint", *(torch.randint(*r, (40,)).numpy() for r in RANDINT_RANGES))
    write("torch_randperm", *torch_randperm())
    write("torch_init_float", *torch_init_float())
    write("torch_init_double", *torch_init_double())
    write("sinusoidal_float", sinusoidal_encoding(torch.float32, 50, 64))
    write("sinusoidal_double", sinusoidal_encoding(torch.float64, 50, 64))
    write("learned_last_row", learned_encoding())
    write("numpy_normal", *numpy_normal())
    write("numpy_randint", *numpy_randint())


if __name__ == "__main__":
    main()
