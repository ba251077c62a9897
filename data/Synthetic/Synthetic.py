"""Synthetic: images of the embedded body (or hand), drawn by the program itself. Needs no file.

Settings: synthetic_train_size, synthetic_test_size (samples), synthetic_img_size (pixels), synthetic_max_heading
(degrees), synthetic_occlusion (share of the images), synthetic_cache (keep the images on disk), seed.
"""
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.human_model import get_human_model
from common.utils.preprocessing import process_bbox
from data.fit_bodies import fingerprint
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample
from data.settings import Settings
from data.Synthetic.generator import Generator, Person
from data.Synthetic.store import ImageStore, open_store


class Synthetic(MeshDataset):
    """People (or right hands, with body_model=open_hand or mano) with exact joints, mesh and parameters.

    Sample i is a function of the split, i and the seed alone: the same in every process and on every machine, up to
    rounding. The joints are those of the body model. Flips are off: a mirrored image has another principal point.
    """
    fit_models = ('open_body', 'open_hand', 'smpl', 'mano')
    allow_flip = False
    zero_large_betas = False
    mesh_target_at_test = True

    images_are_files = False

    def __init__(self, split: str, cfg: Settings) -> None:
        # the body model's own joints
        self.joint_set = get_human_model(cfg.human_model, cfg.human_model_dir).joint_set
        super().__init__(split, cfg)

    def make_samples(self) -> Any:
        """The samples of the split as a lazy sequence; with synthetic_cache, made and stored before it returns."""
        cfg = self.cfg
        count = cfg.synthetic_test_size
        if self.training:
            count = cfg.synthetic_train_size
        settings = {'size': cfg.synthetic_img_size, 'max_heading': cfg.synthetic_max_heading,
                    'occlusion': cfg.synthetic_occlusion}
        generator = Generator(self.human_model, cfg.synthetic_img_size, cfg.synthetic_max_heading,
                              cfg.synthetic_occlusion)
        draw = Draw(generator, self.split, cfg.seed)
        store = None
        if cfg.synthetic_cache:
            root = Path(cfg.output_dir) / 'cache'
            if isinstance(cfg.synthetic_cache, str):
                root = Path(cfg.synthetic_cache)
            key = dict(settings, version=generator.version, body=fingerprint(self.human_model),
                       split=self.split, seed=cfg.seed, count=count)
            store = open_store(root, key, draw, cfg.num_thread, f'{count} {self.split} images of Synthetic')
        return SampleSequence(draw, store, count, cfg.input_img_shape, remember=not self.training)

    def load_image(self, sample: Sample) -> np.ndarray:
        """The image (H, W, 3) uint8 RGB, drawn or read together with the sample."""
        if not sample.extra:
            sample = self.samples[sample.ann_id]
        return sample.extra['img']

    def eval_samples(self, start: int, count: int) -> Sequence[Sample]:
        """The samples of a test batch without their images."""
        return [self.samples.without_image(i) for i in range(start, start + count)]


class Draw:
    """draw(i) -> the image of sample i and its row of numbers."""

    def __init__(self, generator: Generator, split: str, seed: int) -> None:
        self.generator = generator
        self.split = split
        self.seed = seed

    def __call__(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # sums in one order: the same image here as in a loader process
        try:
            rendering = self.generator(self.split, i, self.seed)
        finally:
            torch.set_num_threads(threads)  # without loader processes, this one trains too
        return rendering.img, rendering.numbers()


class SampleSequence:
    """A sequence of Samples, read from an ImageStore or, without one, drawn when asked for.

    Args:
        draw: Draws them.
        store: Has them, or None.
        count: How many.
        input_img_shape: (height, width) of the network input, pixels.
        remember: Keep the numbers of what is drawn, in memory that loader processes share, so that the evaluation of a
            sample drawn there need not draw it again.
    """

    def __init__(self, draw: Draw, store: ImageStore | None, count: int, input_img_shape: tuple[int, int],
                 remember: bool = False) -> None:
        self.draw = draw
        self.store = store
        self.count = count
        self.input_img_shape = input_img_shape
        self.drawn = None
        if remember and store is None and count:  # NaN: not drawn yet
            self.drawn = torch.full((count, len(draw(0)[1])), torch.nan).share_memory_()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> Sample:
        i = range(self.count)[i]
        if self.store is None:
            img, numbers = self.draw(i)
        else:
            img, numbers = self.store[i]
        if self.drawn is not None:
            self.drawn[i] = torch.from_numpy(numbers)
        return self.sample(i, numbers, {'img': img})

    def without_image(self, i: int) -> Sample:
        """Sample i without `extra`, at no cost where it was drawn before or is in the store."""
        if self.store is not None:
            return self.sample(i, np.array(self.store.numbers[i]), {})
        if self.drawn is None or self.drawn[i].isnan().any():
            return self[i]
        return self.sample(i, self.drawn[i].numpy(), {})

    def sample(self, i: int, numbers: np.ndarray, extra: dict[str, Any]) -> Sample:
        """Sample i from its row of numbers (D,)."""
        generator = self.draw.generator
        size = generator.size
        person = Person.from_numbers(numbers, generator.human_model)
        box = process_bbox(person.bbox, size, size, self.input_img_shape)
        assert box is not None  # the generator puts people into the image
        root_depth = float(person.joints[generator.human_model.root_joint_idx, 2])
        pixels = person.joints[:, :2] / person.joints[:, 2:] * person.focal + person.princpt
        return Sample(
            img_path=f'Synthetic/{self.draw.split}/{i}', img_shape=(size, size), bbox=box,
            camera=Camera(person.focal, person.princpt), joint_img=pixels, joint_cam=person.joints,
            fit=Fit(person.pose, person.shape, person.trans), root_depth=root_depth, ann_id=i, extra=extra)
