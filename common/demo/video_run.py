"""From a video to its results: overlay videos, numbers of every frame, and motions for animation tools."""
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from common.demo.inputs.sources import BoxSource, read_frames
from common.demo.inputs.video import Video
from common.demo.outputs.figures import Figures, view_of
from common.demo.outputs.folder import clear_leftovers, free_name, whole_folder
from common.demo.outputs.record import UNSURE, unsure
from common.demo.outputs.turntable import write_turntables
from common.demo.outputs.video_files import FrameArrays, FrameRecord, OverlayVideos
from common.demo.outputs.video_writer import playable_format
from common.demo.paths import printable
from common.demo.people.following import Follower
from common.demo.people.prediction import Prediction
from common.demo.people.sequence import Sequence
from common.demo.people.tracking import Tracker
from common.demo.pipeline import Pipeline
from common.errors import UserError
from common.export.amass import AXES, amass_arrays
from common.files.arrays import write_npz

VIDEO_UNITS = {'person_<n>.npz': f'poses and trans: {AXES}; see `units` in the file',
               'frames_lost': 'for each person, the frames in which they could not be followed',
               'fps': 'frames per second', 'times': 'seconds from the start of the video, of each frame'}

People = dict[int, Prediction]  # the people of a frame by their numbers


@dataclass(frozen=True)
class Wishes:
    """What a user wants of a video besides its numbers."""
    smooth: bool = False  # over time
    side_by_side: bool = False  # frame and overlay in one video
    turntable: bool = False  # videos of each person's mesh, turned once round
    every_frame: bool = False  # the boxes of --bbox hold for all frames; else people are followed from the first


@dataclass
class Counts:
    """What was read of a video."""
    frames: int  # that could be read
    empty: list[int]  # frames without people
    lost: dict[int, list[int]] = field(default_factory=dict)  # {person: the frames in which they were lost}

    def notes(self) -> list[str]:
        """A line for each person who was lost."""
        found = []
        for number, frames in sorted(self.lost.items()):
            found.append(f'person {number} was lost in {len(frames)} of {self.frames} frames, the first is '
                         f'{frames[0]}; they have no mesh there')
        return found


def run_video(pipeline: Pipeline, video: Video, boxes_of: BoxSource, output: Path,
              wishes: Wishes = Wishes()) -> int:
    """Write the results of a video file, in one folder.

    `rendered_mesh_{lixel,param}` (videos), `result.json` (frame by frame), `result.npz` (one row per person and frame),
    `person_<number>.npz` (AMASS layout) and `.glb` (a figure; both in the param stage). Long videos need no more
    memory than short ones, but for about 3 kB per person and frame.

    Args:
        pipeline: to run.
        video: to read.
        boxes_of: gives the boxes of each frame.
        output: folder of the result folder.
        wishes: what else is wanted.
    Returns:
        0, the exit code.
    Raises:
        UserError: the video cannot be read, or nobody is in it.
    """
    if len(pipeline.placer.root_depth or []) > 1:
        raise UserError('--root_depth takes one number for a video')
    path = video.path
    playable_format()  # fails sooner than the network
    clear_leftovers(output)
    figures = Figures(pipeline.predictor.human_model)
    name = free_name(output, path.stem, path.resolve())
    with whole_folder(output, name) as folder:
        sequence = Sequence(pipeline.predictor.human_model, folder)
        counts = _predict(pipeline, video, boxes_of, sequence, wishes)
        boxes_of.check_frames(path, max(counts.frames, video.frames))
        if not sequence.rows:
            raise UserError(f'{path.name}: no person in any frame, by the boxes given or found')
        if wishes.smooth:
            sequence.smooth(video.times)
        sequence.share_shapes()
        _write(pipeline, folder, video, sequence, wishes, counts, figures)
        sequence.meshes.close()
    if figures.note and 'param' in pipeline.predictor.info.kinds:
        boxes_of.notes.append(figures.note)
    for note in boxes_of.notes:
        print(note)
    file_name = printable(path.name)
    if counts.frames < video.frames:
        print(f'{file_name}: only {counts.frames} of the {video.frames} frames that the file states can be read')
    for note in [*video.notes, *counts.notes()]:
        print(f'{file_name}: {note}')
    if counts.lost:
        print('to say where people are, give --bbox_file, --detect, or --every_frame if they stay in their boxes')
    plural = 's' if counts.frames != 1 else ''
    print(f'{counts.frames} frame{plural}, {len(counts.empty)} of them without people, people: '
          f'{len(sequence.people)}, {pipeline.predictor.network_time:.1f} s in the network, results: '
          f'{printable(output / name)}')
    return 0


def _predict(pipeline: Pipeline, video: Video, boxes_of: BoxSource, sequence: Sequence, wishes: Wishes) -> Counts:
    """Fill the sequence with everybody in every frame."""
    counts = Counts(0, [])
    if boxes_of.fixed is not None and not wishes.every_frame:
        frames = _followed(pipeline, video, boxes_of, counts.lost)
    else:
        frames = _looked_up(pipeline, video, boxes_of)
    for frame, people in tqdm(frames, total=video.frames, unit='image', desc='network', delay=0.5):
        for number, prediction in people.items():
            sequence.append(frame, number, prediction)
        if not people:
            counts.empty.append(frame)
        counts.frames += 1
    return counts


def _looked_up(pipeline: Pipeline, video: Video, boxes_of: BoxSource) -> Iterator[tuple[int, People]]:
    """Iterate over (frame, its people) where the boxes of each frame are known or found."""
    tracker = None
    if boxes_of.detector is not None:  # which gives people in any order
        tracker = Tracker()
    for image, predictions in pipeline.predictor.stream(read_frames(video, boxes_of)):
        numbers = list(range(len(predictions)))
        if tracker is not None:
            numbers = tracker(image.number, image.boxes)
        yield image.number, dict(zip(numbers, predictions, strict=True))


def _followed(pipeline: Pipeline, video: Video, boxes_of: BoxSource,
              lost: dict[int, list[int]]) -> Iterator[tuple[int, People]]:
    """Iterate over (frame, its people), followed from their boxes in the first frame.

    Args:
        pipeline: to run.
        video: the frames.
        boxes_of: gives the boxes of the first frame.
        lost: takes {person: the frames in which they are lost}.
    """
    follower = None
    for frame, image in video:
        if follower is None:
            follower = Follower(boxes_of(video.path, frame, image))
        predictions = pipeline.predictor.predict(image, follower.boxes)
        there = follower.update(image, predictions)
        for number in set(range(len(predictions))) - set(there):
            lost.setdefault(number, []).append(frame)
        yield frame, {number: predictions[number] for number in there}


def _write(pipeline: Pipeline, folder: Path, video: Video, sequence: Sequence, wishes: Wishes,
           counts: Counts, figures: Figures) -> None:
    """Place everybody in the camera of the first person's frame, draw, and write all files."""
    rows_by_frame = sequence.rows_by_frame()
    first = sequence.predictions(next(iter(rows_by_frame.values())))
    camera, _ = pipeline.placer(first, video.size)
    record = pipeline.record(str(video.path.resolve()), video.size, camera)
    confidence = float(np.mean([row.prediction.mean_confidence for row in sequence.rows]))
    doubts = record.doubts([])
    if record.info.trained_maps and confidence < UNSURE:
        doubts.append(unsure(confidence, record.info.subject))
    record.warnings += doubts
    video.notes += doubts
    more = {'fps': video.fps, 'times': list(video.times.values()), 'smoothing': wishes.smooth,
            'frames_without_people': counts.empty,
            'frames_lost': {str(number): frames for number, frames in sorted(counts.lost.items())},
            'units': record.header()['units'] | VIDEO_UNITS}
    with FrameRecord(folder / 'result.json', record.header() | more) as frames, FrameArrays(folder) as arrays, \
            OverlayVideos(folder, record, video.fps, wishes.side_by_side) as overlays:
        for frame, image in tqdm(video, total=video.frames, unit='image', desc='drawing', delay=0.5):
            rows = rows_by_frame.get(frame, [])
            numbers = [sequence.rows[row].person for row in rows]
            _, people = pipeline.placer(sequence.predictions(rows), video.size, camera=camera)
            entries = []
            for number, person in zip(numbers, people, strict=True):
                entries.append(record.entry(number, person))
                arrays.add(frame, video.times[frame], number, record.arrays(person))
            frames.add(frame, entries)
            overlays.add(image, people, numbers)
        arrays.write(folder / 'result.npz', record.shared_arrays(**more))
        if 'param' in record.info.kinds:
            trans = arrays.column('trans')
            for number in sequence.people:
                motion = sequence.motion(number, video.times, trans, record.info.left_hand, view_of(record))
                arrays_of_motion = amass_arrays(motion, pipeline.predictor.human_model, video.fps)
                write_npz(folder / f'person_{number}.npz', arrays_of_motion)
                figures.write(folder, number, motion)
    if wishes.turntable:
        for number in tqdm(sequence.people, unit='person', desc='turntables', delay=0.5):
            own_rows = sequence.rows_of(number)
            in_the_middle = sequence.predictions([int(own_rows[len(own_rows) // 2])])
            _, people = pipeline.placer(in_the_middle, video.size, camera=camera)
            write_turntables(folder, people[0], number, record, f'person_{number}_')
