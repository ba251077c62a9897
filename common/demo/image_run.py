"""From image files to result folders."""
import time
from pathlib import Path

from tqdm import tqdm

from common.demo.inputs.sources import BoxSource, read_images
from common.demo.outputs.figures import Figures
from common.demo.outputs.folder import clear_leftovers, free_name, whole_folder
from common.demo.outputs.image_files import write_results
from common.demo.outputs.record import Record
from common.demo.outputs.turntable import write_turntables
from common.demo.outputs.video_writer import playable_format
from common.demo.paths import printable
from common.demo.people.prediction import Person
from common.demo.pipeline import Pipeline
from common.errors import UserError

SHOWN = 5  # names or warnings of so many images are printed


def run_images(pipeline: Pipeline, inputs: dict[Path, str], boxes_of: BoxSource, output: Path,
               turntable: bool = False) -> int:
    """Write the results of image files, a folder each.

    Args:
        pipeline: to run.
        inputs: {path of an image: name of its folder}.
        boxes_of: gives the boxes of each.
        output: folder of the result folders.
        turntable: each mesh is turned once round in a video, too.
    Returns:
        0, the exit code.
    Raises:
        UserError: some images cannot be used, or none has a person in it. It names them; the others have their results.
    """
    if turntable:
        playable_format()  # fails sooner than the network
    clear_leftovers(output)
    figures = Figures(pipeline.predictor.human_model)
    failed: list[str] = []
    used: list[Path] = []
    doubtful: list[str] = []
    people = 0
    started = time.perf_counter()
    images = read_images(inputs, boxes_of, failed)
    # The delay: no bar yet when an input is wrong.
    with tqdm(total=len(inputs), unit='image', desc='demo', delay=0.5) as bar:
        for image, predictions in pipeline.predictor.stream(images):
            height, width = image.image.shape[:2]
            try:
                camera, placed = pipeline.placer(predictions, (height, width), image.film_focal)
            except UserError as error:
                failed.append(f'{image.path.name}: {error}')
                continue
            source = image.path.resolve()
            name = free_name(output, inputs[image.path], source, [folder.name for folder in used])
            record = pipeline.record(str(source), (height, width), camera)
            doubts = record.doubts(placed)
            if doubts:
                doubtful.append(f'{printable(image.path.name)}: {"; ".join(doubts)}')
            with whole_folder(output, name) as folder:
                write_results(folder, image.image, placed, record)
                figures.write_image(folder, placed, record)
                if turntable:
                    _write_turntables(folder, placed, record)
            used.append(output / name)
            people += len(placed)
            bar.set_postfix(people=people, refresh=False)  # a refresh would ignore the delay
            bar.update()
    seconds = time.perf_counter() - started
    if figures.note:
        boxes_of.notes.append(figures.note)
    if len(doubtful) > SHOWN:
        boxes_of.notes.append(f'warnings about {len(doubtful)} images, each in its result.json; the first:')
    for note in [*boxes_of.notes, *doubtful[:SHOWN]]:
        print(note)
    if used:
        shown = _first([printable(folder) for folder in used])
        plural = 's' if len(used) > 1 else ''
        print(f'{len(used)} image{plural}, people: {people}, {seconds:.1f} s of which '
              f'{pipeline.predictor.network_time:.1f} s in the network, results: {shown}')
    _report_missing(len(inputs), failed, boxes_of.empty)
    return 0


def _write_turntables(folder: Path, people: list[Person], record: Record) -> None:
    """A turntable of each mesh, beside its OBJ file."""
    for number, person in enumerate(people):
        place = folder
        if len(people) > 1:
            place = folder / f'person_{number}'
        write_turntables(place, person, number, record)


def _report_missing(count: int, failed: list[str], empty: list[str]) -> None:
    """Say which of so many images have no results. UserError: some cannot be used, or nobody is in any of them."""
    nobody = f'{len(empty)} of {count} images have no person in them, by the boxes given or found: ' + _first(empty)
    if empty and len(empty) == count:
        raise UserError(nobody)
    if empty:
        print(nobody)
    if failed and count == 1:
        raise UserError(failed[0])
    if failed:
        raise UserError(f'{len(failed)} of {count} images could not be used: {"; ".join(failed)}')


def _first(names: list[str]) -> str:
    """The first few names."""
    more = ' ...' if len(names) > SHOWN else ''
    return ', '.join(names[:SHOWN]) + more
