"""The error of always answering the mean pose: what a network must beat on a test set.

    python tool/mean_pose.py --cfg nano --samples 2000

prints the mean of each metric, millimetres. The mean pose is taken over the root-relative fitted meshes of the first
training samples, the error over the whole test set.
"""
import copy
import runpy
from pathlib import Path

import numpy as np
from tqdm import trange

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, each_once, show_help
from common.errors import UserError, run_main


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('--cfg', default='nano', help='preset or YAML file')
    parser.add_argument('--samples', type=int, default=2000, help='training samples to take the mean of')
    parser.add_argument('overrides', nargs='*', metavar='key=value', help='settings of main/config.py')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from data import build_dataset
from data.mesh_dataset import MeshDataset
from data.placed_fit import place_fit
from main.config import Config


def mean_mesh(dataset: MeshDataset, count: int) -> np.ndarray:
    """(V, 3) metres: the mean of the root-relative fitted meshes of the first `count` samples of a training set."""
    total = np.zeros((dataset.human_model.vertex_num, 3))
    used = 0
    root = dataset.human_model.root_joint_idx
    for i in trange(min(count, len(dataset)), desc='mean mesh'):
        sample = dataset.samples[i]
        if sample.fit is None:
            continue
        placed = place_fit(sample, dataset.body)
        total += placed.vertices - placed.joints[root]
        used += 1
    if not used:
        raise UserError(f'{dataset.name}: none of the first {count} samples has a fitted mesh')
    return total / used


def evaluate(dataset: MeshDataset, mesh: np.ndarray) -> dict[str, float]:
    """{metric: mean over the test set} for the same mesh (V, 3), root-relative metres, as every answer."""
    values: dict[str, list[np.ndarray]] = {}
    for i in trange(len(dataset), desc=dataset.name):
        _, targets, meta = dataset[i]
        outs = {'mesh_coord_img': np.zeros((1, *mesh.shape), np.float32),
                'mesh_coord_cam': mesh[None].astype(np.float32),
                'bb2img_trans': meta['bb2img_trans'][None]}
        if 'fit_mesh_coord_cam' in targets:
            outs['mesh_coord_cam_target'] = targets['fit_mesh_coord_cam'][None]
        for name, value in dataset.evaluate(outs, i).items():
            if name.endswith('_param') and value.ndim == 1:
                values.setdefault(name.removesuffix('_param'), []).append(value)
    return {name: float(np.concatenate(parts).mean()) for name, parts in values.items()}


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    args = make_parser().parse_intermixed_args(argv)
    if args.samples < 1:
        raise UserError(f'--samples {args.samples}: must be 1 or more')
    config = Config()
    config.load(args.cfg)
    config.override(each_once(args.overrides))
    names = [*config.trainset_3d, *config.trainset_2d]
    if not names:
        raise UserError('no training set to take the mean of: name one in trainset_3d')
    trained_on = copy.deepcopy(config)  # draws no more synthetic images than it uses
    size = min(args.samples, config.synthetic_train_size)
    trained_on.update({'synthetic_train_size': size, 'synthetic_cache': False})
    mesh = mean_mesh(build_dataset(names[0], 'train', trained_on), args.samples)
    errors = evaluate(build_dataset(config.testset, 'test', config), mesh)
    texts = [f'{name} {value:.1f} mm' for name, value in errors.items()]
    print(f'{config.testset}, the mean pose of {names[0]}: {", ".join(texts)}')


if __name__ == '__main__':
    run_main(main)
