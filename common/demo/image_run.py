"""From pictures to result folders."""
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from common.demo.inputs.sources import read_pictures
from common.demo.outputs.folder import clear_leftovers, free_name, printable, whole_folder
from common.demo.outputs.image_files import write_picture
from common.demo.outputs.record import JointReader, Origin
from common.demo.people.placement import check_camera
from common.demo.people.prediction import choose_camera, place
from common.errors import UserError


@dataclass
class Settings:
    """output: folder of the result folders. snapshot: its path, for the record. joints: which go into the record.

    box_size_m: side (metres) of the cube around a person. focal (1 or 2 numbers), princpt (2): pixels, None if not
    given. root_depth: metres, one number for all or one per person; None: estimated. smooth: None or a method.
    root_row (V,): row of the joint regressor that gives the root joint, for the original's placement; None: fitted.
    """
    output: Path
    snapshot: str
    joints: JointReader
    box_size_m: float
    focal: list | None = None
    princpt: list | None = None
    root_depth: list | None = None
    smooth: str | None = None
    root_row: np.ndarray | None = None

    def __post_init__(self):
        if self.focal is not None:
            self.focal = np.broadcast_to(np.array(self.focal, np.float64), 2)
        for depth in self.root_depth or [None]:
            check_camera(self.focal, self.princpt, depth, self.box_size_m)

    def root_depths(self, count: int) -> list[float | None]:
        """One depth (metres) or None for each of `count` people. UserError if other numbers of them were given."""
        if self.root_depth is None:
            return [None] * count
        if len(self.root_depth) not in (1, count):
            raise UserError(f'--root_depth has {len(self.root_depth)} numbers for {count} people: give one, or one '
                            'for each')
        return self.root_depth * (count if len(self.root_depth) == 1 else 1)

    def place(self, predictions, size, camera=None):
        """Predictions of one picture of `size` (height, width) -> its Camera (chosen unless given), list of Person."""
        depths = self.root_depths(len(predictions))
        if camera is None:
            camera = choose_camera(predictions, size, self.focal, self.princpt)
        people = []
        for prediction, depth in zip(predictions, depths, strict=True):
            people.append(place(prediction, camera, self.box_size_m, depth, self.root_row))
        return camera, people


def origin_of(path, size, people, predictor, settings):
    """What results are made of, for the record."""
    human_model = predictor.human_model
    stage = 'lixel' if people[0].param_cam is None else 'param'
    return Origin(str(path.resolve()), size, settings.snapshot, stage, human_model.name, human_model.gender,
                  human_model.is_hand, predictor.left_hand)


def pictures(paths, boxes_of, predictor, settings):
    """Results for picture files: a folder each. Pictures of a folder that cannot be used are passed over and named
    in a UserError at the end."""
    clear_leftovers(settings.output)
    failed, used, people_done, started = [], [], 0, time.perf_counter()
    with tqdm(total=len(paths), unit='image', desc='demo', delay=0.5) as bar:  # not yet there when an input is wrong
        for picture, predictions in predictor.stream(read_pictures(paths, boxes_of, failed)):
            size = picture.image.shape[:2]
            try:
                camera, people = settings.place(predictions, size)
            except UserError as error:
                failed.append(f'{picture.path.name}: {error}')
                continue
            taken = [folder.name for folder in used]
            name = free_name(settings.output, picture.path.stem, picture.path.resolve(), taken)
            used.append(settings.output / name)
            with whole_folder(settings.output, name) as folder:
                write_picture(folder, picture.image, people, camera, settings.joints, predictor.faces,
                              origin_of(picture.path, size, people, predictor, settings))
            people_done += len(people)
            bar.set_postfix(people=people_done, refresh=False)  # would show the bar before its delay, and never end it
            bar.update()
    seconds = time.perf_counter() - started
    for line in boxes_of.notes:
        print(line)
    if used:
        print(f'{len(used)} picture{"s" * (len(used) > 1)}, people: {people_done}, {seconds:.1f} s of which '
              f'{predictor.network_time:.1f} s in the network, results: {", ".join(map(printable, used[:5]))}'
              f'{" ..." * (len(used) > 5)}')
    if failed:
        raise UserError(f'{len(failed)} of {len(paths)} pictures could not be used: {"; ".join(failed)}'
                        if len(paths) > 1 else failed[0])
    return 0
