"""Listing folders without hidden files."""
from pathlib import Path

from common.files.listing import visible_files


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    for name in ('b.mat', '._b.mat', 'a.mat', '.mat', 'c.txt', 'sub/d.mat', 'sub/._d.mat', '.cache/e.mat'):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('x')
    assert visible_files(tmp_path, '*.mat') == [tmp_path / 'a.mat', tmp_path / 'b.mat']
    deep = visible_files(tmp_path, '**/*.mat')
    assert deep == [tmp_path / 'a.mat', tmp_path / 'b.mat', tmp_path / 'sub' / 'd.mat']
    assert visible_files(tmp_path / 'nothing') == []


def test_a_hidden_folder_given_by_its_name_is_read(tmp_path: Path) -> None:
    folder = tmp_path / '.hidden'
    folder.mkdir()
    (folder / 'a.mat').write_text('x')
    assert visible_files(folder) == [folder / 'a.mat']
