"""Synthetic: pictures of the embedded body (or hand), drawn by the program itself. Needs no file.

Settings: synthetic_train_size, synthetic_test_size (samples), synthetic_img_size (pixels), synthetic_max_heading
(degrees), synthetic_occlusion (share of the pictures), synthetic_cache (keep the pictures on disk), seed.
"""
import zlib
from pathlib import Path

import numpy as np
import torch

from common.utils.preprocessing import process_bbox
from data.mesh_dataset import MeshDataset
from data.sample import Camera, Fit, Sample
from data.Synthetic.generator import Generator, Rendering
from data.Synthetic.store import open_store


class Synthetic(MeshDataset):
    """People (or right hands, with body_model=open_hand or mano) with exact joints, mesh and parameters.

    Sample i is a function of the split, i and the seed alone: the same in every process and on every machine, up to
    rounding. The joints are those of the body model. Flips are off: a mirrored picture has another principal point.
    """
    fit_models = ('open_body', 'open_hand', 'smpl', 'mano')
    allow_flip = False
    zero_large_betas = False
    mesh_target_at_test = True

    @property
    def joint_set(self):
        """The body model's own joints are annotated."""
        return self.human_model.joint_set

    def make_samples(self):
        """The samples of the split as a lazy sequence; with synthetic_cache, made and stored before it returns."""
        cfg = self.cfg
        count = cfg.synthetic_train_size if self.training else cfg.synthetic_test_size
        settings = dict(size=cfg.synthetic_img_size, max_heading=cfg.synthetic_max_heading,
                        occlusion=cfg.synthetic_occlusion)
        draw = Draw(Generator(self.human_model, **settings), self.split, cfg.seed)
        store = None
        if cfg.synthetic_cache:
            root = cfg.synthetic_cache if isinstance(cfg.synthetic_cache, str) else Path(cfg.output_dir) / 'cache'
            key = dict(settings, version=draw.generator.version, body=fingerprint(self.human_model),
                       split=self.split, seed=cfg.seed, count=count)
            store = open_store(root, key, draw, cfg.num_thread, f'{count} {self.split} pictures of Synthetic')
        return SampleSequence(draw, store, count, cfg.input_img_shape, remember=not self.training)

    def load_image(self, sample):
        """The picture (H, W, 3) uint8 RGB, drawn or read together with the sample."""
        return sample.extra['img'] if sample.extra else self.samples[sample.ann_id].extra['img']

    def eval_samples(self, start, count):
        """The samples of a test batch without their pictures."""
        return [self.samples.without_picture(i) for i in range(start, start + count)]


class Draw:
    """draw(i) -> the picture of sample i and its row of numbers."""

    def __init__(self, generator, split, seed):
        self.generator, self.split, self.seed = generator, split, seed

    def __call__(self, i):
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # sums in one order: the same picture here as in a loader process
        try:
            rendering = self.generator(self.split, i, self.seed)
        finally:
            torch.set_num_threads(threads)  # without loader processes, this one trains too
        return rendering.img, rendering.numbers()


class SampleSequence:
    """A sequence of `count` Samples, read from a PictureStore or, without one, drawn when asked for.

    remember: keep the numbers of what is drawn, in memory that loader processes share, so that the evaluation of a
    sample drawn there need not draw it again.
    """

    def __init__(self, draw, store, count, input_img_shape, remember=False):
        self.draw, self.store, self.count, self.input_img_shape = draw, store, count, input_img_shape
        self.drawn = None
        if remember and store is None and count:  # NaN: not drawn yet
            self.drawn = torch.full((count, len(draw(0)[1])), torch.nan).share_memory_()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        i = range(self.count)[i]
        img, numbers = self.draw(i) if self.store is None else self.store[i]
        if self.drawn is not None:
            self.drawn[i] = torch.from_numpy(numbers)
        return self.sample(i, numbers, {'img': img})

    def without_picture(self, i):
        """Sample i without `extra`, at no cost where it was drawn before or is in the store."""
        if self.store is not None:
            return self.sample(i, np.array(self.store.numbers[i]))
        if self.drawn is None or self.drawn[i].isnan().any():
            return self[i]
        return self.sample(i, self.drawn[i].numpy())

    def sample(self, i, numbers, extra=None):
        generator = self.draw.generator
        drawn, height, width = Rendering.from_numbers(None, numbers, generator.human_model), *2 * (generator.size,)
        root_depth = float(drawn.joints[generator.human_model.root_joint_idx, 2])
        pixels = drawn.joints[:, :2] / drawn.joints[:, 2:] * drawn.focal + drawn.princpt
        return Sample(
            img_path=f'Synthetic/{self.draw.split}/{i}', img_shape=(height, width),
            bbox=process_bbox(drawn.bbox, width, height, self.input_img_shape),
            camera=Camera(drawn.focal, drawn.princpt), joint_img=pixels, joint_cam=drawn.joints,
            fit=Fit(drawn.pose, drawn.shape, drawn.trans), root_depth=root_depth, ann_id=i, extra=extra or {})


def fingerprint(human_model):
    """Name of a body model with a checksum of its shape, so that a changed model is not mistaken for the old one."""
    value = 0
    for array in (human_model.v_template, human_model.shapedirs, human_model.weights):
        value = zlib.crc32(np.ascontiguousarray(array.numpy()), value)
    return f'{human_model.name}-{value:08x}'
