"""The network of a snapshot as one ONNX file, for programs without Python or PyTorch.

    python tool/export_onnx.py --snapshot main/embedded/nano.pth.tar     # -> nano.onnx in this folder
    python tool/export_onnx.py --snapshot snapshot_12.pth.tar --stage lixel --output meshnet.onnx

Input: `image` (batch, 3, H, W), an RGB crop around one person, 0..1. Outputs: `joints_lixel`,
`mesh_lixel`, and of the param stage `pose`, `betas`, `vertices`, `joints`; names, shapes and units
stand in the file's metadata. After writing, onnxruntime and PyTorch run on the same images; the
largest differences are printed, and beyond 1e-3 lixels or 1e-5 m the program fails. How to use the
file: docs/export.md.
"""
import argparse
import runpy
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, show_help
from common.errors import UserError, optional_import, run_main


def make_parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument(
        '--snapshot', metavar='FILE', type=a_path, required=True, help='a snapshot'
    )
    parser.add_argument('--stage', choices=('lixel', 'param'), help="default: the snapshot's")
    parser.add_argument(
        '--output',
        metavar='FILE',
        type=a_path,
        help='default: its name with .onnx, in this folder',
    )
    parser.add_argument(
        '--human_model_dir',
        metavar='DIR',
        type=a_path,
        help='folder with the SMPL and MANO files (default: data/human_models)',
    )
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

import numpy as np
import torch

from common.export.onnx_file import (
    Deployed,
    OnnxSession,
    differences,
    onnx_bytes,
    onnx_library,
)
from common.files.whole import whole_file
from common.nets.fuse import prepare_for_inference
from main.config import Config
from main.predictor import read_network as network_of
from tool.files.write import writing

LIMITS = {'joints_lixel': 1e-3, 'mesh_lixel': 1e-3, 'vertices': 1e-5, 'joints': 1e-5}
UNITS = {
    'joints_lixel': 'lixels',
    'mesh_lixel': 'lixels',
    'vertices': 'm',
    'joints': 'm',
    'pose': 'rad',
    'betas': '',
}
BATCHES = (1, 3, 8)


def main(argv: list[str] | None = None) -> None:
    args = make_parser().parse_args(argv)
    onnx_library()  # missing packages are told before anything is computed
    optional_import('onnxruntime', 'checking ONNX files')
    config = Config()
    network = read_network(args, config)
    name = Path(args.snapshot).name.removesuffix('.tar').removesuffix('.pth')
    path = Path(args.output or f'{name}.onnx')
    depth, _, width = config.output_hm_shape
    facts = {
        'body_model': config.human_model,
        'stage': config.stage,
        'crop_pixels_per_lixel': f'{config.input_img_shape[1] / width:g}',
        'metres_per_lixel': f'{config.bbox_3d_size / depth:g}',
    }
    content = onnx_bytes(network, tuple(config.input_img_shape), facts)
    with writing(path), whole_file(path) as file:
        file.write(content)
    print(f'wrote {path}, {len(content) / 1e6:.1f} MB')
    check(network, path, tuple(config.input_img_shape))


def read_network(args: argparse.Namespace, config: Config) -> Deployed:
    """The network of --snapshot on the CPU; fills `config` with its settings."""
    if args.human_model_dir:
        config.update({'human_model_dir': args.human_model_dir})
    model, _ = network_of(config, args.snapshot, args.stage)
    return Deployed(prepare_for_inference(model, torch.device('cpu')))


def check(network: Deployed, path: Path, image_shape: tuple[int, ...]) -> None:
    """Compare the file with the network on random images, several batch sizes in one session.

    Deletes the file and raises UserError where they differ by more than LIMITS.
    """
    session = OnnxSession(path)
    torch.manual_seed(0)
    worst = {name: 0.0 for name in network.names}
    for batch in BATCHES:
        found = differences(network, session, torch.rand(batch, 3, *image_shape))
        for name, value in found.items():
            worst[name] = float(np.maximum(worst[name], value))  # which keeps a NaN
    print(
        'largest differences from PyTorch: '
        + ', '.join(f'{name} {value:.1e} {UNITS[name]}'.rstrip() for name, value in worst.items())
    )
    too_far = [name for name, limit in LIMITS.items() if not worst.get(name, 0.0) <= limit]
    if too_far:
        path.unlink()
        raise UserError(
            'the ONNX file does not compute what the snapshot does and is deleted: '
            f'{", ".join(too_far)} differ too much; try other versions of torch, onnxscript and '
            'onnxruntime'
        )


if __name__ == '__main__':
    run_main(main)
