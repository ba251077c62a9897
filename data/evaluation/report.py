"""The report of a test: a summary, as text and as a file, and images to look at."""
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files.images import write_image
from common.files.whole import write_json, write_text
from common.utils.overlay import draw_meshes
from common.utils.transforms import Camera
from data.evaluation.evaluator import EvalBatch, camera_of
from data.evaluation.mesh_errors import EvalJoints
from data.sample import Sample

log = logging.getLogger(__name__)
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
            means[name] = known_means(values)[0]
        if name.startswith('joint_error'):
            errors = known_means(values, digits=2)
            per_joint[name.removeprefix('joint_error_')] = dict(zip(names, errors, strict=True))
    summary['metrics'] = means
    summary['per_joint_mm'] = per_joint
    return summary


def known_means(values: np.ndarray, digits: int | None = None) -> list[float | None]:
    """The mean of each column of (N,) or (N, C) values, NaN left out.

    None for a column that is all NaN: JSON has no NaN. digits: to round to.
    """
    columns = np.asarray(values, np.float64).reshape(len(values), -1).T
    means: list[float | None] = []
    for column in columns:
        known = column[~np.isnan(column)]
        if not len(known):
            means.append(None)
        elif digits is None:
            means.append(float(known.mean()))
        else:
            means.append(round(float(known.mean()), digits))
    return means


def in_digits(value: float | None, digits: int) -> str:
    """A mean as text."""
    if value is None:
        return 'unknown'
    return f'{value:.{digits}f}'


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
            errors = [f'{name} {in_digits(value, 1)}' for name, value in joint_errors.items()]
            lines.append('    per joint: ' + '  '.join(errors))
    return '\n'.join(lines)


def _metric_texts(means: Mapping[str, float | None], mesh: str) -> list[str]:
    """'MPJPE 12.34' for each metric of a mesh."""
    texts = []
    for key, title in TITLES.items():
        name = f'{key}_{mesh}'
        if name not in means:
            continue
        digits = 2
        if key in RATIOS:
            digits = 3
        texts.append(f'{title} {in_digits(means[name], digits)}')
    return texts


def save_result(output_dir: str | Path, name: str, content: object) -> Path:
    """Write `content` as output/result/<name>.json. Returns the path.

    Raises:
        UserError: A number in it is not finite.
    """
    path = Path(output_dir) / 'result' / f'{name}.json'
    try:
        write_json(path, content)
    except ValueError as error:
        raise UserError(f'{path} is not written: it would hold numbers that are not finite; check the cameras and '
                        'root depths of the test') from error
    return path


def save_test(output_dir: Path, name: str, summary: Mapping[str, Any]) -> None:
    """Save the summary of a test beside those of other epochs; log where it is, and the table of them all.

    Writes output/result/<name>_<epoch>.json, and <name>.txt, the table.

    Args:
        output_dir: Of the run. name: Of the data set.
        summary: As from `summarise`, with `snapshot`, `epoch` and `stage`.
    Raises:
        UserError: A number in it is not finite.
    """
    path = save_result(output_dir, f'{name}_{summary["epoch"]}', summary)
    log.info('%s (%s stage) on %s: %s', summary['snapshot'], summary['stage'], name, path)
    table = epochs_table(path.parent, name)
    write_text(path.with_name(f'{name}.txt'), table)
    if table.count('\n') > 2:
        log.info('%s', table)


def epochs_table(folder: Path, name: str) -> str:
    """A row of mean errors for each epoch that was tested on a data set, as text.

    Args:
        folder: Of <name>_<epoch>.json. name: Of the data set.
    """
    found: dict[int, dict[str, Any]] = {}
    for path in folder.glob(f'{name}_*.json'):
        number = path.stem.removeprefix(f'{name}_')
        if number.lstrip('-').isdigit():
            found[int(number)] = json.loads(path.read_text())
    lines = [f'epochs tested on {name} (mm)']
    for epoch in sorted(found):
        words = [f'{epoch:5d} {found[epoch]["stage"]:>5}']
        for mesh in ('lixel', 'param'):
            values = _metric_texts(found[epoch]['metrics'], mesh)
            if values:
                words.append(f'{mesh} mesh: ' + '  '.join(values))
        lines.append('  '.join(words))
    return '\n'.join(lines) + '\n'


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
