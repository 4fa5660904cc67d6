"""No file takes the place of one of another kind, and errors name what the user named."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gramian.app.files import FileError, write_table
from gramian.common.storage import PAGE, StoredFileError, kind_of, overwriting
from gramian.completion._stored import read_rows, write_rows
from gramian.metric import KTA

MODEL = KTA().fit(*load_iris(return_X_y=True))

WRITERS = {
    "model": MODEL.save,
    "page.html": MODEL.report,
    "result.html": MODEL.result_.report,
    "table.csv": lambda path: write_table(path, np.eye(2)),
    "table.csv.gz": lambda path: write_table(path, np.eye(2)),
    "table.npy": lambda path: write_table(path, np.eye(2)),
    "table.npz": lambda path: write_table(path, np.eye(2)),
    "table.parquet": lambda path: write_table(path, np.eye(2)),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_overwrites_only_files_of_the_same_kind(writer, tmp_path):
    path = tmp_path / writer
    WRITERS[writer](path)
    kind = kind_of(path)
    WRITERS[writer](path)
    path.write_bytes(b"")  # nothing is lost with it
    WRITERS[writer](path)
    for other in WRITERS:
        WRITERS[other](tmp_path / f"other {other}")
        (tmp_path / f"other {other}").replace(path)
        if kind_of(path) == kind:
            continue
        before = path.read_bytes()
        with pytest.raises(StoredFileError, match=f"{writer} is there already and holds"):
            WRITERS[writer](path)
        assert path.read_bytes() == before and not list(tmp_path.glob("*.partial"))
    with overwriting():
        WRITERS[writer](path)
    assert kind_of(path) == kind


def test_keeps_html_pages_of_other_programs(tmp_path):
    path = tmp_path / "index.html"
    path.write_text("<!DOCTYPE html><html><title>mine</title></html>")
    with pytest.raises(StoredFileError, match="of another program, not a page of gramian: remove"):
        MODEL.report(path)
    assert kind_of(MODEL.report(tmp_path / "other.html")) == PAGE


def test_keeps_special_files(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StoredFileError, match="not an ordinary file"):
        MODEL.save(pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize("write", [MODEL.save, MODEL.report])
def test_errors_name_the_requested_file(write, tmp_path):
    for path in (tmp_path / "no" / "where.html", tmp_path):
        with pytest.raises(OSError) as refusal:
            write(path)
        assert refusal.value.filename == str(path)
    with pytest.raises(FileError, match=r"where\.csv cannot be written: there is no such"):
        write_table(tmp_path / "no" / "where.csv", np.eye(2))


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_permissions_are_kept(writer, mode, tmp_path):
    path = tmp_path / writer
    WRITERS[writer](path)
    path.chmod(mode)
    WRITERS[writer](path)
    assert path.stat().st_mode & 0o777 == mode


def test_new_files_have_the_permissions_that_the_user_asks_for(tmp_path):
    before = os.umask(0o027)
    try:
        MODEL.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dangling", [False, True])
def test_writes_to_the_target_of_a_symbolic_link(writer, dangling, tmp_path):
    (tmp_path / "far").mkdir()
    link, target = tmp_path / writer, tmp_path / "far" / "target"
    if not dangling:
        WRITERS[writer](link)
        link.rename(target)
        target.chmod(0o600)
    link.symlink_to(target)
    WRITERS[writer](link)
    assert link.is_symlink() and not target.is_symlink() and kind_of(target) is not None
    assert dangling or target.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.rglob("*")) == sorted([link, target, tmp_path / "far"])


def test_writing_rows_in_blocks_leaves_no_partial_files(tmp_path):
    (tmp_path / "rows.npy.1-2.partial").write_bytes(b"half")
    for rows in (np.eye(2), np.eye(3)):
        write_rows(str(tmp_path / "rows.npy"), rows)
        np.testing.assert_array_equal(read_rows(str(tmp_path / "rows.npy")), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


KILLED = """
import os, signal, sys, threading
from pathlib import Path
from gramian.common.storage import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    threading.Event().wait()
"""


def test_removes_temporary_files_of_killed_writers_only(tmp_path):
    path = tmp_path / "model[1]"
    writers = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"writing\n"
        assert len(list(tmp_path.iterdir())) == 2
        MODEL.save(path)
        assert len(list(tmp_path.iterdir())) == 3
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        MODEL.save(path)
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    MODEL.save(path)
    assert list(tmp_path.iterdir()) == [path]
