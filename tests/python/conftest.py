"""Where the programs under test lie, and one run of the probe for all cases."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from cases import Case, Outputs

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))
from exhaustive import is_exhaustive, pytest_addoption, pytest_collection_modifyitems, pytest_configure  # noqa: E402, F401
from heed_command import build, heed  # noqa: E402, F401

Save = Callable[..., None]

# The folder of the package in the build.
sys.path.insert(0, str(pathlib.Path(os.environ["HEED_BUILD"]).resolve() / "python"))

# The cases are small: more threads would only wait for each other.
torch.set_num_threads(1)


def in_memory_layout(case: Case, name: str) -> np.ndarray:
    array = case.arrays[name]
    if case.options.get("layout") == "bthd" and name in ("query", "key", "value", "grad_out"):
        return np.ascontiguousarray(array.transpose(0, 2, 1, 3))
    return array


@pytest.fixture(scope="session")
def probe(build: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Outputs]:
    """Runs heed's reference on cases: what it computes, by case and name."""

    def run(cases: list[Case], save: Save = np.savez) -> Outputs:
        folder = tmp_path_factory.mktemp("probe")
        options = {case.name: case.options for case in cases}
        assert len(options) == len(cases), "two cases have the same name"
        (folder / "cases.json").write_text(json.dumps(options))
        inputs = {f"{c.name}/{name}": in_memory_layout(c, name) for c in cases for name in c.arrays}
        save(folder / "inputs.npz", **inputs)
        program = build / "tests/python/probe/reference_probe"
        subprocess.run([program, folder], check=True, timeout=300)
        outputs: Outputs = {name: {} for name in options}
        with np.load(folder / "outputs.npz") as file:
            for member, array in file.items():
                name, output = member.split("/")
                outputs[name][output] = array
        return outputs

    return run
