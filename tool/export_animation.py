"""An animated figure from saved results of the demo, for Blender, Unity and web pages.

    python tool/export_animation.py output/demo/clip/person_0.npz       # -> person_0.glb, person_0.bvh
    python tool/export_animation.py output/demo/photo/result.npz        # the same for every person

The .glb (glTF 2.0) holds the skinned mesh, the camera and the motion, the .bvh the skeleton and the
motion. What is in them, and how other programs read them: docs/export.md.
"""
import runpy
from pathlib import Path

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, a_path, show_help
from common.errors import run_main
from common.export.motion import POSEDIRS


def make_parser() -> Parser:
    parser = Parser(__doc__)
    parser.add_argument(
        'file', type=a_path, help='person_<n>.npz of a video, or result.npz of an image'
    )
    parser.add_argument(
        '--output', metavar='DIR', type=a_path, help='where to write (default: beside the file)'
    )
    parser.add_argument(
        '--posedirs',
        choices=POSEDIRS,
        default='leave_out',
        help="the body model's pose-dependent corrections: left out, or as morph targets",
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

from common.export.bvh import person_bvh
from common.export.gltf import person_glb
from common.export.saved import read_people
from common.files.whole import whole_file
from common.human_model import get_human_model
from tool.files.write import writing


def main(argv: list[str] | None = None) -> None:
    args = make_parser().parse_args(argv)
    people = read_people(args.file)
    folder = Path(args.output or Path(args.file).parent)
    files: dict[str, bytes] = {}
    for person in people:
        human_model = get_human_model(person.body_model, args.human_model_dir, person.gender)
        glb = person_glb(human_model, person.motion, person.name, args.posedirs)
        files[f'{person.name}.glb'] = glb.content
        files[f'{person.name}.bvh'] = person_bvh(human_model, person.motion).encode()
        if glb.note:
            print(f'{person.name}: {glb.note}')
    for name, content in files.items():
        path = folder / name
        with writing(path), whole_file(path) as file:
            file.write(content)
    count = len(people[0].motion.times)
    print(f'wrote {", ".join(files)} ({count} frame{"s" * (count > 1)}) to {folder}')


if __name__ == '__main__':
    run_main(main)
