"""The device of the tests here: tensors of the processor unless --device says otherwise."""

import pytest


@pytest.fixture
def device(request):
    torch = pytest.importorskip(
        "torch", reason="tensors need torch, which is not installed: pip install 'gramian[gpu]'"
    )
    name = request.config.getoption("--device")
    if name != "torch-cpu":
        return name
    torch.set_num_threads(1)
    return torch.device("cpu")
