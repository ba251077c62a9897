"""The files of one picture: overlays, OBJ meshes, the overview, and the record."""
from common.demo.inputs.images import write_image
from common.demo.outputs.record import json_text, write_npz
from common.utils import vis
from common.utils.transforms import cam2pixel


def write_picture(folder, image, people, camera, joints, faces, origin):
    """Write all results of a picture (H, W, 3) RGB into `folder`.

    One person: the six files beside each other. Several: the six files of each in `person_<number>/`, and beside those
    the shaded overlays of everybody, the nearer in front.
    """
    kinds = {'lixel': [p.lixel_cam for p in people]}
    if people[0].param_cam is not None:
        kinds['param'] = [p.param_cam for p in people]
    overlays = {kind: vis.draw_meshes(image, meshes, faces, camera.focal, camera.princpt)
                for kind, meshes in kinds.items()}
    for kind, picture in overlays.items():
        write_image(folder / f'rendered_mesh_{kind}.jpg', picture)
    for number, person in enumerate(people):
        place = folder
        if len(people) > 1:
            place = folder / f'person_{number}'
            place.mkdir()
        _write_person(place, image, person, number, camera, faces, rendered=len(people) > 1)
    write_image(folder / 'overview.jpg', overview(image, overlays, people, joints, faces))
    text = json_text(origin, camera, joints, people)
    (folder / 'result.json').write_text(text, encoding='utf-8', errors='backslashreplace')  # odd names of files
    write_npz(folder / 'result.npz', origin, camera, joints, faces, people)


def _write_person(folder, image, person, number, camera, faces, rendered):
    """One person's files; the shaded overlay only if `rendered`."""
    color = vis.person_color(number)
    for kind, mesh in (('lixel', person.lixel_cam), ('param', person.param_cam)):
        if mesh is None:
            continue
        pixels = person.mesh_img if kind == 'lixel' else cam2pixel(mesh, camera.focal, camera.princpt)
        write_image(folder / f'output_mesh_{kind}.jpg', vis.draw_points(image, pixels, color))
        (folder / f'output_mesh_{kind}.obj').write_text(vis.obj_text(mesh, faces))
        if rendered:
            picture = vis.draw_meshes(image, [mesh], faces, camera.focal, camera.princpt, [color])
            write_image(folder / f'rendered_mesh_{kind}.jpg', picture)


def overview(image, overlays, people, joints, faces):
    """Photo with boxes, joints, overlays, and the first person's mesh from the side, in one picture."""
    photo, skeletons = image, image
    for number, person in enumerate(people):
        photo = vis.draw_box(photo, person.bbox, vis.person_color(number))
        skeletons = vis.draw_skeleton(skeletons, joints(person.mesh_img), joints.skeleton)
    pictures = {'photo': photo, 'joints': skeletons} | {f'{kind} mesh': p for kind, p in overlays.items()}
    mesh = people[0].lixel_cam if people[0].param_cam is None else people[0].param_cam
    pictures['side view'] = vis.render_view(mesh, faces, (480, 360), yaw_deg=90)
    return vis.panels(list(pictures.values()), list(pictures))
