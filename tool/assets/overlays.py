"""Fitted bodies drawn over their pictures, and their distance from the annotated joints."""
import numpy as np

from common.errors import UserError
from common.files.images import write_image
from common.utils.preprocessing import crop_affine
from common.utils.vis import draw_meshes
from data.target import fit_error, has_joints, place_fit


def draw_fits(dataset, count, folder):
    """Draw `count` fits of a MeshDataset, spread over its samples, as `folder`/fit_<name>_<split>_<id>.jpg.

    Prints the distance of each from the annotated joints, and the mean: millimetres, root position aside, where the
    set has 3-D joints, else pixels of the network input. UserError: the folder cannot be written.
    """
    picked = _pick(dataset, count)
    if not picked:
        print(f'           {dataset.split}: no fits to draw')
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f'cannot write into {folder} ({error.strerror}): name another output_dir') from error
    errors = []
    for sample in picked:
        placed = place_fit(sample, dataset.body)
        try:
            picture = dataset.load_image(sample)
        except (OSError, ValueError) as error:
            print(f'           {error}')
            continue
        drawn = draw_meshes(picture, [placed.vertices], dataset.body(sample.fit.gender).face, placed.camera.focal,
                            placed.camera.princpt)
        path = folder / f'fit_{dataset.name}_{dataset.split}_{sample.ann_id}.jpg'
        write_image(path, drawn)
        error, text = joint_error(dataset, sample, placed)
        errors += [] if error is None else [error]
        print(f'           {path}: {text}')
    if errors:
        unit = 'mm' if dataset.has_3d else 'pixels of the network input'
        print(f'           {dataset.split}: mean joint error of {len(errors)} fits: {np.mean(errors):.2f} {unit}')


def _pick(dataset, count):
    """At most `count` Samples with a fit, spread over the data set."""
    picked = {}
    for start in np.linspace(0, len(dataset), count, endpoint=False).astype(int):
        for index in range(start, min(start + 100, len(dataset))):  # the next one that has a fit
            sample = dataset.samples[index]
            if sample.fit is not None and index not in picked:
                picked[index] = sample
                break
    return list(picked.values())


def joint_error(dataset, sample, placed):
    """Mean distance between the joints of a placed fit and the annotated ones, and a text that says it with its unit.

    Millimetres for 3-D joints, pixels of the network input for 2-D ones; None where there is nothing to compare.
    """
    check, body = dataset.rules.fit_check, dataset.body(sample.fit.gender)
    if check is None and sample.joint_cam is not None and dataset.joint_set is body.joint_set:
        difference = (placed.joints - placed.joints[body.root_joint_idx]) - (
            sample.joint_cam - sample.joint_cam[body.root_joint_idx])
        error = 1000 * np.linalg.norm(difference, axis=1).mean()
        return error, f'joint error {error:.1f} mm'
    if check is None or not has_joints(sample) or (check.kind == '3d' and sample.joint_cam is None):
        return None, 'drawn (the fit is the annotation, there are no other joints)'
    img2bb_trans = crop_affine(sample.bbox, 1, 0, dataset.codec.input_img_shape)
    error = fit_error(placed, sample, False, img2bb_trans, dataset.rules)
    if check.kind == '3d':
        return 1000 * error, f'joint error {1000 * error:.1f} mm'
    error /= dataset.codec.lixel_per_pixel[0]
    return error, f'joint error {error:.1f} pixels of the network input'
