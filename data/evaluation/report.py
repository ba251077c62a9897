"""The report of a test: a summary, as text and as a file, and images to look at."""
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common.files.images import write_image
from common.files.whole import write_text
from common.utils.transforms import Camera
from common.utils.vis import draw_meshes
from data.evaluation.evaluator import EvalBatch, camera_of
from data.evaluation.mesh_errors import EvalJoints
from data.sample import Sample

TITLES = {'mpjpe': 'MPJPE', 'pa_mpjpe': 'PA-MPJPE', 'mpvpe': 'MPVPE', 'pa_mpvpe': 'PA-MPVPE', 'f_5': 'F@5mm',
          'f_15': 'F@15mm', 'auc': 'AUC'}
RATIOS = ('f_5', 'f_15', 'auc')  # from 0 to 1; all else is in millimetres


def summarise(results: Mapping[str, np.ndarray], description: Mapping[str, Any],
              joints: EvalJoints | None) -> dict[str, Any]:
    """The summary of a test.

    Args:
        results: {metric: (N, ...)}, with a _lixel or _param ending.
        description: What was tested how: name -> text or number.
        joints: The joints that count; None where nothing was compared.
    Returns:
        The description, joint set and root, number of samples `without_truth`, mean `metrics`, and mean errors
        `per_joint_mm`.
    """
    summary = dict(description)
    names = []
    if joints is not None:
        names = joints.names()
        unknown = max(_rows_with_nan(values) for values in results.values())
        if unknown:
            summary['without_truth'] = unknown
        summary['joint_set'] = f'{len(names)} joints of {joints.joint_set.name}'
        summary['root'] = joints.joint_set.root
    means = {}
    per_joint = {}
    for name, values in results.items():
        if np.ndim(values) == 1:
            means[name] = float(np.nanmean(values, dtype=np.float64))
        if name.startswith('joint_error'):
            errors = np.nanmean(values, axis=0, dtype=np.float64)
            rounded = np.round(errors, 2).tolist()
            per_joint[name.removeprefix('joint_error_')] = dict(zip(names, rounded, strict=True))
    summary['metrics'] = means
    summary['per_joint_mm'] = per_joint
    return summary


def _rows_with_nan(values: np.ndarray) -> int:
    rows = np.isnan(values).reshape(len(values), -1).any(1)
    return int(rows.sum())


def as_text(summary: Mapping[str, Any]) -> str:
    """The summary as lines of text: what was tested how, and a row of errors per mesh."""
    words = [f'{key.replace("_", " ")}: {value}' for key, value in summary.items()
             if key not in ('metrics', 'per_joint_mm')]
    lines = [', '.join(words)]
    for mesh in ('lixel', 'param'):
        values = _metric_texts(summary['metrics'], mesh)
        if values:
            lines.append(f'  {mesh} mesh (mm): ' + '  '.join(values))
        if mesh in summary['per_joint_mm']:
            joint_errors = summary['per_joint_mm'][mesh]
            errors = [f'{name} {value:.1f}' for name, value in joint_errors.items()]
            lines.append('    per joint: ' + '  '.join(errors))
    return '\n'.join(lines)


def _metric_texts(means: Mapping[str, float], mesh: str) -> list[str]:
    """'MPJPE 12.34' for each metric of a mesh."""
    texts = []
    for key, title in TITLES.items():
        name = f'{key}_{mesh}'
        if name not in means:
            continue
        digits = 2
        if key in RATIOS:
            digits = 3
        texts.append(f'{title} {means[name]:.{digits}f}')
    return texts


def save_result(output_dir: str | Path, name: str, content: object) -> Path:
    """Write `content` as output/result/<name>.json. Returns the path."""
    path = Path(output_dir) / 'result' / f'{name}.json'
    write_text(path, json.dumps(content))
    return path


def draw_batch(folder: Path, name: str, batch: EvalBatch, load_image: Callable[[Sample], np.ndarray],
               face: np.ndarray) -> None:
    """Write each sample's image with its lixel mesh drawn over it.

    Args:
        folder: To write into.
        name: Of the data set.
        batch: Samples and meshes.
        load_image: Gives the image of a sample.
        face: (F, 3) of the meshes.
    """
    for sample, mesh in zip(batch.samples, batch.meshes['lixel'], strict=True):
        path = folder / f'{name}_{sample.ann_id}_lixel.jpg'
        save_overlay(path, load_image(sample), mesh, face, camera_of(sample))


def save_overlay(path: str | Path, img: np.ndarray, mesh: np.ndarray, face: np.ndarray,
                 camera: Camera) -> None:
    """Write an image (H, W, 3) RGB with a mesh (V, 3), metres in camera space, drawn over it."""
    write_image(path, draw_meshes(img, [mesh], face, camera.focal, camera.princpt))
