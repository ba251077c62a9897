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


def run_images(pipeline: Pipeline, paths: list[Path], boxes_of: BoxSource, output: Path,
               turntable: bool = False) -> int:
    """Write the results of image files, a folder each.

    Args:
        pipeline: to run.
        paths: of the images.
        boxes_of: gives the boxes of each.
        output: folder of the result folders.
        turntable: each mesh is turned once round in a video, too.
    Returns:
        0, the exit code.
    Raises:
        UserError: some images cannot be used. It names them; the others have their results.
    """
    if turntable:
        playable_format()  # fails sooner than the network
    clear_leftovers(output)
    figures = Figures(pipeline.predictor.human_model)
    failed: list[str] = []
    used: list[Path] = []
    people = 0
    started = time.perf_counter()
    images = read_images(paths, boxes_of, failed)
    # The delay: no bar yet when an input is wrong.
    with tqdm(total=len(paths), unit='image', desc='demo', delay=0.5) as bar:
        for image, predictions in pipeline.predictor.stream(images):
            height, width = image.image.shape[:2]
            try:
                camera, placed = pipeline.placer(predictions, (height, width))
            except UserError as error:
                failed.append(f'{image.path.name}: {error}')
                continue
            source = image.path.resolve()
            name = free_name(output, image.path.stem, source, [folder.name for folder in used])
            record = pipeline.record(str(source), (height, width), camera)
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
    if figures.note and 'param' in pipeline.predictor.info.kinds:
        boxes_of.notes.append(figures.note)
    for note in boxes_of.notes:
        print(note)
    if used:
        shown = ', '.join(printable(folder) for folder in used[:5])
        more = ' ...' if len(used) > 5 else ''
        plural = 's' if len(used) > 1 else ''
        print(f'{len(used)} image{plural}, people: {people}, {seconds:.1f} s of which '
              f'{pipeline.predictor.network_time:.1f} s in the network, results: {shown}{more}')
    if failed and len(paths) == 1:
        raise UserError(failed[0])
    if failed:
        raise UserError(f'{len(failed)} of {len(paths)} images could not be used: {"; ".join(failed)}')
    return 0


def _write_turntables(folder: Path, people: list[Person], record: Record) -> None:
    """A turntable of each mesh, beside its OBJ file."""
    for number, person in enumerate(people):
        place = folder
        if len(people) > 1:
            place = folder / f'person_{number}'
        write_turntables(place, person, number, record)
