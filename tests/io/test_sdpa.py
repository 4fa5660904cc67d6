"""The sparse SDPA format: reading, writing, and errors with line numbers."""

import gzip

import numpy as np
import pytest

import gramian as gm
from gramian.app.files import FileError

FILE = """"a comment
2 = mDIM
2 = nBLOCK
(2, -2)
{1.0, 2.0}
0 1 1 1 -1.0
0 1 1 2 -0.5
0 2 2 2 -3
1 1 1 1 1
1 1 2 2 1
1 2 1 1 1
2 2 2 2 1
2 1 1 2 0.5
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small.dat-s"
    file.write_text(FILE)
    return file


def test_reads_problem(path):
    problem = gm.io.read_sdpa(path)
    assert (problem.name, problem.order, problem.bounds.size) == ("small", 4, 2)
    C = problem.objective.C.dense()
    np.testing.assert_allclose(C, [[1, 0.5, 0, 0], [0.5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 3]])
    M = np.arange(16.0).reshape(4, 4)
    M = M + M.T
    z = problem.bounds.map.of_matrix(M)
    np.testing.assert_allclose(z, [M[0, 0] + M[1, 1] + M[2, 2], M[3, 3] + M[0, 1]])
    np.testing.assert_allclose(problem.bounds.lower, [1.0, 2.0])


def test_round_trip_with_gzip(path, tmp_path):
    problem = gm.io.read_sdpa(path)
    for name in ("again.dat-s", "again.dat-s.gz"):
        written = gm.io.write_sdpa(problem, tmp_path / name)
        again = gm.io.read_sdpa(written)
        np.testing.assert_allclose(again.objective.C.dense(), problem.objective.C.dense())
        w = np.array([0.3, -1.7])
        for map in (again.bounds.map, problem.bounds.map):
            np.testing.assert_allclose(
                map.adjoint_matrix(w), problem.bounds.map.adjoint_matrix(w), atol=1e-14
            )
    assert gzip.decompress((tmp_path / "again.dat-s.gz").read_bytes()).startswith(b"2\n")


def test_inequalities_are_written_with_slacks(tmp_path):
    problem = gm.problems.sdp(np.eye(2), [np.eye(2)], [1.0], A_ub=[np.diag([1.0, 0])], b_ub=[0.25])
    again = gm.io.read_sdpa(gm.io.write_sdpa(problem, tmp_path / "bounds.dat-s"))
    assert again.order == 3
    first, second = (gm.minimize(p, tol=1e-6) for p in (problem, again))
    assert first.value == pytest.approx(second.value, abs=1e-5)


DAMAGED = {
    "0 2 2 2 -3": ("0 2 2 x -3", "line 8: expected five numbers"),
    "1 2 1 1 1": ("1 2 1 2 1", "line 11: a diagonal block"),
    "2 1 1 2 0.5": ("2 1 1 3 0.5", "line 13: a row or column is outside"),
    "1 1 2 2 1": ("7 1 2 2 1", "line 10: there are 2 matrices"),
    "2 2 2 2 1": ("2 3 2 2 1", "line 12: there are 2 blocks"),
    "0 1 1 2 -0.5": ("0 1 1 1 -0.5", "line 7: duplicate entry"),
    "{1.0, 2.0}": ("{1.0, b}", "line 5: the right-hand side"),
    "(2, -2)": ("(2, 0)", "line 4: expected the sizes of 2 blocks"),
    "2 = mDIM": ("none", "line 2: the number of constraints"),
}


@pytest.mark.parametrize(("line", "damage"), DAMAGED.items(), ids=DAMAGED)
def test_error_names_line_of_damaged_entry(path, line, damage):
    path.write_text(FILE.replace(line, damage[0], 1))
    with pytest.raises(FileError, match=damage[1]):
        gm.io.read_sdpa(path)


def test_missing_or_truncated_file(tmp_path, path):
    with pytest.raises(FileError, match="no such file"):
        gm.io.read_sdpa(tmp_path / "nothing.dat-s")
    short = tmp_path / "short.dat-s.gz"
    short.write_bytes(gzip.compress(FILE.encode())[:-20])
    with pytest.raises(FileError, match="damaged"):
        gm.io.read_sdpa(short)
    path.write_text("3\n1\n")
    with pytest.raises(FileError, match="ends before"):
        gm.io.read_sdpa(path)


def test_rejects_problems_outside_the_format(tmp_path):
    with pytest.raises(ValueError, match="linear objective"):
        gm.io.write_sdpa(gm.problems.quadratic(np.eye(2), None, None), tmp_path / "a.dat-s")


@pytest.mark.filterwarnings("error")
def test_a_file_without_entries_is_read_without_a_warning(tmp_path):
    path = tmp_path / "empty.dat-s"
    path.write_text("1\n1\n2\n0.0\n\n")
    problem = gm.io.read_sdpa(path)
    assert problem.order == 2 and problem.bounds.size == 1


ODD = {
    "too few numbers on the right": (("{1.0, 2.0}", "{1.0}"), "line 6: .* must hold 2 numbers"),
    "too many numbers on the right": (("{1.0, 2.0}", "1 2 3"), "line 5: .* must hold 2 numbers"),
    "a broken count": (("2 = mDIM", "2.5 = mDIM"), "line 2: .* integer between 1 and 2,000"),
    "a broken column": (("2 1 1 2 0.5", "2 1 1 1.5 0.5"), "line 13: .* integers"),
    "a column beyond integers": (("2 1 1 2 0.5", f"2 1 1 {10**20} 0.5"), "line 13: .* integers"),
}


@pytest.mark.parametrize(("change", "message"), ODD.values(), ids=ODD)
def test_error_names_line_of_bad_number(path, change, message):
    path.write_text(FILE.replace(*change))
    with pytest.raises(FileError, match=message):
        gm.io.read_sdpa(path)


def test_words_after_the_right_hand_side_are_a_comment(path):
    path.write_text(FILE.replace("{1.0, 2.0}", "{1.0, 2.0} = right-hand side"))
    np.testing.assert_allclose(gm.io.read_sdpa(path).bounds.lower, [1.0, 2.0])


def test_a_byte_order_mark_is_skipped(path):
    path.write_bytes(b"\xef\xbb\xbf" + FILE.partition("\n")[2].encode())
    assert gm.io.read_sdpa(path).order == 4


@pytest.mark.parametrize("place", [20, -6])
def test_a_gzip_file_with_a_wrong_byte(tmp_path, place):
    data = bytearray(gzip.compress(FILE.encode(), mtime=0))
    data[place] ^= 255
    file = tmp_path / "small.dat-s.gz"
    file.write_bytes(bytes(data))
    with pytest.raises(FileError, match="is damaged"):
        gm.io.read_sdpa(file)


def test_an_empty_file_and_a_folder(tmp_path):
    file = tmp_path / "empty.dat-s"
    file.write_bytes(b"")
    with pytest.raises(FileError, match="is empty"):
        gm.io.read_sdpa(file)
    with pytest.raises(FileError, match="it is a folder"):
        gm.io.read_sdpa(tmp_path)


def test_reads_order_whose_square_exceeds_memory(tmp_path):
    path = tmp_path / "wide.dat-s"
    path.write_text("1\n1\n1000000\n1.0\n0 1 1 1 1.0\n1 1 1 1000000 1.0\n")
    assert gm.io.read_sdpa(path).order == 1_000_000
