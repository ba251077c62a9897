"""`--placement original` beside the demo of the original, whose formulas are written out here.

Everything but the network and the body model is computed in this file: the box, the crop, both meshes in camera space.
"""
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from common.human_model import get_human_model
from common.snapshot import checkpoint
from main.demo import main
from main.model import get_model
from tests.demo_tools import write_image, write_snapshot
from tests.tiny import tiny_config

HEIGHT = 240
WIDTH = 180
BOXES = ([20, 30, 60, 120], [-10, 100, 90, 200])  # the second one leaves the image
DEPTHS = (7.25, 11.2505732421875)  # metres
INPUT = 32  # pixels, side of the network's input
BINS = 8  # lixels on each axis
TOLERANCE = 2e-4  # metres


def network_box(box: list[float]) -> tuple[float, float, float]:
    """Clip a box to the image, make it a square, enlarge it 1.25 times: centre x, centre y, side."""
    x1 = max(0, box[0])
    y1 = max(0, box[1])
    x2 = min(WIDTH - 1, x1 + max(0, box[2] - 1))
    y2 = min(HEIGHT - 1, y1 + max(0, box[3] - 1))
    side = 1.25 * max(x2 - x1, y2 - y1)
    return (x1 + x2) / 2, (y1 + y2) / 2, side


def crop(image: np.ndarray, box: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """The network's input (3, 32, 32) in 0..1, and the affine (2, 3) from it back to the image."""
    x, y, side = network_box(box)
    in_image = np.float32([[x, y], [x, y + side / 2], [x + side / 2, y]])
    in_patch = np.float32([[INPUT / 2, INPUT / 2], [INPUT / 2, INPUT], [INPUT, INPUT / 2]])
    to_patch = cv2.getAffineTransform(in_image, in_patch)
    to_image = cv2.getAffineTransform(in_patch, in_image)
    patch = cv2.warpAffine(image, to_patch, (INPUT, INPUT), flags=cv2.INTER_LINEAR)
    return np.float32(patch.transpose(2, 0, 1)) / 255, to_image


def to_camera(points: np.ndarray, focal: float) -> np.ndarray:
    """(N, 3) pixels x, y and depth in metres -> (N, 3) metres, with the principal point in the middle of the image."""
    x = (points[:, 0] - WIDTH / 2) / focal * points[:, 2]
    y = (points[:, 1] - HEIGHT / 2) / focal * points[:, 2]
    return np.stack([x, y, points[:, 2]], 1)


def original_meshes(lixel: np.ndarray, param: np.ndarray, to_image: np.ndarray, root_row: np.ndarray, cube: float,
                    depth: float, focal: float) -> dict[str, np.ndarray]:
    """The two meshes that the original's demo writes, (V, 3) metres in camera space.

    Args:
        lixel: (V, 3) network output, lixels.
        param: (V, 3) network output, metres relative to the root joint.
        to_image: (2, 3) affine from the network's input to the image.
        root_row: (V,) joint regressor's row of the root joint.
        cube: side of the cube around a person, metres.
        depth: of the root joint, metres.
        focal: pixels.
    """
    patch_xy = lixel[:, :2] / BINS * INPUT
    pixels = patch_xy @ to_image[:, :2].T + to_image[:, 2]
    relative_z = (lixel[:, 2] / BINS * 2 - 1) * (cube / 2)
    root_pixel = root_row @ pixels
    root_img = np.array([[root_pixel[0], root_pixel[1], depth]])
    lixel_img = np.concatenate([pixels, relative_z[:, None] + depth], 1)
    return {'lixel': to_camera(lixel_img, focal), 'param': param + to_camera(root_img, focal)}


def read_obj(path: Path) -> np.ndarray:
    """The vertices (V, 3) of an OBJ file."""
    lines = path.read_text().splitlines()
    return np.array([line.split()[1:] for line in lines if line.startswith('v ')], float)


def network_outputs(snapshot: Path, body_model: str, patches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lixel meshes (B, V, 3) in lixels and parametric meshes (B, V, 3) in metres for inputs (B, 3, 32, 32)."""
    config = tiny_config(snapshot.parent, 'stage=param', f'body_model={body_model}')
    model = get_model(config, get_human_model(body_model), 'test').eval()
    checkpoint.load_network(model, checkpoint.read(snapshot), snapshot)
    with torch.no_grad():
        out = model({'img': torch.from_numpy(patches)}, {}, {}, 'test')
    return out['mesh_coord_img'].double().numpy(), out['mesh_coord_cam'].double().numpy()


@pytest.mark.parametrize('body_model, cube, focal', [
    ('open_body', 2., 1500.), ('open_body', 2., 1100.), ('open_hand', 0.3, 1500.)])
def test_both_meshes_are_the_original_ones(tmp_path: Path, body_model: str, cube: float, focal: float) -> None:
    snapshot = write_snapshot(tmp_path / 'tiny.pth.tar', f'body_model={body_model}')
    photo = write_image(tmp_path / 'photo.png', HEIGHT, WIDTH)
    words = ['--gpu', 'cpu', '--snapshot', snapshot, '--output', tmp_path / 'out', '--input', photo,
             '--placement', 'original', '--axes', 'camera', '--focal', focal, '--root_depth', *DEPTHS]
    for box in BOXES:
        words += ['--bbox', *box]
    assert main([str(word) for word in words]) == 0

    image = cv2.imread(str(photo))[..., ::-1].copy()
    crops = [crop(image, box) for box in BOXES]
    patches = np.stack([patch for patch, _ in crops])
    lixel, param = network_outputs(snapshot, body_model, patches)
    human_model = get_human_model(body_model)
    root_row = human_model.joint_regressor[0].double().numpy()  # Pelvis or Wrist
    for number, (_, to_image) in enumerate(crops):
        expected = original_meshes(lixel[number], param[number], to_image, root_row, cube, DEPTHS[number],
                                   focal)
        for kind, mesh in expected.items():
            written = read_obj(tmp_path / 'out' / 'photo' / f'person_{number}' / f'output_mesh_{kind}.obj')
            np.testing.assert_allclose(written, mesh, rtol=0, atol=TOLERANCE, err_msg=f'{kind} {number}')
