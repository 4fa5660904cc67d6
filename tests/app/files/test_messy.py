"""Files as spreadsheets and other programs write them."""

import bz2
import gzip
import lzma
import zipfile
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.app.files import FileError, read_header, read_ratings, read_table
from gramian.app.files._source import locate
from gramian.app.files._text import text_frame


def written(folder, name, text, encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def test_reads_separator_from_the_first_line(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "sep=;\r\na;b\r\n1,5;2\r\n3;4,25\r\n"))
    assert table.columns == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, 4.25]])
    path = written(tmp_path, "u.csv", "sep=;\na;b\n1;x\n2;y\n")
    with pytest.raises(FileError, match="'x' in line 3"):
        read_table(path)


@pytest.mark.parametrize(
    "text",
    [
        "Sales of May\na;b;c\n1;2;3\n4;5;6\n",
        "Sales of May\n\na;b;c\n1;2;3\n4;5;6\n",
        "Sales of May;;\nby the team;;\na;b;c\n1;2;3\n4;5;6\n",
        "Sales of May,,\na,b,c\n1,2,3\n4,5,6\n",
    ],
)
def test_titles_are_left_out_with_a_warning(text, tmp_path):
    path = written(tmp_path, "t.csv", text)
    with pytest.warns(UserWarning, match="treated as a title"):
        table = read_table(path)
    assert table.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(table.X, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (",a\n0,1.5\n1,2.5\n2,3\n", ["x0", "a"]),
        ("a,b\n1,2\n3,4\n", ["a", "b"]),
        ("name\n1\n2\n3\n", ["name"]),
        ("x,,\n1,2,3\n4,5,6\n", ["x", "x1", "x2"]),
        ("a,b\n1,2\n3,4\n1,x y\n1, ,1", ["a", "b"]),
    ],
)
def test_keeps_first_rows_that_are_not_a_title(text, names, tmp_path):
    assert read_header(written(tmp_path, "t.csv", text)).names == names


def test_decimal_commas_in_quotes(tmp_path):
    table = read_table(written(tmp_path, "t.csv", 'a,b\n"1,5","2,25"\n"-3,1",4\n'))
    np.testing.assert_array_equal(table.X, [[1.5, 2.25], [-3.1, 4]])


def test_quoted_decimal_commas_are_not_thousands_separators(tmp_path):
    table = read_table(written(tmp_path, "t.csv", 'a,b\n"0,126","2,250"\n"-3,100",4\n'))
    np.testing.assert_array_equal(table.X, [[0.126, 2.25], [-3.1, 4]])


def test_truth_values_are_numbers_and_labels_stay_words(tmp_path):
    path = written(tmp_path, "t.csv", "a,b,c\nTrue,1,TRUE\nfalse,2,FALSE\n")
    np.testing.assert_array_equal(read_table(path).X, [[1, 1, 1], [0, 2, 0]])
    assert read_table(path, label="c").y.tolist() == ["TRUE", "FALSE"]


def test_windows_1252_is_read_with_a_warning(tmp_path):
    path = written(tmp_path, "t.csv", "größe,art\n1,weiß\n2,grün\n", "latin-1")
    with pytest.warns(UserWarning, match="Windows-1252"):
        table = read_table(path, label="art")
    assert table.columns == ["größe"] and table.y.tolist() == ["weiß", "grün"]


FRAME = pd.DataFrame(
    {"a": [1, 2, 3], "b": [0.5, np.nan, 2], "on": [True, False, True], "c": ["x", "y", "x"]}
)


@pytest.mark.parametrize("ending", ["xlsx", "feather", "jsonl"])
def test_other_tables(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    if ending == "xlsx":
        FRAME.to_excel(path, index=False)
    elif ending == "feather":
        FRAME.to_feather(path)
    else:
        FRAME.to_json(path, orient="records", lines=True)
    table = read_table(path, label="c")
    assert table.columns == ["a", "b", "on"] and table.y.tolist() == ["x", "y", "x"]
    np.testing.assert_array_equal(table.X, [[1, 0.5, 1], [2, np.nan, 0], [3, 2, 1]])
    with pytest.raises(FileError, match="'c' has the text 'x'"):
        read_table(path)
    rows, cols, values = read_ratings(path, columns=["c", "a", "on"])
    assert rows.tolist() == ["x", "y", "x"] and cols.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(values, [1, 0, 1])


def test_a_workbook_with_a_title_and_an_empty_sheet(tmp_path):
    path = tmp_path / "t.xlsx"
    rows = [["Sales", None], [None, None], ["a", "day"], [1, pd.Timestamp("2024-05-31")], [2, None]]
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="none")
        pd.DataFrame(rows).to_excel(book, sheet_name="all", index=False, header=False)
    with pytest.warns(UserWarning, match="title"):
        assert read_header(path).names == ["a", "day"]
    with pytest.warns(UserWarning), pytest.raises(FileError, match="'2024-05-31' in row 4"):
        read_table(path)


def test_error_cells_of_a_workbook_are_missing_with_a_warning(tmp_path):
    path = tmp_path / "t.xlsx"
    frame = pd.DataFrame({"a": [1, "#DIV/0!", 3, 4], "c": ["x", "y", "#N/A", "x"]})
    frame.to_excel(path, index=False)
    with pytest.warns(UserWarning, match="2 cells have an error .* the first in row 3"):
        table = read_table(path, label="c", unknown=True)
    np.testing.assert_array_equal(table.X, [[1], [np.nan], [3], [4]])
    assert table.y.tolist() == ["x", "y", "", "x"]
    with pytest.warns(UserWarning), pytest.raises(FileError, match="'c' has 1 missing cell"):
        read_table(path, label="c")


def test_nan_is_not_an_id_in_json(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"u": "a", "i": NaN, "r": 1}, {"u": "b", "i": 2, "r": 3}]')
    with pytest.raises(FileError, match="'i' has 1 missing ids"):
        read_ratings(path)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_truth_values_of_arrow_are_numbers_with_and_without_gaps(ending, gap, tmp_path):
    path = tmp_path / f"t.{ending}"
    marks = pd.array([True, None if gap else True, False], dtype="boolean")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "c": marks})
    frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    y = read_table(path, label="c", unknown=True).y
    np.testing.assert_array_equal(y, [1, np.nan if gap else 1, 0])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xlsx", b"PK\x03\x04 broken", "not a whole excel file"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("t.jsonl", b"[1, 2]\n", "line 1 is no object"),
        ("t.jsonl", b'{"a": [1]}\n', "lists or objects"),
        ("t.jsonl", b"\n", "no rows"),
        ("t.feather", b"ARROW1 broken", "not a whole feather file"),
        ("t", b"\xd0\xcf\x11\xe0 old", "old Excel format"),
    ],
)
def test_rejects_damaged_tables(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=words):
        read_table(tmp_path / name)


def test_all_columns_of_text_are_reported_at_once(tmp_path):
    path = written(tmp_path, "t.csv", "a,b,c\nx,1,2024-01-01\ny,2,2024-01-02\n")
    with pytest.raises(FileError) as refusal:
        read_table(path)
    assert [(c.name, c.kind) for c in refusal.value.columns] == [
        ("a", "categories"),
        ("c", "dates"),
    ]


def test_rows_that_end_early_lack_their_last_cells(tmp_path):
    text = "a,b,c\n1,2\n3,4,5\n6,7\n8,9,10\n"
    with pytest.warns(UserWarning, match=r"2 rows end before the last column, the first in line 2"):
        table = read_table(written(tmp_path, "t.csv", text))
    np.testing.assert_array_equal(table.X, [[1, 2, np.nan], [3, 4, 5], [6, 7, np.nan], [8, 9, 10]])
    with pytest.warns(UserWarning, match="a row ends before"):
        table = read_table(written(tmp_path, "t.csv", "a;b;c\n1,5;2\n3;4;5\n"))
    np.testing.assert_array_equal(table.X, [[1.5, 2, np.nan], [3, 4, 5]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,c\n1,2,3\n4,5\n", "ends in the middle of line 3"),
        ("a,b,c\n1,2,3\n4\n5,6,7\n", "line 3 has 1 cells"),
        ("a,b,c\n1,2\n3,4,5,6\n", "line 3 has 4 cells"),
        ("1,2,3\n4,5\n6,7,8\n", "line 2 has 2 cells"),
        ("a b c\n1 2\n3 4 5\n", "the text 'a b c' in line 1"),
        ("3,2,one,two\n1,2,3,4,0\n5,6,7,8,1\n9,8,7,6,1\n", "which is no header of the rest"),
    ],
)
def test_rejects_rows_of_different_lengths(text, words, tmp_path):
    with pytest.raises(FileError, match=words):
        read_table(written(tmp_path, "t.csv", text))


def test_comments_above_a_table_are_left_out(tmp_path):
    text = "# a table\n#\n# of two columns\n\na,b\n1,2\n3,x\n"
    path = written(tmp_path, "t.csv", text)
    with (
        pytest.warns(UserWarning, match="the first 3 lines begin with # and are left out"),
        pytest.raises(FileError, match="'x' in line 7"),
    ):
        read_table(path)


@pytest.mark.parametrize(
    "text", ["# made by hand\n# a b\n1 2\n3 4\n", "#a,b\n1,2\n3,4\n", "# a\tb\n1\t2\n3\t4\n"]
)
@pytest.mark.filterwarnings("ignore:.*begins with #")
def test_names_in_a_comment_are_those_of_the_columns(text, tmp_path):
    table = read_table(written(tmp_path, "t.csv", text))
    assert table.columns == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_reads_text_that_begins_like_a_comment(tmp_path):
    rows, _, _ = read_ratings(written(tmp_path, "t.csv", "#ff0000,1,2\n#00ff00,3,4\n"))
    assert rows.tolist() == ["#ff0000", "#00ff00"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects(indent, tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [3, 4], "name": ["x", "y"]})
    path = written(tmp_path, "t.json", frame.to_json(orient="records", indent=indent))
    table = read_table(path, label="name")
    assert table.columns == ["a", "b"] and table.y.tolist() == ["x", "y"]
    np.testing.assert_array_equal(table.X, [[1.5, 3], [2.5, 4]])
    with pytest.raises(FileError, match="'x' in object 0"):
        read_table(path)
    with pytest.raises(FileError, match="is not JSON"):
        read_table(written(tmp_path, "u.json", '[{"a": 1}, {"a"'))


@pytest.mark.parametrize(
    "title", [[], ["Wines of 2024", "", "", ""], ["", "Wines of 2024", "", ""]]
)
def test_finds_a_table_that_does_not_start_in_the_first_column(title, tmp_path):
    rows = [["", "", "a", "b"], ["", "", 1, 2], ["", "", 3, 4], ["", "", 5, 6]]
    sheet = pd.DataFrame([title, *rows] if title else rows)
    sheet.to_excel(tmp_path / "t.xlsx", index=False, header=False)
    with pytest.warns(UserWarning, match="title") if title else nullcontext():
        table = read_table(tmp_path / "t.xlsx")
    assert table.columns == ["a", "b"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 6]])


def test_warns_if_an_expected_name_is_also_a_value(tmp_path):
    path = written(tmp_path, "votes.csv", "y,n,left\ny,y,left\nn,y,right\n")
    with pytest.warns(UserWarning, match="header, because it contains 'left'; --no-header"):
        assert read_header(path, expected=["left"]).named


def test_warns_if_a_row_of_texts_may_be_a_header(tmp_path):
    path = written(tmp_path, "t.csv", "review,mood\ngood film,pos\nbad film,neg\nmeh,neg\n")
    with pytest.warns(UserWarning, match="read as data; .* pass --header"):
        assert not read_header(path).named


def test_first_line_of_ids_is_not_a_header(tmp_path):
    for text in ("anna,ben\n", "anna,ben\n12,anna\n"):
        path = written(tmp_path, "t.csv", text)
        assert not read_header(path, ids=["anna", "ben", "12"]).named


@given(
    rows=st.lists(
        st.lists(st.sampled_from(["1", "", "x y", '"q,r"', " "]), min_size=2, max_size=3)
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    whole=st.booleans(),
    piece=st.integers(1, 40),
)
def test_row_counts_are_equal_in_blocks_and_by_line(rows, end, whole, piece, tmp_path_factory):
    while rows and not "".join(rows[-1]).strip():  # left out with a warning
        rows = rows[:-1]
    text = end.join(["a,b", "1,2", "3,4", *(",".join(row) for row in rows)]) + end * whole
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gramian.app.files._source.PIECE", piece)
        frame = text_frame(locate(path, None))
        counted = frame._even_rows()
    even = all(len(row) == 2 and '"q,r"' not in row for row in rows)
    assert counted in ((len(list(frame.records())),) if even else (None,))


def packed_as_zip(path, *names, content=b"a,b\n1,2\n3,4\n"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return path


def test_compressed_text_is_read(tmp_path):
    content = b"a\tb\n1\t2\n3\t4\n"
    for ending, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        path = tmp_path / f"t.tsv.{ending}"
        path.write_bytes(pack(content))
        table = read_table(path)
        assert table.format == "tsv" and table.X.tolist() == [[1, 2], [3, 4]]
        path.write_bytes(pack(content)[:-7])
        with pytest.raises(FileError):
            read_table(path)


def test_the_only_file_in_a_zip_is_read(tmp_path):
    single = packed_as_zip(tmp_path / "t.zip", "data/t.csv")
    mac = packed_as_zip(tmp_path / "mac.zip", "data/", "data/t.csv", "__MACOSX/data/._t.csv")
    for path in (single, mac):
        assert read_table(path).X.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(FileError, match=r"2 files in it, the first 'a\.csv': unpack it"):
        read_table(packed_as_zip(tmp_path / "two.zip", "a.csv", "b.csv"))
    damaged = bytearray(single.read_bytes())
    damaged[45] ^= 0xFF
    single.write_bytes(damaged)
    with pytest.raises(FileError):
        read_table(single)


@pytest.mark.parametrize("tail", [",,\n", "\n,,\r\n , ,\n\n", ",,", '7,"x\ny",\n,,\n,,\n'])
def test_empty_rows_at_the_end_are_left_out(tail, tmp_path):
    path = written(tmp_path, "t.csv", f"a,b,c\n1,2,3\n4,5,\n{tail}")
    kept = 2 + tail.startswith("7")
    with pytest.warns(UserWarning, match="no cell and (is|are) left out"):
        table = read_table(path, drop=["b"])
    assert table.X[:2].tolist()[0] == [1, 3] and len(table.X) == kept


def test_old_line_ends_are_read(tmp_path):
    table = read_table(written(tmp_path, "t.csv", "a,b\r1,2\r3,4\r"))
    assert table.columns == ["a", "b"] and table.X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("mark", ["-", "--", "."])
def test_dashes_among_numbers_are_missing(mark, tmp_path):
    text = f"a;b;sign\n1,5;{mark};+\n{mark};2;-\n3;4;+\n"
    path = written(tmp_path, "t.csv", text)
    table = read_table(path, label="sign")
    np.testing.assert_array_equal(table.X, [[1.5, np.nan], [np.nan, 2], [3, 4]])
    assert table.y.tolist() == ["+", "-", "+"]  # a sign is no missing cell among other texts
    with pytest.raises(FileError, match="'sign'"):
        read_table(path)
    pd.DataFrame({"a": [1, mark, 3], "b": [1.5, 2, mark]}).to_excel(tmp_path / "t.xlsx")
    np.testing.assert_array_equal(
        read_table(tmp_path / "t.xlsx", drop=["x0"]).X, [[1, 1.5], [np.nan, 2], [3, np.nan]]
    )


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_without_a_mark(encoding, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe,b\n1.5,2\n3,4\n".encode(encoding))
    assert read_header(path).names == ["größe", "b"]
    np.testing.assert_array_equal(read_table(path).X, [[1.5, 2], [3, 4]])
    path.write_bytes(bytes(range(256)) * 4)
    with pytest.raises(FileError, match="zero bytes"):
        read_table(path)


def test_duplicate_names_are_numbered(tmp_path):
    path = written(tmp_path, "t.csv", "a,a,a.1,kind,kind\n1,2,3,u,v\n4,5,6,v,v\n")
    with pytest.warns(UserWarning, match="several columns named 'a', 'kind': they are called 'a.2"):
        assert read_header(path).names == ["a.2", "a.3", "a.1", "kind.1", "kind.2"]
    with pytest.warns(UserWarning), pytest.raises(FileError, match="no column 'kind'"):
        read_table(path, label="kind")  # none of them is taken for the label


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("1990,1995,1997", True),
        ("country,1990,2000", True),
        (",1990,2000", True),
        ("1990,1995,3.5", False),
        ("1997,1995,1990", False),
        ("1,2,3", False),
    ],
)
@pytest.mark.filterwarnings("ignore:.*read as a header")
def test_years_name_columns(first, named, tmp_path):
    path = written(tmp_path, "t.csv", f"{first}\n{'1,' if '1' in first[:1] else 'x,'}2,3\n9,8,7\n")
    assert read_header(path).named == named
    rows = "".join(f"{k},{k + 3},{k + 5}\n" for k in range(1980, 1990))
    assert not read_header(written(tmp_path, "u.csv", rows)).named


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"%PDF-1.4\n1 0 obj", "a PDF document: save its table as"),
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"\xd0\xcf\x11\xe0\0\0", "the old Excel format, or has a password"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.pdf"])
def test_files_of_other_programs_are_named(name, head, words, tmp_path):
    (tmp_path / name).write_bytes(head)
    with pytest.raises(FileError, match=words):
        read_table(tmp_path / name)


def test_documents_of_other_office_programs_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as file:
        file.writestr("content.xml", "<x/>")
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    with pytest.raises(FileError, match="of another office program: save its table"):
        read_table(tmp_path / "t.ods")


def test_rows_of_other_lengths_do_not_hide_the_separator(tmp_path):
    with pytest.raises(FileError, match="line 4 has 4 cells"):
        read_table(written(tmp_path, "t.csv", "a;b;c\n1;2;3\n4;5\n6;7;8;9\n3;3;3\n"))


@pytest.mark.parametrize("indent", [None, 2])
def test_json_by_columns_is_read(indent, tmp_path):
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [3, None], "name": ["x", "y"]})
    path = written(tmp_path, "t.json", frame.to_json(indent=indent))
    table = read_table(path, label="name")
    np.testing.assert_array_equal(table.X, [[1.5, 3], [2.5, np.nan]])
    assert table.y.tolist() == ["x", "y"]
