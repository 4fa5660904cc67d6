"""Options of the whole suite."""


def pytest_addoption(parser):
    parser.addoption(
        "--device",
        default="torch-cpu",
        help="where tests/devices computes: torch-cpu (tensors of the processor), cuda, cuda:1",
    )
