"""Writing images."""
import cv2
import numpy as np
import pytest

from common.errors import UserError
from common.files.images import write_image

IMAGE = np.random.default_rng(0).integers(0, 255, (20, 30, 3), np.uint8)


def test_an_image_is_rgb_and_replaces_the_one_before(tmp_path):
    path = tmp_path / 'made' / 'a.png'
    write_image(path, IMAGE[:5])
    write_image(str(path), IMAGE)
    np.testing.assert_array_equal(cv2.imread(str(path))[..., ::-1], IMAGE)
    assert list(path.parent.iterdir()) == [path]


def test_a_lower_quality_takes_fewer_bytes(tmp_path):
    write_image(tmp_path / 'a.jpg', IMAGE)
    write_image(tmp_path / 'b.jpg', IMAGE, 10)
    assert (tmp_path / 'b.jpg').stat().st_size < (tmp_path / 'a.jpg').stat().st_size / 2


@pytest.mark.parametrize('name', ['a', 'a.nothing', 'file/a.png'])
def test_an_image_that_cannot_be_written(tmp_path, name):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match=f'cannot write .*{name}'):
        write_image(tmp_path / name, IMAGE)
    assert [path.name for path in tmp_path.iterdir()] == ['file']
