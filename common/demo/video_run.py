"""Results of a video: overlay videos, numbers of every frame, and motions for animation tools."""
import json

import numpy as np
from tqdm import tqdm

from common.demo.image_run import origin_of
from common.demo.inputs.sources import Video
from common.demo.outputs.folder import clear_leftovers, free_name, printable, whole_folder
from common.demo.outputs.record import header, person_arrays, person_entry
from common.demo.outputs.video_files import FrameArrays, FrameRecord, OverlayVideos
from common.demo.people.sequence import Sequence
from common.demo.people.tracking import Tracker
from common.errors import UserError


def video(path, boxes_of, predictor, settings):
    """Results for a video file, in one folder: `rendered_mesh_{lixel,param}.mp4`, `result.json` (frame by frame),
    `result.npz` (one row per person and frame), `person_<number>.npz` (AMASS layout; param stage). Long videos need
    no more memory than short ones, but for about 3 kB per person and frame."""
    if len(settings.root_depth or []) > 1:
        raise UserError('--root_depth takes one number for a video')
    clip = Video(path)
    clear_leftovers(settings.output)
    name = free_name(settings.output, path.stem, path.resolve())
    with whole_folder(settings.output, name) as folder:
        sequence = Sequence(predictor.human_model, folder)
        count, empty = predict(clip, boxes_of, predictor, sequence)
        if not sequence.frames:
            raise UserError(f'{path.name}: no person in any frame, by the boxes given or found')
        if settings.smooth:
            sequence.smooth(clip.fps, settings.smooth, settings.box_size_m)
        write_results(folder, clip, sequence, empty, predictor, settings)
        sequence.meshes.close()
    people = len(set(sequence.people))
    for line in boxes_of.notes:
        print(line)
    if count < clip.frames:
        print(f'{printable(path.name)}: only {count} of the {clip.frames} frames that the file states can be read')
    elif clip.uneven:
        print(f'{printable(path.name)}: its frames are not evenly spaced in time; results have {clip.fps:g} a second')
    print(f'{count} frame{"s" * (count != 1)}, {len(empty)} of them without people, people: {people}, '
          f'{predictor.network_time:.1f} s in the network, results: {printable(settings.output / name)}')
    return 0


def predict(clip, boxes_of, predictor, sequence):
    """Fill the sequence with everybody in every frame; returns the number of frames that could be
    read, and the numbers of those without people."""
    tracker = Tracker() if boxes_of.detector is not None else None
    count, empty = 0, []
    with tqdm(total=clip.frames, unit='image', desc='network', delay=0.5) as bar:
        for picture, predictions in predictor.stream(clip.pictures(boxes_of)):
            numbers = tracker(picture.number, picture.boxes) if tracker else range(len(predictions))
            for number, prediction in zip(numbers, predictions, strict=True):
                sequence.append(picture.number, number, prediction)
            if not predictions:
                empty.append(picture.number)
            count += 1
            bar.update()
    return count, empty


def write_results(folder, clip, sequence, empty, predictor, settings):
    """Place everybody in the camera of the first person's frame, draw, and write all files."""
    joints, rows_of = settings.joints, {}
    for row, frame in enumerate(sequence.frames):
        rows_of.setdefault(frame, []).append(row)
    camera, people = settings.place(sequence.predictions(rows_of[sequence.frames[0]]), clip.size)
    kinds = ['lixel'] if people[0].param_cam is None else ['lixel', 'param']
    head = header(origin_of(clip.path, clip.size, people, predictor, settings), camera, joints)
    head |= {'fps': clip.fps, 'smoothing': settings.smooth, 'frames_without_people': empty}
    with FrameRecord(folder / 'result.json', head) as record, FrameArrays(folder) as arrays, \
            OverlayVideos(folder, kinds, clip.fps, clip.size) as overlays:
        for frame, image in tqdm(clip, total=clip.frames, unit='image', desc='drawing', delay=0.5):
            rows = rows_of.get(frame, [])
            numbers = [sequence.people[row] for row in rows]
            _, people = settings.place(sequence.predictions(rows), clip.size, camera)
            record.add(frame, [person_entry(n, p, joints, camera) for n, p in zip(numbers, people, strict=True)])
            for number, person in zip(numbers, people, strict=True):
                arrays.add(frame, number, person_arrays(person, joints, camera))
            overlays.add(image, people, numbers, camera, predictor.faces)
        arrays.write(folder / 'result.npz', {
            'joint_names': np.array(joints.names), 'faces': np.asarray(predictor.faces, np.int32),
            'focal': camera.focal, 'princpt': camera.princpt, 'meta': np.array(json.dumps(head))})
        if 'param' in kinds:
            trans = arrays.column('trans')
            seen_by = {'focal': camera.focal, 'princpt': camera.princpt, 'size': np.array(clip.size),
                       'left_hand': predictor.left_hand}
            for person in sorted(set(sequence.people)):
                np.savez(folder / f'person_{person}.npz', **sequence.animation(person, clip.fps, trans), **seen_by)
