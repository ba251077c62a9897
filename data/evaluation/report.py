"""The report of a test: a summary, as text and as a file, and images to look at."""
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.files.images import write_image
from common.files.whole import write_json
from common.utils.vis import draw_meshes

TITLES = {'mpjpe': 'MPJPE', 'pa_mpjpe': 'PA-MPJPE', 'mpvpe': 'MPVPE', 'pa_mpvpe': 'PA-MPVPE', 'f_5': 'F@5mm',
          'f_15': 'F@15mm', 'auc': 'AUC'}
RATIOS = ('f_5', 'f_15', 'auc')  # from 0 to 1; all else is in millimetres


def summarise(results, description, joint_names):
    """The summary of a test: `description` (name -> text or number), mean `metrics`, and mean errors `per_joint`.

    results: {metric: (N, ...)}, with a _lixel or _param ending.
    """
    means = {name: known_means(v)[0] for name, v in results.items() if np.ndim(v) == 1}
    per_joint = {}
    for name, values in results.items():
        if name.startswith('joint_error'):
            errors = [None if error is None else round(error, 2) for error in known_means(values)]
            per_joint[name.removeprefix('joint_error_')] = dict(zip(joint_names, errors, strict=True))
    return {**description, 'metrics': means, 'per_joint_mm': per_joint}


def known_means(values: np.ndarray) -> list[float | None]:
    """The mean of each column of (N,) or (N, C) values, NaN left out; None for a column of nothing else (JSON has no
    NaN)."""
    columns = np.asarray(values, np.float64).reshape(len(values), -1).T
    means: list[float | None] = []
    for column in columns:
        known = column[~np.isnan(column)]
        if len(known):
            means.append(float(known.mean()))
        else:
            means.append(None)
    return means


def in_digits(value: float | None, digits: int) -> str:
    """A mean as text."""
    if value is None:
        return 'unknown'
    return f'{value:.{digits}f}'


def as_text(summary):
    """The summary as lines of text: what was tested how, and a row of errors per mesh."""
    lines = [', '.join(f'{key.replace("_", " ")}: {value}' for key, value in summary.items()
                       if key not in ('metrics', 'per_joint_mm'))]
    for mesh in ('lixel', 'param'):
        values = [f'{title} {in_digits(summary["metrics"][f"{key}_{mesh}"], 3 if key in RATIOS else 2)}'
                  for key, title in TITLES.items() if f'{key}_{mesh}' in summary['metrics']]
        if values:
            lines.append(f'  {mesh} mesh (mm): ' + '  '.join(values))
        if mesh in summary['per_joint_mm']:
            lines.append('    per joint: ' + '  '.join(
                f'{name} {in_digits(value, 1)}' for name, value in summary['per_joint_mm'][mesh].items()))
    return '\n'.join(lines)


def save_result(output_dir, name, content):
    """Write `content` as output/result/<name>.json. Returns the path. UserError: a number in it is not finite."""
    path = Path(output_dir) / 'result' / f'{name}.json'
    try:
        write_json(path, content)
    except ValueError as error:
        raise UserError(f'{path} is not written: it would hold numbers that are not finite; see to the cameras and '
                        'the root depths of the test') from error
    return path


def save_overlay(path, img, mesh, face, camera):
    """Write an image (H, W, 3) RGB with a mesh (V, 3), metres in camera space, drawn over it."""
    write_image(path, draw_meshes(img, [mesh], face, camera.focal, camera.princpt))
