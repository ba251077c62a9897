"""From image files to result folders."""
import time
from pathlib import Path

from tqdm import tqdm

from common.demo.inputs.sources import BoxSource, read_images
from common.demo.outputs.figures import Figures
from common.demo.outputs.folder import clear_leftovers, free_name, whole_folder
from common.demo.outputs.image_files import write_results
from common.demo.paths import printable
from common.demo.pipeline import Pipeline
from common.errors import UserError

SHOWN = 5  # names or warnings of so many images are printed


def run_images(pipeline: Pipeline, paths: list[Path], boxes_of: BoxSource, output: Path) -> int:
    """Write the results of image files, a folder each.

    Args:
        pipeline: to run.
        paths: of the images.
        boxes_of: gives the boxes of each.
        output: folder of the result folders.
    Returns:
        0, the exit code.
    Raises:
        UserError: some images cannot be used. It names them; the others have their results.
    """
    clear_leftovers(output)
    figures = Figures(pipeline.predictor.human_model)
    failed: list[str] = []
    used: list[Path] = []
    doubtful: list[str] = []
    people = 0
    started = time.perf_counter()
    images = read_images(paths, boxes_of, failed)
    # The delay: no bar yet when an input is wrong.
    with tqdm(total=len(paths), unit='image', desc='demo', delay=0.5) as bar:
        for image, predictions in pipeline.predictor.stream(images):
            height, width = image.image.shape[:2]
            try:
                camera, placed = pipeline.placer(predictions, (height, width), image.film_focal)
            except UserError as error:
                failed.append(f'{image.path.name}: {error}')
                continue
            source = image.path.resolve()
            name = free_name(output, image.path.stem, source, [folder.name for folder in used])
            record = pipeline.record(str(source), (height, width), camera)
            doubts = record.doubts(placed)
            if doubts:
                doubtful.append(f'{printable(image.path.name)}: {"; ".join(doubts)}')
            with whole_folder(output, name) as folder:
                write_results(folder, image.image, placed, record)
                figures.write_image(folder, placed, record)
            used.append(output / name)
            people += len(placed)
            bar.set_postfix(people=people, refresh=False)  # a refresh would ignore the delay
            bar.update()
    seconds = time.perf_counter() - started
    if figures.note and 'param' in pipeline.predictor.info.kinds:
        boxes_of.notes.append(figures.note)
    if len(doubtful) > SHOWN:
        boxes_of.notes.append(f'warnings about {len(doubtful)} images, each in its result.json; the first:')
    for note in [*boxes_of.notes, *doubtful[:SHOWN]]:
        print(note)
    if used:
        shown = ', '.join(printable(folder) for folder in used[:SHOWN])
        more = ' ...' if len(used) > SHOWN else ''
        plural = 's' if len(used) > 1 else ''
        print(f'{len(used)} image{plural}, people: {people}, {seconds:.1f} s of which '
              f'{pipeline.predictor.network_time:.1f} s in the network, results: {shown}{more}')
    if failed and len(paths) == 1:
        raise UserError(failed[0])
    if failed:
        raise UserError(f'{len(failed)} of {len(paths)} images could not be used: {"; ".join(failed)}')
    return 0

