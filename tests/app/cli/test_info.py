"""`gramian info`: headers, encodings, sheets and files of other kinds."""

import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.app.files import read_table
from tests.app.cli.data import FLOWERS, answer, as_r_writes, numbered, ratings, refused, ships


def test_plain_text_when_piped(folder):
    done = subprocess.run(
        [sys.executable, "-c", "from gramian.app.cli import main; main()", "info", "flowers.csv"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "\x1b" not in done.stdout and not done.stderr
    assert "species" in done.stdout


def test_text_table_keeps_its_header(run, folder):
    as_r_writes(ships(), "ships.csv")
    facts = answer(run, "info", "ships.csv")
    assert facts["rows"] == 120 and facts["header"] == "line 1"
    assert [field["name"] for field in facts["fields"]] == ["x0", "class", "sex", "survived"]
    status, _, err = run("info", "ships.csv")
    assert status == 0 and "is read as a header" in err and "--no-header" in err
    assert answer(run, "info", "ships.csv", "--no-header")["rows"] == 121


def test_a_table_of_text_without_a_header_has_none(run, folder):
    ships().to_csv("ships.csv", index=False, header=False)
    facts = answer(run, "info", "ships.csv")
    assert facts["rows"] == 120 and facts["header"].startswith("none")
    assert answer(run, "info", "ships.csv", "--header")["rows"] == 119


def test_requested_names_identify_a_header(run, folder):
    """Where every text occurs once nothing else does."""
    lines = ["city,kind", *(f"city {k},{'ab'[k % 2]}{k}" for k in range(8))]
    (folder / "cities.csv").write_text("\n".join(lines))
    assert answer(run, "info", "cities.csv")["rows"] == 9
    assert "every row has a class of its own in 'city'" in refused(
        run, "metric", "cities.csv", "--label", "city"
    )


def test_a_header_one_cell_short_names_all_but_the_row_names(run, folder):
    as_r_writes(ships(), "ships.txt", sep=" ")
    text = (folder / "ships.txt").read_text()
    (folder / "ships.txt").write_text(text.removeprefix('"" '))
    facts = answer(run, "info", "ships.txt")
    assert facts["rows"] == 120 and facts["columns"] == 4
    assert facts["fields"][1]["name"] == "class"


def test_omits_first_line_of_counts(run, folder):
    names = ",".join(map(str, FLOWERS.target_names))
    body = FLOWERS.frame.to_csv(index=False, header=False)
    (folder / "counts.csv").write_text(f"150,4,{names}\n{body}")
    status, _, err = run("info", "counts.csv")
    assert status == 0 and "counts 150 rows of 4 features" in err
    facts = answer(run, "info", "counts.csv")
    assert (facts["rows"], facts["columns"]) == (150, 5)
    assert facts["fields"][0]["kind"] == "number"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("country,1990,1991,1992\nFrance,1.5,2,3\nSpain,2,3,4.5\n", 2),
        ("0,1,2\n5.1,3.5,0\n4.9,3,1\n", 2),
        (",0,1,2\n0,5.1,3.5,0\n1,4.9,3,1\n", 2),
        ("0,1,2\n1,2,3\n0,1,2\n", 3),
        ("a,1,2,3\nb,2,3,4\nc,7,1,9\n", 3),
        ("1,2,3\n5,1,9\n", 2),
    ],
)
def test_numbers_can_name_columns(run, folder, text, rows):
    (folder / "numbers.csv").write_text(text)
    assert answer(run, "info", "numbers.csv")["rows"] == rows


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_by_their_mark(run, folder, encoding):
    text = "größe;farbe\n1,5;grün\n2,5;weiß\n"
    text = "\ufeff" + text if encoding == "utf-16-be" else text
    (folder / "wide.csv").write_bytes(text.encode(encoding))
    facts = answer(run, "info", "wide.csv")
    assert [field["name"] for field in facts["fields"]] == ["größe", "farbe"]
    assert facts["fields"][0]["kind"] == "number" and facts["rows"] == 2
    (folder / "cut.csv").write_bytes(text.encode(encoding)[:-1])
    assert "damaged or cut short" in refused(run, "info", "cut.csv")


def test_the_sheet_of_a_workbook_can_be_chosen(run, folder):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter("book.xlsx") as book:
        FLOWERS.frame.to_excel(book, sheet_name="flowers", index=False)
        ships().to_excel(book, sheet_name="ships", index=False)
    assert answer(run, "info", "book.xlsx")["rows"] == 150
    assert answer(run, "info", "book.xlsx", "--sheet", "ships")["rows"] == 120
    assert answer(run, "info", "book.xlsx", "--sheet", 2)["rows"] == 120
    assert "'flowers', 'ships'" in refused(run, "info", "book.xlsx", "--sheet", "boats")
    assert "no sheets" in refused(run, "info", "flowers.csv", "--sheet", "ships")
    assert "--sheet NAME" in run("info", "book.xlsx")[2]


def test_damaged_archives_have_readable_errors(run, folder):
    for name in ("m.gramian", "book.xlsx", "arrays.npz"):
        (folder / name).write_bytes(b"PK\x03\x04 nonsense")
        assert "BadZipFile" not in refused(run, "info", name)
    assert "gramian model" in refused(run, "info", "m.gramian")
    assert not zipfile.is_zipfile("m.gramian")


def test_reports_html_page(run, folder):
    (folder / "data.csv").write_text("<!DOCTYPE html>\n<html><body>a, b</body></html>\n")
    assert "data.csv is an HTML page and no table" in refused(run, "info", "data.csv")


def test_missing_files_give_the_same_error(run, folder):
    for line in (("info", "no.gramian"), ("info", "gone.csv"), ("report", "no.gramian")):
        assert "there is no such file or folder; check the name" in refused(run, *line)


def test_names_of_columns_are_shown_as_they_are(run, machines):
    assert "Pressure [bar]" in run("info", "machines.csv")[1]  # no style of the terminal


def test_notes_of_files_are_no_warnings_of_python(run, folder):
    (folder / "old.csv").write_bytes("größe,b\n1,2\n3,4\n".encode("latin-1"))
    status, _, err = run("info", "old.csv")
    assert status == 0 and err.startswith("note: old.csv is not text in UTF-8")


def test_info_describes_a_program(run, folder):
    gm.io.write_sdpa(gm.problems.maxcut(np.ones((4, 4)) - np.eye(4)), "cut.dat-s.gz")
    facts = answer(run, "info", "cut.dat-s.gz")
    assert facts["format"] == "sparse SDPA" and facts["constraints"] == 4


def test_time_to_read_a_wide_table_is_linear_in_its_columns(folder):
    for name, size in (("few.csv", 100), ("many.csv", 800)):
        frame = pd.DataFrame(np.ones((3, size)), columns=[f"g{k}" for k in range(size)])
        frame.to_csv(name, index=False)

    def seconds(name):
        times = []
        for _ in range(3):
            started = time.process_time()
            read_table(name)
            times.append(time.process_time() - started)
        return min(times)

    assert seconds("many.csv") < 24 * seconds("few.csv")  # 8 times the columns; 64 if quadratic


def test_rejects_files_of_another_kind_with_a_clear_message(run, classes):
    said = refused(run, "predict", "abc.csv", "--model", "abc.csv")
    assert "zip" not in said and "abc.csv holds text, not a complete gramian model" in said
    classes.to_csv("abc.zip", index=False)
    assert answer(run, "info", "abc.zip")["rows"] == len(classes)
    with zipfile.ZipFile("abc.zip", "a") as archive:
        archive.writestr("notes.txt", "of the machine")
    assert "abc.zip has 2 files in it" in refused(run, "info", "abc.zip")


def test_the_row_of_the_header_of_a_sheet(run, folder):
    with pd.ExcelWriter("t.xlsx") as book:
        numbered().to_excel(book, startrow=2, index=False)
        book.book.active["A1"] = "Measured in 2024"
    assert answer(run, "info", "t.xlsx")["header"] == "row 3"


def test_info_describes_ratings_and_dates(run, folder):
    frame = ratings()
    users, items = (pd.factorize(frame[name])[0] for name in ("user", "item"))
    np.savez("r.npz", user=users, item=items, rating=frame["rating"])
    facts = answer(run, "info", "r.npz")
    assert (facts["ratings"], facts["users"], facts["items"]) == (len(frame), 30, 20)
    assert (facts["lowest"], facts["highest"]) == (frame["rating"].min(), frame["rating"].max())
    np.savez("x.npz", X=np.ones((3, 2)))
    assert "X 3 × 2" in run("info", "x.npz")[1]
    Path("d.csv").write_text("a,when\n1,2024-01-31\n2,2024-02-01\n")
    assert [field["kind"] for field in answer(run, "info", "d.csv")["fields"]][1] == "date"
