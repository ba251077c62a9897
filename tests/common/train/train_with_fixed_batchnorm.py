"""main/train.py with BatchNorm in eval mode, for a test: then a batch may be split in any way."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from torch import nn  # noqa: E402

from common.errors import run_main  # noqa: E402
from main.model import Model  # noqa: E402
from main.train import main  # noqa: E402


def keep_eval(model, mode=True):
    return nn.Module.train(model, False)


if __name__ == '__main__':
    Model.train = keep_eval
    run_main(main)
