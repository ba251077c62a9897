"""Fitted bodies drawn over their images, and their distance from the annotated joints."""
from pathlib import Path

import numpy as np

from common.files.images import write_image
from common.human_model import HumanModel
from common.utils.overlay import draw_meshes
from common.utils.preprocessing import crop_affine
from data.mesh_dataset import MeshDataset
from data.placed_fit import PlacedFit, place_fit
from data.sample import Sample
from data.target import fit_error, has_joints

INDENT = ' ' * 11  # of lines below a row of the table


def draw_fits(dataset: MeshDataset, count: int, folder: Path) -> None:
    """Draw `count` fits of a data set, spread over its samples, as `folder`/fit_<name>_<split>_<id>.jpg.

    Prints the distance of each from the annotated joints, and the mean: millimetres, root position aside, where the
    set has 3-D joints, else pixels of the network input.

    Raises:
        UserError: An image cannot be written.
    """
    picked = _pick(dataset, count)
    if not picked:
        print(f'{INDENT}{dataset.split}: no fits to draw')
        return
    errors = []
    for sample, gender in picked:
        body = dataset.body(gender)
        placed = place_fit(sample, dataset.body)
        try:
            image = dataset.load_image(sample)
        except (OSError, ValueError) as problem:
            print(f'{INDENT}{problem}')
            continue
        drawn = draw_meshes(image, [placed.vertices], body.face, placed.camera.focal, placed.camera.princpt)
        path = folder / f'fit_{dataset.name}_{dataset.split}_{sample.ann_id}.jpg'
        write_image(path, drawn)
        error, text = joint_error(dataset, sample, placed, body)
        if error is not None:
            errors.append(error)
        print(f'{INDENT}{path}: {text}')
    if errors:
        unit = 'mm' if dataset.has_3d else 'pixels of the network input'
        print(f'{INDENT}{dataset.split}: mean joint error of {len(errors)} fits: {np.mean(errors):.2f} {unit}')


def _pick(dataset: MeshDataset, count: int) -> list[tuple[Sample, str]]:
    """At most `count` samples with a fit, and the genders of the fits, spread over the data set."""
    picked = {}
    for start in np.linspace(0, len(dataset), count, endpoint=False).astype(int):
        for index in range(start, min(start + 100, len(dataset))):  # the next one that has a fit
            sample = dataset.samples[index]
            if sample.fit is not None and index not in picked:
                picked[index] = (sample, sample.fit.gender)
                break
    return list(picked.values())


def joint_error(dataset: MeshDataset, sample: Sample, placed: PlacedFit,
                body: HumanModel) -> tuple[float | None, str]:
    """Mean distance between the joints of a placed fit and the annotated ones, and a text that says it with its unit.

    Millimetres for 3-D joints, pixels of the network input for 2-D ones; None where there is nothing to compare.
    """
    check = dataset.rules.fit_check
    if check is None:
        if sample.joint_cam is None or dataset.joint_set is not body.joint_set:
            return None, 'drawn (the fit is the annotation, there are no other joints)'
        root = body.root_joint_idx
        difference = (placed.joints - placed.joints[root]) - (sample.joint_cam - sample.joint_cam[root])
        error = 1000 * np.linalg.norm(difference, axis=1).mean()
        return error, f'joint error {error:.1f} mm'
    if not has_joints(sample) or (check.kind == '3d' and sample.joint_cam is None):
        return None, 'drawn (there are no joints to compare with)'
    img2bb_trans = crop_affine(sample.bbox, 1, 0, dataset.codec.input_img_shape)
    distance = fit_error(placed, sample, False, img2bb_trans, dataset.rules, check)
    if check.kind == '3d':
        return 1000 * distance, f'joint error {1000 * distance:.1f} mm'
    pixels = distance / dataset.codec.lixel_per_pixel[0]
    return pixels, f'joint error {pixels:.1f} pixels of the network input'
