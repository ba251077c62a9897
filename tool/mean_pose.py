"""The error of always answering the mean pose: what a network must beat on a test set.

    python tool/mean_pose.py --cfg nano --samples 2000

The mean is taken over the root-relative fitted meshes of the first training samples, the error over the whole test set.
"""
import sys
from pathlib import Path

import numpy as np
from tqdm import trange

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from common.arguments import Parser, each_once  # noqa: E402
from common.errors import UserError, run_main  # noqa: E402
from data import build_dataset  # noqa: E402
from data.target import place_fit  # noqa: E402
from main.config import Config  # noqa: E402


def mean_mesh(dataset, count):
    """(V, 3) metres: the mean of the root-relative fitted meshes of the first `count` samples of a training set."""
    total, used, root = 0, 0, dataset.human_model.root_joint_idx
    for i in trange(min(count, len(dataset)), desc='mean mesh'):
        sample = dataset.samples[i]
        if sample.fit is not None:
            placed = place_fit(sample, dataset.body)
            total, used = total + (placed.vertices - placed.joints[root]), used + 1
    if not used:
        raise UserError(f'{dataset.name}: none of the first {count} samples has a fitted mesh')
    return total / used


def evaluate(dataset, mesh):
    """{metric: mean over the test set} for the same mesh (V, 3), root-relative metres, as every answer."""
    rows = []
    for i in trange(len(dataset), desc=dataset.name):
        _, targets, meta = dataset[i]
        outs = {'mesh_coord_img': np.zeros((1, *mesh.shape), np.float32), 'bb2img_trans': meta['bb2img_trans'][None],
                'mesh_coord_cam': mesh[None].astype(np.float32)}
        if 'fit_mesh_coord_cam' in targets:
            outs['mesh_coord_cam_target'] = targets['fit_mesh_coord_cam'][None]
        rows.append({name.removesuffix('_param'): value for name, value in dataset.evaluate(outs, i).items()
                     if name.endswith('_param') and value.ndim == 1})
    return {name: float(np.concatenate([row[name] for row in rows]).mean()) for name in rows[0]}


def main(argv=None):
    parser = Parser(__doc__)
    parser.add_argument('--cfg', default='nano', help='preset or YAML file')
    parser.add_argument('--samples', type=int, default=2000, help='training samples to take the mean of')
    parser.add_argument('overrides', nargs='*', help='settings, key=value')
    args = parser.parse_intermixed_args(argv)
    if args.samples < 1:
        raise UserError(f'--samples {args.samples}: must be 1 or more')
    config = Config()
    config.load(args.cfg)
    config.override(each_once(args.overrides))
    names = [*config.trainset_3d, *config.trainset_2d]
    if not names:
        raise UserError('no training set to take the mean of: name one in trainset_3d')
    mesh = mean_mesh(build_dataset(names[0], 'train', config), args.samples)
    errors = evaluate(build_dataset(config.testset, 'test', config), mesh)
    print(f'{config.testset}, the mean pose of {names[0]}: '
          + ', '.join(f'{name} {value:.1f} mm' for name, value in errors.items()))


if __name__ == '__main__':
    run_main(main)
