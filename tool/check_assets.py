"""Are the files of the data sets and body models there, and are they what the loaders expect?

    python tool/check_assets.py                         # every data set and body model
    python tool/check_assets.py PW3D smpl               # some of them
    python tool/check_assets.py PW3D use_gt_info=true   # with settings, as for train.py and test.py
    python tool/check_assets.py Human36M --fits         # also draw some fits over their pictures

prints a table: present, MISSING (what for, where to get it, which setting does without it) or BROKEN (the first bad
record); how many listed pictures are absent; and what is ready. Exit code 1 if something asked for is not ready.
"""
# ruff: noqa: E402
import importlib
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from common.arguments import Parser, each_once
from common.errors import UserError, run_main
from common.human_model import NAMES as BODY_MODELS
from common.human_model import OFFICIAL, get_human_model
from common.human_model.model_spec import GENDERS, find_model_file
from data import build_dataset, dataset_names
from data.assets.table import assets_of
from data.PW3D.PW3D import PW3D
from main.config import Config
from tool.assets.overlays import draw_fits
from tool.assets.pictures import check_pictures

PRESENT, MISSING, BROKEN, ABSENT = 'present', 'MISSING', 'BROKEN', 'absent'


def row(status, what, text=''):
    """Print one row of the table."""
    print(f'  {status:8} {what}' + (f'\n           {text}' if text else ''))


def check_file(path, layout):
    """(status, what is wrong) of one file. layout: see data/assets/table.py."""
    if not path.is_file():
        return MISSING, ''
    try:
        if isinstance(layout, tuple):
            shape = np.load(path, allow_pickle=False).shape
            return (PRESENT, '') if shape == layout else (BROKEN, f'its shape is {shape}, expected {layout}')
        with open(path, encoding='utf-8') as file:
            problem = layout.first_problem(json.load(file))
    except (OSError, ValueError, EOFError) as error:
        return BROKEN, f'{error}; get it again'
    return (BROKEN, problem) if problem else (PRESENT, '')


def check_files(assets, data_dir):
    """Print a row per Asset, and where the missing ones can be had; returns the splits that lack one."""
    unusable, sources = set(), {}
    for asset in assets:
        status, problem = check_file(data_dir / asset.path, asset.layout)
        if status == MISSING and asset.optional:
            status = ABSENT
        avoided = f'; {asset.setting[0]}={str(asset.setting[1]).lower()} does without it' if asset.setting else ''
        row(status, f'{asset.path}  ({", ".join(asset.splits)}: {asset.holds}{"" if status == PRESENT else avoided})',
            problem)
        if status in (MISSING, ABSENT):
            sources.setdefault(asset.source, []).append(Path(asset.path).name)
        if status in (MISSING, BROKEN):
            unusable |= set(asset.splits)
    for source, files in sources.items():
        print(f'  where to get {files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"}: {source}')
    return unusable


def check_body(name, gender, model_dir):
    """Print the row of one body model; whether it can be used."""
    if name not in OFFICIAL:
        status, about, text = PRESENT, f'{name} (embedded)', ''
    else:
        spec = OFFICIAL[name].SPEC
        about = f'{gender} {spec.title}'
        try:
            status, text = PRESENT, str(find_model_file(spec, Path(model_dir), gender))
        except UserError:
            status = MISSING
            text = f'save it as {Path(model_dir) / spec.stems[gender][0]}.pkl; register at {spec.urls[gender]}'
    if status == PRESENT:
        try:
            get_human_model(name, model_dir, gender)
        except UserError as error:
            status, text = BROKEN, str(error)
    row(status, f'body model: {about}', text)
    return status == PRESENT


def bodies_of(name, cfg):
    """The (body model, gender) pairs that a data set needs: the network's, and those of its fits."""
    bodies = {(cfg.human_model, 'neutral')}
    if issubclass(_loader(name), PW3D):
        genders = ('male', 'female') if cfg.pw3d_gender == 'annotated' else ('neutral',)
        bodies |= {('smpl', gender) for gender in genders}
    return sorted(bodies)


def check_dataset(name, cfg, fits):
    """Print a data set's part of the table; returns whether all of its splits are ready. fits: how many to draw."""
    print(f'\n{name}, in {cfg.data_dir}')
    assets = assets_of(name, cfg)
    unusable = check_files(assets or (), Path(cfg.data_dir))
    splits = _splits(name, assets)
    if not all([check_body(*body, cfg.human_model_dir) for body in bodies_of(name, cfg)]):
        unusable |= set(splits)
    for split in splits:
        if split in unusable:
            row('-', f'pictures of {split}: counted when the files above are there')
        elif not check_split(name, split, cfg, fits):
            unusable.add(split)
    ready = [split for split in splits if split not in unusable]
    print(f'  => {name}: ready: {", ".join(ready) or "nothing"}'
          + (f'; NOT ready: {", ".join(s for s in splits if s in unusable)}' if unusable else ''))
    return not unusable


def _splits(name, assets):
    """The splits of a data set that differ in their files; all that its class names where no table says so."""
    if assets:
        named = {split for asset in assets for split in asset.splits}
        return [split for split in ('train', 'validation', 'test') if split in named]
    return list(_loader(name).splits)


def _loader(name):
    """The class of a data set."""
    return getattr(importlib.import_module(f'data.{name}.{name}'), name)


def check_split(name, split, cfg, fits):
    """Load a split as training and test do, count its pictures, draw `fits` of its fits; whether all was good."""
    try:
        dataset = build_dataset(name, split, cfg)
    except UserError as error:
        row(BROKEN, f'{split}: {error}')
        return False
    problem, text = check_pictures(dataset)
    row(BROKEN if problem else PRESENT, f'{split}: {text}', problem)
    if fits:
        draw_fits(dataset, fits, Path(cfg.output_dir) / 'vis')
    return not problem


def settings_for(name, overrides):
    """The Config in which one data set is trained on and tested; absent pictures are counted and stop nothing."""
    cfg = Config()
    cfg.override([f'trainset_3d=[{name}]', 'trainset_2d=[]', f'testset={name}', *overrides, 'missing_image=skip',
                  'max_missing_images=1'])
    return cfg


def main(argv=None):
    parser = Parser(__doc__)
    known = [*dataset_names(), *BODY_MODELS]
    parser.add_argument('names', nargs='*', metavar='name | key=value',
                        help=f'what to check, default all: {", ".join(known)}; and settings')
    parser.add_argument('--fits', action='store_true', help='draw some fits of each split into output/vis and print '
                        'their distance from the annotated joints')
    parser.add_argument('--fit_num', type=int, default=4, metavar='N', help='with --fits: how many of each split')
    args = parser.parse_intermixed_args(argv)
    if args.fit_num < 1:
        raise UserError(f'--fit_num {args.fit_num}: must be 1 or more')
    overrides = each_once([name for name in args.names if '=' in name])
    names = [name for name in args.names if '=' not in name] or known
    for name in names:
        if name not in known:
            raise UserError(f'unknown data set or body model "{name}": one of {", ".join(known)}')
    ready = {}
    for name in names:
        if name in BODY_MODELS:
            cfg = settings_for('Synthetic', overrides)
            print(f'\n{name}, in {cfg.human_model_dir}')
            genders = GENDERS if name == 'smpl' else ('neutral',)
            ready[name] = all([check_body(name, gender, cfg.human_model_dir) for gender in genders])
        else:
            ready[name] = check_dataset(name, settings_for(name, overrides), args.fit_num * args.fits)
    print('\n' + '\n'.join(f'{name:10} {"ready" if good else "NOT READY"}' for name, good in ready.items()))
    return 0 if all(ready.values()) else 1


if __name__ == '__main__':
    run_main(main)
