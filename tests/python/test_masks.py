"""Masks of the Python package that are patterns, blocks or text."""

import numpy as np
import pytest

import heed


def test_patterns() -> None:
    assert str(heed.bigbird()) == "block_window(1, 1, 64) | global_tokens(128) | random_blocks(3, 64, 0)"
    assert str(heed.block_window(None, 0, 3)) == "block_window(unbounded, 0, 3)"
    assert str(heed.random_blocks(1, 2, 2**64 - 1, only_past=True)) == f"random_blocks(1, 2, {2**64 - 1}, past)"
    assert heed.streaming(1, 2).picture((5, 5)) == "#....\n##...\n###..\n#.##.\n#..##"
    assert heed.block_window(0, 0, 2, "top_left").picture((2, 4)) == "##..\n##.."
    with pytest.raises(ValueError, match="count is 257, expected 0 to 256"):
        heed.random_blocks(257)
    with pytest.raises(ValueError, match="window is 2, expected an odd number"):
        heed.bigbird(window=2)


def test_text_is_a_mask() -> None:
    text = "causal & (sliding_window(1, 0) | columns(3))"
    mask = heed.causal() & (heed.sliding_window(1, 0) | heed.columns(3))
    assert str(heed.parse_mask(text)) == str(mask) == text
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 8)).astype("float32")
    np.testing.assert_array_equal(heed.attention(x, x, x, mask=text), heed.attention(x, x, x, mask=mask))
    with pytest.raises(ValueError, match=r"there is no mask 'windw'.*\n  causal & windw\n           \^"):
        heed.attention(x, x, x, mask="causal & windw")
    with pytest.raises(ValueError, match="which cannot be read from text"):
        heed.parse_mask(str(heed.allow(np.ones((2, 2), bool))))


def test_blocks_from_arrays() -> None:
    mask = heed.blocks(np.array([0, 2, 2, 3]), np.array([0, 2, 1]), lengths=(5, 8), block=(2, 3))
    assert mask.picture((5, 8)) == "###...##\n###...##\n........\n........\n...###.."
    odd = heed.allow(np.arange(8) % 2 == 1)
    mask = heed.blocks(
        np.array([0, 2, 2, 3]), np.array([0, 2, 1], np.int32), lengths=(5, 8), block=(2, 3), partial=np.array([0, 1, 0], bool), within=odd
    )
    assert mask.picture((5, 8)) == "###....#\n###....#\n........\n........\n...###.."
    del odd
    assert str(mask) == "blocks[3 of 9, 2 x 3](allow[8])"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": np.array([0, 2, 3])}, "columns\\[2\\] is 3, but there are 3 blocks of keys"),
        ({"columns": np.array([0, 2, 2**40])}, "columns holds 1099511627776, which is no block"),
        ({"columns": np.array([0.0, 2, 1])}, "columns is float64, expected int64 or int32"),
        ({"row_begin": np.array([[0, 2, 2, 3]])}, "row_begin has shape \\[1, 4\\], expected one dimension"),
        ({"row_begin": np.array([0, 2, 3])}, "row_begin has 3 numbers"),
        ({"partial": np.array([0, 1, 0])}, "partial is int64, expected bool"),
        ({"block": (2, 300)}, "kv_block is 300, expected 1 to 128"),
    ],
)
def test_blocks_are_checked(change, message) -> None:
    arguments = {"row_begin": np.array([0, 2, 2, 3]), "columns": np.array([0, 2, 1]), "lengths": (5, 8), "block": (2, 3)}
    with pytest.raises(ValueError, match=message):
        heed.blocks(**(arguments | change))


def chosen(query: np.ndarray, key: np.ndarray, block: int, top_k: int) -> np.ndarray:
    """What each query of a causal call sees of each key, in plain loops."""
    heads, group = query.shape[1], query.shape[1] // key.shape[1]
    seen = np.zeros((query.shape[0], heads, query.shape[2], key.shape[2]), dtype=bool)
    for batch, head, q in np.ndindex(seen.shape[:3]):
        position = key.shape[2] - query.shape[2] + q
        own = position // block
        means = [key[batch, head // group, j * block : (j + 1) * block].mean(axis=0) for j in range(own)]
        best = np.argsort([-(query[batch, head, q] @ mean) for mean in means], kind="stable")[: top_k - 1]
        for j in [*best, own]:
            seen[batch, head, q, j * block : (j + 1) * block] = True
        seen[batch, head, q, position + 1 :] = False
    return seen


def test_selected_blocks_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(1)
    query, key = rng.standard_normal((2, 4, 37, 8)), rng.standard_normal((2, 2, 41, 8))
    layout = heed.select_blocks(query, key, block=8, top_k=3, causal=True)
    mask = heed.blocks(**layout, within=heed.causal("bottom_right"))
    np.testing.assert_array_equal(mask.allow((2, 4, 37, 41)), chosen(query, key, 8, 3))
    together = heed.select_blocks(query, key, block=8, top_k=3, causal=True, per_kv_head=True)
    sums = query.reshape(2, 2, 2, 37, 8).sum(axis=2)
    mask = heed.blocks(**together, within=heed.causal("bottom_right"))
    np.testing.assert_array_equal(mask.allow((2, 4, 37, 41)), chosen(sums, key, 8, 3).repeat(2, axis=1))
    every = heed.select_blocks(query.astype(np.float32), key.astype(np.float32), block=8, top_k=6)
    assert heed.blocks(**every).allow((2, 4, 37, 41)).all()
    with pytest.raises(ValueError, match="select_blocks: q_block is 4, expected 1 where causal"):
        heed.select_blocks(query, key, q_block=4, causal=True)
    with pytest.raises(ValueError, match="select_blocks: top_k is 0, expected 1 to "):
        heed.select_blocks(query, key, top_k=0)


def test_the_layout_of_a_mask_shows_what_it_shows() -> None:
    allowed = np.random.default_rng(0).random((2, 3, 40, 50)) < 0.05
    mask = heed.allow(allowed) & heed.causal("bottom_right")
    layout = heed.block_layout(mask, (2, 3, 40, 50), block=(8, 8))
    assert layout["columns"].dtype == np.int32 and layout["partial"].dtype == bool
    assert layout["row_begin"].shape == (2 * 3 * 5 + 1,)
    blocks = heed.blocks(**layout, within=mask)
    np.testing.assert_array_equal(blocks.allow((2, 3, 40, 50)), mask.allow((2, 3, 40, 50)))
    with pytest.raises(ValueError, match="made for q_len 40 and kv_len 50 but q_len is 40 and kv_len 51"):
        blocks.allow((2, 3, 40, 51))
