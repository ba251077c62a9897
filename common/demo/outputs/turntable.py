"""turntable_<kind>: a mesh turned once round, as a video."""
from pathlib import Path

from common.demo.outputs.record import Record
from common.demo.outputs.video_writer import VideoWriter
from common.demo.people.prediction import Person
from common.utils.overlay import person_color, render_view

SIZE = (480, 360)  # height, width, pixels
FRAMES = 75
FPS = 25.


def write_turntables(folder: Path, person: Person, number: int, record: Record, prefix: str = '') -> None:
    """Write `<prefix>turntable_<kind>` with each mesh of a person, seen from all sides.

    Args:
        folder: to write into.
        person: in camera space.
        number: of the person, for the colour.
        record: of the image or video.
        prefix: of the names of the files.
    """
    for kind, mesh in person.meshes.items():
        with VideoWriter(folder, f'{prefix}turntable_{kind}', SIZE, FPS) as video:
            for frame in range(FRAMES):
                degrees = 360 * frame / FRAMES
                video.write(render_view(mesh, record.faces, SIZE, degrees, person_color(number), fits_all_sides=True))
