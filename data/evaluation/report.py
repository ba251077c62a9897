"""The report of a test: a summary, as text and as a file, and images to look at."""
import json
from pathlib import Path

import numpy as np

from common.files.images import write_image
from common.files.whole import write_text
from common.utils.vis import draw_meshes

TITLES = {'mpjpe': 'MPJPE', 'pa_mpjpe': 'PA-MPJPE', 'mpvpe': 'MPVPE', 'pa_mpvpe': 'PA-MPVPE', 'f_5': 'F@5mm',
          'f_15': 'F@15mm', 'auc': 'AUC'}
RATIOS = ('f_5', 'f_15', 'auc')  # from 0 to 1; all else is in millimetres


def summarise(results, description, joint_names):
    """The summary of a test: `description` (name -> text or number), mean `metrics`, and mean errors `per_joint`.

    results: {metric: (N, ...)}, with a _lixel or _param ending.
    """
    means = {name: float(np.nanmean(v, dtype=np.float64)) for name, v in results.items() if np.ndim(v) == 1}
    per_joint = {}
    for name, values in results.items():
        if name.startswith('joint_error'):
            errors = np.nanmean(values, 0, dtype=np.float64).round(2).tolist()
            per_joint[name.removeprefix('joint_error_')] = dict(zip(joint_names, errors, strict=True))
    return {**description, 'metrics': means, 'per_joint_mm': per_joint}


def as_text(summary):
    """The summary as lines of text: what was tested how, and a row of errors per mesh."""
    lines = [', '.join(f'{key.replace("_", " ")}: {value}' for key, value in summary.items()
                       if key not in ('metrics', 'per_joint_mm'))]
    for mesh in ('lixel', 'param'):
        values = [f'{title} {summary["metrics"][f"{key}_{mesh}"]:.{3 if key in RATIOS else 2}f}'
                  for key, title in TITLES.items() if f'{key}_{mesh}' in summary['metrics']]
        if values:
            lines.append(f'  {mesh} mesh (mm): ' + '  '.join(values))
        if mesh in summary['per_joint_mm']:
            lines.append('    per joint: ' + '  '.join(
                f'{name} {value:.1f}' for name, value in summary['per_joint_mm'][mesh].items()))
    return '\n'.join(lines)


def save_result(output_dir, name, content):
    """Write `content` as output/result/<name>.json. Returns the path."""
    path = Path(output_dir) / 'result' / f'{name}.json'
    write_text(path, json.dumps(content))
    return path


def save_overlay(path, img, mesh, face, camera):
    """Write an image (H, W, 3) RGB with a mesh (V, 3), metres in camera space, drawn over it."""
    write_image(path, draw_meshes(img, [mesh], face, camera.focal, camera.princpt))
