"""The files of one image: overlays, OBJ meshes, the overview, and the record."""
from pathlib import Path

import cv2
import numpy as np

from common.demo.outputs.record import Record, compact
from common.demo.people.prediction import Person
from common.utils.overlay import (
    draw_box,
    draw_meshes,
    draw_points,
    draw_skeleton,
    obj_text,
    panels,
    person_color,
    render_view,
)
from common.utils.transforms import cam2pixel


def encode_jpeg(image: np.ndarray, quality: int = 92) -> bytes:
    """(H, W, 3) uint8 RGB -> the content of a JPEG file."""
    return cv2.imencode('.jpg', image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def write_results(folder: Path, image: np.ndarray, people: list[Person], record: Record) -> None:
    """Write all results of an image into a folder.

    One person: the six files beside each other. Several: the six files of each in `person_<number>/`, and beside those
    the shaded overlays of everybody, the nearer in front.

    Args:
        folder: to write into.
        image: (H, W, 3) uint8 RGB.
        people: on it, at least one.
        record: of the image.
    """
    overlays = {kind: draw_people(image, people, kind, record) for kind in record.info.kinds}
    for kind, overlay in overlays.items():
        (folder / f'rendered_mesh_{kind}.jpg').write_bytes(encode_jpeg(overlay))
    for number, person in enumerate(people):
        place = folder
        if len(people) > 1:
            place = folder / f'person_{number}'
            place.mkdir()
            for kind in record.info.kinds:
                alone = draw_people(image, [person], kind, record, [number])
                (place / f'rendered_mesh_{kind}.jpg').write_bytes(encode_jpeg(alone))
        _write_person(place, image, person, number, record)
    (folder / 'overview.jpg').write_bytes(encode_jpeg(_overview(image, overlays, people, record)))
    text = compact(record.content(people))
    (folder / 'result.json').write_text(text, encoding='utf-8', errors='backslashreplace')  # odd names of files
    record.write_npz(folder / 'result.npz', people)


def draw_people(image: np.ndarray, people: list[Person], kind: str, record: Record,
                numbers: list[int] | None = None) -> np.ndarray:
    """The shaded meshes of one kind over an image (H, W, 3), each in the colour of its person's number."""
    colors = [person_color(number) for number in numbers or range(len(people))]
    meshes = [person.meshes[kind] for person in people]
    camera = record.camera
    return draw_meshes(image, meshes, record.faces, camera.focal, camera.princpt, colors)


def _write_person(folder: Path, image: np.ndarray, person: Person, number: int, record: Record) -> None:
    """The vertices over the image and the OBJ file of each mesh of a person."""
    for kind, mesh in person.meshes.items():
        pixels = person.prediction.mesh_img
        if kind == 'param':
            pixels = cam2pixel(mesh, record.camera.focal, record.camera.princpt)
        points = draw_points(image, pixels, person_color(number))
        (folder / f'output_mesh_{kind}.jpg').write_bytes(encode_jpeg(points))
        (folder / f'output_mesh_{kind}.obj').write_text(obj_text(mesh, record.faces, record.axes))


def _overview(image: np.ndarray, overlays: dict[str, np.ndarray], people: list[Person],
              record: Record) -> np.ndarray:
    """Photo with boxes and confidences, joints, overlays, and the first person's mesh from the side, in one image."""
    photo = image
    skeletons = image
    for number, person in enumerate(people):
        prediction = person.prediction
        photo = draw_box(photo, prediction.bbox, person_color(number), f'{prediction.mean_confidence:.2f}')
        joints = record.joints(prediction.mesh_img)
        confidence = record.joint_confidence(prediction)
        skeletons = draw_skeleton(skeletons, joints, record.joints.skeleton, confidence)
    mesh = people[0].meshes[record.info.kinds[-1]]
    views = {'photo, confidence': photo, 'joints, red: unsure': skeletons}
    for kind, overlay in overlays.items():
        views[f'{kind} mesh'] = overlay
    views['side view'] = render_view(mesh, record.faces, (480, 360), yaw_deg=90)
    return panels(list(views.values()), list(views))
