"""The people of an image or video for animation programs: person_<n>.glb with a skeleton, lixel_<n>.glb as a mesh."""
import functools
from collections.abc import Callable
from pathlib import Path

from common.demo.outputs.record import Record
from common.demo.people.prediction import Person
from common.errors import UserError
from common.export.glb_builder import gltf_library
from common.export.gltf import mesh_glb, person_glb
from common.export.motion import Motion, View, still
from common.human_model import HumanModel
from common.utils.overlay import person_color


class Figures:
    """Makes the glTF files of a run. Without the optional package that writes glTF there are none, and a note.

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
            self.note = f'no .glb files: {error}'

    def figure(self, number: int, motion: Motion) -> bytes:
        """The content of person_<number>.glb."""
        glb = person_glb(self.human_model, motion, f'person_{number}', color=tuple(person_color(number)))
        off = glb.extras['posedirs']['mm_max']
        if glb.note and off > self.farthest_mm:
            self.farthest_mm = off
            self.note = f'person_<n>.glb: {glb.note}'
        return glb.content

    def lixel_mesh(self, number: int, person: Person, record: Record) -> bytes:
        """The content of lixel_<number>.glb."""
        glb = mesh_glb(person.lixel_cam, record.faces, view_of(record), f'lixel_{number}', tuple(person_color(number)),
                       record.info.body_model)
        return glb.content

    def of_image(self, people: list[Person], record: Record) -> dict[str, Callable[[], bytes]]:
        """The files of the people of an image: {name: function that gives the content}."""
        files: dict[str, Callable[[], bytes]] = {}
        if not self.available:
            return files
        for number, person in enumerate(people):
            files[f'lixel_{number}.glb'] = functools.partial(self.lixel_mesh, number, person, record)
            body = person.prediction.body
            if body is not None and person.trans is not None:
                motion = still(body.pose, person.trans, body.betas, record.info.left_hand, view_of(record))
                files[f'person_{number}.glb'] = functools.partial(self.figure, number, motion)
        return files

    def write(self, folder: Path, number: int, motion: Motion) -> None:
        """Write the figure of one person of a video into a folder."""
        if self.available:
            (folder / f'person_{number}.glb').write_bytes(self.figure(number, motion))

    def write_image(self, folder: Path, people: list[Person], record: Record) -> None:
        """Write the files of the people of an image."""
        for name, content in self.of_image(people, record).items():
            (folder / name).write_bytes(content())


def view_of(record: Record) -> View:
    """The camera of an image or video, for a figure."""
    return View(record.camera.focal, record.camera.princpt, record.size)
