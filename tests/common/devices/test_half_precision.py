"""bfloat16 against float32 with the bundled networks, on their synthetic test set."""
from pathlib import Path

import pytest
import torch

from common.devices.wrap import Autocast
from common.human_model import get_human_model
from common.nets.fuse import prepare_for_inference
from common.snapshot import checkpoint, meta
from data import build_dataset
from main.config import Config
from main.model import get_model

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = 48


@pytest.mark.parametrize('name', ['nano', 'nano_hand'])
def test_the_mesh_moves_by_less_than_a_millimetre(name):
    path = ROOT / 'main' / 'embedded' / f'{name}.pth.tar'
    content = checkpoint.read(path)
    config = Config()
    config.load(name)
    config.override([f'synthetic_test_size={SAMPLES}', 'synthetic_cache=false'])
    meta.adopt(meta.describe(content, path), config, path, 'param')
    dataset = build_dataset(config.testset, 'test', config)
    img = torch.stack([torch.as_tensor(dataset[index][0]['img']) for index in range(SAMPLES)])
    model = get_model(config, get_human_model(config.human_model), 'test')
    checkpoint.load_network(model, content, path)
    model = prepare_for_inference(model, 'cpu')
    with torch.inference_mode():
        want, got = (Autocast(model, dtype)({'img': img}, {}, {}, 'test')['mesh_coord_cam']
                     for dtype in (None, torch.bfloat16))
    assert got.dtype == torch.float32 and not torch.equal(got, want)
    assert (got - want).norm(dim=-1).mean() < 1e-3
