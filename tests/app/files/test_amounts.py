"""Amounts: money, percentages, units, thousands separators and decimal commas."""

import numpy as np
import pandas as pd
import pytest

from gramian.app.files import FileError, read_header, read_table
from gramian.app.files._amounts import amounts, is_amount


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,200.50", "$3", "-$0.5", "$-2"], [1200.5, 3, -0.5, -2]),
        (["€ 3.5", "€ 12"], [3.5, 12]),
        (["1.336,04 €", "0,5 €"], [1336.04, 0.5]),
        (["USD 5", "USD 1,000,000"], [5, 1e6]),
        (["12.5 %", "7 %", None], [12.5, 7, np.nan]),
        (["47.7 kg", "-"], [47.7, np.nan]),
        (["1,234", "987"], [1234, 987]),
        (["1,234", "0,5"], [1.234, 0.5]),
        (["93'008.22", "1’000"], [93008.22, 1000]),
        (["80 213,71", "1\u202f000"], [80213.71, 1000]),
        (["4,195.14", "(1,000)", "\u22125"], [4195.14, -1000, -5]),
    ],
)
def test_amounts_are_numbers(cells, numbers):
    np.testing.assert_array_equal(amounts(np.array(cells, dtype=object)), numbers)


@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "€5"],
        ["$5", "5"],
        ["5 kg", "3 g"],
        ["1,5", "1.5.2"],
        ["001 A", "002 A"],
        ["12:30", "13:00"],
        ["1st", "2nd"],
        ["(5", "6)"],
        ["car 1", "car 2"],
        ["1,2,3", "4,5,6"],
        ["$5", "unknown"],
    ],
)
def test_other_texts_are_not(cells):
    assert amounts(np.array(cells, dtype=object)) is None
    assert not is_amount("5") and not is_amount("red") and is_amount("$5")


def test_the_decimal_separator_of_the_file_decides_between_two_readings():
    cells = np.array(["1,234", "5,678"], dtype=object)
    assert amounts(cells, ".").tolist() == [1234, 5678]
    assert amounts(cells, ",").tolist() == [1.234, 5.678]


def test_amounts_of_a_file_are_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('price,share,n\n"$1,200.50",12 %,1\n$3,7.5 %,2\n')
    with pytest.warns(UserWarning, match="'.1,200.50' in 'price' as 1200.5, '12 %' in 'share' as"):
        table = read_table(path)
    np.testing.assert_array_equal(table.X, [[1200.5, 12, 1], [3, 7.5, 2]])
    pd.DataFrame({"price": ["$5", "$6"], "n": [1, 2]}).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.warns(UserWarning, match="amounts are read"):
        assert read_table(tmp_path / "t.xlsx").X.tolist() == [[5, 1], [6, 2]]


@pytest.mark.parametrize("head", ["price,share\n", ""])
def test_amounts_show_whether_there_is_a_header(head, tmp_path):
    (tmp_path / "t.csv").write_text(f"{head}5 kg,7 %\n4 kg,8 %\n")
    assert read_header(tmp_path / "t.csv").named == bool(head)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('a,b\n"1,500",2\n30,4\n', [[1500, 2], [30, 4]]),
        ('a,b\n"1,500","0,5"\n30,4\n', [[1.5, 0.5], [30, 4]]),
        ("a;b\n1,500;2\n30;4\n", [[1.5, 2], [30, 4]]),
        ("a;b\n1,500;2.5\n30;4\n", [[1500, 2.5], [30, 4]]),
        ("a;b\n0,500;2.5\n30;4\n", [[0.5, 2.5], [30, 4]]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*amounts are read")
def test_thousands_and_decimal_commas(text, numbers, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").X, numbers)


def test_commas_in_a_table_with_tabs_are_ambiguous(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\n1,500\t2\n")
    with pytest.raises(FileError, match="thousands or decimals"):
        read_table(tmp_path / "t.tsv")
