"""ARFF files, as Weka writes them."""

import numpy as np
import pytest

from gramian.app.files import FileError, describe, read_table

TEXT = r"""% weather
@RELATION weather

@ATTRIBUTE outlook {sunny, 'very rainy'}
@attribute 'wind speed' NUMERIC
@attribute "day" date "yyyy-MM-dd"
@attribute class {yes, 'don\'t'}
@DATA
sunny, 1.5, 2024-01-31, yes
% a comment
'very rainy', ?, "2024-02-01", 'don\'t'
"""


def test_arff_is_read(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(TEXT)
    table = read_table(path, label="class", text=["outlook", "day"])
    assert table.columns == ["wind speed"] and table.y.tolist() == ["yes", "don't"]
    np.testing.assert_array_equal(table.X, [[1.5], [np.nan]])
    assert table.texts["outlook"].tolist() == ["sunny", "very rainy"]
    assert table.texts["day"].tolist() == ["2024-01-31", "2024-02-01"]
    path.rename(tmp_path / "t.txt")  # by its first lines
    assert describe(tmp_path / "t.txt")["format"] == "arff"


def test_sparse_rows(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "@relation s\n@attribute a real\n@attribute b real\n@attribute c {x,y}\n"
        "@data\n{0 1.5, 2 y}\n{}\n{1 4}\n"
    )
    table = read_table(path, label="c")
    np.testing.assert_array_equal(table.X, [[1.5, 0], [0, 0], [0, 4]])
    assert table.y.tolist() == ["y", "x", "x"]


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("@attribute a real\n@data\n", "attributes and no rows"),
        ("@data\n1\n", "no attributes"),
        ("@attribute a real\n@data\n1,2\n", "line 4 has 2 cells for 1 attributes"),
        ("@attribute a real\n@data\nred\n", "'red' in 'a', an attribute of numbers"),
        ("@attribute a relational\n@data\n1\n", "line 2 is no attribute"),
        ("@attribute a\n@data\n1\n", "line 2 is no attribute"),
    ],
)
def test_rejects_damaged_files(rest, words, tmp_path):
    (tmp_path / "t.arff").write_text(f"@relation f\n{rest}")
    with pytest.raises(FileError, match=words):
        read_table(tmp_path / "t.arff")
