"""Caches of keys and values from Python, compared with attention() and with PyTorch."""

import threading

import numpy as np
import pytest
import torch

import heed


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def sequence_of(key, value, **config) -> heed.KvSequence:
    pool = heed.KvPool(key.shape[-3], key.shape[-1], value.shape[-1], **config)
    sequence = heed.KvSequence(pool)
    sequence.append(key, value)
    return sequence


QUERY, KEY, VALUE = draw(1, 4, 50, 24), draw(1, 2, 50, 24, seed=1), draw(1, 2, 50, 10, seed=2)


@pytest.mark.parametrize("page_size", [16, 128])
def test_decoding_has_the_bits_of_one_prefill(page_size: int) -> None:
    whole, lse = heed.attention(QUERY, KEY, VALUE, causal=True, return_lse=True)
    sequence = heed.KvSequence(heed.KvPool(2, 24, 10, page_size=page_size))
    for begin, end in ((0, 20), (20, 21), (21, 22), (22, 50)):
        sequence.append(KEY[:, :, begin:end], VALUE[0, :, begin:end])
        found, found_lse = heed.attend(QUERY[:, :, begin:end], sequence, causal=True, return_lse=True)
        np.testing.assert_array_equal(found, whole[:, :, begin:end])
        np.testing.assert_array_equal(found_lse, lse[:, :, begin:end])
    assert len(sequence) == 50
    np.testing.assert_array_equal(heed.attend(QUERY[0], sequence, causal=True), whole[0])


def test_tensors_of_pytorch() -> None:
    query, key, value = (torch.from_numpy(array) for array in (QUERY, KEY, VALUE))
    sequence = sequence_of(key, value)
    found = heed.attend(query, sequence, causal=True)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key.repeat_interleave(2, dim=1), value.repeat_interleave(2, dim=1), is_causal=True
    )
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, expected)
    half = heed.attend(query.bfloat16(), sequence, causal=True)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), expected, atol=0.02, rtol=0.02)


def test_several_sequences_in_one_call() -> None:
    pool = heed.KvPool(2, 24, 10)
    sequences = [heed.KvSequence(pool), heed.KvSequence(pool)]
    sequences[0].append(KEY, VALUE)
    sequences[1].append(KEY[:, :, :7], VALUE[:, :, :7])
    packed = np.ascontiguousarray(np.concatenate([QUERY[0, :, 49:], QUERY[0, :, 4:7]], axis=1).transpose(1, 0, 2))
    found, lse = heed.attend(packed, sequences, [0, 1, 4], causal=True, return_lse=True)
    whole = heed.attention(QUERY, KEY, VALUE, causal=True)[0].transpose(1, 0, 2)
    np.testing.assert_array_equal(found[:1], whole[49:])
    np.testing.assert_array_equal(found[1:], whole[4:7])
    assert lse.shape == (4, 4)


def test_forks_share_and_part() -> None:
    sequence = sequence_of(KEY, VALUE, page_size=16, max_pages=6)
    fork = sequence.fork(20)
    assert (len(fork), fork.num_pages, sequence.pool.pages_in_use) == (20, 2, 4)
    fork.append(KEY[:, :, :1], VALUE[:, :, :1])
    assert sequence.pool.pages_in_use == 5
    np.testing.assert_array_equal(sequence.dequantised()[0], KEY[0])
    np.testing.assert_array_equal(fork.dequantised()[0][:, 20], KEY[0, :, 0])
    with pytest.raises(heed.OutOfPages, match="KvSequence::append: 2 pages are wanted, but 1 of 6 are free"):
        fork.append(KEY[:, :, :40], VALUE[:, :, :40])
    assert issubclass(heed.OutOfPages, MemoryError) and len(fork) == 21
    fork.accept(3, [0, 2])
    assert len(fork) == 20
    fork.truncate(3)
    fork.reset()
    assert len(fork) == 0
    del fork
    assert sequence.pool.pages_in_use == 4 and sequence.pool.free_pages == 2


def test_windows_and_sinks() -> None:
    position = np.arange(50)
    seen = (position[None] < 2) | (position[None] > position[:, None] - 20)
    sequence = heed.KvSequence(heed.KvPool(2, 24, 10, page_size=16), window=20, sinks=2)
    whole = heed.attention(QUERY, KEY, VALUE, causal=True, mask=heed.allow(seen))
    for t in range(50):
        sequence.append(KEY[:, :, t : t + 1], VALUE[:, :, t : t + 1])
        found = heed.attend(QUERY[:, :, t : t + 1], sequence, causal=True)
        np.testing.assert_array_equal(found, whole[:, :, t : t + 1])
    assert sequence.num_pages <= 4


@pytest.mark.parametrize(("storage", "error"), [("float16", 3e-4), ("bfloat16", 2e-3), ("int8", 8e-3), ("int4", 0.12)])
def test_storages(storage: str, error: float) -> None:
    sequence = sequence_of(KEY, VALUE, key_storage=storage)
    key, value = sequence.dequantised()
    assert np.sqrt(np.mean((key - KEY[0]) ** 2)) < error
    assert np.sqrt(np.mean((value - VALUE[0]) ** 2)) < error
    np.testing.assert_allclose(
        heed.attend(QUERY, sequence, causal=True),
        heed.attention(QUERY, key[None], value[None], causal=True),
        atol=3e-6,
    )
    assert sequence.pool.page_bytes < heed.KvPool(2, 24, 10).page_bytes


def test_a_sequence_keeps_its_pool() -> None:
    sequence = heed.KvSequence(heed.KvPool(2, 24, 10))
    sequence.append(KEY, VALUE)
    np.testing.assert_array_equal(sequence.dequantised()[1], VALUE[0])


def test_nobody_changes_what_a_thread_reads() -> None:
    sequence = sequence_of(KEY, VALUE)
    inside, done = threading.Event(), threading.Event()

    def wait(score, *_):
        inside.set()
        done.wait(20)
        return score

    thread = threading.Thread(target=lambda: heed.attend(QUERY, sequence, score_mod=wait))
    thread.start()
    try:
        assert inside.wait(20)
        with pytest.raises(RuntimeError, match="KvSequence.append: another thread attends"):
            sequence.append(KEY, VALUE)
    finally:
        done.set()
        thread.join()
    sequence.append(KEY, VALUE)
    assert len(sequence) == 100


@pytest.mark.parametrize(
    ("text", "misuse"),
    [
        ("KvPool: key_storage is 'int2', expected", lambda: heed.KvPool(1, 4, key_storage="int2")),
        ("KvPool: page_size is 48, expected 16, 32, 64 or 128", lambda: heed.KvPool(1, 4, page_size=48)),
        ("KvSequence.append: key is float64", lambda: sequence_of(KEY.astype(float), VALUE.astype(float))),
        ("KvSequence.append: value is float32, expected float16", lambda: sequence_of(KEY.astype("f2"), VALUE)),
        ("attend: query_offset is 3, expected 0", lambda: heed.attend(QUERY, sequence_of(KEY, VALUE), query_offset=3)),
        ("attend: 50 queries, but the sequence has 10", lambda: heed.attend(QUERY, sequence_of(KEY[:, :, :10], VALUE[:, :, :10]))),
        ("attend: a list of sequences needs cu_seqlens", lambda: heed.attend(QUERY[0], [sequence_of(KEY, VALUE)])),
        ("attend: cu_seqlens goes with a list", lambda: heed.attend(QUERY, sequence_of(KEY, VALUE), [0, 50])),
        (r"attend: cu_seqlens is \[0, 0.5\]", lambda: heed.attend(QUERY[0], [sequence_of(KEY, VALUE)], [0, 0.5])),
        ("attend: query is float64", lambda: heed.attend(QUERY.astype(float), sequence_of(KEY, VALUE))),
        ("KvSequence: sinks is 2 without a window", lambda: heed.KvSequence(heed.KvPool(1, 4), sinks=2)),
    ],
)  # fmt: skip
def test_misuse(text: str, misuse) -> None:
    with pytest.raises(ValueError, match=text):
        misuse()
