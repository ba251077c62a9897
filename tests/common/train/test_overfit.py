"""Network, losses, targets and optimiser together: eight synthetic samples can be learnt by heart."""
from torch.utils.data import default_collate

from common.base import Trainer
from common.train.loop import train_step
from tests.tiny import tiny_config


def test_eight_samples_are_learnt_by_heart(tmp_path):
    trainer = Trainer(tiny_config(
        tmp_path, 'synthetic_train_size=8', 'train_batch_size=8', 'resnet_width=16', 'head_width=32', 'lr=3e-3',
        'input_img_shape=[64,64]', 'output_hm_shape=[16,16,16]', 'sigma=1', 'synthetic_img_size=96'))
    batch = default_collate([trainer.dataset.get_item(i, None) for i in range(8)])
    net = trainer.loop.net.train()
    totals = []
    for step in range(120):
        for group in trainer.optimizer.param_groups:
            group['lr'] = 3e-3 if step < 90 else 3e-4
        losses = train_step(net, trainer.optimizer, trainer.scaler, [batch], trainer.device, clip_grad=20)
        totals.append(float(sum(losses.values())))
    assert totals[-1] < 0.2 * totals[0], (totals[::20], losses)
