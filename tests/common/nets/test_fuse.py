"""The faster ways to the same numbers: folded batch normalisation, the transposed convolution as a matrix product."""
import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from common.human_model import get_human_model
from common.nets.fuse import fold_batchnorm, prepare_for_inference
from common.nets.layer import Upsample
from common.nets.lixel import gaussian_1d
from main.model import get_model
from tests.tiny import tiny_config


def norms(model):
    return [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]


@pytest.mark.parametrize('resnet_type', [18, 50])
def test_folded_network_computes_the_same(resnet_type):
    torch.manual_seed(0)
    config = tiny_config('/nonexistent', f'resnet_type={resnet_type}', 'stage=param')
    model = get_model(config, get_human_model('open_body'), 'test').double().eval()
    for norm in norms(model):
        norm.running_mean.normal_()
        norm.running_var.uniform_(.5, 2)
        nn.init.normal_(norm.weight, 1, .2)
        nn.init.normal_(norm.bias)
    img = torch.rand(2, 3, *config.input_img_shape, dtype=torch.float64)
    folded = fold_batchnorm(copy.deepcopy(model))
    want, got = (net({'img': img}, {}, {}, 'test') for net in (model, folded))
    assert norms(model) and not norms(folded)
    for name, value in want.items():
        assert value.std() > 0 and (got[name] - value).abs().max() < 1e-9, name


def test_a_network_for_inference_has_no_gradient_and_no_train_mode():
    config = tiny_config('/nonexistent')
    model = prepare_for_inference(get_model(config, get_human_model('open_body'), 'test'), torch.device('cpu'))
    assert not any(p.requires_grad for p in model.parameters()) and not any(m.training for m in model.modules())


@pytest.mark.parametrize('out_channels', [3, 5])  # 16 of 5 goes through the library, 16 of 3 through the product
@pytest.mark.parametrize('biased', [False, True])
def test_upsample_is_the_transposed_convolution(out_channels, biased):
    torch.manual_seed(0)
    layer = Upsample(16, out_channels).double()
    if biased:
        layer.bias = nn.Parameter(torch.randn(out_channels, dtype=torch.float64))
    x = torch.randn(2, 16, 3, 5, dtype=torch.float64, requires_grad=True)
    results = []
    for run in (layer, lambda x: F.conv_transpose2d(x, layer.weight, layer.bias, stride=2, padding=1)):
        x.grad, layer.weight.grad = None, None
        out = run(x)
        (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
        results.append((out.detach(), x.grad, layer.weight.grad))
    assert results[0][0].shape == (2, out_channels, 6, 10)
    for got, want in zip(*results, strict=True):
        assert (got - want).abs().max() < 1e-12


def test_products_of_gaussian_tails_are_zero_and_never_denormal():
    tails = gaussian_1d(torch.tensor([0., 31.5, 70.]), 64, 2.5)
    products = (tails[:, :, None] * tails[:, None]).flatten()
    assert products[products > 0].min() > torch.finfo(torch.float32).tiny
    exact = torch.exp(-((torch.arange(64.) - torch.tensor([0., 31.5, 70.])[:, None]) / 2.5) ** 2 / 2)
    assert (tails - exact).abs().max() < 1e-10
