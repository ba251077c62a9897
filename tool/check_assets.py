"""Are the files of the data sets and body models there, and are they what the loaders expect?

    python tool/check_assets.py                         # every data set and body model
    python tool/check_assets.py PW3D smpl               # some of them
    python tool/check_assets.py PW3D use_gt_info=true   # with settings, as for train.py and test.py
    python tool/check_assets.py Human36M --fits         # also draw some fits over their images

prints a table: present, MISSING (what for, where to get it, which setting does without it) or BROKEN (the first bad
record); how many listed images are absent; and what is ready. Exit code 1 if something asked for is not ready.
A training looks for images only when it parses the annotations (cache_dir); this looks again, and keeps what it finds.
"""
import importlib
import runpy
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:
    runpy.run_path(str(Path(__file__).resolve().parents[1] / 'main' / 'init_path.py'))

from common.arguments import Parser, each_once, show_help
from common.errors import UserError, run_main
from data import build_dataset, dataset_names
from main.config import FIELDS, Config
from main.config_check import rule_of


def known_names() -> list[str]:
    """The names of all data sets and body models."""
    body_models = [name for name in rule_of(FIELDS['body_model']).choices if name != 'auto']
    return [*dataset_names(), *body_models]


def make_parser() -> Parser:
    """The parser of the command line."""
    parser = Parser(__doc__)
    parser.add_argument('names', nargs='*', metavar='name | key=value',
                        help=f'what to check, default all: {", ".join(known_names())}; and settings')
    parser.add_argument('--fits', action='store_true', help='draw some fits of each split into output/vis and print '
                        'their distance from the annotated joints')
    parser.add_argument('--fit_num', type=int, default=4, metavar='N', help='with --fits: how many of each split')
    return parser


if __name__ == '__main__':
    show_help(make_parser)  # before PyTorch is imported, which takes seconds

from common.human_model import NAMES as BODY_MODELS
from common.human_model import OFFICIAL, get_human_model
from common.human_model.model_spec import GENDERS, find_model_file
from data.assets.table import Asset, assets_of
from data.files import read_array, read_json
from data.index import forget
from data.mesh_dataset import MeshDataset
from data.PW3D.PW3D import PW3D
from tool.assets.images import check_images
from tool.assets.overlays import draw_fits

PRESENT = 'present'
MISSING = 'MISSING'
BROKEN = 'BROKEN'
ABSENT = 'absent'


def row(status: str, what: str, text: str = '') -> None:
    """Print one row of the table."""
    print(f'  {status:8} {what}')
    if text:
        print(f'           {text}')


def check_file(path: Path, asset: Asset) -> tuple[str, str]:
    """(status, what is wrong) of the file of an asset."""
    if not path.is_file():
        return (ABSENT if asset.optional else MISSING), ''
    layout: Any = asset.layout
    problem = ''
    try:
        if isinstance(layout, tuple):
            read_array(path, layout, asset.holds)
        else:
            problem = layout.first_problem(read_json(path, asset.holds))
    except UserError as error:
        problem = str(error)
    if problem:
        return BROKEN, problem
    return PRESENT, ''


def check_files(assets: Sequence[Asset], data_dir: Path) -> set[str]:
    """Print a row per asset, and where the missing ones can be had; returns the splits that lack one."""
    unusable: set[str] = set()
    sources: dict[str, list[str]] = defaultdict(list)
    for asset in assets:
        status, problem = check_file(data_dir / asset.path, asset)
        about = f'{", ".join(asset.splits)}: {asset.holds}'
        if status != PRESENT and asset.setting:
            name, value = asset.setting
            about += f'; {name}={str(value).lower()} does without it'
        row(status, f'{asset.path}  ({about})', problem)
        if status in (MISSING, ABSENT):
            sources[asset.source].append(Path(asset.path).name)
        if status in (MISSING, BROKEN):
            unusable |= set(asset.splits)
    for source, files in sources.items():
        more = f' and {len(files) - 1} more' if len(files) > 1 else ''
        print(f'  where to get {files[0]}{more}: {source}')
    return unusable


def check_body(name: str, gender: str, model_dir: str) -> bool:
    """Print the row of one body model; whether it can be used."""
    about = f'{name} (embedded)'
    text = ''
    if name in OFFICIAL:
        spec = OFFICIAL[name].SPEC
        about = f'{gender} {spec.title}'
        try:
            text = str(find_model_file(spec, Path(model_dir), gender))
        except UserError:
            row(MISSING, f'body model: {about}',
                f'save it as {Path(model_dir) / spec.stems[gender][0]}.pkl; register at {spec.urls[gender]}')
            return False
    try:
        get_human_model(name, model_dir, gender)
    except UserError as error:
        row(BROKEN, f'body model: {about}', str(error))
        return False
    row(PRESENT, f'body model: {about}', text)
    return True


def check_bodies(bodies: list[tuple[str, str]], model_dir: str) -> bool:
    """Print the rows of body models, (name, gender) each; whether all of them can be used."""
    usable = [check_body(name, gender, model_dir) for name, gender in bodies]
    return all(usable)


def bodies_of(name: str, cfg: Config) -> list[tuple[str, str]]:
    """The (body model, gender) pairs that a data set needs: the network's, and those of its fits."""
    bodies = {(cfg.human_model, 'neutral')}
    if issubclass(_loader(name), PW3D):
        genders = ('male', 'female') if cfg.pw3d_gender == 'annotated' else ('neutral',)
        bodies |= {('smpl', gender) for gender in genders}
    return sorted(bodies)


def check_dataset(name: str, cfg: Config, fits: int) -> bool:
    """Print a data set's part of the table; returns whether all of its splits are ready. fits: how many to draw."""
    print(f'\n{name}, in {cfg.data_dir}')
    assets = assets_of(name, cfg)
    unusable = check_files(assets or (), Path(cfg.data_dir))
    splits = _splits(name, assets)
    if not check_bodies(bodies_of(name, cfg), cfg.human_model_dir):
        unusable |= set(splits)
    for split in splits:
        if split in unusable:
            row('-', f'images of {split}: counted when the files above are there')
        elif not check_split(name, split, cfg, fits):
            unusable.add(split)
    ready = [split for split in splits if split not in unusable]
    verdict = f'  => {name}: ready: {", ".join(ready) or "nothing"}'
    if unusable:
        verdict += f'; NOT ready: {", ".join(split for split in splits if split in unusable)}'
    print(verdict)
    return not unusable


def _splits(name: str, assets: list[Asset] | None) -> list[str]:
    """The splits of a data set that differ in their files; all that its class names where no table says so."""
    if not assets:
        return list(_loader(name).splits)
    named = {split for asset in assets for split in asset.splits}
    return [split for split in ('train', 'validation', 'test') if split in named]


def _loader(name: str) -> type[MeshDataset]:
    """The class of a data set."""
    return getattr(importlib.import_module(f'data.{name}.{name}'), name)


def check_split(name: str, split: str, cfg: Config, fits: int) -> bool:
    """Load a split as training and test do, count its images, draw `fits` of its fits; whether all was good.

    The annotations are parsed, whether an index has them or not, and what is found about the images is kept there.
    """
    forget(cfg.cache_dir, name, split)
    try:
        dataset = build_dataset(name, split, cfg)
    except UserError as error:
        row(BROKEN, f'{split}: {error}')
        return False
    problem, text = check_images(dataset)
    row(BROKEN if problem else PRESENT, f'{split}: {text}', problem)
    if fits:
        draw_fits(dataset, fits, Path(cfg.output_dir) / 'vis')
    return not problem


def settings_for(name: str, overrides: list[str]) -> Config:
    """The Config in which one data set is trained on and tested; absent images are counted and stop nothing."""
    cfg = Config()
    cfg.override([f'trainset_3d=[{name}]', 'trainset_2d=[]', f'testset={name}', *overrides, 'missing_image=skip',
                  'max_missing_images=1'])
    return cfg


def check(name: str, overrides: list[str], fits: int) -> bool:
    """Print the part of a data set or body model; whether it is ready."""
    if name not in BODY_MODELS:
        return check_dataset(name, settings_for(name, overrides), fits)
    model_dir = settings_for('Synthetic', overrides).human_model_dir
    print(f'\n{name}, in {model_dir}')
    genders = GENDERS if name == 'smpl' else ('neutral',)
    return check_bodies([(name, gender) for gender in genders], model_dir)


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); 0 if everything asked for is ready, else 1."""
    args = make_parser().parse_intermixed_args(argv)
    known = known_names()
    if args.fit_num < 1:
        raise UserError(f'--fit_num {args.fit_num}: must be 1 or more')
    overrides = each_once([word for word in args.names if '=' in word])
    names = [word for word in args.names if '=' not in word] or known
    for name in names:
        if name not in known:
            raise UserError(f'unknown data set or body model "{name}": one of {", ".join(known)}')
    fits = args.fit_num if args.fits else 0
    ready = {name: check(name, overrides, fits) for name in names}
    print()
    for name, good in ready.items():
        print(f'{name:10} {"ready" if good else "NOT READY"}')
    return 0 if all(ready.values()) else 1


if __name__ == '__main__':
    run_main(main)
