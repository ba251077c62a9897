"""Boxes and root depths from the annotations, in the form of RootNet's result files: to test without RootNet.

    python tool/rootnet_from_gt.py PW3D              # -> data/PW3D/rootnet_output/bbox_root_pw3d_output.json
    python tool/rootnet_from_gt.py Human36M --out my_boxes.json h36m_protocol=1

The boxes are the annotated ones, processed as for training. Depths are those of the annotated root joint (3DPW: of the
Human3.6M pelvis of the annotated body); where a set annotates none (MS COCO, FreiHAND without its released ground
truth) they are estimated from the size of the box, and the program says so. Results made with true depths belong in no
comparison with published ones: state it with the number. `use_gt_info=true` gives the same without a file.
"""
import importlib
import runpy
from pathlib import Path

import numpy as np
from tqdm import tqdm

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, each_once, show_help
from common.errors import UserError, run_main


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('name', help='data set whose test uses root depths, such as PW3D')
    parser.add_argument('overrides', nargs='*', metavar='key=value', help='settings, as for test.py')
    parser.add_argument('--split', default='test', choices=('validation', 'test'))
    parser.add_argument('--out', type=a_path, help='file to write, default: where the loader looks for it')
    parser.add_argument('--force', action='store_true', help='replace a file that is there')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from common.utils.transforms import pixel2cam
from data import build_dataset, dataset_names
from data.boxes import rootnet_file
from data.mesh_dataset import MeshDataset
from data.placed_fit import place_fit
from data.sample import Sample
from main.config import Config
from tool.files.write import numbers, write_json


def sets_with_rootnet() -> dict[str, tuple[str, str, float]]:
    """{name: (file, key, metres per unit)} of the data sets whose tests can use RootNet's results."""
    found = {}
    for name in dataset_names():
        loader = getattr(importlib.import_module(f'data.{name}.{name}'), name)
        if loader.rootnet:
            found[name] = loader.rootnet
    return found


def root_position(dataset: MeshDataset, sample: Sample) -> np.ndarray:
    """The root joint (3,) of a test sample in camera space, metres; or the middle of the box at its depth."""
    if dataset.mesh_target_at_test:
        joints = dataset.eval_joints
        return joints.regress(place_fit(sample, dataset.body).vertices[None])[0, joints.root]
    joint_set = dataset.joint_set
    if sample.joint_cam is not None and joint_set is not None:
        return sample.joint_cam[joint_set.root_idx]
    camera = sample.camera
    assert camera is not None  # every test sample has one
    x, y, width, height = sample.bbox
    return pixel2cam(np.array([x + width / 2, y + height / 2, sample.root_depth]), camera.focal, camera.princpt)


def make_entries(dataset: MeshDataset, key: str, unit: float) -> list[dict]:
    """The list of RootNet entries of a test set: key, bbox (xywh pixels), root_cam in `unit` metres."""
    entries = []
    for sample in tqdm(dataset.samples, desc=dataset.name, unit='sample'):
        ids = {'ann_id': sample.ann_id, **sample.extra}
        root = np.asarray(root_position(dataset, sample), np.float64) / unit
        entries.append({key: ids[key], 'bbox': numbers(sample.bbox, 3), 'root_cam': numbers(root)})
    return entries


def main(argv: list[str] | None = None) -> None:
    """Run the command line `argv` (default: the process's own)."""
    known = sets_with_rootnet()
    args = make_parser().parse_intermixed_args(argv)
    if args.name not in known:
        raise UserError(f'"{args.name}" is no data set whose test uses root depths: one of {", ".join(known)}')
    file, key, unit = known[args.name]
    cfg = Config()
    cfg.override([f'trainset_3d=[{args.name}]', 'trainset_2d=[]', f'testset={args.name}', 'use_gt_info=true',
                  'max_missing_images=1', *each_once(args.overrides)])
    out = Path(args.out) if args.out else Path(cfg.data_dir) / args.name / rootnet_file(file, args.split)
    if out.exists() and not args.force:
        raise UserError(f'{out} is there already; --force replaces it, --out writes another')
    dataset = build_dataset(args.name, args.split, cfg)
    entries = make_entries(dataset, key, unit)
    write_json(out, entries)
    print(f'{out}: {len(entries)} boxes; root depths: {dataset.boxes.depth_source}')


if __name__ == '__main__':
    run_main(main)
