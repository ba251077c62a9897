"""person_<n>.glb: the people of an image or video as figures for animation programs."""
from pathlib import Path

from common.demo.outputs.record import Record
from common.demo.people.prediction import Person
from common.errors import UserError
from common.export.glb_builder import gltf_library
from common.export.gltf import person_glb
from common.export.motion import Motion, View, still
from common.human_model import HumanModel
from common.utils.overlay import person_color


class Figures:
    """Writes the figures of a run. Without the optional package that writes glTF there are none, and a note.

    Attributes:
        note: a line for the end of the run, or ''.
    """

    def __init__(self, human_model: HumanModel) -> None:
        self.human_model = human_model
        self.note = ''
        self.farthest_mm = 0.  # of all figures, by the pose-dependent corrections left out
        self.available = True
        try:
            gltf_library()
        except UserError as error:
            self.available = False
            self.note = f'no person_<n>.glb: {error}'

    def write(self, folder: Path, number: int, motion: Motion) -> None:
        """Write the figure of one person into a folder."""
        if not self.available:
            return
        name = f'person_{number}'
        red, green, blue = person_color(number)
        glb = person_glb(self.human_model, motion, name, color=(red, green, blue))
        (folder / f'{name}.glb').write_bytes(glb.content)
        off = glb.extras['posedirs']['mm_max']
        if glb.note and off > self.farthest_mm:
            self.farthest_mm = off
            self.note = f'person_<n>.glb: {glb.note}'

    def write_image(self, folder: Path, people: list[Person], record: Record) -> None:
        """Write the figures of the people of an image; none in the lixel stage."""
        for number, person in enumerate(people):
            body = person.prediction.body
            if body is not None and person.trans is not None:
                motion = still(body.pose, person.trans, body.betas, record.info.left_hand, view_of(record))
                self.write(folder, number, motion)


def view_of(record: Record) -> View:
    """The camera of an image or video, for a figure."""
    return View(record.camera.focal, record.camera.princpt, record.size)
